"""Losses by name, beside what holds of them all (tests/conformance): special fits, far steps."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from agents import losses
from agents.losses import Smooth
from simulator.conformance.loss_checks import (
    Proximal,
    off_the_proximal_point,
    points,
    stationarity,
)

LOSSES = {kind: loss() for kind, loss in losses.LOSSES.items()}
NAMES = list(LOSSES)


def naive(name, theta, X, y):
    """L(θ), point by point."""
    total = 0.0
    for x, target in zip(X, y, strict=True):
        s = sum(a * b for a, b in zip(x, theta, strict=True))
        total += {
            "quadratic": lambda s=s, t=target: (s - t) ** 2,
            "absolute": lambda s=s, t=target: abs(s - t),
            "hinge": lambda s=s, t=target: max(0.0, 1 - t * s),
            "logistic": lambda s=s, t=target: float(np.logaddexp(0, -t * s)),
        }[name]()
    return total


# --- values and gradients ------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_values_are_plain_sums_over_points(name, rng):
    X, y = points(LOSSES[name], rng, 7, 3)
    theta = rng.normal(size=3)
    assert LOSSES[name].total(theta, X, y) == pytest.approx(naive(name, theta, X, y), rel=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_differences_of_the_value(name, rng):
    X, y = points(LOSSES[name], rng, 7, 3)
    theta, step = rng.normal(size=3), 1e-6
    for j, direction in enumerate(np.eye(3) * step):
        ahead, behind = (LOSSES[name].total(theta + sign * direction, X, y) for sign in (1, -1))
        slope = LOSSES[name].gradient(theta, X, y)[j]
        assert (ahead - behind) / (2 * step) == pytest.approx(slope, abs=1e-8)


def test_logistic_loss_does_not_overflow():
    X, y = np.array([[1e4], [-1e4]]), np.ones(2)
    assert LOSSES["logistic"].total(np.ones(1), X, y) == 1e4
    np.testing.assert_array_equal(LOSSES["logistic"].gradient(np.ones(1), X, y), [1e4])


# --- solitary models -----------------------------------------------------------------------------
def test_fits_without_a_ridge(rng):
    """Where every agent's is unique; else in words, of how many it is not."""
    offsets, X = np.array([0, 60, 60, 120]), rng.uniform(-1, 1, (120, 2))
    y = np.where(rng.random(120) < 0.8, np.sign(X @ [1.0, -2.0]), rng.choice([-1.0, 1.0], 120))
    fits = LOSSES["logistic"].fit_all(X, y, offsets, 0.0)
    for theta, own in ((fits[0], slice(60)), (fits[2], slice(60, 120))):
        assert stationarity(LOSSES["logistic"], theta, X[own], y[own], 0.0 * theta, 1.0) < 1e-10
    np.testing.assert_array_equal(fits[1], 0.0)
    with pytest.raises(ValueError, match="fit of 2 agents is not unique without a ridge: it has k"):
        LOSSES["hinge"].fit_all(X, y, offsets, 0.0)
    with pytest.raises(ValueError, match=r"fit of 1 agents is not unique .* too few independent"):
        LOSSES["logistic"].fit_all(X, y, np.array([0, 119, 120]), 0.0)
    with pytest.raises(ValueError, match="fit of 1 agents has no minimum without a ridge"):
        LOSSES["logistic"].fit_all(X, np.sign(X @ [1.0, -2.0]), np.array([0, 120]), 0.0)


def test_quadratic_fits_are_the_least_squares_of_least_norm(rng):
    for m in (2, 5, 9):
        X, y = rng.normal(size=(m, 5)), rng.normal(size=m)
        expected = np.linalg.lstsq(X, y, rcond=None)[0]
        np.testing.assert_allclose(LOSSES["quadratic"].fit(X, y, 0.01, 5), expected, atol=1e-12)


def test_means_and_medians_without_features(rng):
    y = rng.normal(10, 4, 8)
    offsets = np.array([0, 3, 3, 8])
    means = LOSSES["quadratic"].fit_all(None, y, offsets, 0.01)
    np.testing.assert_allclose(means, [[y[:3].mean()], [0.0], [y[3:].mean()]], rtol=1e-14)
    medians = LOSSES["absolute"].fit_all(None, y, offsets, 0.01)
    np.testing.assert_allclose(medians, [[np.median(y[:3])], [0.0], [np.median(y[3:])]], rtol=1e-9)


@given(m=st.integers(1, 30), p=st.integers(1, 5), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_absolute_fits_are_as_good_as_linear_programming(m, p, scale):
    rng = np.random.default_rng([m, p])
    X, y = points(LOSSES["absolute"], rng, m, p, ["generic", "duplicated"][m % 2])
    y = y * scale
    theta = LOSSES["absolute"].fit(X, y, 0.01, p)
    program = linprog(  # minimise Σ u_k with −u ≤ Xθ − y ≤ u
        np.concatenate([np.zeros(p), np.ones(m)]),
        A_ub=np.block([[X, -np.eye(m)], [-X, -np.eye(m)]]),
        b_ub=np.concatenate([y, -y]) / scale,
        bounds=[(None, None)] * p + [(0, None)] * m,
    )
    value = LOSSES["absolute"].total(theta, X, y) / scale
    assert value == pytest.approx(program.fun, abs=1e-7)
    if m <= p and m % 2 == 0:
        np.testing.assert_allclose(theta, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-6)


def test_absolute_fit_of_nearly_dependent_points():
    X = np.array([[0.9, -1.0, -0.6], [0.8, -0.1, 0.4], [0.3, 0.3, 0.0]])
    X[2] = 0.4 * X[1] - 0.2 * X[0] + [0.0, 0.0, 2e-6]
    y = np.array([1.0, -1.0, -1.0])
    theta = LOSSES["absolute"].fit(X, y, 0.01, 3)
    assert LOSSES["absolute"].total(theta, X, y) < 1e-6  # interpolated, with ‖θ‖ about 10⁵


# --- proximal steps ------------------------------------------------------------------------------
@given(
    name=st.sampled_from(NAMES),
    m=st.integers(0, 40),
    p=st.integers(1, 12),
    kind=st.sampled_from(["generic", "duplicated", "zeros"]),
    ratio=st.sampled_from([1e-2, 1.0, 30.0, 1e3]),
    reach=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_proximal_points_are_stationary(name, m, p, kind, ratio, reach):
    """As one check of conformance says, of many more points."""
    assert off_the_proximal_point(LOSSES[name], m, p, kind, ratio, reach) is None


@pytest.mark.parametrize("name", ["hinge", "absolute"])
@pytest.mark.parametrize(("m", "p"), [(500, 2), (200, 10), (20, 50)])
@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_kinked_steps_hardly_ever_reach_their_limit(name, m, p, ratio, rng):
    X, y = points(LOSSES[name], rng, m, p)
    proximal = Proximal(LOSSES[name], X, y, 1.0, ratio)
    for v in rng.normal(0, 10, (3, p)):
        proximal.step(v)
    assert proximal.exhausted == 0


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize(("m", "p"), [(3, 20), (50, 4)])
def test_logistic_steps_converge_from_far_away(ratio, m, p, rng):
    X, y = points(LOSSES["logistic"], rng, m, p)
    proximal = Proximal(LOSSES["logistic"], X, y, 1.0, ratio)
    for v in rng.normal(0, 1, (4, p)) * 1e3:
        theta = proximal.step(v)
        residual = stationarity(LOSSES["logistic"], theta, X, y, theta - v, ratio)
        assert residual < 1e-10 * (1e3 + ratio) * np.sqrt(m * p)
    assert proximal.exhausted == 0


@pytest.mark.parametrize("name", ["hinge", "absolute"])
def test_near_a_kink_rounding_does_not_decide_the_slope(name):
    loss = LOSSES[name]
    at = 1.0  # y = 1: the margin is 1, the residual 0
    near = at + np.array([-1e-12, 0.0, 1e-12])
    assert set(loss.slopes(near, np.ones(3))) == {0.0}
    assert loss.slopes(np.array([0.9]), np.ones(1))[0] == -1.0


# --- parameters -----------------------------------------------------------------------------------
class Leaning(Smooth):
    """(s − y)²/2, up to ``delta`` or on both sides: parameters of several types, in any order."""

    kind: Literal["leaning"] = "leaning"
    both: bool = True
    note: str = "none"
    factor: float | None = 3.0
    delta: float = 1.0
    power: int = 2

    def value(self, s, y):
        """Of all of them that are numbers."""
        r = min(s - y, self.delta) if self.both else s - y
        return r**self.power / 2


@pytest.mark.parametrize("both", [True, False])
def test_parameters_are_the_same_in_compiled_code(both):
    loss = Leaning(both=both, delta=0.25)
    s, y = np.array([-1.0, 0.1, 4.0]), np.zeros(3)
    expected = [loss.value(*pair) for pair in zip(s, y, strict=True)]
    np.testing.assert_allclose(loss.values(s, y), expected, rtol=1e-15)
