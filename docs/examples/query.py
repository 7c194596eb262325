"""A protocol of one's own: who is asked answers, and learns nothing from it.

    python -m simulator run docs/examples/query.yaml --plugin docs/examples/query.py

A query of a device costs its owner nothing but an answer: its model stays, and whoever asks often
learns faster.  The rule is model propagation.
"""

from agents.protocol import (
    Protocol,
    absorb,
    answer,
    choose,
    compute,
    fresh,
    is_request,
    send,
    solve,
)
from agents.rules.model_propagation import ModelPropagation


class Query(Protocol):
    """A tick asks; whoever is asked answers; who asked absorbs and solves."""

    kind = "query"

    def tick(w, i, u):
        """Ask."""
        send(w, i, choose(w, i, u))

    def handle(w, i, m):
        """Answer a request; absorb a reply, and begin to solve."""
        if is_request(w, m):
            answer(w, i, m)
        elif fresh(w, i, m):
            absorb(w, i, m)
            compute(w, i, m)

    def after(w, i, m):
        """Solve."""
        solve(w, i)


class QueriedPropagation(ModelPropagation):
    """Model propagation by queries."""

    kind, protocol, modes = "queried_mp", Query, ("async",)
