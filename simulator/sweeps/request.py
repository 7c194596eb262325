"""What is asked of a sweep or a comparison, by a sweep file and by the settings beside it."""

from __future__ import annotations

import math
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
from simulator.scenario.files import Source, read_source
from simulator.scenario.kinds import kind_of
from simulator.scenario.mistakes import did_you_mean, shown
from simulator.scenario.overrides import plain, repeated
from simulator.scenario.quantities import in_base_unit, read_level
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import plain_value

Grid = Mapping[str, list[Any]]
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
#: The column of sides that have names of their own.
SIDE = "side"


# --- values ---------------------------------------------------------------------------------------
def label(value: Any) -> Any:
    """A swept value for people: numbers and text as they are, the rest as a line of YAML."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        text = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
        return text.removesuffix("\n").removesuffix("\n...")
    return value


def tabled(value: Any) -> Any:
    """A swept value for a table: as ``label``, but times and bandwidths are numbers."""
    text = label(value)
    number = in_base_unit(text) if isinstance(text, str) else None
    return text if number is None else number


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


def plain_values(key: str, values: Iterable[Any]) -> list[Any]:
    """Values as a YAML file could have given them: NumPy's numbers become Python's."""
    if not isinstance(key, str):
        raise ScenarioError(f"{shown(key)}: not a key; expected one like network.drop")
    alone = isinstance(values, str | Mapping) or not isinstance(values, Iterable)
    try:
        return [plain(value) for value in ([values] if alone else values)]
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"--set {key}: {error}") from None


def wrong_values(values: Any) -> str | None:
    """What is wrong with the values of a swept key."""
    if not isinstance(values, list) or not values:
        return f"must be a list of one or more values (got {shown(values)})"
    for value in repeated(values):
        return f"the value {shown(value)} is given twice"
    return None


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


def sided(sides: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same; ValueError if they can't be told apart."""
    if len(sides) < 2 or not all(re.fullmatch(r"[^{}:=,][^{}:=]*", name) for name in sides):
        raise ValueError("must be two or more names, without any of {}:=, with overrides")
    return sides


def sides_of(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Sides as Python gives them."""
    try:
        return sided({name: dict(plain(overrides)) for name, overrides in given.items()})
    except (AttributeError, TypeError, ValueError):
        raise ScenarioError(
            "sides: must be two or more names with overrides, like "
            f"{{'gossip': {{}}, 'rounds': {{'algorithm.mode': 'sync'}}}} (got {shown(given)})"
        ) from None


@dataclass(frozen=True)
class Budget:
    """How many messages a tuned side may send for its target.

    So many times those of its most frugal value or, where another side is named, of that side.
    """

    factor: float = 1.25
    of: str | None = None

    @classmethod
    def read(cls, given: Any) -> Budget:
        """``1.25``, or ``1.1 of async``."""
        factor, of = given, None
        if isinstance(given, str):
            text, _, of = (part.strip() for part in given.partition(" of "))
            try:
                factor = plain_value(text)
            except ValueError:
                of = ""
        number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if of == "" or not number or not (1 if of is None else 1e-9) <= factor < math.inf:
            what = "must be a number from 1, or one of another side's messages, like 1.1 of async"
            raise ValueError(what)
        return cls(float(factor), of)

    @property
    def given(self) -> float | str:
        """As it was given."""
        return self.factor if self.of is None else f"{self.factor:g} of {self.of}"


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


# --- the request ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Request:
    """What the user asked for: a base scenario, a grid of values, sides, seeds."""

    #: A scenario file, or its content as a dictionary.
    base: Path | Mapping[str, Any]
    grid: Grid = field(default_factory=dict)
    #: None: not asked for.
    seeds: int | None = None
    name: str | None = None
    target: str | None = None
    #: What is compared: a key and its values, or sides with a name and overrides of their own.
    vary: tuple[str, list[Any]] | None = None
    sides: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    #: What sides choose for themselves on held-out seeds, and how many messages that may cost.
    tune: Knobs = field(default_factory=dict)
    budget: Budget = Budget()
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
    def compared(self) -> tuple[str, list[Any]] | None:
        """The column of the sides, and their values in it."""
        return (SIDE, list(self.sides)) if self.sides else self.vary

    @property
    def side_names(self) -> list[str]:
        """What the sides are called."""
        return [str(name) for name in side_names((self.compared or ("", []))[1]).values()]

    @property
    def axes(self) -> dict[str, list[Any]]:
        """All that is swept and compared, with its values."""
        return {**self.grid, **(dict([self.compared]) if self.compared else {})}

    @property
    def asked(self) -> list[Any]:
        """All that tables depend on beside the runs and their order, ready for JSON."""
        knobs = [{**self.tune}, {**(self.frontier or {})}]
        named = [dict(self.sides)] if self.sides else []
        return [self.target, self.vary, *knobs, self.budget.given if self.tune else None, *named]

    @property
    def target_is_exact(self) -> bool:
        """Do runs notice their target at the update that reaches it, not at the next sample?"""
        return (self.target or "").partition("=")[0].strip() in ("distance", "l2_error")

    def names(self, block: str) -> bool:
        """Does anything beside the base set a key of this block, or the block itself?"""
        overrides = [*self.worlds.values(), *self.sides.values()]
        keys = [*self.axes, *(key for own in overrides for key in own)]
        keys += [key for key, _ in [*self.tune.values(), *(self.frontier or {}).values()]]
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
        return (
            max(1, len(self.worlds)) * math.prod(map(len, self.axes.values())) * (self.seeds or 1)
        )

    def with_settings(self, settings: Iterable[tuple[str, Sequence[Any]]]) -> Request:
        """The same with more keys swept, or other values for a key."""
        grid, seen = dict(self.grid), set()
        for key, values in settings:
            if key in seen:
                raise ScenarioError(f"--set {key}: given twice")
            seen.add(key)
            grid[key] = plain_values(key, values)
        return replace(self, grid=grid)
