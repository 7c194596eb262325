"""What comes out of a run: how it is summed up, kept in the store, read again and listed."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.errors import DamagedError, LayoutError, MissingError, SimulatorError, StoreWarning
from simulator.problem.build import build_problem
from simulator.problem.problem import Floats, Problem
from simulator.runs.plugins import Given, load_plugins
from simulator.runs.scenarios import load_scenario, path_of
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.showing import Shown
from simulator.store.recording import EventsFile, History, Keeper
from simulator.store.store import MANIFEST, RESULTS_VERSION, Store, Stored, read_manifest
from simulator.theory.metrics import Followed, Target, View

Row = dict[str, float]
#: The counts of a sample, in their order.
COUNTS = (
    "communications",
    "delivered",
    "dropped",
    "missed",
    "in_flight",
    "stale",
    "skipped",
    "bytes",
)
#: What tasks are judged by: the first that is measured tells most.
TELLING = ("accuracy", "test_error", "l2_error", "distance")


def what_ran(summary: dict[str, Any]) -> str:
    """``mp, asynchronous``; the baselines send nothing, and have no mode."""
    if summary["algorithm"] in ("solitary", "consensus"):
        return str(summary["algorithm"])
    mode = "asynchronous" if summary["mode"] == "async" else "synchronous"
    return f"{summary['algorithm']}, {mode}"


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """All that came out of a run.

    ``trace`` has one row a sample, ``agents`` one an agent; ``summary`` has the final figures,
    ``models`` and ``optimum`` (n, p) the agents' models and the best ones, ``problem`` the data.
    """

    #: None only while it travels from a worker.
    scenario: Scenario
    problem: Problem
    #: One row a sample: time, counts and metrics.
    trace: pd.DataFrame
    #: One row an agent.
    agents: pd.DataFrame
    #: Final figures, comparable between runs of the same scenario: no wall-clock times.
    summary: dict[str, Any]
    #: Final models, and the minimiser of the rule's objective if it has one; (n, p).
    models: Floats
    optimum: Floats | None
    #: What was recorded besides (``record.events`` and ``record.models``).
    events_file: EventsFile | None = None
    kept: History | None = None

    @property
    def events(self) -> pd.DataFrame | None:
        """What happened, one row each (docs/results.md); None if it was not recorded."""
        return None if self.events_file is None else self.events_file.read()

    @property
    def history(self) -> Floats | None:
        """The models (k, agents, p) at ``history_samples``; None if they were not recorded."""
        return None if self.kept is None else self.kept.models

    @property
    def history_samples(self) -> NDArray[np.int64] | None:
        """The rows of ``trace`` at which ``history`` was recorded."""
        return None if self.kept is None else self.kept.samples

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, plugins: Given = None) -> Result:
        """A stored result; the problem is built again from its scenario."""
        place = path_of("folder", folder)
        store = Store(place.parent)
        file = store.scenario_file(place)
        made_with = store.manifest(place)["plugins"]
        loaded = load_plugins(plugins) if made_with else None
        if made_with and (loaded is None or loaded.sha256 != made_with["sha256"]):
            names = " ".join(f"--plugin {name}" for name in made_with["references"])
            what = "made with a plugin" if loaded is None else "made with another plugin, or before"
            raise SimulatorError(f"{place}: {what}: give {names}, as it was then")
        return load_result(store, load_scenario(file, plugins=loaded), place)

    def title(self) -> str:
        """What was run, and what came of it."""
        s = self.summary
        final = s["metrics"]["final"]
        names = [name for name in TELLING if name in final]
        errors = ", ".join(f"{name} {final[name]:.4g}" for name in names[:2])
        sent = f"{s['simulated_time']:.4g} s, {s['communications']:,} communications"
        return f"Result {s['name']}: {what_ran(s)}; {s['agents']:,} agents; {sent}; {errors}"

    def table(self) -> pd.DataFrame:
        """The metrics of solitary, first, final and best models."""
        rows = [{"models": stage, **row} for stage, row in self.summary["metrics"].items()]
        return pd.DataFrame(rows)


def finish(
    scenario: Scenario,
    problem: Problem,
    metrics: View,
    consensus: Floats,
    rows: list[Row],
    models: Floats,
    target: Target | None = None,
    reached: tuple[float, int] | None = None,
    exact: bool | None = None,
    exhausted: int = 0,
    columns: dict[str, Any] | None = None,
    events: EventsFile | None = None,
    keeper: Keeper | None = None,
) -> Result:
    """Sum up a run."""
    kept = None if keeper is None else keeper.history()
    last = rows[-1]
    measured = {
        "solitary": metrics.measure(metrics.problem.solitary),
        "start": rows[0],
        "final": last,
    }
    if metrics.optimum is not None:
        measured["optimum"] = metrics.measure(metrics.optimum)
    measured["consensus"] = metrics.measure(consensus)
    table = {stage: _metrics_of(metrics, row) for stage, row in measured.items()}
    left_out = {
        f"{name} ({stage})": row[name]
        for stage, row in measured.items()
        for name in row
        if name in metrics.available() and name not in table[stage]
    }
    for what, undefined in (("too large to be numbers", False), ("not a number", True)):
        names = [name for name, value in left_out.items() if math.isnan(value) == undefined]
        if names:
            metrics.notes += (f"{what}, and left out: {', '.join(names)}",)
    counts = [*COUNTS, *(["late"] if "late" in last else [])]
    summary: dict[str, Any] = {
        "name": scenario.name,
        "algorithm": scenario.algorithm.kind,
        "mode": scenario.algorithm.mode,
        "seed": scenario.seed,
        "agents": problem.n,
        "dimension": problem.p,
        "edges": problem.W.nnz // 2,
        "simulated_time": last["time"],
        **{name: int(last[name]) for name in counts},
        "unfinished_solves": exhausted,
        "metrics": table,
        "target": None,
        "notes": [*problem.notes, *metrics.notes, *([kept.note] if kept and kept.note else [])],
    }
    if target is not None:
        summary["target"] = {
            "metric": target.metric,
            "asked": target.asked,
            "level": target.level,
            "direction": "above" if target.above else "below",
            "time": None if reached is None else reached[0],
            "communications": None if reached is None else reached[1],
            "exact": isinstance(metrics.metric(target.metric), Followed)
            if exact is None
            else exact,
        }
    return Result(
        scenario=scenario,
        problem=problem,
        trace=pd.DataFrame(rows),
        agents=_agents_table(metrics.problem, metrics, models).assign(**(columns or {})),
        summary=summary,
        models=models,
        optimum=metrics.optimum,
        events_file=events,
        kept=kept,
    )


def _metrics_of(metrics: View, row: Row) -> Row:
    names = [name for name in metrics.available() if name in row]
    return {name: row[name] for name in names if math.isfinite(row[name])}


def _agents_table(problem: Problem, metrics: View, models: Floats) -> pd.DataFrame:
    """agents.csv: who had what at the end, and how near each came."""
    columns: dict[str, Any] = {
        "agent": problem.names,
        "points": problem.data.sizes,
        "confidence": problem.confidence,
        "neighbours": np.diff(problem.W.indptr),
        "degree": problem.D,
    }
    stages = {"solitary": problem.solitary, "final": models}
    if metrics.optimum is not None:
        stages["optimum"] = metrics.optimum
    by_agent = [metric for metric in metrics.metrics if metric.by_agent]
    for metric in by_agent:
        if not metric.of_baselines:  # solitary models are not meant to be near the optimum
            columns[metric.kind] = metrics.each(metric, models)
    for stage, theta in stages.items():
        for metric in by_agent:
            if metric.of_baselines:
                columns[f"{metric.kind}_{stage}"] = metrics.each(metric, theta)
    return pd.DataFrame(columns)


# --- in the store ---------------------------------------------------------------------------------
def save_result(
    store: Store,
    result: Result,
    *,
    full_hash: str,
    wall_time: float,
    draw: Callable[[Result, Path], None] | None = None,
    force: bool = False,
) -> Path:
    """Store a result, with the figures that ``draw`` makes of it; its folder."""
    arrays = {"models": result.models, "solitary": result.problem.solitary}
    if result.optimum is not None:
        arrays["optimum"] = result.optimum
    if result.problem.targets is not None:
        arrays["targets"] = result.problem.targets
    return store.save(
        result.scenario,
        Stored(
            result.trace, result.agents, result.summary, arrays, result.events_file, result.kept
        ),
        full_hash=full_hash,
        wall_time=wall_time,
        draw=None if draw is None else partial(draw, result),
        force=force,
    )


def load_result(store: Store, scenario: Scenario, folder: Path) -> Result:
    """A stored result; the problem is built again from the scenario."""
    stored = store.load(folder)
    problem = build_problem(scenario, Streams(scenario.seed, scenario.problem_seed))
    was = stored.arrays["solitary"]
    if was.shape != problem.solitary.shape or not np.allclose(was, problem.solitary):
        version = store.manifest(folder)["results_version"]
        warnings.warn(
            f"{folder}: data and graph are built again, and are not those of the run, whose "
            f"results are of version {version}: this program has version {RESULTS_VERSION}",
            StoreWarning,
            stacklevel=2,
        )
    return Result(
        scenario=scenario,
        problem=problem,
        trace=stored.trace,
        agents=stored.agents,
        summary=stored.summary,
        models=stored.arrays["models"],
        optimum=stored.arrays.get("optimum"),
        events_file=stored.events,
        kept=stored.history,
    )


def complete_figures(
    store: Store,
    scenario: Scenario,
    folder: Path,
    draw: Callable[[Result, Path], None],
    *,
    again: bool = False,
) -> None:
    """Draw the figures of a stored result, unless they are there; ``again`` even then."""
    if again or not store.has_figures(folder):
        store.add_figures(folder, partial(draw, load_result(store, scenario, folder)))


# --- all that is there ----------------------------------------------------------------------------
#: What every row has; the metrics that runs ended with come after these.
LISTED = (
    "folder", "what", "name", "algorithm", "mode", "seed", "agents", "runs", "simulated_time",
    "communications",
)  # fmt: skip


def results_table(root: Path) -> pd.DataFrame:
    """One row a run, a sweep, a comparison or a frontier; the newest first.

    What is not complete is left out; a warning tells of what is damaged, and of what only another
    version of the program reads.
    """
    places = [*root.glob(f"*/{MANIFEST}"), *root.glob(f"sweeps/*/{MANIFEST}")]
    rows, unread = [], list[str]()
    for path in sorted(places, key=lambda path: (-path.stat().st_mtime, str(path))):
        try:
            manifest = read_manifest(path.parent)
        except MissingError:
            continue
        except (DamagedError, LayoutError) as error:
            unread.append(str(error))
            continue
        rows.append({"folder": str(path.parent), **_row(manifest, path.parent.name)})
    if unread:
        more = f" (and {len(unread) - 1} more)" if len(unread) > 1 else ""
        warnings.warn(f"{unread[0]}{more}: not listed", StoreWarning, stacklevel=2)
    return pd.DataFrame(rows, columns=None if rows else list(LISTED))


def _row(manifest: dict[str, Any], folder: str) -> dict[str, Any]:
    summary = manifest.get("summary")
    row: dict[str, Any] = dict.fromkeys(LISTED[1:])
    if summary is None:
        what = manifest.get("what", "sweep")
        runs = len(set(manifest.get("runs", [])))
        return {**row, "what": what, "name": folder.rsplit("-", 1)[0], "runs": runs}
    known = {name: summary[name] for name in LISTED[2:] if name in summary}
    return {**row, "what": "run", **known, "runs": 1, **summary["metrics"]["final"]}
