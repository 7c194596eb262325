"""Sides with names of their own, their knobs, and what they need at equal messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from simulator import Frontier, compare, frontier
from simulator.cli.commands import commands
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import load_plugins
from simulator.sweeps.frontier import equal_messages_table, points_table
from simulator.sweeps.knobs import choose
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Budget
from simulator.sweeps.study import plans, requested
from simulator.sweeps.sweep_file import as_file, read_request
from tests.conftest import ROOT
from tests.sweeping import write_tiny

NAN = float("nan")
SIDES = {
    "gossip": {},
    "near": {"algorithm.mode": "sync", "rounds.barrier": "neighbours"},
    "far": {"algorithm.mode": "sync"},
}
FILE = """\
base: tiny.yaml
grid: {network.drop: [0, 0.1]}
sides:
  gossip: {}
  near: {algorithm.mode: sync, rounds.barrier: neighbours}
tune:
  near: {network.retransmit_after: [100 ms, 1 s]}
  budget: 1.1 of gossip
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path)


# --- what is asked --------------------------------------------------------------------------------
def test_sides_are_the_last_axis_with_their_overrides(tiny: Path):
    request = requested(tiny, [("network.drop", [0, 0.1])], "compare", sides=SIDES)[1]
    plan = make_plan(request)
    assert plan.axes == {"network.drop": [0, 0.1], "side": list(SIDES)}
    found = [
        (run.values["side"], run.scenario.algorithm.mode, run.scenario.rounds.barrier)
        for run in plan.runs
    ]
    sides = [("gossip", "async", "all"), ("near", "sync", "neighbours"), ("far", "sync", "all")]
    assert found == 2 * sides
    assert plan.cells == [[0, 1, 2], [3, 4, 5]]


def test_a_file_says_the_same_and_is_written_again(tiny: Path):
    file = tiny.parent / "mine.yaml"
    file.write_text(FILE)
    asked = read_request(file)
    assert (asked.side_names, asked.budget) == (["gossip", "near"], Budget(1.1, "gossip"))
    again = tiny.parent / "again.yaml"
    again.write_text(as_file(asked, "mine", tiny.parent))
    assert read_request(again).asked == asked.asked
    for change, message in (
        (("sides:", "vary: {algorithm.mode: [async, sync]}\nsides:"), "not both"),
        (("  near: {algorithm.mode: sync, rounds.barrier: neighbours}\n", ""), "two or more"),
        (("1.1 of gossip", "1.1 of"), "tune.budget: must be a number from 1"),
        (("1.1 of gossip", "1.1 of nobody"), "sides: gossip, near"),
        (("barrier: neighbours", "barrier: none"), "sides.near: rounds.barrier: must be"),
        (("rounds.barrier: neighbours", "network.drop: 0.2"), "it is swept as well"),
    ):
        file.write_text(FILE.replace(*change))
        with pytest.raises(SimulatorError, match=message):
            plans(*requested(file, (), None), None)


def test_sides_from_the_command_line(tiny: Path):
    words = ["compare", str(tiny), "--dry-run", "--side", "gossip"]
    near = ["--side", "near:algorithm.mode=sync", "--side", "near:rounds.barrier=neighbours"]
    listed = CliRunner().invoke(commands, [*words, *near])
    assert listed.exit_code == 0, listed.exception
    assert [line.split()[0] for line in listed.output.splitlines()[:2]] == [
        "side=gossip",
        "side=near",
    ]
    wrong = CliRunner().invoke(commands, words)
    assert isinstance(wrong.exception, ScenarioError)
    assert "two or more names" in str(wrong.exception)


def test_a_side_may_be_a_rule_of_a_plugin(tiny: Path):
    """A key of one value goes to the sides whose algorithm knows it."""
    plugin = load_plugins([str(ROOT / "docs/examples/gradient_descent.py")])
    sides = {name: {"algorithm.kind": name} for name in ("admm", "gradient_descent")}
    given = [("algorithm.rho", [0.3])]
    plan = make_plan(requested(tiny, given, "compare", sides=sides)[1], plugin)
    assert plan.runs[0].scenario.algorithm.rho == 0.3
    assert plan.runs[1].scenario.algorithm.kind == "gradient_descent"


# --- what comes out -------------------------------------------------------------------------------
def test_vary_is_short_for_sides_of_one_key(tiny: Path):
    how = {"seeds": 3, "target": "distance=20%", "figures": False, "out": tiny.parent / "results"}
    short = compare(tiny, jobs=1, **how)
    sides = {mode: {"algorithm.mode": mode} for mode in ("async", "sync")}
    long = compare(tiny, sides=sides, jobs=2, **how)
    assert long.runs["folder"].tolist() == short.runs["folder"].tolist()
    pd.testing.assert_frame_equal(long.speedup, short.speedup)
    assert long.runs["side"].tolist() == 3 * ["async"] + 3 * ["sync"]
    assert compare(long.folder / "request.yaml", jobs=1, **how).folder == long.folder


def test_a_frontier_of_several_families(tiny: Path):
    knobs = {
        "gossip": {"clock.rate": [1, 20]},
        "near": {"network.retransmit_after": ["100 ms", "1 s"]},
        "far": {"network.retransmit_after": ["100 ms", "1 s"]},
    }
    how = {"seeds": 3, "target": "distance=20%", "jobs": 1, "out": tiny.parent / "results"}
    grid = {"network.latency": ["50 ms"], "network.drop": [0, 0.1]}
    found = frontier(tiny, grid, sides=SIDES, knobs=knobs, **how)
    assert found.points["side"].tolist() == 2 * [side for side in SIDES for _ in range(2)]
    near, far = (found.runs[found.runs["side"] == side] for side in ("near", "far"))
    # Where all messages take equally long both have the same rounds at the same times.
    same = near["time_to_target"].to_numpy() == far["time_to_target"].to_numpy()
    assert same[near["network.drop"].to_numpy() == 0].all()
    assert len(found.equal_messages) == 2 * 3 * 3
    again = Frontier.load(found.folder)
    pd.testing.assert_frame_equal(again.equal_messages, found.equal_messages, check_dtype=False)
    shown = CliRunner().invoke(commands, ["show", str(found.folder)])
    assert "at equal messages" in shown.output


def test_at_equal_messages_by_hand(tiny: Path):
    """One side's budgets lie between, on and beyond the points of the others; a seed fails."""
    knobs = {
        "gossip": {"clock.rate": [1, 2, 4]},
        "near": {"network.retransmit_after": ["1 s", "2 s", "3 s"]},
        "far": {"network.retransmit_after": ["1 s", "2 s"]},
    }
    asked = requested(tiny, (), "frontier", sides=SIDES, knobs=knobs, seeds=4)
    (plan,) = plans(*asked, None)
    #  gossip: 100, 200, 400 messages; near: 200 only (others are slower or censored); far: 50, 800.
    sent = [100, 200, 400, 200, 300, 150, 50, 800]
    times = [8.0, 4.0, 2.0, 3.0, 3.5, NAN, 9.0, 1.0]
    noise = np.array([0.8, 1.0, 1.25, 1.0])
    rows = []
    for point, (count, time) in enumerate(zip(sent, times, strict=True)):
        for seed in range(4):
            own = time * noise[seed] ** (1 + point % 2)
            rows.append(
                {
                    "status": "failed" if (point, seed) == (1, 3) else "done",
                    "target": "distance",
                    "time_to_target": own,
                    "simulated_time": 50.0 if np.isnan(own) else own,
                    "communications_to_target": NAN if np.isnan(own) else count,
                    "communications": count,
                    "bytes": 10 * count,
                }
            )
    runs = pd.DataFrame(rows)
    points = points_table(plan, runs)
    table = equal_messages_table(plan, runs, points).set_index(["budget_of", "side"])
    assert table["budget"].groupby("budget_of").first().to_dict() == pytest.approx(
        {"gossip": 100, "near": 200, "far": 50}
    )
    assert table.loc[("far", "gossip"), "time"] != table.loc[("far", "gossip"), "time"]  # too few
    assert table.loc[("far", "far"), "time"] == pytest.approx(9.0)
    # Between 50 and 800 messages, 100 is a quarter of the way on a logarithmic axis.
    weight = np.log(2) / np.log(16)
    assert table.loc[("gossip", "far"), "time"] == pytest.approx(9.0 ** (1 - weight))
    own = table.loc[("near", "gossip")]
    assert own["time"] == pytest.approx(4.0)
    # Gossip's point has noise², near's too; where a seed failed the pair is left out.
    ratio = table.loc[("near", "near")]
    assert ratio["ratio"] == pytest.approx(3.0 / 4.0)
    assert ratio["ratio_low"] == pytest.approx(ratio["ratio_high"])
    logs = np.log(noise**2 * 3)
    low, high = stats.t.interval(0.95, 3, loc=logs.mean(), scale=stats.sem(logs))
    assert (ratio["low"], ratio["high"]) == pytest.approx((np.exp(low), np.exp(high)))


# --- tuning ---------------------------------------------------------------------------------------
def test_a_budget_of_another_sides_messages():
    points = pd.DataFrame(
        {
            "time": [1.0, 3.0, 5.0, 2.0],
            "communications": [200.0, 125.0, 100.0, 300.0],
            "failed": [0, 0, 0, 0],
        }
    )
    assert choose(points, [1, 1, 1, 3], 1.1, {1: 120.0, 3: 50.0}).tolist() == [
        *(False, True, False),
        True,  # beyond the budget, as all are: the most frugal
    ]


def test_tuning_against_a_side_that_is_not_tuned(tiny: Path):
    file = tiny.parent / "mine.yaml"
    file.write_text(FILE.replace("1.1 of gossip", "1000 of gossip"))
    how = {"jobs": 1, "figures": False, "out": tiny.parent / "results", "target": "distance=20%"}
    found = compare(file, **how)
    table = found.tuning
    assert table["given"].tolist() == 2 * ["as it is", "100 ms", "1 s"]
    for _, own in table[table["side"] == "near"].groupby("network.drop"):
        assert own["taken"][own["time"].idxmin()]  # with so many messages, the fastest
    assert table[table["side"] == "gossip"]["taken"].all()
    assert found.runs["tuned"].fillna("").tolist()[0] == ""
    assert compare(found.folder / "request.yaml", **how).folder == found.folder
