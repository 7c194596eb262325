"""The scenario: everything that a run depends on, as a tree of validated values.

This module is the schema alone; ``scenario_file.py`` reads and writes the YAML.
Times are in seconds, rates per second, sizes in bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from simulator.laws import FactorLaw, RateLaw, TimeLaw
from simulator.quantities import (
    BytesPerSecond,
    Count,
    InputFile,
    NonNegative,
    Positive,
    PositiveSeconds,
    Probability,
    Seconds,
    Strict,
)

LossName = Literal["quadratic", "absolute", "hinge", "logistic"]
MetricName = Literal["objective", "gap", "distance", "l2_error", "accuracy", "staleness"]
BUILT_IN = ("mp", "admm", "solitary", "consensus")


# --- how many points an agent has ---------------------------------------------------------------
class ConfidenceWidth(Strict):
    """Section 5.1: c_i uniform around 1/2 with the given width, m_i = ceil(c_i · max)."""

    kind: Literal["confidence_width"] = "confidence_width"
    width: Probability = 1.0
    max: Count = 100


class UniformCount(Strict):
    """Section 5.2: m_i uniform on low … high, both included; 0 is an agent without data."""

    kind: Literal["uniform"]
    low: Annotated[int, Field(ge=0)] = 1
    high: Count = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) must not exceed high ({self.high})")
        return self


class FixedCount(Strict):
    """Every agent has ``value`` points."""

    kind: Literal["constant"]
    value: Count


Samples = Annotated[ConfidenceWidth | UniformCount | FixedCount, Field(discriminator="kind")]


# --- task ---------------------------------------------------------------------------------------
class MeanEstimation(Strict):
    """Section 5.1: agents on two moons estimate the mean +1 or −1 of their moon."""

    kind: Literal["mean_estimation"]
    agents: Count = 300
    noise: NonNegative = 0.05
    variance: Positive = 40.0
    samples: Samples = ConfidenceWidth()


class LinearClassification(Strict):
    """Section 5.2: linear separators whose targets lie in a 2-dimensional subspace."""

    kind: Literal["linear_classification"]
    agents: Count = 100
    dimension: Annotated[int, Field(ge=2)] = 50
    samples: Samples = UniformCount(kind="uniform")
    #: Law of a point: uniform on the cube [−1, 1]^p, in the unit ball, or on the unit sphere.
    points: Literal["cube", "ball", "sphere"] = "cube"
    flip: Probability = 0.05
    test_points: Count = 100
    #: Test labels are flipped too: "drawn from the same distribution as the training set".
    test_flip: bool = True
    loss: LossName = "hinge"
    ridge: Positive = 0.01


class Files(Strict):
    """The user's own data: CSV files with an agent column, features and a target."""

    kind: Literal["files"]
    train: InputFile
    test: InputFile | None = None
    #: One agent a line, in order; needed only where some agent has no training point.
    agents: InputFile | None = None
    #: Auxiliary vectors, one row an agent, for a kernel or nearest-neighbour graph.
    vectors: InputFile | None = None
    #: True models, one row an agent, where they are known (for l2_error).
    targets: InputFile | None = None
    agent: str = "agent"
    target: str = "y"
    #: Columns to use; all but the agent's and the target's by default; [] estimates a mean.
    features: list[str] | None = None
    loss: LossName = "quadratic"
    ridge: Positive = 0.01


Task = Annotated[MeanEstimation | LinearClassification | Files, Field(discriminator="kind")]


# --- graph --------------------------------------------------------------------------------------
class _Graph(Strict):
    allow_disconnected: bool = False


class GaussianKernel(_Graph):
    """W_ij = exp(−‖v_i − v_j‖² / 2σ²) on the auxiliary vectors; weights ≤ min_weight are dropped."""

    kind: Literal["gaussian_kernel"] = "gaussian_kernel"
    sigma: Positive = 0.1
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.0


class AngularKernel(_Graph):
    """W_ij = exp((cos φ_ij − 1) / σ), φ_ij the angle of the target models (or auxiliary vectors)."""

    kind: Literal["angular_kernel"] = "angular_kernel"
    sigma: Positive = 0.1
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.01


class NearestNeighbours(_Graph):
    """The k nearest by distance or angle, symmetrised by union; weights 1 or of the kernel."""

    kind: Literal["knn"]
    k: Count = 10
    #: By default angular for linear_classification, euclidean otherwise.
    metric: Literal["euclidean", "angular"] | None = None
    weights: Literal["unit", "kernel"] = "unit"
    sigma: Positive = 0.1


class NetworkxGraph(_Graph):
    """A graph of ``networkx.generators`` by name; ``n`` and ``seed`` are filled in where it takes them."""

    kind: Literal["networkx"]
    generator: str
    arguments: dict[str, Any] = {}


class GraphFile(_Graph):
    """GraphML (.graphml), or an edge list: ``agent agent [weight]`` a line, blanks or commas between."""

    kind: Literal["file"]
    file: InputFile


Graph = Annotated[
    GaussianKernel | AngularKernel | NearestNeighbours | NetworkxGraph | GraphFile,
    Field(discriminator="kind"),
]


# --- algorithm ----------------------------------------------------------------------------------
class NormalStart(Strict):
    """Theorem 1's arbitrary start: every model and copy normal with the given spread."""

    kind: Literal["normal"]
    scale: Positive


class PropagatedStart(Strict):
    """admm only: the model propagation optimum with a trade-off of its own."""

    kind: Literal["mp"]
    alpha: Annotated[float, Field(gt=0, lt=1)]


class GradientSteps(Strict):
    """A few (sub)gradient steps instead of the exact proximal step."""

    gradient_steps: Count


Start = Literal["own", "hello", "known", "zero", "mp"] | Annotated[
    NormalStart | PropagatedStart, Field(discriminator="kind")
]


class Algorithm(Strict):
    """What the agents compute, and whether by gossip or in rounds."""

    #: mp, admm, solitary, consensus, or the name of a plugin's rule.
    kind: str = "mp"
    mode: Literal["async", "sync"] = "async"
    start: Start = "own"
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    mu: Positive | None = None
    confidence: Literal["data", "none"] = "data"
    #: admm only.
    rho: Positive = 1.0
    primal: Literal["exact"] | GradientSteps = "exact"
    #: For a plugin's rule only.
    parameters: dict[str, Any] = {}

    @model_validator(mode="after")
    def _one_trade_off(self) -> Self:
        if self.alpha is not None and self.mu is not None:
            raise ValueError("give alpha or mu, not both: mu = (1 − alpha)/alpha")
        starts_from_mp = self.start == "mp" or isinstance(self.start, PropagatedStart)
        if starts_from_mp and self.kind != "admm":
            raise ValueError("start: mp is for admm only")
        if self.parameters and self.kind in BUILT_IN:
            raise ValueError(f"parameters are for a plugin's rule, not for {self.kind}")
        return self

    @property
    def trade_off(self) -> float:
        """μ; (1 − α)/α where α is given; α = 0.99 where neither is."""
        if self.mu is not None:
            return self.mu
        alpha = 0.99 if self.alpha is None else self.alpha
        return (1 - alpha) / alpha


# --- clock, network, computing ------------------------------------------------------------------
class Clock(Strict):
    """Poisson clocks, and whom an agent that wakes up contacts."""

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
    return value if isinstance(value, dict | Strict) else {"kind": "rate", "rate": value}


Loss = Annotated[
    Annotated[RateLoss | GilbertElliott, Field(discriminator="kind")],
    BeforeValidator(_plain_is_rate),
]


class Network(Strict):
    """What happens to a message on its way."""

    latency: TimeLaw = Field(default=0.0, validate_default=True)
    drop: Loss = Field(default=0.0, validate_default=True)
    #: Bytes per second of an agent's uplink; null is unlimited.
    bandwidth: BytesPerSecond | None = None
    header: Annotated[int, Field(ge=0)] = 32
    fifo: bool = False
    #: Synchronous runs only: a lost message is sent again so long after it left the uplink.
    retransmit_after: PositiveSeconds = 1.0


class Compute(Strict):
    """How long one solve takes."""

    time: TimeLaw = Field(default=0.0, validate_default=True)


# --- stop and record ----------------------------------------------------------------------------
class Stop(Strict):
    """The run ends at whichever comes first."""

    time: PositiveSeconds | None = None
    communications: Count | None = None
    metric: MetricName | None = None
    below: float | None = None
    above: float | None = None

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.time is None and self.communications is None:
            raise ValueError("a run needs a limit: time, communications, or both")
        levels = (self.below is not None) + (self.above is not None)
        if (self.metric is None) != (levels == 0):
            raise ValueError("metric and below (or above) go together")
        if levels == 2:
            raise ValueError("give below or above, not both")
        return self


class Record(Strict):
    """When samples are taken: every so many seconds, or every so many communications."""

    every: PositiveSeconds | None = None
    every_communications: Count | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.every is not None and self.every_communications is not None:
            raise ValueError("give every or every_communications, not both")
        return self


class Scenario(Strict):
    """A network of learning agents, fully described."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    engine: Literal["simpy"] = "simpy"
    task: Task
    graph: Graph
    algorithm: Algorithm = Algorithm()
    clock: Clock = Clock()
    network: Network = Network()
    compute: Compute = Compute()
    stop: Stop
    record: Record = Record()

    @model_validator(mode="before")
    @classmethod
    def _default_graph(cls, values: Any) -> Any:
        """The graph of the paper's section for the paper's tasks."""
        if isinstance(values, dict) and "graph" not in values:
            task = values.get("task")
            kind = task.get("kind") if isinstance(task, dict) else None
            default = {
                "mean_estimation": "gaussian_kernel",
                "linear_classification": "angular_kernel",
            }.get(kind)  # type: ignore[arg-type]
            if default:
                return {**values, "graph": {"kind": default}}
        return values


__all__ = ["FactorLaw", "Scenario", "Seconds"]
