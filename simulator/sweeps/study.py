"""Many runs: a sweep, a comparison or frontiers, from a request to tables and figures.

Each run is an ordinary result (``results/<name>-<hash8>/``), so that what was killed goes on where
it was, and what several ask for is computed once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import networkx as nx
import pandas as pd

from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import Given, Plugins
from simulator.runs.progress import Wanted, sweep_progress
from simulator.runs.scenarios import ScenarioLike, path_of, source_of, with_files
from simulator.runs.tasks import Run, require_travel, tied_here, unfinished
from simulator.scenario.files import scenario_values
from simulator.scenario.kinds import kind_of
from simulator.scenario.mistakes import shown
from simulator.scenario.schema import Scenario
from simulator.store.store import (
    RESULTS_VERSION,
    SCHEMA_VERSION,
    Store,
    place_in,
    software,
    write_manifest,
)
from simulator.store.whole_files import describe, hash_of, replacing
from simulator.sweeps.comparison import comparison_request, pairs_table, speedup_table
from simulator.sweeps.equal import equal_in_cell, equal_table
from simulator.sweeps.frontier import equal_messages_table, frontier_request, points_table
from simulator.sweeps.knobs import Tuning, plan_knobs, plan_tuning, tune
from simulator.sweeps.plan import Plan, common_metrics, make_plan
from simulator.sweeps.request import (
    MOST_RUNS,
    Budget,
    Request,
    from_one,
    knobs_of,
    label,
    sides_of,
)
from simulator.sweeps.sweep import KINDS, Comparison, Frontier, Sweep, files_of
from simulator.sweeps.sweep_file import as_file, read_request
from simulator.sweeps.tables import (
    Computed,
    curves,
    curves_table,
    limit_notes,
    metric_kinds,
    runs_table,
    summary_table,
)
from simulator.sweeps.workers import RESUMED, complete, crew_for, noting

What = Literal["sweep", "compare", "frontier"]
Grid = Mapping[str, Any]
#: A side's knob: ``{"sync": {"network.retransmit_after": ["100 ms", "1 s"]}}``.
GivenKnobs = Mapping[str, Mapping[str, Sequence[Any]]]
Kind = TypeVar("Kind", bound=Sweep)


# --- what is asked --------------------------------------------------------------------------------
def requested(
    file: Path | Mapping[str, Any],
    settings: Iterable[tuple[str, Sequence[Any]]] = (),
    what: What | None = "sweep",
    *,
    seeds: int | None = None,
    target: str | None = None,
    max_runs: int = MOST_RUNS,
    vary: tuple[str, Sequence[Any]] | None = None,
    sides: Mapping[str, Mapping[str, Any]] | None = None,
    tune: GivenKnobs | None = None,
    tune_budget: float | str | None = None,
    knobs: GivenKnobs | None = None,
    limit_time: float | str | None = None,
    limit_communications: int | None = None,
) -> tuple[What, Request]:
    """What a file, or a scenario as a dictionary, and the settings beside it ask for.

    A setting goes before the file's own.  ``what`` is None for a comparison, or for a frontier
    where the file has one.
    """
    request = replace(read_request(file).with_settings(settings), max_runs=max_runs)
    if seeds is not None:
        request = replace(request, seeds=from_one("seeds", seeds))
    if target is not None and not isinstance(target, str):
        raise SimulatorError(
            f"target: must be text like 'distance=1%', or 'none' (got {shown(target)})"
        )
    request = request if target is None else replace(request, target=target)
    what = what or ("compare" if request.frontier is None else "frontier")
    if what == "sweep":
        return what, replace(request, vary=None, sides={}).with_defaults()
    limits = {"stop.time": limit_time, "stop.communications": limit_communications}
    given = {name: [value] for name, value in limits.items() if value is not None}
    request = replace(request, grid={**request.grid, **given})
    if sides is not None:
        request = replace(request, sides=sides_of(sides), vary=None)
    request = request if tune is None else replace(request, tune=knobs_of(tune))
    if tune_budget is not None:
        try:
            request = replace(request, budget=Budget.read(tune_budget))
        except ValueError as error:
            raise ScenarioError(f"--tune-budget: {error} (got {shown(tune_budget)})") from None
    request = comparison_request(request.with_defaults(), vary, curves=what == "compare")
    if what == "frontier":
        request = frontier_request(request, None if knobs is None else knobs_of(knobs))
    return what, request


# --- what is computed -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Work:
    """Where results are kept, with which plugins, and who computes what is missing."""

    store: Store
    plugins: Plugins | None = None
    #: Processes on this machine, or the address of a Dask scheduler.
    jobs: int | None = None
    dask: str | None = None
    force: bool = False
    progress: Wanted = False

    def __call__(self, plan: Plan) -> Computed:
        """Compute the runs that the store does not have; this process alone writes to it.

        Combinations that differ only in keys without effect share a run (``plan.hashes``).
        """
        jobs = None if self.jobs is None else from_one("jobs", self.jobs)
        force = self.force
        if tied_here(
            plan.runs[0].scenario
        ):  # what the code of such a plugin refers to is in no hash: nothing is reused
            jobs, force = 1 if jobs is None else jobs, True
        if jobs != 1 or self.dask is not None:
            require_travel(plan.runs[0].scenario)
        planned = [
            Run(run.scenario, self.store, known=full_hash)
            for run, full_hash in zip(plan.runs, plan.hashes, strict=True)
        ]
        runs = {run.key: run for run in planned}
        tasks, failed = list(runs.values()), dict[int, str]()
        with sweep_progress(plan.name, len(tasks), self.progress) as progress:
            missing = list(range(len(tasks))) if force else unfinished(tasks)
            if missing:
                self.store.check_writable()
                with crew_for(min(jobs or os.cpu_count() or 1, len(missing)), self.dask) as crew:
                    failed = complete(tasks, missing, crew, force=force, progress=progress)
            else:
                progress(len(tasks), 0, 0)
        reasons = {tasks[number].key: why for number, why in failed.items()}
        places = {key: run.place for key, run in runs.items()}
        return Computed(
            plan,
            [places[run.key] for run in planned],
            {n: reasons[run.key] for n, run in enumerate(planned) if run.key in reasons},
            reused=len(tasks) - len(missing),
        )


def plans(what: What, request: Request, plugins: Plugins | None) -> list[Plan]:
    """The runs that there are to make: those by which sides are tuned, then the others."""
    if what == "frontier":
        assert request.frontier is not None
        return [plan_knobs(request, request.frontier, plugins, held_out=False).plan]
    tuning = [plan_tuning(request, plugins).plan] if what == "compare" and request.tune else []
    return [*tuning, make_plan(request, plugins)]


def study(
    what: What, request: Request, work: Work, draw: Callable[[Sweep, Path], None] | None
) -> tuple[Sweep, list[Computed]]:
    """Compute all that is asked for, write the tables, and the figures that ``draw`` makes."""
    *_, plan = plans(what, request, work.plugins)  # what is wrong is said before the first run
    tuning: Tuning | None = None
    if what == "compare" and request.tune:
        request, tuning = tune(request, work.plugins, work.store, work)
        plan = make_plan(request, work.plugins)
    computed = work(plan)
    with noting(RESUMED):
        result = tabulated(what, computed, work.store, tuning)
        with replacing(result.folder) as draft:
            _write(what, computed, result, draft)
            if draw is not None:
                draw(result, draft)
    return result, [computed, *([tuning.computed] if tuning is not None else [])]


# --- what comes out -------------------------------------------------------------------------------
def tabulated(what: What, computed: Computed, store: Store, tuning: Tuning | None = None) -> Sweep:
    """All tables, read from the store, each run once."""
    plan = computed.plan
    runs, kinds = runs_table(plan, store, computed), metric_kinds(plan)
    notes = () if tuning is None else tuning.notes
    blocks, equal, given = list[pd.DataFrame](), list[dict[str, Any]](), dict[str, Any]()
    for cell in plan.cells if what != "frontier" else ():
        traces = [
            [
                None if n in computed.failures else store.trace(computed.folders[n])
                for n in plan.numbers(combination)
            ]
            for combination in cell
        ]
        for combination, own in zip(cell, traces, strict=True):
            blocks.append(curves(plan.first(combination).values, own, metric_kinds(plan)))
        if what == "compare":
            equal += equal_in_cell(plan, cell, traces)
            common = common_metrics([plan.first(number).scenario for number in cell])
            kinds = [kind for kind in kinds if kind in common]
    if what == "compare":
        keys = [key for key in plan.axes if key != _compared(plan)[0]]
        pairs = pairs_table(plan, runs)
        speedup = speedup_table(pairs, keys)
        if plan.target is None:
            pairs, speedup = pairs.iloc[:0], speedup.iloc[:0]
        given = {"pairs": pairs, "speedup": speedup, "at_equal": equal_table(plan, equal)}
        given["tuning"] = None if tuning is None else tuning.table
        notes = (*notes, *_untuned_notes(plan))
    elif what == "frontier":
        points = points_table(plan, runs)
        given = {"points": points, "equal_messages": equal_messages_table(plan, runs, points)}
    if what != "sweep":
        given["vary"] = _compared(plan)
        notes = (*notes, *limit_notes(plan, runs))
    return KINDS[what](
        folder=place_in(store.root / "sweeps", plan.name, _digest(plan, what)),
        axes=dict(plan.axes),
        runs=runs,
        summary=summary_table(plan, runs),
        curves=pd.DataFrame() if what == "frontier" else curves_table(plan, blocks),
        metrics={
            kind_of(metric): (metric.label, metric.grows)
            for metric in plan.runs[0].scenario.kinds.metrics
            if kind_of(metric) in kinds
        },
        notes=notes,
        **given,
    )


def _compared(plan: Plan) -> tuple[str, list[Any]]:
    assert plan.request.compared is not None
    return plan.request.compared


def _untuned_notes(plan: Plan) -> tuple[str, ...]:
    """Where modes are compared: that the timer of rounds is as good as it happens to be."""
    key, values = _compared(plan)
    if key != "algorithm.mode" or "sync" not in values or "sync" in plan.request.tune:
        return ()
    if "network.retransmit_after" in plan.request.grid:
        return ()
    timers = {
        run.scenario.network.retransmit_after
        for run in plan.runs
        if run.scenario.algorithm.mode == "sync"
    }
    shown_timers = ", ".join(f"{t:g} s" if isinstance(t, float) else str(t) for t in timers)
    return (
        f"the timer of rounds is untuned (network.retransmit_after: {shown_timers}); "
        "--tune sync:network.retransmit_after=… lets them choose",
    )


def _write(what: What, computed: Computed, result: Sweep, folder: Path) -> None:
    """Every table as CSV, what made them, and ``request.yaml``, which asks for all of it again."""
    for name, frame in files_of(result).items():
        frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    plan = computed.plan
    plugins = plan.runs[0].scenario.plugins
    asked = as_file(plan.request, plan.name, result.folder)
    if asked is not None:
        (folder / "request.yaml").write_text(asked, encoding="utf-8")
    more = {}
    if what != "sweep":
        key, values = _compared(plan)
        more["vary"] = [key, [label(value) for value in values]]
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "results_version": RESULTS_VERSION,
        "hash": _digest(plan, what),
        "what": what,
        **more,
        "metrics": result.metrics,
        "notes": result.notes,
        "plugins": list(plugins.references) if plugins else [],
        "axes": {key: [label(value) for value in values] for key, values in plan.axes.items()},
        "runs": [place.name for place in computed.folders],
        "failed": {computed.folders[n].name: why for n, why in computed.failures.items()},
        "software": software(),
        "files": describe(folder),
    }
    write_manifest(folder, manifest)


def _digest(plan: Plan, what: What) -> str:
    """A sweep is its runs, the keys by which they are told apart, and what was asked of them."""
    values = [[label(value) for value in run.values.values()] for run in plan.runs]
    return hash_of([what, list(plan.axes), plan.hashes, values, plan.request.asked])


# --- from Python ----------------------------------------------------------------------------------
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
    asked = {"seeds": seeds, "target": target, "max_runs": max_runs}
    how = {"jobs": jobs, "dask": dask, "force": force, "progress": progress}
    return _studied(Sweep, "sweep", scenario, grid, plugins, out, figures, asked, how)


def compare(
    scenario: ScenarioLike,
    grid: Grid | None = None,
    *,
    vary: tuple[str, Sequence[Any]] | None = None,
    sides: Mapping[str, Mapping[str, Any]] | None = None,
    tune: GivenKnobs | None = None,
    tune_budget: float | str | None = None,
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

    ``sides`` gives names to sets of overrides that are compared instead.  ``tune`` gives sides a
    key whose value they choose on held-out seeds, the fastest of those that need at most
    ``tune_budget`` times as many communications as the most frugal (``"1.1 of async"``: as async).

    >>> from simulator import compare
    >>> timers = {"sync": {"network.retransmit_after": ["100 ms", "300 ms", "1 s"]}}
    >>> modes = compare("scenarios/moons.yaml", tune=timers, seeds=10)  # doctest: +SKIP
    >>> modes.speedup[["speedup", "low", "high", "bound"]]  # doctest: +SKIP
    """
    asked = {
        "vary": vary,
        "sides": sides,
        "tune": tune,
        "tune_budget": tune_budget,
        "seeds": seeds,
        "target": target,
        "limit_time": limit_time,
        "limit_communications": limit_communications,
    }
    how = {"jobs": jobs, "dask": dask, "force": force, "progress": progress}
    return _studied(Comparison, "compare", scenario, grid, plugins, out, figures, asked, how)


def frontier(
    scenario: ScenarioLike,
    grid: Grid | None = None,
    *,
    knobs: GivenKnobs | None = None,
    vary: tuple[str, Sequence[Any]] | None = None,
    sides: Mapping[str, Mapping[str, Any]] | None = None,
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
    """All sides' time to target against communications to target, over the values of a knob each.

    >>> from simulator import frontier
    >>> both = frontier("scenarios/frontier.yaml")  # doctest: +SKIP
    >>> both.points[["world", "algorithm.mode", "value", "time"]]  # doctest: +SKIP
    """
    asked = {
        "knobs": knobs,
        "vary": vary,
        "sides": sides,
        "seeds": seeds,
        "target": target,
        "limit_time": limit_time,
        "limit_communications": limit_communications,
    }
    how = {"jobs": jobs, "dask": dask, "force": force, "progress": progress}
    return _studied(Frontier, "frontier", scenario, grid, plugins, out, figures, asked, how)


def _studied(
    kind: type[Kind],
    what: What,
    scenario: ScenarioLike,
    grid: Grid | None,
    plugins: Given,
    out: Path | str,
    figures: bool,
    asked: dict[str, Any],
    how: dict[str, Any],
) -> Kind:
    source, loaded = source_of(scenario, plugins)
    if not isinstance(grid, Mapping | None):
        raise SimulatorError(f"grid: must be keys with their values (got {shown(grid)})")
    if isinstance(scenario, Scenario) and "engine" not in scenario.model_fields_set:
        source = {key: value for key, value in scenario_values(scenario).items() if key != "engine"}
    swept = {
        key: [with_files({key: value})[key] for value in _values(given)]  # names are one value
        for key, given in (grid or {}).items()
    }
    _, request = requested(source, swept.items(), what, **asked)
    work = Work(Store(path_of("out", out)), loaded, **how)
    found, _ = study(what, request, work, Sweep.draw if figures else None)
    assert isinstance(found, kind)
    return found


def _values(given: Any) -> list[Any]:
    """The values of a key; what is one value, and no series of them, is the only one."""
    alone = isinstance(given, str | Mapping | pd.DataFrame | nx.Graph)
    return [given] if alone or not isinstance(given, Iterable) else list(given)
