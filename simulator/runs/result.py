"""What comes out of a run, and how it is summed up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.problem.problem import Floats, Problem
from simulator.scenario.schema import Scenario
from simulator.store.recording import EventsFile, History, Keeper
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


@dataclass(frozen=True)
class Result:
    """All that came out of a run."""

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


def finish(
    scenario: Scenario,
    problem: Problem,
    metrics: View,
    consensus: Floats,
    rows: list[Row],
    models: Floats,
    target: Target | None = None,
    reached: tuple[float, int] | None = None,
    exhausted: int = 0,
    columns: dict[str, Any] | None = None,
    events: EventsFile | None = None,
    keeper: Keeper | None = None,
) -> Result:
    """Sum up a run."""
    kept = None if keeper is None else keeper.history()
    last = rows[-1]
    measured = {"solitary": metrics.measure(problem.solitary), "start": rows[0], "final": last}
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
            "exact": isinstance(metrics.metric(target.metric), Followed),
        }
    return Result(
        scenario=scenario,
        problem=problem,
        trace=pd.DataFrame(rows),
        agents=_agents_table(problem, metrics, models).assign(**(columns or {})),
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
    """agents.csv: who had what, and how near each came."""
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
