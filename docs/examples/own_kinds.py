"""A loss, a graph, a law of delays and a metric of one's own, in one file.

python -m simulator run docs/examples/own_kinds.yaml --plugin docs/examples/own_kinds.py
"""

import math
from typing import Literal

import numpy as np

from agents.losses import Smooth
from agents.parameters import Count, Positive
from simulator.problem.graphs.graph import symmetric
from simulator.scenario.kinds import Graph, Metric
from simulator.scenario.laws import Law, Q


class Huber(Smooth):
    """ℓ(s, y) = r²/2 for |r| ≤ delta and delta (|r| − delta/2) beyond, where r = s − y."""

    kind: Literal["huber"] = "huber"
    delta: Positive = 1.0
    """From here on the loss is straight, and outliers pull no harder."""
    curvature = 1.0

    def value(self, s, y):
        """ℓ."""
        r = abs(s - y)
        return r * r / 2 if r <= self.delta else self.delta * (r - self.delta / 2)

    def slope(self, s, y):
        """∂ℓ/∂s."""
        return min(max(s - y, -self.delta), self.delta)

    def bend(self, s, y):
        """∂²ℓ/∂s²."""
        return 1.0 if abs(s - y) <= self.delta else 0.0


class RingLattice(Graph):
    """Agents on a ring, each linked to the ``k`` next ones on either side."""

    kind: Literal["ring_lattice"] = "ring_lattice"
    k: Count = 2
    """How many on either side."""

    def problems(self, task):
        """There must be so many others."""
        if task.count is not None and 2 * self.k >= task.count:
            return [("k", f"must be less than half of the {task.count} agents (got {self.k})")]
        return []

    def build(self, agents, rng):
        """Unit weights."""
        n = len(agents.names)
        i = np.repeat(np.arange(n), self.k)
        j = (i + np.tile(np.arange(1, self.k + 1), n)) % n
        return symmetric(n, i, j, np.ones(len(i)))


class Weibull(Law[Q]):
    """Weibull with the given mean; a shape below 1 has a heavy tail."""

    kind: Literal["weibull"] = "weibull"
    mean: Q
    """The mean."""
    shape: Positive = 1.0
    """How fast the tail falls: below 1 it is heavy, and 1 is exponential."""

    @property
    def scale(self):
        """mean = scale · Γ(1 + 1/shape)."""
        return self.mean_value / math.gamma(1 + 1 / self.shape)

    def draw(self, rng, size):
        """NumPy's have scale 1."""
        return self.scale * rng.weibull(self.shape, size)

    @property
    def mean_value(self):
        """``mean``."""
        return float(self.mean)

    @property
    def rare_value(self):
        """P(X > x) = exp(−(x/scale)^shape), one in a billion."""
        return self.scale * (9 * math.log(10)) ** (1 / self.shape)


class WorstError(Metric):
    """The largest squared error ‖θ_i − θ_i*‖² of all agents, θ_i* their true models."""

    kind: Literal["worst_error"] = "worst_error"
    label = "largest squared error\nto the true models"

    def problems(self, task):
        """The true models must be known."""
        return [] if task.has_targets else [("", "worst_error needs task.targets")]

    def measure(self, view, models):
        """Its value for models (n, p)."""
        return ((models - view.problem.targets) ** 2).sum(axis=1).max()
