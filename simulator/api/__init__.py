"""What Python users call, and what they get: the names of ``simulator`` itself."""
