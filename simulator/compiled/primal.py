"""admm's primal step in compiled code: the kernels of ``agents.proximal``, chosen by the loss.

argmin_θ (a_i/2)‖θ − v‖² + b_i L_i(θ) with b_i = μ D_ii, for all agents of a run.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.losses import GradientSteps, Kinked, Loss, design
from agents.proximal import prox_box, prox_logistic, prox_quadratic
from simulator import scenario
from simulator.setup import Setup

Floats = NDArray[np.float64]
#: How the step is made.
AFFINE, BOX, NEWTON, GRADIENT = range(4)
QUADRATIC, ABSOLUTE, HINGE, LOGISTIC = range(4)
_NAMES = ("quadratic", "absolute", "hinge", "logistic")


class Primal(NamedTuple):
    """The data of all agents in the form that the step needs; arrays not in use have length 0."""

    method: int
    a: Floats
    b: Floats
    #: AFFINE: θ = shrink·v + shift; (n, p, p) and (n, p).
    shrink: Floats
    shift: Floats
    #: The others: points (M, p) end to end, targets (M), each agent's first point, duals (M).
    Z: Floats
    t: Floats
    offsets: NDArray[np.int64]
    dual: Floats
    low: float
    #: GRADIENT: the loss, how many steps, and their length (n), 0 for the subgradient method's.
    loss: int
    steps: int
    length: Floats
    #: v, (p,).
    scratch: Floats


def make_primal(setup: Setup, a: Floats) -> Primal:
    """The primal problems of a run; a (n) is the factor of the quadratic term."""
    problem, algorithm = setup.problem, setup.scenario.algorithm
    data, loss, p = problem.data, problem.loss, problem.p
    b = algorithm.trade_off * problem.D
    none, low, method, steps = np.empty(0), 0.0, GRADIENT, 0
    shrink, shift = np.empty((0, p, p)), np.empty((0, p))
    Z, t, dual, length = np.empty((0, p)), none, none, none
    if isinstance(algorithm.primal, scenario.GradientSteps):
        steps = algorithm.primal.gradient_steps
        Z, t = design(data.X, data.y), data.y
        length = _step_lengths(setup, a, b)
    elif loss.name == "quadratic":
        method = AFFINE
        shrink, shift = _affine_steps(setup, a, b)
    elif isinstance(loss, Kinked):
        method = BOX
        Z, t, low = loss.boxed(data.X, data.y)
        dual = np.zeros(len(t))
    else:
        method = NEWTON
        Z = design(data.X, data.y) * data.y[:, None]
        dual = 0.5 * np.repeat(b, data.sizes)
    return Primal(
        method,
        a,
        b,
        shrink,
        shift,
        np.ascontiguousarray(Z),
        np.ascontiguousarray(t),
        data.offsets.astype(np.int64),
        dual,
        float(low),
        _NAMES.index(loss.name),
        steps,
        length,
        np.empty(p),
    )


def _affine_steps(setup: Setup, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """shrink and shift of the quadratic loss, see ``agents.losses``."""
    problem = setup.problem
    if problem.data.X is None:
        sizes = problem.data.sizes
        total = problem.solitary[:, 0] * sizes  # the sum of an agent's samples
        scale = a + 2.0 * b * sizes
        scale[scale == 0.0] = 1.0  # nobody to talk to: never solved
        return (a / scale)[:, None, None], (2.0 * b * total / scale)[:, None]
    shrink, shift = np.zeros((problem.n, problem.p, problem.p)), np.zeros((problem.n, problem.p))
    for i, (X, y) in enumerate(problem.data):
        if a[i] > 0.0:
            step = problem.loss.proximal(X, y, float(a[i]), float(b[i]))
            shrink[i], shift[i] = step.shrink, step.shift  # type: ignore[attr-defined]
    return shrink, shift


def _step_lengths(setup: Setup, a: Floats, b: Floats) -> Floats:
    """The gradient step of each agent; 0 where the loss has kinks."""
    loss: Loss = setup.problem.loss
    if loss.curvature is None:
        return np.zeros(setup.problem.n)
    return np.array(
        [
            GradientSteps(loss, X, y, float(a[i]), float(b[i]), 1).sizes[0] if a[i] > 0 else 0.0
            for i, (X, y) in enumerate(setup.problem.data)
        ]
    )


@njit(cache=True)
def primal_step(primal: Primal, i: int, pull_sum: Floats, theta: Floats) -> bool:
    """Agent i's new model, into ``theta``; False if the limit of passes was reached first."""
    a, b, v = primal.a[i], primal.b[i], primal.scratch
    for x in range(len(v)):
        v[x] = pull_sum[x] / a
    if primal.method == AFFINE:
        prox_quadratic(primal.shrink[i], primal.shift[i], v, theta)
        return True
    first, end = primal.offsets[i], primal.offsets[i + 1]
    Z = primal.Z[first:end]
    if primal.method == BOX:
        t, dual = primal.t[first:end], primal.dual[first:end]
        return prox_box(Z, t, primal.low * b, b, a, v, dual, theta)
    if primal.method == NEWTON:
        return prox_logistic(Z, a, b, v, primal.dual[first:end], theta)
    _gradient_steps(primal, a, b, v, Z, primal.t[first:end], primal.length[i], theta)
    return True


@njit(cache=True)
def _gradient_steps(
    primal: Primal, a: float, b: float, v: Floats, Z: Floats, y: Floats, length: float, theta: Floats
) -> None:
    """``agents.losses.GradientSteps``."""
    gradient = np.empty_like(theta)
    for s in range(primal.steps):
        gradient[:] = 0.0
        for k in range(len(y)):
            prediction = 0.0
            for x in range(len(theta)):
                prediction += Z[k, x] * theta[x]
            slope = _slope(primal.loss, prediction, y[k])
            for x in range(len(theta)):
                gradient[x] += slope * Z[k, x]
        size = length if length > 0.0 else 2.0 / (a * (s + 2))
        for x in range(len(theta)):
            theta[x] -= size * (a * (theta[x] - v[x]) + b * gradient[x])


@njit(cache=True)
def _slope(loss: int, s: float, y: float) -> float:
    """∂ℓ/∂s at the prediction s."""
    if loss == QUADRATIC:
        return 2.0 * (s - y)
    if loss == ABSOLUTE:
        return float(np.sign(s - y))
    if loss == HINGE:
        return -y if y * s < 1.0 else 0.0
    return -0.5 * y * (1.0 - math.tanh(0.5 * y * s))
