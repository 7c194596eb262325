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

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.parameters import Strict

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def design(X: Floats | None, y: Floats) -> Floats:
    """The points as a contiguous (m, p) matrix: a column of ones where there are no features."""
    return np.ones((len(y), 1)) if X is None else np.ascontiguousarray(X, dtype=float)


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
    #: Kinked: z (M, p) and t (M); the Gram matrices end to end, and where each begins (n + 1).
    Z: Floats
    t: Floats
    grams: Floats
    gram_offsets: Indices
    #: Quadratic: θ = shrink·v + shift, (n, p, p) and (n, p).
    shrink: Floats
    shift: Floats
    #: The lengths of gradient steps (n,), 0 for the subgradient method's.
    lengths: Floats
    #: The loss's own parameters.
    constants: Floats


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
    #: Is the device's own method too slow for everybody's points at once?
    slow_on_many: ClassVar[bool] = False

    # --- what a loss states; ``self`` has the parameters, and in compiled code nothing else -------
    def value(self, s: float, y: float) -> float:
        """ℓ(s, y)."""
        raise NotImplementedError

    def slope(self, s: float, y: float) -> float:
        """∂ℓ/∂s; an element of the subdifferential at a kink."""
        raise NotImplementedError

    def bend(self, s: float, y: float) -> float:
        """∂²ℓ/∂s², away from kinks."""
        raise NotImplementedError

    @classmethod
    def exact_step(cls, slope: Any, bend: Any, wrap: Callable[..., Any]) -> Any:
        """The exact proximal step, made of ``agents.proximal``."""
        raise NotImplementedError

    def exact(self, X: Floats, y: Floats, offsets: Indices, a: Floats, b: Floats) -> dict[str, Any]:
        """The fields of ``Data`` that the exact step needs beside points and targets."""
        raise NotImplementedError

    def fit_all(self, X: Floats | None, y: Floats, offsets: Indices, ridge: float) -> Floats:
        """The solitary models (n, p) of n agents whose points lie end to end; 0 without points.

        They minimise L_i + (ridge/2)‖θ‖²: the proximal point of 0 with a = ridge.
        """
        n = len(offsets) - 1
        data = Attached(self, X, y, offsets, np.full(n, ridge), np.ones(n))
        models = np.zeros((n, data.data.p))
        unfinished = data.prox_all(np.zeros(data.data.p), models)
        if unfinished:
            raise ValueError(
                f"the {self.kind} fit of {unfinished} agents did not reach its accuracy; "
                "features and targets of very different size are the usual cause"
            )
        return models

    # --- what follows -----------------------------------------------------------------------------
    @property
    def constants(self) -> dict[str, float]:
        """The parameters that are numbers."""
        return {k: float(v) for k, v in self if isinstance(v, int | float)}

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
        s, y = (np.ascontiguousarray(array, dtype=float) for array in (s, y))
        out = np.empty(len(s))
        no_data = Attached(self, np.empty((0, 1)), np.empty(0), np.zeros(1, np.int64))
        no_data.each(label, s, y, out)
        return out

    def total(self, theta: Floats, X: Floats | None, y: Floats) -> float:
        """L(θ)."""
        return float(self.values(design(X, y) @ theta, y).sum())

    def gradient(self, theta: Floats, X: Floats | None, y: Floats) -> Floats:
        """A (sub)gradient of L at θ, (p,)."""
        points = design(X, y)
        gradient: Floats = self.slopes(points @ theta, y) @ points
        return gradient

    def fit(self, X: Floats | None, y: Floats, ridge: float, p: int) -> Floats:
        """The solitary model of one agent, (p,)."""
        if len(y) == 0:
            return np.zeros(p)
        return self.fit_all(X, y, np.array([0, len(y)]), ridge).ravel()


class Smooth(Loss):
    """Losses with two derivatives."""

    @classmethod
    def exact_step(cls, slope: Any, bend: Any, wrap: Callable[..., Any]) -> Any:
        """Newton's method."""
        from agents import proximal
        from agents.compiling import bind

        solver = wrap(bind(proximal.prox_newton, slope=slope, bend=bend))
        return wrap(bind(proximal.newton_step, prox_newton=solver))

    def exact(self, X: Floats, y: Floats, offsets: Indices, a: Floats, b: Floats) -> dict[str, Any]:
        """Start from the slopes at 0."""
        return {"dual": -np.repeat(b, np.diff(offsets)) * self.slopes(np.zeros(len(y)), y)}


class Kinked(Loss):
    """Losses made of straight pieces, b·L(θ) = Σ_k max over d in [low·b, b] of −d (z_k·θ − t_k)."""

    #: The least dual variable, as a multiple of b; the greatest is b itself.
    low: ClassVar[float] = 0.0

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats]:
        """z (m, p) and t (m,)."""
        raise NotImplementedError

    def bend(self, s: float, y: float) -> float:
        """0."""
        return 0.0

    @classmethod
    def exact_step(cls, slope: Any, bend: Any, wrap: Callable[..., Any]) -> Any:
        """A quadratic program in a box."""
        from agents import proximal

        return wrap(proximal.box_step)

    def exact(self, X: Floats, y: Floats, offsets: Indices, a: Floats, b: Floats) -> dict[str, Any]:
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
            "t": t,
            "low": self.low,
            "grams": np.concatenate([*grams, np.empty(0)]),
            "gram_offsets": np.concatenate([[0], np.cumsum(small**2)]).astype(np.int64),
        }


class Attached:
    """A loss with the data of a run's agents: gradients, and proximal steps if a and b are given.

    ``pointers`` are for compiled code; the methods do the same from Python.
    """

    def __init__(
        self,
        loss: Loss,
        X: Floats | None,
        y: Floats,
        offsets: Indices,
        a: Floats | None = None,
        b: Floats | None = None,
        gradient_steps: int = 0,
        *,
        clip: float = 0.0,
    ):
        from agents import compiling

        points, offsets = design(X, y), offsets.astype(np.int64)
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
        given["constants"] = np.array([*loss.constants.values(), 0.0])
        numbers, arrays = _filled(given, n, p, len(y))
        self.loss, self.functions = loss, functions_of(type(loss))
        self.data = Data(**{k: v for k, v in (numbers | arrays).items() if k in Data._fields})
        self._record = self.functions.layout.record(numbers, arrays)
        self.address = int(self._record.ctypes.data)
        self._jit = compiling.JIT
        self.exhausted = 0

    def pointers(self, gradient: bool) -> tuple[int, int, int]:
        """Of the proximal step and the gradient, 0 for what was not asked for; of the data."""
        prox = self.functions.address("prox") if len(self.data.a) else 0
        return prox, self.functions.address("gradient") if gradient else 0, self.address

    def prox(self, i: int, v: Floats, theta: Floats) -> bool:
        """θ ← the proximal point of v for agent i; False if a limit was reached first."""
        if self._jit:
            return self._call("prox", i, v, theta) == 0
        return bool(self._plain("prox")(self.loss, self.data, i, v, theta))

    def prox_all(self, v: Floats, thetas: Floats) -> int:
        """The proximal points (n, p) of one v for all agents; how many reached a limit first."""
        return sum(not self.prox(i, v, theta) for i, theta in enumerate(thetas))

    def gradient_of(self, i: int, theta: Floats, out: Floats) -> None:
        """out ← a (sub)gradient of L_i at θ."""
        if self._jit:
            self._call("gradient", i, theta, out)
        else:
            self._plain("gradient")(self.loss, self.data, i, theta, out)

    def each(self, label: str, s: Floats, y: Floats, out: Floats) -> None:
        """out ← values, slopes or bends of each s and y."""
        if self._jit:
            self._call(label, len(s), np.concatenate([s, y]), out)
        else:
            self._plain(label)(self.loss, s, y, out)

    def _plain(self, label: str) -> Any:
        return self.functions.functions[label]

    def _call(self, label: str, i: int, a: Floats, b: Floats) -> int:
        from agents.compiling import FAILED, call

        pointer = self.functions.address(label)
        verdict = int(call(pointer, self.address, i, 0, a.ctypes.data, b.ctypes.data))
        if verdict == FAILED:
            raise ValueError(f"the {self.loss.kind} loss failed in {label}")
        return verdict


_NUMBERS = {"p": int, "steps": int, "low": float, "clip": float, "n": int, "n1": int, "M": int}
_NUMBERS |= dict.fromkeys(("na", "Md", "Mz", "G", "g1", "nq", "nl", "C"), int)
_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "points": (float, ("M", "p")),
    "targets": (float, ("M",)),
    "offsets": (int, ("n1",)),
    "a": (float, ("na",)),
    "b": (float, ("na",)),
    "dual": (float, ("Md",)),
    "Z": (float, ("Mz", "p")),
    "t": (float, ("Mz",)),
    "grams": (float, ("G",)),
    "gram_offsets": (int, ("g1",)),
    "shrink": (float, ("nq", "p", "p")),
    "shift": (float, ("nq", "p")),
    "lengths": (float, ("nl",)),
    "constants": (float, ("C",)),
}


def _filled(given: dict[str, Any], n: int, p: int, points: int) -> tuple[dict[str, Any], ...]:
    """All numbers and arrays of a record; what a loss has no use for is empty."""
    exact = "Z" in given or "dual" in given
    numbers = {"p": p, "steps": 0, "low": 0.0, "clip": 0.0, "n": n, "n1": n + 1, "M": points}
    numbers |= {"na": n if "a" in given else 0, "Md": points if exact else 0}
    numbers |= {"Mz": points if "Z" in given else 0, "G": len(given.get("grams", ()))}
    numbers |= {"g1": n + 1 if "Z" in given else 0, "nq": n if "shrink" in given else 0}
    numbers |= {"nl": n if "lengths" in given else 0, "C": len(given["constants"])}
    numbers |= {name: given[name] for name in ("steps", "low", "clip") if name in given}
    arrays: dict[str, Any] = {}
    for name, (kind, shape) in _ARRAYS.items():
        sizes = tuple(axis if isinstance(axis, int) else int(numbers[axis]) for axis in shape)
        array = given.get(name)
        arrays[name] = np.zeros(sizes, kind) if array is None else np.ascontiguousarray(array, kind)
    return numbers, arrays


@cache
def functions_of(loss: type[Loss]) -> Any:
    """The functions of a loss's class, ready to be compiled."""
    from collections import namedtuple

    from agents import compiling, proximal

    kind, content = str(loss.model_fields["kind"].default), compiling.source_of(loss)
    wrap, bind = compiling.wrap_for(loss), compiling.bind
    value, slope, bend = (wrap(getattr(loss, name)) for name in ("value", "slope", "bend"))
    steps = wrap(bind(proximal.gradient_steps, slope=slope))
    exact = loss.exact_step(slope, bend, wrap)
    fields = [n for n, field in loss.model_fields.items() if field.annotation in (int, float)]
    parameters = ", ".join([*(f"s.constants[{k}]" for k in range(len(fields))), "0.0"])
    own, vectors = f"c = Constants({parameters}); ", "floats(a, s.p), floats(b, s.p)"
    pairs = "(c, floats(a, i), floats(a + 8 * i, i), floats(b, i))"
    return compiling.Functions(
        f"loss_{kind}",
        compiling.Layout(_NUMBERS, _ARRAYS),
        {
            "prox": wrap(bind(proximal.prox, exact_step=exact, gradient_steps=steps)),
            "gradient": wrap(bind(proximal.gradient_at, slope=slope)),
            "values": wrap(bind(proximal.each, slope=value)),
            "slopes": wrap(bind(proximal.each, slope=slope)),
            "bends": wrap(bind(proximal.each, slope=bend)),
        },
        {
            "prox": f"{own}verdict = 0 if f_prox(c, s, i, {vectors}) else 2",
            "gradient": f"{own}f_gradient(c, s, i, {vectors})",
            **{label: f"{own}f_{label}{pairs}" for label in ("values", "slopes", "bends")},
        },
        content,
        {"Constants": namedtuple("Constants", [*fields, "end"])},
    )


def curvatures(loss: Loss, X: Floats | None, y: Floats, offsets: Indices) -> Floats:
    """Lip of each agent's smooth loss, the Lipschitz constant of ∇L_i: κ λ_max(X_iᵀX_i), (n,)."""
    assert loss.curvature is not None
    points = design(X, y)
    return np.array(
        [
            loss.curvature * np.linalg.norm(points[low:high], 2) ** 2 if high > low else 0.0
            for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        ]
    )


def _step_lengths(loss: Loss, X: Floats, offsets: Indices, a: Floats, b: Floats) -> Floats:
    """1/(a + b·Lip), Lip the Lipschitz constant of ∇L_i; 0 where the loss has kinks."""
    if loss.curvature is None:
        return np.zeros(len(a))
    scale = a + b * curvatures(loss, X, np.empty(0), offsets)
    return np.where(scale > 0, 1.0 / np.where(scale > 0, scale, 1.0), 0.0)
