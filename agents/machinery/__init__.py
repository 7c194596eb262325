"""What makes rules and losses run: compilation, kept code, and whose fault an exception is.

It knows no mathematics, which is built upon it.
"""
