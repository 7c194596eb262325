"""The event queue: a heap of (time, order of scheduling, item) on one flat array.

Each node has four children, which lie side by side in memory: half as deep as a binary heap, and
faster where it no longer fits the processor's cache.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np

from agents.machinery.compiling import inlined, kernel
from simulator.engines.compiled.record import ADDRESS, Fields, ask, view

#: Kinds of events.  A message arrives; an agent has finished computing; it is switched on or off.
#: In gossip: a clock rings.  In rounds: an agent's alarm rings; a round begins for an agent; the
#: timer of a message is due; an agent need not wait any longer; what waited is sent again, after a
#: partition (index 0) or the return of agent index − 1.
ARRIVAL, COMPUTED, SWITCH, REPEAT, TICK, BEGIN, TIMER, COMPLETE = range(8)
ALARM = TICK
#: An item is ``index * KINDS + kind``: an agent, a message or an edge, and what happens to it.
KINDS = 8
#: Switches come before all else at their instant, and then what is sent again after them; where
#: rounds wait for neighbours only, deadlines come last, by agent, and then timers: the numbers of
#: their order begin here.
SWITCHES, REPEATS, DEADLINES, TIMERS = -(2**62), -(2**61), 2**61, 2**62
ENTRY = np.dtype([("time", np.float64), ("order", np.int64), ("item", np.int64)], align=True)
ENTRY_BYTES = ENTRY.itemsize
FIELDS: Fields = [
    ("entries", ADDRESS),
    ("capacity", np.int64),
    #: How many entries are in use, and how many events have ever been scheduled.
    ("size", np.int64),
    ("scheduled", np.int64),
    #: Does the run have more than the processor's cache holds?  Then, in gossip, the function of
    #: ``foresight``.
    ("large", np.bool_),
    ("foresee", ADDRESS),
]


@inlined
def _move(entries: Any, source: int, place: int) -> None:
    """Copy an entry, field by field: the compiler copies whole ones byte by byte."""
    old, new = entries[source], entries[place]
    new.time = old.time
    new.order = old.order
    new.item = old.item


@kernel
def push(run: Any, time: float, kind: int, index: int) -> None:
    """Let something happen at a time, after what is already to happen then and is no deadline.

    There is room: the loops return to Python before an event that might need more, see ``full``.
    """
    push_ranked(run, time, run.scheduled, kind, index)


@inlined
def push_ranked(run: Any, time: float, order: int, kind: int, index: int) -> None:
    """Let something happen at a time, before all of that time that is of a later order."""
    entries = view(run.entries, run.capacity, ENTRY)
    place = run.size
    run.size += 1
    while place > 0:
        parent = (place - 1) >> 2
        if entries[parent].time < time:
            break
        if entries[parent].time == time and entries[parent].order < order:
            break
        _move(entries, parent, place)
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


@inlined
def _earlier(entries: Any, one: int, other: int) -> bool:
    """Does the first of two entries come before the second?"""
    time, other_time = entries[one].time, entries[other].time
    return time < other_time or (time == other_time and entries[one].order < entries[other].order)


@inlined
def _first_child(entries: Any, child: int, size: int) -> int:
    """Which of the up to four entries from ``child`` on comes first?

    Four different times are compared without a branch, which nobody could predict.
    """
    if child + 3 < size:
        a, b = entries[child].time, entries[child + 1].time
        c, d = entries[child + 2].time, entries[child + 3].time
        one, first = (child + 1, b) if b < a else (child, a)
        other, second = (child + 3, d) if d < c else (child + 2, c)
        if not ((a == b) | (c == d) | (first == second)):
            return other if second < first else one
    return _first_of(entries, child, min(child + 4, size))


@kernel
def _first_of(entries: Any, begin: int, end: int) -> int:
    best = begin
    for other in range(begin + 1, end):
        if _earlier(entries, other, best):
            best = other
    return best


@kernel
def pop(run: Any) -> int:
    """Take out the next item, and set the clock to its time."""
    entries = view(run.entries, run.capacity, ENTRY)
    run.now = entries[0].time
    item = entries[0].item
    run.size -= 1
    size = run.size
    place = 0
    while 4 * place + 1 < size:
        if run.large:  # whichever child is best, its own will be needed next
            ask(run.entries + (16 * place + 5) * ENTRY_BYTES, 16 * ENTRY_BYTES)
        best = _first_child(entries, 4 * place + 1, size)
        if _earlier(entries, size, best):
            break
        _move(entries, best, place)
        place = best
    _move(entries, size, place)
    return item
