"""Solve, then answer: ``agents.gossip.SolvesThenAnswers``."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.exchange import answer, send_told, stale
from simulator.engines.compiled.pool import HELLO, REQUEST, give_back, payload, slot_of
from simulator.engines.compiled.switching import compute
from simulator.engines.compiled.world import absorb, agent_of, edge_of, introduce, solve, tell


@kernel
def tick(run: Any, i: int, edge: int) -> None:
    """Solve, then send the request."""
    if compute(run, i, -1 - edge):
        finish(run, i)


@kernel
def handle(run: Any, i: int, slot: int) -> None:
    """A request: solve, absorb, answer.  A reply: absorb, unless stale."""
    message = slot_of(run, slot)
    if message.kind == REQUEST:
        if compute(run, i, slot):
            finish(run, i)
        return
    edge = message.back
    own = edge_of(run, edge)
    if message.number != own.version:
        stale(run, slot)
    else:
        own.sent_at = message.sent_at
        if message.kind == HELLO:
            introduce(run, i, edge, payload(run, slot, 0))
        else:
            absorb(run, i, edge, payload(run, slot, 1), payload(run, slot, 0))
            own.version += 1
    give_back(run, slot)


@kernel
def finish(run: Any, i: int) -> None:
    """Solve; then send the request, or absorb the one that came and answer it."""
    solve(run, i)
    job = agent_of(run, i).job
    if job < 0:
        edge = -1 - job
        send_told(run, i, edge, edge_of(run, edge).version)
        return
    message = slot_of(run, job)
    edge = message.back
    own = edge_of(run, edge)
    tell(run, i, edge, payload(run, job, 1))
    absorb(run, i, edge, payload(run, job, 0), payload(run, job, 1))
    own.version += 1
    own.sent_at = message.sent_at
    answer(run, job, i, own.neighbour, message.number)
