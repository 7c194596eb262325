"""Tell."""

from __future__ import annotations

from typing import Any

from agents.protocol import ALL, Protocol, absorb, compute_tick, fresh, links, send, solve
from agents.protocols.rounds import SendThenSolve


class Tell(Protocol):
    """A tick solves and tells every neighbour the outcome; nobody answers."""

    kind, most_sends, rounds = "tell", ALL, SendThenSolve

    def tick(w: Any, i: int, u: float) -> None:
        """Begin to solve; the neighbour that u picks plays no part."""
        compute_tick(w, i, 0)

    def after_tick(w: Any, i: int, k: int) -> None:
        """Solve and tell."""
        solve(w, i)
        for own in links(w, i):
            send(w, i, own)

    def handle(w: Any, i: int, m: Any) -> None:
        """Absorb, unless stale."""
        if fresh(w, i, m):
            absorb(w, i, m)
