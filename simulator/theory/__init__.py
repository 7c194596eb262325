"""The global view that no agent has: objectives, their minimisers, metrics."""
