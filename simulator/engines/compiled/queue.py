"""The event queue: a heap of (time, order of scheduling, item) on one flat array.

Each node has four children, which lie side by side in memory: half as deep as a binary heap, and
faster where it no longer fits the processor's cache.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np

from agents.compiling import kernel
from simulator.engines.compiled.memory import ADDRESS, Fields, view

#: Kinds of events.  A message arrives; an agent has finished computing; it is switched on or off; a
#: partition ends.  In gossip: a clock rings.  In rounds: the barrier opens for an agent; the timer
#: of a message is due; an agent has got all its messages.
ARRIVAL, COMPUTED, SWITCH, HEAL, TICK, BEGIN, TIMER, COMPLETE = range(8)
#: An item is ``index * KINDS + kind``: an agent, a message or an edge, and what happens to it.
KINDS = 8
#: Switches come before all else at their instant: the numbers of their order begin here.
EARLY = -(2**62)
ENTRY = np.dtype([("time", np.float64), ("order", np.int64), ("item", np.int64)], align=True)
FIELDS: Fields = [
    ("entries", ADDRESS),
    ("capacity", np.int64),
    #: How many entries are in use, and how many events have ever been scheduled.
    ("size", np.int64),
    ("scheduled", np.int64),
]


@kernel
def push(run: Any, time: float, kind: int, index: int) -> None:
    """Let something happen at a time, after all that is already to happen at that time.

    There is room: the loops return to Python before an event that might need more, see ``full``.
    """
    entries = view(run.entries, run.capacity, ENTRY)
    place = run.size
    run.size += 1
    while place > 0:
        parent = (place - 1) >> 2
        # The new one is the last of its time, so it never passes an equal.
        if entries[parent].time <= time:
            break
        entries[place] = entries[parent]
        place = parent
    entry = entries[place]
    entry.time = time
    entry.order = run.scheduled
    entry.item = index * KINDS + kind
    run.scheduled += 1


@kernel
def push_early(run: Any, time: float, kind: int, index: int) -> None:
    """Let something happen at a time before all that is not early too."""
    entries = view(run.entries, run.capacity, ENTRY)
    order = EARLY + run.scheduled
    place = run.size
    run.size += 1
    while place > 0:
        parent = (place - 1) >> 2
        if entries[parent].time < time:
            break
        if entries[parent].time == time and entries[parent].order < order:
            break
        entries[place] = entries[parent]
        place = parent
    entry = entries[place]
    entry.time = time
    entry.order = order
    entry.item = index * KINDS + kind
    run.scheduled += 1


@kernel
def full(run: Any, room: int) -> bool:
    """Is there no room for so many more events?"""
    return run.size + room > run.capacity


@kernel
def next_time(run: Any) -> float:
    """When the next event happens; there is one."""
    return view(run.entries, run.capacity, ENTRY)[0].time


@kernel
def pop(run: Any) -> int:
    """Take out the next item, and set the clock to its time."""
    entries = view(run.entries, run.capacity, ENTRY)
    run.now = entries[0].time
    item = entries[0].item
    run.size -= 1
    size = run.size
    last = entries[size]
    time, order = last.time, last.order
    place = 0
    while True:
        child = 4 * place + 1
        if child >= size:
            break
        best, best_time = child, entries[child].time
        for other in range(child + 1, min(child + 4, size)):
            other_time = entries[other].time
            if other_time < best_time or (
                other_time == best_time and entries[other].order < entries[best].order
            ):
                best, best_time = other, other_time
        if time < best_time or (time == best_time and order < entries[best].order):
            break
        entries[place] = entries[best]
        place = best
    entries[place] = last
    return item
