"""One run, from a scenario to its result."""
