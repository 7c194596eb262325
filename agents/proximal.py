"""Proximal steps, argmin_θ (a/2)‖θ − v‖² + b·L(θ), one function for each kind of loss.

``Attached`` is a loss with the data of a run's agents, whose steps and gradients these are; an
agent has its first ``counts`` points, and the others are yet to come.  Plain functions on arrays
write their result into ``theta`` (p,).  Where the solution is iterative they start from ``dual``
(m,), leave the new dual there, and return False when the limit of passes was reached first.
"""

# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from agents.box import TOLERANCE, combine, dot, dot_row, newton_direction, prox_box
from agents.machinery import compiling
from agents.machinery.compiling import FAILED, inlined, kernel
from agents.machinery.formulas import Formulas, LossError
from agents.machinery.intrinsics import invoke

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Newton's method solves the logistic step in about 10 iterations, 50 from very far away.
NEWTON_LIMIT = 200


# --- the loss of the agents whose data are ``Attached.data`` --------------------------------------
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


# --- what follows from one agent's points, a_i and b_i --------------------------------------------
@inlined
def affine_weigh(d: Any, i: int) -> bool:
    """Quadratic loss in one dimension: θ = (a v + 2b Σ x y) / (a + 2b Σ x²) = shrink·v + shift."""
    a, b = d.a[i], d.b[i]
    for k in range(d.offsets[i] + d.begun[i], d.offsets[i] + d.counts[i]):
        d.squares[i] += d.points[k, 0] * d.points[k, 0]
        d.products[i] += d.points[k, 0] * d.targets[k]
    d.begun[i] = d.counts[i]
    scale = a + 2.0 * b * d.squares[i]
    if scale == 0.0:  # nobody to talk to: never solved
        scale = 1.0
    d.shrink[i, 0, 0] = a / scale
    d.shift[i, 0] = 2.0 * b * d.products[i] / scale
    return True


def affine_weigh_all(d: Any, i: int) -> bool:
    """The same in any: θ = (a I + 2b XᵀX)⁻¹ (a v + 2b Xᵀy); by NumPy, from compiled code too."""
    a, b, own = d.a[i], d.b[i], slice(d.offsets[i], d.offsets[i] + d.counts[i])
    if a > 0.0:
        U, singular, Vt = np.linalg.svd(d.points[own], full_matrices=False)
        scale = a + 2.0 * b * singular**2
        d.shrink[i] = np.eye(d.p) - (Vt.T * (2.0 * b * singular**2 / scale)) @ Vt
        d.shift[i] = (Vt.T * (2.0 * b * singular / scale)) @ (U.T @ d.targets[own])
    return True


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
    """Smooth losses; a new point's dual begins with the slope at 0."""
    low, high = d.offsets[i], d.offsets[i] + d.counts[i]
    X, y, dual = d.points[low:high], d.targets[low:high], d.dual[low:high]
    for k in range(d.begun[i], d.counts[i]):
        dual[k] = -d.b[i] * d.level[low + k]
    d.begun[i] = d.counts[i]
    return prox_newton(d, X, y, d.a[i], d.b[i], v, dual, theta)


@inlined
def box_step(d: Any, i: int, v: Floats, theta: Floats) -> bool:
    """Kinked losses."""
    low, high = d.offsets[i], d.offsets[i] + d.counts[i]
    first, last = d.gram_offsets[i], d.gram_offsets[i + 1]
    side = d.offsets[i + 1] - low if last > first else 0
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
    low, high, a, b = d.offsets[i], d.offsets[i] + d.counts[i], d.a[i], d.b[i]
    scale = a + b * d.curvature[i]
    fixed = 1.0 / scale if d.smooth == 1 and scale > 0.0 else 0.0
    X, y = d.points[low:high], d.targets[low:high]
    predictions, there = np.empty(len(y)), np.empty(len(y))
    for k in range(d.steps):
        for z in range(len(y)):
            predictions[z] = dot_row(X, z, theta)
        slopes(d, predictions, y, there)
        length = fixed if fixed > 0.0 else 2.0 / (a * (k + 2))
        for x in range(d.p):
            total = 0.0
            for z in range(len(y)):
                total += there[z] * X[z, x]
            theta[x] -= length * (a * (theta[x] - v[x]) + b * total)
    return True


@inlined
def gradient_at(d: Any, i: int, theta: Floats, out: Floats) -> bool:
    """out ← a (sub)gradient of L_i at θ, each point's part clipped to ``clip`` > 0."""
    low, high = d.offsets[i], d.offsets[i] + d.counts[i]
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
            if d.norm == 2:
                size = math.sqrt(dot_row(X, z, X[z]))
            else:
                for x in range(d.p):
                    size += abs(X[z, x])
            size *= abs(rate)
            if size > d.clip:
                rate *= d.clip / size
        for x in range(d.p):
            out[x] += rate * X[z, x]
    return True


# --- a loss with the data of a run ----------------------------------------------------------------
class Attached:
    """A loss with the data of a run's agents: gradients, and proximal steps if a and b are given.

    ``pointers`` are for compiled code; the methods do the same from Python.
    """

    def __init__(
        self,
        loss: Any,
        X: Floats,
        y: Floats,
        offsets: Indices,
        a: Floats | None = None,
        b: Floats | None = None,
        gradient_steps: int = 0,
        *,
        clip: float = 0.0,
        norm: int = 1,
        proximal: bool = True,
        curved: bool = False,
        counts: Indices | None = None,
    ):
        points, offsets = np.ascontiguousarray(X, dtype=float), offsets.astype(np.int64)
        given: dict[str, Any] = {"points": points, "targets": y, "offsets": offsets}
        given |= {"steps": gradient_steps, "clip": clip, "norm": norm}
        n, step = len(offsets) - 1, "gradient_steps" if gradient_steps else loss.proximal_step
        counts = np.diff(offsets) if counts is None else counts
        given |= {"counts": counts, "smooth": 0}
        if proximal:
            given |= {"a": np.zeros(n), "b": np.zeros(n), "begun": np.zeros(n, np.int64)}
            given |= {} if gradient_steps else loss.exact(points, y, offsets)
        if curved or gradient_steps:
            given |= {"smooth": int(loss.curvature is not None), "curvature": np.zeros(n)}
            if given["smooth"]:
                given["curvature"] = loss.curvatures(points, offsets[:-1], counts)
        numbers, arrays = _filled(given)
        self._loss, self._functions, self._formulas = loss, _steps(), Formulas(loss)
        self._step, self._proximal = step, proximal
        #: All of it as plain Python sees it.
        self.data = self._functions.state(**numbers, **arrays, formulas=self._formulas)
        self._record = self._functions.layout.record(numbers, arrays)
        self.address = int(self._record.ctypes.data)
        self._record["formulas_constants"] = self._formulas.address
        if a is not None and b is not None:
            self.data.a[:], self.data.b[:] = a, b
            if self._factors is not None:
                for i in range(n):
                    self._factors(self.data, i)

    @property
    def _factors(self) -> Callable[[Any, int], bool] | None:
        """What makes anew what follows from an agent's points, a and b, if anything does."""
        if self._step != "affine_step" or not self._proximal:
            return None
        one: Any = self._functions.functions["affine_weigh"]
        return (one if not compiling.JIT else one.py_func) if self.data.p == 1 else affine_weigh_all

    def weigh(self, i: int, a: float, b: float) -> None:
        """Set a_i and b_i."""
        self.data.a[i], self.data.b[i] = a, b
        if self._factors is not None:
            self._factors(self.data, i)

    def pointers(self, gradient: bool) -> dict[str, int]:
        """Of the proximal step and the gradient, 0 for what was not asked for; of the data.

        And of what has to be made anew with a and b, which are there as well.
        """
        data, prox, weigh = self.data, 0, 0
        if self._proximal:
            prox = self._pointer(self._step)
            if self._factors is affine_weigh_all:
                weigh = self._from_python()
            elif self._factors is not None:
                weigh = self._pointer("affine_weigh")
        found = {"prox": prox, "gradient": self._pointer("gradient_at") if gradient else 0}
        places = {name: getattr(data, name).ctypes.data for name in ("a", "b", "curvature")}
        return found | places | {"weigh": weigh, "data": self.address}

    def _from_python(self) -> int:
        """The pointer of ``affine_weigh_all``, with the signature of compiled functions."""

        def weighed(_address: int, i: int, _k: int, _a: int, _b: int) -> int:
            try:
                affine_weigh_all(self.data, i)
            except Exception:
                return compiling.FAILED
            return compiling.FINE

        self._callback = _CALLBACK(weighed)
        return int(ctypes.cast(self._callback, ctypes.c_void_p).value or 0)

    def _pointer(self, step: str) -> int:
        """Of a step; the formulas that it needs, and no others, are compiled."""
        for label in _NEEDS.get(step, ()):
            self._record[f"formulas_{label}"] = self._formulas.pointer(label)
        return int(self._functions.address(step))

    def prox(self, i: int, v: Floats, theta: Floats) -> bool:
        """θ ← the proximal point of v for agent i; False if a limit was reached first."""
        return self._call(self._step, i, v, theta)

    def prox_all(self, v: Floats, thetas: Floats) -> int:
        """The proximal points (n, p) of one v for all agents; how many reached a limit first."""
        return sum(not self.prox(i, v, theta) for i, theta in enumerate(thetas))

    def gradient_of(self, i: int, theta: Floats, out: Floats) -> None:
        """out ← a (sub)gradient of L_i at θ."""
        self._call("gradient_at", i, theta, out)

    def _call(self, label: str, i: int, a: Floats, b: Floats) -> bool:
        if not compiling.JIT:
            return bool(self._functions.functions[label](self.data, i, a, b))
        pointer = self._pointer(label)
        verdict = int(compiling.call(pointer, self.address, i, 0, a.ctypes.data, b.ctypes.data))
        if verdict == compiling.FAILED:
            raise self._fault(label, i, a, b)
        return verdict == compiling.FINE

    def _fault(self, label: str, i: int, *models: Floats) -> LossError:
        """The formula that failed: where the step stood, or farther away, where it looked ahead."""
        points = slice(self.data.offsets[i], self.data.offsets[i] + self.data.counts[i])
        y = self.data.targets[points]
        there = [self.data.points[points] @ theta for theta in models]
        for s in [*there, *(np.full(len(y), far) for far in _FAR)]:
            for formula in _NEEDS.get(label, ()):
                fault = self._formulas.fault(formula, s, y)
                if fault is not None:
                    return fault
        return LossError(f"loss {self._loss.kind}: {label} failed in compiled code only")


#: What is the same for all agents: the dimension, gradient steps instead of an exact solution (0:
#: exact), the least dual variable of a kinked loss as a multiple of b, the greatest norm of one
#: point's part of the gradient (0: no limit), and which norm, L1 or L2; are curvatures known?
_NUMBERS: dict[str, type] = {"p": int, "steps": int, "low": float, "clip": float, "norm": int}
_NUMBERS |= {"smooth": int}
#: The arrays, with their types and axes; those that a loss has no use for are empty.
_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    # The points of all agents end to end, and their targets; agent i has counts[i] of those from
    # offsets[i].
    "points": (float, ("M", "p")),
    "targets": (float, ("M",)),
    "offsets": (int, ("n1",)),
    "counts": (int, ("n",)),
    # The factors of (a_i/2)‖θ − v‖² + b_i L_i(θ).
    "a": (float, ("na",)),
    "b": (float, ("na",)),
    # How many of an agent's points the step knows already.
    "begun": (int, ("na",)),
    # The dual variables, from which iterative steps start; smooth: the slopes at 0.
    "dual": (float, ("Md",)),
    "level": (float, ("Ms",)),
    # Kinked: z, their lengths and t; the Gram matrices end to end, and where each begins; the
    # Cholesky factor of a part of each, and which part that is.
    "Z": (float, ("Mz", "p")),
    "norms": (float, ("Mz",)),
    "t": (float, ("Mz",)),
    "grams": (float, ("G",)),
    "gram_offsets": (int, ("g1",)),
    "roots": (float, ("G",)),
    "rooted": (int, ("Mz",)),
    # Quadratic: θ = shrink·v + shift; in one dimension Σ x² and Σ x y of the points known already.
    "squares": (float, ("nq",)),
    "products": (float, ("nq",)),
    "shrink": (float, ("nq", "p", "p")),
    "shift": (float, ("nq", "p")),
    # The Lipschitz constants of smooth losses' gradients.
    "curvature": (float, ("nl",)),
}
_AXES = {axis: int for _, axes in _ARRAYS.values() for axis in axes if isinstance(axis, str)}
_POINTERS = ("slopes", "bends", "constants")
#: What compiled code can call; from Python.
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
#: The formulas that a step needs.
_NEEDS = {
    "newton_step": ("slopes", "bends"),
    "gradient_steps": ("slopes",),
    "gradient_at": ("slopes",),
}
#: Predictions to try where a step has failed, and nobody knows at which.
_FAR = [sign * 10.0**k for k in range(-3, 13) for sign in (1, -1)]


@cache
def _steps() -> compiling.Functions:
    """The proximal steps and the gradient, for all losses."""
    steps = (affine_step, newton_step, box_step, gradient_steps, gradient_at)
    names = [step.__name__ for step in steps]
    vectors = "floats(a, s.p), floats(b, s.p)"
    return compiling.Functions(
        "proximal",
        compiling.Layout(_AXES | _NUMBERS, _ARRAYS, {"formulas": _POINTERS}),
        {**dict(zip(names, steps, strict=True)), "affine_weigh": affine_weigh},
        {name: f"verdict = 0 if f_{name}(s, i, {vectors}) else 2" for name in names}
        | {"affine_weigh": "f_affine_weigh(s, i)"},
        b"",
    )


def _filled(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All numbers and arrays of a record; what a loss has no use for is 0 or empty."""
    numbers: dict[str, Any] = dict.fromkeys(_AXES | _NUMBERS, 0)
    numbers |= {name: given[name] for name in _NUMBERS if name in given}
    for name in _ARRAYS.keys() & given.keys():
        numbers |= dict(zip(map(str, _ARRAYS[name][1]), given[name].shape, strict=True))
    arrays: dict[str, Any] = {}
    for name, (kind, axes) in _ARRAYS.items():
        empty: Any = np.zeros([numbers[str(axis)] for axis in axes], kind)
        arrays[name] = np.ascontiguousarray(given.get(name, empty), kind)
    return numbers, arrays
