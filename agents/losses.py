"""The agents' losses: value, (sub)gradient, solitary fit and proximal step (paper, section 2).

An agent's loss is a plain sum over its m points, L(θ) = Σ_k ℓ(x_k·θ, y_k), so a loss is given by
a scalar function ℓ(s, y) of the prediction s = x·θ.  ``X`` is (m, p), ``y`` is (m,).  Where there
are no features ``X`` is None and the prediction is the model itself: p = 1, x = 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def design(X: Floats | None, y: Floats) -> Floats:
    """The points as a contiguous (m, p) matrix: a column of ones where there are no features."""
    return np.ones((len(y), 1)) if X is None else np.ascontiguousarray(X, dtype=float)


class Proximal(ABC):
    """v ↦ argmin_θ (a/2)‖θ − v‖² + b·L(θ), for fixed data, a > 0 and b ≥ 0."""

    #: Steps that reached the limit of passes before the accuracy of about 1e-11.
    exhausted: int = 0

    @abstractmethod
    def step(self, v: Floats) -> Floats:
        """The proximal point of v (p,), as a new array."""


class Loss(ABC):
    """L(θ) = Σ_k ℓ(x_k·θ, y_k), convex."""

    name: str
    #: Upper bound of ∂²ℓ/∂s²; None where ℓ has kinks.
    curvature: float | None

    @abstractmethod
    def pointwise(self, s: Floats, y: Floats) -> Floats:
        """ℓ(s, y), elementwise."""

    @abstractmethod
    def slope(self, s: Floats, y: Floats) -> Floats:
        """∂ℓ/∂s, elementwise; an element of the subdifferential at a kink."""

    @abstractmethod
    def fit_all(
        self, X: Floats | None, y: Floats, offsets: NDArray[np.int64], ridge: float
    ) -> Floats:
        """The solitary models (n, p) of n agents whose points lie end to end; 0 without points."""

    @abstractmethod
    def proximal(self, X: Floats | None, y: Floats, a: float, b: float) -> Proximal:
        """The proximal step of b·L with the quadratic's factor a."""

    def value(self, theta: Floats, X: Floats | None, y: Floats) -> float:
        """L(θ)."""
        return float(self.pointwise(design(X, y) @ theta, y).sum())

    def gradient(self, theta: Floats, X: Floats | None, y: Floats) -> Floats:
        """A (sub)gradient of L at θ, (p,)."""
        points = design(X, y)
        return self.slope(points @ theta, y) @ points

    def fit(self, X: Floats | None, y: Floats, ridge: float, p: int) -> Floats:
        """The solitary model of one agent, (p,)."""
        if len(y) == 0:
            return np.zeros(p)
        return self.fit_all(X, y, np.array([0, len(y)]), ridge)[0]


class Quadratic(Loss):
    """ℓ(s, y) = (s − y)²."""

    name = "quadratic"
    curvature = 2.0


class Absolute(Loss):
    """ℓ(s, y) = |s − y|."""

    name = "absolute"
    curvature = None


class Hinge(Loss):
    """ℓ(s, y) = max(0, 1 − y s), labels y = ±1."""

    name = "hinge"
    curvature = None


class Logistic(Loss):
    """ℓ(s, y) = log(1 + exp(−y s)), labels y = ±1."""

    name = "logistic"
    curvature = 0.25


def subgradient_proximal(
    loss: Loss, X: Floats | None, y: Floats, a: float, b: float, steps: int
) -> Proximal: ...


#: The losses by name.
LOSSES: dict[str, Loss]
