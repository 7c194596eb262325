"""Comparisons: pairs, censoring, bounds and the paired speed-up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from simulator import compare
from simulator.cli.commands import commands
from simulator.errors import ScenarioError
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.sweeps.comparison import (
    DEFAULT_VARY,
    comparison_request,
    geometric_mean,
    pairs_table,
    speedup_table,
)
from simulator.sweeps.plan import Request, make_plan
from simulator.sweeps.tables import _figures_of, summary_table
from tests.sweeping import ROOT, write_tiny

NAN = float("nan")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path)


def outcomes(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> pd.DataFrame:
    """A table of runs from (time to target, end) of either side's runs; end NaN is a failed run."""
    rows = [
        {
            "status": "failed" if np.isnan(end) else "done",
            "target": None if np.isnan(end) else "distance",
            "time_to_target": reached,
            "simulated_time": end,
            "communications_to_target": reached * 10,
            "communications": end * 10,
            "bytes": end * 100,
        }
        for reached, end in first + second
    ]
    return pd.DataFrame(rows)


# --- pairs --------------------------------------------------------------------------------------
def test_censored_pairs_by_hand(tiny: Path):
    """Reached both, second censored at 60, first censored at 50, both, one failed."""
    first = [(2.0, 2.0), (3.0, 3.0), (NAN, 50.0), (NAN, 50.0), (4.0, 4.0)]
    second = [(8.0, 8.0), (NAN, 60.0), (10.0, 10.0), (NAN, 60.0), (NAN, NAN)]
    plan = make_plan(Request(tiny, seeds=5, vary=DEFAULT_VARY))
    pairs = pairs_table(plan, outcomes(first, second), DEFAULT_VARY)
    assert pairs["seed"].tolist() == [0, 1, 2, 3, 4]
    assert pairs["bound"].tolist() == ["=", "≥", "≤", "censored", "failed"]
    assert pairs["speedup"].tolist()[:3] == [4.0, 20.0, 0.2]
    assert pairs["speedup"].isna().tolist() == [False, False, False, True, True]

    (row,) = speedup_table(pairs, []).to_dict("records")
    assert row["speedup"] == pytest.approx((4 * 20 * 0.2) ** (1 / 3))
    assert (row["pairs"], row["used"], row["censored"], row["failed"]) == (5, 3, 1, 1)
    assert row["bound"] == "?"


@pytest.mark.parametrize(
    ("first", "second", "bound"),
    [
        ([(1.0, 1.0), (1.0, 1.0)], [(5.0, 5.0), (5.0, 5.0)], "="),
        ([(1.0, 1.0), (1.0, 1.0)], [(5.0, 5.0), (NAN, 9.0)], "≥"),
        ([(1.0, 1.0), (NAN, 9.0)], [(5.0, 5.0), (5.0, 5.0)], "≤"),
        ([(1.0, 1.0), (NAN, 9.0)], [(NAN, 9.0), (5.0, 5.0)], "?"),
        ([(NAN, 9.0), (NAN, 9.0)], [(NAN, 9.0), (NAN, 9.0)], "none"),
        ([(NAN, 9.0), (2.0, 2.0)], [(NAN, 9.0), (NAN, 8.0)], "≥"),
    ],
)
def test_what_the_speedup_is(tiny: Path, first: list, second: list, bound: str):
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    pairs = pairs_table(plan, outcomes(first, second), DEFAULT_VARY)
    assert speedup_table(pairs, [])["bound"].tolist() == [bound]


def test_a_time_of_zero(tiny: Path):
    """Both at once are equally fast; one at once is infinitely faster."""
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    pairs = pairs_table(
        plan, outcomes([(0.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (3.0, 3.0)]), DEFAULT_VARY
    )
    assert pairs["speedup"].tolist() == [1.0, np.inf]
    assert speedup_table(pairs, [])["speedup"].tolist() == [np.inf]


def test_censored_runs_enter_means_at_their_end(tiny: Path):
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    runs = outcomes([(2.0, 2.0), (NAN, 50.0)], [(8.0, 8.0), (4.0, 4.0)])
    summary = summary_table(plan, runs)
    assert summary["time_to_target"].tolist() == [26.0, 6.0]
    assert summary["communications_to_target"].tolist() == [260.0, 60.0]
    assert summary["censored"].tolist() == [1, 0]


def test_the_interval_is_students_on_logarithms(rng: np.random.Generator):
    ratios = rng.lognormal(1.0, 0.5, size=9)
    found = geometric_mean(ratios)
    logs = np.log(ratios)
    low, high = stats.t.interval(0.95, 8, loc=logs.mean(), scale=stats.sem(logs))
    assert found["speedup"] == pytest.approx(stats.gmean(ratios), rel=1e-12)
    assert (found["low"], found["high"]) == pytest.approx((np.exp(low), np.exp(high)), rel=1e-12)


# --- what is compared ---------------------------------------------------------------------------
def test_both_sides_share_problem_seed_and_level(tiny: Path):
    request = comparison_request(Request(tiny, seeds=3))
    plan = make_plan(request)
    assert [run.values["algorithm.mode"] for run in plan.runs] == ["async"] * 3 + ["sync"] * 3
    for one, other in zip(plan.runs[:3], plan.runs[3:], strict=True):
        assert one.scenario.seed == other.scenario.seed
        assert one.scenario.stop == other.scenario.stop
        algorithm = one.scenario.algorithm.model_copy(update={"mode": "sync"})
        assert one.scenario.model_copy(update={"algorithm": algorithm}) == other.scenario
    levels = [run(planned.scenario).summary["target"]["level"] for planned in plan.runs]
    assert levels[:3] == levels[3:]
    assert len(set(levels)) == 3


@pytest.mark.parametrize(
    ("vary", "target", "alike"),
    [
        (("algorithm.start", ["own", "known"]), "distance=20%", True),
        (("algorithm.start", ["own", "zero"]), "distance=20%", False),
        (("algorithm.kind", ["mp", "admm"]), "l2_error=60%", True),
        (("algorithm.alpha", [0.5, 0.9]), "l2_error=60%", True),
        (("task.variance", [1.0, 4.0]), "l2_error=60%", False),
    ],
)
def test_a_percentage_needs_sides_that_begin_alike(tiny: Path, vary, target: str, alike: bool):
    """It is one of each run's own start: the same level only where both begin alike."""
    request = comparison_request(Request(tiny, target=target), vary=vary)
    if not alike:
        with pytest.raises(ScenarioError, match=f"{vary[0]} begin at different models"):
            make_plan(request)
        return
    one, other = (run(planned.scenario).summary["target"] for planned in make_plan(request).runs)
    assert one["level"] == other["level"]


@pytest.mark.parametrize(
    ("key", "values"), [("algorithm.kind", ["mp", "admm"]), ("algorithm.alpha", [0.5, 0.9])]
)
def test_where_optima_differ_the_target_must_be_absolute(tiny: Path, key: str, values: list):
    with pytest.raises(ScenarioError, match=r"different optima.*l2_error, accuracy"):
        comparison_request(Request(tiny), vary=(key, values))
    comparison_request(Request(tiny, target="l2_error=0.1"), vary=(key, values))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "algorithm.mode=async"], "two values"),
        (["--vary", "algorithm.mode=async,sync,async"], "--vary algorithm.mode"),
        (["--vary", "seed=1,2"], "use --seeds"),
        (["--set", "algorithm.mode=async,sync"], "swept by --set as well"),
        (["--vary", "algorithm.kind=mp,admm"], "different optima"),
        (["--target", "accuracy=0.9"], "accuracy needs test points"),
        (["--limit-time", "soon"], "stop.time"),
    ],
)
def test_wrong_comparisons(tiny: Path, words: list[str], message: str):
    out = tiny.parent / "results"
    result = CliRunner().invoke(commands, ["compare", str(tiny), "--out", str(out), *words])
    assert isinstance(result.exception, ScenarioError)
    assert message in str(result.exception)
    assert not out.exists()


def test_limits_take_the_place_of_the_scenarios(tiny: Path):
    request = comparison_request(Request(tiny), limit_time="2 min", limit_communications=99)
    (stop,) = {run.scenario.stop for run in make_plan(request).runs}
    assert (stop.time, stop.communications) == (120.0, 99)


def test_a_baseline_against_gossip(tiny: Path):
    """A baseline that misses the target never reaches it: infinitely slower, and not a bound."""
    vary = ("algorithm.kind", ["mp", "consensus"])
    error = run(load_scenario(tiny, {"algorithm.kind": "consensus"})).summary["metrics"]["final"]
    grid = {"algorithm.start": [{"kind": "normal", "scale": 3.0}]}  # consensus has no start
    for factor, time, speedup in ((0.999, np.inf, np.inf), (1.001, 0.0, 0.0)):
        target = f"l2_error={factor * error['l2_error']}"
        plan = make_plan(comparison_request(Request(tiny, grid, target=target), vary=vary))
        summaries = [run(planned.scenario).summary for planned in plan.runs]
        table = pd.DataFrame([{"status": "done", **_figures_of(each)} for each in summaries])
        (pair,) = pairs_table(plan, table, vary).to_dict("records")
        assert 0 < pair["time_first"] < 20
        assert (pair["time_second"], pair["speedup"], pair["bound"]) == (time, speedup, "=")


# --- from end to end ----------------------------------------------------------------------------
def test_a_comparison_from_end_to_end(tiny: Path):
    """Every time in the tables is that of an ordinary run."""
    out = tiny.parent / "results"
    result = compare(tiny, {"clock.rate": [1, 20]}, seeds=2, target="distance=20%", jobs=2, out=out)
    for _, row in result.runs.iterrows():
        scenario = load_scenario(out / row["folder"] / "scenario.yaml")
        target = run(scenario).summary["target"]
        assert (target["time"] or NAN) == pytest.approx(row["time_to_target"], nan_ok=True)
    times = result.pairs["time_second"] / result.pairs["time_first"]
    assert result.pairs["speedup"].to_numpy() == pytest.approx(times.to_numpy())
    assert result.speedup["clock.rate"].tolist() == [1, 20]
    # Twenty times as many ticks, on a network that is quick: gossip gains.
    assert result.speedup["speedup"][1] > result.speedup["speedup"][0]
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {"runs.csv", "curves.csv", "summary.csv", "pairs.csv", "speedup.csv"}
    assert "speedup.png" in names


def test_the_shipped_phase_diagram_is_valid():
    words = ["compare", str(ROOT / "scenarios/phase_diagram.yaml"), "--seeds", "1", "--dry-run"]
    result = CliRunner().invoke(commands, words)
    assert result.exit_code == 0, result.exception
    assert "network.latency.sigma=2  clock.rate=50  algorithm.mode=sync" in result.output
