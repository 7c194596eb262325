"""The event queue: what comes soon is a heap, what comes later lies in slices of time, unsorted.

An event is a (time, order of scheduling, item).  Time is cut into slices so short that each holds
some SLICE events.  Those of the present slice are a heap, so small that it stays close at hand;
each of the next slices is a chain of chunks, to which an event is added without a comparison; what
comes after the last slice waits unsorted.  A slice becomes the heap when the one before it is
empty.  The width of slices follows from how many events a second there have been, and is looked at
now and then.  Events leave in the order of (time, order), whatever the slices are: which one an
event belongs to only grows with its time.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import inlined, kernel
from simulator.engines.compiled.record import ADDRESS, Fields, attach, view

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
#: Events that a slice should hold, and a chunk can hold; the least number of slices.
SLICE, CHUNK, FEWEST = 24, 8, 256
CHAIN = np.dtype([("chunk", np.int32), ("used", np.int32)], align=True)
FIELDS: Fields = [
    #: The heap, and how much of it is in use; what comes after the last slice, likewise.
    ("entries", ADDRESS),
    ("soon_count", np.int64),
    ("later_entries", ADDRESS),
    ("later_count", np.int64),
    #: The slices: the first chunk of each chain, and how many events it holds; the chunks, and the
    #: one after each in its chain; the first free chunk, and the first that was never used.
    ("chains", ADDRESS),
    ("chunks", ADDRESS),
    ("chunk_after", ADDRESS),
    ("chunk_count", np.int64),
    ("free_chunk", np.int64),
    ("new_chunk", np.int64),
    #: Slices a second; when the first one began; the present one; how many there are at a time, a
    #: power of two.
    ("slices_a_second", np.float64),
    ("first_slice_at", np.float64),
    ("present_slice", np.int64),
    ("slices", np.int64),
    ("most_slices", np.int64),
    ("capacity", np.int64),
    #: How many events are in the queue; how many of them are messages; how many have ever been
    #: scheduled, and have left.
    ("size", np.int64),
    ("in_flight", np.int64),
    ("scheduled", np.int64),
    ("events_past", np.int64),
    #: After how many events the width is looked at again, and was the last time; when that was.
    ("next_review", np.int64),
    ("reviewed", np.int64),
    ("reviewed_at", np.float64),
    #: Does the run have more than the processor's cache holds?  Then, in gossip, the function of
    #: ``foresight``.
    ("large", np.bool_),
    ("foresee", ADDRESS),
]


def resize(
    run: NDArray[Any], capacity: int, old: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Room for so many events; those that are there stay where they are."""
    slices = max(FEWEST, 1 << (capacity // (SLICE // 4)).bit_length())
    chunks = capacity // CHUNK + slices + 1
    new = {
        "entries": np.empty(capacity, ENTRY),
        "later_entries": np.empty(capacity, ENTRY),
        "chunks": np.empty(chunks * CHUNK, ENTRY),
        "chunk_after": np.empty(chunks, np.int32),
        "chains": np.full(slices, -1, CHAIN),
    }
    used = {
        "entries": run["soon_count"][0],
        "later_entries": run["later_count"][0],
        "chains": run["slices"][0],
    }
    used |= {"chunks": run["new_chunk"][0] * CHUNK, "chunk_after": run["new_chunk"][0]}
    for name, array in new.items():
        if name in old:
            array[: used[name]] = old[name][: used[name]]
        attach(run, name, array, array.dtype, array.shape)
    if "entries" not in old:
        run["slices"], run["free_chunk"], run["next_review"] = FEWEST, -1, SLICE
    run["capacity"], run["chunk_count"], run["most_slices"] = capacity, chunks, slices
    return new


@inlined
def _put(entry: Any, time: float, order: int, item: int) -> None:
    """Field by field: the compiler copies whole entries byte by byte."""
    entry.time = time
    entry.order = order
    entry.item = item


@inlined
def _move(entries: Any, source: int, place: int) -> None:
    old = entries[source]
    _put(entries[place], old.time, old.order, old.item)


# --- the heap -------------------------------------------------------------------------------------
# Each node has four children, which lie side by side in memory.
@inlined
def _rise(run: Any, time: float, order: int, item: int) -> None:
    """One more entry in the heap."""
    entries = view(run.entries, run.capacity, ENTRY)
    place = run.soon_count
    run.soon_count += 1
    while place > 0:
        parent = (place - 1) >> 2
        above = entries[parent].time
        if above < time or (above == time and entries[parent].order < order):
            break
        _move(entries, parent, place)
        place = parent
    _put(entries[place], time, order, item)


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


# --- the slices -----------------------------------------------------------------------------------
@inlined
def _add(run: Any, time: float, order: int, item: int) -> None:
    """Put an entry where its time belongs."""
    ahead = (time - run.first_slice_at) * run.slices_a_second - run.present_slice
    if ahead >= run.slices:
        later = view(run.later_entries, run.capacity, ENTRY)
        _put(later[run.later_count], time, order, item)
        run.later_count += 1
    elif ahead >= 1.0:
        _chain(run, (run.present_slice + int(ahead)) & (run.slices - 1), time, order, item)
    else:
        _rise(run, time, order, item)


@inlined
def _chain(run: Any, place: int, time: float, order: int, item: int) -> None:
    """One more entry in a slice."""
    chain = view(run.chains, run.slices, CHAIN)[place]
    chunk, used = chain.chunk, chain.used
    if chunk < 0 or used == CHUNK:
        after = view(run.chunk_after, run.chunk_count, np.int32)
        fresh = run.free_chunk
        if fresh < 0:
            fresh = run.new_chunk
            run.new_chunk += 1
        else:
            run.free_chunk = after[fresh]
        after[fresh] = chunk
        chunk, used = fresh, 0
        chain.chunk = chunk
    chain.used = used + 1
    entry = view(run.chunks, run.chunk_count * CHUNK, ENTRY)[chunk * CHUNK + used]
    _put(entry, time, order, item)


@inlined
def _open(run: Any, place: int) -> None:
    """What lies in a slice goes into the heap."""
    chain = view(run.chains, run.slices, CHAIN)[place]
    after = view(run.chunk_after, run.chunk_count, np.int32)
    chunks = view(run.chunks, run.chunk_count * CHUNK, ENTRY)
    chunk, used = chain.chunk, chain.used
    chain.chunk = -1
    while chunk >= 0:
        for k in range(chunk * CHUNK, chunk * CHUNK + used):
            _rise(run, chunks[k].time, chunks[k].order, chunks[k].item)
        following = after[chunk]
        after[chunk] = run.free_chunk
        run.free_chunk = chunk
        chunk, used = following, CHUNK


@kernel
def _advance(run: Any) -> None:
    """The heap is empty: the next slice in which there is anything becomes it."""
    while run.soon_count == 0:
        if run.size == run.later_count:
            _begin_anew(run)
            continue
        run.present_slice += 1
        if run.present_slice & (run.slices - 1) == 0:
            _look_beyond(run)
        _open(run, run.present_slice & (run.slices - 1))


@kernel
def _begin_anew(run: Any) -> None:
    """All that there is came after the last slice: the first one begins with the first of it."""
    later = view(run.later_entries, run.capacity, ENTRY)
    run.first_slice_at = later[0].time
    for k in range(1, run.later_count):
        run.first_slice_at = min(run.first_slice_at, later[k].time)
    run.present_slice = 0
    _look_beyond(run)


@kernel
def _look_beyond(run: Any) -> None:
    """What came after the last slice may do so no longer."""
    later = view(run.later_entries, run.capacity, ENTRY)
    k = 0
    while k < run.later_count:
        time, order, item = later[k].time, later[k].order, later[k].item
        if (time - run.first_slice_at) * run.slices_a_second - run.present_slice >= run.slices:
            k += 1
            continue
        run.later_count -= 1
        _move(later, run.later_count, k)
        _add(run, time, order, item)


@kernel
def _review(run: Any) -> None:
    """Have slices the width that they should, and are there enough of them?"""
    span, slices = run.now - run.reviewed_at, run.slices
    while slices * SLICE < 4 * run.size and slices < run.most_slices:
        slices *= 2
    if span > 0.0:
        pace = (run.events_past - run.reviewed) / (SLICE * span)
        if slices > run.slices or not 0.5 * pace < run.slices_a_second < 2.0 * pace:
            for place in range(run.slices):
                _open(run, place)
            later = view(run.later_entries, run.capacity, ENTRY)
            entries = view(run.entries, run.capacity, ENTRY)
            for k in range(run.soon_count):
                old = entries[k]
                _put(later[run.later_count + k], old.time, old.order, old.item)
            run.later_count += run.soon_count
            run.soon_count = run.new_chunk = 0
            run.free_chunk = -1
            run.slices_a_second, run.slices = pace, slices
            chains = view(run.chains, slices, CHAIN)
            for place in range(slices):
                chains[place].chunk = -1
    run.reviewed, run.reviewed_at = run.events_past, run.now
    run.next_review = run.events_past + max(1024, 4 * run.size)


# --- what the loops call --------------------------------------------------------------------------
@kernel
def push(run: Any, time: float, kind: int, index: int) -> None:
    """Let something happen at a time, after what is already to happen then and is no deadline.

    There is room: the loops return to Python before an event that might need more, see ``full``.
    """
    push_ranked(run, time, run.scheduled, kind, index)


@inlined
def push_ranked(run: Any, time: float, order: int, kind: int, index: int) -> None:
    """Let something happen at a time, before all of that time that is of a later order."""
    run.scheduled += 1
    run.size += 1
    if kind == ARRIVAL:
        run.in_flight += 1
    if run.size == 1:  # the queue was empty: slices begin here
        run.first_slice_at, run.present_slice = time, 0
        _rise(run, time, order, index * KINDS + kind)
    else:
        _add(run, time, order, index * KINDS + kind)


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
    run.soon_count -= 1
    run.events_past += 1
    if item % KINDS == ARRIVAL:
        run.in_flight -= 1
    size = run.soon_count
    place = 0
    while 4 * place + 1 < size:
        best = _first_child(entries, 4 * place + 1, size)
        if _earlier(entries, size, best):
            break
        _move(entries, best, place)
        place = best
    _move(entries, size, place)
    if run.events_past >= run.next_review:
        _review(run)
    if run.soon_count == 0 and run.size > 0:
        _advance(run)
    return item
