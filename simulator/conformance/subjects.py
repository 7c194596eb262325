"""What is checked, one class in a small world that names it; checks, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from agents.machinery.discovery import kind_of
from agents.protocols import protocol_of, protocols_of
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import BUILT_IN, Plugins
from simulator.runs.scenarios import load_scenario
from simulator.scenario.kinds import BASES, Kinds, blaming
from simulator.scenario.laws import Law
from simulator.scenario.schema import Scenario

#: Few agents of whom some have no data, with delays longer than a tick.
SMALL: dict[str, Any] = {
    "name": "test",
    "task": {
        "kind": "linear_classification",
        "agents": 8,
        "dimension": 3,
        "samples": {"kind": "uniform", "low": 0, "high": 3},
        "test_points": 5,
        "loss": "logistic",
    },
    "graph": {"kind": "angular_kernel", "sigma": 1.0, "min_weight": 0.0},
    "algorithm": {"kind": "mp"},
    "network": {"latency": {"kind": "exponential", "mean": 0.4}},
    "stop": {"communications": 1},
}
#: How long a world is run, and how often it is looked at.
MESSAGES, EVERY = 400, 50
#: What parameters without a default are tried with, one for all.
TRIED = (0.1, 1, 3)


@dataclass(frozen=True, eq=False)
class Subject:
    """A class of one of the families, where it is used."""

    #: As in ``Kinds``, e.g. rules.
    family: str
    thing: type
    #: A short run; the thing's parameters are those that this scenario has.
    scenario: Scenario
    plugins: Plugins | None
    #: All that are checked together, this one too.
    everybody: list[Subject]

    @property
    def name(self) -> str:
        """``rule averaging``."""
        return f"{BASES[self.family].__name__.lower()} {kind_of(self.thing)}"

    @cached_property
    def instance(self) -> Any:
        """The thing with its parameters; of a rule the block ``algorithm``."""
        return _found(self.thing, self.scenario)


def subjects_of(
    kinds: Kinds, plugins: Plugins | None = None, scenarios: Sequence[Scenario] = ()
) -> list[Subject]:
    """Each class in the first of these scenarios that names it, or in a small world of our own."""
    found: list[Subject] = []
    for family in BASES:
        for thing in getattr(kinds, family):
            world = _world(family, thing, plugins, scenarios)
            found.append(Subject(family, thing, world, plugins, found))
    return found


def _world(
    family: str, thing: type, plugins: Plugins | None, scenarios: Sequence[Scenario]
) -> Scenario:
    for scenario in scenarios:
        if _found(thing, scenario) is not None:
            return shortened(scenario)
    name = f"{BASES[family].__name__.lower()} {kind_of(thing)}"
    if family == "protocols":
        return _followed(thing, name, plugins)
    needed = _without_default(family, thing)
    error: ScenarioError | None = None
    for value in TRIED if needed else TRIED[:1]:
        block = {"kind": kind_of(thing), **dict.fromkeys(needed, value)}
        try:
            return shortened(load_scenario(SMALL | _place(family, thing, block), plugins=plugins))
        except ScenarioError as wrong:
            error = wrong
    keys = f"its keys {', '.join(needed)} have no defaults" if needed else str(error)
    raise ScenarioError(f"{name}: {keys}; name a scenario that uses it: test SCENARIO --plugin …")


def _followed(protocol: type, name: str, plugins: Plugins | None) -> Scenario:
    """The world of a rule that follows a protocol."""
    rules = (BUILT_IN if plugins is None else plugins.kinds).rules
    for rule in rules:
        known = protocols_of(rule)
        if protocol in known.values():
            world = _world("rules", rule, plugins, ())
            first = next(iter(known.values())) is protocol
            chosen = None if first else kind_of(protocol)
            return load_scenario(world, {"algorithm.protocol": chosen}, plugins=plugins)
    what = f"write one with protocol = {protocol.__name__}"
    raise ScenarioError(f"{name}: no rule follows it; {what}")


def _place(family: str, thing: Any, block: dict[str, Any]) -> dict[str, Any]:
    """The parts of a scenario that make use of a block of this family."""
    match family:
        case "tasks":
            ring = {"kind": "networkx", "generator": "cycle_graph"}
            return {"task": block, "graph": {} if thing.default_graph else ring}
        case "graphs":
            samples = {"samples": {"kind": "constant", "value": 2}}
            block["allow_disconnected"] = True
            return {"task": SMALL["task"] | samples, "graph": block}
        case "rules":
            return {"algorithm": block}
        case "losses":
            task = SMALL["task"] | {"loss": block}
            return {"task": task, "algorithm": {"kind": "admm", "mu": 0.5}}
        case "laws":
            world: dict[str, Any] = {"network": {"latency": block}, "compute": {"time": block}}
            if thing.weighted is not Law.weighted:
                world["availability"] = {"kind": "on_off", "on": block, "off": block}
            return world
        case _:
            return {} if thing.always else {"record": {"metrics": [block]}}


def shortened(scenario: Scenario) -> Scenario:
    """The same, for some hundred messages, with all events."""
    record: dict[str, Any] = {"every_communications": EVERY}
    record["events"] = find_spec("pyarrow") is not None
    if metrics := getattr(scenario.record, "metrics", None):
        record["metrics"] = [metric.model_dump() for metric in metrics]
    stop = {"communications": MESSAGES}
    return load_scenario(scenario, {"engine": "simpy", "stop": stop, "record": record})


def _without_default(family: str, thing: Any) -> list[str]:
    """The keys that must be given."""
    fields = (thing.Parameters if family == "rules" else thing).model_fields
    return [n for n, field in fields.items() if field.get_default() is PydanticUndefined]


def _found(thing: type, scenario: Scenario) -> Any:
    """The first use of a class in a scenario; of a rule the block that names it."""
    rule = scenario.algorithm.rule
    if rule is not None and thing in (rule, protocol_of(rule, scenario.algorithm.protocol)):
        return scenario.algorithm
    return next((value for value in _values(scenario) if isinstance(value, thing)), None)


def _values(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _values(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)


# --- checks ---------------------------------------------------------------------------------------
OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not applicable"


class CheckError(Exception):
    """A check fails; the text says with what."""


class NotApplicableError(Exception):
    """A check has nothing to say of this kind; the text says why."""


@dataclass(frozen=True)
class Verdict:
    """What a check says of one kind."""

    #: ``rule averaging``.
    name: str
    check: str
    #: ok, failed or not applicable.
    outcome: str
    #: What was seen, or what is wrong.
    detail: str


@dataclass(frozen=True)
class Check:
    """A function that returns what it has seen, or raises one of the errors above."""

    name: str
    families: tuple[str, ...]
    function: Callable[[Subject], str]


#: All checks, in the order in which they are made.
CHECKS: list[Check] = []


def check(name: str, *families: str) -> Callable[[Callable[[Subject], str]], Callable[..., str]]:
    """Make a function a check of these families (of ``simulator.scenario.kinds.Kinds``)."""

    def register(function: Callable[[Subject], str]) -> Callable[..., str]:
        CHECKS.append(Check(name, families, function))
        return function

    return register


def examine(subjects: Iterable[Subject]) -> Iterator[Verdict]:
    """All verdicts, as they come; what raises is not tried further."""
    for subject in subjects:
        for each in CHECKS:
            if subject.family not in each.families:
                continue
            try:
                with blaming(subject.plugins):
                    outcome, detail = OK, each.function(subject)
            except NotApplicableError as error:
                outcome, detail = NOT_APPLICABLE, str(error)
            except CheckError as error:
                outcome, detail = FAILED, str(error)
            except SimulatorError as error:
                yield Verdict(subject.name, each.name, FAILED, f"{error} (the rest is not tried)")
                break
            yield Verdict(subject.name, each.name, outcome, detail)
