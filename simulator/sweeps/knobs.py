"""Knobs: a key of a side that buys time with messages, and the values to try for it.

The timer is such a key for rounds, the clock's rate for gossip.  All values of a knob give a side's
*frontier*: time to target against communications to target.  *Tuning* takes one of them for each
combination, on held-out seeds, so that the runs that are compared had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from simulator.errors import ScenarioError, SimulatorError
from simulator.problem.problem import Floats
from simulator.runs.plugins import Given, load_plugins, schema_for
from simulator.store.store import Store
from simulator.sweeps.plan import (
    Plan,
    PlannedRun,
    combinations,
    load_cell,
    refuse_duplicates,
    refuse_unlike,
    with_seeds,
)
from simulator.sweeps.request import (
    Grid,
    Knobs,
    Request,
    TargetLevel,
    label,
    side_names,
    tabled,
    wrong_values,
)
from simulator.sweeps.sweep import Computed
from simulator.sweeps.tables import (
    FEWEST,
    censored,
    geometric_mean,
    mean_interval,
    runs_table,
    to_target,
)

#: Tuning takes so many seeds, the first of them so far from the scenario's own.
HELD_OUT_SEEDS, HELD_OUT_FROM = 10, 10**6
#: Fewer of them than this are not enough to choose by.
FEWEST_HELD_OUT = 5
#: What is measured of each value of a knob.
COSTS = ("time", "communications", "bytes")


@dataclass(frozen=True)
class KnobPlan:
    """A run for every value of every side's knob, and every seed."""

    plan: Plan
    #: The key whose values are the sides.
    side: str
    #: The combination of the comparison that each combination of this plan belongs to.
    cells: list[int]
    #: The values that are errors in a combination: its number, the value, and why.
    left_out: list[tuple[int, Any, str]]


def plan_knobs(request: Request, knobs: Knobs, plugins: Given, held_out: bool) -> KnobPlan:
    """All values of all knobs in every combination; those that are errors in it are left out."""
    schema = schema_for(load_plugins(plugins))
    assert request.vary is not None
    target = TargetLevel.asked(request.target, schema)
    if target is None:
        raise ScenarioError("--target none: without a target no value is better than another")
    _check(request, knobs)
    called = side_names(request.vary[1])
    cells, axes, listed = combinations(request, schema)
    runs, of_cell, left_out = list[PlannedRun](), list[int](), list[tuple[int, Any, str]]()
    for number, cell in enumerate(cells):
        side = str(called[label(cell.values[request.vary[0]])])
        if side not in knobs:
            continue
        key, values = knobs[side]
        errors = []
        for value in values:
            try:
                scenario = load_cell(request, cell, target, schema, {key: value})
            except ScenarioError as error:
                errors.append(error)
                left_out.append((number, value, str(error).splitlines()[0]))
                continue
            swept = {axis: cell.values[axis] for axis in axes}
            swept |= {request.vary[0]: cell.values[request.vary[0]], "knob": key, "value": value}
            runs.append(PlannedRun(len(of_cell), swept, scenario))
            of_cell.append(number)
        if len(errors) == len(values):
            raise errors[0]
    refuse_duplicates(runs)
    sides = len(request.vary[1])
    refuse_unlike(request, target, ((of_cell[r.combination] // sides, r.scenario) for r in runs))
    if held_out:
        listed = [scenario_seed(runs) + HELD_OUT_FROM + extra for extra in range(HELD_OUT_SEEDS)]
    every = [seeded for run in runs for seeded in with_seeds(run, request.seeds, listed)]
    if len(every) > request.max_runs:
        raise ScenarioError(
            f"{request.where}: {len(every):,} runs are needed to try all values; at most "
            f"{request.max_runs:,} are made, unless --max-runs says more"
        )
    names: Grid = {name: [] for name in (*axes, request.vary[0], "knob", "value")}
    plan = Plan(request.name or runs[0].scenario.name, names, every, target, request)
    return KnobPlan(plan, request.vary[0], of_cell, left_out)


def scenario_seed(runs: list[PlannedRun]) -> int:
    """The seed that the scenario has."""
    return runs[0].scenario.seed


def _check(request: Request, knobs: Knobs) -> None:
    """Knobs belong to sides, and to nothing else that is swept."""
    assert request.vary is not None
    sides = [str(name) for name in side_names(request.vary[1]).values()]
    for side, (key, values) in knobs.items():
        place = f"--tune {side}:{key}"
        if side not in sides:
            raise ScenarioError(f"{place}: no side is called {side}; sides: {', '.join(sides)}")
        if key in request.grid or key == request.vary[0] or key == "seed":
            raise ScenarioError(f"{place}: {key} is swept or compared as well; give one")
        if (what := wrong_values(values)) is not None:
            raise ScenarioError(f"{place}: {what}")


# --- what every value costs ---------------------------------------------------------------------
def points_table(knobs: KnobPlan, runs: pd.DataFrame) -> pd.DataFrame:
    """One row a value and combination: what the target costs, over seeds.

    Geometric means with 95 % intervals (``_low``, ``_high``); a run that did not get there enters
    with its end, and is counted in ``censored``: the cost is then a lower bound.  Some instances
    are harder than others for all values alike: ``_paired_low`` and ``_paired_high`` are without
    that, for comparing the points of one network with one another.
    """
    entering, late = to_target(runs), censored(runs).to_numpy()
    done = (runs["status"] == "done").to_numpy()
    counts = (runs["status"] != "left out").to_numpy()
    numbers = np.array([run.combination for run in knobs.plan.runs])
    rows = []
    for number, values in enumerate(knobs.plan.combinations):
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
    shared = [key for key in knobs.plan.axes if key not in (knobs.side, "knob", "value")]
    groups = table.groupby(shared, sort=False).indices.values() if shared else [table.index]
    for cost in COSTS:
        logs = np.log(entering[f"{cost}_to_target"].where(done).to_numpy())
        for group in groups:
            costs = np.stack([logs[numbers == number] for number in group])
            paired = np.exp(paired_interval(costs))
            table.loc[group, [f"{cost}_paired_low", f"{cost}_paired_high"]] = paired.T
    return table


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


# --- tuning -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Tuning:
    """What was tried on held-out seeds and what was taken; one row a value and combination."""

    table: pd.DataFrame
    #: Overrides by combination of the comparison.
    chosen: dict[int, dict[str, Any]]
    notes: tuple[str, ...]
    #: The runs by which they were chosen.
    computed: Computed


def choose(points: pd.DataFrame, cells: list[int], budget: float) -> pd.Series[bool]:
    """Which rows are taken: in each cell the fastest of those within the budget.

    Within it are values whose communications to target are at most ``budget`` times the least of
    the cell; one with a failed run is not.  Of equally fast ones the most frugal is taken.
    """
    taken = pd.Series(False, index=points.index)
    usable = points[points["failed"] == 0]
    for _, here in usable.groupby([cells[number] for number in usable.index]):
        frugal = here["communications"] <= budget * here["communications"].min()
        taken[here[frugal].sort_values(["time", "communications"], kind="stable").index[0]] = True
    return taken


def tune(
    request: Request, plugins: Given, store: Store, computed: Callable[[Plan], Computed]
) -> tuple[Request, Tuning | None]:
    """The request with what its sides have chosen for each combination on held-out seeds."""
    if not request.tune:
        return request, None
    knobs = plan_knobs(request, request.tune, plugins, held_out=True)
    done = computed(knobs.plan)
    runs = runs_table(knobs.plan, store, done.folders, done.failures)
    notes = _leave_lost_seeds_out(knobs, runs)
    table = points_table(knobs, runs)
    table["taken"] = choose(table, knobs.cells, request.budget)
    values = knobs.plan.combinations
    chosen = {
        knobs.cells[number]: {values[number]["knob"]: values[number]["value"]}
        for number in table.index[table["taken"]]
    }
    for number, cell in enumerate(knobs.cells):
        if cell not in chosen:
            own = [knobs.cells[run.combination] == cell for run in knobs.plan.runs]
            why = runs["reason"][np.array(own) & (runs["status"] == "failed")].iloc[0]
            raise SimulatorError(
                f"{_place(knobs, number)}: nothing can be taken: each value failed on some of the "
                f"held-out seeds that another survived: {why}"
            )
    reasons = {why: value for _, value, why in knobs.left_out}
    notes += [f"{label(value)} was not tried: {why}" for why, value in reasons.items()]
    return replace(request, chosen=chosen), Tuning(table, chosen, tuple(notes), done)


def _leave_lost_seeds_out(knobs: KnobPlan, runs: pd.DataFrame) -> list[str]:
    """Held-out seeds that fail for all values count for none of them; notes that name them."""
    failed = (runs["status"] == "failed").to_numpy()
    cells = np.array([knobs.cells[run.combination] for run in knobs.plan.runs])
    seeds, notes = runs["seed"].to_numpy(), list[str]()
    for cell in dict.fromkeys(cells.tolist()):
        lost = [s for s in np.unique(seeds) if failed[(cells == cell) & (seeds == s)].all()]
        if not lost:
            continue
        here = (cells == cell) & np.isin(seeds, lost)
        first = int(np.flatnonzero(here)[0])
        left = len(np.unique(seeds)) - len(lost)
        text = (
            f"{_place(knobs, knobs.plan.runs[first].combination)}: on {left} of {left + len(lost)} "
            f"held-out seeds; {', '.join(map(str, lost))} failed for all values: "
            f"{runs['reason'].iloc[first]}"
        )
        if left < FEWEST_HELD_OUT:
            raise SimulatorError(f"{text}; at least {FEWEST_HELD_OUT} must count")
        runs.loc[here, "status"] = "left out"
        notes.append(text)
    return notes


def _place(knobs: KnobPlan, number: int) -> str:
    """Whose values these are, for messages."""
    values = knobs.plan.combinations[number]
    where = [
        f"{key}={label(value)}"
        for key, value in values.items()
        if key not in (knobs.side, "knob", "value")
    ]
    return ", ".join([*where, f"--tune {label(values[knobs.side])}:{values['knob']}"])
