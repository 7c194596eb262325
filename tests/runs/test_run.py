"""Whole runs: sampling, stops, rounds, conservation, repetition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from agents.rule import Rule
from simulator.errors import DivergenceError, ScenarioError
from simulator.problem.problem import DataSets
from simulator.runs.plugins import load_plugins
from simulator.runs.run import run
from simulator.seeds import Streams
from simulator.theory.metrics import Accuracy, View
from tests.conftest import LINEAR, MEANS, build, problem_of


def test_samples_are_taken_at_multiples_and_at_the_end_once():
    trace = run(build(MEANS, stop={"time": 1.0}, record={"every": 0.3})).trace
    assert trace["time"].tolist() == [0.0, 0.3, 0.6, 3 * 0.3, 1.0]
    trace = run(build(MEANS, stop={"time": 1.5}, record={"every": 0.5})).trace
    assert trace["time"].tolist() == [0.0, 0.5, 1.0, 1.5]


def test_sample_zero_is_the_start_and_the_last_row_is_the_result():
    result = run(build(MEANS))
    solitary = np.mean((result.problem.solitary - result.problem.targets) ** 2)
    final = np.mean((result.models - result.problem.targets) ** 2)
    assert result.trace["l2_error"].iloc[0] == pytest.approx(solitary, rel=1e-14)
    assert result.trace["l2_error"].iloc[-1] == pytest.approx(final, rel=1e-14)
    assert result.trace["communications"].iloc[0] == 0


def test_by_default_there_are_200_samples_and_fewer_of_many_agents():
    assert len(run(build(MEANS, stop={"time": 10.0})).trace) == 201
    assert build(MEANS, stop={"time": 10.0}).sampling == (0.05, 0)
    many = {"task__agents": 10**6, "graph": {"kind": "knn"}}
    assert build(MEANS, **many, stop={"time": 10.0}).sampling == (0.5, 0)
    assert build(MEANS, **many, stop={"communications": 10**6}).sampling == (None, 50_000)


def test_samples_by_communications():
    trace = run(build(MEANS, stop={"communications": 1000}, record={"every_communications": 300}))
    assert trace.trace["communications"].tolist() == [0, 300, 600, 900, 1000]


def test_an_event_at_the_last_instant_is_included():
    """One second of latency: what is sent at 0 by hello arrives at 1, which is the end."""
    hello = {"kind": "mp", "start": "hello"}
    scenario = build(MEANS, algorithm=hello, network={"latency": 1.0}, clock={"rate": 1e-9})
    result = run(
        scenario.model_copy(update={"stop": scenario.stop.model_copy(update={"time": 1.0})})
    )
    assert result.summary["delivered"] == 12 * 11
    assert result.summary["in_flight"] == 0
    early = run(
        scenario.model_copy(update={"stop": scenario.stop.model_copy(update={"time": 0.999})})
    )
    assert early.summary["in_flight"] == 12 * 11


def test_stop_by_communications_is_exact():
    for limit in (1, 2, 777):
        assert run(build(MEANS, stop={"communications": limit})).summary["communications"] == limit


def test_synchronous_stop_by_communications_ends_after_the_round():
    scenario = build(MEANS, algorithm__mode="sync", stop={"communications": 200})
    assert run(scenario).summary["communications"] == 2 * 12 * 11


def test_ticks_are_poisson():
    """Requests in time T: Poisson with mean n·rate·T."""
    scenario = build(MEANS, clock={"rate": 3.0}, stop={"time": 100})
    requests = run(scenario).summary["communications"] // 2
    mean = 12 * 3 * 100
    assert 1e-5 < stats.poisson.cdf(requests, mean) < 1 - 1e-5


def test_time_to_target_is_exact():
    """The same run sampled at every communication crosses the level at the same event."""
    free = run(build(MEANS, record={"every_communications": 1}, stop={"communications": 3000}))
    level = 0.05 * free.trace["distance"].iloc[0]
    stopped = run(
        build(MEANS, stop={"time": 1e6, "metric": "distance", "below": level}, record={"every": 7})
    )
    # A sample after each send, so an update shows at the next row at the latest.
    first = free.trace[free.trace["distance"] <= level].iloc[0]
    target = stopped.summary["target"]
    assert target["exact"]
    assert abs(target["communications"] - first["communications"]) <= 1
    assert target["time"] <= first["time"]
    assert stopped.trace["time"].iloc[-1] == target["time"]
    assert stopped.trace["distance"].iloc[-1] <= level * (1 + 1e-12)


def test_a_target_that_holds_at_the_start_ends_the_run_at_once():
    result = run(build(MEANS, stop={"time": 9, "metric": "l2_error", "below": 1e9}))
    assert result.summary["communications"] == 0
    assert result.summary["target"]["time"] == 0.0
    assert len(result.trace) == 1


def test_a_target_out_of_reach_is_reported_as_such():
    result = run(build(MEANS, stop={"time": 3, "metric": "distance", "below": 1e-30}))
    assert result.summary["target"]["time"] is None
    assert result.summary["simulated_time"] == 3


def test_other_metrics_stop_at_samples():
    result = run(
        build(MEANS, stop={"time": 1e4, "metric": "gap", "below": 1e-2}, record={"every": 2})
    )
    gaps = result.trace["gap"]
    assert gaps.iloc[-1] <= 1e-2 < gaps.iloc[-2]
    assert not result.summary["target"]["exact"]


def test_a_round_lasts_as_long_as_its_slowest_chain():
    """Constant latency 0.5, loss 0.4, retransmission after 2: lost attempts go in generations."""
    latency, again = 0.5, 2.0
    network = {"latency": latency, "drop": 0.4, "retransmit_after": again}
    result = run(
        build(
            MEANS, algorithm__mode="sync", network=network, stop={"communications": 10**4}, seed=4
        )
    )
    draw = Streams(4).loss
    time = sent = 0
    while sent < 10**4:
        waiting = 12 * 11
        generations = -1
        while waiting:
            generations += 1
            sent += waiting
            waiting = int(np.count_nonzero(draw.random(waiting) < 0.4))
        time += latency + again * generations
    assert result.summary["communications"] == sent
    assert result.summary["simulated_time"] == pytest.approx(time, rel=1e-12)


@pytest.mark.parametrize(("kind", "round_length"), [("mp", 1.0 + 0.25), ("admm", 0.25 + 1.0)])
def test_computing_lengthens_a_round(kind, round_length):
    scenario = build(
        MEANS,
        algorithm={"kind": kind, "mode": "sync", "mu": 0.1},
        network={"latency": 1.0},
        compute={"time": 0.25},
        stop={"communications": 5 * 12 * 11},
    )
    assert run(scenario).summary["simulated_time"] == pytest.approx(5 * round_length, rel=1e-12)


def test_staleness_in_rounds():
    """Copies of round t were sent at t·L and stay until (t + 1)·L plus the latency."""
    scenario = build(
        MEANS,
        algorithm__mode="sync",
        network={"latency": 2.0},
        stop={"time": 9.0},
        record={"every": 1.0},
    )
    staleness = run(scenario).trace["staleness"].tolist()
    # Before the first arrival copies count as of time 0.
    assert staleness == pytest.approx([0, 1, 2, 3, 2, 3, 2, 3, 2, 3])


def test_staleness_in_gossip_is_the_age_of_the_last_message():
    """Two agents at rate 1 each: exchanges are Poisson with rate 2, so the mean age is 1/2."""
    pair = {"kind": "networkx", "generator": "path_graph"}
    scenario = build(
        MEANS, task={"kind": "mean_estimation", "agents": 2}, graph=pair, stop={"time": 4000}
    )
    scenario = scenario.model_copy(
        update={"record": scenario.record.model_copy(update={"every": 1.0})}
    )
    ages = run(scenario).trace["staleness"].iloc[100:]
    # Samples 1 s apart have correlation exp(−2): variance of the mean ≤ (1/4)(1+e⁻²)/(1−e⁻²)/N.
    spread = np.sqrt(0.25 * 1.32 / len(ages))
    assert abs(ages.mean() - 0.5) < 4.4 * spread


def test_busy_agents_skip_ticks():
    """Rate 1, each solve takes 10 s: nearly always busy."""
    result = run(build(MEANS, compute={"time": 10.0}, stop={"time": 200}))
    assert result.summary["skipped"] > result.summary["communications"]


def test_ticks_and_partners_do_not_depend_on_the_network():
    """Counting requests: delays and losses change replies only."""
    clean = run(build(LINEAR, algorithm={"kind": "mp"}, stop={"time": 30}))
    lossy = run(build(LINEAR, algorithm={"kind": "mp"}, network={"drop": 1.0}, stop={"time": 30}))
    assert lossy.summary["communications"] == clean.summary["communications"] // 2
    np.testing.assert_array_equal(lossy.models, lossy.problem.solitary)


network_configs = st.fixed_dictionaries(
    {
        "latency": st.sampled_from(
            [
                0.0,
                0.3,
                {"kind": "exponential", "mean": 1.0},
                {"kind": "lognormal", "mean": 0.5, "sigma": 2.0},
                {"kind": "pareto", "mean": 0.5, "shape": 1.3},
                {
                    "kind": "constant",
                    "value": 0.2,
                    "per_agent": {"kind": "uniform", "low": 0.5, "high": 9.0},
                },
            ]
        ),
        "drop": st.sampled_from(
            [0.0, 0.3, {"kind": "gilbert_elliott", "mean_good": 2.0, "mean_bad": 1.0}]
        ),
        "bandwidth": st.sampled_from([None, 500.0]),
        "fifo": st.booleans(),
    }
)


@settings(max_examples=60)
@given(
    network=network_configs,
    mode=st.sampled_from(["async", "sync"]),
    kind=st.sampled_from(["mp", "admm"]),
    start=st.sampled_from(["own", "hello", "known", {"kind": "normal", "scale": 1.0}]),
    compute=st.sampled_from([0.0, 0.05, {"kind": "exponential", "mean": 0.5}]),
    seed=st.integers(0, 10),
)
def test_messages_are_conserved(network, mode, kind, start, compute, seed):
    assume((kind, mode, start) != ("admm", "sync", "hello"))
    scenario = build(
        MEANS,
        task={"kind": "mean_estimation", "agents": 6},
        algorithm={"kind": kind, "mode": mode, "start": start, "mu": 0.3},
        network=network,
        compute={"time": compute},
        stop={"time": 12.0, "communications": 900},
        record={"every": 1.0},
        seed=seed,
    )
    result = run(scenario)  # the engine asserts that in_flight is what its queue holds
    trace = result.trace
    total = trace[["delivered", "dropped", "missed", "in_flight"]].sum(axis=1)
    assert (trace["communications"] == total).all()
    assert (trace[["communications", "delivered", "dropped", "stale"]].diff().dropna() >= 0).all(
        axis=None
    )
    # The first messages of admm that says hello hold one vector instead of four.
    hellos = 2 * result.summary["edges"] if (kind, start) == ("admm", "hello") else 0
    saved = 24 * np.minimum(trace["communications"], hellos)
    each = 32 + 8 * (4 if kind == "admm" else 1)
    assert (trace["bytes"] == trace["communications"] * each - saved).all()
    assert np.isfinite(result.models).all()
    assert result.trace["time"].is_monotonic_increasing


@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_repetition_is_identical_to_the_byte(base, mode):
    scenario = build(
        base,
        algorithm__mode=mode,
        network={"latency": {"kind": "lognormal", "mean": 0.2, "sigma": 1.0}, "drop": 0.2},
        stop={"time": 30},
    )
    first, second = run(scenario), run(scenario)
    assert first.trace.to_csv() == second.trace.to_csv()
    assert first.models.tobytes() == second.models.tobytes()
    other = run(scenario.model_copy(update={"seed": 1}))
    assert other.trace.to_csv() != first.trace.to_csv()


def test_baselines_send_nothing():
    for kind in ("solitary", "consensus"):
        result = run(build(LINEAR, algorithm={"kind": kind}))
        assert len(result.trace) == 1
        assert result.summary["communications"] == 0
    assert np.ptp(result.models, axis=0).max() == 0  # one model for all


@pytest.mark.parametrize("kind", ["solitary", "consensus"])
def test_a_baseline_meets_its_target_at_once_or_never(kind: str):
    error = run(build(MEANS, algorithm={"kind": kind})).summary["metrics"]["final"]["l2_error"]
    for level, time in ((1.01 * error, 0.0), (0.99 * error, None)):
        stop = {"time": 50, "metric": "l2_error", "below": level}
        target = run(build(MEANS, algorithm={"kind": kind}, stop=stop)).summary["target"]
        assert target["time"] == time


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("metric", ["distance", "l2_error", "gap", "objective"])
def test_a_percentage_is_one_of_sample_0(metric: str, engine: str):
    """The level is exactly the share of the first row, and the run stops where it gets there."""
    stop = {"time": 50, "metric": metric, "below": "60 %"}
    result = run(build(MEANS, stop=stop, engine=engine, record={"every": 0.25}))
    target, values = result.summary["target"], result.trace[metric]
    assert target["asked"] == "60%"
    assert target["level"] == 0.6 * values.iloc[0]
    assert 0 < target["time"] == result.trace["time"].iloc[-1] < 50
    assert (values.iloc[:-1] > target["level"]).all()
    assert values.iloc[-1] <= target["level"] * (1 + 1e-12)
    number = stop | {"below": target["level"]}
    same = run(build(MEANS, stop=number, engine=engine, record={"every": 0.25}))
    assert same.trace.equals(result.trace)


def test_a_target_that_cannot_be_measured_is_an_error_also_where_nobody_sends():
    graph = {"kind": "networkx", "generator": "empty_graph", "allow_disconnected": True}
    stop = {"time": 50, "metric": "distance", "below": 1.0}
    with pytest.raises(ScenarioError, match="distance cannot be measured"):
        run(build(MEANS, graph=graph, stop=stop))


def test_an_agent_without_neighbours_keeps_its_solitary_model():
    scenario = build(
        MEANS,
        graph={
            "kind": "gaussian_kernel",
            "sigma": 0.02,
            "min_weight": 0.9,
            "allow_disconnected": True,
        },
        task={"kind": "mean_estimation", "agents": 12},
    )
    result = run(scenario)
    alone = np.diff(result.problem.W.indptr) == 0
    assert alone.any()
    np.testing.assert_array_equal(result.models[alone], result.problem.solitary[alone])


class Exploding(Rule):
    """Its model grows without bound."""

    kind = "exploding"

    def absorb(s, i, k, received, sent):
        pass

    def solve(s, i):
        for x in range(s.p):
            s.models[i, x] *= 1e200


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_model_that_is_not_finite_stops_the_run(mode, engine):
    scenario = build(
        MEANS,
        plugins=load_plugins(Exploding),
        algorithm={"kind": "exploding", "mode": mode},
        network={"latency": 0.1},
        engine=engine,
    )
    with pytest.raises(DivergenceError, match=r"agent \d+ is no longer finite at time .* s, after"):
        run(scenario)


def test_theorem_1_mean_of_many_runs_from_an_arbitrary_start():
    """E[θ_i(t)] tends to the closed form: after a long time every single run is there."""
    scenario = build(
        MEANS,
        algorithm={"kind": "mp", "alpha": 0.8, "start": {"kind": "normal", "scale": 5.0}},
        stop={"time": 2000},
    )
    result = run(scenario)
    assert result.trace["distance"].iloc[0] > 10
    assert result.trace["distance"].iloc[-1] < 1e-12


def test_result_holds_the_problem():
    result = run(build(LINEAR, stop={"time": 1}))
    problem = result.problem
    assert problem.W.shape == (8, 8)
    assert problem.solitary.shape == problem.targets.shape == result.models.shape == (8, 3)
    assert result.optimum.shape == (8, 3)
    X, y = problem.data[3]
    assert X.shape == (problem.data.sizes[3], 3)
    assert y.shape == (problem.data.sizes[3],)
    assert len(problem.test) == 8
    assert problem_of(result.scenario).W.nnz == problem.W.nnz


def test_an_objective_without_minimiser_is_a_note():
    """Separable points: the logistic loss falls for ever, but the run can still be simulated."""
    task = {
        "kind": "linear_classification",
        "agents": 3,
        "dimension": 20,
        "flip": 0.0,
        "samples": {"kind": "constant", "value": 2},
        "loss": "logistic",
    }
    result = run(build(LINEAR, task=task))
    assert result.optimum is None
    assert "no minimiser" in result.summary["notes"][0]
    assert {"objective", "accuracy"} <= set(result.trace)
    assert "gap" not in result.trace
    assert result.trace["objective"].iloc[-1] < result.trace["objective"].iloc[0]


def test_an_optimum_of_zero_has_no_gap():
    """Fewer points than dimensions: one model fits all, so Q* = 0 and Q/Q* means nothing."""
    task = {
        "kind": "linear_classification",
        "agents": 3,
        "dimension": 20,
        "samples": {"kind": "constant", "value": 2},
        "loss": "quadratic",
    }
    result = run(build(LINEAR, task=task))
    assert "gap" not in result.trace
    assert result.trace["objective"].iloc[-1] < 1e-2 * result.trace["objective"].iloc[0]


@pytest.mark.parametrize("sizes", [[3] * 8, [0, 5, 2, 0, 7, 1, 4, 3]])
def test_accuracies_are_shares_of_right_predictions(sizes, rng):
    """As many test points for everybody, or not: the same as one prediction after another."""
    scenario = build(LINEAR)
    X, y = rng.normal(size=(sum(sizes), 3)), rng.choice([-1.0, 1.0], sum(sizes))
    test = DataSets(X, y, np.concatenate([[0], np.cumsum(sizes)]))
    problem = replace(problem_of(scenario), test=test)
    models = rng.normal(size=(8, 3))
    models[4] = 0.0  # never right
    found = Accuracy().each(View(scenario, problem), models)
    for i, size in enumerate(sizes):
        right = [label * (point @ models[i]) > 0 for point, label in zip(*test[i], strict=True)]
        assert np.isnan(found[i]) if size == 0 else found[i] == pytest.approx(np.mean(right))
    assert found[4] == 0.0
