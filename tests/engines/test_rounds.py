"""Rounds that wait for neighbours only: what they compute, and when.

What follows for each run from its own records, or from the run behind a barrier for all, holds to
the last bit; that the engines do as they should, event for event, is tested with the oracle.
"""

from __future__ import annotations

import numpy as np
import pytest

from simulator.engines.setup import prepare
from simulator.errors import ScenarioError
from simulator.problem.build import build_problem
from simulator.runs.run import run
from simulator.runs.simulation import start_engine
from simulator.scenario.files import effective
from simulator.seeds import Streams
from tests.conftest import LINEAR, MEANS, build

NEAR = {"barrier": "neighbours"}
#: Long tails, loss, and resending that is too early for many.
ROUGH = {
    "latency": {"kind": "lognormal", "mean": 0.2, "sigma": 1.5},
    "drop": 0.2,
    "retransmit_after": 0.3,
}
STAYS = {"kind": "on_off", "on": {"kind": "exponential", "mean": 3.0}, "off": 1.0}
ALGORITHMS = {
    "mp": {"mu": 0.3},
    "djam": {"mu": 0.4, "ridge": 0.1},
    "cd": {"mu": 0.4},
    "admm": {"mu": 0.3},
    "dpsgd": {"step": 0.02},
}


def rounds_of(kind, base=MEANS, **changes):
    """A small world in rounds."""
    algorithm = {"kind": kind, "mode": "sync", **ALGORITHMS[kind]}
    return build(base, algorithm=algorithm, **{"engine": "compiled", "seed": 5, **changes})


def models_by_round(scenario, every):
    """Each agent's models, one after the other; samples are closer than two solves of an agent."""
    streams = Streams(scenario.seed)
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    engine = start_engine(setup, None)
    found, time = [[model] for model in engine.models.copy()], 0.0
    while not engine.finished:
        time += every
        engine.advance(time=time, communications=None)
        for own, model in zip(found, engine.models.copy(), strict=True):
            if not np.array_equal(own[-1], model):
                own.append(model)
    return found


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_models_are_those_of_the_global_barrier_bit_for_bit(kind, engine):
    """With loss, resending and churn: waiting for neighbours moves times alone."""
    compute = {"time": {"kind": "uniform", "low": 0.05, "high": 0.1}}
    changes = {"network": ROUGH, "availability": STAYS, "compute": compute, "engine": engine}
    scenario = rounds_of(kind, LINEAR, task__loss="quadratic", **changes, stop={"time": 60.0})
    behind = models_by_round(scenario, 0.04)
    near = models_by_round(scenario.model_validate(scenario.model_dump() | {"rounds": NEAR}), 0.04)
    fewest = min(map(len, behind))
    assert fewest > 5
    assert min(map(len, near)) > fewest
    for one, other in zip(behind, near, strict=True):
        for a, b in zip(one, other, strict=False):
            assert np.array_equal(a, b)


def first_arrivals(events):
    """When the message of each (sender, receiver, round) came first; ``sent_at`` tells rounds."""
    there = events[events["kind"] == "deliver"].sort_values("time", kind="stable")
    there = there.drop_duplicates(["agent", "peer", "sent_at"])
    there = there.sort_values("sent_at", kind="stable")
    number = there.groupby(["agent", "peer"], observed=True).cumcount() + 1
    return {
        key: time
        for *key, time in zip(there["peer"], there["agent"], number, there["time"], strict=True)
        for key in [tuple(key)]
    }


@pytest.mark.parametrize("kind", ["mp", "admm"])
def test_times_follow_from_first_arrivals(kind):
    """begin(t+1) is the later of the own begin and the arrivals, and computing; admm's before."""
    computing = 0.125
    changes = {"network": ROUGH, "compute": {"time": computing}, "record": {"events": True}}
    result = run(rounds_of(kind, rounds=NEAR, **changes, stop={"time": 40.0}))
    events, links = result.events, result.problem.W.tocoo()
    arrivals = first_arrivals(events)
    neighbours = {i: links.col[links.row == i].tolist() for i in range(result.problem.n)}
    ends = events[events["kind"] == "round"]
    assert len(ends) > 200
    for i, times in ends.groupby("agent")["time"]:
        begin = 0.0
        for number, end in enumerate(times.tolist(), 1):
            last = max(arrivals[j, i, number] for j in neighbours[i])
            late = max(begin + computing, last) if kind == "admm" else max(begin, last) + computing
            assert end == late
            begin = end


def done_by(events, agents):
    """How many rounds each agent has finished after each end of a round."""
    ends, done = events.loc[events["kind"] == "round", "agent"], np.zeros(agents, int)
    for agent in ends:
        done[agent] += 1
        yield done


@pytest.mark.parametrize("slack", [0, 1, 3])
def test_a_lead_is_at_most_the_slack_and_one(slack):
    changes = {"network": ROUGH, "compute": {"time": 0.02}, "record": {"events": True}}
    scenario = rounds_of("mp", rounds=NEAR | {"slack": slack}, **changes, stop={"time": 30.0})
    result = run(scenario)
    links = result.problem.W.tocoo()
    leads = [
        (done[links.row] - done[links.col]).max()
        for done in done_by(result.events, result.problem.n)
    ]
    assert max(leads) == slack + 1


def test_with_much_slack_nobody_waits():
    """Fewer than 100 rounds: one solve after the other, whatever comes."""
    changes = {"network": ROUGH, "compute": {"time": 0.25}, "record": {"events": True}}
    result = run(rounds_of("mp", rounds=NEAR | {"slack": 100}, **changes, stop={"time": 20.0}))
    ends = result.events[result.events["kind"] == "round"]
    for _, times in ends.groupby("agent")["time"]:
        assert times.tolist() == [0.25 * (k + 1) for k in range(80)]


def test_all_neighbours_are_enough():
    """``enough: 100%`` is slack 0, with everything."""
    changes = {"network": ROUGH, "availability": STAYS, "record": {"events": True}}
    one, other = (
        run(rounds_of("mp", rounds=NEAR | more, **changes, stop={"time": 20.0}))
        for more in ({}, {"enough": "100 %"})
    )
    assert one.trace.equals(other.trace)
    assert one.events.equals(other.events)
    assert np.array_equal(one.models, other.models)


def test_a_deadline_ends_what_is_lost_for_ever():
    """Nobody hears anybody: rounds of a deadline and a solve each."""
    network = {"latency": 0.1, "drop": 1.0, "retransmit_after": "never"}
    rounds = NEAR | {"deadline": 0.5}
    changes = {"network": network, "compute": {"time": 0.25}, "record": {"events": True}}
    result = run(rounds_of("mp", rounds=rounds, **changes, stop={"time": 15.0}))
    last = result.trace.iloc[-1]
    assert (last["round_least"], last["round_mean"], last["round_most"]) == (20, 20.0, 20)
    assert result.summary["dropped"] == result.summary["communications"]


def test_what_nobody_waits_for_is_not_sent_again():
    """A deadline of 1 s and a timer of 0.3 s: at most three attempts more."""
    network = {"latency": 0.1, "drop": 1.0, "retransmit_after": 0.3}
    changes = {"network": network, "compute": {"time": 0.25}}
    result = run(rounds_of("mp", rounds=NEAR | {"deadline": 1.0}, **changes, stop={"time": 12.4}))
    links, rounds = result.problem.W.nnz, 10
    assert result.summary["communications"] == links * rounds * 4


def test_messages_end_a_run_after_the_event():
    scenario = rounds_of("mp", rounds=NEAR, network=ROUGH, stop={"communications": 500})
    result = run(scenario)
    assert 500 <= result.summary["communications"] < 500 + result.problem.n


MISTAKES = {
    "rounds.slack: a barrier for all": {"rounds": {"slack": 2}},
    "rounds.deadline: does not go with slack": {
        "rounds": NEAR | {"slack": 1, "deadline": 1.0},
        "compute": {"time": 0.1},
    },
    "rounds.slack: without computing time": {"rounds": NEAR | {"slack": 1}},
    "rounds.enough: must be a percentage": {"rounds": NEAR | {"enough": 0.8}},
    "rounds.enough: must be a percentage above 0%": {"rounds": NEAR | {"enough": "0%"}},
    "rounds.enough: admm needs both ends": {
        "rounds": NEAR | {"enough": "80%"},
        "algorithm": {"kind": "admm", "mode": "sync", "mu": 1.0},
    },
    "rounds.slack: dpsgd takes each message in once": {
        "rounds": NEAR | {"slack": 1},
        "algorithm": {"kind": "dpsgd", "mode": "sync", "step": 0.1},
    },
    "network.retransmit_after: what is lost": {
        "rounds": NEAR | {"enough": "80%"},
        "network": {"latency": 0.1, "drop": 0.1, "retransmit_after": "never"},
    },
    "algorithm.protocol: rounds have none": {
        "algorithm": {"kind": "mp", "mode": "sync", "mu": 1.0, "protocol": "tell"}
    },
    "clock.peers: the protocol 'answer, then solve' contacts one neighbour": {
        "algorithm": {"kind": "mp", "mu": 1.0},
        "clock": {"peers": "all"},
    },
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_told(message):
    from simulator.runs.scenarios import load_scenario

    changes = {"algorithm": {"kind": "mp", "mode": "sync", "mu": 1.0}, **MISTAKES[message]}
    values = {**MEANS, "network": {"latency": 0.1}, **changes}
    with pytest.raises(ScenarioError) as caught:
        load_scenario(values)
    assert message in str(caught.value)


def test_gossip_has_no_rounds():
    """The key is allowed, so that modes can be compared, and is no part of what is computed."""
    assert effective(build(MEANS, rounds=NEAR)) == effective(build(MEANS))
