"""The quadratic loss, (x·θ − y)²; without features ‖θ − y‖², whose solitary model is the mean."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from agents.losses.loss import Floats, Indices, Loss, design
from agents.machinery.compiling import entry


@entry
def _running_means(y: Floats, offsets: Indices, means: Floats) -> None:
    """The mean of each agent's points so far, at each point."""
    for i in range(len(offsets) - 1):
        total = 0.0
        for k in range(offsets[i], offsets[i + 1]):
            total += y[k]
            means[k] = total / (k + 1 - offsets[i])


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

    def fit_growing(
        self,
        X: Floats | None,
        y: Floats,
        offsets: Indices,
        agents: Indices,
        sizes: Indices,
        ridge: float,
    ) -> Floats:
        """Of means, all at once."""
        if X is not None:
            return super().fit_growing(X, y, offsets, agents, sizes, ridge)
        means = np.empty(len(y))
        _running_means(y, offsets, means)
        fits: Floats = means[offsets[agents] + sizes - 1, None]
        return fits

    def exact(self, X: Floats, y: Floats, offsets: Indices) -> dict[str, Any]:
        """Room for shrink and shift, see ``agents.proximal``."""
        n, p = len(offsets) - 1, X.shape[1]
        sums = {"squares": np.zeros(n), "products": np.zeros(n)}
        return sums | {"shrink": np.zeros((n, p, p)), "shift": np.zeros((n, p))}
