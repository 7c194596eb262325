"""What is asked of a sweep or a comparison, by a file and by the settings beside it.

A sweep file says what ``--set`` and the other options say::

    base: moons.yaml                    # the scenario, relative to this file
    grid:                               # every combination is run …
      network.drop: [0, 0.2, 0.5]
      network.latency.mean: [10 ms, 100 ms]
    seeds: 5                            # … with the scenario's seed and the 4 after it
    target: distance=1%                 # optional: a run stops where it reaches this, or none
    vary: {algorithm.mode: [async, sync]}    # optional: what `compare` compares
    tune:                               # optional: what a side may choose on other seeds
      sync: {network.retransmit_after: [100 ms, 300 ms, never]}
      budget: 1.25
    frontier: {async: {clock.rate: [1, 10]}, sync: {network.retransmit_after: [100 ms, 1 s]}}
    worlds:                             # optional: overrides with a name; $spread is a key of grid
      passing: {network.latency: {kind: lognormal, mean: 100 ms, sigma: $spread}}
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import yaml

from agents.machinery.compiling import JIT
from simulator.errors import ScenarioError
from simulator.scenario.files import Source, read_scenario_text, read_source
from simulator.scenario.kinds import kind_of
from simulator.scenario.mistakes import Mistake, did_you_mean, shown
from simulator.scenario.overrides import plain, repeated, with_ranges
from simulator.scenario.quantities import in_base_unit, read_level
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import plain_value, read_yaml
from simulator.shipped import found as shipped

Grid = dict[str, list[Any]]
#: A key and the values to try, by the side that has them.
Knobs = Mapping[str, tuple[str, list[Any]]]
#: More runs than this are a slip, unless --max-runs says that they are meant.
MOST_RUNS = 10_000
#: The target of runs that all go on to their limits.
NO_TARGET = "none"
#: A run has at least so many samples, evenly in time, and at most twice as many.
SAMPLES = 100
#: Where a comparison has a target and nobody says when to give up, it is after so many messages.
BUDGET_AN_AGENT = 20_000
#: A tuned side may send so many times the messages of its most frugal setting.
DEFAULT_BUDGET = 1.25
_FILE_KEYS = (
    "base",
    "name",
    "description",
    "grid",
    "seeds",
    "target",
    "vary",
    "tune",
    "frontier",
    "worlds",
)


@dataclass(frozen=True)
class TargetLevel:
    """What a run is to reach: ``distance=1%`` of its value at the start, or ``l2_error=0.02``."""

    metric: str
    level: float | str
    #: Does the metric grow as agents learn?
    grows: bool = False

    @classmethod
    def asked(cls, text: str | None, schema: type[Scenario]) -> TargetLevel | None:
        """What a request says; ``none`` is none."""
        return None if text is None or text == NO_TARGET else cls.parse(text, schema)

    @classmethod
    def parse(cls, text: str, schema: type[Scenario]) -> TargetLevel:
        """Read ``METRIC=LEVEL``, where LEVEL is a number, or a percentage of the start's value."""
        metric, _, level = (part.strip() for part in text.partition("="))
        place = f"--target {shown(text)[1:-1]}"
        known = {kind_of(each): each for each in schema.kinds.metrics}
        if metric not in known:
            hint = did_you_mean(metric, known)
            allowed = ", ".join([*known, NO_TARGET])
            raise ScenarioError(f"{place}: unknown metric;{hint} allowed: {allowed}")
        try:
            read = read_level(plain_value(level))
        except ValueError:
            read = -1.0
        if isinstance(read, float) and read < 0:
            raise ScenarioError(f"{place}: expected METRIC=LEVEL, like distance=1% or l2_error=0.1")
        if isinstance(read, str) and (known[metric].grows or not known[metric].relative):
            raise ScenarioError(f"{place}: give {metric} as a number, like {metric}=0.9")
        return cls(metric, read, known[metric].grows)

    @property
    def relative(self) -> bool:
        """Is it a percentage of the value at a run's own start?"""
        return isinstance(self.level, str)

    def overrides(self) -> dict[str, Any]:
        """As overrides of a scenario."""
        direction = "above" if self.grows else "below"
        return {"stop.metric": self.metric, f"stop.{direction}": self.level}


@dataclass(frozen=True)
class Request:
    """What the user asked for: a base scenario, a grid of values, seeds."""

    #: A scenario file, or its content as a dictionary.
    base: Path | Mapping[str, Any]
    grid: Grid = field(default_factory=dict)
    #: None: not asked for.
    seeds: int | None = None
    name: str | None = None
    target: str | None = None
    vary: tuple[str, list[Any]] | None = None
    #: What sides choose for themselves on held-out seeds, and how many messages that may cost.
    tune: Knobs = field(default_factory=dict)
    budget: float = DEFAULT_BUDGET
    #: What sides have chosen: the overrides of each combination.
    chosen: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    #: The values between which each side's frontier is drawn; None: none is.
    frontier: Knobs | None = None
    #: Overrides with a name; they may refer to ``$keys`` of the grid.
    worlds: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    #: Where each value of the sweep file's grid stands in it: ``key=value`` → place and block.
    places: Mapping[str, str] = field(default_factory=dict)
    max_runs: int = MOST_RUNS
    #: Overrides that nobody asked for, which everything asked for goes before.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Do runs go on until the target or the budget, whatever the base says of ``stop``?
    to_target: bool = False

    @cached_property
    def source(self) -> Source:
        """The base, read once."""
        return read_source(self.base)

    @property
    def asked(self) -> list[Any]:
        """All that tables depend on beside the runs and their order, ready for JSON."""
        knobs = [{**self.tune}, {**(self.frontier or {})}]
        return [self.target, self.vary, *knobs, self.budget if self.tune else None]

    @property
    def target_is_exact(self) -> bool:
        """Do runs notice their target at the update that reaches it, not at the next sample?"""
        return (self.target or "").partition("=")[0].strip() in ("distance", "l2_error")

    def names(self, block: str) -> bool:
        """Does anything beside the base set a key of this block, or the block itself?"""
        keys = [*self.grid, *(key for world in self.worlds.values() for key in world)]
        keys += [key for key, _ in [*self.tune.values(), *(self.frontier or {}).values()]]
        keys += [self.vary[0]] if self.vary else []
        return any(key == block or key.startswith(f"{block}.") for key in keys)

    def with_defaults(self) -> Request:
        """With the compiled engine, unless an engine is named, and samples enough for curves."""
        base, defaults = self.source.text.value, dict(self.defaults)
        if JIT and not self.names("engine") and isinstance(base, dict) and "engine" not in base:
            defaults["engine"] = "compiled"
        if not self.names("record"):
            defaults["record.samples"] = SAMPLES
        return replace(self, defaults=defaults)

    @property
    def where(self) -> str:
        """The base, for messages."""
        return str(self.base) if isinstance(self.base, Path) else "scenario"

    @property
    def runs(self) -> int:
        """How many runs that is, but for those that tune."""
        values = [*self.grid.values(), *([self.vary[1]] if self.vary else [])]
        return max(1, len(self.worlds)) * math.prod(map(len, values)) * (self.seeds or 1)

    def with_settings(self, settings: Iterable[tuple[str, Sequence[Any]]]) -> Request:
        """The same with more keys swept, or other values for a key."""
        grid, seen = dict(self.grid), set()
        for key, values in settings:
            if key in seen:
                raise ScenarioError(f"--set {key}: given twice")
            seen.add(key)
            grid[key] = plain_values(key, values)
        return replace(self, grid=grid)


def label(value: Any) -> Any:
    """A swept value for people: numbers and text as they are, the rest as a line of YAML."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        text = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
        return text.removesuffix("\n").removesuffix("\n...")
    return value


def side_names(values: Sequence[Any]) -> dict[Any, Any]:
    """What the sides of a comparison are called, by their labels.

    A block is called by its kind; blocks of one kind by the keys in which they differ as well.
    """
    blocks = [_block(value) for value in values]
    alone = len({str(block and block.get("kind")) for block in blocks}) == 1
    names = {}
    for value, block in zip(values, blocks, strict=True):
        if block is None:
            names[label(value)] = label(value)
            continue
        kind = block.get("kind")
        alike = [each for each in blocks if each is not None and each.get("kind") == kind]
        keys = dict.fromkeys(key for each in alike for key in each)
        told = [key for key in keys if len({(key in x, label(x.get(key))) for x in alike}) > 1]
        parts = [] if kind is None or (alone and any(key in block for key in told)) else [str(kind)]
        parts += [f"{key}={label(block[key])}" for key in told if key in block]
        names[label(value)] = ", ".join(parts) or label(value)
    return names


def _block(value: Any) -> dict[str, Any] | None:
    """A block, also one that was read from a table as its label."""
    if isinstance(value, str) and value.startswith("{"):
        value = yaml.safe_load(value)
    return value if isinstance(value, dict) else None


def tabled(value: Any) -> Any:
    """A swept value for a table: as ``label``, but times and bandwidths are numbers."""
    text = label(value)
    number = in_base_unit(text) if isinstance(text, str) else None
    return text if number is None else number


def plain_values(key: str, values: Iterable[Any]) -> list[Any]:
    """Values as a YAML file could have given them: NumPy's numbers become Python's."""
    if not isinstance(key, str):
        raise ScenarioError(f"{shown(key)}: not a key; expected one like network.drop")
    alone = isinstance(values, str | Mapping) or not isinstance(values, Iterable)
    try:
        return [plain(value) for value in ([values] if alone else values)]
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"--set {key}: {error}") from None


def from_one(name: str, number: Any) -> int:
    """A whole number from 1."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise ScenarioError(f"{name}: must be a whole number from 1 (got {shown(number)})")
    return int(number)


def knobs_of(given: Mapping[str, Mapping[str, Sequence[Any]]]) -> Knobs:
    """``{side: {key: values}}`` as knobs."""
    try:
        found = {}
        for side, block in given.items():
            ((key, values),) = block.items()
            found[str(side)] = (key, plain_values(key, values))
        return found
    except (AttributeError, ValueError):
        raise ScenarioError(
            "tune, knobs: must be one key with values for each side, like "
            f"{{'sync': {{'network.retransmit_after': ['1 s', 'never']}}}} (got {shown(given)})"
        ) from None


# --- writing ------------------------------------------------------------------------------------
def as_file(request: Request, name: str, folder: Path) -> str | None:
    """A sweep file for ``folder`` that asks for the same; None where no file has the base."""
    if not isinstance(request.base, Path):
        return None

    def blocks(knobs: Knobs) -> dict[str, Any]:
        return {side: {key: values} for side, (key, values) in knobs.items()}

    given = {
        "base": os.path.relpath(request.base.absolute(), folder.absolute()),
        "name": name,
        "grid": request.grid,
        "worlds": dict(request.worlds),
        "vary": request.vary and dict([request.vary]),
        "tune": {**blocks(request.tune), "budget": request.budget} if request.tune else None,
        "frontier": blocks(request.frontier) if request.frontier else None,
        "target": request.target,
        "seeds": request.seeds,
    }
    return yaml.safe_dump(
        {key: value for key, value in given.items() if value}, sort_keys=False, allow_unicode=True
    )


# --- reading ------------------------------------------------------------------------------------
def read_request(path: Path | Mapping[str, Any]) -> Request:
    """A sweep file, or a scenario to be swept, which may be a dictionary."""
    if not isinstance(path, Path):
        return Request(base=path)
    path = shipped(path)
    source = Source(path, read_yaml(read_scenario_text(path)))
    given = source.text.value
    if not isinstance(given, dict) or "task" in given or not {"base", "grid"} & given.keys():
        return Request(base=path)  # a scenario; whatever is wrong with it is said by load_scenario
    for block in ("grid", "vary"):
        if isinstance(given.get(block), dict):
            given[block] = {key: _ranged(values) for key, values in given[block].items()}
    found = _mistakes(given)
    if found or source.text.faults:
        raise source.error(found)
    places = {}
    swept = [(block, key) for block in ("grid", "vary") for key in given.get(block, {})]
    for block, key in swept:
        at = source.text.values[(block, key)]
        for index, value in enumerate(given[block][key]):
            position = source.text.values.get((block, key, index), at)
            here = f"{path}:{position.line}:{position.column}: {block}."
            places[f"{key}={label(value)}"] = here
    vary, frontier, tune = given.get("vary"), given.get("frontier"), dict(given.get("tune", {}))
    return Request(
        base=path.parent / given["base"],
        grid=given.get("grid", {}),
        seeds=given.get("seeds"),
        name=given.get("name", path.stem),
        target=given.get("target"),
        vary=None if vary is None else next(iter(vary.items())),
        budget=float(tune.pop("budget", DEFAULT_BUDGET)),
        tune=knobs_of(tune),
        frontier=None if frontier is None else knobs_of(frontier),
        worlds=given.get("worlds", {}),
        places=places,
    )


def _ranged(values: Any) -> Any:
    """A list, or a range, with the values of all ranges in it; what is wrong is said later."""
    try:
        ranged = with_ranges(values if isinstance(values, list) else [values])
    except ValueError:
        return values
    return ranged if isinstance(values, list) or ranged != [values] else values


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
        found += _block_mistakes((block,), given.get(block, {}))
    if isinstance(given.get("vary"), dict) and len(given["vary"]) != 1:
        found.append(Mistake(("vary",), f"must have one key (got {len(given['vary'])})"))
    return found + _tune_mistakes(given) + _world_mistakes(given)


def _block_mistakes(path: tuple[str, ...], values: Any) -> list[Mistake]:
    """What is wrong with keys and their lists of values."""
    if not isinstance(values, dict):
        return [Mistake(path, f"must be keys with lists of values (got {shown(values)})")]
    return [
        Mistake((*path, key), wrong)
        for key, items in values.items()
        if (wrong := wrong_values(items)) is not None
    ]


def _tune_mistakes(given: dict[str, Any]) -> list[Mistake]:
    """What is wrong with the knobs of sides."""
    found = []
    for block in ("tune", "frontier"):
        sides = given.get(block, {})
        if not isinstance(sides, dict):
            found.append(Mistake((block,), f"must be sides with a key each (got {shown(sides)})"))
            continue
        for side, knob in sides.items():
            if block == "tune" and side == "budget":
                if not budget_is_valid(knob):
                    what = f"must be a number from 1 (got {shown(knob)})"
                    found.append(Mistake((block, side), what))
            elif isinstance(knob, dict) and len(knob) != 1:
                found.append(Mistake((block, side), f"must have one key (got {len(knob)})"))
            else:
                found += _block_mistakes((block, side), knob)
    return found


def budget_is_valid(budget: Any) -> bool:
    """Is it a number from 1?"""
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    return number and 1 <= budget < math.inf


def _world_mistakes(given: dict[str, Any]) -> list[Mistake]:
    """What is wrong with worlds, and with the keys of the grid that only they use."""
    worlds, grid = given.get("worlds", {}), given.get("grid", {})
    if not isinstance(worlds, dict) or not all(isinstance(each, dict) for each in worlds.values()):
        return [Mistake(("worlds",), f"must be names with overrides (got {shown(worlds)})")]
    own = [key for key in grid if key.startswith("$")] if isinstance(grid, dict) else []
    used = set().union(*(_references(each) for each in worlds.values()))
    found = [
        Mistake(("grid", key), "no world refers to it", "key") for key in own if key not in used
    ]
    unknown = sorted(used.difference(own))
    if unknown:
        what = f"{unknown[0]} is no key of grid; those are: {', '.join(own) or 'none'}"
        found.append(Mistake(("worlds",), what))
    return found


def _references(value: Any) -> set[str]:
    """The ``$keys`` in a world's overrides."""
    if isinstance(value, dict):
        return set().union(*map(_references, value.values()))
    return {value} if isinstance(value, str) and value.startswith("$") else set()


def filled_in(value: Any, values: Mapping[str, Any]) -> Any:
    """Overrides of a world, with the values of ``$keys`` in their places."""
    if isinstance(value, dict):
        return {key: filled_in(item, values) for key, item in value.items()}
    return values[value] if isinstance(value, str) and value.startswith("$") else value


def wrong_values(values: Any) -> str | None:
    """What is wrong with the values of a swept key."""
    if not isinstance(values, list) or not values:
        return f"must be a list of one or more values (got {shown(values)})"
    for value in repeated(values):
        return f"the value {shown(value)} is given twice"
    return None
