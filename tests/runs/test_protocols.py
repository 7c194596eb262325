"""Protocols of plugins: what they can get wrong, in both engines."""

from __future__ import annotations

import pytest

from agents.protocol import (
    Protocol,
    Rounds,
    absorb,
    answer,
    choose,
    compute,
    compute_tick,
    end_round,
    fresh,
    is_request,
    link,
    links,
    send,
    send_all,
    solve,
    take,
    wait,
)
from agents.rule import per_agent
from agents.rules.model_propagation import ModelPropagation
from simulator.errors import SimulatorError
from simulator.runs.plugins import load_plugins
from simulator.runs.run import run
from tests.conftest import MEANS, build


# --- while it runs --------------------------------------------------------------------------------
class HalfDone(Rounds):
    """What is wrong is decided by the number of neighbours, so that all is compiled once."""

    def begin(w, i):
        for _ in range(2 if len(links(w, i)) == 2 else 1):
            send_all(w, i)
        if len(links(w, i)) == 3:
            take(w, i, links(w, i)[0])
        wait(w, i)

    def complete(w, i):
        for k in links(w, i):
            take(w, i, k)
        compute_tick(w, i, 0)

    def after_tick(w, i, k):
        solve(w, i)
        if len(links(w, i)) != 4:
            end_round(w, i)


class Wrong(Protocol):
    """The same."""

    kind, rounds = "wrong", HalfDone
    seen = per_agent(dtype=int)

    def tick(w, i, u):
        k, deed = choose(w, i, u), len(links(w, i))
        if deed == 5:
            compute_tick(w, i, k)
        elif deed == 6:
            w.seen[100] = 1
        elif deed == 7:
            w.seen[i] = 1 // w.seen[i]
        elif deed == 8:
            raise ValueError("seven was enough")
        elif deed == 9:
            link(w, 12345)
        elif deed == 10:
            for _ in range(1000):
                solve(w, i)
        for _ in range(2 if deed == 4 else 1):
            send(w, i + 1 if deed == 3 else i, k + 100 if deed == 2 else k)

    def handle(w, i, m):
        if is_request(w, m):
            for _ in range(2 if len(links(w, i)) == 11 else 1):
                answer(w, i, m)
        elif fresh(w, i, m):
            absorb(w, i, m)
        compute(w, i, m)

    def after(w, i, m):
        deed = len(links(w, i))
        solve(w, i)
        if deed == 12:
            absorb(w, i, m)
        if deed == 13:
            compute_tick(w, i, 0)

    def after_tick(w, i, k):
        compute_tick(w, i, 0)


class Followed(ModelPropagation):
    kind, protocol = "followed", Wrong


DEEDS = {
    2: ("tick", "a link that is not the agent's"),
    3: ("tick", "another agent"),
    4: ("tick", "more messages are sent in one event than most_sends says"),
    5: ("tick", "compute, wait and end_round come last"),
    6: ("tick", "out of bounds"),
    7: ("tick", "by zero"),
    8: ("tick", "seven was enough"),
    9: ("tick", "a message that is not at hand"),
    10: ("tick", "called too often"),
    11: ("handle", "what is no request, or what has been answered"),
    12: ("after", "a message that is not at hand, or was answered before"),
    13: ("after_tick", "more than two computations"),
}
IN_ROUNDS = {
    2: ("begin", "send_all is called twice in one round"),
    3: ("begin", "take is for complete"),
    4: ("after_tick", "must end with compute_tick, wait or end_round"),
}
CASES = [("async", *deed) for deed in DEEDS.items()] + [("sync", *d) for d in IN_ROUNDS.items()]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(("mode", "degree", "expected"), CASES)
def test_what_goes_wrong_is_one_message(mode, degree, expected, engine):
    """It names the protocol, the function, the agent and the time; and SimPy, the line."""
    algorithm = {"kind": "followed", "alpha": 0.8, "mode": mode}
    changes = {"task__agents": degree + 1, "network__latency": 0.1, "engine": engine}
    changes["algorithm"] = algorithm
    scenario = build(MEANS, plugins=load_plugins([Wrong, Followed]), **changes)
    name, what = expected
    with pytest.raises(SimulatorError, match=what) as caught:
        run(scenario)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"protocol wrong: {name} failed for agent ")
    assert (".py:" in message) == (engine == "simpy")
    assert ("engine: simpy says in which line" in message) == (engine == "compiled")


# --- before it runs -------------------------------------------------------------------------------
MINE = """
from agents.protocol import Protocol, compute, introduce, send, wait
from agents.rule import per_agent, scratch


class Mine(Protocol):
    kind = "mine"
    heard = per_agent()

    def tick(w, i, u):
        helper(w, i)

    def handle(w, i, m):
        pass


def helper(w, i):
    send(w, i, 0)
"""
BAD = {
    ("heard = per_agent()", "agents = per_agent()"): "the name of the array 'agents' is taken",
    ("heard = per_agent()", "_x = per_agent()"): "the name of the array '_x' is taken",
    ("heard = per_agent()", "heard = scratch(3)"): "heard: a protocol has per_agent and per_link",
    ("heard = per_agent()", "heard = per_agent(-1)"): "heard has the shape -1; allowed",
    ("heard = per_agent()", "most_sends = 'many'"): "most_sends is 'many'; it must be a number",
    ("heard = per_agent()", "averages = 1"): "averages is 1; allowed: True, False",
    ("heard = per_agent()", "rounds = 3"): "rounds is 3; it must be a class of Rounds",
    ("def handle(", "def handles("): "Mine must implement handle",
    ("    send(w, i, 0)", "    helper(w, i)"): "helper calls itself",
    ("    send(w, i, 0)", "    compute(w, i, 0)"): "calls compute, so it must implement after",
    ("    send(w, i, 0)", "    wait(w, i)"): "wait is no verb here; allowed: absorb, answer",
    ("    send(w, i, 0)", "    introduce(w, i, 0)"): "introduce is no verb here",
    ("    send(w, i, 0)", "    v.send(w, i, 0)\n\n\nimport agents.protocol as v"): "not as v.",
    ('"mine"', '"tell"'): "'tell' is the name of a built-in one",
}


@pytest.mark.parametrize("change", BAD, ids=list(BAD.values()))
def test_what_can_be_seen_before_it_runs(change, tmp_path):
    assert MINE.count(change[0]) == 1
    (tmp_path / "mine.py").write_text(MINE.replace(*change))
    with pytest.raises(SimulatorError) as caught:
        load_plugins(tmp_path / "mine.py")
    assert BAD[change] in str(caught.value)
    assert "Mine" in str(caught.value)


def test_a_closure_is_none(tmp_path):
    """Compiled code does not see what is around a function."""

    def made(number):
        def tick(w, i, u):
            send(w, i, number)

        return tick

    class Closed(Wrong):
        kind = "closed"
        tick = made(3)

    with pytest.raises(SimulatorError, match="is inside another function"):
        load_plugins(Closed)
