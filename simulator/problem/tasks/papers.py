"""The paper's two tasks: means on two moons (section 5.1), linear classification (section 5.2)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from agents.losses.hinge import Hinge
from agents.losses.loss import Loss
from agents.losses.quadratic import Quadratic
from agents.parameters import (
    MOST_COUNT,
    MOST_INDEX,
    Count,
    Index,
    NonNegative,
    Positive,
    Probability,
    Strict,
    report,
)
from simulator.problem.problem import DataSets, Material, offsets_of
from simulator.scenario.kinds import Task
from simulator.scenario.tables import Floats, Ints


# --- how many points an agent has ---------------------------------------------------------------
class ConfidenceWidth(Strict):
    """Section 5.1: c_i uniform around 1/2 with the given width, m_i = ceil(c_i · max)."""

    kind: Literal["confidence_width"] = "confidence_width"
    width: Probability = 1.0
    """How much confidences differ."""
    max: Count = 100
    """Points of an agent with confidence 1."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        c = rng.uniform(0.5 - self.width / 2, 0.5 + self.width / 2, n)
        return np.ceil(c * self.max).astype(np.int64)

    @property
    def mean(self) -> float:
        """The mean of m_i."""
        return self.max / 2


class UniformCount(Strict):
    """Section 5.2: m_i uniform on low … high, both included; 0 is an agent without data."""

    kind: Literal["uniform"] = "uniform"
    low: Annotated[int, Field(ge=0, le=MOST_COUNT)] = 1
    """The least number of points."""
    high: Count = 20
    """The greatest."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        return rng.integers(self.low, self.high, n, endpoint=True)

    @property
    def mean(self) -> float:
        """The mean of m_i."""
        return (self.low + self.high) / 2

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            report([("low", f"must not exceed high, {self.high} (got {self.low})")])
        return self


class FixedCount(Strict):
    """Every agent has ``value`` points."""

    kind: Literal["constant"] = "constant"
    value: Count
    """Points an agent."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        return np.full(n, self.value)

    @property
    def mean(self) -> float:
        """m_i."""
        return self.value


def kind_by_default(kind: str) -> BeforeValidator:
    """A block without ``kind`` is of this one."""

    def fill(value: Any) -> Any:
        return {"kind": kind, **value} if isinstance(value, dict) else value

    return BeforeValidator(fill)


Samples = Annotated[ConfidenceWidth | UniformCount | FixedCount, Field(discriminator="kind")]


# --- the tasks -----------------------------------------------------------------------------------
class LinearClassification(Task):
    """Section 5.2: linear separators whose targets lie in a 2-dimensional subspace."""

    default_graph = "angular_kernel"
    angular = True

    kind: Literal["linear_classification"] = "linear_classification"
    agents: Index = 100
    """How many."""
    dimension: Annotated[int, Field(ge=2, le=MOST_INDEX)] = 50
    """p, the dimension of points and models."""
    samples: Annotated[Samples, kind_by_default("uniform")] = UniformCount()
    """How many training points an agent has."""
    points: Literal["cube", "ball", "sphere"] = "cube"
    """Law of a point: uniform on the cube [−1, 1]^p, in the unit ball, or on the unit sphere."""
    flip: Probability = 0.05
    """The probability that a label is flipped."""
    test_points: Count = 100
    """Test points an agent."""
    test_flip: bool = True
    """Test labels are flipped too: "drawn from the same distribution as the training set"."""
    loss: Loss = Hinge()
    """The agents' loss."""
    ridge: NonNegative = 0.01
    """λ of the solitary hinge and logistic fits; the other losses, with which they can be compared
    on one scenario, need none.  0 is possible where every agent's fit is unique without it."""

    @property
    def count(self) -> int:
        """The number of agents."""
        return self.agents

    @property
    def has_test(self) -> bool:
        """There are always test points."""
        return True

    @property
    def bytes_needed(self) -> float:
        """The agents, the features of each point, and a few models of each agent."""
        rows = self.samples.mean + self.test_points + 5
        return self.agents * (500 + rows * self.dimension * 8)

    def build(self, rng: np.random.Generator) -> Material:
        """Each agent's label is the side of its own plane, now and then flipped.

        Drawn in this order: targets, sizes, training points, their flips, test points, their flips;
        a uniform number decides each flip, whatever the probability.
        """
        n = self.agents
        targets = np.zeros((n, self.dimension))
        targets[:, :2] = rng.standard_normal((n, 2))

        def labelled(sizes: Ints, flip: float) -> DataSets:
            X = _points(self.points, int(sizes.sum()), self.dimension, rng)
            # Only the first two entries of a target differ from 0.
            side = np.einsum("mp,mp->m", X[:, :2], np.repeat(targets[:, :2], sizes, axis=0))
            flipped = rng.random(len(X)) < flip
            return DataSets(X, np.where((side >= 0) ^ flipped, 1.0, -1.0), offsets_of(sizes))

        data = labelled(self.samples.draw(n, rng), self.flip)
        test = labelled(np.full(n, self.test_points), self.flip if self.test_flip else 0.0)
        return Material([str(i) for i in range(n)], data, test, targets)


def _points(law: str, count: int, p: int, rng: np.random.Generator) -> Floats:
    """Points (count, p), uniform on the cube [−1, 1]^p, in the unit ball or on the unit sphere."""
    if law == "cube":
        return rng.uniform(-1, 1, (count, p))
    X = rng.standard_normal((count, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if law == "ball":
        X *= rng.random((count, 1)) ** (1 / p)
    return X


class MeanEstimation(Task):
    """Section 5.1: agents on two moons estimate the mean +1 or −1 of their moon."""

    default_graph = "gaussian_kernel"
    loss: ClassVar[Loss] = Quadratic()
    ridge: ClassVar[float] = 0.0

    kind: Literal["mean_estimation"] = "mean_estimation"
    agents: Index = 300
    """How many, half of them on each moon."""
    noise: NonNegative = 0.05
    """The spread of the moons."""
    variance: Positive = 40.0
    """Of an agent's samples around the mean of its moon."""
    samples: Annotated[Samples, kind_by_default("confidence_width")] = ConfidenceWidth()
    """How many samples an agent has."""

    @property
    def count(self) -> int:
        """The number of agents."""
        return self.agents

    @property
    def bytes_needed(self) -> float:
        """The agents and their points."""
        return self.agents * (500 + self.samples.mean * 24)

    def build(self, rng: np.random.Generator) -> Material:
        """The first half of the agents on the upper moon (mean 1), the rest below (−1).

        Drawn in this order: places on the moons, their noise, sizes, samples.
        """
        n = self.agents
        upper = np.arange(n) < (n + 1) // 2
        t = rng.uniform(0, np.pi, n)
        x = np.where(upper, np.cos(t), 1 - np.cos(t))
        y = np.where(upper, np.sin(t), 0.5 - np.sin(t))
        vectors = np.column_stack((x, y)) + self.noise * rng.standard_normal((n, 2))
        means = np.where(upper, 1.0, -1.0)
        sizes = self.samples.draw(n, rng)
        samples = np.sqrt(self.variance) * rng.standard_normal(sizes.sum())
        samples += np.repeat(means, sizes)
        return Material(
            names=[str(i) for i in range(n)],
            data=DataSets(None, samples, offsets_of(sizes)),
            targets=means[:, None],
            vectors=vectors,
        )
