"""Compare: the same problems on the same networks in two ways, in simulated time.

Both sides of a pair have the same seed, hence the same data, graph, clocks and partners, and stop
where they reach the same level of the same metric.  The speed-up of a pair is

    time of the second side / time of the first side,

above 1 where the first (by default the asynchronous) side is faster; over seeds it is summed up by
its geometric mean, with a Student t interval on its logarithm.

A run that does not reach the target within its limit is *censored*: its time is at least the time
at which it ended.  A pair with one such run enters at that time and makes the speed-up a bound; a
pair with two says nothing about it and is counted and left out, as is one with a failed run.
Where nobody sends (``solitary``, ``consensus``), the target is met at time 0 or never.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.errors import ScenarioError
from simulator.runs.plugins import Plugin
from simulator.store.drafts import replacing
from simulator.store.store import Store
from simulator.sweeps.plan import Plan, Request, TargetLevel, label, make_plan, plain_values
from simulator.sweeps.sweep import Computed, Sweep, compute, requested, tables, write_tables
from simulator.sweeps.tables import censored, mean_interval, never, times_or_limits
from simulator.sweeps.work import Progress

DEFAULT_VARY: tuple[str, list[Any]] = ("algorithm.mode", ["async", "sync"])
DEFAULT_TARGET = "distance=1%"
#: Keys, and blocks, that do not move the optimum, from which `distance` and `gap` measure.
_SAME_OPTIMUM = (
    "algorithm.mode",
    "algorithm.start",
    "algorithm.rho",
    "algorithm.primal",
    "clock",
    "network",
    "compute",
    "record",
    "engine",
)
_ABSOLUTE = ("l2_error", "accuracy")
#: What the speed-up of several pairs is, by the bounds that occur among them.
_BOUNDS = {
    frozenset[str](): "=",
    frozenset({"≥"}): "≥",
    frozenset({"≤"}): "≤",
    frozenset({"≥", "≤"}): "?",
}


@dataclass(frozen=True)
class Comparison(Sweep):
    """The tables of a sweep, and those of its pairs."""

    #: The key compared, and its two values: the speed-up is that of the first over the second.
    vary: tuple[str, list[Any]]
    #: One row a pair of runs, and one row a combination of the grid.
    pairs: pd.DataFrame
    speedup: pd.DataFrame


def compare(
    scenario: str | os.PathLike[str],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    vary: tuple[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    target: str | None = None,
    limit_time: float | str | None = None,
    limit_communications: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    out: Path | str = "results",
    plugin: Plugin | None = None,
    force: bool = False,
    figures: bool = True,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two values of a key, ``algorithm.mode`` by default, by the time to a target.

    >>> from simulator import compare
    >>> modes = compare("scenarios/moons.yaml", seeds=10)  # doctest: +SKIP
    >>> modes.speedup[["speedup", "low", "high", "bound"]]  # doctest: +SKIP
    """
    request = comparison_request(
        requested(Path(scenario), (grid or {}).items(), seeds=seeds, target=target),
        vary=vary,
        limit_time=limit_time,
        limit_communications=limit_communications,
    )
    plan, store = make_plan(request, plugin), Store(out)
    computed = compute(
        plan, store, plugin=plugin, jobs=jobs, dask=dask, force=force, progress=progress
    )
    return write_comparison(computed, request, store, figures=figures)


def comparison_request(
    request: Request,
    *,
    vary: tuple[str, Sequence[Any]] | None = None,
    limit_time: float | str | None = None,
    limit_communications: int | None = None,
) -> Request:
    """Fill in what a comparison needs, and refuse what would compare different things."""
    key, values = vary or request.vary or DEFAULT_VARY
    if len(values) != 2:
        raise ScenarioError(f"--vary {key}: two values are compared (got {len(values)})")
    if key == "seed":
        raise ScenarioError("--vary seed: both sides of a pair have the same seed; use --seeds")
    target = request.target or DEFAULT_TARGET
    metric = TargetLevel.parse(target).metric
    same = any(key == known or key.startswith(f"{known}.") for known in _SAME_OPTIMUM)
    if not same and metric not in _ABSOLUTE:
        raise ScenarioError(
            f"--target {target}: the two sides of --vary {key} have different optima, so that "
            f"{metric} measures different things; allowed: {', '.join(_ABSOLUTE)}, like "
            "--target l2_error=0.1"
        )
    limits = {"stop.time": limit_time, "stop.communications": limit_communications}
    given = {name: [value] for name, value in limits.items() if value is not None}
    grid = {**request.grid, **given}
    return replace(request, grid=grid, vary=(key, plain_values(key, values)), target=target)


# --- pairs --------------------------------------------------------------------------------------
def pairs_table(plan: Plan, runs: pd.DataFrame, vary: tuple[str, list[Any]]) -> pd.DataFrame:
    """One row a pair: both times, their quotient, and whether it is exact, a bound or nothing.

    ``bound``: ``=`` exact, ``≥`` the second side is censored, ``≤`` the first one is,
    ``censored`` both are, ``failed`` one of the runs failed; the last two have no speed-up.
    """
    key, _ = vary
    entering = times_or_limits(runs)["time_to_target"].to_numpy()
    late, done = censored(runs).to_numpy(), (runs["status"] == "done").to_numpy()
    hopeless = never(runs).to_numpy()
    rows = []
    for first, second in _pairs(plan):
        run = plan.runs[first]
        row: dict[str, Any] = {k: label(v) for k, v in run.values.items() if k != key}
        row |= {"seed": run.scenario.seed, "time_first": entering[first]}
        row |= {"time_second": entering[second]}
        bound = _bound(bool(late[first]), bool(late[second]))
        if bound != "censored" and (hopeless[first] or hopeless[second]):
            bound = "="
        row["bound"] = bound if done[first] and done[second] else "failed"
        rows.append(row)
    table = pd.DataFrame(rows)
    usable = table["bound"].isin(["=", "≥", "≤"])
    quotient = _quotient(table["time_second"].to_numpy(), table["time_first"].to_numpy())
    table.insert(len(table.columns) - 1, "speedup", np.where(usable, quotient, np.nan))
    return table


def _pairs(plan: Plan) -> list[tuple[int, int]]:
    """Positions of the two runs of each pair: combinations 2c and 2c + 1, the same seed."""
    per_combination = sum(run.combination == 0 for run in plan.runs)
    return [
        (position, position + per_combination)
        for position, run in enumerate(plan.runs)
        if run.combination % 2 == 0
    ]


def _bound(first_censored: bool, second_censored: bool) -> str:
    if first_censored and second_censored:
        return "censored"
    return "≤" if first_censored else "≥" if second_censored else "="


def _quotient(second: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Two times of zero are equal; one of zero is infinitely shorter."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: np.ndarray = np.where((first == 0) & (second == 0), 1.0, second / first)
    return quotient


def speedup_table(pairs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Geometric mean of the speed-up over seeds, and its 95 % interval, a row a combination.

    ``bound`` as for a pair; ``?`` where bounds in both directions were averaged, ``none`` where
    no pair has a speed-up.
    """
    rows = []
    seeds = len(pairs) if not keys else pairs["seed"].nunique()
    for start in range(0, len(pairs), seeds):
        here = pairs.iloc[start : start + seeds]
        usable = here[here["speedup"].notna()]
        row: dict[str, Any] = {key: here[key].iloc[0] for key in keys}
        row |= geometric_mean(usable["speedup"].to_numpy())
        bounds = frozenset(usable["bound"]) - {"="}
        row["bound"] = _BOUNDS[bounds] if len(usable) else "none"
        row |= {"pairs": len(here), "used": len(usable)}
        row["censored"] = int((here["bound"] == "censored").sum())
        row["failed"] = int((here["bound"] == "failed").sum())
        rows.append(row)
    return pd.DataFrame(rows)


def geometric_mean(ratios: np.ndarray) -> dict[str, float]:
    """exp of the mean logarithm, and of its Student t interval."""
    if not len(ratios):
        return {"speedup": np.nan, "low": np.nan, "high": np.nan}
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, low, high = (float(np.exp(part)) for part in mean_interval(np.log(ratios)))
    return {"speedup": mean, "low": low, "high": high}


# --- writing ------------------------------------------------------------------------------------
def write_comparison(
    computed: Computed, request: Request, store: Store, figures: bool = True
) -> Comparison:
    """The tables and figures of a comparison, in its own folder."""
    base = tables(computed, store, "compare")
    assert request.vary is not None
    pairs = pairs_table(computed.plan, base.runs, request.vary)
    keys = [key for key in base.axes if key != request.vary[0]]
    result = Comparison(
        **vars(base), vary=request.vary, pairs=pairs, speedup=speedup_table(pairs, keys)
    )
    with replacing(result.folder) as draft:
        frames = {"runs": result.runs, "summary": result.summary, "curves": result.curves}
        write_tables(computed, draft, "compare", **frames, pairs=pairs, speedup=result.speedup)
        if figures:
            from simulator.figures.sweep import draw_comparison

            draw_comparison(result, draft)
    return result
