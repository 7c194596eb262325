"""Every shipped scenario runs; those that make a claim keep it."""

from __future__ import annotations

import numpy as np
import pytest

from simulator import load_scenario, run
from tests.conftest import ROOT

SHIPPED = ROOT / "scenarios"
FILES = [
    file
    for file in sorted(SHIPPED.glob("*.yaml"))
    if "\nbase:" not in file.read_text() and file.stem != "million"  # too large for a test
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_short_run(file):
    """The first thousands of messages: everything finite, all messages accounted for."""
    result = run(load_scenario(file, {"stop.communications": 4000}))
    trace = result.trace
    assert (
        trace["communications"]
        == trace[["delivered", "dropped", "missed", "in_flight"]].sum(axis=1)
    ).all()
    assert trace["communications"].iloc[-1] >= 1000
    assert np.isfinite(result.models).all()
    assert trace["distance"].iloc[-1] < trace["distance"].iloc[0]


def test_stragglers_hurt_rounds_more_than_gossip():
    """Slow devices make a round many times longer; gossip goes on around them."""
    times = {}
    for mode in ("async", "sync"):
        for factors in ("slow", "none"):
            overrides = {"algorithm.mode": mode, "stop": {"communications": 20_000}}
            if factors == "none":
                overrides["network.latency"] = {"kind": "exponential", "mean": "50 ms"}
                overrides["compute.time"] = "5 ms"
            result = run(load_scenario(SHIPPED / "stragglers.yaml", overrides))
            times[mode, factors] = result.summary["simulated_time"]
    assert times["async", "slow"] < 1.5 * times["async", "none"]
    assert times["sync", "slow"] > 5 * times["sync", "none"]


def test_stations_help_each_other():
    """The optimum predicts better than solitary stations; the one without data predicts at all."""
    result = run(load_scenario(SHIPPED / "stations.yaml", {"stop.time": 5}))
    table = result.agents.set_index("agent")
    assert table.loc["Cedar Point", "points"] == 0
    assert table.loc["Cedar Point", "accuracy_optimum"] > 0.6
    metrics = result.summary["metrics"]
    assert metrics["optimum"]["accuracy"] > metrics["solitary"]["accuracy"]


@pytest.mark.parametrize("name", ["radon", "states"])
def test_neighbours_help_on_real_data(name):
    """On held-out points: the optimum of Q_CL, then solitary models and one model for all."""
    result = run(load_scenario(SHIPPED / f"{name}.yaml", {"stop": {"communications": 1}}))
    errors = {stage: row["test_error"] for stage, row in result.summary["metrics"].items()}
    assert errors["optimum"] < min(errors["solitary"], errors["consensus"])
