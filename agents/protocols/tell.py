"""Tell."""

from __future__ import annotations

from typing import Any

from agents.protocol import (
    ALL,
    Protocol,
    absorb,
    choose,
    compute_tick,
    fresh,
    peers,
    send,
    solve,
)
from agents.protocols.rounds import SendThenSolve


class Tell(Protocol):
    """A tick solves and tells all neighbours the outcome, or one of them; nobody answers."""

    kind, tells_all, most_sends, rounds = "tell", True, ALL, SendThenSolve

    def tick(w: Any, i: int, u: float) -> None:
        """Begin to solve."""
        compute_tick(w, i, choose(w, i, u))

    def after_tick(w: Any, i: int, k: int) -> None:
        """Solve and tell."""
        solve(w, i)
        for own in peers(w, i, k):
            send(w, i, own)

    def handle(w: Any, i: int, m: Any) -> None:
        """Absorb, unless stale."""
        if fresh(w, i, m):
            absorb(w, i, m)
