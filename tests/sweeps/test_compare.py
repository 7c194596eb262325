"""Comparisons: pairs, censoring, bounds and the paired speed-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from simulator import compare, frontier
from simulator.cli.commands import commands
from simulator.errors import ScenarioError, SimulatorError
from simulator.report.parts import find
from simulator.report.sweep_page import sweep_item
from simulator.runs.plugins import load_plugins
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.store.store import Store
from simulator.sweeps.comparison import (
    DEFAULT_VARY,
    comparison_request,
    pairs_table,
    result_text,
    speedup_table,
)
from simulator.sweeps.frontier import paired_interval
from simulator.sweeps.knobs import choose, plan_knobs, tune
from simulator.sweeps.plan import Plan, make_plan
from simulator.sweeps.request import Request, knobs_of
from simulator.sweeps.study import Work, plans, requested
from simulator.sweeps.sweep_file import as_file, read_request
from simulator.sweeps.tables import Computed, _figures_of, geometric_mean, summary_table
from tests.conftest import ROOT
from tests.sweeping import write_tiny

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
    pairs = pairs_table(plan, outcomes(first, second))
    assert pairs["seed"].tolist() == [0, 1, 2, 3, 4]
    assert pairs["bound"].tolist() == ["=", "≥", "≤", "censored", "failed"]
    assert pairs["speedup"].tolist()[:3] == [4.0, 20.0, 0.2]
    assert pairs["speedup"].isna().tolist() == [False, False, False, True, True]
    # ``outcomes`` sends ten messages a second, and ends with a hundred bytes a second.
    assert pairs["communications_ratio"].tolist()[:3] == [4.0, 20.0, 0.2]
    assert pairs["bytes_second"].tolist()[:3] == [800.0, 6000.0, 1000.0]
    assert pairs["bytes_ratio"].tolist()[:3] == [4.0, 20.0, 0.2]

    (row,) = speedup_table(pairs, []).to_dict("records")
    assert row["speedup"] == pytest.approx((4 * 20 * 0.2) ** (1 / 3))
    assert row["communications_ratio"] == row["bytes_ratio"] == pytest.approx(row["speedup"])
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
    pairs = pairs_table(plan, outcomes(first, second))
    assert speedup_table(pairs, [])["bound"].tolist() == [bound]


def test_a_time_of_zero(tiny: Path):
    """Both at once are equally fast; one at once is infinitely faster."""
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    pairs = pairs_table(plan, outcomes([(0.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (3.0, 3.0)]))
    assert pairs["speedup"].tolist() == [1.0, np.inf]
    assert speedup_table(pairs, [])["speedup"].tolist() == [np.inf]


def test_censored_runs_enter_means_at_their_end(tiny: Path):
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    runs = outcomes([(2.0, 2.0), (NAN, 50.0)], [(8.0, 8.0), (4.0, 4.0)])
    summary = summary_table(plan, runs)
    # Geometric means: of 2 and 50, and of 8 and 4.
    assert summary["time_to_target"].tolist() == pytest.approx([10.0, 32**0.5])
    assert summary["communications_to_target"].tolist() == pytest.approx([100.0, 3200**0.5])
    assert summary["bytes_to_target"].tolist() == pytest.approx([1000.0, 320000**0.5])
    assert summary["censored"].tolist() == [1, 0]


def test_the_interval_is_students_on_logarithms(rng: np.random.Generator):
    ratios = rng.lognormal(1.0, 0.5, size=9)
    logs = np.log(ratios)
    low, high = stats.t.interval(0.95, 8, loc=logs.mean(), scale=stats.sem(logs))
    expected = (stats.gmean(ratios), np.exp(low), np.exp(high))
    assert geometric_mean(ratios) == pytest.approx(expected, rel=1e-12)


def test_more_than_two_sides_are_each_paired_with_the_first(tiny: Path):
    vary = ("algorithm.alpha", [0.5, 0.8, 0.9])
    plan = make_plan(Request(tiny, {"network.drop": [0, 0.1]}, seeds=2, vary=vary))
    times = [(float(number), float(number)) for number in range(1, 13)]
    pairs = pairs_table(plan, outcomes(times, []))
    # Runs are in the order of the grid, then sides, then seeds: 1 2 | 3 4 | 5 6, then 7 8 | …
    assert pairs["second"].tolist() == [0.8, 0.8, 0.9, 0.9] * 2
    assert pairs["time_first"].tolist() == [1, 2, 1, 2, 7, 8, 7, 8]
    assert pairs["time_second"].tolist() == [3, 4, 5, 6, 9, 10, 11, 12]
    table = speedup_table(pairs, ["network.drop"])
    assert table[["network.drop", "second"]].to_numpy().tolist() == [
        [0, 0.8],
        [0, 0.9],
        [0.1, 0.8],
        [0.1, 0.9],
    ]
    assert table["speedup"].tolist() == pytest.approx(
        [np.sqrt(a * b) for a, b in ((3, 2), (5, 3), (9 / 7, 10 / 8), (11 / 7, 12 / 8))]
    )


def test_paired_intervals_are_without_what_seeds_share(rng: np.random.Generator):
    """Of two points each has the interval of their difference over √2, whatever seeds share."""
    one, two = rng.normal(size=(2, 12))
    shared = 100 * rng.normal(size=12)
    low, high = paired_interval(np.stack([one + shared, two + shared]))
    half = stats.t.ppf(0.975, 11) * stats.sem(one - two) / np.sqrt(2)
    means = np.array([one.mean(), two.mean()]) + shared.mean()
    np.testing.assert_allclose((low, high), (means - half, means + half), rtol=0, atol=1e-9)
    alone = paired_interval(one[None])
    assert alone == pytest.approx(stats.t.interval(0.95, 11, one.mean(), stats.sem(one)))


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
    ("key", "values"),
    [("algorithm.kind", ["mp", "admm"]), ("algorithm.alpha", [0.5, 0.9]), ("graph.sigma", [1, 2])],
)
def test_where_optima_differ_the_target_must_be_absolute(tiny: Path, key: str, values: list):
    with pytest.raises(ScenarioError, match=r"different optima.*l2_error, accuracy"):
        make_plan(comparison_request(Request(tiny), vary=(key, values)))
    make_plan(comparison_request(Request(tiny, target="l2_error=0.1"), vary=(key, values)))


def test_a_private_side_has_no_default_target():
    """It would stop where raw data say; sides are compared at their limits, or at equal budgets."""
    file = ROOT / "scenarios/private.yaml"
    vary = ("algorithm.privacy.after", ["keep", "smooth"])
    with pytest.raises(ScenarioError, match=r"--target distance=1%: .*compare with --target none"):
        make_plan(comparison_request(Request(file), vary=vary))
    assert make_plan(comparison_request(Request(file, target="none"), vary=vary)).target is None


def test_kinds_with_one_objective_and_trade_off_share_their_optimum(tiny: Path):
    """Whatever they are called: the distance to it is the same thing for both."""
    vary = ("algorithm.kind", ["admm", "gradient_descent"])
    plugin = load_plugins([str(ROOT / "docs/examples/gradient_descent.py")])
    plan = make_plan(comparison_request(Request(tiny), vary=vary), plugin)
    assert [each.scenario.algorithm.kind for each in plan.runs] == vary[1]
    request = Request(tiny, {"algorithm.kind": ["gradient_descent"]})
    with pytest.raises(ScenarioError, match="different optima"):
        make_plan(comparison_request(request, vary=("algorithm.alpha", [0.5, 0.6])), plugin)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "algorithm.mode=async"], "two or more values"),
        (["--vary", "algorithm.mode=async,sync,async"], "--vary algorithm.mode"),
        (["--vary", "seed=1,2"], "use --seeds"),
        (["--set", "algorithm.mode=async,sync"], "swept by --set as well"),
        (["--vary", "algorithm.kind=mp,admm"], "different optima"),
        (["--target", "accuracy=0.9"], "accuracy needs test points"),
        (["--limit-time", "soon"], "stop.time"),
        (["--tune", "network.retransmit_after=1"], "expected SIDE:KEY=VALUES"),
        (["--tune", "rounds:network.retransmit_after=1"], "sides: async, sync"),
        (["--tune", "sync:network.retransmit=1,2"], "network.retransmit: unknown key"),
        (["--tune", "sync:network.drop=0,0.1", "--set", "network.drop=0,0.1"], "as well"),
        (["--tune", "sync:network.drop=0,0.1", "--tune-budget", "0.5"], "must be a number from 1"),
        (["--frontier", "--knob", "nope:clock.rate=1,2"], "sides: async, sync"),
        (["--frontier", "--vary", "algorithm.start=own,known"], "what is own to vary?"),
    ],
)
def test_wrong_comparisons(tiny: Path, words: list[str], message: str):
    out = tiny.parent / "results"
    result = CliRunner().invoke(commands, ["compare", str(tiny), "--out", str(out), *words])
    assert isinstance(result.exception, ScenarioError)
    assert message in str(result.exception)
    assert not out.exists()


def test_runs_go_on_to_the_target_where_nobody_says_when_to_give_up(tiny: Path):
    """Neither the base's end nor its intervals between samples count; options and grids do."""
    tiny.write_text(tiny.read_text().replace("time: 20", "time: 0.01"))
    (stop,) = {run.scenario.stop for run in make_plan(comparison_request(Request(tiny))).runs}
    assert (stop.time, stop.communications) == (None, 8 * 20_000)
    for asked in (
        requested(tiny, (), "compare", limit_time=5)[1],
        comparison_request(Request(tiny, {"stop.time": [5]})),
        comparison_request(Request(tiny, worlds={"short": {"stop": {"time": 5}}})),
    ):
        (stop,) = {run.scenario.stop for run in make_plan(asked).runs}
        assert (stop.time, stop.communications) == (5, None)
    (stop,) = {
        run.scenario.stop
        for run in make_plan(comparison_request(Request(tiny, target="none"))).runs
    }
    assert stop.time == 0.01


def test_who_meets_the_budget_is_told_what_to_raise(tiny: Path):
    how = {"seeds": 3, "jobs": 1, "figures": False, "out": tiny.parent / "results"}
    result = compare(tiny, target="distance=20%", **how)
    assert result.speedup["bound"].tolist() == ["="]
    (said,) = [note for note in result.notes if "20,000 messages an agent" in note]
    assert "(160,000)" in said
    late = compare(tiny, target="distance=20%", limit_communications=20, **how)
    assert any("raise the limit" in note for note in late.notes)


def test_agents_of_files_are_counted_for_the_budget():
    request = comparison_request(Request(ROOT / "scenarios/stations.yaml"))
    stops = {run.scenario.stop.communications for run in make_plan(request).runs}
    assert stops == {20_000 * len(run(load_scenario(request.base, {"stop.time": 1})).agents)}


def test_limits_take_the_place_of_the_scenarios(tiny: Path):
    request = requested(tiny, (), "compare", limit_time="2 min", limit_communications=99)[1]
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
        (pair,) = pairs_table(plan, table).to_dict("records")
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


@pytest.mark.parametrize("name", ["phase_diagram", "frontier"])
def test_the_shipped_comparisons_are_valid(name: str):
    words = ["compare", str(ROOT / f"scenarios/{name}.yaml"), "--seeds", "1", "--dry-run"]
    if name == "phase_diagram":
        words += ["--set", "clock.rate=25"]
    result = CliRunner().invoke(commands, words)
    assert result.exit_code == 0, result.exception
    assert "algorithm.mode=sync" in result.output


# --- one run for several combinations -----------------------------------------------------------
def test_rounds_are_computed_once_for_all_clock_rates(tiny: Path):
    """The clock plays no part in rounds, nor the timer in gossip."""
    grid = {"clock.rate": [1, 5, 20], "network.retransmit_after": ["1 s", "2 s"]}
    plan = make_plan(comparison_request(Request(tiny, grid)))
    assert len(plan.runs) == 12
    assert plan.distinct == 3 + 2
    result = compare(tiny, grid, target="distance=20%", jobs=1, figures=False, out=tiny.parent)
    folders = result.runs.groupby("algorithm.mode")["folder"].nunique()
    assert folders.to_dict() == {"async": 3, "sync": 2}
    rounds = result.runs[result.runs["algorithm.mode"] == "sync"]
    assert rounds.groupby("network.retransmit_after")["time_to_target"].nunique().tolist() == [1, 1]


def test_a_law_of_clock_rates_moves_what_is_drawn_after_it(tiny: Path):
    """Factors of links come from the same stream: such rounds are not the same run."""
    law = {"kind": "uniform", "low": 0.5, "high": 1.5}
    plan = make_plan(Request(tiny, {"algorithm.mode": ["sync"], "clock.rate": [1, law]}))
    assert plan.distinct == 2


# --- tuning -------------------------------------------------------------------------------------
def test_the_fastest_within_the_budget_is_taken():
    points = pd.DataFrame(
        {
            "time": [1.0, 3.0, 5.0, 2.0, 9.0, 9.0],
            "communications": [200.0, 125.0, 100.0, 90.0, 11.0, 10.0],
            "failed": [0, 0, 0, 1, 0, 0],
        }
    )
    cells = [0, 0, 0, 0, 7, 7]
    assert choose(points, cells, 1.25).tolist() == [False, True, False, False, False, True]
    assert choose(points, cells, 2.0).tolist() == [True, False, False, False, False, True]
    assert choose(points, cells, 1.0).tolist() == [False, False, True, False, False, True]


def test_tuning_from_end_to_end(tiny: Path):
    """What is taken follows from ordinary runs with seeds that are not compared."""
    values = ["20 ms", "1 s"]
    knobs = {"sync": {"network.retransmit_after": values}}
    how = {"jobs": 1, "figures": False, "out": tiny.parent / "results"}
    result = compare(tiny, tune=knobs, tune_budget=1.5, target="distance=20%", **how)
    costs = {}
    for value in values:
        overrides = {"algorithm.mode": "sync", "network.retransmit_after": value}
        target = {"stop.metric": "distance", "stop.below": "20%"}
        ends = [
            run(load_scenario(tiny, {**overrides, **target, "seed": 10**6 + seed})).summary[
                "target"
            ]
            for seed in range(10)
        ]
        costs[value] = [stats.gmean([end[name] for end in ends]) for name in COST_NAMES]
    least = min(sent for _, sent in costs.values())
    frugal = [value for value in values if costs[value][1] <= 1.5 * least]
    best = min(frugal, key=lambda value: costs[value][0])
    assert result.tuning["given"].tolist() == values
    assert result.tuning["value"].tolist() == [0.02, 1.0]  # seconds
    found = result.tuning[["time", "communications"]].to_numpy()
    np.testing.assert_allclose(found, list(costs.values()), rtol=1e-12)
    assert result.tuning["given"][result.tuning["taken"]].tolist() == [best]
    taken = f"network.retransmit_after={best}"
    assert result.speedup["tuned_second"].tolist() == [taken]
    assert result.runs["tuned"].fillna("").tolist() == ["", taken]
    scenario = load_scenario(how["out"] / result.runs["folder"][1] / "scenario.yaml")
    overrides = {"algorithm.mode": "sync", "network.retransmit_after": best}
    assert scenario.network == load_scenario(tiny, overrides).network
    assert not [note for note in result.notes if "untuned" in note]
    again = compare(result.folder / "request.yaml", **how)  # options and all
    assert again.folder == result.folder


COST_NAMES = ("time", "communications")


def test_values_that_are_errors_in_a_cell_are_left_out_there(tiny: Path):
    grid = {"network.drop": [0, 0.1]}
    request = comparison_request(Request(tiny, grid, tune=knobs_of({"sync": TIMERS})))
    knobs = plan_knobs(request, request.tune, None, held_out=True)
    tried = [(each["network.drop"], each["value"]) for each in knobs.plan.combinations]
    assert tried == [(0, "1 s"), (0, "never"), (0.1, "1 s")]
    ((cell, value, why),) = knobs.left_out
    assert (cell, value) == (3, "never")
    assert "network.retransmit_after" in why
    assert {each.scenario.seed for each in knobs.plan.runs} == set(range(10**6, 10**6 + 10))


def test_values_of_a_knob_with_other_optima_are_refused_before_any_run(tiny: Path):
    """Their distances measure different things, whether one is taken or all are drawn."""
    knobs = {"async": {"algorithm.alpha": [0.5, 0.8]}}
    for what, asked in (("compare", {"tune": knobs}), ("frontier", {"knobs": knobs})):
        with pytest.raises(ScenarioError, match="different optima"):
            plans(*requested(tiny, (), what, **asked), None)
    absolute = requested(tiny, (), "frontier", target="l2_error=0.1", knobs=knobs)
    assert len(plans(*absolute, None)[0].runs) == 2 + 7


TIMERS = {"network.retransmit_after": ["1 s", "never"]}


def test_an_untuned_timer_is_said_to_be(tiny: Path):
    out = str(tiny.parent / "results")
    words = ["compare", str(tiny), "--target", "distance=20%", "--jobs", "1", "--no-figures"]
    result = CliRunner().invoke(commands, [*words, "--out", out])
    assert result.exit_code == 0, result.exception
    assert "the timer of rounds is untuned (network.retransmit_after: 1 s)" in result.output
    tuned = CliRunner().invoke(
        commands, [*words, "--out", out, "--tune", "sync:network.retransmit_after=1 s,never"]
    )
    assert tuned.exit_code == 0, tuned.exception
    assert "is untuned" not in tuned.output
    assert "network.retransmit_after=" in tuned.output


# --- curves -------------------------------------------------------------------------------------
def test_curves_have_samples_enough_before_the_target(tiny: Path):
    result = compare(tiny, jobs=1, figures=False, out=tiny.parent, target="distance=5%")
    for folder in result.runs["folder"]:
        trace = pd.read_csv(tiny.parent / folder / "trace.csv")
        assert 100 <= len(trace) - 1 <= 201
        gaps = np.diff(trace["time"])[:-1]  # the end comes when it comes
        np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)


def test_runs_of_a_grid_have_samples_enough_for_equal_budgets(tiny: Path):
    """Between samples the last value holds, whatever the base says for single runs."""
    tiny.write_text(tiny.read_text() + "record: {every_communications: 5000}\n")
    asked = requested(tiny, [("network.drop", [0, 0.2])])
    for curves, samples in ((True, 100), (False, None)):
        plan = make_plan(comparison_request(asked, curves=curves))
        assert {each.scenario.record.samples for each in plan.runs} == {samples}


def test_where_no_pair_reached_the_target_there_are_no_ratios(tiny: Path):
    late = [(NAN, 9.0), (NAN, 9.0)]
    plan = make_plan(Request(tiny, seeds=2, vary=DEFAULT_VARY))
    table = speedup_table(pairs_table(plan, outcomes(late, late), DEFAULT_VARY), [])
    assert result_text(table.iloc[0]) == "no pair of async and sync reached the target"


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_samples_by_number_are_those_of_their_interval(tiny: Path, mode: str):
    wanted = {"algorithm.mode": mode, "stop.time": 3.3}
    found = run(load_scenario(tiny, {**wanted, "record.samples": 10})).trace
    every = float(found["time"][1])
    pd.testing.assert_frame_equal(
        found, run(load_scenario(tiny, {**wanted, "record.every": every})).trace
    )
    assert 11 <= len(found) <= 22


def held_out_failures(store: Store, lost: set[int], only: tuple[object, ...] = ()) -> object:
    """Work that computes a plan, of which some seeds (of some values) are then said to fail."""

    def work(plan: Plan) -> Computed:
        done = Work(store, jobs=1)(plan)
        failures = {
            number: "the graph is not connected"
            for number, run in enumerate(plan.runs)
            if run.scenario.seed in lost and (not only or run.values["value"] in only)
        }
        return replace(done, failures=failures)

    return work


def test_a_held_out_seed_that_fails_counts_for_no_value(tiny: Path):
    knobs = knobs_of({"sync": {"network.retransmit_after": ["20 ms", "1 s"]}})
    request = comparison_request(Request(tiny, target="distance=20%", tune=knobs))
    store = Store(tiny.parent / "results")
    lost = {10**6 + 3, 10**6 + 7}
    chosen, tuning = tune(request, None, store, held_out_failures(store, lost))
    assert list(chosen.chosen) == [1]
    assert tuning.table["runs"].tolist() == [8, 8]
    assert tuning.table["failed"].tolist() == [0, 0]
    (note,) = tuning.notes
    assert "8 of 10 held-out seeds; 1000003, 1000007 failed" in note
    with pytest.raises(SimulatorError, match="at least 5 must count"):
        tune(request, None, store, held_out_failures(store, {10**6 + k for k in range(6)}))
    # One value that fails alone can't be taken; if each does somewhere, none can.
    _, tuning = tune(request, None, store, held_out_failures(store, lost, ("20 ms",)))
    assert tuning.table["taken"].tolist() == [False, True]

    def each_somewhere(plan: Plan) -> Computed:
        done = Work(store, jobs=1)(plan)
        first = {"20 ms": 10**6, "1 s": 10**6 + 1}
        bad = [first[run.values["value"]] == run.scenario.seed for run in plan.runs]
        return replace(done, failures={n: "it broke" for n, why in enumerate(bad) if why})

    with pytest.raises(SimulatorError, match=r"nothing can be taken.*it broke"):
        tune(request, None, store, each_somewhere)


def test_requests_that_differ_in_what_is_tried_have_folders_of_their_own(tiny: Path):
    how = {"target": "distance=20%", "jobs": 1, "figures": False, "out": tiny.parent / "results"}
    lists = (["1 s"], ["1 s", "2 s"])
    folders = {
        compare(tiny, tune={"sync": {"network.retransmit_after": values}}, **how).folder
        for values in lists
    }
    assert len(folders) == 2


def test_the_closing_line_counts_the_runs_of_tuning(tiny: Path):
    words = ["compare", str(tiny), "--target", "distance=20%", "--jobs", "1", "--no-figures"]
    words += ["--tune", "sync:network.retransmit_after=1 s", "--out", str(tiny.parent / "results")]
    result = CliRunner().invoke(commands, words)
    assert result.output.startswith("engine:   compiled")
    assert "12, 10 of them for tuning (12 computed, 0 already there" in result.output


def test_worlds_with_seeds_of_their_own_keep_their_pairs(tiny: Path):
    worlds = {"near": {"seed": 0}, "far": {"seed": 100}}
    request = comparison_request(Request(tiny, seeds=2, worlds=worlds))
    plan = make_plan(request)
    times = [(float(number), float(number)) for number in range(1, 9)]
    pairs = pairs_table(plan, outcomes(times, []))
    assert pairs["seed"].tolist() == [0, 1, 100, 101]
    table = speedup_table(pairs, ["world"])
    assert table["world"].tolist() == ["near", "far"]
    assert table["pairs"].tolist() == [2, 2]


def test_what_measures_from_the_optimum_is_not_shown_where_there_are_two(tiny: Path):
    how = {"jobs": 1, "figures": False, "out": tiny.parent / "results", "target": "l2_error=0.5"}
    two = compare(tiny, vary=("algorithm.kind", ["mp", "admm"]), **how)
    assert not {"distance", "gap", "objective"} & set(two.metrics)
    one = compare(tiny, vary=("algorithm.start", ["own", "known"]), **how)
    assert "distance" in one.metrics


# --- worlds and frontiers -----------------------------------------------------------------------
WORLDS = """\
base: tiny.yaml
grid:
  $spread: [0, 1]
  network.header: [8]
worlds:
  passes: {network.latency: {kind: lognormal, mean: 50 ms, sigma: $spread}}
  stays:
    network.latency:
      {kind: constant, value: 50 ms, per_link: {kind: lognormal, mean: 1, sigma: $spread}}
"""


@pytest.mark.parametrize("name", ["frontier", "phase_diagram"])
def test_a_request_as_a_file_asks_for_the_same(name, tmp_path):
    asked = read_request(ROOT / "scenarios" / f"{name}.yaml")
    file = tmp_path / "request.yaml"
    file.write_text(as_file(asked, asked.name, tmp_path), encoding="utf-8")
    again = read_request(file)
    assert again.base.samefile(asked.base)
    assert replace(again, base=asked.base, places={}) == replace(asked, places={})


def test_worlds_are_overrides_with_a_name(tiny: Path):
    file = tiny.parent / "mine.yaml"
    file.write_text(WORLDS)
    plan = make_plan(read_request(file))
    found = [tuple(each.values.values()) for each in plan.runs]
    assert found == [("passes", 0), ("passes", 1), ("stays", 0), ("stays", 1)]
    assert plan.runs[1].scenario.network.latency.sigma == 1
    assert plan.runs[3].scenario.network.latency.per_link.sigma == 1
    assert {each.scenario.network.header for each in plan.runs} == {8}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("$spread: [0, 1]", "$other: [0, 1]", "3:3: grid.$other: no world refers to it"),
        ("sigma: $spread}}", "sigma: $tail}}", "$tail is no key of grid"),
        (
            "{network.latency: {kind: lognormal, mean",
            "{network.latency: {kind: nothing, mean",
            "worlds.passes",
        ),
        ("worlds:", "worlds: 3\nvary:", "worlds: must be a block of keys (got 3)"),
    ],
)
def test_wrong_worlds(tiny: Path, old: str, new: str, message: str):
    file = tiny.parent / "mine.yaml"
    file.write_text(WORLDS.replace(old, new))
    with pytest.raises(ScenarioError) as error:
        make_plan(read_request(file))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tune: {sync: {a: [1], b: [2]}}", "tune.sync: must have one key (got 2)"),
        ("tune: {sync: {network.drop: 0}}", "tune.sync.network.drop: must be a list"),
        ("tune: {budget: 0}", "tune.budget: must be a number from 1"),
        ("frontier: 3", "frontier: must be a block of keys (got 3)"),
    ],
)
def test_wrong_knobs_in_a_file(tiny: Path, text: str, message: str):
    file = tiny.parent / "mine.yaml"
    file.write_text(f"base: tiny.yaml\ngrid: {{}}\n{text}\n")
    with pytest.raises(ScenarioError) as error:
        read_request(file)
    assert message in str(error.value)


def test_a_frontier_from_end_to_end(tiny: Path):
    """A point is the geometric mean of its runs; a faster clock buys time with messages."""
    file = tiny.parent / "mine.yaml"
    file.write_text(WORLDS.replace("$spread: [0, 1]", "$spread: [1]"))
    knobs = {"async": {"clock.rate": [1, 50]}, "sync": TIMERS}
    result = frontier(
        file, knobs=knobs, seeds=2, target="distance=20%", jobs=1, out=tiny.parent / "results"
    )
    points = result.points
    assert len(points) == 2 * (2 + 2)
    assert points["world"].tolist() == ["passes"] * 4 + ["stays"] * 4
    assert points["knob"].tolist()[:4] == ["clock.rate"] * 2 + ["network.retransmit_after"] * 2
    times = result.runs["time_to_target"].to_numpy().reshape(8, 2)
    np.testing.assert_allclose(points["time"], stats.gmean(times, axis=1), rtol=1e-12)
    assert points["time"][1] < points["time"][0]
    assert points["communications"][1] > points["communications"][0]
    assert {path.name for path in result.folder.iterdir()} >= {"frontier.csv", "frontier.png"}
    page = sweep_item(find(result.folder), key="p0", page=tiny.parent / "page.html", share=1).html
    assert f"python -m simulator compare {result.folder / 'request.yaml'}<" in page
