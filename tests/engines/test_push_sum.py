"""Push-sum of docs/examples: mass is conserved, and what loss does to the estimate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simulator import load_scenario
from simulator.engines.reference.network import Arrival
from simulator.engines.setup import prepare
from simulator.problem.build import build_problem
from simulator.runs.plugins import load_plugins
from simulator.runs.simulation import start_engine
from simulator.seeds import Streams
from tests.conftest import ROOT

EXAMPLES = ROOT / "docs" / "examples"
#: How often a right program would fail.
SURE = 1e-5


def engines(scenario, seeds):
    """Runs of one problem."""
    problem = build_problem(scenario, Streams(scenario.seed))
    for seed in seeds:
        setup = prepare(scenario, problem, Streams(seed, 0), scenario.algorithm.rule)
        yield start_engine(setup, None)


def scenario_of(**changes):
    changes = {key.replace("__", "."): value for key, value in changes.items()}
    return load_scenario(
        EXAMPLES / "push_sum.yaml", changes, plugins=load_plugins(EXAMPLES / "push_sum.py")
    )


def held(engine):
    """Σ sums and Σ weights of the agents."""
    arrays = engine.rule.arrays
    return np.append(arrays["sums"].sum(axis=0), arrays["weights"].sum())


def under_way(engine):
    """What messages hold that have not arrived."""
    if hasattr(engine, "env"):
        waiting = [event for *_, event in engine.env._queue if isinstance(event, Arrival)]
        rows = [event.value.sheet.array((2,)) for event in waiting]
    else:
        slots, slot = engine.arrays["slots"], int(engine.run["first_free"][0])
        taken = np.ones(len(slots), bool)
        while slot >= 0:  # whoever has a slot is on its way, since nobody is ever busy
            taken[slot], slot = False, int(slots["next"][slot])
        rows = engine.arrays["payloads"][taken, 0]
    assert len(rows) == engine.counters()["in_flight"]
    return np.sum(rows, axis=0) if len(rows) else np.zeros(2)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("latency", [0, {"kind": "exponential", "mean": 0.2}], ids=["none", "some"])
def test_mass_is_conserved(engine, latency):
    """1,000 agents: what they hold, and what is under way."""
    (run,) = engines(scenario_of(engine=engine, network__latency=latency), [0])
    first = held(run)
    for time in (2, 10):
        run.advance(time, None)
        on_the_way = under_way(run)
        assert (on_the_way[1] > 0) == (latency != 0)
        np.testing.assert_allclose(held(run) + on_the_way, first, rtol=1e-12)


@pytest.mark.parametrize("loss", [0.1, 0.3])
def test_what_loss_does(loss):
    """No bias, and a spread of σ √(q/(n (2 − 3q))) on a complete graph.

    Let r be the ratio of all mass, W all weight, y_i = sum_i − r·weight_i, so that Σ y_i = 0.  A
    loss at agent i changes r by −y_i/(2W).  A tick of i takes (2 + q)/4 y_i² from Σ y² in the mean,
    so with clocks of rate 1 Σ y² falls as exp(−(1/2 + q/4) t), and W² as exp(−q t).  Hence
    Var r = ∫ q Σ y²/(4 W²) dt = σ² q/(n (2 − 3q)), up to terms of 1/n; here n = 100.
    """
    task, graph = (
        {"kind": "mean_estimation", "agents": 100},
        {"kind": "gaussian_kernel", "sigma": 9},
    )
    changes = {"task": task, "graph": graph, "network": {"drop": loss}, "stop__time": 80}
    seeds = range(120)
    runs = engines(scenario_of(**changes), seeds)
    ratios = np.empty(len(seeds))
    for place, run in enumerate(runs):
        known = run.models.copy()
        run.advance(80, None)
        assert np.ptp(run.models) < 0.01
        ratios[place] = run.models.mean()
    variance = known.var() * loss / (len(known) * (2 - 3 * loss))
    off = stats.norm.isf(SURE / 2) * np.sqrt(variance / len(seeds))
    assert abs(ratios.mean() - known.mean()) < 1.1 * off
    low, high = stats.chi2.ppf([SURE / 2, 1 - SURE / 2], len(seeds) - 1) / (len(seeds) - 1)
    assert 0.9 * low < ratios.var(ddof=1) / variance < 1.1 * high
    print(loss, ratios.var(ddof=1) / variance, low, high)
