"""The tables of a sweep: one tidy row a run, curves and means with 95 % intervals over seeds.

They are read from the store and sorted as the plan is, so that they are the same bytes whatever
the number of workers and the order in which runs ended.  No wall-clock time is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from simulator.problem.problem import Floats
from simulator.scenario.kinds import kind_of
from simulator.store.store import Store
from simulator.sweeps.plan import Plan
from simulator.sweeps.request import BUDGET_AN_AGENT, label, tabled

#: A run's samples; None: it failed.
Trace = pd.DataFrame | None
_COUNTS = ("communications", "delivered", "dropped", "missed", "stale", "skipped", "bytes")
#: What metrics are drawn against.
CURVE_AXES = ("time", "communications", "bytes")
#: Points of a curve between its start and its end.
_POINTS = 200

#: Models to which a run's own are compared, beside their errors.
STAGES = ("solitary", "optimum")


@dataclass(frozen=True)
class Computed:
    """The runs of a plan: where each one is, its hash, and the reasons of those that failed."""

    plan: Plan
    folders: list[Path]
    failures: dict[int, str] = field(default_factory=dict)
    #: How many of the different runs were there.
    reused: int = 0

    @property
    def lost(self) -> int:
        """How many different runs failed."""
        return len({self.folders[number] for number in self.failures})


def metric_kinds(plan: Plan) -> list[str]:
    """All metrics that there are, in order; a run has some of them."""
    return [kind_of(metric) for metric in plan.runs[0].scenario.kinds.metrics]


def mean_interval(values: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Mean and Student t interval along the first axis; the interval of one value is NaN."""
    samples = np.asarray(values, dtype=float)
    n = len(samples)
    mean = samples.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    with np.errstate(invalid="ignore"):  # what never happens has an infinite mean, no interval
        half = stdtrit(n - 1, (1 + level) / 2) * samples.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


#: An interval of fewer runs says nothing: that of two is 18 times as wide as their distance.
FEWEST = 3
#: What is never negative: squares, shares, counts and times.
_FROM_ZERO = (
    *("l2_error", "distance", "gap", "test_error", "accuracy", "staleness"),
    *("communications", "bytes", "simulated_time"),
)


def interval(values: ArrayLike, names: Sequence[str]) -> tuple[Floats, Floats, Floats]:
    """``mean_interval`` of what these columns hold; NaN for fewer than three values.

    It does not go below 0 where values can't.
    """
    mean, low, high = mean_interval(values)
    if len(np.asarray(values)) < FEWEST:
        low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    least = np.array([0.0 if name in _FROM_ZERO else -np.inf for name in names])
    return mean, np.maximum(low, least if mean.ndim else least[0]), high


def geometric_mean(values: ArrayLike) -> tuple[float, float, float]:
    """exp of the mean logarithm and of its interval, for three values at least; else NaN."""
    samples = np.asarray(values, dtype=float)
    if not len(samples):
        return np.nan, np.nan, np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, low, high = (float(np.exp(part)) for part in mean_interval(np.log(samples)))
    return (mean, low, high) if len(samples) >= FEWEST else (mean, np.nan, np.nan)


# --- runs.csv -----------------------------------------------------------------------------------
def runs_table(plan: Plan, store: Store, computed: Computed) -> pd.DataFrame:
    """One row a run.

    A run with a target that it did not reach has empty times to target: it is censored at its
    ``simulated_time``.
    """
    rows, failures = [], computed.failures
    for number, (run, folder) in enumerate(zip(plan.runs, computed.folders, strict=True)):
        row: dict[str, Any] = {key: tabled(value) for key, value in run.values.items()}
        row |= {"tuned": tuned_text(run.tuned), "seed": run.scenario.seed}
        row |= {"status": "done", "reason": None}
        if number in failures:
            row |= {"status": "failed", "reason": failures[number]}
        else:
            row |= _figures_of(store.manifest(folder)["summary"])
            row["folder"] = folder.name
        rows.append(row)
    given = {name for row in rows for name in row}
    kinds = metric_kinds(plan)
    every = kinds + [f"{kind}_{stage}" for stage in STAGES for kind in kinds]
    metrics = [name for name in every if name in given]
    names = [*tuned_column(plan), "seed", "status", "reason", *_COUNTS, "simulated_time", *metrics]
    names += ["target", "level", "target_checked", "time_to_target", "communications_to_target"]
    table = pd.DataFrame(rows).reindex(columns=[*plan.axes, *names, "folder"])
    integers = ["seed", *_COUNTS, "communications_to_target"]
    floats = ["simulated_time", "level", "time_to_target", *metrics]
    return table.astype(dict.fromkeys(integers, "Int64") | dict.fromkeys(floats, "float64"))


def _figures_of(summary: dict[str, Any]) -> dict[str, Any]:
    row = {name: summary[name] for name in (*_COUNTS, "simulated_time")}
    final = summary["metrics"]["final"]
    row |= final
    for stage in STAGES:
        row |= {f"{name}_{stage}": v for name, v in summary["metrics"].get(stage, {}).items()}
    target = summary["target"]
    if target is not None:
        row |= {
            "target": target["metric"],
            "level": target["level"],
            # Other metrics than distance and l2_error are only looked at when a sample is taken.
            "target_checked": "at updates" if target["exact"] else "at samples",
            "time_to_target": target["time"],
            "communications_to_target": target["communications"],
        }
    return row


def tuned_text(tuned: Mapping[str, Any]) -> str | None:
    """What a side has chosen: ``network.retransmit_after=300 ms``."""
    return ", ".join(f"{key}={label(value)}" for key, value in tuned.items()) or None


def tuned_column(plan: Plan) -> list[str]:
    """The column of what sides have chosen, where one has."""
    return ["tuned"] if any(run.tuned for run in plan.runs) else []


#: What a target costs, and what a run that did not get there has spent of it.
_ENDS = {
    "time_to_target": "simulated_time",
    "communications_to_target": "communications",
    "bytes_to_target": "bytes",
}


def censored(runs: pd.DataFrame) -> pd.Series[bool]:
    """Which finished runs had a target and did not reach it."""
    return (runs["status"] == "done") & runs["target"].notna() & runs["time_to_target"].isna()


def never(runs: pd.DataFrame) -> pd.Series[bool]:
    """Which of them never would: nobody sends, as in a baseline, and nothing changes."""
    return censored(runs) & (runs["simulated_time"] == 0) & (runs["communications"] == 0)


def to_target(runs: pd.DataFrame) -> pd.DataFrame:
    """Time, communications and bytes to target, where a censored run enters with its end.

    One that would never reach it has infinity.  A run ends where it reaches its target, so its
    bytes are those to the target.
    """
    has_target, hopeless = runs["target"].notna(), never(runs)
    return pd.DataFrame(
        {
            name: runs.get(name, runs[end])
            .astype("float64")
            .fillna(runs[end].astype("float64"))
            .mask(hopeless, np.inf)
            .where(has_target)
            for name, end in _ENDS.items()
        }
    ).astype("float64")


def limit_notes(plan: Plan, runs: pd.DataFrame) -> tuple[str, ...]:
    """Where runs gave up if nobody said where, how many did, and what to raise."""
    request, notes = plan.request, []
    if request.to_target:
        budgets = {run.scenario.stop.communications or 0 for run in plan.runs}
        shown = " to ".join(f"{budget:,}" for budget in sorted({min(budgets), max(budgets)}))
        notes.append(
            f"runs go on until {request.target} or {BUDGET_AN_AGENT:,} messages an agent "
            f"({shown}); the scenario's own stop is for single runs"
        )
    late = int((censored(runs) & ~never(runs)).sum())
    if late:
        runs_met = f"{late} of {len(runs)} runs" if late > 1 else f"one of {len(runs)} runs"
        notes.append(
            f"{runs_met} met a limit before the target, so that what they enter is a bound (≥, ≤): "
            "raise the limit (--limit-communications, --limit-time), or take an easier --target"
        )
    return tuple(notes)


# --- summary.csv --------------------------------------------------------------------------------
def summary_table(plan: Plan, runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and 95 % interval over seeds of each combination.

    Failed runs are counted and left out.  A run that did not reach its target counts as censored
    and enters the costs to target with its end: the mean is then a lower bound.  Of times,
    communications and bytes to target the means are geometric, of what runs ended with arithmetic.
    """
    late, entering = censored(runs), to_target(runs)
    metrics = [name for name in metric_kinds(plan) if name in runs]
    measures = ["communications", "bytes", "simulated_time", *metrics, *entering]
    rows = []
    for number, values in enumerate(plan.combinations):
        here = plan.numbers(number)
        own = runs.iloc[here.start : here.stop]
        done = np.flatnonzero(own["status"] == "done") + here.start
        row: dict[str, Any] = {key: tabled(value) for key, value in values.items()}
        row["tuned"] = tuned_text(plan.first(number).tuned)
        row |= {"runs": len(here), "failed": len(here) - len(done)}
        row |= {"censored": int(late.iloc[done].sum())}
        for name in measures:
            column = entering[name] if name in entering else runs[name].astype("float64")
            sample = column.iloc[done].to_numpy()
            if not len(sample) or np.isnan(sample).any():
                continue
            mean, low, high = (
                geometric_mean(sample) if name in entering else interval(sample, [name])
            )
            row |= {name: float(mean), f"{name}_low": float(low), f"{name}_high": float(high)}
        rows.append(row)
    columns = [f"{name}{end}" for name in measures for end in ("", "_low", "_high")]
    names = [*plan.axes, *tuned_column(plan), "runs", "failed", "censored", *columns]
    return pd.DataFrame(rows).reindex(columns=names)


# --- curves.csv ---------------------------------------------------------------------------------
def curves(values: Mapping[str, Any], traces: Sequence[Trace], kinds: list[str]) -> pd.DataFrame:
    """A combination's metrics against time, communications and bytes, over its seeds.

    Means and 95 % intervals.  Metrics are step functions: at each x a run has the value of its last
    sample, also after its end, and nothing is interpolated.
    """
    done = [trace for trace in traces if trace is not None]
    blocks = []
    for axis in CURVE_AXES if done else ():
        block = _curve(done, axis, kinds)
        keys = {key: tabled(value) for key, value in values.items()}
        for number, (key, value) in enumerate({**keys, "axis": axis, "runs": len(done)}.items()):
            block.insert(number, key, [value] * len(block))
        blocks.append(block)
    return pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame()


def curves_table(plan: Plan, blocks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The curves of all combinations."""
    first = [*plan.axes, "axis", "runs", "x"]
    blocks = [block for block in blocks if len(block)]
    if not blocks:
        return pd.DataFrame(columns=first)
    table = pd.concat(blocks, ignore_index=True)
    kinds = metric_kinds(plan)
    return table[
        [*first, *(f"{m}{end}" for m in kinds if m in table for end in ("", "_low", "_high"))]
    ]


def last_values(trace: pd.DataFrame, axis: str, x: Floats, metrics: list[str]) -> Floats:
    """Metrics (points, metrics) of the last sample at or before each x."""
    rows = np.searchsorted(trace[axis].to_numpy(), x, side="right") - 1
    return trace[metrics].to_numpy()[rows]


def _curve(traces: Sequence[pd.DataFrame], axis: str, kinds: list[str]) -> pd.DataFrame:
    end = max(float(trace[axis].iloc[-1]) for trace in traces)
    x = np.linspace(0.0, end, _POINTS + 1) if end > 0 else np.zeros(1)
    metrics = [name for name in kinds if all(name in trace for trace in traces)]
    values = [last_values(trace, axis, x, metrics) for trace in traces]
    mean, low, high = interval(np.stack(values), metrics)
    columns: dict[str, Floats] = {"x": x}
    for number, name in enumerate(metrics):
        columns |= {
            name: mean[:, number],
            f"{name}_low": low[:, number],
            f"{name}_high": high[:, number],
        }
    return pd.DataFrame(columns)
