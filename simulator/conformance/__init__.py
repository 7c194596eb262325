"""What every kind must hold, built in or a plugin's: checks, each with a verdict of one line.

A check is a function with a decorator (``subjects.check``) that takes a ``Subject``: one class, in
small worlds that name it.  It says what it has seen, or raises.
"""

from simulator.conformance import loss_checks, other_checks, run_checks
from simulator.conformance.subjects import FAILED, Verdict, examine, subjects_of

__all__ = [
    "FAILED",
    "Verdict",
    "examine",
    "loss_checks",
    "other_checks",
    "run_checks",
    "subjects_of",
]
