"""Sweeps, comparisons and frontiers from Python, with their figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from simulator.runs.plugins import Given
from simulator.store.store import Store
from simulator.sweeps.comparison import (
    Comparison,
    GivenKnobs,
    comparison_request,
    compute_comparison,
    write_comparison,
)
from simulator.sweeps.frontier import Frontier, frontier_request, plan_frontier, write_frontier
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import MOST_RUNS
from simulator.sweeps.sweep import Sweep, compute, requested, write_sweep
from simulator.sweeps.work import Progress

# Figures are imported where they are wanted: Matplotlib takes a while.


def sweep(
    scenario: str | os.PathLike[str],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    seeds: int | None = None,
    target: str | None = None,
    max_runs: int = MOST_RUNS,
    plugins: Given = None,
    jobs: int | None = None,
    dask: str | None = None,
    out: Path | str = "results",
    force: bool = False,
    figures: bool = True,
    progress: Progress | None = None,
) -> Sweep:
    """Run every combination of a grid with several seeds; results in the store are reused.

    ``scenario`` is a scenario file or a sweep file.  Runs go to ``jobs`` local processes (as many
    as there are cores by default) or to the Dask cluster at the address ``dask``.  More than
    ``max_runs`` are refused.

    >>> from simulator import sweep
    >>> drops = sweep("scenarios/moons.yaml", {"network.drop": [0, 0.5]}, seeds=5)  # doctest: +SKIP
    >>> drops.summary[["network.drop", "l2_error", "l2_error_low"]]  # doctest: +SKIP
    """
    request = requested(Path(scenario), (grid or {}).items(), seeds=seeds, target=target)
    request = replace(request, max_runs=max_runs)
    plan = make_plan(request, plugins)
    computed = compute(plan, Store(out), jobs=jobs, dask=dask, force=force, progress=progress)
    if not figures:
        return write_sweep(computed, Store(out))
    from simulator.figures.sweep import draw_sweep

    return write_sweep(computed, Store(out), draw_sweep)


def compare(
    scenario: str | os.PathLike[str],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    vary: tuple[str, Sequence[Any]] | None = None,
    tune: GivenKnobs | None = None,
    tune_budget: float | None = None,
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
) -> Comparison:
    """Compare values of a key, ``algorithm.mode`` by default, by the time to a target.

    ``tune`` gives sides a key whose value they choose on held-out seeds, the fastest of those that
    need at most ``tune_budget`` times as many communications as the most frugal.

    >>> from simulator import compare
    >>> timers = {"sync": {"network.retransmit_after": ["100 ms", "300 ms", "1 s"]}}
    >>> modes = compare("scenarios/moons.yaml", tune=timers, seeds=10)  # doctest: +SKIP
    >>> modes.speedup[["speedup", "low", "high", "bound"]]  # doctest: +SKIP
    """
    request = comparison_request(
        requested(Path(scenario), (grid or {}).items(), seeds=seeds, target=target),
        vary=vary,
        tune=tune,
        tune_budget=tune_budget,
        limit_time=limit_time,
        limit_communications=limit_communications,
    )
    store = Store(out)
    work = partial(compute, store=store, jobs=jobs, dask=dask, force=force, progress=progress)
    computed, request, tuning = compute_comparison(request, plugins, store, work)
    if not figures:
        return write_comparison(computed, request, store, tuning)
    from simulator.figures.comparison import draw_comparison

    return write_comparison(computed, request, store, tuning, draw_comparison)


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
    if not figures:
        return write_frontier(computed, planned, request, store)
    from simulator.figures.frontier import draw_frontier

    return write_frontier(computed, planned, request, store, draw_frontier)
