"""Knobs: a key of a side that buys time with messages, and the values to try for it.

The timer is such a key for rounds, the clock's rate for gossip.  All values of a knob give a side's
*frontier*: time to target against communications to target.  *Tuning* takes one of them for each
combination, on held-out seeds, so that the runs that are compared had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import Given, load_plugins, schema_for
from simulator.store.store import Store
from simulator.sweeps.frontier import KNOB, points_table
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
    Budget,
    Grid,
    Knobs,
    Request,
    TargetLevel,
    label,
    side_names,
    wrong_values,
)
from simulator.sweeps.tables import Computed, runs_table

#: Tuning takes so many seeds, the first of them so far from the scenario's own.
HELD_OUT_SEEDS, HELD_OUT_FROM = 10, 10**6
#: Fewer of them than this are not enough to choose by.
FEWEST_HELD_OUT = 5
#: What a side has that is not tuned, and whose messages others are measured by.
_NO_KNOB: tuple[str, list[Any]] = ("", ["as it is"])


@dataclass(frozen=True)
class KnobPlan:
    """A run for every value of every side's knob, and every seed."""

    plan: Plan
    #: The combination of the comparison that each combination of this plan belongs to.
    cells: list[int]
    #: The values that are errors in a combination: its number, the value, and why.
    left_out: list[tuple[int, Any, str]]


def plan_knobs(request: Request, knobs: Knobs, plugins: Given, held_out: bool) -> KnobPlan:
    """All values of all knobs in every combination; those that are errors in it are left out."""
    schema = schema_for(load_plugins(plugins))
    assert request.compared is not None
    target = TargetLevel.asked(request.target, schema)
    if target is None:
        raise ScenarioError("--target none: without a target no value is better than another")
    _check(request, knobs)
    column, sides = request.compared
    called = side_names(sides)
    cells, axes, listed = combinations(request, schema)
    runs, of_cell, left_out = list[PlannedRun](), list[int](), list[tuple[int, Any, str]]()
    for number, cell in enumerate(cells):
        side = str(called[label(cell.values[column])])
        if side not in knobs:
            continue
        key, values = knobs[side]
        errors = []
        for value in values:
            try:
                scenario = load_cell(request, cell, target, schema, {key: value} if key else {})
            except ScenarioError as error:
                errors.append(error)
                left_out.append((number, value, str(error).splitlines()[0]))
                continue
            swept = {axis: cell.values[axis] for axis in axes}
            swept |= {column: cell.values[column], "knob": key, "value": value}
            runs.append(PlannedRun(len(of_cell), swept, scenario))
            of_cell.append(number)
        if len(errors) == len(values):
            raise errors[0]
    refuse_duplicates(runs)
    of_pair = ((of_cell[run.combination] // len(sides), run.scenario) for run in runs)
    refuse_unlike(request, target, of_pair)
    if held_out:
        first = runs[0].scenario.seed + HELD_OUT_FROM
        listed = [first + extra for extra in range(HELD_OUT_SEEDS)]
    every = [seeded for run in runs for seeded in with_seeds(run, request.seeds, listed)]
    if len(every) > request.max_runs:
        raise ScenarioError(
            f"{request.where}: {len(every):,} runs are needed to try all values; at most "
            f"{request.max_runs:,} are made, unless --max-runs says more"
        )
    names: Grid = {name: [] for name in (*axes, column, *KNOB)}
    plan = Plan(request.name or runs[0].scenario.name, names, every, target, request)
    return KnobPlan(plan, of_cell, left_out)


def _check(request: Request, knobs: Knobs) -> None:
    """Knobs belong to sides, and to nothing else that is swept."""
    sides = request.side_names
    for side, (key, values) in knobs.items():
        place = f"--tune {side}:{key}"
        if side not in sides:
            raise ScenarioError(f"{place}: no side is called {side}; sides: {', '.join(sides)}")
        if key in request.axes or key == "seed":
            raise ScenarioError(f"{place}: {key} is swept or compared as well; give one")
        if (what := wrong_values(values)) is not None:
            raise ScenarioError(f"{place}: {what}")


# --- tuning -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Tuning:
    """What was tried on held-out seeds and what was taken; one row a value and combination."""

    table: pd.DataFrame
    notes: tuple[str, ...]
    #: The runs by which they were chosen.
    computed: Computed


def plan_tuning(request: Request, plugins: Given) -> KnobPlan:
    """The runs of all sides that are tuned, and of the one by which their budget is measured."""
    knobs, of = dict(request.tune), request.budget.of
    if of is not None:
        if of not in request.side_names:
            sides = ", ".join(request.side_names)
            raise ScenarioError(f"--tune-budget {request.budget.given}: sides: {sides}")
        knobs.setdefault(of, _NO_KNOB)
    return plan_knobs(request, knobs, plugins, held_out=True)


def choose(
    points: pd.DataFrame,
    cells: Sequence[int],
    factor: float,
    least: Mapping[int, float] | None = None,
) -> pd.Series[bool]:
    """Which rows are taken: in each cell the fastest of those within the budget.

    Within it are values whose communications to target are at most ``factor`` times the least of
    the cell, or what ``least`` has for it; where none is, the most frugal one is taken.  One with a
    failed run is not.  Of equally fast ones the most frugal is taken.
    """
    taken = pd.Series(False, index=points.index)
    usable = points[points["failed"] == 0]
    for cell, here in usable.groupby([cells[number] for number in usable.index]):
        spent = here["communications"]
        allowed = factor * (spent.min() if least is None else least[int(str(cell))])
        frugal = here[spent <= max(allowed, spent.min())]
        taken[frugal.sort_values(["time", "communications"], kind="stable").index[0]] = True
    return taken


def _choose_all(table: pd.DataFrame, knobs: KnobPlan) -> pd.Series[bool]:
    """The values that all sides take; that of the side which measures the others comes first."""
    request, cells = knobs.plan.request, knobs.cells
    budget = request.budget
    if budget.of is None:
        return choose(table, cells, budget.factor)
    sides = request.side_names
    first = np.array(cells) % len(sides) == sides.index(budget.of)
    taken = choose(table[first], cells, Budget().factor)
    spent = {cells[n] // len(sides): table["communications"][n] for n in taken.index[taken]}
    least = {cell: float(spent.get(cell // len(sides), np.nan)) for cell in cells}
    others = choose(table[~first], cells, budget.factor, least)
    return pd.concat([taken, others]).sort_index()


def tune(
    request: Request, plugins: Given, store: Store, compute: Callable[[Plan], Computed]
) -> tuple[Request, Tuning | None]:
    """The request with what its sides have chosen for each combination on held-out seeds."""
    if not request.tune:
        return request, None
    knobs = plan_tuning(request, plugins)
    done = compute(knobs.plan)
    runs = runs_table(knobs.plan, store, done)
    notes = _leave_lost_seeds_out(knobs, runs)
    table = points_table(knobs.plan, runs)
    table["taken"] = _choose_all(table, knobs)
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
    chosen = {cell: {key: v for key, v in own.items() if key} for cell, own in chosen.items()}
    return replace(request, chosen=chosen), Tuning(table, tuple(notes), done)


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
    values = dict(knobs.plan.combinations[number])
    assert knobs.plan.request.compared is not None
    side, knob = values.pop(knobs.plan.request.compared[0]), values.pop("knob")
    where = [f"{key}={label(value)}" for key, value in values.items() if key != "value"]
    return ", ".join([*where, f"--tune {label(side)}:{knob}"])
