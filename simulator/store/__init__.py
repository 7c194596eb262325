"""Results on disk: complete or not there, checked when they are read."""
