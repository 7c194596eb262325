"""Collaborative mean estimation on two moons (section 5.1 of the paper)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from agents.losses.loss import Loss
from agents.losses.quadratic import Quadratic
from agents.parameters import Index, NonNegative, Positive
from simulator.problem.problem import DataSets, offsets_of
from simulator.problem.tasks.task import ConfidenceWidth, Material, Samples, kind_by_default
from simulator.scenario.kinds import Task


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
    def numbers(self) -> int:
        """A mean is one number."""
        return 1

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
