"""The learning problem of a scenario: tasks, graphs, and the tables that they read."""
