"""admm's primal step in compiled code: the kernels of ``agents.proximal``, chosen by the loss.

argmin_θ (a_i/2)‖θ − v‖² + b_i L_i(θ) with b_i = μ D_ii, for all agents of a run.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.losses import GradientSteps, Kinked, Loss, design, gram_matrix
from agents.proximal import prox_box, prox_logistic, prox_quadratic
from simulator import scenario
from simulator.compiled.memory import ADDRESS, Fields, row, view
from simulator.setup import Setup

Floats = NDArray[np.float64]
#: How the step is made.
AFFINE, BOX, NEWTON, GRADIENT = range(4)
QUADRATIC, ABSOLUTE, HINGE, LOGISTIC = range(4)
_NAMES = ("quadratic", "absolute", "hinge", "logistic")


FIELDS: Fields = [
    ("method", np.int64),
    #: The factors a and b (n).
    ("a", ADDRESS),
    ("b", ADDRESS),
    #: AFFINE: θ = shrink·v + shift; (n, p, p) and (n, p).
    ("shrink", ADDRESS),
    ("shift", ADDRESS),
    #: The others: points (M, p) end to end, targets (M), each agent's first one, duals (M).
    ("points", ADDRESS),
    ("targets", ADDRESS),
    ("offsets", ADDRESS),
    ("duals", ADDRESS),
    #: BOX: the least dual is this many times b.
    ("lowest", np.float64),
    #: BOX: the agents' Gram matrices end to end, and where each begins (n + 1).
    ("grams", ADDRESS),
    ("gram_offsets", ADDRESS),
    #: GRADIENT: the loss, how many steps, and their length (n), 0 for the subgradient method's.
    ("loss", np.int64),
    ("steps", np.int64),
    ("lengths", ADDRESS),
    #: v, (p,).
    ("scratch", ADDRESS),
]


def make(run: NDArray[Any], setup: Setup, a: Floats) -> dict[str, NDArray[Any]]:
    """The data of all agents in the form that the step needs; a (n)."""
    problem, algorithm = setup.problem, setup.scenario.algorithm
    data, loss = problem.data, problem.loss
    b = algorithm.trade_off * problem.D
    arrays = {"a": a, "b": b, "offsets": data.offsets.astype(np.int64)}
    arrays["scratch"] = np.empty(problem.p)
    run["loss"] = _NAMES.index(loss.name)
    if isinstance(algorithm.primal, scenario.GradientSteps):
        run["method"], run["steps"] = GRADIENT, algorithm.primal.gradient_steps
        arrays |= {"points": design(data.X, data.y), "targets": data.y}
        arrays["lengths"] = _step_lengths(setup, a, b)
    elif loss.name == "quadratic":
        run["method"] = AFFINE
        arrays["shrink"], arrays["shift"] = _affine_steps(setup, a, b)
    elif isinstance(loss, Kinked):
        run["method"] = BOX
        points, targets, run["lowest"] = loss.boxed(data.X, data.y)
        arrays |= {"points": points, "targets": targets, "duals": np.zeros(len(targets))}
        arrays["grams"], arrays["gram_offsets"] = _grams(points, data.offsets)
    else:
        run["method"] = NEWTON
        arrays["points"] = design(data.X, data.y) * data.y[:, None]
        arrays["duals"] = 0.5 * np.repeat(b, data.sizes)
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _grams(points: Floats, offsets: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """All ``agents.losses.gram_matrix`` end to end, and where each begins."""
    grams = [gram_matrix(points[low:high]).ravel() for low, high in pairwise(offsets)]
    return np.concatenate([*grams, np.empty(0)]), np.cumsum([0, *map(len, grams)])


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
def _points(run: Any, first: int, count: int) -> Any:
    """Points (count, p) of an agent."""
    return row(run.points + 8 * run.p * first, 0, count * run.p).reshape((count, run.p))


@njit(cache=True)
def _part(address: int, first: int, count: int) -> Any:
    """Numbers (count,) from the first one on."""
    return row(address + 8 * first, 0, count)


@njit(cache=True)
def step(run: Any, i: int, pull_sum: Any, theta: Any) -> bool:
    """Agent i's new model, into ``theta``; False if the limit of passes was reached first."""
    p = run.p
    a, b = row(run.a, 0, run.n)[i], row(run.b, 0, run.n)[i]
    v = row(run.scratch, 0, p)
    for x in range(p):
        v[x] = pull_sum[x] / a
    if run.method == AFFINE:
        shrink = row(run.shrink, i, p * p).reshape((p, p))
        prox_quadratic(shrink, row(run.shift, i, p), v, theta)
        return True
    offsets = view(run.offsets, run.n + 1, np.int64)
    first, count = offsets[i], offsets[i + 1] - offsets[i]
    Z = _points(run, first, count)
    if run.method == BOX:
        t, dual = _part(run.targets, first, count), _part(run.duals, first, count)
        starts = view(run.gram_offsets, run.n + 1, np.int64)
        side = count if starts[i + 1] > starts[i] else 0
        gram = _part(run.grams, starts[i], side * side).reshape((side, side))
        return prox_box(Z, gram, t, run.lowest * b, b, a, v, dual, theta)
    if run.method == NEWTON:
        return prox_logistic(Z, a, b, v, _part(run.duals, first, count), theta)
    length = row(run.lengths, 0, run.n)[i]
    _gradient_steps(run, a, b, v, Z, _part(run.targets, first, count), length, theta)
    return True


@njit(cache=True)
def _gradient_steps(
    run: Any, a: float, b: float, v: Any, Z: Any, y: Any, length: float, theta: Any
) -> None:
    """``agents.losses.GradientSteps``."""
    gradient = np.empty(run.p)
    for s in range(run.steps):
        gradient[:] = 0.0
        for k in range(len(y)):
            prediction = 0.0
            for x in range(run.p):
                prediction += Z[k, x] * theta[x]
            slope = _slope(run.loss, prediction, y[k])
            for x in range(run.p):
                gradient[x] += slope * Z[k, x]
        size = length if length > 0.0 else 2.0 / (a * (s + 2))
        for x in range(run.p):
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
