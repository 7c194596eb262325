"""What a loss is: L(θ) = Σ_k ℓ(x_k·θ, y_k) over an agent's points (paper, section 2).

A loss is a plain sum over an agent's m points, given by a scalar function ℓ(s, y) of the prediction
s = x·θ.  A class states ``value``, ``slope`` and ``bend``, ℓ and its first two derivatives by s, as
plain formulas of numbers; its parameters are the class's fields.  Everything else follows:

``Smooth``
    losses with two derivatives: the proximal step by Newton's method;
``Kinked``
    losses of straight pieces, in the form of ``boxed``: the proximal step through the dual.

``X`` is (m, p), ``y`` is (m,).  Where there are no features ``X`` is None and the prediction is the
model itself: p = 1, x = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agents.parameters import Strict, numbers_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
#: Points that are fitted at a time, where agents are fitted again and again.
BLOCK = 2**20


def design(X: Floats | None, y: Floats) -> Floats:
    """The points as a contiguous (m, p) matrix: a column of ones where there are no features."""
    return np.ones((len(y), 1)) if X is None else np.ascontiguousarray(X, dtype=float)


def prefixes(
    X: Floats | None, y: Floats, begins: Indices, sizes: Indices
) -> Iterator[tuple[slice, Floats | None, Floats, Indices]]:
    """Some points from each beginning on, end to end, for as many at a time as a block holds."""
    upto, first = np.cumsum(sizes), 0
    while first < len(sizes):
        before = upto[first] - sizes[first]
        last = max(first + 1, int(np.searchsorted(upto, before + BLOCK, side="right")))
        some = slice(first, last)
        ends = np.concatenate(([0], np.cumsum(sizes[some])))
        rows = np.repeat(begins[some] - ends[:-1], sizes[some]) + np.arange(ends[-1])
        yield some, None if X is None else X[rows], y[rows], ends
        first = last


class Loss(Strict):
    """L(θ) = Σ_k ℓ(x_k·θ, y_k), convex."""

    kind: str
    #: Upper bound of ∂²ℓ/∂s²; None where ℓ has kinks.
    curvature: ClassVar[float | None] = None
    #: Are targets labels ±1?
    labels: ClassVar[bool] = False
    #: Can L fall for ever along a direction, so that there may be no minimiser?
    runs_away: ClassVar[bool] = False
    #: Is the ridge a part of the fit?  Not where the loss has a minimiser without it.
    ridged: ClassVar[bool] = True
    #: The function of ``agents.proximal`` that is its exact proximal step.
    proximal_step: ClassVar[str]
    #: Is the device's own method too slow for everybody's points at once?
    slow_on_many: ClassVar[bool] = False

    # --- what a loss states; ``self`` has the parameters, and in compiled code nothing else -------
    def value(self, s: float, y: float) -> float:
        """ℓ(s, y), of one prediction s = x·θ and its target y; two numbers, and one comes back."""
        raise NotImplementedError

    def slope(self, s: float, y: float) -> float:
        """∂ℓ/∂s; an element of the subdifferential at a kink."""
        raise NotImplementedError

    def bend(self, s: float, y: float) -> float:
        """∂²ℓ/∂s², away from kinks."""
        raise NotImplementedError

    def exact(self, X: Floats, y: Floats, offsets: Indices) -> dict[str, Any]:
        """The arrays of ``agents.proximal`` that this step needs beside points and targets.

        Parameters
        ----------
        X, y
            The points (M, p) and targets (M,) of all agents, end to end.
        offsets
            Agent i's are ``offsets[i] … offsets[i + 1] − 1``; (n + 1,).
        """
        raise NotImplementedError

    def fit_all(self, X: Floats | None, y: Floats, offsets: Indices, ridge: float) -> Floats:
        """The solitary models (n, p) of n agents whose points lie end to end; 0 without points.

        They minimise L_i + (ridge/2)‖θ‖²: the proximal point of 0 with a = ridge.  That is 0 only
        where every L_i has one minimiser.
        """
        from agents.proximal import Attached

        n = len(offsets) - 1
        if ridge == 0.0:
            self._require_one_minimiser(design(X, y), offsets)
        data = Attached(self, design(X, y), y, offsets, np.full(n, ridge), np.ones(n))
        data.data.level[:] = 0.0  # from θ = 0: other duals lie as far away as the ridge is small
        models = np.zeros((n, data.data.p))
        unfinished = data.prox_all(np.zeros(data.data.p), models)
        if unfinished and ridge == 0.0:
            raise ValueError(
                f"the {self.kind} fit of {unfinished} agents has no minimum without a ridge; "
                "task.ridge must be above 0"
            )
        if unfinished:
            raise ValueError(
                f"the {self.kind} fit of {unfinished} agents did not reach its accuracy; "
                "features and targets of very different size are the usual cause"
            )
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
        """The solitary models (k, p) of agents that have their first ``sizes`` points."""
        p = 1 if X is None else X.shape[1]
        fits = np.zeros((len(agents), p))
        for some, X_, y_, ends in prefixes(X, y, offsets[agents], sizes):
            fits[some] = self.fit_all(X_, y_, ends, ridge)
        return fits

    def _require_one_minimiser(self, X: Floats, offsets: Indices) -> None:
        """Raise ValueError where a fit without a ridge is not unique, by its points alone."""
        ranges = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        parts = [X[low:high] for low, high in ranges if high > low]
        kinks = isinstance(self, Kinked)
        few = sum(kinks or np.linalg.matrix_rank(part) < X.shape[1] for part in parts)
        if few:
            raise ValueError(
                f"the {self.kind} fit of {few} agents is not unique without a ridge: "
                f"{'it has kinks' if kinks else 'they have too few independent points'}; "
                "task.ridge must be above 0"
            )

    # --- what follows -----------------------------------------------------------------------------
    @property
    def constants(self) -> dict[str, float]:
        """The parameters that are numbers, as compiled formulas have them."""
        return {name: float(getattr(self, name)) for name in numbers_of(type(self))}

    def values(self, s: Floats, y: Floats) -> Floats:
        """ℓ(s, y), elementwise."""
        return self._each("values", s, y)

    def slopes(self, s: Floats, y: Floats) -> Floats:
        """∂ℓ/∂s, elementwise."""
        return self._each("slopes", s, y)

    def bends(self, s: Floats, y: Floats) -> Floats:
        """∂²ℓ/∂s², elementwise."""
        return self._each("bends", s, y)

    def _each(self, label: str, s: Floats, y: Floats) -> Floats:
        from agents.machinery.formulas import Formulas

        s, y = (np.ascontiguousarray(array, dtype=float) for array in (s, y))
        out = np.empty(len(s))
        Formulas(self).each(label, s, y, out)
        return out

    def total(self, theta: Floats, X: Floats | None, y: Floats) -> float:
        """L(θ)."""
        return float(self.values(design(X, y) @ theta, y).sum())

    def gradient(self, theta: Floats, X: Floats | None, y: Floats) -> Floats:
        """A (sub)gradient of L at θ, (p,)."""
        points = design(X, y)
        gradient: Floats = self.slopes(points @ theta, y) @ points
        return gradient

    def curvatures(self, X: Floats, begins: Indices, sizes: Indices) -> Floats:
        """Lipschitz constants κ λ_max(XᵀX) of the gradients of smooth losses on these points."""
        assert self.curvature is not None
        ranges = zip(begins.tolist(), (begins + sizes).tolist(), strict=True)
        squares = [np.linalg.norm(X[i:j], 2) ** 2 if j > i else 0.0 for i, j in ranges]
        return np.array([self.curvature * square for square in squares])

    def fit(self, X: Floats | None, y: Floats, ridge: float, p: int) -> Floats:
        """The solitary model of one agent, (p,)."""
        if len(y) == 0:
            return np.zeros(p)
        return self.fit_all(X, y, np.array([0, len(y)]), ridge).ravel()


class Smooth(Loss):
    """Losses with two derivatives."""

    proximal_step = "newton_step"

    def exact(self, X: Floats, y: Floats, offsets: Indices) -> dict[str, Any]:
        """Start from the slopes at 0."""
        return {"dual": np.zeros(len(y)), "level": self.slopes(np.zeros(len(y)), y)}


class Kinked(Loss):
    """Losses made of straight pieces, b·L(θ) = Σ_k max over d in [low·b, b] of −d (z_k·θ − t_k)."""

    proximal_step = "box_step"
    #: The least dual variable, as a multiple of b; the greatest is b itself.
    low: ClassVar[float] = 0.0

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats]:
        """z (m, p) and t (m,) for points X (m, p), None without features, and targets y (m,)."""
        raise NotImplementedError

    def bend(self, s: float, y: float) -> float:
        """0."""
        return 0.0

    def exact(self, X: Floats, y: Floats, offsets: Indices) -> dict[str, Any]:
        """z, t and the Gram matrices ZZᵀ of agents with no more points than dimensions."""
        Z, t = self.boxed(X, y)
        sizes = np.diff(offsets)
        small = np.where(sizes <= Z.shape[1], sizes, 0)
        grams = [
            (Z[start : start + m] @ Z[start : start + m].T).ravel()
            for start, m in zip(offsets[:-1].tolist(), small.tolist(), strict=True)
            if m
        ]
        return {
            "Z": Z,
            "norms": np.linalg.norm(Z, axis=1),
            "t": t,
            "low": self.low,
            "grams": np.concatenate([*grams, np.empty(0)]),
            "gram_offsets": np.concatenate([[0], np.cumsum(small**2)]).astype(np.int64),
            "roots": np.zeros(int(np.sum(small**2))),
            "rooted": np.zeros(len(t), dtype=np.int64),
            "dual": np.zeros(len(t)),
        }
