"""Solve, then answer."""

from __future__ import annotations

from typing import Any

from agents.protocol import (
    Protocol,
    absorb,
    answer,
    choose,
    compute,
    compute_tick,
    fresh,
    is_request,
    send,
    solve,
)
from agents.protocols.rounds import SolveThenSend


class SolveThenAnswer(Protocol):
    """A tick solves and asks; whoever is asked solves, answers and absorbs."""

    kind, versioned, rounds = "solve, then answer", True, SolveThenSend

    def tick(w: Any, i: int, u: float) -> None:
        """Begin to solve."""
        compute_tick(w, i, choose(w, i, u))

    def after_tick(w: Any, i: int, k: int) -> None:
        """Solve and ask."""
        solve(w, i)
        send(w, i, k)

    def handle(w: Any, i: int, m: Any) -> None:
        """A request: begin to solve.  A reply: absorb, unless stale."""
        if is_request(w, m):
            compute(w, i, m)
        elif fresh(w, i, m):
            absorb(w, i, m)

    def after(w: Any, i: int, m: Any) -> None:
        """Solve, answer the request, absorb it."""
        solve(w, i)
        answer(w, i, m)
        absorb(w, i, m)
