"""Slow statistical verification: ``make verify``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simulator import load_scenario
from simulator.runs.run import run
from tests.conftest import MEANS, build

pytestmark = pytest.mark.verify


def expected_models(problem, mu, exchanges):
    """E[θ_i] after so many exchanges from the start ``own``, by the matrices of appendix C.

    Θ̃ is stacked as n² numbers (p = 1): Θ̃(t + 1) = U(i,j) O(i,j) Θ̃(t) + u(i,j) with probability
    π_i^j / n; the expectation follows the mean matrix and the mean vector.
    """
    W, c, solitary = problem.W.toarray(), problem.confidence, problem.solitary[:, 0]
    n, alpha = len(c), 1 / (1 + mu)
    P = W / W.sum(axis=1, keepdims=True)
    place = np.arange(n * n).reshape(n, n)  # place[i, j] is Θ̃_i^j
    mean_A, mean_b = np.zeros((n * n, n * n)), np.zeros(n * n)
    for i, j in itertools.product(range(n), range(n)):
        if W[i, j] == 0:
            continue
        chance = 1 / n / np.count_nonzero(W[i])
        exchange = np.eye(n * n)
        exchange[[place[i, j], place[j, i]]] = 0.0
        exchange[place[i, j], place[j, j]] = 1.0
        exchange[place[j, i], place[i, i]] = 1.0
        U, u = np.eye(n * n), np.zeros(n * n)
        for k in (i, j):
            scale = 1 / (alpha + (1 - alpha) * c[k])
            U[place[k, k]] = 0.0
            U[place[k, k], place[k]] = scale * alpha * P[k]
            u[place[k, k]] = scale * (1 - alpha) * c[k] * solitary[k]
        mean_A += chance * U @ exchange
        mean_b += chance * u
    state = np.repeat(solitary, n)  # own: every copy is the agent's own model
    for _ in range(exchanges):
        state = mean_A @ state + mean_b
    return state[np.diag(place)]


def test_the_mean_of_many_runs_is_the_expectation_of_appendix_c():
    """Theorem 1, and more: the whole course of E[Θ̃(t)], not only its limit.

    The same problem 4000 times: the data's seed must not change, so only clock and peers do.
    """
    exchanges, runs = 25, 4000
    scenario = build(
        MEANS,
        task={"kind": "mean_estimation", "agents": 5},
        graph={"kind": "gaussian_kernel", "sigma": 1.0},
        # One more message: the request after the last exchange, which changes nothing.
        stop={"communications": 2 * exchanges + 1},
        record={"every_communications": 1000},
    )
    problem = run(scenario).problem
    expected = expected_models(problem, scenario.algorithm.trade_off, exchanges)
    models = np.array([_with_other_clocks(scenario, seed) for seed in range(runs)])
    spread = models.std(axis=0, ddof=1) / np.sqrt(runs)
    np.testing.assert_array_less(np.abs(models.mean(axis=0) - expected), 4.5 * spread)


def _with_other_clocks(scenario, seed):
    """The final models of a run whose data come from the scenario's seed, the rest from another."""
    from agents.rules import RULES
    from simulator.engines.reference.engine import SimpyEngine
    from simulator.engines.setup import prepare
    from simulator.problem.build import build_problem
    from simulator.seeds import Streams

    problem = build_problem(scenario, Streams(scenario.seed))
    engine = SimpyEngine(prepare(scenario, problem, Streams(1000 + seed), RULES["mp"]), None)
    engine.advance(None, None)
    return engine.models[:, 0]


@pytest.mark.parametrize("seed", range(5))
def test_asynchronous_mp_is_nearly_as_good_as_synchronous_for_its_communications(seed):
    """The claim of section 5.1: within a factor 2 at 400 000 communications."""
    overrides = {"stop.communications": 400_000, "seed": seed, "engine": "compiled"}
    gossip = run(load_scenario("scenarios/moons_ideal.yaml", overrides))
    rounds = run(
        load_scenario("scenarios/moons_ideal.yaml", overrides | {"algorithm.mode": "sync"})
    )
    trace = rounds.trace
    last = trace[trace["communications"] <= 400_000].iloc[-1]
    assert gossip.trace["l2_error"].iloc[-1] < 2 * last["l2_error"]


@pytest.mark.parametrize("drop", [0.05, 0.3])
def test_admm_gets_within_one_per_cent_of_the_optimum(drop):
    """scenarios/linear_classification.yaml as shipped, and with 30 % loss."""
    file = "scenarios/linear_classification.yaml"
    result = run(load_scenario(file, {"network.drop": drop, "engine": "compiled"}))
    metrics = result.summary["metrics"]
    assert metrics["final"]["distance"] < 0.01 * metrics["start"]["distance"]
    assert abs(metrics["final"]["accuracy"] - metrics["optimum"]["accuracy"]) < 0.01
    assert metrics["optimum"]["accuracy"] > metrics["solitary"]["accuracy"] + 0.15
