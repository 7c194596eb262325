"""The scenario: everything that a run depends on, as a tree of validated values.

This module is the schema alone; ``files`` reads and writes the YAML.  The classes here say what
code can rely on; ``scenario_type`` makes the ones that files are checked against, from all kinds of
tasks, graphs, rules, losses, laws and metrics that there are.  Times are in seconds, rates per
second, sizes in bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
    create_model,
    model_validator,
)

from agents.parameters import Count, Probability, Strict, report
from simulator.scenario.algorithm import Algorithm, Baseline, algorithm_type, blocks
from simulator.scenario.choice import kind_of, one_of
from simulator.scenario.kinds import Graph, Kinds, Metric, Problems, Task
from simulator.scenario.laws import Law, factor_law, stay_law, time_law
from simulator.scenario.living import Availability, Cut, OnOff, Partition, Sites, Traced, overlaps
from simulator.scenario.places import BySite, geographic, with_column
from simulator.scenario.quantities import BytesPerSecond, PositiveSeconds

#: Samples a run by default; fewer where there are so many agents that measuring takes long.
DEFAULT_SAMPLES, FEW_SAMPLES, MANY_AGENTS = 200, 20, 50_000
MOST_SAMPLES = 1_000_000


# --- clock, network, computing ------------------------------------------------------------------
# Modes and kinds are compared on one scenario: hence keys of time and network that play no part
# in a mode (the clock in rounds, retransmit_after in gossip) or for a baseline are allowed there.
class Clock(Strict):
    """Poisson clocks, and whom an agent that wakes up contacts; no part in synchronous rounds."""

    rate: Law[Any]
    """Ticks a second of each agent."""
    peers: Literal["uniform", "weighted"] = "uniform"
    """Neighbours are chosen with equal chances, or in proportion to the weights."""


class GilbertElliott(Strict):
    """Bursty loss: each directed link is a two-state Markov chain in continuous time."""

    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    mean_good: PositiveSeconds
    """The mean time that a link stays good."""
    mean_bad: PositiveSeconds
    """The mean time that it stays bad."""
    drop_good: Probability = 0.0
    """The probability of loss while it is good."""
    drop_bad: Probability = 1.0
    """The probability of loss while it is bad."""


class RateDrop(Strict):
    """Every message is lost with the same probability, independently."""

    kind: Literal["rate"] = "rate"
    rate: Probability = 0.0
    """The probability that a message is lost."""


def _plain_is_rate(value: Any) -> Any:
    """``0.1`` stands for ``{kind: rate, rate: 0.1}``."""
    if isinstance(value, dict):
        return {"kind": "rate", **value}
    return value if isinstance(value, Strict) else {"kind": "rate", "rate": value}


_Drop = Annotated[RateDrop | GilbertElliott, Field(discriminator="kind")]
Drop = Annotated[_Drop, BeforeValidator(_plain_is_rate, json_schema_input_type=Probability | _Drop)]


#: A time after which something is done again, or never.
Timer = Annotated[
    Annotated[Literal["never"], Tag("name")] | Annotated[PositiveSeconds, Tag("time")],
    Discriminator(lambda value: "name" if value == "never" else "time"),
]


class Network(Strict):
    """What happens to a message on its way."""

    latency: Law[Any]
    """How long a message is under way."""
    drop: Drop = Field(default=0.0, validate_default=True)
    """The probability that a message is lost, or a law of bursts."""
    bandwidth: BytesPerSecond | None = None
    """Bytes per second of an agent's uplink; null is unlimited."""
    header: Annotated[int, Field(ge=0, le=10**9)] = 32
    """Bytes of a message beside its numbers, which have 8 each."""
    fifo: bool = False
    """Do messages on a link arrive in the order in which they were sent?"""
    retransmit_after: Timer = 1.0
    """In rounds, what has not arrived so long after it left the uplink is sent again; never waits
    for ever.  Gossip sends nothing again, and may have the key so that both modes can be compared
    on one scenario."""
    partitions: list[Cut] = Field(default=[])
    """Times in which the network is in several parts."""

    @model_validator(mode="after")
    def _one_after_another(self) -> Self:
        report([(f"partitions.{key}", what) for key, what in overlaps(self.partitions)])
        return self

    @property
    def timer(self) -> float:
        """``retransmit_after`` as a number: infinite for never."""
        return math.inf if self.retransmit_after == "never" else self.retransmit_after


class Compute(Strict):
    """How long one solve takes."""

    time: Law[Any]
    """How long a solve takes."""


# --- stop and record ----------------------------------------------------------------------------
_PERCENTAGE = r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?\s*%"


def read_level(value: Any) -> float | str:
    """A number, or a percentage in one spelling: ``1.0 %`` is ``1%``.

    A percentage stays text until the run knows what it is a percentage of: the number depends on
    the machine's arithmetic, and has no place in a scenario's hash.
    """
    text = value.strip() if isinstance(value, str) else None
    if text is not None and re.fullmatch(_PERCENTAGE, text):
        share = float(text[:-1])
        if share <= 100:
            return f"{int(share) if share.is_integer() else share}%"
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ValueError("must be a number, or a percentage of the start's value from 0% to 100%")


def percentage(level: str) -> float:
    """The share that ``1%`` stands for."""
    return float(level.removesuffix("%")) / 100


Level = Annotated[
    float | str,
    PlainValidator(read_level),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": rf"^\s*{_PERCENTAGE}\s*$", "examples": ["1%"]},
            ]
        }
    ),
]


class Stop(Strict):
    """The run ends at whichever comes first."""

    #: All metrics by kind.
    known: ClassVar[Mapping[str, type[Metric]]] = {}

    time: PositiveSeconds | None = None
    """The simulated time of the end, events at that instant included."""
    communications: Count | None = None
    """The number of messages; the event (in rounds: the round) that reaches it is the last."""
    metric: str | None = None
    """A metric that ends the run when it reaches ``below`` (or ``above``)."""
    below: Level | None = None
    """A number, or a percentage of the metric's value at the start of the run, like 1%."""
    above: float | None = None
    """A level from below, for metrics that grow, such as accuracy."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.time is None and self.communications is None:
            raise ValueError("a run needs a limit: time, communications, or both")
        metric = self.known.get(self.metric or "", Metric)
        level, other = ("above", "below") if metric.grows else ("below", "above")
        if self.metric is None:
            given = [key for key in ("below", "above") if getattr(self, key) is not None]
            report([(key, "needs a metric, e.g. metric: distance") for key in given])
        elif getattr(self, other) is not None:
            direction = "grows" if other == "below" else "shrinks"
            report([(other, f"{self.metric} {direction} as agents learn: use {level}")])
        elif getattr(self, level) is None:
            report([("metric", f"{self.metric} needs a level to stop at: {level}")])
        elif not metric.relative and isinstance(self.below, str):
            what = f"a share of {self.metric} at the start means nothing: give a number"
            report([("below", what)])
        return self


class Record(Strict):
    """When samples are taken: every so many seconds or communications, or so many in all.

    And what is kept besides.
    """

    every: PositiveSeconds | None = None
    """Seconds between samples."""
    every_communications: Count | None = None
    """Messages between samples."""
    samples: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """At least so many samples and at most twice as many, evenly in time, however long the run."""
    events: bool = False
    """Is the life of every message written to events.parquet?  It needs the extra events."""
    models: bool = False
    """Are the models of all samples written to history.npz?"""

    @model_validator(mode="after")
    def _one(self) -> Self:
        keys = ("every", "every_communications", "samples")
        given = [key for key in keys if getattr(self, key) is not None]
        if len(given) > 1:
            report([(given[1], f"give {given[0]} or {given[1]}, not both")])
        return self


Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Scenario(Strict):
    """A network of learning agents, fully described."""

    #: All that its keys may name, and the plugins that some of it comes from.
    kinds: ClassVar[Kinds] = Kinds()
    plugins: ClassVar[Any] = None
    algorithms: ClassVar[Mapping[str, type[Algorithm]]] = {}

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    """What the result is called; the file's name by default."""
    description: str = ""
    """What the scenario is about."""
    seed: Seed = 0
    """Everything random follows from it."""
    problem_seed: Seed | None = None
    """Data and graph come from this seed instead, so that many runs can share one problem."""
    engine: Literal["simpy", "compiled"] = "simpy"
    """simpy is the reference; compiled gives the same events, about 20 times faster."""
    task: Task
    graph: Graph
    algorithm: Algorithm
    clock: Clock
    network: Network
    compute: Compute
    availability: Availability | None = None
    sites: Sites | None = None
    """Where the agents are."""
    stop: Stop
    record: Record = Record()

    @classmethod
    def algorithm_keys(cls, kind: Any) -> frozenset[str]:
        """The keys that ``algorithm`` has where it is of this kind."""
        known = cls.algorithms.get(kind) if isinstance(kind, str) else None
        return frozenset() if known is None else frozenset(known.model_fields)

    @property
    def sampling(self) -> tuple[float | None, int]:
        """(seconds or None, communications) between samples."""
        record, stop = self.record, self.stop
        if record.samples is not None:
            return self._first_interval
        if record.every is not None or record.every_communications is not None:
            return record.every, record.every_communications or 0
        many = (self.task.count or 0) > MANY_AGENTS
        samples = FEW_SAMPLES if many else DEFAULT_SAMPLES
        if stop.time is not None:
            return stop.time / samples, 0
        assert stop.communications is not None
        return None, max(1, stop.communications // samples)

    @property
    def _first_interval(self) -> tuple[float | None, int]:
        """Where ``record.samples`` begins: a small part of a tick or of a round, doubled later."""
        if self.algorithm.mode == "async":
            scale = 1 / self.clock.rate.mean_value
        else:
            scale = self.network.latency.mean_value + self.compute.time.mean_value
            scale += self.network.header / (self.network.bandwidth or math.inf)
        return (scale / 50, 0) if scale > 0 else (None, 1)

    @model_validator(mode="before")
    @classmethod
    def _default_graph(cls, values: Any) -> Any:
        """The graph, or its kind, of the paper's section for the paper's tasks."""
        if not isinstance(values, dict):
            return values
        task, graph = values.get("task"), values.get("graph", {})
        kind = task.get("kind") if isinstance(task, dict) else None
        defaults = {kind_of(known): known.default_graph for known in cls.kinds.tasks}
        # Where the task itself is wrong, that is said, and not that a graph is missing too.
        default = defaults.get(str(kind), "gaussian_kernel")
        if default is None or not isinstance(graph, dict):
            return values
        return {**values, "graph": {"kind": default, **graph}}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        report(
            [(f"graph.{key}", what) for key, what in self.graph.problems(self.task)]
            + [(f"task.{key}", what) for key, what in self.task.problems()]
            + _rule_problems(self)
            + _stop_problems(self)
            + _round_problems(self)
            + _living_problems(self)
            + _record_problems(self)
        )
        return self


def _default(metric: type[Metric]) -> Metric:
    """A metric with its default parameters."""
    return metric.model_construct(kind=kind_of(metric))


def _rule_problems(scenario: Scenario) -> Problems:
    """Rules that can't do with the task's loss; budgets that must not be forgotten."""
    private = getattr(scenario.algorithm, "privacy", None) is not None
    if private and getattr(scenario.availability, "forget", False):
        what = "an agent that forgets what it has spent would spend its budget again"
        return [("availability.forget", f"{what}; with privacy it must be false")]
    rule, loss = scenario.algorithm.rule, getattr(scenario.task, "loss", None)
    if rule is None or loss is None or not rule.smooth_only or loss.curvature is not None:
        return []
    what = f"{rule.kind} needs a loss without kinks, like logistic or quadratic (got {loss.kind})"
    return [("algorithm.kind", what)]


def _stop_problems(scenario: Scenario) -> Problems:
    """Metrics that cannot be measured on the task, or mean nothing where nobody sends."""
    stop, algorithm = scenario.stop, scenario.algorithm
    if stop.metric is None:
        return []
    if isinstance(algorithm, Baseline):
        allowed = [kind for kind, metric in stop.known.items() if metric.of_baselines]
        if stop.metric not in allowed:
            what = f"{algorithm.kind} has no {stop.metric}; allowed: {', '.join(allowed)}"
            return [("stop.metric", what)]
        if isinstance(stop.below, str):
            what = f"{algorithm.kind} has one sample and no start to take {stop.below} of"
            return [("stop.below", f"{what}; give a number")]
    problems = _default(stop.known[stop.metric]).problems(scenario.task)
    return [("stop.metric", what) for _, what in problems]


def _round_problems(scenario: Scenario) -> Problems:
    """Synchronous rounds that would never end, or take no time at all."""
    network, algorithm = scenario.network, scenario.algorithm
    if algorithm.mode != "sync":
        return []
    problems = []
    drop = network.drop
    if isinstance(drop, RateDrop):
        least = most = drop.rate
    else:
        least, most = sorted((drop.drop_good, drop.drop_bad))
    if least == 1:
        what = "every message is lost, so a synchronous round never ends; must be less than 1"
        problems.append(("network.drop", what))
    stop, longest = scenario.stop, _longest_round(scenario)
    if longest == 0 and stop.communications is None:
        what = (
            "synchronous rounds without latency, bandwidth limit or computing time take no time, "
            "so that the clock stands still; give one of them, or stop.communications"
        )
        problems.append(("algorithm.mode", what))
    elif stop.time is not None and stop.communications is None and stands_still(longest, stop.time):
        what = (
            f"a synchronous round takes hardly ever more than {longest:.3g} s, by which the clock "
            f"cannot advance up to stop.time, {stop.time:g} s; make rounds longer, or the run "
            "shorter, or give stop.communications"
        )
        problems.append(("algorithm.mode", what))
    after = network.timer
    if most > 0 and math.isinf(after):
        what = "what is lost must be sent again, or a round never ends: give a time"
        problems.append(("network.retransmit_after", what))
    elif stands_still(after, stop.time or longest):
        what = (
            f"{after:g} s is so short that the clock cannot advance by it after "
            f"{stop.time or longest:g} s, and lost messages would be sent again for ever"
        )
        problems.append(("network.retransmit_after", what))
    return problems


def _living_problems(scenario: Scenario) -> Problems:
    """Comings and goings with which a run would never end, and sites that nobody knows."""
    network, stop, availability = scenario.network, scenario.stop, scenario.availability
    problems = []
    if scenario.algorithm.mode == "sync" and math.isinf(network.timer):
        for key, given in (("availability", availability), ("partitions", network.partitions)):
            if given:
                what = f"what is lost must be sent again, or a round never ends: {key} needs a time"
                problems.append(("network.retransmit_after", what))
    if isinstance(availability, OnOff):
        for name in ("on", "off"):
            law = getattr(availability, name)
            if stop.time is not None and stands_still(law.mean_value, stop.time):
                what = f"so short that the clock cannot advance by it after {stop.time:g} s"
                problems.append((f"availability.{name}", what))
    elif availability is not None and stop.time is None and scenario.algorithm.mode == "async":
        what = "with a trace all agents may be off for ever: give stop.time as well"
        problems.append(("availability.kind", what))
    if isinstance(network.latency, BySite) and scenario.sites is None:
        problems.append(("network.latency", "needs sites, e.g. sites: {column: region}"))
    for k, cut in enumerate(network.partitions):
        if cut.groups == "by site" and scenario.sites is None:
            what = "needs sites, e.g. sites: {random: 5}"
            problems.append((f"network.partitions.{k}.groups", what))
    return problems


def stands_still(step: float, now: float) -> bool:
    """Is ``now + step`` the same number as ``now``?"""
    return now + step == now


def _longest_round(scenario: Scenario) -> float:
    """What a round hardly ever exceeds: all its parts at their rare values, nothing lost."""
    network, task = scenario.network, scenario.task
    longest = 0.0
    for law in (network.latency, scenario.compute.time):
        factors = [getattr(law, "per_agent", None), getattr(law, "per_link", None)]
        longest += law.rare_value * math.prod(f.rare_value for f in factors if f is not None)
    if network.bandwidth is not None:
        # Agents send one message after another; of files nothing is known yet, so much is allowed.
        messages = MANY_AGENTS if task.count is None else task.count
        numbers = MANY_AGENTS if task.numbers is None else task.numbers
        longest += messages * (network.header + 4 * 8 * numbers) / network.bandwidth
    return longest


def _record_problems(scenario: Scenario) -> Problems:
    """Samples so frequent that they would fill the memory before the run ends."""
    stop, record = scenario.stop, scenario.record
    for key, every, limit in (
        ("every", record.every, stop.time),
        ("every_communications", record.every_communications, stop.communications),
    ):
        if every is not None and limit is not None and limit / every > MOST_SAMPLES:
            what = f"{limit:g}/{every:g} samples are too many; at most {MOST_SAMPLES:,} are allowed"
            return [(f"record.{key}", what)]
    return []


# --- the schema that files are checked against ---------------------------------------------------
def _named(value: Any) -> Any:
    """``hinge`` stands for ``{kind: hinge}``."""
    return {"kind": value} if isinstance(value, str) else value


def _words(words: Iterable[str]) -> Any:
    """The type of one of several words."""
    return Literal.__getitem__(tuple(words))


def _nameable(models: Sequence[type[Strict]]) -> Any:
    """The type of a block of one of several kinds, or of its kind alone."""
    choice = one_of(models)
    either: Any = _words(kind_of(model) for model in models) | choice
    return Annotated[choice, BeforeValidator(_named, json_schema_input_type=either)]


def _block(base: type[Strict], **fields: tuple[Any, Any]) -> Any:
    """A class like ``base`` with other types of some fields: (type, default)."""
    changed: dict[str, Any] = {
        name: (kind, Field(default=default, validate_default=True))
        for name, (kind, default) in fields.items()
    }
    model = create_model(base.__name__, __base__=base, **changed)
    model.__doc__ = base.__doc__
    return model


def _task_type(task: type[Task], loss: Any) -> type[Task]:
    """A task that may name any loss, if it names one at all."""
    field = task.model_fields.get("loss")
    if field is None:
        return task
    return _block(task, loss=(loss, field.default))


@cache
def scenario_type(kinds: Kinds, plugins: Any = None) -> type[Scenario]:
    """The class of scenarios whose keys may name all these kinds."""
    factors, own = factor_law(kinds.laws), factor_law(with_column(kinds.laws))
    times = time_law(with_column(kinds.laws), by_agent=own)
    far = geographic(factors)
    latencies = time_law(kinds.laws, by_agent=own, by_link=factors, more=far)
    known = blocks(kinds.rules)
    loss = _nameable(kinds.losses)
    tasks = one_of([_task_type(task, loss) for task in kinds.tasks])
    metrics = {kind_of(metric): metric for metric in kinds.metrics}
    stop = _block(Stop, metric=(_words(metrics) | None, None))
    stop.known = metrics
    zero = {"kind": "constant", "value": 0.0}
    model: type[Scenario] = create_model(
        "Scenario",
        __base__=Scenario,
        task=(tasks, Field(description="Who has which data.")),
        graph=(one_of(kinds.graphs), Field(description="Who knows whom.")),
        algorithm=_field(algorithm_type(known), {"kind": "mp"}, "What the agents compute."),
        clock=_field(
            _block(Clock, rate=(own, 1.0)),
            {},
            "When agents wake up.",
        ),
        network=_field(
            _block(Network, latency=(latencies, zero), partitions=(list[Partition], [])),
            {},
            "What happens to messages.",
        ),
        compute=_field(
            _block(Compute, time=(times, zero)),
            {},
            "How long agents compute.",
        ),
        availability=_field(
            one_of([_on_off(kinds), Traced]) | None, None, "When agents are switched on and off."
        ),
        stop=(stop, Field(description="When the run ends.")),
        record=_field(_record_type(kinds), {}, "When samples are taken."),
    )
    model.__doc__ = Scenario.__doc__
    model.kinds, model.plugins, model.algorithms = kinds, plugins, known
    return model


def _on_off(kinds: Kinds) -> Any:
    stays = stay_law(kinds.laws)
    fields: dict[str, Any] = {
        "on": (stays, Field(description="How long an agent stays on.")),
        "off": (stays, Field(description="How long it stays off.")),
    }
    model = create_model("OnOff", __base__=OnOff, **fields)
    model.__doc__ = OnOff.__doc__
    return model


def _record_type(kinds: Kinds) -> Any:
    """With a key ``metrics`` where there are metrics that are not always measured."""
    more = [metric for metric in kinds.metrics if not metric.always]
    if not more:
        return Record
    item: Any = _nameable(more)
    fields: dict[str, Any] = {
        "metrics": (list[item], Field(default=[], description="Metrics to measure as well."))
    }
    return create_model("Record", __base__=Record, **fields)


def _field(kind: Any, default: Any, text: str) -> Any:
    return (kind, Field(default=default, validate_default=True, description=text))
