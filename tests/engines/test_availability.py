"""Devices that come and go, by theory and by what events show; their places: test_places.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from agents.running import RunningRule
from simulator import run
from simulator.engines.availability import availability_of
from simulator.errors import ScenarioError
from simulator.problem.build import build_problem
from simulator.seeds import Streams
from tests.conftest import LINEAR, MEANS, build
from tests.engines.test_compiled import assert_same

#: Each statistical test fails by chance with a probability of about 1e-5; seeds are fixed anyway.
SURE = 1e-5
SIGMAS = 4.4
CHURN = {"kind": "on_off", "on": {"kind": "exponential", "mean": 3.0}, "off": 1.5}
SLOW = {"latency": {"kind": "lognormal", "mean": 0.3, "sigma": 1.0}, "drop": 0.1}
SLOW["retransmit_after"] = 0.4
HALVES = [
    {"from": 4, "until": 9, "groups": 2},
    {"from": 12, "until": 13, "groups": [[0, 1], ["2"]]},
]
TRACE = (
    "agent,time,state\n0,0,off\n0,6 s,on\n3,2,off\n4,2,off\n3,7,on\n4,7,on\n"
    "5,9,off\n1,13,off\n1,14,on\n"
)
EVENTS = {"every": 1.0, "events": True}


def trace_file(folder, text=TRACE):
    (folder / "trace.csv").write_text(text)
    return {"kind": "trace", "file": str(folder / "trace.csv")}


def churning(base=MEANS, **changes):
    changes = {"availability": CHURN, "network": SLOW, "record": EVENTS, **changes}
    return build(base, stop={"time": 20}, **changes)


# --- both engines -------------------------------------------------------------------------------
@pytest.mark.parametrize("forget", [False, True], ids=["keeps", "forgets"])
@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_whoever_is_off_says_hello_later(base, forget):
    changes = {"algorithm__start": "hello", "compute__time": 0.2, "network": SLOW}
    scenario = churning(base, **changes, availability={**CHURN, "forget": forget})
    events = assert_same(scenario).events
    hellos = events[(events["kind"] == "send") & (events["what"] == "hello")]
    first_on = first_return(events)
    assert len(hellos) > 0
    assert not hellos.groupby(["agent", "peer"])["time"].count().gt(1).any()
    for agent, time in first_on.items():
        assert set(hellos.loc[hellos["agent"] == agent, "time"]) <= {time}


def first_return(events):
    """When those who begin off are on for the first time."""
    switches = events[events["kind"] == "switch"]
    off = switches.loc[(switches["time"] == 0) & (switches["what"] == "off"), "agent"]
    back = switches[(switches["what"] == "on") & switches["agent"].isin(off)]
    return back.groupby("agent")["time"].min()


# --- what being off means -----------------------------------------------------------------------
def absences(events, agent, end):
    """When an agent was off: pairs of times."""
    switches = events[(events["kind"] == "switch") & (events["agent"] == agent)]
    times = [*switches["time"], end]
    first = 0 if len(switches) and switches["what"].iloc[0] == "off" else 1
    return list(zip(times[first::2], times[first + 1 :: 2], strict=False))


def is_off(events, agent, times, end=20.0):
    off = np.zeros(len(times), dtype=bool)
    for begin, back in absences(events, agent, end):
        off |= (times >= begin) & (times < back)
    return off


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_who_is_off_does_nothing(base, mode):
    scenario = churning(base, algorithm__mode=mode, compute__time=0.3)
    result = run(scenario)
    events = result.events
    for agent in range(result.problem.n):
        own = events[events["agent"] == agent]
        off = is_off(events, agent, own["time"].to_numpy())
        did = set(own.loc[off, "kind"])
        assert did <= {"skip", "miss", "switch"}
        assert not set(own.loc[~off, "kind"]) & {"miss"}
    counts = events["kind"].value_counts()
    assert result.summary["missed"] == counts["miss"] > 0
    assert result.summary["skipped"] == counts["skip"]


def test_computing_pauses_with_its_agent():
    """From the tick to the solve, the time on is the computing time."""
    scenario = churning(LINEAR, compute__time=0.7, network={"latency": 0.1})
    events = run(scenario).events
    paused = 0
    for agent in range(8):
        own = events[(events["agent"] == agent) & events["kind"].isin(["tick", "handle", "solve"])]
        away = absences(events, agent, 20.0)
        before = own["time"].shift()
        solves = own["kind"] == "solve"
        began = own["kind"].shift().isin(["tick", "handle"])
        for begin, end in zip(before[solves & began], own.loc[solves & began, "time"], strict=True):
            off = sum(max(0.0, min(end, back) - max(begin, gone)) for gone, back in away)
            assert end - begin - off == pytest.approx(0.7, abs=1e-9)
            paused += off > 0
    assert paused > 5


def test_ticks_and_partners_are_those_without_churn():
    with_churn, without = (run(churning(availability=a)).events for a in (CHURN, None))
    rings = [e[e["kind"].isin(["tick", "skip"])] for e in (with_churn, without)]
    assert (
        rings[0][["time", "agent"]].to_numpy().tolist()
        == rings[1][["time", "agent"]].to_numpy().tolist()
    )
    asked = [
        e[(e["kind"] == "send") & (e["what"] == "request")].set_index(["time", "agent"])["peer"]
        for e in (with_churn, without)
    ]
    common = asked[0].index.intersection(asked[1].index)
    assert len(common) == len(asked[0]) < len(asked[1])
    assert (asked[0].loc[common] == asked[1].loc[common]).all()


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_agents_that_never_leave_change_nothing(mode):
    """All draws are those of the run without availability; timers that never matter do not."""
    always = {"kind": "on_off", "on": 1e9, "off": 1e-3}
    with_it = run(churning(algorithm__mode=mode, availability=always))
    without = run(churning(algorithm__mode=mode, availability=None))
    pd.testing.assert_frame_equal(with_it.events, without.events)
    pd.testing.assert_frame_equal(with_it.trace, without.trace)


# --- renewal theory -----------------------------------------------------------------------------
STAYS = {
    "constant": (4.0, 2.0),
    "uniform": ({"kind": "uniform", "low": 1, "high": 7}, {"kind": "uniform", "low": 1, "high": 3}),
    "lognormal": (
        {"kind": "lognormal", "mean": 4, "sigma": 1.2},
        {"kind": "exponential", "mean": 2},
    ),
    "pareto": ({"kind": "pareto", "mean": 4, "shape": 3.5}, 2.0),
}


@pytest.mark.parametrize("name", STAYS)
def test_comings_and_goings_follow_renewal_theory(name):
    """Stationary from the start: at any time 2/3 are on, and 2T/6 switches in a time T."""
    on, off = STAYS[name]
    n, end = 600, 9.0
    scenario = build(
        MEANS,
        engine="compiled",
        task__agents=n,
        graph={"kind": "knn", "k": 2, "weights": "unit", "allow_disconnected": True},
        clock={"rate": 1e-3},
        availability={"kind": "on_off", "on": on, "off": off},
        record=EVENTS,
        stop={"time": end},
        seed=5,
    )
    events = run(scenario).events
    switches = events[events["kind"] == "switch"]
    began_off = set(switches.loc[switches["time"] == 0, "agent"])
    later = switches[switches["time"] > 0]
    for time in (0.0, 1.3, 6.0, 9.0):
        states = ~np.isin(np.arange(n), list(began_off))
        flips = later.loc[later["time"] <= time, "agent"].value_counts()
        states[flips.index] ^= flips.to_numpy() % 2 == 1
        assert stats.binomtest(int(states.sum()), n, 2 / 3).pvalue > SURE
    counts = np.bincount(later["agent"], minlength=n)
    spread = counts.std() / np.sqrt(n)
    assert abs(counts.mean() - 2 * end / 6) < SIGMAS * max(spread, 1e-9)


def test_the_share_of_requests_that_are_missed():
    """A request finds its receiver off with the share of time off; contacts are far apart."""
    scenario = build(
        MEANS,
        engine="compiled",
        availability={"kind": "on_off", "on": {"kind": "exponential", "mean": 0.5}, "off": 0.25},
        clock={"rate": 0.5},
        network={"latency": 0.05},
        record=EVENTS,
        stop={"time": 800},
    )
    events = run(scenario).events
    requests = events[events["what"] == "request"]
    missed, came = (int((requests["kind"] == kind).sum()) for kind in ("miss", "deliver"))
    assert missed + came > 2000
    assert stats.binomtest(missed, missed + came, 1 / 3).pvalue > SURE


def test_the_first_stay_is_the_rest_of_one():
    """Of constant stays: uniform on (0, length)."""
    scenario = churning(
        task__agents=2000, graph={"kind": "knn", "k": 2, "allow_disconnected": True}
    )
    streams = Streams(0)
    found = availability_of(scenario, build_problem(scenario, streams), streams)
    rest = found.first[~found.on]
    assert stats.kstest(rest, stats.uniform(0, 1.5).cdf).pvalue > SURE
    assert stats.binomtest(int(found.on.sum()), 2000, 2 / 3).pvalue > SURE


# --- rounds -------------------------------------------------------------------------------------
def test_rounds_wait_for_whoever_is_off(tmp_path):
    """Agent 0 is off from 2 to 8: the round that it misses ends after its return."""
    trace = trace_file(tmp_path, "agent,time,state\n0,2,off\n0,8,on\n")
    network = {"latency": 0.1, "retransmit_after": 0.3}
    scenario = churning(algorithm__mode="sync", availability=trace, network=network)
    events = run(scenario).events
    ends = events.loc[events["kind"] == "round", "time"].to_numpy()
    assert not ((ends > 2.2) & (ends < 8)).any()
    assert ((ends > 8) & (ends < 8.3)).any()
    sends = events[events["kind"] == "send"]
    assert not ((sends["agent"] == 0) & sends["time"].between(2, 8, inclusive="neither")).any()
    back = sends[sends["time"] == 8.0]
    assert ((back["agent"] == 0) | (back["peer"] == 0)).all()


@pytest.mark.parametrize(
    ("trace", "cut"),
    [
        ("0,0,off\n0,1,on\n1,1,off\n1,5,on\n", False),
        ("1,1,off\n1,5,on\n", True),
        ("0,0,off\n1,0.5,off\n2,0.5,off\n2,1,on\n0,1,on\n1,1,on\n3,1,off\n3,5,on\n", False),
    ],
    ids=["one comes as another goes", "one goes as a partition ends", "three come, one goes"],
)
def test_all_switches_of_an_instant_precede_what_is_sent_again(tmp_path, trace, cut):
    """Nothing is repeated from or to whoever is off from that instant on; senders in order."""
    network = {"latency": 0.1, "retransmit_after": 0.3}
    if cut:
        network["partitions"] = [{"from": 0, "until": 1, "groups": [["0"], ["1", "2", "3"]]}]
    changes = {"task__agents": 4, "algorithm__mode": "sync", "network": network}
    traced = trace_file(tmp_path, f"agent,time,state\n{trace}")
    events = assert_same(churning(**changes, availability=traced)).events
    now = events[events["time"] == 1.0]
    kinds = now["kind"].tolist()
    assert "send" not in kinds[: kinds.index("switch") + kinds.count("switch")]
    sends, off = now[now["kind"] == "send"], 1 if trace.endswith("1,5,on\n") else 3
    assert off not in sends["agent"].tolist()
    again = sends[sends["sent_at"] < 1.0]
    assert len(again) > 0
    assert off not in again["peer"].tolist()
    assert again["agent"].is_monotonic_increasing


@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
@pytest.mark.parametrize("forget", [False, True], ids=["keeps", "forgets"])
def test_the_update_that_reaches_the_target_is_the_last_one(base, forget):
    """In rounds: no reset follows at the barrier, and none follows on one that reaches it."""
    law = {"kind": "exponential", "mean": 2.0}, {"kind": "exponential", "mean": 0.5}
    churn = {"kind": "on_off", "on": law[0], "off": law[1], "forget": forget}
    changes = {"algorithm__mode": "sync", "algorithm__start": "zero", "availability": churn}
    reached = 0
    every = [{"every": 1}, {"every_communications": 1}]  # a sample at each barrier
    targets = [("distance", "20%", every[0]), ("l2_error", "95%", every[0])]
    targets += [("distance", "80%", every[1])]  # seed 19: a reset reaches it
    for seed, (metric, share, record) in product(range(8, 20), targets):
        stop = {"time": 30, "metric": metric, "below": share}
        changes["record"] = record
        network = {"latency": 0.1, "retransmit_after": 0.3}
        scenario = build(base, seed=seed, task__agents=4, network=network, stop=stop, **changes)
        result = assert_same(scenario)
        target = result.summary["target"]
        if target["time"] is not None:
            reached += 1
            assert result.trace[metric].iloc[-1] <= target["level"]
            assert result.trace["time"].iloc[-1] == target["time"]
    assert reached > 6


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("limit", [{"time": 30.0}, {"communications": 10_000}], ids=str)
def test_a_round_that_cannot_end_names_the_missing(tmp_path, engine, limit):
    trace = trace_file(tmp_path, "agent,time,state\n3,2,off\n7,2,off\n7,4,on\n")
    changes = {"algorithm__mode": "sync", "availability": trace, "engine": engine}
    result = run(build(MEANS, **changes, network={"latency": 0.1}, stop=limit))
    assert result.summary["notes"][-1] == (
        "the last round could not end: agent 3 did not come back"
    )
    if "time" in limit:
        assert result.summary["simulated_time"] == 30.0
    else:
        assert result.summary["communications"] < 10_000


# --- learning under churn -----------------------------------------------------------------------
@pytest.mark.verify
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_they_still_reach_the_optimum(base, mode):
    """With 30 % of the time off, to the accuracy that they reach without, given time.

    In gossip that is as many exchanges: both ends are on for 0.7² of the time.  Rounds go through
    the same models, but each takes five times as long.
    """
    availability = {"kind": "on_off", "on": {"kind": "exponential", "mean": 7.0}, "off": 3.0}
    changes = {"engine": "compiled", "algorithm__mode": mode, "network": SLOW}
    without = run(build(base, **changes, stop={"time": 2e4}))
    longer = {"time": 1.2e5 if mode == "sync" else 2e4 / 0.7**2}
    result = run(build(base, **changes, stop=longer, availability=availability))
    distance, best = (r.summary["metrics"]["final"]["distance"] for r in (result, without))
    assert distance < max(10 * best, 1e-12)


@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_rounds_go_through_the_same_models(base):
    """Whoever is off is waited for, so that absences change when a round ends and nothing else."""
    changes = {"engine": "compiled", "algorithm__mode": "sync"}
    limit = {"communications": 2000}
    result = run(
        build(base, **changes, availability=CHURN, network=SLOW, record=EVENTS, stop=limit)
    )
    rounds = int((result.events["kind"] == "round").sum())
    limit = {"communications": rounds * result.problem.W.nnz}
    without = run(build(base, **changes, stop=limit))
    assert rounds > 3
    assert without.summary["simulated_time"] < result.summary["simulated_time"]
    np.testing.assert_array_equal(result.models, without.models)


@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_forgetting_has_a_floor_until_it_ends(base, tmp_path):
    """While agents come back without memory the error stays up; after the last return it falls."""
    rows = [
        f"{agent},{time + agent % 3},{state}\n"
        for agent in range(6)
        for time, state in (
            (10 * k + 5 * half, ("off", "on")[half]) for k in range(1, 30) for half in (0, 1)
        )
    ]
    trace = {**trace_file(tmp_path, "agent,time,state\n" + "".join(rows)), "forget": True}
    changes = {"network": {"latency": 0.05}, "stop": {"time": 1500}, "record": {"every": 5.0}}
    if base is LINEAR:
        changes["task__loss"] = "quadratic"
    scenario = build(base, engine="compiled", availability=trace, **changes)
    series = run(scenario).trace.set_index("time")["distance"]
    floor = series.loc[100:295].min()
    assert floor > (1e3 if base is MEANS else 20) * series.iloc[-1]
    assert floor > 0.01 * series.iloc[0]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_where_a_proximal_step_starts_is_no_memory(loss, monkeypatch):
    """Who forgets keeps the dual variables that its next step starts from; nobody can tell."""
    changes = {"task__loss": loss, "availability": {**CHURN, "forget": True}}
    kept = run(churning(LINEAR, **changes))
    renew, starts = RunningRule.renew, []

    def renew_all(self, i, links, fresh, when):
        points = slice(*self.loss.data.offsets[i : i + 2])
        starts.append(np.abs(self.loss.data.dual[points]).max(initial=0.0))
        self.loss.data.dual[points] = 0.0
        renew(self, i, links, fresh, when)

    monkeypatch.setattr(RunningRule, "renew", renew_all)
    cleared = run(churning(LINEAR, **changes))
    assert max(starts) > 1e-3
    np.testing.assert_allclose(kept.models, cleared.models, rtol=0, atol=1e-9)


# --- mistakes -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent,when,state\n", "trace.csv:1: the columns must be agent, time and state"),
        ("agent,time,state\n0,-1,off\n", "trace.csv:2: column 'time': '-1' is not a time"),
        ("agent,time,state\n0,nan,off\n", "trace.csv:2: column 'time': 'nan' is not a time"),
        ("agent,time,state\n0,1,out\n", "trace.csv:2: column 'state': 'out' is neither on nor off"),
        ("agent,time,state\n0,5,off\n0,4,on\n", "trace.csv:3: column 'time': '4' must be later"),
        ("agent,time,state\n0,5\n", "trace.csv:2: 2 cells"),
        ("agent,time,state\n99,5,off\n", "trace.csv:2: column 'agent': '99' is not an agent"),
    ],
)
def test_wrong_traces(tmp_path, text, words):
    with pytest.raises((ScenarioError, ValueError), match=words.replace("(", r"\(")):
        run(churning(availability=trace_file(tmp_path, text)))


def test_a_trace_needs_an_end(tmp_path):
    with pytest.raises(ValueError, match="all agents may be off for ever"):
        build(MEANS, availability=trace_file(tmp_path), stop={"communications": 100})
