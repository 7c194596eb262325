"""Answer, then solve: ``agents.gossip.AnswersThenSolves``."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.exchange import answer, fresh, send_number, send_told
from simulator.engines.compiled.pool import HELLO, REQUEST, give_back, payload, slot_of
from simulator.engines.compiled.switching import compute
from simulator.engines.compiled.world import absorb, edge_of, introduce, solve, tell


@kernel
def tick(run: Any, i: int, edge: int) -> None:
    """Send the request."""
    send_told(run, i, edge, send_number(run, i))


@kernel
def handle(run: Any, i: int, slot: int) -> None:
    """Answer a request with the state as it was before; then absorb and solve."""
    kind = slot_of(run, slot).kind
    if take_in(run, i, slot) and kind != HELLO and compute(run, i, 0):
        finish(run, i)


@kernel
def take_in(run: Any, i: int, slot: int) -> bool:
    """Answer a request with the state as it was before; then absorb, unless it is stale."""
    message = slot_of(run, slot)
    kind, edge = message.kind, message.back
    is_fresh = fresh(run, slot)
    request, reply = payload(run, slot, 0), payload(run, slot, 1)
    if kind == REQUEST:
        # Told before anything is absorbed; what was told stays in the slot until the end of this
        # event, also if the reply is lost.
        tell(run, i, edge, reply)
        answer(run, slot, i, edge_of(run, edge).neighbour, send_number(run, i))
        if is_fresh:
            absorb(run, i, edge, request, reply)
    else:
        if is_fresh and kind == HELLO:
            introduce(run, i, edge, request)
        elif is_fresh:
            absorb(run, i, edge, reply, request)
        give_back(run, slot)
    return is_fresh


@kernel
def finish(run: Any, i: int) -> None:
    """Solve."""
    solve(run, i)
