"""Rounds: send to all neighbours, wait for all of theirs, absorb; solve after that, or before."""

from __future__ import annotations

from typing import Any

from agents.protocol import (
    Rounds,
    alarm,
    compute_tick,
    deadline,
    end_round,
    links,
    send_all,
    solve,
    take,
    wait,
)


class SendThenSolve(Rounds):
    """Send, wait, absorb, solve."""

    def begin(w: Any, i: int) -> None:
        """Send; wait, but not for ever."""
        send_all(w, i)
        alarm(w, i, deadline(w))
        wait(w, i)

    def complete(w: Any, i: int) -> None:
        """Absorb what came; then solve."""
        for k in links(w, i):
            take(w, i, k)
        compute_tick(w, i, 0)

    def after_tick(w: Any, i: int, k: int) -> None:
        """Solve."""
        solve(w, i)
        end_round(w, i)


class SolveThenSend(Rounds):
    """Solve, send, wait, absorb."""

    solves_first = True

    def begin(w: Any, i: int) -> None:
        """Begin to solve."""
        compute_tick(w, i, 0)

    def after_tick(w: Any, i: int, k: int) -> None:
        """Solve and send."""
        solve(w, i)
        send_all(w, i)
        wait(w, i)

    def complete(w: Any, i: int) -> None:
        """Absorb what came."""
        for k in links(w, i):
            take(w, i, k)
        end_round(w, i)
