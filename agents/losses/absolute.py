"""The absolute loss, |x·θ − y|; without features its solitary model is the median."""

from __future__ import annotations

from typing import Literal

import numpy as np

from agents.losses.loss import Floats, Indices, Kinked, design

#: A prediction this near to its target, relative to the target's size, lies on the kink, so that
#: rounding does not decide between the slopes +1 and −1.
KINK = 1e-9


class Absolute(Kinked):
    """ℓ(s, y) = |s − y|."""

    kind: Literal["absolute"] = "absolute"
    low = -1.0
    ridged = False

    def value(self, s: float, y: float) -> float:
        """|s − y|."""
        return abs(s - y)

    def slope(self, s: float, y: float) -> float:
        """sign(s − y), and 0 at the kink."""
        if abs(s - y) <= KINK * max(1.0, abs(y)):
            return 0.0
        return 1.0 if s > y else -1.0

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats]:
        """z = x, t = y, −b ≤ d ≤ b."""
        return design(X, y), y

    def fit_all(self, X: Floats | None, y: Floats, offsets: Indices, ridge: float) -> Floats:
        """Minimisers of the loss itself, without the ridge."""
        from agents.box import fit_absolute

        points = design(X, y)
        models = np.zeros((len(offsets) - 1, points.shape[1]))
        reached = np.zeros(len(models), dtype=np.bool_)
        fit_absolute(points, y, offsets, models, reached)
        for i in np.flatnonzero(~reached):
            own = slice(offsets[i], offsets[i + 1])
            models[i] = _least_absolute(points[own], y[own])
        return models


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
