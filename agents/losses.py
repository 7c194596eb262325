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
Offsets = NDArray[np.int64]


def design(X: Floats | None, y: Floats) -> Floats:
    """The points as a contiguous (m, p) matrix: a column of ones where there are no features."""
    return np.ones((len(y), 1)) if X is None else np.ascontiguousarray(X, dtype=float)


class Proximal(ABC):
    """v ↦ argmin_θ (a/2)‖θ − v‖² + b·L(θ), for fixed data, a > 0 and b ≥ 0."""

    #: Steps that reached the limit of passes before the accuracy of about 1e-11.
    exhausted: int = 0

    def __init__(self, p: int):
        #: The last proximal point; ``GradientSteps`` start from it.
        self.theta: Floats = np.zeros(p)

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
    def bend(self, s: Floats, y: Floats) -> Floats:
        """∂²ℓ/∂s², elementwise, away from kinks."""

    @abstractmethod
    def fit_all(self, X: Floats | None, y: Floats, offsets: Offsets, ridge: float) -> Floats:
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
        gradient: Floats = self.slope(points @ theta, y) @ points
        return gradient

    def fit(self, X: Floats | None, y: Floats, ridge: float, p: int) -> Floats:
        """The solitary model of one agent, (p,)."""
        if len(y) == 0:
            return np.zeros(p)
        models = self.fit_all(X, y, np.array([0, len(y)]), ridge)
        return models.ravel()


class Quadratic(Loss):
    """ℓ(s, y) = (s − y)²."""

    name = "quadratic"
    curvature = 2.0

    def pointwise(self, s: Floats, y: Floats) -> Floats:
        """(s − y)²."""
        return (s - y) ** 2

    def slope(self, s: Floats, y: Floats) -> Floats:
        """2 (s − y)."""
        return 2.0 * (s - y)

    def bend(self, s: Floats, y: Floats) -> Floats:
        """2."""
        return np.full(len(s), 2.0)

    def fit_all(self, X: Floats | None, y: Floats, offsets: Offsets, ridge: float) -> Floats:
        """Means, or least squares (the shortest solution where there are several)."""
        if X is None:
            sizes = np.diff(offsets)
            owner = np.repeat(np.arange(len(sizes)), sizes)
            sums = np.bincount(owner, weights=y, minlength=len(sizes))
            return (sums / np.maximum(sizes, 1))[:, None]
        points, sizes = design(X, y), np.diff(offsets)
        models = np.zeros((len(sizes), points.shape[1]))
        for m in np.unique(sizes[sizes > 0]):  # the agents with m points, all at once
            group = np.flatnonzero(sizes == m)
            rows = offsets[group, None] + np.arange(m)
            cutoff = max(m, points.shape[1]) * np.finfo(float).eps
            inverses = np.linalg.pinv(points[rows], rcond=cutoff)
            models[group] = np.einsum("ipm,im->ip", inverses, y[rows])
        return models

    def proximal(self, X: Floats | None, y: Floats, a: float, b: float) -> Proximal:
        """An affine map of v."""
        return _Affine(design(X, y), y, a, b)


class Kinked(Loss):
    """Losses made of straight pieces, b·L(θ) = Σ_k max over d in [low·b, b] of −d (z_k·θ − t_k)."""

    curvature = None

    @abstractmethod
    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats, float]:
        """z (m, p), t (m,) and low."""

    def bend(self, s: Floats, y: Floats) -> Floats:
        """0."""
        return np.zeros(len(s))

    def proximal(self, X: Floats | None, y: Floats, a: float, b: float) -> Proximal:
        """Exact, through the dual, which is a quadratic program in a box."""
        Z, t, low = self.boxed(X, y)
        return _Boxed(Z, t, low * b, b, a)


class Absolute(Kinked):
    """ℓ(s, y) = |s − y|."""

    name = "absolute"

    def pointwise(self, s: Floats, y: Floats) -> Floats:
        """|s − y|."""
        return np.abs(s - y)

    def slope(self, s: Floats, y: Floats) -> Floats:
        """sign(s − y)."""
        return np.sign(s - y)

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats, float]:
        """z = x, t = y, −b ≤ d ≤ b."""
        return design(X, y), y, -1.0

    def fit_all(self, X: Floats | None, y: Floats, offsets: Offsets, ridge: float) -> Floats:
        """Minimisers of the loss itself, without the ridge."""
        from agents.proximal import fit_absolute

        points = design(X, y)
        models = np.zeros((len(offsets) - 1, points.shape[1]))
        reached = np.zeros(len(models), dtype=bool)
        fit_absolute(points, y, offsets, models, reached)
        for i in np.flatnonzero(~reached):
            own = slice(offsets[i], offsets[i + 1])
            models[i] = _least_absolute(points[own], y[own])
        return models


class Hinge(Kinked):
    """ℓ(s, y) = max(0, 1 − y s), labels y = ±1."""

    name = "hinge"

    def pointwise(self, s: Floats, y: Floats) -> Floats:
        """max(0, 1 − y s)."""
        return np.maximum(0.0, 1.0 - y * s)

    def slope(self, s: Floats, y: Floats) -> Floats:
        """−y where the margin y s is below 1."""
        return np.where(y * s < 1.0, -y, 0.0)

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats, float]:
        """z = y x, t = 1, 0 ≤ d ≤ b."""
        return design(X, y) * y[:, None], np.ones(len(y)), 0.0

    def fit_all(self, X: Floats | None, y: Floats, offsets: Offsets, ridge: float) -> Floats:
        """Minimisers of L_i + (ridge/2)‖θ‖²."""
        from agents.proximal import fit_hinge

        points, _, _ = self.boxed(X, y)
        models = np.zeros((len(offsets) - 1, points.shape[1]))
        _complain(self, fit_hinge(points, offsets, ridge, models))
        return models


class Logistic(Loss):
    """ℓ(s, y) = log(1 + exp(−y s)), labels y = ±1."""

    name = "logistic"
    curvature = 0.25

    def pointwise(self, s: Floats, y: Floats) -> Floats:
        """log(1 + exp(−y s)), without overflow."""
        return np.logaddexp(0.0, -y * s)

    def slope(self, s: Floats, y: Floats) -> Floats:
        """−y / (1 + exp(y s)), without overflow."""
        return -0.5 * y * (1.0 - np.tanh(0.5 * y * s))

    def bend(self, s: Floats, y: Floats) -> Floats:
        """q (1 − q), where q = |∂ℓ/∂s|."""
        q = np.abs(self.slope(s, y))
        return q * (1.0 - q)

    def fit_all(self, X: Floats | None, y: Floats, offsets: Offsets, ridge: float) -> Floats:
        """Minimisers of L_i + (ridge/2)‖θ‖²."""
        from agents.proximal import fit_logistic

        points = design(X, y) * y[:, None]
        models = np.zeros((len(offsets) - 1, points.shape[1]))
        _complain(self, fit_logistic(points, offsets, ridge, models))
        return models

    def proximal(self, X: Floats | None, y: Floats, a: float, b: float) -> Proximal:
        """Exact, by Newton's method."""
        return _Newton(design(X, y) * y[:, None], a, b)


def _least_absolute(X: Floats, y: Floats) -> Floats:
    """A minimiser of Σ|x·θ − y| by linear programming: Σ u with −u ≤ Xθ − y ≤ u."""
    from scipy.optimize import linprog

    m, p = X.shape
    eye = np.eye(m)
    solution = linprog(
        np.concatenate([np.zeros(p), np.ones(m)]),
        A_ub=np.block([[X, -eye], [-X, -eye]]),
        b_ub=np.concatenate([y, -y]),
        bounds=[(None, None)] * p + [(0, None)] * m,
    )
    if solution.x is None:
        raise ValueError(f"the absolute fit of {m} points failed: {solution.message}")
    theta: Floats = solution.x[:p]
    return theta


def _complain(loss: Loss, failures: int) -> None:
    if failures:
        raise ValueError(
            f"the {loss.name} fit of {failures} agents did not reach its accuracy; "
            "features and targets of very different size are the usual cause"
        )


# --- proximal steps ------------------------------------------------------------------------------
class _Affine(Proximal):
    """Quadratic loss: θ = (a I + 2b XᵀX)⁻¹ (a v + 2b Xᵀy) = shrink·v + shift."""

    def __init__(self, X: Floats, y: Floats, a: float, b: float):
        super().__init__(X.shape[1])
        U, singular, Vt = np.linalg.svd(X, full_matrices=False)
        scale = a + 2.0 * b * singular**2
        self.shrink = np.eye(X.shape[1]) - (Vt.T * (2.0 * b * singular**2 / scale)) @ Vt
        self.shift = (Vt.T * (2.0 * b * singular / scale)) @ (U.T @ y)

    def step(self, v: Floats) -> Floats:
        """The proximal point of v."""
        self.theta = self.shrink @ v + self.shift
        return self.theta


def gram_matrix(Z: Floats) -> Floats:
    """ZZᵀ (m, m) where it is no larger than Z itself, else (0, 0); see ``prox_box``."""
    return Z @ Z.T if len(Z) <= Z.shape[1] else np.empty((0, 0))


class _Boxed(Proximal):
    """Losses with a kink, in the form of ``agents.proximal.prox_box``."""

    def __init__(self, Z: Floats, t: Floats, low: float, high: float, a: float):
        from agents.proximal import prox_box

        super().__init__(Z.shape[1])
        self.kernel = prox_box
        self.data = (Z, gram_matrix(Z), t, float(low), float(high), float(a))
        self.dual = np.zeros(len(t))

    def step(self, v: Floats) -> Floats:
        """The proximal point of v."""
        self.theta = np.empty(len(v))
        self.exhausted += not self.kernel(*self.data, v, self.dual, self.theta)
        return self.theta


class _Newton(Proximal):
    """Logistic loss."""

    def __init__(self, Z: Floats, a: float, b: float):
        from agents.proximal import prox_logistic

        super().__init__(Z.shape[1])
        self.kernel = prox_logistic
        self.data = (Z, float(a), float(b))
        self.dual = np.full(len(Z), 0.5 * b)

    def step(self, v: Floats) -> Floats:
        """The proximal point of v."""
        self.theta = np.empty(len(v))
        self.exhausted += not self.kernel(*self.data, v, self.dual, self.theta)
        return self.theta


class GradientSteps(Proximal):
    """The paper's "few steps of gradient descent" on the proximal problem, from the last θ.

    Smooth losses take the step 1/(a + b·Lip), Lip the Lipschitz constant of ∇L; the others the
    subgradient method's 2/(a (s + 2)), s = 0, 1, … for an a-strongly convex function.
    """

    def __init__(self, loss: Loss, X: Floats | None, y: Floats, a: float, b: float, steps: int):
        points = design(X, y)
        super().__init__(points.shape[1])
        self.loss, self.X, self.y, self.a, self.b = loss, points, y, a, b
        if loss.curvature is None:
            self.sizes = [2.0 / (a * (s + 2)) for s in range(steps)]
        else:
            lipschitz = loss.curvature * np.linalg.norm(points, 2) ** 2 if len(y) else 0.0
            self.sizes = [float(1.0 / (a + b * lipschitz))] * steps

    def step(self, v: Floats) -> Floats:
        """θ after the steps towards the proximal point of v."""
        theta = self.theta
        for size in self.sizes:
            slope = self.b * self.loss.gradient(theta, self.X, self.y)
            theta = theta - size * (self.a * (theta - v) + slope)
        self.theta = theta
        return theta


#: The losses by name.
LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Quadratic(), Absolute(), Hinge(), Logistic())
}
