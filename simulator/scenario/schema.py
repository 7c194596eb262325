"""The scenario: everything that a run depends on, as a tree of validated values.

This module is the schema alone; ``files`` reads and writes the YAML.  The classes here say what
code can rely on; ``scenario_type`` makes the ones that files are checked against, from all kinds of
tasks, graphs, rules, losses, laws and metrics that there are.  Times are in seconds, rates per
second, sizes in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from agents.parameters import Positive, Strict, report
from simulator.scenario.algorithm import Algorithm, algorithm_type, blocks
from simulator.scenario.availability import Availability, OnOff, Sites, Traced
from simulator.scenario.consistency import problems_of
from simulator.scenario.kinds import Graph, Kinds, Task, blaming, kind_of, one_of
from simulator.scenario.laws import Empirical, Law
from simulator.scenario.network import Clock, Compute, Network, Partition
from simulator.scenario.places import geographic, with_column
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
        with blaming(self.plugins):  # here, or what a plugin raises would pass for its finding
            problems = problems_of(self)
        report(problems)
        return self


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


def _plain_is_constant(value: Any) -> Any:
    """``50 ms`` stands for ``{kind: constant, value: 50 ms}``."""
    if isinstance(value, dict | Law):
        return value
    return {"kind": "constant", "value": value}


def _holds_no_zero(law: Law[Any]) -> Law[Any]:
    if isinstance(law, Empirical) and not law.values().all():
        raise ValueError(f"{law.file.name} holds a 0; must be numbers greater than 0")
    return law


class Straggling(Strict):
    """What a law of times has beside its own keys."""

    per_agent: Law[Any] | None = None


class Lingering(Straggling):
    """What a law of latencies has beside its own keys."""

    per_link: Law[Any] | None = None


_PER_AGENT = "A fixed factor of the (sending) agent that multiplies the time: what a straggler is."
_PER_LINK = "A fixed factor of the undirected link that multiplies the time: slowness that stays."


def _above_zero(laws: Iterable[type[Law[Any]]], numbers: Any, name: str) -> Any:
    """The type of a number above 0, or of a law of such; ``name`` tells it apart in the schema."""
    made = []
    for law in laws:
        model = create_model(f"{law.__name__}{name}", __base__=law[numbers])  # type: ignore[index]
        model.__doc__ = law.__doc__
        made.append(model)
    choice = one_of(made)
    return Annotated[
        choice,
        AfterValidator(_holds_no_zero),
        BeforeValidator(_plain_is_constant, json_schema_input_type=numbers | choice),
    ]


def factor_law(laws: Iterable[type[Law[Any]]]) -> Any:
    """The type of a positive number per agent: a number for all of them, or a law over agents."""
    return _above_zero(laws, Positive, "Factor")


def stay_law(laws: Iterable[type[Law[Any]]]) -> Any:
    """The type of a stay: a time above 0, perhaps with a unit, or a law of such times."""
    return _above_zero(laws, PositiveSeconds, "Stay")


def time_law(
    laws: Iterable[type[Law[Any]]],
    *,
    by_agent: Any,
    by_link: Any = None,
    more: Iterable[type[Law[Any]]] = (),
) -> Any:
    """The type of a time: a number, perhaps with a unit, or a law; with factors per agent.

    ``by_agent`` and, of latencies, ``by_link`` are the types of the factors; ``more`` are laws
    whose scale is in seconds already.
    """
    fields: dict[str, Any] = {
        "per_agent": (by_agent | None, Field(default=None, description=_PER_AGENT))
    }
    base: type[Strict] = Straggling
    if by_link is not None:
        fields["per_link"] = (by_link | None, Field(default=None, description=_PER_LINK))
        base = Lingering
    suffix = "Latency" if by_link is not None else "Time"
    timed = []
    for law in [*laws, *more]:
        model = law if law in more else law[Seconds]  # type: ignore[index]
        made = create_model(f"{law.__name__}{suffix}", __base__=(base, model), **fields)
        made.__doc__ = law.__doc__
        timed.append(made)
    choice = one_of(timed)
    return Annotated[
        choice, BeforeValidator(_plain_is_constant, json_schema_input_type=Seconds | choice)
    ]
