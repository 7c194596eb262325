"""The rules of the field: their optima, their conditions, and what privacy costs and hides."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from agents.privacy import bounds, per_update
from agents.rule import AVERAGE, Rule
from agents.running import RuleError, RunningRule
from simulator.engines.setup import prepare
from simulator.runs.run import run
from simulator.seeds import Streams
from simulator.theory.objectives import Collaboration
from tests.agents.test_gossip import exchanges
from tests.conftest import LINEAR, MEANS, build, problem_of

HARSH = {"latency": {"kind": "exponential", "mean": "4 s"}, "drop": 0.3}


# --- the optimum of Q_CL ------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize(
    ("kind", "loss", "ridge"),
    [
        ("djam", "hinge", 0.2),
        ("djam", "logistic", 0.2),
        ("djam", "quadratic", 0.0),
        ("cd", "logistic", 0.2),
        ("cd", "quadratic", 0.0),
        ("admm", "hinge", 0.2),
    ],
)
def test_optimum_in_spite_of_loss_and_long_delays(kind, loss, ridge, mode):
    """To 1e-8 in every coordinate, with delays of several ticks."""
    scenario = build(
        LINEAR,
        engine="compiled",
        task__agents=6,
        task__loss=loss,
        task__samples={"kind": "uniform", "low": 1, "high": 4},
        algorithm={"kind": kind, "mode": mode, "mu": 0.5, "ridge": ridge},
        network=HARSH,
        stop={"time": 30_000, "metric": "distance", "below": 1e-18},
        record={"every": 10_000},
    )
    result = run(scenario)
    assert result.summary["target"]["time"] is not None
    assert np.abs(result.models - result.optimum).max() < 1e-8
    assert result.summary["dropped"] > 0


@pytest.mark.parametrize("loss", ["hinge", "logistic", "quadratic"])
def test_a_ridge_is_a_part_of_the_objective(loss, rng):
    """Σ W‖θ_i − θ_j‖² + μ Σ D_ii (L_i + r‖θ_i‖²), least at the optimum."""
    problem = problem_of(build(LINEAR, task__loss=loss))
    objective, plain = Collaboration(problem, 0.3, 0.7), Collaboration(problem, 0.3)
    Theta = rng.normal(size=problem.solitary.shape)
    penalty = 0.3 * 0.7 * sum(problem.D[i] * Theta[i] @ Theta[i] for i in range(problem.n))
    assert objective(Theta) == pytest.approx(plain(Theta) + penalty, rel=1e-12)
    best = objective.minimiser()
    for _ in range(20):
        direction = rng.normal(size=best.shape)
        assert objective(best + 1e-3 * direction) >= objective(best)


# --- admm's penalties -----------------------------------------------------------------------------
def admm_state(scenario, **weights):
    """The arrays of admm before the first event."""
    streams = Streams(scenario.seed)
    setup = prepare(scenario, problem_of(scenario), streams, scenario.algorithm.rule)
    start = setup.start()
    for name, value in weights.items():
        setattr(start, name, value)
    return RunningRule(scenario.algorithm.rule, start, streams.rule).arrays


def test_the_penalty_of_admm_is_half_the_weight_or_the_number_given():
    W = problem_of(build(LINEAR)).W.data
    assert W.min() < 0.9 * W.max()
    np.testing.assert_array_equal(admm_state(build(LINEAR))["penalty"], W / 2)
    assert (admm_state(build(LINEAR, algorithm__rho=0.1))["penalty"] == 0.1).all()


def test_weights_too_small_to_be_halved_have_a_penalty():
    tiny = np.full(len(problem_of(build(LINEAR)).W.data), 5e-324)
    state = admm_state(build(LINEAR), W=tiny)
    assert (state["penalty"] > 0).all()
    assert (state["a"] > 0).all()


def test_admm_does_not_depend_on_the_unit_of_the_weights(tmp_path):
    """W multiplied by a power of two multiplies Q_CL by it: the same models, to the last bit."""
    found = []
    for scale in (1.0, 2.0**-9):
        edges = pd.DataFrame({"i": [0, 1, 2, 0], "j": [1, 2, 3, 2]})
        edges["weight"] = scale * np.array([1.0, 0.3, 0.7, 0.01])
        edges.to_csv(tmp_path / "edges.csv", index=False, header=False)
        graph = {"kind": "file", "file": str(tmp_path / "edges.csv")}
        task = {"task__agents": 4, "task__loss": "quadratic"}
        found.append(run(build(LINEAR, graph=graph, **task, network={"latency": 0.3})).models)
    np.testing.assert_array_equal(*found)


# --- dpsgd --------------------------------------------------------------------------------------
def test_dpsgd_rests_near_the_consensus_model():
    """Its fixed point is (I − M) θ + γ ∇f = 0, at a distance of order γ from the consensus."""
    scenario = build(
        MEANS,
        engine="compiled",
        task__samples={"kind": "uniform", "low": 1, "high": 3},
        graph={"kind": "knn", "k": 7},  # of 6 on each moon: degrees differ, and it is connected
        algorithm={"kind": "dpsgd", "step": 0.02},
        network={"latency": "10 ms"},
        stop={"time": 10},
        record={"every": 10},
    )
    result, problem = run(scenario), problem_of(scenario)
    W = problem.W.toarray() > 0
    degrees = W.sum(axis=1)
    M = W / (1.0 + np.maximum.outer(degrees, degrees))
    M += np.diag(1 - M.sum(axis=1))
    sums = np.array([problem.data[i][1].sum() for i in range(problem.n)])

    def rest(step):
        matrix = np.eye(problem.n) - M + np.diag(2 * step * problem.data.sizes)
        return np.linalg.solve(matrix, 2 * step * sums)

    np.testing.assert_allclose(result.models[:, 0], rest(0.02), rtol=1e-9)
    consensus = sums.sum() / problem.data.sizes.sum()
    assert result.optimum == pytest.approx(consensus)
    errors = [np.mean((rest(step) - consensus) ** 2) for step in (1e-4, 5e-5)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)
    assert not {"objective", "gap"} & set(result.trace)


# --- adpsgd -------------------------------------------------------------------------------------
FEW = {"task__agents": 6, "task__samples": {"kind": "uniform", "low": 1, "high": 3}}
#: A step so small that only averaging is left.
NO_STEP = {"kind": "adpsgd", "step": 1e-100, "start": {"kind": "normal", "scale": 10.0}}


def slope(problem, i, theta):
    """∇L_i, of means and of the logistic loss."""
    X, y = problem.data[i]
    if X is None:
        return 2 * (len(y) * theta - y.sum())
    return -X.T @ (y / (1 + np.exp(y * (X @ theta))))


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("start", ["own", "zero"])
@pytest.mark.parametrize(("base", "step"), [(MEANS, 0.002), (LINEAR, 0.3)], ids=["means", "linear"])
def test_adpsgd_is_its_recursion(base, step, start, engine):
    """Without delay: both ends average, and the asking one steps from where it was."""
    loss = {"task__loss": "logistic"} if base is LINEAR else {}
    algorithm = {"kind": "adpsgd", "step": step, "start": start}
    scenario = build(base, **loss, algorithm=algorithm, engine=engine, seed=3)
    problem, result = problem_of(scenario), run(scenario)
    theta = problem.solitary * (start == "own")
    decay = scenario.task.ridge / problem.n if loss else 0.0
    pairs = exchanges(scenario, problem)
    for i, j in pairs:
        gradient = slope(problem, i, theta[i]) + decay * theta[i]
        theta[[i, j]] = (theta[i] + theta[j]) / 2
        theta[i] -= step * gradient
    np.testing.assert_allclose(result.models, theta, rtol=0, atol=1e-12)
    summary = result.summary
    assert summary["communications"] == summary["delivered"] == 2 * len(pairs) > 200
    assert summary["bytes"] == 2 * len(pairs) * (32 + 8 * problem.p)
    assert not {"objective", "gap"} & set(result.trace)


@pytest.mark.parametrize("drop", [0.0, 0.3])
def test_averaging_keeps_the_mean_unless_a_reply_is_lost(drop):
    """The asked end has averaged, the asking one has not: the mean moves by (θ_i − θ_j)/2n."""
    changes = {"algorithm": NO_STEP, "network": {"drop": drop}, "engine": "compiled"}
    result = run(build(MEANS, **FEW, **changes, record={"events": True, "models": True}))
    theta = result.history[0].copy()
    first = theta.mean()
    moved, told, events = 0.0, {}, result.events
    kinds = zip(events["kind"], events["what"], events["agent"], events["peer"], strict=True)
    for kind, what, i, j in kinds:  # in order: without delay nothing comes in between
        if (kind, what) == ("handle", "request"):
            told[i] = theta[i].copy()
            theta[i] = (theta[i] + theta[j]) / 2
        elif (kind, what) == ("handle", "reply"):
            theta[i] = (theta[i] + told[j]) / 2
        elif (kind, what) == ("drop", "reply"):
            moved += float(theta[j, 0] - told[i][0]) / 2 / len(theta)
    np.testing.assert_allclose(result.models, theta, rtol=0, atol=1e-12)
    assert result.models.mean() == pytest.approx(first + moved, abs=1e-12)
    assert (abs(moved) > 0.1) == (drop > 0)
    assert result.models.std() < 1e-3


def spread_of_pairs(problem, step):
    """E ‖θ_i − consensus‖², mean over agents, of the stationary recursion on means.

    Of the differences d from the consensus c, d ← A d + u for each pair (i, j), with u only at i,
    so the moments solve m = E[A] m + E[u] and S = E[A S Aᵀ + A m uᵀ + u mᵀ Aᵀ + u uᵀ].
    """
    n, sizes = problem.n, problem.data.sizes
    sums = np.array([problem.data[i][1].sum() for i in range(n)])
    consensus = sums.sum() / sizes.sum()
    pairs = []
    for i in range(n):
        neighbours = problem.W[[i]].indices
        for j in neighbours:
            A, u = np.eye(n), np.zeros(n)
            A[np.ix_([i, j], [i, j])] = 0.5
            A[i, i] -= 2 * step * sizes[i]
            u[i] = 2 * step * (sums[i] - sizes[i] * consensus)
            pairs.append((1 / n / len(neighbours), A, u))
    m = np.linalg.solve(
        np.eye(n) - sum(q * A for q, A, _ in pairs), sum(q * u for q, _, u in pairs)
    )
    cross = [q * (np.outer(A @ m, u) + np.outer(u, A @ m + u)) for q, A, u in pairs]
    twice = sum(q * np.kron(A, A) for q, A, _ in pairs)
    S = np.linalg.solve(np.eye(n * n) - twice, sum(cross).ravel()).reshape(n, n)
    return np.trace(S) / n


@pytest.mark.parametrize("step", [0.04, 0.01])
def test_adpsgd_stays_near_the_consensus_model(step):
    """At the mean squared distance of its stationary law, which is of order γ."""
    scenario = build(
        MEANS,
        **FEW,
        graph={"kind": "knn", "k": 3},
        algorithm={"kind": "adpsgd", "step": step},
        engine="compiled",
        stop={"time": 40_000},
        record={"every": 40.0},
    )
    result, problem = run(scenario), problem_of(scenario)
    assert len(set(np.diff(problem.W.indptr))) > 1
    batches = result.trace["distance"].to_numpy()[21:].reshape(20, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(len(batches))
    expected = spread_of_pairs(problem, step)
    assert error < 0.08 * expected
    assert abs(batches.mean() - expected) < 4.4 * error
    ratio = spread_of_pairs(problem, 1e-4) / spread_of_pairs(problem, 5e-5)
    assert ratio == pytest.approx(2, rel=0.02)


class Mixing(Rule):
    """A plugin's rule that averages."""

    kind, protocol, modes = "mixing", AVERAGE, ("async",)

    def absorb(s, i, k, received, sent):
        s.models[i] = (s.models[i] + received) / 2

    def solve(s, i):
        s.models[i] *= 0.9


class Meddling(Mixing):
    """One that changes the neighbour's model instead."""

    kind = "meddling"

    def absorb(s, i, k, received, sent):
        s.models[s.neighbour[k]] = received + 1.0


def test_a_plugin_may_average():
    """Absorbing may change the agent's own model, and nobody else's."""
    scenario = build(MEANS)
    setup = prepare(scenario, problem_of(scenario), Streams(0), Mixing)
    RunningRule(Mixing, setup.start(), setup.streams.rule)
    with pytest.raises(RuleError, match=r"absorb failed .* it changes another agent's model"):
        RunningRule(Meddling, setup.start(), setup.streams.rule)


# --- privacy ------------------------------------------------------------------------------------
PRIVACY = {"epsilon": 1.0, "delta": 1e-4, "updates": 8, "clip": 0.5, "radius": 0.8}


def private(**changes):
    algorithm = {"kind": "cd", "mu": 0.4, "start": "zero", "privacy": {**PRIVACY, **changes}}
    return build(LINEAR, task__loss="logistic", algorithm=algorithm, stop={"time": 30}, seed=1)


@pytest.fixture
def at_work():
    """The rule as a run starts with it, for calls as plain Python."""
    scenario = private()
    streams = Streams(scenario.seed)
    setup = prepare(scenario, problem_of(scenario), streams, scenario.algorithm.rule)
    return RunningRule(setup.rule, setup.start(), streams.rule)


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


def test_the_sensitivity_is_at_most_twice_the_clip(at_work, rng):
    """The L1 norm, when any one point of an agent is replaced by the worst there is; and it is
    reached: a smaller scale would not hide the point."""
    s, G = at_work.state, PRIVACY["clip"]
    data, i = s.loss.data, int(np.argmax(np.diff(s.loss.data.offsets)))
    row, before, after = int(data.offsets[i]), np.empty(s.p), np.empty(s.p)
    assert np.linalg.norm(data.points, axis=1).max() <= PRIVACY["radius"] * (1 + 1e-12)
    kept, worst = data.points[row].copy(), 0.0
    for _ in range(300):
        theta = rng.normal(size=s.p) * 10 ** rng.uniform(-2, 2)
        x = rng.normal(size=s.p)
        x *= PRIVACY["radius"] / np.linalg.norm(x)
        changes = []
        for point in (x, -x):
            data.points[row] = point
            s.loss.gradient_of(i, theta, before)
            data.points[row] = -point
            s.loss.gradient_of(i, theta, after)
            changes.append(np.abs(before - after).sum())
        worst = max(worst, *changes)
    data.points[row] = kept
    assert 1.98 * G < worst <= 2 * G * (1 + 1e-12)
    own = np.diff(data.offsets)
    np.testing.assert_allclose(
        s.noise, np.where(own > 0, 2 * G / per_update(1.0, 8, 1e-4), 0.0), rtol=1e-12
    )
    np.testing.assert_allclose(s.a, 1 / (1 + 0.2 * 0.25 * own * 0.8**2), rtol=1e-12)


def test_nothing_is_drawn_or_looked_at_after_the_budget(at_work):
    i = int(np.argmax(np.diff(at_work.loss.data.offsets)))
    drawn, looked = [], []

    class Stream:
        def random(self):
            drawn.append(1)
            return 0.3

    class Loss:
        def gradient_of(self, i, theta, out):
            looked.append(1)
            out[:] = 0.0

    at_work.state = at_work.state._replace(stream=Stream(), loss=Loss())
    models = []
    for _ in range(12):
        at_work.plain("solve", i, 0, None, None)
        models.append(at_work.models[i].copy())
    assert (len(looked), len(drawn)) == (8, 8 * at_work.state.p)
    assert not np.array_equal(models[6], models[7])
    assert all(np.array_equal(model, models[7]) for model in models[8:])


def test_the_noise_is_laplace(at_work):
    """−b sign(u) log(1 − 2|u|), u = 0 too, through the model: θ' = θ + a (… − (μ/2) η − θ)."""
    s, i = at_work.state, int(np.argmax(np.diff(at_work.loss.data.offsets)))
    values = iter([0.0, 0.75, 0.1, 0.5])

    class Stream:
        def random(self):
            return next(values)

    class Loss:
        def gradient_of(self, i, theta, out):
            out[:] = 0.0

    at_work.state = s._replace(stream=Stream(), loss=Loss())
    s.models[i], s.v[i], s.left[i] = 0.0, 0.0, 1
    at_work.plain("solve", i, 0, None, None)
    eta = -s.models[i] / (s.a[i] * s.mu / 2)
    scale = s.noise[i]
    assert eta[1:] == pytest.approx([scale * math.log(2), -scale * math.log(5)])
    assert -40 * scale < eta[0] < -30 * scale


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
