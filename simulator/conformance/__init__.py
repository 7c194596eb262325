"""What every kind must hold, built in or a plugin's: checks, each with a verdict of one line.

A check is a function with a decorator (``verdicts.check``) that takes a ``Subject``: one class, in
small worlds that name it.  It says what it has seen, or raises.
"""

from simulator.conformance import law_checks, loss_checks, other_checks, run_checks
from simulator.conformance.subjects import subjects_of
from simulator.conformance.verdicts import FAILED, Verdict, examine

__all__ = [
    "FAILED",
    "Verdict",
    "examine",
    "law_checks",
    "loss_checks",
    "other_checks",
    "run_checks",
    "subjects_of",
]
