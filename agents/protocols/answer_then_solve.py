"""Answer, then solve."""

from __future__ import annotations

from typing import Any, ClassVar

from agents.protocol import (
    Protocol,
    Rounds,
    absorb,
    answer,
    choose,
    compute,
    fresh,
    is_request,
    send,
    solve,
)
from agents.protocols.rounds import SendThenSolve


class AnswerThenSolve(Protocol):
    """A tick asks; whoever is asked answers with its state as it was; both ends then solve."""

    kind = "answer, then solve"
    rounds: ClassVar[type[Rounds] | None] = SendThenSolve

    def tick(w: Any, i: int, u: float) -> None:
        """Ask."""
        send(w, i, choose(w, i, u))

    def handle(w: Any, i: int, m: Any) -> None:
        """Answer a request, also a stale one; absorb what is new, and solve."""
        new = fresh(w, i, m)
        if is_request(w, m):
            answer(w, i, m)
        if new:
            absorb(w, i, m)
            compute(w, i, m)

    def after(w: Any, i: int, m: Any) -> None:
        """Solve."""
        solve(w, i)
