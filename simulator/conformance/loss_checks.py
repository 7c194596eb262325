"""What a loss states: formulas against differences, steps against minimisers that are not ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import ValidationError
from scipy.optimize import lsq_linear, minimize

from agents.losses import Floats, Kinked, Loss
from agents.proximal import Attached
from simulator.conformance.subjects import CheckError, NotApplicableError, Subject, check

#: Of differences, and what they may be off, relative to the numbers involved.
STEP, SLACK = 1e-6, 1e-6
#: Predictions this near to a kink lie on it.
KINK = 1e-8


# --- formulas -------------------------------------------------------------------------------------
def variants(loss: Loss) -> Iterator[Loss]:
    """The loss, and with each of its parameters changed."""
    yield loss
    for name, value in loss:
        match value:
            case bool():
                changed: list[Any] = [not value]
            case int() | float():
                changed = [value + 1, value * 1.5, value / 2]
            case None:
                changed = [1.5, 2, True]
            case _:
                continue
        for other in changed:
            try:
                yield type(loss).model_validate({**loss.model_dump(), name: other})
            except ValidationError:  # not one of its values
                continue


def pairs(loss: Loss) -> tuple[Floats, Floats]:
    """Predictions and targets, also where formulas often have kinks."""
    targets = [-1.0, 1.0] if loss.labels else [-2.3, 0.0, 1.0, 3.1]
    s, y = [], []
    for target in targets:
        near = [sign * size for size in loss.constants.values() for sign in (1, -1)]
        special = [0.0, target, *(target + each for each in near)]
        spread = np.linspace(-6, 6, 50) + 0.0123
        s += [*special, *spread]
        y += [target] * (len(special) + len(spread))
    return np.array(s), np.array(y)


def _parameters_of(loss: Loss) -> str:
    given = ", ".join(f"{name}={value}" for name, value in loss if name != "kind")
    return f" with {given}" if given else ""


def _compare(loss: Loss, what: str, got: Floats, right: Floats, slack: Floats, of: str) -> None:
    """Raise for the first prediction where a formula is not what it must be."""
    wrong = np.flatnonzero(~(np.abs(got - right) <= slack))
    if len(wrong):
        (s, y), k = pairs(loss), int(wrong[0])
        where = f"for the prediction {s[k]:g} and the target {y[k]:g}{_parameters_of(loss)}"
        raise CheckError(f"{what} is {got[k]:.9g} {where}; {of} {right[k]:.9g}")


@check("formulas when compiled, for several parameters", "losses")
def constants(subject: Subject) -> str:
    """Value, slope and bend, compiled and plain, for parameters other than the given too."""
    count = 0
    for loss in variants(subject.instance):
        s, y = pairs(loss)
        for name in ("value", "slope", "bend"):
            plain = np.array([getattr(loss, name)(*pair) for pair in zip(s, y, strict=True)])
            compiled = getattr(loss, f"{name}s")(s, y)
            slack = 1e-12 * (1 + np.abs(plain))
            _compare(loss, f"compiled {name}", compiled, plain, slack, "in plain Python it is")
        count += 1
    return f"{count} choices of parameters"


def _differences(loss: Loss, name: str, of: str) -> str:
    """A formula against differences of another; where that has a kink there is nothing to say."""
    for each in variants(loss):
        s, y = pairs(each)
        below, low, at, high, above = (getattr(each, of)(s + k * STEP, y) for k in range(-2, 3))
        found, right = getattr(each, f"{name}s")(s, y), (high - low) / (2 * STEP)
        slack = SLACK * (1 + np.abs(found) + np.abs(at))
        others = (at - low) / STEP, (high - at) / STEP, (above - below) / (4 * STEP)
        smooth = np.all([np.abs(other - right) <= 10 * slack for other in others], axis=0)
        right = np.where(smooth, right, found)
        _compare(each, name, found, right, slack, f"by differences of its {of} it is")
    return ""


@check("slope against differences of the value", "losses")
def slope(subject: Subject) -> str:
    """∂ℓ/∂s."""
    return _differences(subject.instance, "slope", "values")


@check("bend against differences of the slope", "losses")
def bend(subject: Subject) -> str:
    """∂²ℓ/∂s²."""
    return _differences(subject.instance, "bend", "slopes")


@check("curvature bounds the bend", "losses")
def curvature(subject: Subject) -> str:
    """0 ≤ ∂²ℓ/∂s² ≤ ``curvature``."""
    if subject.instance.curvature is None:
        raise NotApplicableError("it states none")
    for loss in variants(subject.instance):
        bound, bends = loss.curvature, loss.bends(*pairs(loss))
        assert bound is not None
        _compare(loss, "bend", bends, np.clip(bends, 0, bound), 1e-9 * (1 + bends), "must be")
    return ""


@check("convex, kinks included", "losses")
def convex(subject: Subject) -> str:
    """ℓ(t) ≥ ℓ(s) + ℓ'(s) (t − s)."""
    for loss in variants(subject.instance):
        s, y = pairs(loss)
        values, slopes = loss.values(s, y), loss.slopes(s, y)
        for target in np.unique(y):
            own = y == target
            bound = values[own] + slopes[own] * (s[own][:, None] - s[own])
            worst = (bound - values[own][:, None] - 1e-9 * (1 + np.abs(bound))).max(axis=1)
            if worst.max() > 0:
                t = s[own][int(worst.argmax())]
                what = f"lies below a line that supports it elsewhere{_parameters_of(loss)}"
                raise CheckError(f"its value for the prediction {t:g}, target {target:g}, {what}")
    return ""


# --- fits and proximal steps ----------------------------------------------------------------------
def points(loss: Loss, rng: np.random.Generator, m: int, p: int, kind: str = "generic") -> Any:
    """Points and targets; ``kind`` is generic, duplicated (often with both labels) or zeros."""
    X = rng.uniform(-1, 1, (m, p))
    if kind == "duplicated" and m:
        X = X[rng.integers(0, max(1, m // 3), m)]
    if kind == "zeros":
        X[rng.random(m) < 0.4] = 0.0
    return X, rng.choice([-1.0, 1.0], m) if loss.labels else rng.normal(0, 3, m)


def stationarity(
    loss: Loss, theta: Floats, X: Floats, y: Floats, force: Floats, b: float, kink: float = KINK
) -> float:
    """The least ‖force + b·g‖ over the subgradients g of L at θ, by bounded least squares.

    It is 0 exactly where θ minimises a convex function with gradient ``force`` beside b·L.
    """
    s = X @ theta
    near = kink * np.maximum(1.0, np.abs(y)) if isinstance(loss, Kinked) else np.zeros(len(y))
    low, high = loss.slopes(s - near, y), loss.slopes(s + near, y)
    fixed = low == high
    rest = force + b * (low[fixed] @ X[fixed])
    if fixed.all():
        return float(np.abs(rest).max())
    free = X[~fixed].T
    best = lsq_linear(b * free, -rest, bounds=(low[~fixed], high[~fixed]), tol=1e-15)
    return float(np.abs(b * free @ best.x + rest).max())


class Proximal:
    """The proximal step of one agent, from Python."""

    def __init__(self, loss: Loss, X: Floats, y: Floats, a: float, b: float, steps: int = 0):
        offsets = np.array([0, len(y)])
        self.attached = Attached(loss, X, y, offsets, np.array([a]), np.array([b]), steps)
        self.theta = np.zeros(X.shape[1])
        #: Steps that reached a limit before their accuracy.
        self.exhausted = 0

    def step(self, v: Floats) -> Floats:
        """From where the last one has ended."""
        self.theta = self.theta.copy()
        self.exhausted += not self.attached.prox(0, v, self.theta)
        return self.theta


SIZES = [(0, 4), (1, 1), (3, 5), (6, 2), (12, 3), (40, 2)]
KINDS = ("generic", "duplicated", "zeros")


@check("solitary models are minimisers", "losses")
def fits(subject: Subject) -> str:
    """Of the loss with its ridge, all agents at once; 0 without points."""
    rng, loss = np.random.default_rng(1), subject.instance
    offsets = np.concatenate([[0], np.cumsum([3, 0, 1, 12, 40, 7])])
    for p in (1, 2, 6):
        X, y = points(loss, rng, offsets[-1], p)
        try:
            models = loss.fit_all(X, y, offsets, 0.01)
        except ValueError as error:
            raise CheckError(str(error)) from error
        ridge = 0.01 if loss.ridged else 0.0
        for i, (low, high) in enumerate(pairwise(offsets)):
            own, theta = (X[low:high], y[low:high]), models[i]
            rest = stationarity(loss, theta, *own, ridge * theta, 1.0)
            if not rest < 1e-8 or (high == low and theta.any()):
                what = f"{high - low} points in {p} dimensions: the gradient there is {rest:.3g}"
                raise CheckError(f"not so for {what}")
            if not np.array_equal(loss.fit(*own, 0.01, p), theta):
                raise CheckError(f"{high - low} points alone and among others differ")
    return ""


def off_the_proximal_point(
    loss: Loss, m: int, p: int, kind: str, ratio: float, reach: float, a: float = 0.7
) -> str | None:
    """What is wrong with three steps, the first cold; ``reach`` says how far away they begin."""
    rng = np.random.default_rng([m, p])
    X, y = points(loss, rng, m, p, kind)
    proximal = Proximal(loss, X, y, a, a * ratio)
    for v in rng.normal(0, 1, (3, p)) * reach:
        theta, size = proximal.step(v), 1 + reach + ratio * m
        kink = max(1e-9 * size, 2e-9)
        rest = stationarity(loss, theta, X, y, a * (theta - v), a * ratio, kink)
        what = f"{m} {kind} points in {p} dimensions, b/a = {ratio:g}, v of size {reach:g}"
        if not rest < 1e-9 * size:
            return f"{what}: the gradient there is {rest:.3g}"
        if proximal.exhausted:
            return f"{what}: the limit of passes was reached first"
    return None


@check("proximal points are stationary", "losses")
def proximal_points(subject: Subject) -> str:
    """0 is a subgradient of (a/2)‖θ − v‖² + b L(θ) at the step's result, by least squares."""
    count = 0
    for k, (m, p) in enumerate(SIZES):
        for ratio, reach in ((1e-2, 1.0), (1.0, 0.0), (30.0, 1.0), (1e3, 1e3)):
            wrong = off_the_proximal_point(subject.instance, m, p, KINDS[k % 3], ratio, reach)
            if wrong:
                raise CheckError(wrong)
            count += 3
    return f"{count} points"


@check("proximal points against SciPy's minimiser", "losses")
def general_minimiser(subject: Subject) -> str:
    """Started at the step's result and elsewhere, from plain values, it finds nothing lower."""
    rng, loss = np.random.default_rng(3), subject.instance
    X, y = points(loss, rng, 6, 2)
    a, b, v = 2.0, 3.0, rng.normal(size=2)

    def objective(theta: Floats) -> float:
        values = [loss.value(float(s), float(t)) for s, t in zip(X @ theta, y, strict=True)]
        return float(a / 2 * np.sum((theta - v) ** 2) + b * sum(values))

    theta = Proximal(loss, X, y, a, b).step(v)
    for start in (theta, v):
        best = minimize(
            objective, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}
        )
        if not objective(theta) <= best.fun + 1e-11 * (1 + abs(best.fun)):
            what = f"the objective is {objective(theta):.12g} at the step's result"
            raise CheckError(f"{what}, and {best.fun:.12g} at SciPy's")
    return ""


@check("gradient steps approach the proximal point", "losses")
def inexact_steps(subject: Subject) -> str:
    """A few are nearer than the start, and many are there; without points nothing moves."""
    rng, loss = np.random.default_rng(4), subject.instance
    X, y = points(loss, rng, 6, 3)
    v, start = rng.normal(size=3), rng.normal(size=3)
    exact, kept = Proximal(loss, X, y, 2.0, 0.5).step(v), v.copy()
    distances = [float(np.linalg.norm(start - exact))]
    for steps in (3, 3000):
        proximal = Proximal(loss, X, y, 2.0, 0.5, steps)
        proximal.theta = start
        distances.append(float(np.linalg.norm(proximal.step(v) - exact)))
    reached = 1e-12 if loss.curvature is not None else 3e-3
    if not (distances[2] < reached and distances[2] <= distances[1] < distances[0]):
        shown = ", ".join(f"{distance:.3g}" for distance in distances)
        raise CheckError(f"the distance after 0, 3 and 3000 steps is {shown}")
    empty = [Proximal(loss, X[:0], y[:0], 2.0, 5.0, steps) for steps in (0, 3)]
    empty[1].theta = kept
    ends = [proximal.step(v) for proximal in empty]
    if not (np.allclose(ends, v, rtol=1e-15, atol=0) and np.array_equal(v, kept)):
        raise CheckError("a step without points does not end where it was asked for, or changes v")
    return ""
