"""Frontiers: what each side can buy, time to target against communications to target.

The timer of rounds and the clock's rate of gossip buy time with messages.  A comparison at one
setting of each says as much about the settings as about the sides; the two frontiers do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import ScenarioError
from simulator.runs.plugins import Given
from simulator.store.store import Store
from simulator.store.whole_files import replacing
from simulator.sweeps.comparison import GivenKnobs
from simulator.sweeps.knobs import KnobPlan, plan_knobs, points_table
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Knobs, Request, knobs_of, label, side_names
from simulator.sweeps.sweep import Computed, Sweep, tables, write_tables
from simulator.sweeps.tables import limit_notes

#: The knobs of the two modes.
DEFAULT_KNOBS: Knobs = {
    "async": ("clock.rate", [1, 3, 10, 30, 100]),
    "sync": (
        "network.retransmit_after",
        ["10 ms", "30 ms", "100 ms", "300 ms", "1 s", "3 s", "never"],
    ),
}


@dataclass(frozen=True)
class Frontier(Sweep):
    """The tables of a sweep over knobs, and what each of their values costs."""

    vary: tuple[str, list[Any]]
    #: One row a world, combination, side and value: time, communications and bytes to target.
    points: pd.DataFrame


def frontier_request(request: Request, knobs: GivenKnobs | None = None) -> Request:
    """The request with a knob for each side: those given, the file's, or the modes' own."""
    assert request.vary is not None
    found = dict(request.frontier or DEFAULT_KNOBS)
    if knobs is not None:
        found |= knobs_of(knobs)
    sides = [str(name) for name in side_names(request.vary[1]).values()]
    for side in {**(request.frontier or {}), **(knobs or {})}:
        if side not in sides:
            raise ScenarioError(
                f"--knob {side}: no side is called {side}; sides: {', '.join(sides)}"
            )
    for side in sides:
        if side not in found:
            raise ScenarioError(
                f"--frontier: what is {side} to vary? Give --knob {side}:KEY=VALUES"
            )
    return replace(request, frontier={side: found[side] for side in sides}, tune={})


def plan_frontier(request: Request, plugins: Given = None) -> KnobPlan:
    """All runs of both frontiers."""
    assert request.frontier is not None
    make_plan(request, plugins)  # refuses sides that can't be compared
    return plan_knobs(request, request.frontier, plugins, held_out=False)


def write_frontier(
    computed: Computed,
    planned: KnobPlan,
    request: Request,
    store: Store,
    draw: Callable[[Frontier, Path], None] | None = None,
) -> Frontier:
    """The tables and the figure, in a folder of their own."""
    base = tables(computed, store, "frontier")
    assert request.vary is not None
    points = points_table(planned, base.runs)
    notes = limit_notes(computed.plan, base.runs)
    result = Frontier(**{**vars(base), "notes": notes}, vary=request.vary, points=points)
    with replacing(result.folder) as draft:
        key, values = result.vary
        more = {"vary": [key, [label(value) for value in values]]}
        write_tables(computed, result, draft, "frontier", more, frontier=points)
        if draw is not None:
            draw(result, draft)
    return result
