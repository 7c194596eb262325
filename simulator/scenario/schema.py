"""The scenario: everything that a run depends on, as a tree of validated values.

This module is the schema alone; ``files`` reads and writes the YAML.  The classes here say what
code can rely on; ``scenario_type`` makes the ones that files are checked against, from all kinds of
tasks, graphs, rules, losses, laws and metrics that there are.  Times are in seconds, rates per
second, sizes in bytes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from agents.parameters import Positive, Strict, report
from agents.protocols import protocol_of
from simulator.scenario.algorithm import Algorithm, algorithm_type, blocks
from simulator.scenario.changes import Stream
from simulator.scenario.consistency import problems_of
from simulator.scenario.geography import ByDistance, BySite, Column, Sites
from simulator.scenario.kinds import Graph, Kinds, Task, blaming, kind_of, one_of
from simulator.scenario.laws import Constant, Empirical, Law
from simulator.scenario.network import (
    Clock,
    Compute,
    Network,
    OnOff,
    Partition,
    Rounds,
    Traced,
)
from simulator.scenario.quantities import PositiveSeconds, Seconds
from simulator.scenario.stopping import (
    DEFAULT_SAMPLES,
    FEW_SAMPLES,
    MANY_AGENTS,
    Record,
    Stop,
)

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
    rounds: Rounds = Rounds()
    """For whom agents wait in synchronous rounds."""
    compute: Compute
    stream: Stream | None = None
    availability: OnOff | Traced | None = None
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
    def peers(self) -> str:
        """``clock.peers``, or what it is by default."""
        rule, algorithm = self.algorithm.rule, self.algorithm
        to_all = rule is not None and protocol_of(rule, algorithm.protocol).tells_all
        return self.clock.peers or ("all" if to_all else "uniform")

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
        with blaming(self.plugins):  # here, or what a plugin raises would pass for its finding
            problems = problems_of(self)
        report(problems)
        return self


# --- the schema that files are checked against ---------------------------------------------------
_PER_AGENT = "A factor of the (sending) agent that multiplies the time: what a straggler is."
_PER_LINK = "A factor of the undirected link that multiplies the time: slowness that stays."
_ONLY = "The metrics to measure, where some cost too much; null is all that there are."
_GAPS = "The time between two points of an agent."
_LASTS = "How long a factor lasts, in the mean, until it is drawn anew; null is for ever."


@cache
def scenario_type(kinds: Kinds, plugins: Any = None) -> type[Scenario]:
    """The class of scenarios whose keys may name all these kinds."""
    # Numbers of agents may be in a column of their file, those of links may not.
    laws, of_agents = kinds.laws, [*kinds.laws, Column]
    factors = _above_zero(_laws(laws, Positive, "Factor"), Positive)
    own = _above_zero(_laws(of_agents, Positive, "Factor"), Positive)
    stays = _above_zero(_laws(laws, PositiveSeconds, "Stay"), PositiveSeconds)
    one, zero = ({"kind": "constant", "value": value} for value in (1.0, 0.0))
    agent = {"per_agent": _key(_slowness(of_agents) | None, None, _PER_AGENT)}
    link = {**agent, "per_link": _key(_slowness(laws) | None, None, _PER_LINK)}
    far = {**link, "jitter": _key(Annotated[factors, AfterValidator(_is_fair)], one)}
    times = _plain_or(_laws(of_agents, Seconds, "Time", **agent), Seconds)
    places = _laws([BySite, ByDistance], Seconds, "Latency", **far)
    latencies = _plain_or([*_laws(laws, Seconds, "Latency", **link), *places], Seconds)

    loss, known = _nameable(kinds.losses), blocks(kinds.rules)
    metrics = {kind_of(metric): metric for metric in kinds.metrics}
    stop = _block(Stop, metric=_key(_words(metrics) | None, None))
    stop.known = metrics
    on = _key(stays, ..., "How long an agent stays on.")
    on_off = _block(OnOff, on=on, off=_key(stays, ..., "How long it stays off."))
    network = _block(Network, latency=_key(latencies, zero), partitions=_key(list[Partition], []))
    record = _block(Record, only=_key(list[_words(metrics)] | None, None, _ONLY))  # type: ignore[misc]
    if asked := [metric for metric in kinds.metrics if not metric.always]:
        what = "Metrics to measure as well."
        record = _block(record, "Record", metrics=_key(list[_nameable(asked)], [], what))  # type: ignore[misc]
    model: type[Scenario] = _block(
        Scenario,
        task=_key(one_of([_task(each, loss) for each in kinds.tasks]), ..., "Who has which data."),
        graph=_key(one_of(kinds.graphs), ..., "Who knows whom."),
        algorithm=_key(algorithm_type(known), {"kind": "mp"}, "What the agents compute."),
        clock=_key(_block(Clock, rate=_key(own, 1.0)), {}, "When agents wake up."),
        network=_key(network, {}, "What happens to messages."),
        compute=_key(_block(Compute, time=_key(times, zero)), {}, "How long agents compute."),
        stream=_key(
            _block(Stream, gaps=_key(stays | None, None, _GAPS)) | None,
            None,
            "When points arrive; by default all are there at first.",
        ),
        availability=_key(
            one_of([on_off, Traced]) | None, None, "When agents are switched on and off."
        ),
        stop=_key(stop, ..., "When the run ends."),
        record=_key(record, {}, "When samples are taken."),
    )
    model.kinds, model.plugins, model.algorithms = kinds, plugins, known
    return model


def _key(kind: Any, default: Any, text: str | None = None) -> Any:
    """The type of a key, its default (… for none), and what it is."""
    return (kind, Field(default=default, validate_default=True, description=text))


def _block(base: type[Strict], name: str = "", **keys: Any) -> Any:
    """A class like ``base`` with other types of some keys, or with more of them."""
    model = create_model(name or base.__name__, __base__=base, **keys)
    model.__doc__ = inspect.getdoc(base)
    return model


def _task(task: type[Task], loss: Any) -> type[Task]:
    """A task that may name any loss, if it names one at all."""
    field = task.model_fields.get("loss")
    return task if field is None else _block(task, loss=_key(loss, field.default))


def _words(words: Iterable[str]) -> Any:
    """The type of one of several words."""
    return Literal.__getitem__(tuple(words))


def _nameable(models: Sequence[type[Strict]]) -> Any:
    """The type of a block of one of several kinds, or of its kind alone: ``hinge``."""
    choice = one_of(models)
    either: Any = _words(kind_of(model) for model in models) | choice

    def named(value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    return Annotated[choice, BeforeValidator(named, json_schema_input_type=either)]


# --- laws -----------------------------------------------------------------------------------------
def _laws(laws: Iterable[Any], numbers: Any, name: str, **keys: Any) -> list[Any]:
    """The laws of such numbers, with more keys; ``name`` tells them apart in the schema."""
    return [_block(law[numbers], f"{law.__name__}{name}", **keys) for law in laws]


def _plain_or(models: Sequence[Any], numbers: Any) -> Any:
    """The type of a law, or of a plain number: ``50 ms`` is ``{kind: constant, value: 50 ms}``."""
    choice = one_of(models)

    def constant(value: Any) -> Any:
        return value if isinstance(value, dict | Law) else {"kind": "constant", "value": value}

    return Annotated[choice, BeforeValidator(constant, json_schema_input_type=numbers | choice)]


def _above_zero(models: Sequence[Any], numbers: Any) -> Any:
    """The same, of numbers above 0."""

    def no_zero(law: Law[Any]) -> Law[Any]:
        if isinstance(law, Empirical) and not law.values().all():
            raise ValueError(f"{law.file.name} holds a 0; must be numbers greater than 0")
        return law

    return Annotated[_plain_or(models, numbers), AfterValidator(no_zero)]


def _slowness(laws: Iterable[Any]) -> Any:
    """The type of a law of factors, which may last for a while only where they are drawn."""
    lasts = {"lasts": _key(PositiveSeconds | None, None, _LASTS)}
    drawn = {law: {} if law in (Constant, Column) else lasts for law in laws}
    models = [_laws([law], Positive, "Slowness", **keys)[0] for law, keys in drawn.items()]
    return _above_zero(models, Positive)


def _is_fair(law: Law[Any]) -> Law[Any]:
    if abs(law.mean_value - 1.0) > 1e-9:
        raise ValueError(f"must have the mean 1 (got {law.mean_value:g})")
    return law
