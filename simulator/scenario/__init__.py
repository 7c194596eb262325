"""The scenario: everything that a run depends on, and how it is read, checked and written."""
