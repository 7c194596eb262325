"""The scenario's problem part: the schema of ``task`` and ``graph``."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from simulator.scenario.quantities import (
    MOST_COUNT,
    MOST_INDEX,
    Count,
    Index,
    InputFile,
    NonNegative,
    Positive,
    Probability,
    Strict,
    report,
)

LossName = Literal["quadratic", "absolute", "hinge", "logistic"]


# --- how many points an agent has ---------------------------------------------------------------
class ConfidenceWidth(Strict):
    """Section 5.1: c_i uniform around 1/2 with the given width, m_i = ceil(c_i · max)."""

    kind: Literal["confidence_width"] = "confidence_width"
    width: Probability = 1.0
    max: Count = 100


class UniformCount(Strict):
    """Section 5.2: m_i uniform on low … high, both included; 0 is an agent without data."""

    kind: Literal["uniform"] = "uniform"
    low: Annotated[int, Field(ge=0, le=MOST_COUNT)] = 1
    high: Count = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            report([("low", f"must not exceed high, {self.high} (got {self.low})")])
        return self


class FixedCount(Strict):
    """Every agent has ``value`` points."""

    kind: Literal["constant"]
    value: Count


def _kind_by_default(kind: str) -> BeforeValidator:
    """A block without ``kind`` is of this one."""

    def fill(value: Any) -> Any:
        return {"kind": kind, **value} if isinstance(value, dict) else value

    return BeforeValidator(fill)


Samples = Annotated[ConfidenceWidth | UniformCount | FixedCount, Field(discriminator="kind")]


# --- task ---------------------------------------------------------------------------------------
class MeanEstimation(Strict):
    """Section 5.1: agents on two moons estimate the mean +1 or −1 of their moon."""

    kind: Literal["mean_estimation"]
    agents: Index = 300
    noise: NonNegative = 0.05
    variance: Positive = 40.0
    samples: Annotated[Samples, _kind_by_default("confidence_width")] = ConfidenceWidth()


class LinearClassification(Strict):
    """Section 5.2: linear separators whose targets lie in a 2-dimensional subspace."""

    kind: Literal["linear_classification"]
    agents: Index = 100
    dimension: Annotated[int, Field(ge=2, le=MOST_INDEX)] = 50
    samples: Annotated[Samples, _kind_by_default("uniform")] = UniformCount()
    points: Literal["cube", "ball", "sphere"] = "cube"
    """Law of a point: uniform on the cube [−1, 1]^p, in the unit ball, or on the unit sphere."""
    flip: Probability = 0.05
    test_points: Count = 100
    test_flip: bool = True
    """Test labels are flipped too: "drawn from the same distribution as the training set"."""
    loss: LossName = "hinge"
    ridge: Positive = 0.01
    """λ of the solitary hinge and logistic fits; the other losses, with which they can be compared
    on one scenario, need none."""


class Files(Strict):
    """The user's own data: CSV files with an agent column, features and a target."""

    kind: Literal["files"]
    train: InputFile
    test: InputFile | None = None
    """Points on which accuracy is measured; for the hinge and the logistic loss only."""
    agents: InputFile | None = None
    """One agent a line, in order; needed only where some agent has no training point."""
    vectors: InputFile | None = None
    """Auxiliary vectors, one row an agent, for a kernel or nearest-neighbour graph."""
    targets: InputFile | None = None
    """True models, one row an agent, where they are known (for l2_error)."""
    agent: str = "agent"
    target: str = "y"
    features: list[str] | None = None
    """Columns to use; all but the agent's and the target's by default; [] estimates a mean."""
    loss: LossName = "quadratic"
    ridge: Positive = 0.01
    """λ of the solitary hinge and logistic fits; the other losses, with which they can be compared
    on one scenario, need none."""


Task = Annotated[MeanEstimation | LinearClassification | Files, Field(discriminator="kind")]


# --- graph --------------------------------------------------------------------------------------
class _Graph(Strict):
    allow_disconnected: bool = False


class GaussianKernel(_Graph):
    """W_ij = exp(−‖v_i − v_j‖² / 2σ²) on auxiliary vectors; weights ≤ min_weight are dropped."""

    kind: Literal["gaussian_kernel"] = "gaussian_kernel"
    sigma: Positive = 0.1
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.0


class AngularKernel(_Graph):
    """W_ij = exp((cos φ_ij − 1) / σ), φ_ij the angle of target models (or auxiliary vectors)."""

    kind: Literal["angular_kernel"] = "angular_kernel"
    sigma: Positive = 0.1
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.01


class NearestNeighbours(_Graph):
    """The k nearest by distance or angle, symmetrised by union; weights 1 or of the kernel."""

    kind: Literal["knn"]
    k: Count = 10
    metric: Literal["euclidean", "angular"] | None = None
    """By default angular for linear_classification, euclidean otherwise."""
    weights: Literal["unit", "kernel"] = "unit"
    sigma: Positive = 0.1
    """Of the kernel; no part in unit weights, which can be compared with it on one scenario."""


class NetworkxGraph(_Graph):
    """A graph of networkx by its generator's name; n and seed are filled in where it takes them."""

    kind: Literal["networkx"]
    generator: str
    arguments: dict[str, Any] = Field(default={})

    @model_validator(mode="after")
    def _reproducible(self) -> Self:
        # networkx takes null for its global random numbers, which differ from run to run.
        seed = self.arguments.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            what = "must be a whole number from 0, below 2³²; left out, it follows the scenario's"
            report([("arguments.seed", f"{what} (got {json.dumps(seed, default=str)[:40]})")])
        return self


class GraphFile(_Graph):
    """GraphML (.graphml), or a list of edges, one ``agent agent [weight]`` a line."""

    kind: Literal["file"]
    file: InputFile


Graph = Annotated[
    GaussianKernel | AngularKernel | NearestNeighbours | NetworkxGraph | GraphFile,
    Field(discriminator="kind"),
]
