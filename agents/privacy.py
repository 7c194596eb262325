"""Differential privacy of an agent's points: how much noise, how often, and what it adds up to.

Every update of an agent shows its neighbours something of its data.  It is ε_t-private on its own;
what k of them spend together is the least of three bounds (Kairouz, Oh and Viswanath 2015), and the
ε_t is the largest with which the updates asked for stay within the budget.
"""

from __future__ import annotations

import math
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agents.losses.loss import design
from agents.parameters import Collaborative, Count, Positive, Strict, report
from agents.rule import Floats, Start


def bounds(epsilon: float, updates: int, delta: float) -> tuple[float, float, float]:
    """What ``updates`` steps of ε_t = ``epsilon`` spend, by each of the three bounds.

    The first holds with δ = 0 too, the others only with ``delta`` > 0.
    """
    if updates == 0:
        return 0.0, 0.0, 0.0
    if delta == 0.0:
        return updates * epsilon, math.inf, math.inf
    squares = updates * epsilon**2
    S = updates * epsilon * math.tanh(epsilon / 2)  # (e^ε − 1) ε / (e^ε + 1) each
    return (
        updates * epsilon,
        S + math.sqrt(2 * squares * math.log(1 / delta)),
        S + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta)),
    )


def per_update(budget: float, updates: int, delta: float) -> float:
    """The largest ε_t with which all updates together spend at most the budget, by bisection."""
    low, high = budget / updates, budget
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if min(bounds(middle, updates, delta)) <= budget:
            low = middle
        else:
            high = middle
    return low


class Privacy(Strict):
    """Each agent's points are hidden from all others, (ε, δ)-differentially."""

    epsilon: Positive
    """ε: what an agent spends at most."""
    delta: Annotated[float, Field(ge=0, lt=1)]
    """δ; 0 allows simple sums of ε only."""
    updates: Count
    """How many updates an agent makes before its budget is spent."""
    clip: Positive
    """G: each point's gradient is clipped to this L1 norm."""
    radius: Positive = 1.0
    """Points are scaled down to this L2 norm where they are longer."""

    @property
    def step(self) -> float:
        """ε_t."""
        return per_update(self.epsilon, self.updates, self.delta)


class Private(Collaborative):
    """Keys of ``algorithm`` for coordinate descent."""

    privacy: Privacy | None = None
    """Hide each agent's points from the others by noise; null hides nothing."""

    @model_validator(mode="after")
    def _first_models_are_public(self) -> Self:
        start = getattr(self, "start", "zero")
        if self.privacy is not None and start != "zero" and isinstance(start, str):
            what = f"{start} would show what the data say, without any noise; use zero or normal"
            report([("start", what)])
        return self

    @property
    def clip(self) -> float:
        """The greatest L1 norm of a point's gradient; 0: no limit."""
        return 0.0 if self.privacy is None else self.privacy.clip

    def curvatures(self, start: Start, noise: Floats, left: NDArray[np.int64]) -> Floats:
        """ℓ_i; where points are hidden they are scaled first, and noise and budget are set.

        When one point is replaced, the sum of clipped gradients changes by at most 2G in L1 norm,
        hence Laplace noise of scale 2G/ε_t in each coordinate.  The step must not depend on the
        points either, only on their number.  Agents without data have nothing to hide.
        """
        privacy = self.privacy
        if privacy is None:
            return start.curvatures()
        assert start.loss.curvature is not None
        points, sizes = design(start.X, start.y), np.diff(start.offsets)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        start.X = points * np.minimum(1.0, privacy.radius / np.maximum(lengths, 1e-300))
        noise[sizes > 0] = 2.0 * privacy.clip / privacy.step
        left[sizes > 0] = privacy.updates
        return np.asarray(start.loss.curvature * sizes * privacy.radius**2)

    def spent(self, left: NDArray[np.int64]) -> dict[str, Floats]:
        """ε of each agent so far, given the updates that it has left (−1: it has no data)."""
        privacy = self.privacy
        if privacy is None:
            return {}
        step, delta = privacy.step, privacy.delta
        done = np.where(left < 0, 0, privacy.updates - left)
        each, index = np.unique(done, return_inverse=True)
        return {"epsilon": np.array([min(bounds(step, int(k), delta)) for k in each])[index]}
