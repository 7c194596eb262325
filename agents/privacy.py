"""Differential privacy of an agent's points: how much noise, how often, and what it adds up to.

Every update of an agent shows its neighbours something of its data.  How much that is, is one
number: ε_t for Laplace noise; for Gaussian noise μ_t, the sensitivity over the standard deviation.
What k updates spend together is for Gaussian noise known in closed form, for Laplace noise the
least of three bounds (Kairouz, Oh and Viswanath 2015) or, with the extra ``privacy``, what their
privacy loss distribution says.  The number is the largest with which the updates asked for stay
within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.special import log_ndtr, ndtr

from agents.losses.loss import design
from agents.parameters import Collaborative, Count, Positive, Share, Strict, report
from agents.rule import Floats, Start

#: A privacy loss distribution is known in so many steps of ε_t, and rounded up.
LOSS_STEPS = 300


# --- accountants ----------------------------------------------------------------------------------
def bounds(epsilon: float, updates: int, delta: float) -> tuple[float, float, float]:
    """What ``updates`` steps of ε_t = ``epsilon`` spend, by each of the three bounds.

    The first holds with δ = 0 too, the others only with ``delta`` > 0.
    """
    if updates == 0:
        return 0.0, 0.0, 0.0
    if delta == 0.0:
        return updates * epsilon, math.inf, math.inf
    squares = updates * epsilon**2
    S = updates * epsilon * math.tanh(epsilon / 2)  # (e^ε − 1) ε / (e^ε + 1) each
    return (
        updates * epsilon,
        S + math.sqrt(2 * squares * math.log(1 / delta)),
        S + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta)),
    )


def composed(epsilon: float, updates: int, delta: float) -> float:
    """The same from the distribution of the privacy loss, which needs the extra ``privacy``.

    Noise on all coordinates hides a change of given L1 norm at least as well as noise on one hides
    the same change there, so that the distribution is that of one number.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    if updates == 0 or delta == 0.0:
        return updates * epsilon
    fine = epsilon / LOSS_STEPS
    one = from_laplace_mechanism(1.0 / epsilon, value_discretization_interval=fine)
    return float(one.self_compose(updates).get_epsilon_for_delta(delta))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ of one release with Gaussian noise of standard deviation 1/``mu`` times the sensitivity.

    Balle and Wang (2018), theorem 8; k releases are one of √k μ_t (Dong, Roth and Su 2022).
    """
    far, near = -epsilon / mu - mu / 2, -epsilon / mu + mu / 2
    return float(ndtr(near) - math.exp(epsilon + log_ndtr(far)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε with that δ."""
    if mu == 0.0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    return largest(lambda epsilon: gaussian_delta(epsilon, mu) > delta, 0.0)


def largest(
    fits: Callable[[float], bool], low: float, high: float | None = None, halvings: int = 200
) -> float:
    """The largest number from ``low`` that fits, by bisection; ``high`` does not."""
    if high is None:
        high = max(2.0 * low, 1.0)
        while fits(high):
            high *= 2.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def per_update(budget: float, updates: int, delta: float) -> float:
    """The largest ε_t with which all updates together spend at most the budget, by the bounds."""

    def fits(epsilon: float) -> bool:
        return min(bounds(epsilon, updates, delta)) <= budget

    return largest(fits, budget / updates, budget)


class Privacy(Strict):
    """Each agent's points are hidden from all others, (ε, δ)-differentially."""

    epsilon: Positive
    """ε: what an agent spends at most."""
    delta: Annotated[float, Field(ge=0, lt=1)]
    """δ; 0 allows Laplace noise and simple sums of ε only."""
    updates: Count
    """How many updates an agent makes before its budget is spent."""
    clip: Positive
    """G: each point's gradient is clipped to this norm: L1 for Laplace noise, L2 for Gaussian."""
    radius: Positive = 1.0
    """Points are scaled down to this L2 norm where they are longer."""
    noise: Literal["laplace", "gaussian"] = "laplace"
    """The law of the noise."""
    accountant: Literal["bounds", "exact"] = "bounds"
    """What k updates with Laplace noise spend: the least of three bounds, or exactly (needs the
    extra privacy); of Gaussian noise it is known in closed form."""
    after: Literal["smooth", "keep"] = "smooth"
    """Once its budget is spent, an agent smooths its last private model over the graph by model
    propagation, or keeps it; it looks at its data in neither case."""
    smoothing: Share = 0.9
    """The trade-off α of that model propagation, and of the start private."""

    @model_validator(mode="after")
    def _gaussian_noise_has_a_delta(self) -> Self:
        if self.noise == "gaussian" and self.delta == 0.0:
            report([("delta", "gaussian noise hides nothing with δ = 0; must be greater than 0")])
        return self

    @property
    def is_exact(self) -> bool:
        """Does it need the extra ``privacy``?"""
        return self.accountant == "exact" and self.noise == "laplace"

    @property
    def step(self) -> float:
        """ε_t, or μ_t: the scale of the noise is the sensitivity over it."""
        return _step(self)

    def spent(self, updates: int) -> float:
        """ε of so many updates."""
        return _spent(self, self.step, updates)


def _spent(privacy: Privacy, step: float, updates: int) -> float:
    if privacy.noise == "gaussian":
        return gaussian_epsilon(math.sqrt(updates) * step, privacy.delta)
    if privacy.is_exact:
        return composed(step, updates, privacy.delta)
    return min(bounds(step, updates, privacy.delta))


@cache
def _step(privacy: Privacy) -> float:
    budget, updates, delta = privacy.epsilon, privacy.updates, privacy.delta
    if privacy.noise == "gaussian":
        one = largest(lambda mu: gaussian_delta(budget, mu) <= delta, 0.0)
        return one / math.sqrt(updates)
    least = per_update(budget, updates, delta)
    if not privacy.is_exact:
        return least
    return largest(lambda epsilon: composed(epsilon, updates, delta) <= budget, least, halvings=24)


# --- the rule's side ------------------------------------------------------------------------------
class Private(Collaborative):
    """Keys of ``algorithm`` for coordinate descent."""

    privacy: Privacy | None = None
    """Hide each agent's points from the others by noise; null hides nothing."""

    @model_validator(mode="after")
    def _first_models_are_public(self) -> Self:
        start = getattr(self, "start", "zero")
        if self.privacy is None and start == "private":
            report([("start", "private needs algorithm.privacy, which says how much noise")])
        if self.privacy is not None and start not in ("zero", "private") and isinstance(start, str):
            what = f"{start} would show what the data say, without any noise"
            report([("start", f"{what}; use zero, normal or private")])
        return self

    def hide(self, s: Any, start: Start) -> None:
        """Where points are hidden they are scaled, and noise, step and budget are set.

        When one point is replaced, the sum of clipped gradients changes by at most 2G in their
        norm.  The step must not depend on the points either, only on their number.  Agents without
        data have nothing to hide.
        """
        s.left = np.full(len(start.D), -1)
        privacy = self.privacy
        if privacy is None:
            start.gradients()
            start.curvatures()
            return
        assert start.loss.curvature is not None
        points, sizes = design(start.X, start.y), np.diff(start.offsets)
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        start.X = points * np.minimum(1.0, privacy.radius / np.maximum(lengths, 1e-300))
        laplace = privacy.noise == "laplace"
        start.gradients(privacy.clip, 1 if laplace else 2)
        (s.laplace if laplace else s.normal)[sizes > 0] = 2.0 * privacy.clip / privacy.step
        s.left[sizes > 0] = privacy.updates
        if getattr(self, "start", "zero") == "private":
            s.last = start.solitary
            s.left[sizes > 0] -= 1
        if privacy.after == "smooth":
            mu = (1.0 - privacy.smoothing) / privacy.smoothing
            s.share = 1.0 / (1.0 + mu * start.confidence)
        s.bound = np.asarray(start.loss.curvature * sizes * privacy.radius**2)

    def spent(self, left: NDArray[np.int64]) -> dict[str, Floats]:
        """ε of each agent so far, given the updates that it has left (−1: it has no data)."""
        privacy = self.privacy
        if privacy is None:
            return {}
        done = np.where(left < 0, 0, privacy.updates - left)
        each, index = np.unique(done, return_inverse=True)
        return {"epsilon": np.array([privacy.spent(int(k)) for k in each])[index]}
