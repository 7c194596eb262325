"""Collaborative linear classification (section 5.2 of the paper)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.losses.hinge import Hinge
from agents.losses.loss import Loss
from agents.parameters import MOST_INDEX, Count, Index, NonNegative, Probability
from simulator.problem.problem import DataSets, offsets_of
from simulator.problem.tasks.task import Ints, Material, Samples, UniformCount, kind_by_default
from simulator.scenario.kinds import Task

Floats = NDArray[np.float64]


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
    def numbers(self) -> int:
        """The dimension of a model."""
        return self.dimension

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
