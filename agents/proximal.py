"""Proximal steps, argmin_θ (a/2)‖θ − v‖² + b·L(θ), one function for each kind of loss.

Plain functions on arrays that write their result into ``theta`` (p,).  Where the solution is
iterative they start from ``dual`` (m,), leave the new dual there, and return False when the limit
of passes was reached first.
"""

# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from agents.box import TOLERANCE, combine, dot, dot_row, newton_direction, prox_box
from agents.machinery.compiling import FAILED, inlined, kernel
from agents.machinery.intrinsics import invoke

Floats = NDArray[np.float64]

#: Newton's method solves the logistic step in about 10 iterations, 50 from very far away.
NEWTON_LIMIT = 200


# --- the loss of the agents whose data are ``agents.attached.Data`` ------------------------------
def slopes(d: Any, s: Floats, y: Floats, out: Floats) -> None:
    """out ← ∂ℓ/∂s of each prediction and target."""
    d.formulas.each("slopes", s, y, out)


def bends(d: Any, s: Floats, y: Floats, out: Floats) -> None:
    """out ← ∂²ℓ/∂s² of each prediction and target."""
    d.formulas.each("bends", s, y, out)


@overload(slopes)
def _slopes(d: Any, s: Any, y: Any, out: Any) -> Any:
    def compiled(d: Any, s: Any, y: Any, out: Any) -> Any:
        _each(d.formulas.slopes, d.formulas.constants, s, y, out)

    return compiled


@overload(bends)
def _bends(d: Any, s: Any, y: Any, out: Any) -> Any:
    def compiled(d: Any, s: Any, y: Any, out: Any) -> Any:
        _each(d.formulas.bends, d.formulas.constants, s, y, out)

    return compiled


@kernel
def _each(function: int, constants: int, s: Floats, y: Floats, out: Floats) -> None:
    """A loss's formula through its pointer: the steps below are compiled once for all losses."""
    a, b, c = s.ctypes.data, y.ctypes.data, out.ctypes.data
    if invoke(function, constants, len(s), a, b, c) == FAILED:
        raise RuntimeError("the loss failed")


@kernel
def prox_newton(
    d: Any, X: Floats, y: Floats, a: float, b: float, v: Floats, dual: Floats, theta: Floats
) -> bool:
    """Smooth losses: (a/2)‖θ − v‖² + b Σ_k ℓ(x_k·θ, y_k).

    Newton's method in θ, started at v + Xᵀ dual / a, where at the solution dual_k is −b ℓ'.  Each
    step is halved until the derivative along it, which is monotone, no longer says that it went too
    far; unlike the value it is exact near the solution.
    """
    m = len(X)
    rows = np.arange(m)
    weights, predictions, rates = np.empty(m), np.empty(m), np.empty(m)
    ahead, there = np.empty(m), np.empty(m)
    gradient, direction = np.empty(len(theta)), np.empty(len(theta))
    combine(X, a, v, dual, theta)
    for _ in range(NEWTON_LIMIT):
        for j in range(len(theta)):
            gradient[j] = a * (theta[j] - v[j])
        size = a * (math.sqrt(dot(theta, theta)) + math.sqrt(dot(v, v)))
        for k in range(m):
            predictions[k] = dot_row(X, k, theta)
        slopes(d, predictions, y, dual)
        bends(d, predictions, y, weights)
        for k in range(m):
            dual[k] *= -b
            weights[k] *= b
            for j in range(len(theta)):
                gradient[j] -= dual[k] * X[k, j]
            size += abs(dual[k]) * math.sqrt(dot_row(X, k, X[k]))
        if math.sqrt(dot(gradient, gradient)) <= TOLERANCE * size:
            return True
        newton_direction(X, rows, weights, a, gradient, direction)
        for k in range(m):
            rates[k] = dot_row(X, k, direction)
        descent = dot(gradient, direction)
        curve = a * dot(direction, direction)
        start = a * (dot(theta, direction) - dot(v, direction))
        step = 1.0
        for _ in range(60):
            derivative = start + step * curve
            for k in range(m):
                ahead[k] = predictions[k] + step * rates[k]
            slopes(d, ahead, y, there)
            for k in range(m):
                derivative += b * there[k] * rates[k]
            if derivative <= -0.5 * descent:
                break
            step *= 0.5
        for j in range(len(theta)):
            theta[j] += step * direction[j]
    return False


# --- the steps of one agent: θ ← argmin (a_i/2)‖θ − v‖² + b_i L_i(θ) ------------------------------
@inlined
def affine_step(d: Any, i: int, v: Floats, theta: Floats) -> bool:
    """Quadratic loss: θ = shrink·v + shift."""
    for x in range(d.p):
        total = d.shift[i, x]
        for z in range(d.p):
            total += d.shrink[i, x, z] * v[z]
        theta[x] = total
    return True


@inlined
def newton_step(d: Any, i: int, v: Floats, theta: Floats) -> bool:
    """Smooth losses."""
    low, high = d.offsets[i], d.offsets[i + 1]
    X, y, dual = d.points[low:high], d.targets[low:high], d.dual[low:high]
    return prox_newton(d, X, y, d.a[i], d.b[i], v, dual, theta)


@inlined
def box_step(d: Any, i: int, v: Floats, theta: Floats) -> bool:
    """Kinked losses."""
    low, high = d.offsets[i], d.offsets[i + 1]
    first, last = d.gram_offsets[i], d.gram_offsets[i + 1]
    side = high - low if last > first else 0
    gram = d.grams[first:last].reshape((side, side))
    root = d.roots[first:last].reshape((side, side))
    Z, t, dual = d.Z[low:high], d.t[low:high], d.dual[low:high]
    lengths, rooted = d.norms[low:high], d.rooted[low:high]
    floor, b = d.low * d.b[i], d.b[i]
    return prox_box(Z, lengths, gram, root, rooted, t, floor, b, d.a[i], v, dual, theta)


@inlined
def gradient_steps(d: Any, i: int, v: Floats, theta: Floats) -> bool:
    """The paper's "few steps of gradient descent" on the proximal problem, from the θ at hand.

    Smooth losses take the step 1/(a + b·Lip), Lip the Lipschitz constant of ∇L; the others the
    subgradient method's 2/(a (k + 2)), k = 0, 1, … for an a-strongly convex function.
    """
    low, high, a, b = d.offsets[i], d.offsets[i + 1], d.a[i], d.b[i]
    X, y = d.points[low:high], d.targets[low:high]
    predictions, there = np.empty(len(y)), np.empty(len(y))
    for k in range(d.steps):
        for z in range(len(y)):
            predictions[z] = dot_row(X, z, theta)
        slopes(d, predictions, y, there)
        length = d.lengths[i] if d.lengths[i] > 0.0 else 2.0 / (a * (k + 2))
        for x in range(d.p):
            total = 0.0
            for z in range(len(y)):
                total += there[z] * X[z, x]
            theta[x] -= length * (a * (theta[x] - v[x]) + b * total)
    return True


@inlined
def gradient_at(d: Any, i: int, theta: Floats, out: Floats) -> bool:
    """out ← a (sub)gradient of L_i at θ, each point's part clipped to L1 norm ``clip`` > 0."""
    low, high = d.offsets[i], d.offsets[i + 1]
    X, y = d.points[low:high], d.targets[low:high]
    predictions, rates = np.empty(len(y)), np.empty(len(y))
    for z in range(len(y)):
        predictions[z] = dot_row(X, z, theta)
    slopes(d, predictions, y, rates)
    for x in range(d.p):
        out[x] = 0.0
    for z in range(len(y)):
        rate = rates[z]
        if d.clip > 0.0:
            size = 0.0
            for x in range(d.p):
                size += abs(X[z, x])
            size *= abs(rate)
            if size > d.clip:
                rate *= d.clip / size
        for x in range(d.p):
            out[x] += rate * X[z, x]
    return True
