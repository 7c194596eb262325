"""Both engines against a simulator of the tests' own, which shares no code with them.

The engines run the same mathematics and much the same protocols, so that they agree with each other
is not enough.  Counts, bytes and times must be equal, models to 1e-9.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.rule import TELL, Rule, per_agent, per_link, uniform
from simulator.engines.setup import prepare
from simulator.problem.build import build_problem
from simulator.runs.plugins import load_plugins, schema_for
from simulator.runs.result import COUNTS
from simulator.runs.run import run, start_engine
from simulator.seeds import Streams
from tests.conftest import LINEAR, MEANS, build
from tests.engines import oracle_living, oracle_network

EXACT = ["time", *COUNTS]
BURSTY = {"kind": "gilbert_elliott", "mean_good": 2.0, "mean_bad": 1.0, "drop_good": 0.05}
PARETO = {"kind": "pareto", "mean": 2.0, "shape": 1.5}


class Drifting(Rule):
    """θ_i ← θ_i + u (½ θ_i^sol + ½ mean of copies − θ_i), u uniform.

    All neighbours are told, each with an error of its own, drawn also where the message is lost.
    """

    kind, protocol, same_for_all = "drifting", TELL, False

    copies = per_link("p")
    home = per_agent("p")

    def prepare(s, start):
        s.copies = start.copies
        s.home = start.solitary

    def tell(s, i, k, out):
        error = 0.01 * uniform(s)
        for x in range(s.p):
            out[x] = s.models[i, x] + error

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.copies[k, x] = received[x]

    def solve(s, i):
        u = uniform(s)
        for x in range(s.p):
            total = 0.0
            for k in range(s.first[i], s.first[i + 1]):
                total += s.copies[k, x]
            mean = total / (s.first[i + 1] - s.first[i])
            s.models[i, x] += u * (0.5 * (s.home[i, x] + mean) - s.models[i, x])


@cache
def drifting_schema():
    return schema_for(load_plugins(Drifting))


def scenario_of(base, **changes):
    """A small scenario of one of the three protocols, sampled every 0.7 s."""
    changes = {"task__agents": 5, "stop": {"time": 6.0}, "record": {"every": 0.7}, **changes}
    if base != "mp":  # the oracle tries all combinations of an agent's points
        changes = {"task__samples": {"kind": "uniform", "low": 0, "high": 2}, **changes}
    if base != "drifting":
        return build({"mp": MEANS, "admm": LINEAR}[base], **changes)
    as_mp = build(LINEAR, **changes, algorithm__kind="mp").model_dump()
    algorithm = {key: as_mp["algorithm"][key] for key in ("mode", "start")}
    return drifting_schema().model_validate(as_mp | {"algorithm": algorithm | {"kind": base}})


def simulate(scenario):
    """The run as tests/engines/oracle_network.py and tests/engines/oracle_living.py have it."""
    streams = Streams(scenario.seed)
    problem, algorithm = build_problem(scenario, streams), scenario.algorithm
    if algorithm.kind == "mp":
        rule = oracle_network.Propagation(problem, algorithm.start, algorithm.trade_off)
    elif algorithm.kind == "djam":
        rule = oracle_network.Relaxation(problem, algorithm)
    elif algorithm.kind == "cd":
        rule = oracle_network.Descent(problem, algorithm)
    elif algorithm.kind in ("dpsgd", "adpsgd"):
        penalty = 0.0 if problem.loss.kind == "quadratic" else scenario.task.ridge
        kinds = {"dpsgd": oracle_network.Averaging, "adpsgd": oracle_network.Pairs}
        rule = kinds[algorithm.kind](problem, algorithm, penalty)
    elif algorithm.kind == "drifting":
        rule = oracle_network.Drifting(problem, algorithm.start, streams.rule)
    else:
        steps = getattr(algorithm.primal, "gradient_steps", 0)
        rule = oracle_network.Collaboration(
            problem, algorithm.start, algorithm.trade_off, algorithm.rho, steps
        )
    return oracle_living.LivingSimulation(scenario, problem, streams, rule).run()


def advance(scenario):
    """The run in the scenario's engine, without metrics: its samples and last models."""
    streams = Streams(scenario.seed)
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    engine = start_engine(setup, None)
    rows = []
    while True:
        rows.append({"time": engine.now, **engine.counters()})
        rows[-1]["staleness"] = engine.now - engine.sent_at.mean()
        if engine.finished:
            engine.check()
            return rows, engine.models
        engine.advance(time=len(rows) * scenario.record.every, communications=None)


def assert_as_simulated(scenario):
    """Both engines give what the oracle gives; the oracle's last row."""
    expected = simulate(scenario)
    for engine in ("simpy", "compiled"):
        rows, models = advance(scenario.model_copy(update={"engine": engine}))
        assert [[row[k] for k in EXACT] for row in rows] == [
            [row[k] for k in EXACT] for row in expected.rows
        ]
        for row, right in zip(rows, expected.rows, strict=True):
            assert row["staleness"] == pytest.approx(right["staleness"], abs=1e-9)
        np.testing.assert_allclose(models, expected.rule.models(), rtol=1e-9, atol=1e-9)
    return expected.rows[-1]


NETWORKS = {
    "constant": {"latency": 0.25},
    "uniform": {"latency": {"kind": "uniform", "low": 0.1, "high": 2.0}},
    "exponential, loss": {"latency": {"kind": "exponential", "mean": 0.5}, "drop": 0.3},
    "lognormal, fifo": {"latency": {"kind": "lognormal", "mean": 1.0, "sigma": 1.5}, "fifo": True},
    "pareto": {"latency": {"kind": "pareto", "mean": 0.8, "shape": 1.3}},
    "bursts": {"latency": 0.3, "drop": BURSTY},
    "uplink": {"latency": 0.1, "drop": 0.2, "bandwidth": 300.0, "header": 20},
    "stragglers": {"latency": {"kind": "exponential", "mean": 0.2, "per_agent": PARETO}},
    "slow links": {"latency": {"kind": "exponential", "mean": 0.2, "per_link": PARETO}},
    "everything": {
        "latency": {"kind": "uniform", "low": 0, "high": 2, "per_agent": PARETO, "per_link": 0.5},
        "drop": BURSTY,
        "bandwidth": 600.0,
        "fifo": True,
        "retransmit_after": 0.3,
    },
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("base", ["mp", "admm", "drifting"])
def test_networks(base, mode, network):
    changes = {"clock": {"rate": 2.0}, "network": network, "algorithm__mode": mode}
    last = assert_as_simulated(scenario_of(base, **changes, seed=3))
    assert last["delivered"] > 20
    assert last["dropped"] > 0 or "drop" not in network


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("base", ["mp", "admm", "drifting"])
@pytest.mark.parametrize(
    "time",
    [
        0.25,  # equal to the latency: ties are the rule
        {"kind": "exponential", "mean": 0.6, "per_agent": PARETO},
    ],
    ids=["constant", "per agent"],
)
def test_computing_and_mailboxes(base, mode, time):
    changes = {"compute": {"time": time}, "algorithm__mode": mode, "clock": {"rate": 2.0}}
    network = {"latency": 0.25, "drop": 0.1, "retransmit_after": 0.25}
    last = assert_as_simulated(scenario_of(base, **changes, network=network, seed=4))
    assert (last["skipped"] > 0) == (mode == "async")


@pytest.mark.parametrize("start", ["own", "hello", "known", "zero"])
@pytest.mark.parametrize("base", ["mp", "admm", "drifting"])
def test_starts_peers_and_clocks(base, start):
    """Weighted peers, clocks of unequal rates; some hellos come after the first exchange."""
    clock = {"rate": {"kind": "lognormal", "mean": 3.0, "sigma": 1.0}, "peers": "weighted"}
    network = {"latency": {"kind": "exponential", "mean": 0.8}, "drop": 0.2}
    changes = {"clock": clock, "network": network, "algorithm__start": start}
    assert assert_as_simulated(scenario_of(base, **changes, seed=5))["stale"] > 0


@pytest.mark.parametrize("timer", [0.1, 0.25, 0.5, "never"])
@pytest.mark.parametrize("base", ["mp", "admm", "drifting"])
def test_resending(base, timer):
    """A slow message is sent again like a lost one; arrivals at the timer's instant are in time."""
    network = {"latency": 0.5, "retransmit_after": timer, "drop": 0.0 if timer == "never" else 0.2}
    changes = {"algorithm__mode": "sync", "network": network, "stop": {"communications": 150}}
    last = assert_as_simulated(scenario_of(base, **changes, seed=6))
    assert (last["stale"] > 0) == (timer in (0.1, 0.25))


COMING_AND_GOING = {"kind": "on_off", "on": {"kind": "exponential", "mean": 1.5}, "off": 0.75}
#: Agent 4 is back when what was sent to it before it left arrives: that is in time.
TRACE = (
    "agent,time,state\n0,0,off\n0,0.5,on\n4,0.6,off\n4,0.75,on\n4,0.8,off\n4,1,on\n3,1,off\n"
    "1,2,off\n2,2,off\n3,2,on\n1,3.5,on\n2,4,on\n"
)


@pytest.mark.parametrize(
    ("mode", "start", "forget"),
    [
        ("async", "own", False),
        ("async", "hello", True),
        ("async", "zero", True),
        ("sync", "own", True),
        ("sync", "zero", False),
    ],
)
@pytest.mark.parametrize("base", ["mp", "admm", "drifting"])
def test_comings_and_goings(base, mode, start, forget, tmp_path):
    """With loss, computing that pauses and a partition; then by a trace, with many ties."""
    network = {"latency": {"kind": "exponential", "mean": 0.2}, "drop": 0.2}
    network |= {"retransmit_after": 0.5, "partitions": [{"from": 3, "until": 4, "groups": 2}]}
    changes = {"clock": {"rate": 2.0}, "compute": {"time": 0.25}, "seed": 9}
    changes |= {"algorithm__mode": mode, "algorithm__start": start}
    by_law = COMING_AND_GOING | {"forget": forget}
    last = assert_as_simulated(scenario_of(base, **changes, network=network, availability=by_law))
    assert last["missed"] > 5
    (tmp_path / "trace.csv").write_text(TRACE)
    traced = {"kind": "trace", "file": str(tmp_path / "trace.csv"), "forget": forget}
    network |= {"latency": 0.25, "fifo": True}
    last = assert_as_simulated(scenario_of(base, **changes, network=network, availability=traced))
    assert last["missed"] > 0


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("start", ["hello", "known"])
@pytest.mark.parametrize("base", ["mp", "admm"])
def test_who_comes_on_for_the_first_time_forgets_nothing(base, start, mode, tmp_path):
    """Copies known from the start stay, and the neighbours' hellos, under way, are no old ones."""
    if start == "hello" and mode == "sync":
        mode = "async"
    (tmp_path / "trace.csv").write_text("agent,time,state\n0,0,off\n0,0.5,on\n")
    traced = {"kind": "trace", "file": str(tmp_path / "trace.csv"), "forget": True}
    changes = {"algorithm__mode": mode, "algorithm__start": start, "network": {"latency": 1.0}}
    changes |= {"clock": {"rate": 0.1}, "stop": {"time": 3.0}, "seed": 1}
    last = assert_as_simulated(scenario_of(base, **changes, availability=traced))
    assert last["delivered"] > 0
    assert last["stale"] == 0


FIELD = {
    "djam on the hinge loss": (LINEAR, {"kind": "djam", "mu": 0.4}, "hinge"),
    "djam with a ridge": (LINEAR, {"kind": "djam", "mu": 0.4, "ridge": 0.3}, "logistic"),
    "djam on means": (MEANS, {"kind": "djam", "mu": 0.01}, None),
    "cd": (LINEAR, {"kind": "cd", "mu": 0.4}, "logistic"),
    "cd with a ridge": (LINEAR, {"kind": "cd", "mu": 0.4, "ridge": 0.3}, "logistic"),
    "cd on means": (MEANS, {"kind": "cd", "mu": 0.01}, None),
    "dpsgd": (LINEAR, {"kind": "dpsgd", "step": 0.2}, "logistic"),
    "dpsgd on means": (MEANS, {"kind": "dpsgd", "step": 0.001}, None),
    "adpsgd": (LINEAR, {"kind": "adpsgd", "step": 0.2}, "logistic"),
    "adpsgd on means": (MEANS, {"kind": "adpsgd", "step": 0.001}, None),
}


@pytest.mark.parametrize("start", ["own", "zero"])
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("case", FIELD.values(), ids=FIELD)
def test_rules_of_the_field(case, mode, start):
    """Their own recursions, with delay, loss and computing time."""
    base, algorithm, loss = case
    if {"dpsgd": "sync", "adpsgd": "async"}.get(algorithm["kind"], mode) != mode:
        pytest.skip("has the other mode only")
    changes = {} if loss is None else {"task__loss": loss}
    if loss is not None:
        changes["task__samples"] = {"kind": "uniform", "low": 0, "high": 2}
    scenario = build(
        base,
        **changes,
        task__agents=5,
        algorithm={**algorithm, "mode": mode, "start": start},
        network={"latency": {"kind": "exponential", "mean": 0.5}, "drop": 0.3},
        compute={"time": 0.1},
        clock={"rate": 2.0},
        stop={"time": 6.0},
        record={"every": 0.7},
        seed=8,
    )
    assert assert_as_simulated(scenario)["dropped"] > 5


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("start", ["own", "known"])
def test_gradient_steps_from_the_kinks(loss, start):
    """The solitary fit lies on the kinks, where rounding must not decide between subgradients."""
    changes = {"task__loss": loss, "algorithm__primal": {"gradient_steps": 5}}
    network = {"latency": {"kind": "exponential", "mean": 0.1}, "drop": 0.1}
    scenario = scenario_of("admm", **changes, algorithm__start=start, network=network, seed=2)
    assert_as_simulated(scenario)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_hello_has_the_size_of_one_model(engine):
    """Nobody has ticked yet: 5·4 hellos of 3 numbers, whatever a message of admm holds later."""
    scenario = scenario_of(
        "admm",
        algorithm__start="hello",
        engine=engine,
        clock={"rate": 1e-6},
        network={"header": 7, "latency": 0.1},
    )
    summary = run(scenario).summary
    assert summary["communications"] == summary["delivered"] == 20
    assert summary["bytes"] == 20 * (7 + 8 * 3)


laws = st.sampled_from([0.25, *(NETWORKS[name]["latency"] for name in ("uniform", "pareto"))])


@settings(max_examples=25)
@given(
    st.sampled_from(["mp", "admm", "drifting"]),
    st.booleans(),
    st.integers(0, 2**32),
    st.integers(2, 6),
    st.fixed_dictionaries(
        {
            "latency": laws,
            "drop": st.sampled_from([0.0, 0.5, BURSTY]),
            "bandwidth": st.sampled_from([None, 400.0]),
            "fifo": st.booleans(),
            "retransmit_after": st.sampled_from([0.2, 0.25, 3.0]),
        }
    ),
    st.sampled_from([0.0, 0.25, {"kind": "exponential", "mean": 0.3, "per_agent": PARETO}]),
    st.sampled_from(["uniform", "weighted"]),
    st.sampled_from(["own", "hello", "known", "zero"]),
    st.integers(1, 150),
)
def test_any_network(base, sync, seed, agents, network, time, peers, start, limit):
    assume(not (sync and start == "hello"))
    # Somebody must have data.
    extra = {} if base == "mp" else {"task__samples": {"kind": "uniform", "low": 1, "high": 2}}
    scenario = scenario_of(
        base,
        **extra,
        seed=seed,
        task__agents=agents,
        network=network,
        compute={"time": time},
        clock={"peers": peers, "rate": 2.0},
        stop={"communications": limit, "time": 8.0},
        algorithm__mode="sync" if sync else "async",
        algorithm__start=start,
    )
    assert_as_simulated(scenario)
