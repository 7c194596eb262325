"""What privacy costs and hides: sensitivities, noise, accountants, and an attack."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.stats import norm

from agents.losses.logistic import Logistic
from agents.privacy import (
    LOSS_STEPS,
    Privacy,
    bounds,
    composed,
    gaussian_delta,
    gaussian_epsilon,
    per_update,
)
from agents.rule import Start
from agents.rules.cd import CoordinateDescent
from agents.running import RunningRule
from simulator.engines.setup import prepare
from simulator.errors import SimulatorError
from simulator.runs.run import run
from simulator.runs.simulation import start_engine
from simulator.seeds import Streams
from tests.conftest import LINEAR, build, problem_of
from tests.engines.oracle_rules import propagated

PRIVACY = {"epsilon": 1.0, "delta": 1e-4, "updates": 8, "clip": 0.5, "radius": 0.8}
LAWS = ("laplace", "gaussian")


def private(start="zero", **changes):
    algorithm = {"kind": "cd", "mu": 0.4, "start": start, "privacy": {**PRIVACY, **changes}}
    return build(LINEAR, task__loss="logistic", algorithm=algorithm, stop={"time": 30}, seed=1)


def at_work(**changes):
    """The rule as a run starts with it, for calls as plain Python; an agent with many points."""
    scenario = private(**changes)
    streams = Streams(scenario.seed)
    setup = prepare(scenario, problem_of(scenario), streams, scenario.algorithm.rule)
    rule = RunningRule(setup.rule, setup.start(), streams.rule)
    return rule, int(np.argmax(np.diff(rule.loss.data.offsets)))


# --- accountants ----------------------------------------------------------------------------------
def test_the_three_bounds():
    """Kairouz, Oh and Viswanath, theorem 3.5, written out for unequal ε_t."""
    steps, delta = [0.3] * 7, 1e-5
    S = sum((math.exp(e) - 1) * e / (math.exp(e) + 1) for e in steps)
    squares = sum(e**2 for e in steps)
    assert bounds(0.3, 7, delta) == pytest.approx(
        (
            sum(steps),
            S + math.sqrt(2 * squares * math.log(1 / delta)),
            S + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta)),
        )
    )
    assert bounds(0.3, 0, delta) == (0, 0, 0)
    assert min(bounds(0.3, 7, 0.0)) == pytest.approx(2.1)


@pytest.mark.parametrize("updates", [1, 10, 1000])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("budget", [0.05, 1.0, 20.0])
def test_the_largest_step_within_the_budget(budget, delta, updates):
    step = per_update(budget, updates, delta)
    assert min(bounds(step, updates, delta)) <= budget * (1 + 1e-12)
    assert min(bounds(step * (1 + 1e-9), updates, delta)) > budget * (1 - 1e-12)
    assert step >= budget / updates


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 0.5), (0.1, 1.0), (4.0, 2.0), (0.0, 1.0)])
def test_the_curve_of_gaussian_noise(epsilon, mu):
    """P(S) − e^ε Q(S) for the S with P ≥ e^ε Q, of N(μ, 1) and N(0, 1), in figures."""
    x = np.linspace(-12, 14, 400_001)
    excess = np.maximum(norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), 0)
    assert gaussian_delta(epsilon, mu) == pytest.approx(np.trapezoid(excess, x), abs=1e-9)


@pytest.mark.parametrize("updates", [1, 10, 1000])
@pytest.mark.parametrize("delta", [1e-6, 0.1])
@pytest.mark.parametrize("budget", [0.05, 1.0, 20.0])
def test_gaussian_noise_spends_the_budget(budget, delta, updates):
    """So many releases are one with √updates times the μ (Dong, Roth and Su, corollary 2)."""
    given = {"epsilon": budget, "delta": delta, "updates": updates, "clip": 1.0}
    privacy = Privacy(**given, noise="gaussian")
    together = math.sqrt(updates) * privacy.step
    assert gaussian_delta(budget, together) == pytest.approx(delta, rel=1e-6)
    assert privacy.spent(updates) == pytest.approx(budget, rel=1e-6)
    assert privacy.spent(0) == 0
    assert gaussian_epsilon(1e-9, delta) == 0


LAPLACE = [(1.0, 1), (0.3, 7), (0.1, 40)]


@pytest.mark.parametrize(("epsilon", "updates"), LAPLACE)
def test_exact_composition_is_what_the_losses_add_up_to(epsilon, updates, rng):
    """δ = E (1 − e^(ε − loss))₊ over sums of losses, each ε_t, −ε_t or between; very many draws."""
    pytest.importorskip("dp_accounting")
    delta, draws = 0.01, 500_000
    claimed, losses = composed(epsilon, updates, delta), np.zeros(draws)
    for _ in range(updates):
        x = rng.laplace(size=draws)
        losses += np.abs(x - epsilon) - np.abs(x)
    values = np.maximum(1 - np.exp(claimed - losses), 0)
    error = values.std() / math.sqrt(draws)
    assert abs(values.mean() - delta) < 4.5 * error
    assert claimed < min(bounds(epsilon, updates, delta))


def test_one_release_is_known_in_closed_form():
    """δ(ε) = 1 − e^((ε − ε_t)/2), the area between two Laplace laws; never less is claimed."""
    pytest.importorskip("dp_accounting")
    for epsilon, delta in ((1.0, 0.01), (0.2, 1e-6), (5.0, 0.3)):
        excess = composed(epsilon, 1, delta) - (epsilon + 2 * math.log1p(-delta))
        assert -1e-12 < excess < (epsilon / LOSS_STEPS) ** 2


@pytest.mark.parametrize("law", LAWS)
def test_the_library_agrees_with_closed_forms(law):
    """Of Gaussian noise; of Laplace noise with δ = 0, where nothing is better than the sum."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    if law == "laplace":
        assert composed(0.3, 7, 0.0) == pytest.approx(2.1)
        return
    one = pld.from_gaussian_mechanism(2.0).self_compose(9)
    assert gaussian_epsilon(1.5, 1e-5) == pytest.approx(one.get_epsilon_for_delta(1e-5), rel=1e-3)


@pytest.mark.parametrize("updates", [1, 20])
def test_the_exact_accountant_needs_less_noise(updates):
    pytest.importorskip("dp_accounting")
    given = PRIVACY | {"updates": updates}
    loose, exact = Privacy(**given), Privacy(**given, accountant="exact")
    assert exact.step > loose.step
    assert composed(exact.step, updates, 1e-4) <= 1.0
    assert composed(exact.step * (1 + 1e-6), updates, 1e-4) > 1.0
    assert exact.spent(updates) == pytest.approx(1.0, rel=1e-6)


def test_without_the_library_the_extra_is_named(monkeypatch):
    """Where it is asked for by name, and is of use; what else a run does never depends on it."""
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    what = r"algorithm.privacy.accountant: exact needs dp-accounting.*pip install .*\[privacy\]"
    with pytest.raises(SimulatorError, match=what):
        run(private(accountant="exact"))
    for changes in ({}, {"accountant": "exact", "noise": "gaussian"}):
        assert run(private(**changes)).summary["communications"] > 0


# --- what is released -----------------------------------------------------------------------------
@pytest.mark.parametrize("law", LAWS)
def test_the_sensitivity_is_at_most_twice_the_clip(law, rng):
    """In the law's norm, when any one point of an agent is replaced by the worst there is; and it
    is reached: a smaller scale would not hide the point."""
    rule, i = at_work(noise=law)
    s, G, order = rule.state, PRIVACY["clip"], {"laplace": 1, "gaussian": 2}[law]
    data = s.loss.data
    row, before, after = int(data.offsets[i]), np.empty(s.p), np.empty(s.p)
    assert np.linalg.norm(data.points, axis=1).max() <= PRIVACY["radius"] * (1 + 1e-12)
    kept, worst = data.points[row].copy(), 0.0
    for _ in range(300):
        theta = rng.normal(size=s.p) * 10 ** rng.uniform(-2, 2)
        x = rng.normal(size=s.p)
        x *= PRIVACY["radius"] / np.linalg.norm(x)
        mirrored = 2 * (x @ theta) / (theta @ theta) * theta - x  # the same prediction
        changes = []
        for point, other in ((x, -x), (-x, x), (x, mirrored), (-x, -mirrored)):
            data.points[row] = point
            s.loss.gradient_of(i, theta, before)
            data.points[row] = other
            s.loss.gradient_of(i, theta, after)
            changes.append(np.linalg.norm(before - after, order))
        worst = max(worst, *changes)
    data.points[row] = kept
    assert 1.98 * G < worst <= 2 * G * (1 + 1e-12)
    own = np.diff(data.offsets)
    step = Privacy(**PRIVACY, noise=law).step
    scale, other = (s.laplace, s.normal) if law == "laplace" else (s.normal, s.laplace)
    np.testing.assert_allclose(scale, np.where(own > 0, 2 * G / step, 0.0), rtol=1e-12)
    assert not other.any()
    np.testing.assert_allclose(s.a, 1 / (1 + 0.2 * 0.25 * own * 0.8**2), rtol=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("after", ["smooth", "keep"])
def test_nothing_is_drawn_or_looked_at_after_the_budget(after, law):
    rule, i = at_work(noise=law, after=after)
    drawn, looked = [], []

    class Stream:
        def random(self):
            drawn.append(1)
            return 0.3

    class Loss:
        def gradient_of(self, i, theta, out):
            looked.append(1)
            out[:] = 0.0

    rule.state = rule.state._replace(stream=Stream(), loss=Loss())
    models = []
    for _ in range(12):
        rule.plain("solve", i, 0, None, None)
        models.append(rule.models[i].copy())
    uniforms = {"laplace": 1, "gaussian": 2}[law]
    assert (len(looked), len(drawn)) == (8, 8 * uniforms * rule.state.p)
    assert not np.array_equal(models[6], models[7])
    assert np.array_equal(models[8], models[7]) == (after == "keep")
    assert all(np.array_equal(model, models[8]) for model in models[9:])


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("start", ["zero", "private"])
def test_whose_budget_is_spent_may_have_any_data(start, mode, engine):
    """Other data from then on: every model that is sent, and what is known of others, stays."""
    changes = {"algorithm__mode": mode, "network": {"latency": 0.4, "drop": 0.2}, "engine": engine}
    scenario = build(private(start, updates=3).model_dump(), **changes)

    def models(other_from):
        """Those of every second; the data change at a given one."""
        setup = prepare(scenario, problem_of(scenario), streams := Streams(1), CoordinateDescent)
        assert streams is setup.streams
        engine = start_engine(setup, None)
        kept = []
        for second in range(30):
            if second == other_from:
                data = engine.rule.loss.data
                data.points[:] *= -3.0
                data.targets[:] *= -1.0
            engine.advance(time=second + 1.0, communications=None)
            kept += [engine.rule.arrays[name].copy() for name in ("models", "copies", "v")]
        return kept, engine.rule.arrays["left"]

    untouched, left = models(None)
    assert (left <= 0).all()
    spent = 20
    assert all(map(np.array_equal, untouched, models(spent)[0]))
    assert not all(map(np.array_equal, untouched, models(0)[0]))
    assert not np.array_equal(untouched[3 * spent], untouched[-3])  # they go on


def test_the_start_is_made_of_first_private_models():
    """A step from zero each, counted like any other; model propagation; no solitary models."""
    scenario = private("private", updates=3, smoothing=0.6)
    problem, streams = problem_of(scenario), Streams(scenario.seed)
    setup = prepare(scenario, problem, streams, scenario.algorithm.rule)
    again = Streams(scenario.seed)
    cold = private(updates=3)
    zero = prepare(cold, problem_of(cold), again, cold.algorithm.rule)
    rule = RunningRule(zero.rule, zero.start(), again.rule)
    for i in range(problem.n):
        rule.plain("solve", i, 0, None, None)
    start = setup.start()
    np.testing.assert_allclose(start.solitary, rule.models, rtol=1e-12)
    smooth = propagated(problem, 0.6, rule.models)
    np.testing.assert_allclose(start.models, smooth, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(start.copies, start.models[start.neighbour])
    own = problem.data.sizes > 0
    left = RunningRule(setup.rule, start, streams.rule).arrays["left"]
    assert set(left[own]) == {2}
    assert set(left[~own]) == {-1}
    spent = run(build(scenario.model_dump(), stop={"time": 1e-9}, record={"every": 1})).agents
    one = Privacy(**PRIVACY | {"updates": 3}).spent(1)
    np.testing.assert_allclose(spent["epsilon"], np.where(own, one, 0.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "uniforms", "expected"),
    [
        # −b sign(u) log(1 − 2|u|)
        ("laplace", [0.75, 0.1, 0.5], [-math.log(0.5), math.log(0.2), 0.0]),
        # b √(−2 log(1 − u)) cos(2π w)
        (
            "gaussian",
            [0.0, 0.3, 0.75, 0.0, 0.5, 0.5],
            [0.0, math.sqrt(2 * math.log(4)), -math.sqrt(2 * math.log(2))],
        ),
    ],
)
def test_the_noise_has_its_law(law, uniforms, expected):
    """Through the model: θ' = θ + a (… − (μ/2) η − θ)."""
    rule, i = at_work(noise=law)
    s, values = rule.state, iter(uniforms)

    class Stream:
        def random(self):
            return next(values)

    class Loss:
        def gradient_of(self, i, theta, out):
            out[:] = 0.0

    rule.state = s._replace(stream=Stream(), loss=Loss())
    s.models[i], s.v[i], s.left[i] = 0.0, 0.0, 1
    rule.plain("solve", i, 0, None, None)
    eta = -s.models[i] / (s.a[i] * s.mu / 2) / (s.laplace[i] + s.normal[i])
    assert eta == pytest.approx(expected, abs=1e-12)


def test_laplace_noise_is_finite():
    """u = 0 has a chance."""
    rule, i = at_work()

    class Stream:
        def random(self):
            return 0.0

    rule.state = rule.state._replace(stream=Stream())
    rule.plain("solve", i, 0, None, None)
    assert np.isfinite(rule.models[i]).all()


def test_what_is_spent_is_in_the_table():
    result = run(private())
    points = result.agents["points"].to_numpy()
    assert (points == 0).any()
    assert (result.agents["epsilon"][points == 0] == 0).all()
    assert result.agents["epsilon"][points > 0].to_numpy() == pytest.approx(1.0, rel=1e-9)
    few = run(build(private().model_dump(), stop={"time": 0.5}))
    step = per_update(1.0, 8, 1e-4)
    allowed = [min(bounds(step, k, 1e-4)) for k in range(9)]
    assert all(np.min(np.abs(np.array(allowed) - e)) < 1e-12 for e in few.agents["epsilon"])
    assert few.agents["epsilon"].max() < 1
    assert "epsilon" not in run(build(LINEAR, stop={"time": 1})).agents


# --- an attack ------------------------------------------------------------------------------------
RELEASES = 100_000
ATTACKS = [
    {"delta": 0.0},
    {"delta": 0.05, "accountant": "exact"},
    {"delta": 0.05, "noise": "gaussian"},
    {"delta": 0.05, "noise": "gaussian", "updates": 3},
]


def releases(label, seed, privacy):
    """The first step of so many agents who have the same two points, one with the given label."""
    n, none = RELEASES, np.zeros(0, dtype=np.int64)
    start = Start(
        first=np.zeros(n + 1, dtype=np.int64),
        neighbour=none,
        W=np.zeros(0),
        D=np.ones(n),
        confidence=np.ones(n),
        solitary=np.zeros((n, 1)),
        models=np.zeros((n, 1)),
        copies=np.zeros((0, 1)),
        loss=Logistic(),
        X=np.tile([[1.0], [0.3]], (n, 1)),
        y=np.tile([label, 1.0], n),
        offsets=2 * np.arange(n + 1),
        mu=2.0,
        parameters=private(**privacy).algorithm,
    )
    rule = RunningRule(CoordinateDescent, start, np.random.default_rng(seed))
    for i in range(n):
        rule.solve(i)
    return rule.models[:, 0]


def excesses(samples, thresholds, epsilon, delta):
    """P(S) − e^ε Q(S) − δ in standard errors, for all sets S below or above a threshold."""
    found = []
    for one, other in (samples, samples[::-1]):
        for side in (1, -1):
            p = (side * one[:, None] <= side * thresholds).mean(axis=0)
            q = (side * other[:, None] <= side * thresholds).mean(axis=0)
            factor = math.exp(epsilon)
            error = np.sqrt((p * (1 - p) + factor**2 * q * (1 - q)) / RELEASES)
            found.append((p - factor * q - delta) / error)
    return np.concatenate(found)


@pytest.mark.parametrize("how", ATTACKS, ids=str)
def test_an_attack_learns_no_more_than_the_accountant_says(how):
    """Neighbouring data sets, the worst that there are, from a hundred thousand releases each.

    Whoever claims a fifth less, or adds a fifth less noise, is found out.
    """
    if "accountant" in how:
        pytest.importorskip("dp_accounting")
    privacy = {"epsilon": 1.0, "updates": 1, "radius": 1.0, **how}
    samples = [releases(label, seed, privacy) for seed, label in enumerate((1.0, -1.0))]
    pilot = np.concatenate([releases(y, seed, privacy) for y, seed in ((1.0, 2), (-1.0, 3))])
    thresholds = np.quantile(pilot, np.linspace(0.005, 0.995, 100))
    accounted = Privacy(**PRIVACY | privacy).spent(1)
    limit = norm.isf(1e-6 / (4 * len(thresholds)))
    assert excesses(samples, thresholds, accounted, privacy["delta"]).max() < limit
    assert excesses(samples, thresholds, 0.8 * accounted, privacy["delta"]).max() > limit
