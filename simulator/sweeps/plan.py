"""The plan of a sweep: which runs it has, all of them validated before the first one starts.

A plan comes from a scenario and ``--set KEY=VALUES``, or from a sweep file that says the same::

    base: moons.yaml                    # the scenario, relative to this file
    grid:                               # every combination is run …
      network.drop: [0, 0.2, 0.5]
      network.latency.mean: [10 ms, 100 ms]
    seeds: 5                            # … with the scenario's seed and the 4 after it
    target: distance=1%                 # optional: a run stops where it reaches this
    vary: {algorithm.mode: [async, sync]}    # optional: what `compare` compares
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from simulator.errors import ScenarioError
from simulator.runs.plugins import Plugin
from simulator.scenario.algorithm import PropagatedStart, algorithm_keys
from simulator.scenario.files import Source, load_scenario, read_scenario_text
from simulator.scenario.messages import Mistake, did_you_mean, shown
from simulator.scenario.overrides import plain, repeated
from simulator.scenario.schema import MetricName, Scenario, read_level
from simulator.scenario.yaml_positions import plain_value, read_yaml
from simulator.store.store import digest

Grid = dict[str, list[Any]]
_METRICS: tuple[str, ...] = MetricName.__args__  # type: ignore[attr-defined]
#: More runs than this are a slip, unless --max-runs says that they are meant.
MOST_RUNS = 10_000
#: Of the values of a key, an outline checks so many.
_OUTLINED = 100
_FILE_KEYS = ("base", "name", "description", "grid", "seeds", "target", "vary")


@dataclass(frozen=True)
class TargetLevel:
    """What a run is to reach: ``distance=1%`` of its value at the start, or ``l2_error=0.02``."""

    metric: str
    level: float | str

    @classmethod
    def parse(cls, text: str) -> TargetLevel:
        """Read ``METRIC=LEVEL``, where LEVEL is a number, or a percentage of the start's value."""
        metric, _, level = (part.strip() for part in text.partition("="))
        place = f"--target {shown(text)[1:-1]}"
        if metric not in _METRICS:
            hint = did_you_mean(metric, _METRICS)
            raise ScenarioError(f"{place}: unknown metric;{hint} allowed: {', '.join(_METRICS)}")
        try:
            read = read_level(plain_value(level))
        except ValueError:
            read = -1.0
        if isinstance(read, float) and read < 0:
            raise ScenarioError(f"{place}: expected METRIC=LEVEL, like distance=1% or l2_error=0.1")
        if isinstance(read, str) and metric in ("accuracy", "staleness"):
            raise ScenarioError(f"{place}: give {metric} as a number, like {metric}=0.9")
        return cls(metric, read)

    @property
    def relative(self) -> bool:
        """Is it a percentage of the value at a run's own start?"""
        return isinstance(self.level, str)

    def overrides(self) -> dict[str, Any]:
        """As overrides of a scenario."""
        direction = "above" if self.metric == "accuracy" else "below"
        return {"stop.metric": self.metric, f"stop.{direction}": self.level}


@dataclass(frozen=True)
class Request:
    """What the user asked for: a base scenario, a grid of values, seeds."""

    base: Path
    grid: Grid = field(default_factory=dict)
    #: None: not asked for.
    seeds: int | None = None
    name: str | None = None
    target: str | None = None
    vary: tuple[str, list[Any]] | None = None
    #: The sweep file, and where each value of its grid stands in it: (key, shown value) → place.
    places: Mapping[str, str] = field(default_factory=dict)
    max_runs: int = MOST_RUNS

    @property
    def runs(self) -> int:
        """How many runs that is."""
        values = [*self.grid.values(), *([self.vary[1]] if self.vary else [])]
        return math.prod(map(len, values)) * (self.seeds or 1)

    def with_settings(self, settings: Iterable[tuple[str, Sequence[Any]]]) -> Request:
        """The same with more keys swept, or other values for a key."""
        grid, seen = dict(self.grid), set()
        for key, values in settings:
            if key in seen:
                raise ScenarioError(f"--set {key}: given twice")
            seen.add(key)
            grid[key] = plain_values(key, values)
        return replace(self, grid=grid)


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


def label(value: Any) -> Any:
    """A swept value for a table: numbers and text as they are, the rest as a line of YAML."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        text = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
        return text.removesuffix("\n").removesuffix("\n...")
    return value


def plain_values(key: str, values: Iterable[Any]) -> list[Any]:
    """Values as a YAML file could have given them: NumPy's numbers become Python's."""
    try:
        return [plain(value) for value in values]
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"--set {key}: {error}") from None


# --- reading ------------------------------------------------------------------------------------
def read_request(path: Path) -> Request:
    """A sweep file, or a scenario to be swept."""
    source = Source(path, read_yaml(read_scenario_text(path)))
    given = source.text.value
    if not isinstance(given, dict) or "task" in given or not {"base", "grid"} & given.keys():
        return Request(base=path)  # a scenario; whatever is wrong with it is said by load_scenario
    found = _mistakes(given)
    if found or source.text.faults:
        raise source.error(found)
    places = {}
    for key, values in given.get("grid", {}).items():
        at = source.text.values[("grid", key)]
        for index, value in enumerate(values):
            position = source.text.values.get(("grid", key, index), at)
            places[f"{key}={label(value)}"] = f"{path}:{position.line}:{position.column}"
    vary = given.get("vary")
    return Request(
        base=path.parent / given["base"],
        grid=given.get("grid", {}),
        seeds=given.get("seeds"),
        name=given.get("name", path.stem),
        target=given.get("target"),
        vary=None if vary is None else next(iter(vary.items())),
        places=places,
    )


def _mistakes(given: dict[str, Any]) -> list[Mistake]:
    """What is wrong with a sweep file."""
    found = []
    for key in given:
        if key not in _FILE_KEYS:
            what = f"unknown key;{did_you_mean(key, _FILE_KEYS)} allowed: {', '.join(_FILE_KEYS)}"
            found.append(Mistake((key,), what, "key"))
    if "base" not in given:
        found.append(Mistake(("base",), "missing key; expected a scenario's path", "missing"))
    found += [
        Mistake((key,), f"must be text (got {shown(given[key])})")
        for key in ("base", "target", "name", "description")
        if key in given and not (isinstance(given[key], str) and given[key])
    ]
    name = given.get("name")
    if isinstance(name, str) and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name):
        what = "must be 1 to 80 letters, digits, dots, hyphens or underscores"
        found.append(Mistake(("name",), f"{what} (got {shown(name)})"))
    seeds = given.get("seeds", 1)
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
        found.append(Mistake(("seeds",), f"must be a whole number from 1 (got {shown(seeds)})"))
    for block in ("grid", "vary"):
        values = given.get(block, {})
        if not isinstance(values, dict):
            what = f"must be keys with lists of values (got {shown(values)})"
            found.append(Mistake((block,), what))
            continue
        found += [
            Mistake((block, key), wrong)
            for key, items in values.items()
            if (wrong := _wrong_values(items)) is not None
        ]
    if isinstance(given.get("vary"), dict) and len(given["vary"]) != 1:
        found.append(Mistake(("vary",), f"must have one key (got {len(given['vary'])})"))
    return found


def _wrong_values(values: Any) -> str | None:
    if not isinstance(values, list) or not values:
        return f"must be a list of one or more values (got {shown(values)})"
    for value in repeated(values):
        return f"the value {shown(value)} is given twice"
    return None


# --- planning -----------------------------------------------------------------------------------
def make_plan(request: Request, plugin: Plugin | None = None) -> Plan:
    """Every combination of the grid (and of ``vary``) with every seed, all of them validated."""
    grid = dict(request.grid)
    for key, values in [*grid.items(), *([request.vary] if request.vary else [])]:
        if (what := _wrong_values(values)) is not None:
            raise ScenarioError(f"--set {key}: {what}")
    if request.runs > request.max_runs:
        raise ScenarioError(
            f"{request.base}: {request.runs:,} runs are asked for by seeds and --set (or a sweep "
            f"file's grid); at most {request.max_runs:,} are made, unless --max-runs says more"
        )
    target = None if request.target is None else TargetLevel.parse(request.target)
    listed_seeds = grid.pop("seed", None)
    if listed_seeds is not None and request.seeds is not None:
        raise ScenarioError("--seeds and --set seed=… are the same; give one")
    variants = {} if request.vary is None else {request.vary[0]: request.vary[1]}
    for key in variants:
        if key in grid:
            raise ScenarioError(f"--vary {key}: it is swept by --set as well; give one")
    axes = {key: values for key, values in {**grid, **variants}.items() if len(values) > 1}

    loaded = _load_all(request, {**grid, **variants}, target, plugin)
    if request.vary is not None and target is not None and target.relative:
        _refuse_other_levels(request, len(request.vary[1]), [each for _, each in loaded])
    runs = []
    for number, (chosen, scenario) in enumerate(loaded):
        for seed in _seeds(scenario, request.seeds, listed_seeds):
            seeded = scenario.model_copy(update={"seed": seed})
            swept = {key: chosen[key] for key in axes}
            runs.append(PlannedRun(number, swept, seeded))
    _refuse_duplicates(runs, plugin)
    return Plan(request.name or loaded[0][1].name, axes, runs, target)


def outline(request: Request, plugin: Plugin | None = None) -> list[str]:
    """Lines on a plan that is too large to be listed; each value is validated by itself."""
    axes = {**request.grid, **(dict([request.vary]) if request.vary else {})}
    first = {key: values[:1] for key, values in axes.items()}
    for key, values in axes.items():
        some = {**first, key: values[:_OUTLINED]}
        make_plan(replace(request, grid=some, vary=None, seeds=None), plugin)
    lines = [f"{key}: {len(values):,} values" for key, values in axes.items()]
    lines += [f"seeds: {request.seeds:,}"] if request.seeds is not None else []
    return [
        *lines,
        f"{request.runs:,} runs: too many to list; the first {_OUTLINED} values of each key were "
        "checked, one at a time",
        f"at most {request.max_runs:,} runs are made; --max-runs says how many",
    ]


def _load_all(
    request: Request, grid: Grid, target: TargetLevel | None, plugin: Plugin | None
) -> list[tuple[dict[str, Any], Scenario]]:
    """The scenario of each combination; all mistakes of all combinations are reported."""
    rules = plugin.rules if plugin is not None else ()
    loaded, wrong = [], dict[str, None]()
    for values in itertools.product(*grid.values()):
        overrides = dict(zip(grid, values, strict=True))
        everything = {
            **_of_its_kind(overrides, grid),
            **(target.overrides() if target is not None else {}),
        }
        try:
            loaded.append((overrides, load_scenario(request.base, everything, known_rules=rules)))
        except ScenarioError as error:
            for line in str(error).splitlines():
                wrong[_placed(line, overrides, request.places)] = None
    if wrong:
        raise ScenarioError("\n".join(wrong))
    return loaded


def _of_its_kind(values: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """Without the keys that only another of several algorithms has.

    A key with one value is part of what all runs share, as if the scenario had it: it goes to the
    algorithms that know it.  One that is swept must be known to all.
    """
    kinds = grid.get("algorithm.kind", [])
    if len(kinds) < 2:
        return values
    known = [algorithm_keys(kind) for kind in kinds]
    others = frozenset[str]().union(*known) - algorithm_keys(values["algorithm.kind"])
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
    if start == "mp" or isinstance(start, PropagatedStart):
        start = (start, start == "mp" and algorithm.trade_off, algorithm.confidence)
    elif start in ("hello", "known"):
        start = "own"  # they differ in what agents know of one another, not in the models
    return scenario.problem_seed, scenario.task, scenario.graph, start


def _refuse_duplicates(runs: list[PlannedRun], plugin: Plugin | None) -> None:
    """Two combinations that mean the same, such as 0.05 and 50 ms, are a mistake."""
    first: dict[str, PlannedRun] = {}
    for run in runs:
        other = first.setdefault(digest(run.scenario, plugin), run)
        if other is not run:
            one, two = (_values_text(each) for each in (other, run))
            raise ScenarioError(f"--set: {one} and {two} are the same run; remove one of them")


def _values_text(run: PlannedRun) -> str:
    text = ", ".join(f"{key}={label(value)}" for key, value in run.values.items())
    return f"{text} (seed {run.scenario.seed})" if text else f"seed {run.scenario.seed}"
