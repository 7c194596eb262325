"""Compiled proximal steps, argmin_θ (a/2)‖θ − v‖² + b·L(θ), one function for each kind of loss.

Plain functions on arrays that write their result into ``theta`` (p,).  Where the solution is
iterative they start from ``dual`` (m,), leave the new dual there, and return False when the limit
of passes was reached first.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Accuracy relative to the size of the terms that a stopping rule compares.
TOLERANCE = 1e-12
PASS_LIMIT = 10_000
#: Newton's method solves the logistic step in about 10 iterations, 50 from very far away.
NEWTON_LIMIT = 200
#: Passes of coordinate descent between two Newton steps on the free dual variables.
PASSES_PER_NEWTON = 3


@njit(cache=True)
def prox_mean(total: float, m: int, a: float, b: float, v: Floats, theta: Floats) -> None:
    """Quadratic loss (θ − y)² without features: a weighted mean of v and the samples."""
    theta[0] = (a * v[0] + 2.0 * b * total) / (a + 2.0 * b * m)


@njit(cache=True)
def prox_quadratic(shrink: Floats, shift: Floats, v: Floats, theta: Floats) -> None:
    """Quadratic loss: θ = shrink·v + shift, see ``quadratic_factors``."""
    for i in range(len(v)):
        total = shift[i]
        for j in range(len(v)):
            total += shrink[i, j] * v[j]
        theta[i] = total


@njit(cache=True)
def _combine(Z: Floats, a: float, v: Floats, dual: Floats, theta: Floats) -> None:
    """θ = v + Zᵀ dual / a."""
    theta[:] = v
    for k in range(len(dual)):
        if dual[k] != 0.0:
            weight = dual[k] / a
            for j in range(len(v)):
                theta[j] += weight * Z[k, j]


@njit(cache=True)
def _dot(x: Floats, y: Floats) -> float:
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@njit(cache=True)
def prox_box(
    Z: Floats,
    t: Floats,
    low: float,
    high: float,
    a: float,
    v: Floats,
    dual: Floats,
    theta: Floats,
) -> bool:
    """Losses with a kink: b·L(θ) = Σ_k max over d in [low, high] of −d (z_k·θ − t_k).

    The hinge loss has z = y x, t = 1 and the box [0, b], the absolute loss z = x, t = y and
    [−b, b].  The dual is a quadratic program in a box, with gradient z_k·θ − t_k at
    θ = v + Zᵀ dual / a.  Coordinate descent finds which dual variables end at a bound; a Newton
    step on the free ones every few passes makes it finite, where it alone would converge slowly.
    Stopped on the projected gradient, which is in units of the margin.
    """
    m = len(t)
    squares = np.empty(m)
    longest, offset = 0.0, 0.0
    for k in range(m):
        squares[k] = _dot(Z[k], Z[k])
        longest = max(longest, math.sqrt(squares[k]))
        offset = max(offset, abs(t[k]))
        dual[k] = min(max(dual[k], low), high)
    reach = math.sqrt(_dot(v, v))
    _combine(Z, a, v, dual, theta)
    for sweep in range(1, PASS_LIMIT + 1):
        worst, size = 0.0, reach
        for k in range(m):
            gradient = _dot(Z[k], theta) - t[k]
            if squares[k] == 0.0:  # θ does not depend on this point
                dual[k] = low if gradient > 0.0 else high
                continue
            old = dual[k]
            new = min(max(old - gradient * a / squares[k], low), high)
            if (gradient > 0.0 and old > low) or (gradient < 0.0 and old < high):
                worst = max(worst, abs(gradient))
            if new != old:
                dual[k] = new
                weight = (new - old) / a
                for j in range(len(theta)):
                    theta[j] += weight * Z[k, j]
            size += abs(new) * math.sqrt(squares[k]) / a
        if worst <= TOLERANCE * (offset + longest * size):
            _combine(Z, a, v, dual, theta)
            return True
        if sweep % PASSES_PER_NEWTON == 0:
            _newton_on_free(Z, t, low, high, a, squares, dual, theta)
            _combine(Z, a, v, dual, theta)
    return False


@njit(cache=True)
def _newton_on_free(
    Z: Floats,
    t: Floats,
    low: float,
    high: float,
    a: float,
    squares: Floats,
    dual: Floats,
    theta: Floats,
) -> None:
    """Minimise the dual over its variables strictly inside the box, up to the first bound met.

    The tiny multiple of I lets dependent points (duplicates, more of them than p) pass: a
    direction without curvature becomes very long and ends at a bound.
    """
    free = np.empty(len(t), np.int64)
    f = 0
    trace = 0.0
    for k in range(len(t)):
        if low < dual[k] < high and squares[k] > 0.0:
            free[f] = k
            f += 1
            trace += squares[k]
    if f == 0:
        return
    gram = np.empty((f, f))
    residual = np.empty(f)
    for i in range(f):
        residual[i] = a * (t[free[i]] - _dot(Z[free[i]], theta))
        for j in range(i + 1):
            gram[i, j] = _dot(Z[free[i]], Z[free[j]])
            gram[j, i] = gram[i, j]
        gram[i, i] += 1e-13 * trace
    direction = np.linalg.solve(gram, residual)
    step, first = 1.0, -1
    for i in range(f):
        room = (high if direction[i] > 0.0 else low) - dual[free[i]]
        if abs(room) < step * abs(direction[i]):
            step, first = room / direction[i], i
    for i in range(f):
        dual[free[i]] += step * direction[i]
    if first >= 0:
        dual[free[first]] = high if direction[first] > 0.0 else low
