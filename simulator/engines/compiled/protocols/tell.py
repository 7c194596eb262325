"""Tell: ``agents.gossip.Tells``."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.exchange import fresh, send_number, send_told
from simulator.engines.compiled.pool import HELLO, give_back, payload, slot_of
from simulator.engines.compiled.switching import compute
from simulator.engines.compiled.world import absorb, agent_of, introduce, own_model, solve


@kernel
def tick(run: Any, i: int, edge: int) -> None:
    """Solve, then send to all neighbours."""
    if compute(run, i, 0):
        finish(run, i)


@kernel
def handle(run: Any, i: int, slot: int) -> None:
    """Absorb."""
    message = slot_of(run, slot)
    if fresh(run, slot):
        if message.kind == HELLO:
            introduce(run, i, message.back, payload(run, slot, 0))
        else:
            absorb(run, i, message.back, payload(run, slot, 0), own_model(run, i))
    give_back(run, slot)


@kernel
def finish(run: Any, i: int) -> None:
    """Solve and tell."""
    solve(run, i)
    agent = agent_of(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        send_told(run, i, edge, send_number(run, i))
