"""The time to target: the first update after which the metric, summed anew, is at its level."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.engines.reference.simpy_engine import SimpyEngine
from simulator.engines.setup import prepare
from simulator.problem.build import build_problem
from simulator.runs.run import run
from simulator.seeds import Streams
from simulator.theory.metrics import View
from tests.conftest import MEANS, build


def first_at_most(scenario, level):
    """(time, communications) of the first update with a mean squared distance ≤ level.

    The run is the scenario's without its target; all distances are summed anew, and without
    rounding errors, after every update.
    """
    streams = Streams(scenario.seed)
    problem = build_problem(scenario, streams)
    optimum = View(scenario, problem).optimum
    engine = SimpyEngine(prepare(scenario, problem, streams, scenario.algorithm.rule), None)
    found = []

    def and_look(update):
        def updated(i):
            update(i)
            distances = np.sum((engine.models - optimum) ** 2, axis=1)
            if not found and math.fsum(distances) <= level * len(distances):
                found.append((engine.now, engine.links.sent))

        return updated

    engine.steps.solve = and_look(engine.steps.solve)
    engine.steps.changed = and_look(engine.steps.changed)
    engine.advance(None, None)
    return found[0] if found else None


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e8])
@pytest.mark.parametrize("kind", ["mp", "admm"])
def test_after_a_start_from_far_away(kind, scale):
    """A sum that is only changed by differences keeps the first terms' rounding errors for ever.

    After a start of 1e8 they are about 1, ten thousand times the level.
    """
    changes = {
        "algorithm": {"kind": kind, "mu": 1.0, "start": {"kind": "normal", "scale": scale}},
        "network": {"latency": {"kind": "exponential", "mean": 0.05}},
        "task__agents": 6,
        "seed": 4,
    }
    assert_exact(changes, 1e-4)


def assert_exact(changes, level):
    """Both engines stop with the first update at the level; the compiled one's result."""
    expected = first_at_most(build(MEANS, **changes, stop={"time": 200.0}), level)
    assert expected is not None
    stop = {"time": 200.0, "metric": "distance", "below": level}
    record = {"every": 50.0, "events": True}
    for engine in ("simpy", "compiled"):
        result = run(build(MEANS, **changes, engine=engine, stop=stop, record=record))
        target = result.summary["target"]
        assert (target["time"], target["communications"]) == expected
        assert result.summary["metrics"]["final"]["distance"] <= level
        assert result.summary["simulated_time"] == target["time"]
    return result


@pytest.mark.parametrize(("computing", "last"), [(0.0, "send"), (0.3, "handle")])
def test_when_averaging_brings_it_about(computing, last):
    """A model that is averaged is a new one: who was asked does not solve, who asked does later."""
    changes = {
        "algorithm": {"kind": "adpsgd", "step": 1e-4, "start": {"kind": "normal", "scale": 100.0}},
        "network": {"latency": {"kind": "exponential", "mean": 0.05}},
        "compute": {"time": computing},
        "task__agents": 6,
        "seed": 3,
    }
    event = assert_exact(changes, 300.0).events.iloc[-1]
    assert (event["kind"], event["what"]) == (last, "reply")
