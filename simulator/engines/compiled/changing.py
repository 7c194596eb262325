"""Points that arrive, in compiled code (``simulator.engines.changes``).

Changes lie in an array, in their order, and come before all else at their instant but switches.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.machinery.compiling import FAILED, FINE, floats, inlined, kernel
from agents.machinery.intrinsics import array_at
from simulator.engines.changes import CHANGE
from simulator.engines.compiled.event_notes import note
from simulator.engines.compiled.queue import ENTRY, REPEATS
from simulator.engines.compiled.record import view
from simulator.engines.compiled.world import LAYOUT, agent_of, consider, refresh
from simulator.engines.event_rows import POINT as POINT_ARRIVES


@inlined
def change_is_next(run: Any, until: float) -> bool:
    """Does something change before the next event, and not after ``until``?"""
    time = run.next_change
    if time > until:
        return False
    if run.size == 0:
        return time < math.inf
    first = view(run.entries, run.capacity, ENTRY)[0]
    return time < first.time or (time == first.time and first.order >= REPEATS)


def changed(here: int, _i: int, _k: int, _a: int, _b: int) -> int:
    """The next change: behind a pointer, and compiled only where anything changes."""
    verdict = FINE
    try:
        _change(array_at(here, 1, LAYOUT)[0])
    except Exception:
        verdict = FAILED
    return verdict


@kernel
def _change(run: Any) -> None:
    changes = view(run.changes, run.change_count, CHANGE)
    change = changes[run.change_place]
    run.now = change.time
    _arrive(run, change.index)
    run.change_place += 1
    run.next_change = math.inf
    if run.change_place < run.change_count:
        run.next_change = changes[run.change_place].time


@kernel
def _arrive(run: Any, i: int) -> None:
    """A point arrives at agent i: fitted again at once, and what follows from it is derived."""
    counts, new = view(run.counts, run.n, np.int64), run.arrived
    run.arrived += 1
    counts[i] += 1
    floats(run.c, run.n)[i] = counts[i] / run.most_points if run.by_data else 1.0
    fits, solitary = floats(run.fits, (run.arrivals, run.p)), floats(run.solitary, (run.n, run.p))
    for x in range(run.p):
        solitary[i, x] = fits[new, x]
    if run.curvatures != 0:
        floats(run.curvature, run.n)[i] = floats(run.curvatures, run.arrivals)[new]
    note(run, POINT_ARRIVES, i)
    refresh(run, i)
    settle(run, i)


@kernel
def settle(run: Any, i: int) -> None:
    """An agent without neighbours takes its solitary model, which is an update."""
    if agent_of(run, i).degree == 0:
        models, solitary = floats(run.models, (run.n, run.p)), floats(run.solitary, (run.n, run.p))
        for x in range(run.p):
            models[i, x] = solitary[i, x]
        consider(run, i)
