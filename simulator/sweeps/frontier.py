"""Frontiers: what each side can buy, time to target against communications to target.

The timer of rounds and the clock's rate of gossip buy time with messages.  A comparison at one
setting of each says as much about the settings as about the sides; the two frontiers do not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import ScenarioError
from simulator.runs.plugins import Given
from simulator.store.drafts import replacing
from simulator.store.store import Store
from simulator.sweeps.comparison import GivenKnobs, comparison_request
from simulator.sweeps.knobs import KnobPlan, plan_knobs, points_table
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Knobs, Request, knobs_of, label
from simulator.sweeps.sweep import Computed, Sweep, compute, requested, tables, write_tables
from simulator.sweeps.work import Progress

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


def frontier(
    scenario: str | os.PathLike[str],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    knobs: GivenKnobs | None = None,
    vary: tuple[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    target: str | None = None,
    limit_time: float | str | None = None,
    limit_communications: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    out: Path | str = "results",
    plugins: Given = None,
    force: bool = False,
    figures: bool = True,
    progress: Progress | None = None,
) -> Frontier:
    """Both sides' time to target against communications to target, over the values of a knob each.

    >>> from simulator import frontier
    >>> both = frontier("scenarios/frontier.yaml")  # doctest: +SKIP
    >>> both.points[["world", "algorithm.mode", "value", "time"]]  # doctest: +SKIP
    """
    request = frontier_request(
        comparison_request(
            requested(Path(scenario), (grid or {}).items(), seeds=seeds, target=target),
            vary=vary,
            limit_time=limit_time,
            limit_communications=limit_communications,
            curves=False,
        ),
        knobs,
    )
    store = Store(out)
    planned = plan_frontier(request, plugins)
    computed = compute(planned.plan, store, jobs=jobs, dask=dask, force=force, progress=progress)
    return write_frontier(computed, planned, request, store, figures=figures)


def frontier_request(request: Request, knobs: GivenKnobs | None = None) -> Request:
    """The request with a knob for each side: those given, the file's, or the modes' own."""
    assert request.vary is not None
    found = dict(request.frontier or DEFAULT_KNOBS)
    if knobs is not None:
        found |= knobs_of(knobs)
    sides = [str(label(value)) for value in request.vary[1]]
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
    figures: bool = True,
) -> Frontier:
    """The tables and the figure, in a folder of their own."""
    base = tables(computed, store, "frontier")
    assert request.vary is not None
    points = points_table(planned, base.runs)
    result = Frontier(**vars(base), vary=request.vary, points=points)
    with replacing(result.folder) as draft:
        frames = {"runs": result.runs, "summary": result.summary}
        write_tables(computed, draft, "frontier", **frames, frontier=points)
        if figures:
            from simulator.figures.frontier import draw_frontier

            draw_frontier(result, draft)
    return result
