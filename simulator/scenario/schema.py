"""The scenario: everything that a run depends on, as a tree of validated values.

This module is the schema alone; ``scenario_file.py`` reads and writes the YAML.
Times are in seconds, rates per second, sizes in bytes.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from simulator.scenario.algorithm import (
    ALGORITHMS,
    Algorithm,
    Baseline,
    GradientSteps,
    NormalStart,
    PropagatedStart,
    Propagation,
)
from simulator.scenario.laws import RateLaw, TimeLaw
from simulator.scenario.problem import (
    AngularKernel,
    Files,
    GaussianKernel,
    Graph,
    LinearClassification,
    MeanEstimation,
    NearestNeighbours,
    Task,
)
from simulator.scenario.quantities import (
    BytesPerSecond,
    Count,
    PositiveSeconds,
    Probability,
    Strict,
    report,
)

__all__ = [
    "BUILT_IN",
    "GradientSteps",
    "MetricName",
    "NormalStart",
    "PropagatedStart",
    "Scenario",
    "Stop",
    "percentage",
    "read_level",
]

BUILT_IN = tuple(ALGORITHMS)
#: The losses of classifiers, whose accuracy is measured on test points.
CLASSIFIERS = ("hinge", "logistic")
MetricName = Literal["objective", "gap", "distance", "l2_error", "accuracy", "staleness"]
#: Samples a run by default; fewer where there are so many agents that measuring takes long.
DEFAULT_SAMPLES, FEW_SAMPLES, MANY_AGENTS = 200, 20, 50_000
MOST_SAMPLES = 1_000_000


# --- clock, network, computing ------------------------------------------------------------------
# Modes and kinds are compared on one scenario: hence keys of time and network that play no part
# in a mode (the clock in rounds, retransmit_after in gossip) or for a baseline are allowed there.
class Clock(Strict):
    """Poisson clocks, and whom an agent that wakes up contacts; no part in synchronous rounds."""

    rate: RateLaw = Field(default=1.0, validate_default=True)
    peers: Literal["uniform", "weighted"] = "uniform"


class GilbertElliott(Strict):
    """Bursty loss: each directed link is a two-state Markov chain in continuous time."""

    kind: Literal["gilbert_elliott"]
    mean_good: PositiveSeconds
    mean_bad: PositiveSeconds
    drop_good: Probability = 0.0
    drop_bad: Probability = 1.0


class RateLoss(Strict):
    """Every message is lost with the same probability, independently."""

    kind: Literal["rate"] = "rate"
    rate: Probability = 0.0


def _plain_is_rate(value: Any) -> Any:
    """``0.1`` stands for ``{kind: rate, rate: 0.1}``."""
    if isinstance(value, dict):
        return {"kind": "rate", **value}
    return value if isinstance(value, Strict) else {"kind": "rate", "rate": value}


_Loss = Annotated[RateLoss | GilbertElliott, Field(discriminator="kind")]
Loss = Annotated[_Loss, BeforeValidator(_plain_is_rate, json_schema_input_type=Probability | _Loss)]


class Network(Strict):
    """What happens to a message on its way."""

    latency: TimeLaw = Field(default=0.0, validate_default=True)
    drop: Loss = Field(default=0.0, validate_default=True)
    bandwidth: BytesPerSecond | None = None
    """Bytes per second of an agent's uplink; null is unlimited."""
    header: Annotated[int, Field(ge=0, le=10**9)] = 32
    fifo: bool = False
    retransmit_after: PositiveSeconds = 1.0
    """A lost message of a round is sent again so long after it left the uplink; gossip sends
    nothing again, and may have the key so that both modes can be compared on one scenario."""


class Compute(Strict):
    """How long one solve takes."""

    time: TimeLaw = Field(default=0.0, validate_default=True)


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

    time: PositiveSeconds | None = None
    communications: Count | None = None
    metric: MetricName | None = None
    below: Level | None = None
    """A number, or a percentage of the metric's value at the start of the run, like 1%."""
    above: float | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.time is None and self.communications is None:
            raise ValueError("a run needs a limit: time, communications, or both")
        level = "above" if self.metric == "accuracy" else "below"
        other = "below" if self.metric == "accuracy" else "above"
        if self.metric is None:
            given = [key for key in ("below", "above") if getattr(self, key) is not None]
            report([(key, "needs a metric, e.g. metric: distance") for key in given])
        elif getattr(self, other) is not None:
            direction = "grows" if other == "below" else "shrinks"
            report([(other, f"{self.metric} {direction} as agents learn: use {level}")])
        elif getattr(self, level) is None:
            report([("metric", f"{self.metric} needs a level to stop at: {level}")])
        elif self.metric == "staleness" and isinstance(self.below, str):
            report([("below", "staleness is 0 at the start: give a number of seconds")])
        return self


class Record(Strict):
    """When samples are taken: every so many seconds, or every so many communications."""

    every: PositiveSeconds | None = None
    every_communications: Count | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.every is not None and self.every_communications is not None:
            report([("every_communications", "give every or every_communications, not both")])
        return self


Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Scenario(Strict):
    """A network of learning agents, fully described."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    description: str = ""
    seed: Seed = 0
    problem_seed: Seed | None = None
    """Data and graph come from this seed instead, so that many runs can share one problem."""
    engine: Literal["simpy", "compiled"] = "simpy"
    """simpy is the reference; compiled gives the same, 20 times faster, for mp and admm."""
    task: Task
    graph: Graph
    algorithm: Algorithm = Propagation()
    clock: Clock = Clock()
    network: Network = Network()
    compute: Compute = Compute()
    stop: Stop
    record: Record = Record()

    @property
    def sampling(self) -> tuple[float | None, int]:
        """(seconds or None, communications) between samples."""
        record, stop = self.record, self.stop
        if record.every is not None or record.every_communications is not None:
            return record.every, record.every_communications or 0
        many = not isinstance(self.task, Files) and self.task.agents > MANY_AGENTS
        samples = FEW_SAMPLES if many else DEFAULT_SAMPLES
        if stop.time is not None:
            return stop.time / samples, 0
        assert stop.communications is not None
        return None, max(1, stop.communications // samples)

    @model_validator(mode="before")
    @classmethod
    def _default_graph(cls, values: Any) -> Any:
        """The graph, or its kind, of the paper's section for the paper's tasks."""
        if not isinstance(values, dict):
            return values
        task, graph = values.get("task"), values.get("graph", {})
        task_kind = task.get("kind") if isinstance(task, dict) else None
        if task_kind == "files" or not isinstance(graph, dict):
            return values
        angular = task_kind == "linear_classification"
        kind = "angular_kernel" if angular else "gaussian_kernel"
        return {**values, "graph": {"kind": kind, **graph}}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        report(
            _graph_problems(self.task, self.graph)
            + _test_problems(self.task)
            + _stop_problems(self)
            + _round_problems(self)
            + _record_problems(self)
        )
        return self


def _graph_problems(task: Task, graph: Graph) -> list[tuple[str, str]]:
    """Graphs that are built on vectors which the task does not have."""
    if not isinstance(graph, GaussianKernel | AngularKernel | NearestNeighbours):
        return []
    if isinstance(task, Files):
        what = f"graph.kind {graph.kind} needs the agents' auxiliary vectors: give task.vectors"
        return [("task", what)] if task.vectors is None else []
    problems = []
    angular = isinstance(graph, AngularKernel)
    key = "graph.kind"
    if isinstance(graph, NearestNeighbours):
        angular = isinstance(task, LinearClassification)
        if graph.metric is not None:
            angular, key = graph.metric == "angular", "graph.metric"
        if graph.k >= task.agents:
            what = f"must be less than the number of agents, {task.agents} (got {graph.k})"
            problems.append(("graph.k", what))
    if angular and isinstance(task, MeanEstimation):
        what = "mean_estimation has points on two moons, whose angles mean nothing"
        problems.append((key, f"{what}; use gaussian_kernel, or knn with metric: euclidean"))
    if not angular and isinstance(task, LinearClassification):
        what = "linear_classification compares its agents by the angle of their targets"
        problems.append((key, f"{what}; use angular_kernel, or knn with metric: angular"))
    return problems


def _test_problems(task: Task) -> list[tuple[str, str]]:
    """Test points where nothing is measured on them."""
    if isinstance(task, Files) and task.test is not None and task.loss not in CLASSIFIERS:
        what = f"test points are for the accuracy of classifiers (loss {' or '.join(CLASSIFIERS)})"
        return [("task.test", f"{what}, and the {task.loss} loss has none; remove it")]
    return []


def _stop_problems(scenario: Scenario) -> list[tuple[str, str]]:
    """Metrics that cannot be measured on the task, or mean nothing where nobody sends."""
    task, stop, algorithm = scenario.task, scenario.stop, scenario.algorithm
    if isinstance(algorithm, Baseline) and stop.metric is not None:
        if stop.metric not in ("l2_error", "accuracy"):
            what = f"{algorithm.kind} has no {stop.metric}; allowed: l2_error, accuracy"
            return [("stop.metric", what)]
        if isinstance(stop.below, str):
            what = f"{algorithm.kind} has one sample and no start to take {stop.below} of"
            return [("stop.below", f"{what}; give a number")]
    without_test = isinstance(task, MeanEstimation) or (isinstance(task, Files) and not task.test)
    if stop.metric == "accuracy" and without_test:
        hint = ": give task.test" if isinstance(task, Files) else f", and {task.kind} has none"
        return [("stop.metric", f"accuracy needs test points{hint}")]
    if stop.metric == "l2_error" and isinstance(task, Files) and task.targets is None:
        return [("stop.metric", "l2_error needs the true models: give task.targets")]
    return []


def _round_problems(scenario: Scenario) -> list[tuple[str, str]]:
    """Synchronous rounds that would never end, or take no time at all."""
    network, algorithm = scenario.network, scenario.algorithm
    if algorithm.mode != "sync":
        return []
    problems = []
    drop = network.drop
    if isinstance(drop, RateLoss):
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
    after = network.retransmit_after
    if most > 0 and stands_still(after, stop.time or longest):
        what = (
            f"{after:g} s is so short that the clock cannot advance by it after "
            f"{stop.time or longest:g} s, and lost messages would be sent again for ever"
        )
        problems.append(("network.retransmit_after", what))
    return problems


def stands_still(step: float, now: float) -> bool:
    """Is ``now + step`` the same number as ``now``?"""
    return now + step == now


def _longest_round(scenario: Scenario) -> float:
    """What a round hardly ever exceeds: all its parts at their rare values, nothing lost."""
    network, task = scenario.network, scenario.task
    longest = 0.0
    for law in (network.latency, scenario.compute.time):
        factor = 1.0 if law.per_agent is None else law.per_agent.rare_value
        longest += law.rare_value * factor
    if network.bandwidth is not None:
        # Agents send one message after another; of files nothing is known yet, so much is allowed.
        messages = MANY_AGENTS if isinstance(task, Files) else task.agents
        numbers = task.dimension if isinstance(task, LinearClassification) else 1
        numbers = MANY_AGENTS if isinstance(task, Files) else numbers
        longest += messages * (network.header + 4 * 8 * numbers) / network.bandwidth
    return longest


def _record_problems(scenario: Scenario) -> list[tuple[str, str]]:
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
