"""Both engines against a simulator of the tests' own, which shares no code with them.

The engines run the same mathematics and much the same protocols, so that they agree with each other
is not enough.  Events, counts and times must be equal, models to 1e-9.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.protocol import absorb, answer, choose, compute, fresh, is_request, link, send
from agents.protocols.answer_then_solve import AnswerThenSolve
from agents.rule import (
    ANSWER_THEN_SOLVE,
    AVERAGE,
    SOLVE_THEN_ANSWER,
    TELL,
    Rule,
    per_agent,
    per_link,
    uniform,
)
from simulator.engines.event_rows import KINDS, WHAT
from simulator.engines.setup import prepare
from simulator.problem.build import build_problem
from simulator.runs.plugins import load_plugins
from simulator.runs.result import COUNTS
from simulator.runs.simulation import start_engine
from simulator.seeds import Streams
from tests.conftest import LINEAR, MEANS, build, problem_of
from tests.engines import oracle_changes, oracle_rules, oracle_simulation

EXACT = ["time", *COUNTS]
BURSTY = {"kind": "gilbert_elliott", "mean_good": 2.0, "mean_bad": 1.0, "drop_good": 0.05}
PARETO = {"kind": "pareto", "mean": 2.0, "shape": 1.5}
LASTING = {"kind": "lognormal", "mean": 0.5, "sigma": 1.0, "lasts": 1.0}
EXPONENTIAL = {"kind": "exponential", "mean": 0.15}
PRIVACY = {"epsilon": 3.0, "delta": 1e-5, "updates": 4, "clip": 0.5, "radius": 0.8}


# --- rules that show all that a protocol does -----------------------------------------------------
class Wandering(Rule):
    """θ_i ← θ_i + u (½ θ_i^sol + ½ mean of copies − θ_i), u uniform; what is told is noisy."""

    kind, protocols, same_for_all = "wandering_answer", (ANSWER_THEN_SOLVE, TELL), False

    copies = per_link("p")
    home = per_agent("p")

    def prepare(s, start):
        s.copies = start.copies
        s.home = start.solitary

    def tell(s, i, k, out):
        for x in range(s.p):
            out[x] = s.models[i, x] + 0.1 * uniform(s)

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.copies[k, x] = 0.75 * received[x] + 0.25 * sent[x]

    def solve(s, i):
        u = uniform(s)
        for x in range(s.p):
            total = 0.0
            for k in range(s.first[i], s.first[i + 1]):
                total += s.copies[k, x]
            mean = total / (s.first[i + 1] - s.first[i])
            s.models[i, x] += u * (0.5 * (s.home[i, x] + mean) - s.models[i, x])


class WanderingSolve(Wandering):
    """The same, under *solve, then answer*, with a factor of the copy after two models."""

    kind, protocol, vectors, extras = "wandering_solve", SOLVE_THEN_ANSWER, 2, 1

    def tell(s, i, k, out):
        for x in range(s.p):
            out[x] = s.models[i, x]
            out[s.p + x] = s.copies[k, x]
        out[2 * s.p] = uniform(s)

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            mean = 0.75 * received[x] + 0.25 * sent[s.p + x]
            s.copies[k, x] = received[2 * s.p] * mean

    def introduce(s, i, k, model):
        for x in range(s.p):
            s.copies[k, x] = model[x]


class WanderingTell(Wandering):
    """The same, under *tell*."""

    kind, protocol = "wandering_tell", TELL


class WanderingAverage(Wandering):
    """The same, under *average*."""

    kind, protocol, modes = "wandering_average", AVERAGE, ("async",)

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.copies[k, x] = 0.75 * received[x] + 0.25 * sent[x]
            s.models[i, x] = 0.5 * (s.models[i, x] + received[x])


class Sparing(AnswerThenSolve):
    """A plugin's: it asks at every second tick, and solves after two of three news of a link."""

    kind = "sparing"
    ticks = per_agent(dtype=int)
    news = per_link(2, dtype=float)

    def tick(w, i, u):
        k = choose(w, i, u)
        w.ticks[i] += 1
        if w.ticks[i] % 2 == 1:
            send(w, i, k)

    def handle(w, i, m):
        new = fresh(w, i, m)
        if is_request(w, m):
            answer(w, i, m)
        if new:
            take_in(w, i, m, link(w, m))


def take_in(w, i, m, k):
    """A helper of its file."""
    absorb(w, i, m)
    w.news[k, 1] += 1
    if w.news[k, 1] % 3 != 0:
        compute(w, i, m)


class WanderingSparing(Wandering):
    """The same, under a plugin's protocol."""

    kind, protocol = "wandering_sparing", Sparing


@cache
def plugins():
    others = [WanderingSolve, WanderingTell, WanderingAverage, WanderingSparing]
    return load_plugins([Wandering, *others])


# --- both engines and the oracle ------------------------------------------------------------------
def simulate(scenario):
    """The run as tests/engines/oracle_simulation.py has it."""
    streams = Streams(scenario.seed)
    problem = oracle_changes.Changing(scenario, build_problem(scenario, streams), streams)
    rule = oracle_rules.rule_of(scenario, problem, streams)
    return oracle_simulation.simulate(scenario, problem, streams, rule)


def advance(scenario):
    """The run in the scenario's engine, without metrics: its samples, events and last models."""
    streams, events = Streams(scenario.seed), []
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    engine = start_engine(setup, None, lambda rows: events.extend(map(told, rows)))
    rows = []
    while True:
        rows.append({"time": engine.now, **engine.counters()})
        rows[-1]["staleness"] = engine.now - (engine.sent_at.mean() if len(engine.sent_at) else 0)
        rows[-1] |= {"models": engine.models.copy(), **engine.progress()}
        if engine.finished:
            engine.check()
            engine.flush()
            return rows, events
        engine.advance(time=len(rows) * scenario.record.every, communications=None)


def told(row):
    """A row of events, as docs/results.md describes it."""
    words = [None if row["what"] < 0 else WHAT[row["what"]], int(row["answers"])]
    sent_at = None if np.isnan(row["sent_at"]) else float(row["sent_at"])
    whom = [int(row[name]) for name in ("agent", "peer", "message")]
    return (float(row["time"]), KINDS[row["kind"]], *whom, *words, int(row["bytes"]), sent_at)


def assert_as_simulated(scenario, engines=("simpy", "compiled")):
    """Both engines give what the oracle gives, which is returned."""
    expected = simulate(scenario)
    for engine in engines:
        rows, events = advance(scenario.model_copy(update={"engine": engine}))
        for row, right in zip(events, expected.events, strict=False):
            assert row == right, engine
        assert len(events) == len(expected.events), engine
        exact = [*EXACT, *expected.progress()]
        assert [[row[k] for k in exact] for row in rows] == [
            [row[k] for k in exact] for row in expected.rows
        ]
        for row, right in zip(rows, expected.rows, strict=True):
            parts = ("delivered", "dropped", "missed", "in_flight")
            assert row["communications"] == sum(row[part] for part in parts)
            assert row["staleness"] == pytest.approx(right["staleness"], abs=1e-9)
            np.testing.assert_allclose(row["models"], right["models"], rtol=1e-9, atol=1e-9)
    return expected


# --- every rule and protocol ----------------------------------------------------------------------
#: Keys of each rule, its modes, and its starts besides ``own``, ``zero`` and ``normal``.
KNOWN, BOTH = ("hello", "known"), ("async", "sync")
RULES = {
    "mp": ({"mu": 0.3}, BOTH, KNOWN),
    "djam": ({"mu": 0.4, "ridge": 0.1}, BOTH, KNOWN),
    "cd": ({"mu": 0.4}, BOTH, KNOWN),
    "admm": ({"mu": 0.3}, BOTH, (*KNOWN, "mp", {"kind": "mp", "alpha": 0.7})),
    "dpsgd": ({"step": 0.02}, ("sync",), ()),
    "adpsgd": ({"step": 0.02}, ("async",), ()),
    "wandering_answer": ({}, BOTH, KNOWN),
    "wandering_solve": ({}, BOTH, KNOWN),
    "wandering_tell": ({}, BOTH, KNOWN),
    "wandering_average": ({}, ("async",), KNOWN),
    "wandering_sparing": ({}, BOTH, KNOWN),
}
#: Those that may also tell.
TELLING = ("mp", "djam", "wandering_answer")
TELL_ALONE = ("cd", "wandering_tell")
PAIRS = [(kind, mode) for kind, (_, modes, _) in RULES.items() for mode in modes]
CHURN = {"kind": "on_off", "on": {"kind": "exponential", "mean": 1.5}, "off": 0.75}
#: Agent 4 is back when what was sent to it before it left arrives: that is in time.
TRACE = (
    "agent,time,state\n0,0,off\n0,0.5,on\n4,0.6,off\n4,0.75,on\n4,0.8,off\n4,1,on\n3,1,off\n"
    "1,2,off\n2,2,off\n3,2,on\n1,3.5,on\n2,4,on\n"
)
BUSY = {
    "latency": {"kind": "uniform", "low": 0, "high": 1, "per_agent": PARETO, "per_link": LASTING},
    "drop": BURSTY,
    "bandwidth": 3000.0,
    "retransmit_after": 0.3,
    "partitions": [{"from": 3, "until": 4, "groups": 2}],
}
#: Ties are the rule.
REGULAR = {**BUSY, "latency": 0.25, "drop": 0.1, "bandwidth": None, "fifo": True}


def scenario_of(kind, mode="async", base=MEANS, **changes):
    """A small scenario of a rule, sampled every 0.7 s."""
    changes = {"task__agents": 5, "stop": {"time": 6.0}, "record": {"every": 0.7}, **changes}
    if base is LINEAR:  # the oracle tries all combinations of an agent's points
        changes = {"task__samples": {"kind": "uniform", "low": 0, "high": 2}, **changes}
    algorithm = {"kind": kind, "mode": mode, **RULES[kind][0], **changes.pop("algorithm", {})}
    return build(base, plugins=plugins(), algorithm=algorithm, **changes)


@pytest.mark.parametrize("forget", [False, True], ids=["keeps", "forgets"])
@pytest.mark.parametrize(("kind", "mode"), PAIRS)
def test_everything_at_once(kind, mode, forget, tmp_path):
    """Bursts, uplinks, stragglers, computing that pauses, a partition; and then a trace."""
    clock, seed = {"rate": 4.0, "peers": "weighted"}, 9
    changes = {"clock": clock, "compute": {"time": {**EXPONENTIAL, "per_agent": PARETO}}}
    changes |= {"availability": {**CHURN, "forget": forget}, "network": BUSY, "seed": seed}
    changes |= {"stop": {"time": 12.0}}
    count = assert_as_simulated(scenario_of(kind, mode, **changes)).count
    assert all(count[what] > 0 for what in ("deliver", "drop", "miss", "stale", "switch", "solve"))
    assert (count["skip"] > 0) == (mode == "async")
    (tmp_path / "trace.csv").write_text(TRACE)
    traced = {"kind": "trace", "file": str(tmp_path / "trace.csv"), "forget": forget}
    changes |= {"availability": traced, "network": REGULAR, "compute": {"time": 0.25}}
    assert assert_as_simulated(scenario_of(kind, mode, **changes)).count["miss"] > 0


@pytest.mark.parametrize("start", ["zero", "private"])
@pytest.mark.parametrize("mode", BOTH)
def test_privacy_while_agents_come_and_go(mode, start):
    """Budgets end while agents are off, compute, or wait for what was lost."""
    changes = {"compute": {"time": EXPONENTIAL}, "network": BUSY, "clock": {"rate": 4.0}, "seed": 9}
    changes |= {"availability": CHURN, "algorithm": {"privacy": PRIVACY, "start": start}}
    changes |= {"stop": {"time": 12.0}}
    scenario = scenario_of("cd", mode, LINEAR, task__loss="logistic", **changes)
    count = assert_as_simulated(scenario).count
    assert all(count[what] > 0 for what in ("drop", "miss", "stale", "solve"))


@pytest.mark.parametrize(
    ("start", "mode"), [("hello", "async"), ("known", "async"), ("known", "sync")]
)
@pytest.mark.parametrize("kind", ["mp", "admm"])
def test_who_comes_on_for_the_first_time_forgets_nothing(kind, start, mode, tmp_path):
    """Copies known from the start stay, and the neighbours' hellos, under way, are no old ones."""
    (tmp_path / "trace.csv").write_text("agent,time,state\n0,0,off\n0,0.5,on\n")
    traced = {"kind": "trace", "file": str(tmp_path / "trace.csv"), "forget": True}
    changes = {"network": {"latency": 1.0}, "clock": {"rate": 0.1}, "stop": {"time": 3.0}}
    changes |= {"availability": traced, "algorithm": {"start": start}, "seed": 1}
    count = assert_as_simulated(scenario_of(kind, mode, LINEAR, **changes)).count
    assert count["deliver"] > 0
    assert count["stale"] == 0


TICKS = [("poisson", "uniform"), ("regular", "turn"), ("regular", None), ("poisson", "weighted")]


@pytest.mark.parametrize(("ticks", "peers"), TICKS)
@pytest.mark.parametrize("kind", ["mp", "wandering_answer", "wandering_tell", "admm"])
def test_clocks_and_whom_they_are_about(kind, ticks, peers):
    """Regular clocks meet switches and one another; whoever forgets has a new turn."""
    protocol = {"algorithm": {"protocol": "tell"}} if kind in TELLING else {}
    clock = {"rate": 4.0, "ticks": ticks, "peers": peers}
    changes = {"clock": clock, "network": REGULAR, "compute": {"time": 0.125}, "seed": 4} | protocol
    changes |= {"availability": {**CHURN, "forget": True}}
    count = assert_as_simulated(scenario_of(kind, **changes)).count
    assert all(count[what] > 0 for what in ("deliver", "drop", "skip", "switch"))


STARTS = [(kind, start) for kind in ("mp", "admm", "wandering_tell") for start in RULES[kind][2]]


@pytest.mark.parametrize(("kind", "start"), STARTS, ids=str)
def test_starts(kind, start):
    """Weighted peers, clocks of unequal rates; some hellos come after the first exchange."""
    clock = {"rate": {"kind": "lognormal", "mean": 3.0, "sigma": 1.0}, "peers": "weighted"}
    network = {"latency": {"kind": "exponential", "mean": 0.8}, "drop": 0.2}
    changes = {"clock": clock, "network": network, "algorithm": {"start": start}}
    assert assert_as_simulated(scenario_of(kind, **changes, seed=5)).count["stale"] > 0


@pytest.mark.parametrize("timer", [0.1, 0.25, 0.5, "never"])
@pytest.mark.parametrize("kind", ["mp", "admm", "wandering_tell"])
def test_resending(kind, timer):
    """A slow message is sent again like a lost one; arrivals at the timer's instant are in time."""
    network = {"latency": 0.5, "retransmit_after": timer, "drop": 0.0 if timer == "never" else 0.2}
    changes = {"network": network, "stop": {"communications": 150}, "seed": 6}
    count = assert_as_simulated(scenario_of(kind, "sync", **changes)).count
    assert (count["stale"] > 0) == (timer in (0.1, 0.25))


WAITS = {
    "neighbours": {},
    "slack 1": {"slack": 1},
    "slack 3": {"slack": 3},
    "enough": {"enough": "60%"},
    "deadline": {"deadline": 0.5},
    "either": {"enough": "75%", "deadline": 0.3},
}


def waiting(kind):
    """The ways of waiting for neighbours that a rule has."""
    if kind in ("admm", "wandering_solve"):
        return ["neighbours"]
    return [wait for wait in WAITS if not (kind == "dpsgd" and "slack" in WAITS[wait])]


NEAR = [(kind, wait) for kind, mode in PAIRS if mode == "sync" for wait in waiting(kind)]


@pytest.mark.parametrize(("kind", "wait"), NEAR)
def test_rounds_that_wait_for_neighbours(kind, wait, tmp_path):
    """Everything at once; and then ties, with a trace."""
    rounds, seed = {"barrier": "neighbours", **WAITS[wait]}, 9
    changes = {"compute": {"time": {**EXPONENTIAL, "per_agent": PARETO}}, "rounds": rounds}
    changes |= {"availability": {**CHURN, "forget": True}, "network": BUSY, "seed": seed}
    count = assert_as_simulated(scenario_of(kind, "sync", **changes, stop={"time": 12.0})).count
    assert all(count[what] > 0 for what in ("deliver", "drop", "miss", "round", "solve"))
    (tmp_path / "trace.csv").write_text(TRACE)
    traced = {"kind": "trace", "file": str(tmp_path / "trace.csv"), "forget": False}
    changes |= {"availability": traced, "network": REGULAR, "compute": {"time": 0.25}}
    assert assert_as_simulated(scenario_of(kind, "sync", **changes)).count["miss"] > 0


def hidden(start="zero", **changes):
    """cd with privacy, whose budgets are spent early."""
    return ("cd", {"privacy": PRIVACY | changes, "start": start}, "logistic")


FIELD = {
    "djam on the hinge loss": ("djam", {"ridge": 0.0}, "hinge"),
    "djam with a ridge": ("djam", {"ridge": 0.3}, "logistic"),
    "cd": ("cd", {}, "logistic"),
    "cd with a ridge": ("cd", {"ridge": 0.3}, "logistic"),
    "cd with privacy": hidden(after="keep"),
    "cd with privacy, δ = 0": hidden(delta=0, after="keep"),
    "cd with privacy, smoothed": hidden(smoothing=0.7),
    "cd with privacy, Gaussian noise": hidden(noise="gaussian", radius=1.5),
    "cd with privacy, from private models": hidden("private", smoothing=0.7),
    "cd with privacy, one update, from private models": hidden("private", updates=1),
    "dpsgd": ("dpsgd", {"step": 0.2}, "logistic"),
    "adpsgd": ("adpsgd", {"step": 0.2}, "logistic"),
    "admm": ("admm", {}, "hinge"),
    "admm with a penalty": ("admm", {"rho": 0.4}, "absolute"),
    "admm with a ridge": ("admm", {"ridge": 0.3}, "logistic"),
}


CASES = [(case, mode) for case, (kind, _, _) in FIELD.items() for mode in RULES[kind][1]]


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_losses_and_keys_of_rules(case, mode):
    """Their own recursions, with delay, loss and computing time."""
    kind, algorithm, loss = FIELD[case]
    network = {"latency": {"kind": "exponential", "mean": 0.5}, "drop": 0.3}
    changes = {"network": network, "compute": {"time": 0.1}, "clock": {"rate": 2.0}, "seed": 8}
    scenario = scenario_of(kind, mode, LINEAR, task__loss=loss, algorithm=algorithm, **changes)
    assert assert_as_simulated(scenario).count["drop"] > 5


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("start", ["own", "known"])
def test_gradient_steps_from_the_kinks(loss, start):
    """The solitary fit lies on the kinks, where rounding must not decide between subgradients."""
    algorithm = {"primal": {"gradient_steps": 5}, "start": start}
    network = {"latency": {"kind": "exponential", "mean": 0.1}, "drop": 0.1}
    changes = {"task__loss": loss, "algorithm": algorithm, "network": network, "seed": 2}
    assert_as_simulated(scenario_of("admm", base=LINEAR, **changes))


@pytest.mark.parametrize("forget", [False, True], ids=["keeps", "forgets"])
@pytest.mark.parametrize(("kind", "mode"), [pair for pair in PAIRS if "wandering" not in pair[0]])
def test_points_arrive(kind, mode, forget):
    """While agents come and go, compute, and wait for what was lost; gaps make ties."""
    changes = {"compute": {"time": 0.25}, "network": REGULAR, "clock": {"rate": 4.0}, "seed": 9}
    changes |= {"availability": {**CHURN, "forget": forget}, "stop": {"time": 8.0}}
    changes |= {"task__samples": {"kind": "uniform", "low": 0, "high": 9}}
    for base, gaps in ((MEANS, 0.5), (LINEAR, {"kind": "exponential", "mean": 0.5})):
        loss = {"task__loss": "logistic"} if base is LINEAR else {}
        stream = {"gaps": gaps, "first": 1 if base is LINEAR else 0}
        scenario = scenario_of(kind, mode, base, stream=stream, **loss, **changes)
        assert assert_as_simulated(scenario).count["point"] > 10


def test_a_hello_has_the_size_of_one_model():
    """Nobody has ticked yet: 5·4 hellos of 3 numbers, whatever a message of admm holds later."""
    network = {"header": 7, "latency": 0.1}
    changes = {"clock": {"rate": 1e-6}, "network": network, "algorithm": {"start": "hello"}}
    run = assert_as_simulated(scenario_of("admm", base=LINEAR, **changes))
    assert run.count["send"] == run.count["deliver"] == 20
    assert run.bytes == 20 * (7 + 8 * 3)


# --- everything, at random ------------------------------------------------------------------------
#: A quarter of a second is the time of much, so that ties are frequent.
LAWS = [
    0.0,
    0.25,
    {"kind": "uniform", "low": 0.05, "high": 0.5},
    EXPONENTIAL,
    {"kind": "lognormal", "mean": 0.2, "sigma": 1.5},
    {"kind": "pareto", "mean": 0.2, "shape": 1.3},
    {"kind": "lognormal", "mean": 0.0, "sigma": 1.0},
]
STAYS = [0.75, {"kind": "uniform", "low": 0.1, "high": 2.0}, EXPONENTIAL | {"mean": 1.0}]
STAYS += [LAWS[4] | {"mean": 2.0}, LAWS[5] | {"mean": 2.0}]
FACTORS = [None, None, PARETO, {"kind": "uniform", "low": 0.5, "high": 2.0}]
#: Those that last as long as some of all this takes; an empirical one is asked in Python.
FACTORS += [PARETO | {"lasts": 0.3}, LASTING | {"mean": 1.0, "lasts": 2.0}]
SITES = "site,a,b,c\na,0.05,0.25,0.1\nb,0.3,0.01,0.2\nc,0.25,0.5,0.02\n"


def law(choose, laws, *factors):
    """One of these laws, with factors of agents or links."""
    one = choose(laws)
    one = one if isinstance(one, dict) else {"kind": "constant", "value": one}
    return one | {name: factor for name in factors if (factor := choose(FACTORS)) is not None}


def tables(chance, folder, agents):
    """Files of delays, of times between sites, and of switches at quarters of a second.

    An agent is on until its first switch, which may be at time 0.
    """
    rows = ["agent,time,state\n"]
    for agent in range(agents):
        for number, time in enumerate(sorted(chance.sample(range(20), chance.randrange(7)))):
            rows.append(f"{agent},{time / 4},{'on' if number % 2 else 'off'}\n")
    (folder / "trace.csv").write_text("".join(rows))
    (folder / "matrix.csv").write_text(SITES)
    (folder / "delays.txt").write_text("0.1\n0.2\n0.25\n1.5\n")


def privacy_from(choose):
    """Any privacy that the oracle knows."""
    given = {"updates": choose([1, 2, 5]), "noise": choose(["laplace", "gaussian"])}
    given |= {"after": choose(["smooth", "keep"]), "smoothing": choose([0.5, 0.9])}
    return PRIVACY | given


def scenario_from(number, folder):
    """A small scenario of any rule, mode and network.

    They come from numbers, and not from choices that Hypothesis knows, so that two are not alike.
    """
    chance = random.Random(number)
    choose = chance.choice
    kind = choose(sorted(RULES))
    keys, modes, starts = RULES[kind]
    mode, agents = choose(modes), choose([2, 3, 4, 5, 6])
    tells = kind in TELLING and mode == "async" and choose([True, False])
    keys = keys | {"protocol": "tell"} if tells else keys
    peers = [None, "uniform", "weighted", "turn"] + ["all"] * (tells or kind in TELL_ALONE)
    if mode == "sync" and kind in ("admm", "wandering_solve"):
        starts = [start for start in starts if start != "hello"]
    start = choose(["own", "zero", {"kind": "normal", "scale": 2.0}, *starts])
    if kind == "cd" and choose([True, False]):
        start, keys = choose(["zero", "private"]), keys | {"privacy": privacy_from(choose)}
    tables(chance, folder, agents)
    sites = {
        "kind": "sites",
        "file": str(folder / "matrix.csv"),
        "round_trip": choose([True, False]),
    }
    sites |= {"jitter": choose([EXPONENTIAL | {"mean": 1.0}, 1.0])}
    by_file = {"kind": "empirical", "file": str(folder / "delays.txt")}
    by_site = choose([False, False, False, True])
    latency = law(choose, [sites] if by_site else [*LAWS, by_file], "per_agent", "per_link")
    drop = choose([0.0, 0.1, 0.4, BURSTY])
    groups = choose([2, agents, [["0"], ["1"]], *(["by site"] if by_site else [])])
    cut = choose([[], [{"from": 1.0, "until": 2.5, "groups": groups}]])
    if choose([True, False]) and cut:
        cut = [*cut, {"from": 2.5, "until": 3.3, "groups": 2}]
    stays = {"on": law(choose, STAYS), "off": law(choose, STAYS[:3])}
    trace = {"kind": "trace", "file": str(folder / "trace.csv")}
    life = choose([None, {"kind": "on_off", **stays}, trace])
    if life is not None:
        life = life | {"forget": choose([False, True]) and "privacy" not in keys}
    rounds, times = {"barrier": choose(["all", "neighbours"])}, [0.0, *LAWS[:4]]
    if rounds["barrier"] == "neighbours":
        rounds |= WAITS[choose(waiting(kind))]
        times = LAWS[1:4] if "slack" in rounds else times
    timers = [0.15, 0.25, 0.5, 2.0]
    if mode == "async" or "deadline" in rounds or not (drop or cut or life):
        timers.append("never")

    stream = None
    if "privacy" not in keys and "wandering" not in kind:
        gaps = law(choose, STAYS[:3])
        stream = choose([None, {"gaps": gaps, "first": choose([0, 1, 5])}])
    graph, task, base = {}, {"agents": agents}, MEANS
    if choose([True, False]):
        base = LINEAR
        task |= {"samples": {"kind": "uniform", "low": 1, "high": 2}, "dimension": 2}
        task |= {"loss": choose(["quadratic", "logistic"])}
        stream = stream and stream | {"first": 1}
    elif choose([False, False, True]):  # some have no neighbours
        graph = {"sigma": 0.1, "min_weight": 0.2, "allow_disconnected": True}
    return build(
        base | {"graph": base["graph"] | graph, "task": base["task"] | task},
        plugins=plugins(),
        seed=number,
        algorithm={"kind": kind, "mode": mode, "start": start, **keys},
        network={
            "latency": latency,
            "drop": drop,
            "bandwidth": choose([None, 400.0]),
            "header": choose([0, 32]),
            "fifo": choose([False, True]),
            "retransmit_after": choose(timers),
            "partitions": cut,
        },
        **({"sites": {"random": 3}} if by_site else {}),
        compute={"time": law(choose, times, "per_agent")},
        rounds=rounds,
        clock={
            "rate": law(choose, [4.0, {"kind": "lognormal", "mean": 4.0, "sigma": 1.0}]),
            "ticks": choose(["poisson", "regular"]),
            "peers": choose(peers),
        },
        availability=life,
        stream=stream,
        stop={"time": choose([6.0, 12.0]), "communications": chance.randrange(50, 400)},
        record={"every": 0.75},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def check_any(number, folder):
    scenario = scenario_from(number, folder)
    assume(problem_of(scenario).W.nnz > 0)  # or engines have nothing to do
    assert_as_simulated(scenario)


@settings(max_examples=80)
@given(number=st.integers(0, 2**32))
def test_any_scenario(number, folder):
    check_any(number, folder)


@pytest.mark.verify
@settings(max_examples=2000)
@given(number=st.integers(0, 2**32))
def test_any_of_many_scenarios(number, folder):
    check_any(number, folder)
