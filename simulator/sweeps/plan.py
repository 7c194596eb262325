"""The plan of a sweep: which runs it has, all of them validated before the first one starts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.errors import ScenarioError
from simulator.runs.plugins import Given, load_plugins, schema_for
from simulator.scenario.files import read_scenario
from simulator.scenario.laws import Constant
from simulator.scenario.messages import shown
from simulator.scenario.schema import Scenario
from simulator.store.store import digest
from simulator.sweeps.request import (
    MOST_RUNS,
    Grid,
    Request,
    TargetLevel,
    label,
    read_request,
    wrong_values,
)

__all__ = ["MOST_RUNS", "Plan", "PlannedRun", "Request", "TargetLevel", "label", "make_plan", "outline", "read_request"]

#: Of the values of a key, an outline checks so many.
_OUTLINED = 100


@dataclass(frozen=True)
class PlannedRun:
    """One run: the number of its combination, the swept values as given, and the scenario."""

    combination: int
    values: dict[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in the order of the grid (the last key changes fastest), then seeds."""

    name: str
    #: The keys with more than one value, in their order, and their values.
    axes: Grid
    runs: list[PlannedRun]
    target: TargetLevel | None

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """The values of each combination."""
        return [next(group).values for _, group in self._groups()]

    def _groups(self) -> Iterator[tuple[int, Iterator[PlannedRun]]]:
        return itertools.groupby(self.runs, key=lambda run: run.combination)


# --- planning -----------------------------------------------------------------------------------
def make_plan(request: Request, plugins: Given = None) -> Plan:
    """Every combination of the grid (and of ``vary``) with every seed, all of them validated."""
    schema = schema_for(load_plugins(plugins))
    grid = dict(request.grid)
    for key, values in [*grid.items(), *([request.vary] if request.vary else [])]:
        if (what := _wrong_values(values)) is not None:
            raise ScenarioError(f"--set {key}: {what}")
    if request.runs > request.max_runs:
        raise ScenarioError(
            f"{request.base}: {request.runs:,} runs are asked for by seeds and --set (or a sweep "
            f"file's grid); at most {request.max_runs:,} are made, unless --max-runs says more"
        )
    target = None if request.target is None else TargetLevel.parse(request.target, schema)
    listed_seeds = grid.pop("seed", None)
    if listed_seeds is not None and request.seeds is not None:
        raise ScenarioError("--seeds and --set seed=… are the same; give one")
    variants = {} if request.vary is None else {request.vary[0]: request.vary[1]}
    for key in variants:
        if key in grid:
            raise ScenarioError(f"--vary {key}: it is swept by --set as well; give one")
    axes = {key: values for key, values in {**grid, **variants}.items() if len(values) > 1}

    loaded = _load_all(request, {**grid, **variants}, target, schema)
    if request.vary is not None and target is not None and target.relative:
        _refuse_other_levels(request, len(request.vary[1]), [each for _, each in loaded])
    runs = []
    for number, (chosen, scenario) in enumerate(loaded):
        for seed in _seeds(scenario, request.seeds, listed_seeds):
            seeded = scenario.model_copy(update={"seed": seed})
            swept = {key: chosen[key] for key in axes}
            runs.append(PlannedRun(number, swept, seeded))
    _refuse_duplicates(runs)
    return Plan(request.name or loaded[0][1].name, axes, runs, target)


def outline(request: Request, plugins: Given = None) -> list[str]:
    """Lines on a plan that is too large to be listed; each value is validated by itself."""
    axes = {**request.grid, **(dict([request.vary]) if request.vary else {})}
    first = {key: values[:1] for key, values in axes.items()}
    for key, values in axes.items():
        some = {**first, key: values[:_OUTLINED]}
        make_plan(replace(request, grid=some, vary=None, seeds=None), plugins)
    lines = [f"{key}: {len(values):,} values" for key, values in axes.items()]
    lines += [f"seeds: {request.seeds:,}"] if request.seeds is not None else []
    return [
        *lines,
        f"{request.runs:,} runs: too many to list; the first {_OUTLINED} values of each key were "
        "checked, one at a time",
        f"at most {request.max_runs:,} runs are made; --max-runs says how many",
    ]


def _load_all(
    request: Request, grid: Grid, target: TargetLevel | None, schema: type[Scenario]
) -> list[tuple[dict[str, Any], Scenario]]:
    """The scenario of each combination; all mistakes of all combinations are reported."""
    loaded, wrong = [], dict[str, None]()
    for values in itertools.product(*grid.values()):
        overrides = dict(zip(grid, values, strict=True))
        everything = {
            **_of_its_kind(overrides, grid, schema),
            **(target.overrides() if target is not None else {}),
        }
        try:
            loaded.append((overrides, read_scenario(request.base, everything, schema)))
        except ScenarioError as error:
            for line in str(error).splitlines():
                wrong[_placed(line, overrides, request.places)] = None
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return loaded


def _of_its_kind(values: dict[str, Any], grid: Grid, schema: type[Scenario]) -> dict[str, Any]:
    """Without the keys that only another of several algorithms has.

    A key with one value is part of what all runs share, as if the scenario had it: it goes to the
    algorithms that know it.  One that is swept must be known to all.
    """
    kinds = grid.get("algorithm.kind", [])
    if len(kinds) < 2:
        return values
    known = [schema.algorithm_keys(kind) for kind in kinds]
    others = frozenset[str]().union(*known) - schema.algorithm_keys(values["algorithm.kind"])
    foreign = tuple(f"algorithm.{key}." for key in others)
    return {
        key: value
        for key, value in values.items()
        if len(grid[key]) > 1 or not f"{key}.".startswith(foreign)
    }


def _placed(line: str, values: dict[str, Any], places: Mapping[str, str]) -> str:
    """An error about a value of a sweep file's grid, with its place in that file."""
    for key, value in values.items():
        place = places.get(f"{key}={label(value)}")
        if place is not None and line.startswith(f"--set {key}: "):
            return f"{place}: grid.{line.removeprefix('--set ')}"
    return line


def _seeds(scenario: Scenario, count: int | None, listed: list[Any] | None) -> list[int]:
    """The scenario's seed and those after it, or the seeds that were listed."""
    seeds = listed or [scenario.seed + number for number in range(count or 1)]
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
            raise ScenarioError(f"seed: must be a whole number from 0 (got {shown(seed)})")
    return seeds


def _refuse_other_levels(request: Request, sides: int, loaded: list[Scenario]) -> None:
    """A percentage is one of a run's own start, so both sides of a pair must begin alike."""
    for number, scenario in enumerate(loaded):
        if _start(loaded[number - number % sides]) != _start(scenario):
            assert request.vary is not None
            raise ScenarioError(
                f"--target {request.target}: the two sides of --vary {request.vary[0]} begin at "
                "different models, so that the same percentage is not the same level; give a "
                "number, like l2_error=0.1"
            )


def _start(scenario: Scenario) -> tuple[Any, ...]:
    """All that the first models and their errors depend on, but for the seed."""
    algorithm = scenario.algorithm
    start: Any = algorithm.start
    if algorithm.starts_from_mp:
        start = (start, start == "mp" and vars(algorithm), getattr(algorithm, "confidence", None))
    elif start in ("hello", "known"):
        start = "own"  # they differ in what agents know of one another, not in the models
    return scenario.problem_seed, scenario.task, scenario.graph, start


def _refuse_duplicates(runs: list[PlannedRun]) -> None:
    """Two combinations that mean the same, such as 0.05 and 50 ms, are a mistake."""
    first: dict[str, PlannedRun] = {}
    for run in runs:
        other = first.setdefault(digest(run.scenario), run)
        if other is not run:
            one, two = (_values_text(each) for each in (other, run))
            raise ScenarioError(f"--set: {one} and {two} are the same run; remove one of them")


def _values_text(run: PlannedRun) -> str:
    text = ", ".join(f"{key}={label(value)}" for key, value in run.values.items())
    return f"{text} (seed {run.scenario.seed})" if text else f"seed {run.scenario.seed}"
