"""The quadratic loss, (x·θ − y)²; without features ‖θ − y‖², whose solitary model is the mean."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from agents.losses.loss import Floats, Indices, Loss, design


class Quadratic(Loss):
    """ℓ(s, y) = (s − y)²."""

    kind: Literal["quadratic"] = "quadratic"
    curvature, proximal_step = 2.0, "affine_step"
    ridged = False

    def value(self, s: float, y: float) -> float:
        """(s − y)²."""
        return (s - y) * (s - y)

    def slope(self, s: float, y: float) -> float:
        """2 (s − y)."""
        return 2.0 * (s - y)

    def bend(self, s: float, y: float) -> float:
        """2."""
        return 2.0

    def fit_all(self, X: Floats | None, y: Floats, offsets: Indices, ridge: float) -> Floats:
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

    def exact(self, X: Floats, y: Floats, offsets: Indices, a: Floats, b: Floats) -> dict[str, Any]:
        """θ = (a I + 2b XᵀX)⁻¹ (a v + 2b Xᵀy) = shrink·v + shift."""
        n, p = len(a), X.shape[1]
        shrink, shift = np.zeros((n, p, p)), np.zeros((n, p))
        if p == 1:  # all agents at once
            owner = np.repeat(np.arange(n), np.diff(offsets))
            squares = np.bincount(owner, weights=X[:, 0] ** 2, minlength=n)
            scale = a + 2.0 * b * squares
            scale[scale == 0.0] = 1.0  # nobody to talk to: never solved
            products = np.bincount(owner, weights=X[:, 0] * y, minlength=n)
            return {
                "shrink": (a / scale)[:, None, None],
                "shift": (2.0 * b * products / scale)[:, None],
            }
        for i in np.flatnonzero(a > 0.0).tolist():
            own = slice(offsets[i], offsets[i + 1])
            U, singular, Vt = np.linalg.svd(X[own], full_matrices=False)
            scale = a[i] + 2.0 * b[i] * singular**2
            shrink[i] = np.eye(p) - (Vt.T * (2.0 * b[i] * singular**2 / scale)) @ Vt
            shift[i] = (Vt.T * (2.0 * b[i] * singular / scale)) @ (U.T @ y[own])
        return {"shrink": shrink, "shift": shift}
