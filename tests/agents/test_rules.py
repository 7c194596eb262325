"""The rules of the field: their optima and their conditions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from agents.rule import AVERAGE, Rule
from agents.rules import RULES
from agents.running import RuleError, RunningRule
from simulator.engines.setup import prepare
from simulator.runs.run import run
from simulator.runs.simulation import start_engine
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


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("kind", ["mp", "admm", "djam", "cd", "dpsgd", "adpsgd"])
def test_what_is_kept_up_to_date_is_what_refresh_derives(kind, mode):
    """In the middle of a run: sums of some hundred differences agree to 1e-12 with sums anew."""
    keys = {"step": 0.1} if kind.endswith("sgd") else {"mu": 0.4}
    if mode not in RULES[kind].modes:
        pytest.skip(f"{kind} has no such mode")
    changes = {"network": {"latency": 0.1, "drop": 0.2}, "stop": {"time": 20}}
    algorithm = {"kind": kind, "mode": mode, **keys}
    scenario = build(LINEAR, task__loss="logistic", algorithm=algorithm, seed=3, **changes)
    streams = Streams(scenario.seed)
    setup = prepare(scenario, problem_of(scenario), streams, RULES[kind])
    engine = start_engine(setup, None)
    engine.advance(time=20.0, communications=None)
    names = [name for name, array in RULES[kind].arrays.items() if array.over != "run"]
    before = {name: engine.rule.arrays[name].copy() for name in names}
    assert not np.array_equal(engine.models, setup.problem.solitary)
    for i in range(setup.problem.n):
        engine.rule.refresh(i)
    for name in names:
        np.testing.assert_allclose(
            engine.rule.arrays[name], before[name], rtol=0, atol=1e-12, err_msg=name
        )
