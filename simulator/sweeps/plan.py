"""The plan of a sweep: which runs it has, all of them validated before the first one starts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from simulator.errors import ScenarioError
from simulator.runs.plugins import Given, load_plugins, schema_for
from simulator.scenario.files import read_scenario, scenario_values
from simulator.scenario.kinds import kind_of
from simulator.scenario.mistakes import shown
from simulator.scenario.network import Traced
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.store.store import digest
from simulator.store.whole_files import hash_of
from simulator.sweeps.request import (
    BUDGET_AN_AGENT,
    SIDE,
    Grid,
    Request,
    TargetLevel,
    from_one,
    label,
    wrong_values,
)

#: Of the values of a key, an outline checks so many.
_OUTLINED = 100


@dataclass(frozen=True)
class PlannedRun:
    """One run: the number of its combination, the swept values as given, and the scenario."""

    combination: int
    values: dict[str, Any]
    scenario: Scenario
    #: Overrides that its side has chosen for itself, or its knob has.
    tuned: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in the order of the grid (the last key changes fastest), then seeds."""

    name: str
    #: The keys with more than one value, in their order, and their values.
    axes: Grid
    runs: list[PlannedRun]
    target: TargetLevel | None
    #: What it is the plan of.
    request: Request

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """The values of each combination."""
        return [run.values for run in self.runs[:: self.seeds]]

    @cached_property
    def hashes(self) -> list[str]:
        """The hash of each run, each input read once.  Some combinations share theirs."""
        files: dict[Path, str] = {}
        return [digest(run.scenario, files) for run in self.runs]

    @property
    def distinct(self) -> int:
        """How many different runs there are."""
        return len(set(self.hashes))

    @cached_property
    def seeds(self) -> int:
        """How many runs each combination has."""
        return sum(run.combination == 0 for run in self.runs)

    def numbers(self, combination: int) -> range:
        """Where its runs are among all."""
        return range(combination * self.seeds, (combination + 1) * self.seeds)

    def first(self, combination: int) -> PlannedRun:
        """The first run of a combination."""
        return self.runs[combination * self.seeds]

    @property
    def cells(self) -> list[list[int]]:
        """The combinations that are compared with one another: one by one where none are."""
        sides = len(self.request.compared[1]) if self.request.compared else 1
        count = len(self.runs) // self.seeds
        return [list(range(first, first + sides)) for first in range(0, count, sides)]


@dataclass(frozen=True)
class Cell:
    """One combination: what is swept has these values, and the scenario these overrides."""

    values: dict[str, Any]
    overrides: dict[str, Any]


# --- planning -----------------------------------------------------------------------------------
def make_plan(request: Request, plugins: Given = None) -> Plan:
    """Every combination of worlds, grid and ``vary`` with every seed, all of them validated.

    What sides have chosen (``request.chosen``) is in it; tuning itself is planned by ``knobs``.
    """
    schema = schema_for(load_plugins(plugins))
    if request.runs > from_one("max_runs", request.max_runs):
        raise ScenarioError(
            f"{request.where}: {request.runs:,} runs are asked for by seeds and --set (or a sweep "
            f"file's grid); at most {request.max_runs:,} are made, unless --max-runs says more"
        )
    target = TargetLevel.asked(request.target, schema)
    cells, axes, seeds = combinations(request, schema)
    tuned = [request.chosen.get(number, {}) for number in range(len(cells))]
    loaded, wrong = [], dict[str, None]()
    for cell, more in zip(cells, tuned, strict=True):
        try:
            loaded.append(load_cell(request, cell, target, schema, more))
        except ScenarioError as error:
            wrong |= dict.fromkeys(str(error).splitlines())
    if wrong:
        raise ScenarioError("\n".join(wrong))
    if request.compared is not None and target is not None:
        sides = len(request.compared[1])
        refuse_unlike(request, target, ((n // sides, each) for n, each in enumerate(loaded)))
    runs = [
        PlannedRun(number, {key: cell.values[key] for key in axes}, scenario, more)
        for number, (cell, scenario, more) in enumerate(zip(cells, loaded, tuned, strict=True))
    ]
    refuse_duplicates(runs)
    every = [seeded for run in runs for seeded in with_seeds(run, request.seeds, seeds)]
    return Plan(request.name or loaded[0].name, axes, every, target, request)


def combinations(
    request: Request, schema: type[Scenario]
) -> tuple[list[Cell], Grid, list[Any] | None]:
    """The combinations in order, the keys with more than one value, and the seeds if listed."""
    grid, compared = dict(request.grid), request.compared
    if compared is not None and compared[0] in grid:
        raise ScenarioError(f"--vary {compared[0]}: it is swept by --set as well; give one")
    for side, overrides in request.sides.items():
        for key in overrides:
            if len(grid.get(key, ())) > 1 or key == "seed":
                raise ScenarioError(f"sides.{side}: {key}: it is swept as well; give one")
    for key, values in request.axes.items():
        if (what := wrong_values(values)) is not None:
            raise ScenarioError(f"--set {key}: {what}")
    seeds = grid.pop("seed", None)
    if seeds is not None and request.seeds is not None:
        raise ScenarioError("--seeds and --set seed=… are the same; give one")
    grid |= dict([compared]) if compared else {}
    worlds = request.worlds or {"": {}}
    cells = []
    for world, overrides in worlds.items():
        for chosen in itertools.product(*grid.values()):
            here = dict(zip(grid, chosen, strict=True))
            own = {key: value for key, value in here.items() if not key.startswith("$")}
            fixed = request.sides[own.pop(SIDE)] if request.sides else {}
            shared = _of_its_kind(own, fixed, request, schema)
            cells.append(Cell({"world": world, **here}, {**filled_in(overrides, here), **shared}))
    axes = {"world": list(worlds)} if len(worlds) > 1 else {}
    return cells, axes | {key: given for key, given in grid.items() if len(given) > 1}, seeds


def filled_in(value: Any, values: Mapping[str, Any]) -> Any:
    """Overrides of a world, with the values of ``$keys`` in their places."""
    if isinstance(value, dict):
        return {key: filled_in(item, values) for key, item in value.items()}
    return values[value] if isinstance(value, str) and value.startswith("$") else value


def load_cell(
    request: Request,
    cell: Cell,
    target: TargetLevel | None,
    schema: type[Scenario],
    more: Mapping[str, Any],
) -> Scenario:
    """The scenario of a combination; errors name the sweep file's places."""
    aim = target.overrides() if target is not None else {}
    overrides = {**request.defaults, **cell.overrides, **aim, **more}
    try:
        scenario = read_scenario(request.source, overrides, schema)
    except ScenarioError as error:
        placed = [_placed(line, cell.values, request) for line in str(error).splitlines()]
        raise ScenarioError("\n".join(placed)) from None
    return _to_target(scenario, request) if request.to_target else scenario


def _to_target(scenario: Scenario, request: Request) -> Scenario:
    """With a budget of messages in place of the scenario's own limits.

    Where a trace says who is on, all may be off for ever: its limit of time stays.
    """
    messages = BUDGET_AN_AGENT * _agents(scenario)
    time = scenario.stop.time if isinstance(scenario.availability, Traced) else None
    changes: dict[str, Any] = {
        "stop": scenario.stop.model_copy(update={"time": time, "communications": messages})
    }
    if not request.names("record"):  # an interval of the base's is one for its own limits
        own = {"every": None, "every_communications": None}
        changes["record"] = scenario.record.model_copy(update=own)
    return scenario.model_copy(update=changes)


def _agents(scenario: Scenario) -> int:
    """How many there are; files must be read to know."""
    if scenario.task.count is not None:
        return scenario.task.count
    streams = Streams(scenario.seed, scenario.problem_seed)
    return len(scenario.task.build(streams.data).names)


def with_seeds(run: PlannedRun, count: int | None, listed: list[Any] | None) -> list[PlannedRun]:
    """The same run with each seed."""
    return [
        replace(run, scenario=run.scenario.model_copy(update={"seed": seed}))
        for seed in _seeds(run.scenario, count, listed)
    ]


def outline(request: Request, plugins: Given = None) -> list[str]:
    """Lines on a plan that is too large to be listed; each value is validated by itself."""
    axes = dict(request.axes)
    first = {key: values[:1] for key, values in axes.items() if not request.sides or key != SIDE}
    for key in first:
        some = {**first, key: axes[key][:_OUTLINED]}
        make_plan(replace(request, grid=some, vary=None, sides={}, seeds=None), plugins)
    lines = [f"{key}: {len(values):,} values" for key, values in axes.items()]
    lines += [f"seeds: {request.seeds:,}"] if request.seeds is not None else []
    return [
        *lines,
        f"{request.runs:,} runs: too many to list; the first {_OUTLINED} values of each key were "
        "checked, one at a time",
        f"at most {request.max_runs:,} runs are made; --max-runs says how many",
    ]


def _of_its_kind(
    values: dict[str, Any], side: dict[str, Any], request: Request, schema: type[Scenario]
) -> dict[str, Any]:
    """What is swept and what the side sets, without keys that only another algorithm has.

    A key with one value is part of what all runs share, as if the scenario had it: it goes to the
    algorithms that know it.  One that is swept must be known to all.
    """
    kind = "algorithm.kind"
    kinds = list(request.axes.get(kind, ()))
    kinds += [own[kind] for own in request.sides.values() if kind in own]
    if len(kinds) < 2 or kind not in {**values, **side}:
        return {**values, **side}
    known = [schema.algorithm_keys(each) for each in kinds]
    others = frozenset[str]().union(*known) - schema.algorithm_keys({**values, **side}[kind])
    foreign = tuple(f"algorithm.{key}." for key in others)
    shared = {
        key: value
        for key, value in values.items()
        if len(request.axes[key]) > 1 or not f"{key}.".startswith(foreign)
    }
    return {**shared, **side}


def _placed(line: str, values: dict[str, Any], request: Request) -> str:
    """An error about a value of a sweep file, with its place in that file."""
    for key, value in values.items():
        place = request.places.get(f"{key}={label(value)}")
        if place is not None and line.startswith(f"--set {key}: "):
            return f"{place}{line.removeprefix('--set ')}"
    if line.startswith("--set stop.metric: "):
        return f"--target {request.target}: {line.removeprefix('--set stop.metric: ')}"
    blocks = {"sides": request.sides.get(values.get(SIDE, ""), {})}
    blocks["worlds"] = request.worlds.get(values["world"], {})
    for block, name in (("sides", values.get(SIDE)), ("worlds", values["world"])):
        for key in blocks[block]:
            if line.startswith(f"--set {key}: "):
                return f"{block}.{name}: {line.removeprefix('--set ')}"
    if request.vary is not None and line.startswith(f"--set {request.vary[0]}: "):
        return f"--vary {line.removeprefix('--set ')}"
    return line


def _seeds(scenario: Scenario, count: int | None, listed: list[Any] | None) -> list[int]:
    """The scenario's seed and those after it, or the seeds that were listed."""
    seeds = listed or [scenario.seed + number for number in range(count or 1)]
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
            raise ScenarioError(f"seed: must be a whole number from 0 (got {shown(seed)})")
    return seeds


def refuse_unlike(
    request: Request, target: TargetLevel, grouped: Iterable[tuple[int, Scenario]]
) -> None:
    """A target is the same for all of a group: one optimum, and for a percentage one start."""
    firsts: dict[int, Scenario] = {}
    sides = "sides" if request.vary is None else f"the sides of --vary {request.vary[0]}"
    place = f"--target {request.target}: {sides}"
    for group, scenario in grouped:
        first = firsts.setdefault(group, scenario)
        absolute = absolute_metrics(first)
        if target.metric not in absolute and optimum_of(first) != optimum_of(scenario):
            raise ScenarioError(
                f"{place} have different optima, so that {target.metric} measures different "
                f"things; allowed: {', '.join(absolute)}, like --target l2_error=0.1, or "
                "--target none"
            )
        if target.relative and _start(first) != _start(scenario):
            raise ScenarioError(
                f"{place} begin at different models, so that the same percentage is not the same "
                "level; give a number, like l2_error=0.1"
            )


def absolute_metrics(scenario: Scenario) -> list[str]:
    """The metrics that do not measure from a run's own optimum: baselines have them as well."""
    return [kind for kind, metric in scenario.stop.known.items() if metric.of_baselines]


def common_metrics(sides: Sequence[Scenario]) -> list[str]:
    """The metrics that mean the same for all: none from the optimum where they have several."""
    kinds = [kind_of(metric) for metric in sides[0].kinds.metrics]
    if all(optimum_of(side) == optimum_of(sides[0]) for side in sides):
        return kinds
    absolute = absolute_metrics(sides[0])
    return [kind for kind in kinds if kind in absolute]


def optimum_of(scenario: Scenario) -> tuple[Any, ...]:
    """All that the optimum depends on, but for the seed."""
    algorithm = scenario.algorithm
    objective = algorithm.kind if algorithm.rule is None else algorithm.rule.objective
    # Q_CL knows no confidences; admm has the key for its start alone.
    confidence = getattr(algorithm, "confidence", "data") if objective == "mp" else None
    own = (getattr(algorithm, "trade_off", None), getattr(algorithm, "ridge", 0.0), confidence)
    return scenario.problem_seed, scenario.task, scenario.graph, objective, *own


def _start(scenario: Scenario) -> tuple[Any, ...]:
    """All that the first models and their errors depend on, but for the seed."""
    algorithm = scenario.algorithm
    start: Any = algorithm.start
    if algorithm.starts_from_mp:
        start = (start, start == "mp" and vars(algorithm), getattr(algorithm, "confidence", None))
    elif start in ("hello", "known"):
        start = "own"  # they differ in what agents know of one another, not in the models
    return scenario.problem_seed, scenario.task, scenario.graph, start


def refuse_duplicates(runs: list[PlannedRun]) -> None:
    """Two combinations that mean the same, such as 0.05 and 50 ms, are a mistake."""
    first: dict[str, PlannedRun] = {}
    for run in runs:
        values = scenario_values(run.scenario)
        meaning = hash_of([values[key] for key in values if key not in ("name", "description")])
        other = first.setdefault(meaning, run)
        if other is not run:
            one, two = (_values_text(each) for each in (other, run))
            raise ScenarioError(f"--set: {one} and {two} are the same run; remove one of them")


def _values_text(run: PlannedRun) -> str:
    text = ", ".join(f"{key}={label(value)}" for key, value in run.values.items())
    return f"{text} (seed {run.scenario.seed})" if text else f"seed {run.scenario.seed}"
