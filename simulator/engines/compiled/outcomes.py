"""Why a loop returns to Python."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.draws import low
from simulator.engines.compiled.event_notes import crowded
from simulator.engines.compiled.queue import full

TIME_IS_UP, ENOUGH_SENT, HALTED, BREATHE, NOTHING_LEFT = range(5)
#: What an event might not find enough of.
NOTHING, DRAWS_ARE_LOW, POOL_IS_SMALL, QUEUE_IS_FULL, ROWS_ARE_FULL = range(5, 10)


@kernel
def short_of(run: Any, events: int, slots: int) -> int:
    """What one more event might not find: room for so many events, slots, draws or rows."""
    if run.free_slots < slots:
        return POOL_IS_SMALL
    if full(run, events):
        return QUEUE_IS_FULL
    if low(run):
        return DRAWS_ARE_LOW
    if crowded(run):
        return ROWS_ARE_FULL
    return NOTHING
