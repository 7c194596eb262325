"""Data that arrive: against runs without, closed forms, and theory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simulator.errors import SimulatorError
from simulator.runs.run import run
from tests.conftest import LINEAR, MEANS, build, problem_of
from tests.engines.test_oracle_network import CHURN

#: How often a right program would fail a test of chance.
SURE = 1e-5
GAPS = {"kind": "exponential", "mean": 2.0}
EVENTS = ["time", "kind", "agent", "peer", "bytes"]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_what_is_there_at_first_does_not_arrive(engine):
    """Bit for bit what a run without a stream gives."""
    for base, kind in ((MEANS, "mp"), (LINEAR, "djam")):
        keys = {"engine": engine, "algorithm": {"kind": kind, "mu": 0.3}, "seed": 4}
        plain = run(build(base, **keys))
        same = run(build(base, stream={"gaps": 1.0, "first": 1000}, **keys))
        np.testing.assert_array_equal(plain.models, same.models)
        pd.testing.assert_frame_equal(plain.trace, same.trace)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_stream_changes_no_tick_partner_latency_or_loss(engine):
    keys = {"engine": engine, "record__events": True, "stop": {"time": 20}, "seed": 4}
    keys |= {"network": {"latency": {"kind": "exponential", "mean": 0.2}, "drop": 0.2}}
    plain = run(build(MEANS, **keys)).events
    moving = run(build(MEANS, stream={"gaps": GAPS}, **keys)).events
    points = moving.kind == "point"
    assert points.sum() > 20
    pd.testing.assert_frame_equal(plain[EVENTS], moving.loc[~points, EVENTS].reset_index(drop=True))


def test_mp_in_rounds_is_the_recursion_with_the_data_of_each_moment():
    """One point a round: equation 5 with c and θ^sol as they are when a round's solves end."""
    rounds, task = 12, {"task__samples": {"kind": "uniform", "low": 1, "high": 9}}
    keys = {"algorithm": {"kind": "mp", "mode": "sync", "mu": 0.2}, "compute": {"time": 1}}
    keys |= {"stream": {"gaps": 1, "first": 1}, "stop": {"time": rounds}, "seed": 3}
    scenario = build(MEANS, **keys, **task)
    problem = problem_of(scenario)
    P = problem.W.toarray() / problem.D[:, None]
    most, mu = problem.data.sizes.max(), 0.2

    def data(t):
        points = [y[: 1 + t] for _, y in problem.data]
        c = np.array([len(y) / most for y in points])
        return c[:, None], np.array([[y.mean()] for y in points])

    Theta = data(0)[1]
    for t in range(1, rounds + 1):
        c, solitary = data(t)
        copies = np.array([P[i] @ Theta for i in range(problem.n)])
        if t == 1:  # messages of round 1 bring the models of time 0
            assert np.array_equal(Theta, data(0)[1])
        Theta = (copies + mu * c * solitary) / (1 + mu * c)
    for engine in ("simpy", "compiled"):
        result = run(scenario.model_copy(update={"engine": engine}))
        np.testing.assert_allclose(result.models, Theta, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "loss"), [("mp", "hinge"), ("djam", "hinge"), ("cd", "logistic"), ("admm", "logistic")]
)
def test_after_the_last_point_the_optimum_of_all_data_is_reached(kind, loss):
    """With 30 % loss, and agents that come and go, and forget."""
    ridge = {} if kind == "mp" else {"ridge": 0.2}
    scenario = build(
        LINEAR,
        engine="compiled",
        task__loss=loss,
        task__agents=6,
        task__samples={"kind": "uniform", "low": 1, "high": 9},
        algorithm={"kind": kind, "mu": 0.5, **ridge},
        network={"latency": {"kind": "exponential", "mean": 0.2}, "drop": 0.3},
        availability={**CHURN, "on": 500.0},
        stream={"gaps": GAPS, "first": 1},
        stop={"time": 3000, "metric": "distance", "below": 1e-18},
        record={"every": 100},
    )
    result = run(scenario)
    trace = result.trace
    assert trace.points.iloc[-1] == result.problem.data.sizes.sum()
    assert trace.points.is_monotonic_increasing
    assert trace.points.iloc[0] == 6
    assert trace.distance.min() <= 1e-18
    assert np.array_equal(result.agents.points, result.problem.data.sizes)
    assert np.array_equal(result.agents.confidence, result.problem.confidence)


def test_numbers_of_arrivals_follow_the_law_of_gaps():
    """Exponential gaps: a Poisson process until the data end; one gap each where they are one."""
    task = {"task__agents": 40, "task__samples": {"kind": "uniform", "low": 400, "high": 401}}
    keys = {"engine": "compiled", "clock__rate": 0.01, "stop": {"time": 100}, "seed": 5}
    trace = run(build(MEANS, stream={"gaps": GAPS, "first": 0}, **keys, **task)).trace
    count, expected = trace.points.iloc[-1], 40 * 100 / GAPS["mean"]
    assert 2 * min(stats.poisson.cdf(count, expected), stats.poisson.sf(count - 1, expected)) > SURE
    regular = run(build(MEANS, stream={"gaps": 8.0, "first": 3}, **keys, **task)).trace
    assert regular.points.iloc[-1] == 40 * (3 + 12)


def test_metrics_are_against_the_moment():
    """Gap and distance of the last sample are those of a problem with the points so far."""
    scenario = build(
        MEANS,
        engine="compiled",
        stream={"gaps": GAPS, "first": 1},
        stop={"time": 5},
        record={"every": 1},
        task__samples={"kind": "uniform", "low": 5, "high": 30},
        seed=2,
    )
    result = run(scenario)
    problem, m = result.problem, result.agents.points.to_numpy()
    assert 12 < m.sum() < problem.data.sizes.sum()
    c, mu = m / problem.data.sizes.max(), scenario.algorithm.trade_off
    solitary = np.array([y[:k].mean() for (_, y), k in zip(problem.data, m, strict=True)])
    W, D = problem.W.toarray(), np.diag(problem.D)
    right = mu * problem.D * c * solitary
    optimum = np.linalg.solve(D - W + mu * D @ np.diag(c), right)
    last = result.trace.iloc[-1]
    distance = np.mean((result.models[:, 0] - optimum) ** 2)
    assert last["distance"] == pytest.approx(distance, rel=1e-9)
    alone = np.mean((solitary - problem.targets[:, 0]) ** 2)
    assert last["l2_error_solitary"] == pytest.approx(alone, rel=1e-12)
    pooled = np.concatenate([y[:k] for (_, y), k in zip(problem.data, m, strict=True)]).mean()
    together = np.mean((pooled - problem.targets[:, 0]) ** 2)
    assert last["l2_error_consensus"] == pytest.approx(together, rel=1e-12)


POINTS = "agent,t,x,y\na,3,1,2\nb,0,2,3\na,1,2,5\na,-1,3,7\nb,2.5,1,1\nb,2.5,4,4\n"


def by_column(tmp_path, text=POINTS, **changes):
    (tmp_path / "train.csv").write_text(text)
    changes = {"stream": {"column": "t"}, "record": {"events": True, "every": 1}} | changes
    return build(
        {"algorithm": {"kind": "mp", "alpha": 0.9}, "stop": {"time": 5}, "name": "files"},
        task={"kind": "files", "train": str(tmp_path / "train.csv")},
        graph={"kind": "networkx", "generator": "complete_graph"},
        **changes,
    )


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_column_says_when_points_arrive(engine, tmp_path):
    """In the order of time, then of the file; the column is no feature."""
    result = run(by_column(tmp_path, engine=engine))
    assert result.problem.p == 1
    np.testing.assert_array_equal(result.problem.data.y, [7, 5, 2, 3, 1, 4])
    events = result.events
    points = events[events.kind == "point"]
    assert points.time.tolist() == [1, 2.5, 2.5, 3]
    assert points.agent.tolist() == [0, 1, 1, 0]
    assert result.trace.points.tolist() == [2, 3, 3, 6, 6, 6]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            POINTS.replace("2.5", "soon", 1),
            "train.csv:6: column 't': 'soon' is not a finite number",
        ),
        (POINTS.replace("2.5", "nan", 1), "train.csv:6: column 't': 'nan' is not a finite number"),
        (POINTS.replace("t,x", "s,x"), "stream.column: "),
    ],
)
def test_wrong_columns(text, words, tmp_path):
    with pytest.raises(SimulatorError) as caught:
        run(by_column(tmp_path, text))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("base", "changes", "words"),
    [
        (MEANS, {"stream": {}}, "gaps"),
        (MEANS, {"stream": {"gaps": 1, "column": "t"}}, "gaps"),
        (MEANS, {"stream": {"gaps": 0}}, "gaps"),
        (MEANS, {"stream": {"gaps": -1}}, "gaps"),
        (MEANS, {"stream": {"gaps": 1, "first": -1}}, "first"),
        (MEANS, {"stream": {"column": "t"}}, "stream.column"),
        (MEANS, {"record": {"only": ["distant"]}}, "only"),
        (
            MEANS,
            {"record": {"only": ["l2_error"]}, "stop": {"time": 1, "metric": "gap", "below": 1}},
            "stop.metric",
        ),
    ],
)
def test_wrong_streams(base, changes, words):
    with pytest.raises(ValueError) as caught:
        build(base, **changes)
    assert words in str(caught.value).replace("\n", " ")


def test_only_some_metrics():
    trace = run(build(MEANS, record={"only": ["l2_error"]})).trace
    assert {"l2_error"} == {"l2_error", "objective", "gap", "distance"} & set(trace.columns)
