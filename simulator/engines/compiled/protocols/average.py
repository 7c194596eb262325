"""Average: ``agents.gossip.Averages``."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.pool import REPLY, slot_of
from simulator.engines.compiled.protocols.answer_then_solve import finish, take_in
from simulator.engines.compiled.switching import compute
from simulator.engines.compiled.world import consider


@kernel
def handle(run: Any, i: int, slot: int) -> None:
    """Answer a request with the model as it was; average; solve, if it is a reply."""
    kind = slot_of(run, slot).kind
    if not take_in(run, i, slot):
        return
    if kind == REPLY and compute(run, i, 0):
        finish(run, i)  # average and step hold together where solving takes no time
    else:
        consider(run, i)
