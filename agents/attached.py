"""A loss with the data of a run's agents: gradients and proximal steps.

The steps of ``agents.proximal`` reach what the loss states (``agents.machinery.formulas``)
through pointers.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents import proximal
from agents.machinery import compiling
from agents.machinery.formulas import Formulas, LossError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Data(NamedTuple):
    """All agents' points, end to end, in the form that proximal steps and gradients need."""

    p: int
    #: Gradient steps instead of an exact solution; 0: exact.
    steps: int
    #: Kinked: the least dual variable is this many times b.
    low: float
    #: The greatest L1 norm of one point's part of the gradient; 0: no limit.
    clip: float
    #: The points (M, p) and their targets (M); agent i's are offsets[i] … offsets[i + 1] − 1.
    points: Floats
    targets: Floats
    offsets: Indices
    #: The factors of (a_i/2)‖θ − v‖² + b_i L_i(θ), (n,).
    a: Floats
    b: Floats
    #: The dual variables (M,), from which iterative steps start.
    dual: Floats
    #: Kinked: z (M, p), their lengths (M) and t (M); the Gram matrices end to end, and where each
    #: begins (n + 1); the Cholesky factor of a part of each, and which part (M) that is.
    Z: Floats
    norms: Floats
    t: Floats
    grams: Floats
    gram_offsets: Indices
    roots: Floats
    rooted: Indices
    #: Quadratic: θ = shrink·v + shift, (n, p, p) and (n, p).
    shrink: Floats
    shift: Floats
    #: The lengths of gradient steps (n,), 0 for the subgradient method's.
    lengths: Floats
    #: What the loss states.
    formulas: Formulas


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
    ):
        points, offsets = np.ascontiguousarray(X, dtype=float), offsets.astype(np.int64)
        n, p = len(offsets) - 1, points.shape[1]
        given: dict[str, Any] = {"points": points, "targets": np.ascontiguousarray(y, dtype=float)}
        given |= {"p": p, "offsets": offsets, "steps": gradient_steps, "clip": clip}
        if a is not None and b is not None:
            given |= {"a": a, "b": b}
            given |= (
                {"lengths": _step_lengths(loss, points, offsets, a, b)}
                if gradient_steps
                else loss.exact(points, y, offsets, a, b)
            )
        numbers, arrays = _filled(given, n, p, len(y))
        self._loss, self._functions, self._formulas = loss, _steps(), Formulas(loss)
        self._step = "gradient_steps" if gradient_steps else loss.proximal_step
        data = {k: v for k, v in (numbers | arrays).items() if k in Data._fields}
        self.data = Data(**data, formulas=self._formulas)
        self._record = self._functions.layout.record(numbers, arrays)
        self.address = int(self._record.ctypes.data)
        self._record["formulas_constants"] = self._formulas.address

    def pointers(self, gradient: bool) -> tuple[int, int, int]:
        """Of the proximal step and the gradient, 0 for what was not asked for; of the data."""
        prox = self._pointer(self._step) if len(self.data.a) else 0
        return prox, self._pointer("gradient_at") if gradient else 0, self.address

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
        points = slice(self.data.offsets[i], self.data.offsets[i + 1])
        y = self.data.targets[points]
        there = [self.data.points[points] @ theta for theta in models]
        for s in [*there, *(np.full(len(y), far) for far in _FAR)]:
            for formula in _NEEDS.get(label, ()):
                fault = self._formulas.fault(formula, s, y)
                if fault is not None:
                    return fault
        return LossError(f"loss {self._loss.kind}: {label} failed in compiled code only")


_NUMBERS = {"p": int, "steps": int, "low": float, "clip": float, "n": int, "n1": int, "M": int}
_NUMBERS |= dict.fromkeys(("na", "Md", "Mz", "G", "g1", "nq", "nl"), int)
_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "points": (float, ("M", "p")),
    "targets": (float, ("M",)),
    "offsets": (int, ("n1",)),
    "a": (float, ("na",)),
    "b": (float, ("na",)),
    "dual": (float, ("Md",)),
    "Z": (float, ("Mz", "p")),
    "norms": (float, ("Mz",)),
    "t": (float, ("Mz",)),
    "grams": (float, ("G",)),
    "gram_offsets": (int, ("g1",)),
    "roots": (float, ("G",)),
    "rooted": (int, ("Mz",)),
    "shrink": (float, ("nq", "p", "p")),
    "shift": (float, ("nq", "p")),
    "lengths": (float, ("nl",)),
}
_POINTERS = ("slopes", "bends", "constants")
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
    names = ("affine_step", "newton_step", "box_step", "gradient_steps", "gradient_at")
    vectors = "floats(a, s.p), floats(b, s.p)"
    return compiling.Functions(
        "proximal",
        compiling.Layout(_NUMBERS, _ARRAYS, {"formulas": _POINTERS}),
        {name: getattr(proximal, name) for name in names},
        {name: f"verdict = 0 if f_{name}(s, i, {vectors}) else 2" for name in names},
        b"",
        {"Formulas": namedtuple("Formulas", _POINTERS)},
    )


def _filled(given: dict[str, Any], n: int, p: int, points: int) -> tuple[dict[str, Any], ...]:
    """All numbers and arrays of a record; what a loss has no use for is empty."""
    exact = "Z" in given or "dual" in given
    numbers = {"p": p, "steps": 0, "low": 0.0, "clip": 0.0, "n": n, "n1": n + 1, "M": points}
    numbers |= {"na": n if "a" in given else 0, "Md": points if exact else 0}
    numbers |= {"Mz": points if "Z" in given else 0, "G": len(given.get("grams", ()))}
    numbers |= {"g1": n + 1 if "Z" in given else 0, "nq": n if "shrink" in given else 0}
    numbers |= {"nl": n if "lengths" in given else 0}
    numbers |= {name: given[name] for name in ("steps", "low", "clip") if name in given}
    arrays: dict[str, Any] = {}
    for name, (kind, shape) in _ARRAYS.items():
        sizes = tuple(axis if isinstance(axis, int) else int(numbers[axis]) for axis in shape)
        array = given.get(name)
        arrays[name] = np.zeros(sizes, kind) if array is None else np.ascontiguousarray(array, kind)
    return numbers, arrays


def _step_lengths(loss: Any, X: Floats, offsets: Indices, a: Floats, b: Floats) -> Floats:
    """1/(a + b·Lip), Lip the Lipschitz constant of ∇L_i; 0 where the loss has kinks."""
    if loss.curvature is None:
        return np.zeros(len(a))
    scale = a + b * loss.curvatures(X, offsets)
    return np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
