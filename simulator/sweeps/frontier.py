"""Frontiers: what each side can buy, time to target against communications to target.

The timer of rounds and the clock's rate of gossip buy time with messages.  A comparison at one
setting of each says as much about the settings as about the sides; frontiers do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from simulator.errors import ScenarioError
from simulator.problem.problem import Floats
from simulator.sweeps.plan import Plan
from simulator.sweeps.request import Knobs, Request, label, tabled
from simulator.sweeps.tables import FEWEST, censored, geometric_mean, mean_interval, to_target

#: What is measured of each value of a knob.
COSTS = ("time", "communications", "bytes")
#: The columns of a knob and its value.
KNOB = ("knob", "value")
#: The knobs of the two modes.
DEFAULT_KNOBS: Knobs = {
    "async": ("clock.rate", [1, 3, 10, 30, 100]),
    "sync": (
        "network.retransmit_after",
        ["10 ms", "30 ms", "100 ms", "300 ms", "1 s", "3 s", "never"],
    ),
}


def frontier_request(request: Request, knobs: Knobs | None = None) -> Request:
    """The request with a knob for each side: those given, the file's, or the modes' own."""
    own = request.frontier or ({} if request.sides else DEFAULT_KNOBS)
    sides = request.side_names
    for side in {**(request.frontier or {}), **(knobs or {})}:
        if side not in sides:
            raise ScenarioError(
                f"--knob {side}: no side is called {side}; sides: {', '.join(sides)}"
            )
    found = {**own, **(knobs or {})}
    for side in sides:
        if side not in found:
            raise ScenarioError(
                f"--frontier: what is {side} to vary? Give --knob {side}:KEY=VALUES"
            )
    return replace(request, frontier={side: found[side] for side in sides}, tune={})


def points_table(plan: Plan, runs: pd.DataFrame) -> pd.DataFrame:
    """One row a value and combination: what the target costs, over seeds.

    Geometric means with 95 % intervals (``_low``, ``_high``); a run that did not get there enters
    with its end, and is counted in ``censored``: the cost is then a lower bound.  Some instances
    are harder than others for all values alike: ``_paired_low`` and ``_paired_high`` are without
    that, for comparing the points of one network with one another.
    """
    entering, late = to_target(runs), censored(runs).to_numpy()
    done = (runs["status"] == "done").to_numpy()
    counts = (runs["status"] != "left out").to_numpy()
    numbers = np.array([run.combination for run in plan.runs])
    rows = []
    for number, values in enumerate(plan.combinations):
        here = (numbers == number) & done
        row: dict[str, Any] = {key: tabled(value) for key, value in values.items()}
        row["given"] = label(values["value"])
        total = int(((numbers == number) & counts).sum())
        row |= {"runs": total, "failed": total - int(here.sum()), "censored": int(late[here].sum())}
        for cost in COSTS:
            mean, low, high = geometric_mean(entering[f"{cost}_to_target"].to_numpy()[here])
            row |= {cost: mean, f"{cost}_low": low, f"{cost}_high": high}
        rows.append(row)
    table = pd.DataFrame(rows)
    groups = [places for _, places in by_world(plan, table)]
    for cost in COSTS:
        logs = np.log(entering[f"{cost}_to_target"].where(done).to_numpy())
        for group in groups:
            costs = np.stack([logs[numbers == number] for number in group])
            paired = np.exp(paired_interval(costs))
            table.loc[group, [f"{cost}_paired_low", f"{cost}_paired_high"]] = paired.T
    return table


def by_world(plan: Plan, table: pd.DataFrame) -> list[tuple[dict[str, Any], Any]]:
    """Where the rows of all sides and values lie, by what else is swept."""
    assert plan.request.compared is not None
    shared = [key for key in plan.axes if key not in (plan.request.compared[0], *KNOB)]
    if not shared:
        return [({}, np.arange(len(table)))]
    groups = table.groupby(shared, sort=False).indices
    return [
        (dict(zip(shared, name if isinstance(name, tuple) else (name,), strict=True)), places)
        for name, places in groups.items()
    ]


def paired_interval(values: Floats) -> tuple[Floats, Floats]:
    """95 % intervals of the means of values (points, seeds) without what seeds share.

    Each seed's mean over the points is taken away, which takes away one part in as many of the
    variance (Cousineau 2005, Morey 2008); seeds that some point lacks are left out.
    """
    whole = values[:, np.isfinite(values).all(axis=0)]
    if whole.shape[1] < FEWEST:
        unknown = np.full(len(values), np.nan)
        return unknown, unknown
    if len(whole) == 1:
        return mean_interval(whole.T)[1:]
    points, middle = len(whole), whole.mean(axis=1)
    spread = (whole - whole.mean(axis=0)) * np.sqrt(points / (points - 1))
    mean, low, high = mean_interval(spread.T)
    return middle + low - mean, middle + high - mean


# --- at equal messages ----------------------------------------------------------------------------
def equal_messages_table(plan: Plan, runs: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """What each side needs with as many messages: one row a world, budget and side.

    A budget is what the most frugal point of a side costs (column ``budget_of``), for each side in
    turn.  Between two points of its frontier, those that no other beats in both costs, a side
    needs what lies between them on logarithmic axes; with more than all of them, as much as the
    fastest; with less than any, it can't (empty).  Points that some seeds did not reach are left
    out.  The same weights are applied to each seed's logarithms, so that ``ratio``, the time over
    the first side's, has a Student t interval over pairs.
    """
    assert plan.request.compared is not None
    column, values = plan.request.compared
    entering, rows = to_target(runs), list[dict[str, Any]]()
    logs = np.log(entering["time_to_target"].where(runs["status"] == "done").to_numpy()).reshape(
        -1, plan.seeds
    )
    for where, places in by_world(plan, points):
        table = points.loc[places]
        fronts = {}
        for value, name in zip(values, plan.request.side_names, strict=True):
            own = table[(table[column] == tabled(value)) & (table["censored"] == 0)]
            fronts[name] = _frontier(own[own["time"].notna()])
        for budget_of, front in fronts.items():
            if front.empty:
                continue
            budget = float(front["communications"].iloc[0])
            first: Floats | None = None
            for number, (name, own) in enumerate(fronts.items()):
                times = _at(own, budget, logs)
                first = times if number == 0 else first
                row = {**where, "budget_of": budget_of, "budget": budget, "side": name}
                row |= dict(zip(("time", "low", "high"), _mean(times), strict=True))
                ratio = None if times is None or first is None else times - first
                names = ("ratio", "ratio_low", "ratio_high")
                rows.append(row | dict(zip(names, _mean(ratio), strict=True)))
    return pd.DataFrame(rows)


def _frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Those that no other beats in both costs, the most frugal first."""
    points = points.sort_values(["communications", "time"], kind="stable")
    before = points["time"].cummin().shift(fill_value=np.inf)
    return points[points["time"] < before]


def _at(front: pd.DataFrame, budget: float, logs: Floats) -> Floats | None:
    """Each seed's logarithm of the time along the frontier; None where it costs more."""
    spent = front["communications"].to_numpy()
    if not len(spent) or budget < spent[0]:
        return None
    place = np.interp(np.log(budget), np.log(spent), np.arange(len(spent)))
    low, weight = int(place), place % 1
    one, two = (logs[front.index[min(k, len(spent) - 1)]] for k in (low, low + 1))
    return (1 - weight) * one + weight * two if weight else one


def _mean(logs: Floats | None) -> tuple[float, float, float]:
    """The geometric mean with its interval, over the seeds that all points have."""
    if logs is None:
        return np.nan, np.nan, np.nan
    return geometric_mean(np.exp(logs[np.isfinite(logs)]))
