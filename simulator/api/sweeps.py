"""Sweeps, comparisons and frontiers from Python, with their figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import networkx as nx
import pandas as pd

from simulator.api.progress import Wanted, sweep_progress
from simulator.api.showing import Shown, of
from simulator.errors import SimulatorError
from simulator.runs.plugins import Given, Plugins
from simulator.runs.scenarios import ScenarioLike, path_of, source_of, with_files
from simulator.scenario.files import scenario_values
from simulator.scenario.mistakes import shown
from simulator.scenario.schema import Scenario
from simulator.store.store import Store
from simulator.sweeps import comparison as comparisons
from simulator.sweeps import frontier as frontiers
from simulator.sweeps import sweep as sweeps
from simulator.sweeps.comparison import GivenKnobs, comparison_request, compute_comparison
from simulator.sweeps.frontier import frontier_request, plan_frontier
from simulator.sweeps.plan import Plan, make_plan
from simulator.sweeps.request import MOST_RUNS, Request
from simulator.sweeps.stored import load_sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.figures.style import Look

# Figures are imported where they are wanted: Matplotlib takes a while.
Grid = Mapping[str, Any]


class _Loaded(Shown):
    """What can be read from the folder in which it was left."""

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """One that is stored, as it was returned."""
        found = load_sweep(path_of("folder", folder))
        if not issubclass(cls, type(found)):
            raise SimulatorError(f"{folder}: holds a {type(found).__name__}, not a {cls.__name__}")
        loaded: Self = of(cls, found)
        return loaded


class Sweep(_Loaded, sweeps.Sweep):
    """The tables of a sweep: ``runs``, ``summary`` (means over seeds) and ``curves``."""

    def title(self) -> str:
        """What was swept."""
        swept = " × ".join(f"{key} ({len(values)})" for key, values in self.axes.items())
        failed = f", {self.failed} failed" if self.failed else ""
        return f"Sweep {self.name}: {swept or 'seeds'}, {len(self.runs)} runs{failed}"

    def table(self) -> pd.DataFrame:
        """The means."""
        return self.summary[_without_ends(self.summary)]

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """Curves, and a heat map over two keys."""
        from simulator.figures.sweep_figures import sweep_pictures

        return sweep_pictures(self, look)


class Comparison(_Loaded, comparisons.Comparison):
    """The tables of a sweep, and ``pairs`` and ``speedup`` of its sides."""

    def title(self) -> str:
        """What was compared, and what came of it."""
        first = comparisons.speedup_text(self.speedup.iloc[0]) if len(self.speedup) == 1 else ""
        what = first or f"{len(self.vary[1])} values of {self.vary[0]}"
        return f"Comparison {self.name}: {what}"

    def table(self) -> pd.DataFrame:
        """The speed-ups with their intervals."""
        return self.speedup

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """Curves, speed-ups or a phase diagram; and what was tried where a side was tuned."""
        from simulator.figures.comparison_figures import comparison_pictures

        return comparison_pictures(self, look)


class Frontier(_Loaded, frontiers.Frontier):
    """The tables of a sweep over knobs, and ``points``: what each of their values costs."""

    def title(self) -> str:
        """What was compared."""
        return f"Frontier {self.name}: {len(self.points)} points, {len(self.runs)} runs"

    def table(self) -> pd.DataFrame:
        """What every value costs."""
        return self.points[_without_ends(self.points)]

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """Time against communications."""
        from simulator.figures.frontier_figures import frontier_pictures

        return frontier_pictures(self, look)


def _without_ends(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table if not str(name).endswith(("_low", "_high"))]


def sweep(
    scenario: ScenarioLike,
    grid: Grid | None = None,
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
    progress: Wanted = True,
) -> Sweep:
    """Run every combination of a grid with several seeds; results in the store are reused.

    ``scenario`` is a scenario file, a sweep file, a dictionary or a loaded scenario; ``grid`` has
    keys with their values, or with one value that all runs share.  Runs go to
    ``jobs`` local processes (as many as there are cores by default; 1 is this very process) or to
    the Dask cluster at the address ``dask``.  More than ``max_runs`` are refused.

    >>> from simulator import sweep
    >>> drops = sweep("scenarios/moons.yaml", {"network.drop": [0, 0.5]}, seeds=5)  # doctest: +SKIP
    >>> drops.summary[["network.drop", "l2_error", "l2_error_low"]]  # doctest: +SKIP
    """
    request, loaded = _requested(scenario, grid, plugins, seeds=seeds, target=target)
    store, work = _workers(out, jobs=jobs, dask=dask, force=force, progress=progress)
    computed = work(make_plan(replace(request, max_runs=max_runs), loaded))
    draw: Any = None
    if figures:
        from simulator.figures.sweep_figures import draw_sweep as draw
    return _shown(Sweep, sweeps.write_sweep(computed, store, draw))


def compare(
    scenario: ScenarioLike,
    grid: Grid | None = None,
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
    progress: Wanted = True,
) -> Comparison:
    """Compare values of a key, ``algorithm.mode`` by default, by the time to a target.

    ``tune`` gives sides a key whose value they choose on held-out seeds, the fastest of those that
    need at most ``tune_budget`` times as many communications as the most frugal.

    >>> from simulator import compare
    >>> timers = {"sync": {"network.retransmit_after": ["100 ms", "300 ms", "1 s"]}}
    >>> modes = compare("scenarios/moons.yaml", tune=timers, seeds=10)  # doctest: +SKIP
    >>> modes.speedup[["speedup", "low", "high", "bound"]]  # doctest: +SKIP
    """
    asked, loaded = _requested(scenario, grid, plugins, seeds=seeds, target=target)
    request = comparison_request(
        asked,
        vary=vary,
        tune=tune,
        tune_budget=tune_budget,
        limit_time=limit_time,
        limit_communications=limit_communications,
    )
    store, work = _workers(out, jobs=jobs, dask=dask, force=force, progress=progress)
    computed, request, tuning = compute_comparison(request, loaded, store, work)
    draw: Any = None
    if figures:
        from simulator.figures.comparison_figures import draw_comparison as draw
    written = comparisons.write_comparison(computed, request, store, tuning, draw)
    return _shown(Comparison, written)


def frontier(
    scenario: ScenarioLike,
    grid: Grid | None = None,
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
    progress: Wanted = True,
) -> Frontier:
    """Both sides' time to target against communications to target, over the values of a knob each.

    >>> from simulator import frontier
    >>> both = frontier("scenarios/frontier.yaml")  # doctest: +SKIP
    >>> both.points[["world", "algorithm.mode", "value", "time"]]  # doctest: +SKIP
    """
    asked, loaded = _requested(scenario, grid, plugins, seeds=seeds, target=target)
    request = frontier_request(
        comparison_request(
            asked,
            vary=vary,
            limit_time=limit_time,
            limit_communications=limit_communications,
            curves=False,
        ),
        knobs,
    )
    store, work = _workers(out, jobs=jobs, dask=dask, force=force, progress=progress)
    planned = plan_frontier(request, loaded)
    computed = work(planned.plan)
    draw: Any = None
    if figures:
        from simulator.figures.frontier_figures import draw_frontier as draw
    return _shown(Frontier, frontiers.write_frontier(computed, planned, request, store, draw))


def _requested(
    scenario: ScenarioLike,
    grid: Grid | None,
    plugins: Given,
    *,
    seeds: int | None,
    target: str | None,
) -> tuple[Request, Plugins | None]:
    source, loaded = source_of(scenario, plugins)
    if not isinstance(grid, Mapping | None):
        raise SimulatorError(f"grid: must be keys with their values (got {shown(grid)})")
    if isinstance(scenario, Scenario) and "engine" not in scenario.model_fields_set:
        source = {key: value for key, value in scenario_values(scenario).items() if key != "engine"}
    swept = {
        key: [with_files({key: value})[key] for value in _values(given)]  # names are one value
        for key, given in (grid or {}).items()
    }
    return sweeps.requested(source, swept.items(), seeds=seeds, target=target), loaded


def _values(given: Any) -> list[Any]:
    """The values of a key; what is one value, and no series of them, is the only one."""
    alone = isinstance(given, str | Mapping | pd.DataFrame | nx.Graph)
    return [given] if alone or not isinstance(given, Iterable) else list(given)


def _workers(
    out: Path | str, *, progress: Wanted, **how: Any
) -> tuple[Store, Callable[[Plan], sweeps.Computed]]:
    """Where results are kept, and the function that computes a plan."""
    store = Store(path_of("out", out))

    def work(plan: Plan) -> sweeps.Computed:
        with sweep_progress(plan.name, plan.distinct, progress) as show:
            return sweeps.compute(plan, store, progress=show, **how)

    return store, work


def _shown(kind: type[Any], found: sweeps.Sweep) -> Any:
    return of(kind, found)
