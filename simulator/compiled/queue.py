"""The event queue: a heap of (time, order of scheduling, item) on one flat array.

Each node has four children, which lie side by side in memory: half as deep as a binary heap, and
faster where it no longer fits the processor's cache.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: An item is ``index * KINDS + kind``: an agent, a message or an edge, and what happens to it.
KINDS = 8
ENTRY = np.dtype([("time", np.float64), ("order", np.int64), ("item", np.int64)])
SIZE, SCHEDULED = range(2)


class Queue(NamedTuple):
    """Entries (capacity,), the first ``counts[SIZE]`` of them in use."""

    entries: NDArray[Any]
    counts: NDArray[np.int64]


def make_queue(capacity: int) -> Queue:
    """An empty queue; whoever makes it knows how many events there can be at a time."""
    return Queue(np.empty(capacity, ENTRY), np.zeros(2, np.int64))


@njit(cache=True)
def push(queue: Queue, time: float, kind: int, index: int) -> None:
    """Let something happen at a time, after all that is already to happen at that time."""
    entries, counts = queue.entries, queue.counts
    place = counts[SIZE]
    counts[SIZE] += 1
    order = counts[SCHEDULED]
    counts[SCHEDULED] += 1
    while place > 0:
        parent = (place - 1) >> 2
        # The new one is the last of its time, so it never passes an equal.
        if entries[parent].time <= time:
            break
        entries[place] = entries[parent]
        place = parent
    entry = entries[place]
    entry.time = time
    entry.order = order
    entry.item = index * KINDS + kind


@njit(cache=True)
def pop(queue: Queue) -> tuple[float, int]:
    """Take out the next (time, item)."""
    entries, counts = queue.entries, queue.counts
    time, item = entries[0].time, entries[0].item
    counts[SIZE] -= 1
    size = counts[SIZE]
    last_time, last_order, last_item = (
        entries[size].time,
        entries[size].order,
        entries[size].item,
    )
    place = 0
    while True:
        child = 4 * place + 1
        if child >= size:
            break
        best = child
        best_time = entries[child].time
        for other in range(child + 1, min(child + 4, size)):
            other_time = entries[other].time
            if other_time < best_time or (
                other_time == best_time and entries[other].order < entries[best].order
            ):
                best, best_time = other, other_time
        if last_time < best_time or (
            last_time == best_time and last_order < entries[best].order
        ):
            break
        entries[place] = entries[best]
        place = best
    entry = entries[place]
    entry.time = last_time
    entry.order = last_order
    entry.item = last_item
    return time, item
