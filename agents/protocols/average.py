"""Average."""

from __future__ import annotations

from typing import Any

from agents.protocol import absorb, answer, compute, fresh, is_reply, is_request
from agents.protocols.answer_then_solve import AnswerThenSolve


class Average(AnswerThenSolve):
    """The same, but absorbing gives a new model, and the asking end alone then solves."""

    kind, averages, rounds = "average", True, None

    def handle(w: Any, i: int, m: Any) -> None:
        """Answer a request with the model as it was; average; solve, if it is a reply."""
        new = fresh(w, i, m)
        if is_request(w, m):
            answer(w, i, m)
        if new:
            absorb(w, i, m)
            if is_reply(w, m):
                compute(w, i, m)
