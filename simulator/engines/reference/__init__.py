"""The SimPy engine: the readable reference."""
