"""Zero latency and zero loss: a run is exactly the paper's recursion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simulator.runs.run import run
from simulator.seeds import Streams
from tests import oracles
from tests.conftest import LINEAR, MEANS, build, problem_of


def exchanges(scenario, problem, count=None):
    """The (i, j) that the scenario's clocks give up to its end."""
    streams = Streams(scenario.seed)
    rates = scenario.clock.rate.draw(streams.rates, problem.n)
    endless = oracles.ticks(rates, problem.W.toarray(), streams, scenario.clock.peers)
    if count is not None:
        return [(i, j) for _, i, j in itertools.islice(endless, count)]
    return [
        (i, j) for _, i, j in itertools.takewhile(lambda t: t[0] <= scenario.stop.time, endless)
    ]


@pytest.mark.parametrize("start", ["own", "known", "zero"])
@pytest.mark.parametrize("peers", ["uniform", "weighted"])
@pytest.mark.parametrize("rate", [1.0, {"kind": "lognormal", "mean": 2.0, "sigma": 0.7}])
def test_mp_is_the_papers_recursion(start, peers, rate):
    scenario = build(MEANS, seed=3, algorithm__start=start, clock={"rate": rate, "peers": peers})
    problem = problem_of(scenario)
    pairs = exchanges(scenario, problem)
    expected = oracles.model_propagation(problem, scenario.algorithm.trade_off, pairs, start)
    result = run(scenario)
    assert result.summary["communications"] == 2 * len(pairs) > 500
    np.testing.assert_allclose(result.models, expected, rtol=0, atol=1e-12)


def test_mp_with_vectors_and_agents_without_data():
    scenario = build(LINEAR, algorithm={"kind": "mp", "alpha": 0.7}, stop={"time": 60}, seed=5)
    problem = problem_of(scenario)
    assert 0 in problem.data.sizes
    pairs = exchanges(scenario, problem)
    expected = oracles.model_propagation(problem, scenario.algorithm.trade_off, pairs)
    np.testing.assert_allclose(run(scenario).models, expected, rtol=0, atol=1e-12)


def test_hello_without_delay_is_known():
    known = run(build(MEANS, algorithm__start="known"))
    hello = run(build(MEANS, algorithm__start="hello"))
    assert hello.summary["communications"] == known.summary["communications"] + 12 * 11
    np.testing.assert_allclose(hello.models, known.models, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "hinge", "logistic"])
@pytest.mark.parametrize("start", ["own", "known", "zero"])
def test_admm_is_the_papers_recursion(loss, start):
    scenario = build(LINEAR, task__loss=loss, algorithm__start=start, algorithm__rho=0.7, seed=5)
    problem = problem_of(scenario)
    pairs = exchanges(scenario, problem)
    oracle = oracles.ADMM(problem, scenario.algorithm.trade_off, 0.7, start)
    expected = oracle.gossip(pairs)
    result = run(scenario)
    assert result.summary["communications"] == 2 * len(pairs) > 200
    np.testing.assert_allclose(result.models, expected, rtol=0, atol=1e-9)


def test_admm_on_means_is_the_papers_recursion():
    scenario = build(MEANS, algorithm={"kind": "admm", "mu": 0.05}, seed=1)
    problem = problem_of(scenario)
    expected = oracles.ADMM(problem, 0.05, "auto").gossip(exchanges(scenario, problem))
    np.testing.assert_allclose(run(scenario).models, expected, rtol=0, atol=1e-9)


def test_admm_hello_without_delay_is_known():
    known = run(build(LINEAR, algorithm__start="known"))
    hello = run(build(LINEAR, algorithm__start="hello"))
    np.testing.assert_allclose(hello.models, known.models, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rounds", [1, 7])
def test_synchronous_mp_is_equation_5(rounds):
    # One second of latency: round t ends at time t.
    scenario = build(
        MEANS, algorithm__mode="sync", network={"latency": 1}, stop={"time": rounds}, seed=2
    )
    problem = problem_of(scenario)
    expected = oracles.synchronous_model_propagation(problem, scenario.algorithm.trade_off, rounds)
    result = run(scenario)
    assert result.summary["communications"] == (rounds + 1) * problem.W.nnz  # the next has begun
    np.testing.assert_allclose(result.models, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "hinge", "logistic"])
def test_synchronous_admm_is_appendix_d(loss):
    scenario = build(
        LINEAR,
        task__loss=loss,
        algorithm__mode="sync",
        algorithm__start="known",
        stop={"communications": 10 * 8 * 7},
    )
    problem = problem_of(scenario)
    assert problem.W.nnz == 8 * 7
    expected = oracles.ADMM(problem, 0.1, "auto", "known").rounds(10)
    result = run(scenario)
    assert result.summary["communications"] == 560
    np.testing.assert_allclose(result.models, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_mp_reaches_the_closed_form(mode):
    scenario = build(
        MEANS,
        algorithm__mode=mode,
        network={"latency": "100 ms"},
        stop={"time": 2000 if mode == "async" else 400},
    )
    problem, mu = problem_of(scenario), scenario.algorithm.trade_off
    n, alpha = problem.n, 1 / (1 + mu)
    P = problem.W.toarray() / problem.D[:, None]
    C = np.diag(problem.confidence)
    closed_form = (1 - alpha) * np.linalg.solve(
        np.eye(n) - (1 - alpha) * (np.eye(n) - C) - alpha * P, C @ problem.solitary
    )
    result = run(scenario)
    np.testing.assert_allclose(result.optimum, closed_form, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.models, closed_form, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "hinge", "logistic"])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_admm_reaches_the_central_optimum_through_loss_and_delay(loss, mode):
    """Delays of several ticks (mean 2 s at rate 1) and 30 % loss; convergence is linear.

    Noisy labels and enough points: separable data would have its logistic optimum at infinity.
    """
    scenario = build(
        LINEAR,
        task={
            **LINEAR["task"],
            "loss": loss,
            "dimension": 2,
            "flip": 0.2,
            "samples": {"kind": "uniform", "low": 0, "high": 12},
        },
        algorithm={"kind": "admm", "mode": mode, "mu": 0.5},
        network={"latency": {"kind": "exponential", "mean": 2.0}, "drop": 0.3},
        stop={"time": 3000},
        record={"every": 500},
    )
    result = run(scenario)
    metrics = result.summary["metrics"]
    assert result.summary["dropped"] > 5000
    assert result.summary["stale"] > 1000 or mode == "sync"
    assert abs(metrics["final"]["gap"]) < 1e-6
    assert metrics["final"]["distance"] < 1e-5 * metrics["start"]["distance"]
