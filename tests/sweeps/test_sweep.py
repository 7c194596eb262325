"""Sweeps: the plan, the tables, resuming, and workers that die."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from simulator import sweep
from simulator.cli.commands import commands
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import schema_for
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.runs.tasks import Done, Failed, pack
from simulator.scenario.files import dump_scenario, scenario_hash_payload
from simulator.store.store import Store
from simulator.sweeps import study
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Request, TargetLevel
from simulator.sweeps.sweep_file import read_request
from simulator.sweeps.tables import _curve, mean_interval, summary_table
from simulator.sweeps.workers import LocalCrew, run_all
from tests.processes import Command
from tests.sweeping import GRID, sweep_tables, table_bytes, write_tiny

NAN = float("nan")
SETTINGS = ["--set", "network.latency.mean=10 ms,1 s", "--set", "network.drop=0,0.5"]


def _requested(*asked):
    return study.requested(*asked)[1]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory):
    """The reference: one worker, undisturbed; 2 × 2 combinations, 2 seeds."""
    folder = tmp_path_factory.mktemp("sweep")
    return sweep(write_tiny(folder), GRID, seeds=2, jobs=1, out=folder / "results")


# --- the plan -----------------------------------------------------------------------------------
def test_the_plan_is_the_grid_times_the_seeds_in_order(tiny: Path):
    plan = make_plan(Request(tiny, GRID, seeds=2))
    found = [(*r.values.values(), r.scenario.seed) for r in plan.runs]
    expected = [
        (mean, drop, seed) for mean in ("10 ms", "1 s") for drop in (0, 0.5) for seed in (0, 1)
    ]
    assert found == expected
    assert plan.runs[-1].scenario.network.latency.mean_value == 1.0


def test_seeds_follow_that_of_the_scenario_or_are_listed(tiny: Path):
    tiny.write_text(tiny.read_text() + "seed: 7\n")
    assert [r.scenario.seed for r in make_plan(Request(tiny, seeds=3)).runs] == [7, 8, 9]
    listed = make_plan(Request(tiny, {"seed": [5, 2]}))
    assert [r.scenario.seed for r in listed.runs] == [5, 2]
    assert list(listed.axes) == []
    with pytest.raises(ScenarioError, match="are the same"):
        make_plan(Request(tiny, {"seed": [5, 2]}, seeds=3))


def test_sweeps_run_compiled_unless_an_engine_is_named(tiny: Path):
    """By --set, by the base, by a world, or by what sides are: then nothing is chosen."""
    assert _requested(tiny, ()).defaults["engine"] == "compiled"
    assert make_plan(_requested(tiny, ())).runs[0].scenario.engine == "compiled"
    for named in (
        _requested(tiny, [("engine", ["simpy"])]),
        _requested(load_scenario(tiny).model_dump() | {"engine": "simpy"}, ()),
        replace(Request(tiny), worlds={"a": {"engine": "simpy"}}).with_defaults(),
        replace(Request(tiny), vary=("engine", ["simpy", "compiled"])).with_defaults(),
    ):
        assert "engine" not in named.defaults
    tiny.write_text(tiny.read_text() + "engine: simpy\n")
    assert make_plan(_requested(tiny, ())).runs[0].scenario.engine == "simpy"


def test_sweeps_have_samples_enough_for_curves(tiny: Path):
    tiny.write_text(tiny.read_text() + "record: {every_communications: 5000}\n")
    assert make_plan(_requested(tiny, ())).runs[0].scenario.record.samples == 100
    chosen = make_plan(_requested(tiny, [("record.every", [2])])).runs[0].scenario.record
    assert (chosen.every, chosen.samples) == (2, None)


def test_blocks_kinds_and_single_values(tiny: Path):
    pareto = {"kind": "pareto", "mean": "80 ms", "shape": 2.5}
    grid = {"network.latency": ["50 ms", pareto], "algorithm.kind": ["mp", "solitary"]}
    plan = make_plan(Request(tiny, grid | {"network.drop": [0.1]}))
    assert list(plan.axes) == ["network.latency", "algorithm.kind"]
    assert {r.scenario.network.drop.rate for r in plan.runs} == {0.1}
    assert [r.scenario.algorithm.kind for r in plan.runs] == ["mp", "solitary"] * 2
    assert plan.runs[2].scenario.network.latency.kind == "pareto"


def test_numpy_values_are_numbers(tiny: Path):
    request = Request(tiny).with_settings([("graph.sigma", np.linspace(0.5, 1.0, 2))])
    assert [r.scenario.graph.sigma for r in make_plan(request).runs] == [0.5, 1.0]
    with pytest.raises(ScenarioError, match=r"--set graph\.sigma"):
        Request(tiny).with_settings([("graph.sigma", [object()])])
    alone = make_plan(Request(tiny).with_settings([("graph.sigma", 3)]))
    assert [r.scenario.graph.sigma for r in alone.runs] == [3]


def test_a_sweep_file_says_the_same(tiny: Path):
    file = tiny.parent / "mine.yaml"
    file.write_text(
        "base: tiny.yaml\ngrid:\n  network.latency.mean: [10 ms, 1 s]\n"
        "  network.drop: [0, 0.5]\nseeds: 2\ntarget: distance=1%\n"
    )
    plan = make_plan(read_request(file))
    assert plan.name == "mine"
    same = make_plan(Request(tiny, GRID, seeds=2, target="distance=1%"))
    assert plan.runs == same.runs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid: {network.drop: [0, 1]}\n", "base: missing key"),
        ("base: tiny.yaml\ngird: {}\n", "gird: unknown key; did you mean 'grid'?"),
        ("base: tiny.yaml\ngrid: {network.drop: 0}\n", "2:22: grid.network.drop: must be a list"),
        ("base: tiny.yaml\ngrid: {network.drop: []}\n", "must be a list of one or more"),
        ("base: tiny.yaml\ngrid: {network.drop: [0, 0]}\n", "the value 0 is given twice"),
        ("base: tiny.yaml\ngrid: {network.drop: [0, 2]}\n", "2:26: grid.network.drop: must be at"),
        ("base: tiny.yaml\nseeds: 0\n", "2:8: seeds: must be at least 1 (got 0)"),
        ("base: nothing.yaml\n", "no such file"),
        ("base: tiny.yaml\ntarget: speed=1\n", "unknown metric"),
    ],
)
def test_wrong_sweep_files_name_the_place(tiny: Path, text: str, message: str):
    file = tiny.parent / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(SimulatorError) as error:
        make_plan(read_request(file))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["network.dorp=0,1"], "network.dorp: unknown key"),
        (["network.drop=0,,1"], "network.drop"),
        (["network.drop="], "the value is missing"),
        (["network.drop=0.1,0.1"], "given twice"),
        (["network.drop=0,0.2", "network.drop=0.5"], "given twice"),
        (["network.latency.mean=50 ms,0.05"], "are the same run"),
        (["algorithm.mode=async,sync", "network.drop=0.5,1"], "never ends"),
        (["network.drop=0,2,3"], "(got 2)"),
    ],
)
def test_errors_come_before_the_first_run(tiny: Path, settings: list[str], message: str):
    words = ["sweep", str(tiny), "--out", str(tiny.parent / "results")]
    for setting in settings:
        words += ["--set", setting]
    result = CliRunner().invoke(commands, words)
    assert isinstance(result.exception, SimulatorError)
    assert message in str(result.exception)
    assert not (tiny.parent / "results").exists()


def test_all_wrong_combinations_are_reported(tiny: Path):
    with pytest.raises(ScenarioError) as error:
        make_plan(Request(tiny, {"network.drop": [0, 2, 3]}))
    assert "(got 2)" in str(error.value)
    assert "(got 3)" in str(error.value)


def test_dry_run_lists_and_writes_nothing(tiny: Path):
    out = tiny.parent / "results"
    words = ["sweep", str(tiny), *SETTINGS, "--seeds", "2", "--out", str(out), "--dry-run"]
    result = CliRunner().invoke(commands, words)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == 9
    assert lines[3].startswith("network.latency.mean=10 ms  network.drop=0.5  seed=1  ")
    assert lines[-1] == "8 runs, 0 of them already computed"
    assert not out.exists()


@pytest.mark.parametrize(
    "text",
    ["distance", "distance=", "distance=-1", "accuracy=90%", "staleness=1%", "x=1", "gap=200%"],
)
def test_wrong_targets(text: str):
    with pytest.raises(ScenarioError, match="--target"):
        TargetLevel.parse(text, schema_for())


def test_a_relative_target_is_left_to_the_run(tiny: Path):
    """The plan, the hash and the stored scenario have the text."""
    plan = make_plan(Request(tiny, seeds=2, target="distance=10.0 %"))
    for planned in plan.runs:
        assert planned.scenario.stop.below == "10%"
        assert scenario_hash_payload(planned.scenario, {})["stop"]["below"] == "10%"
        assert "\n  below: 10%\n" in dump_scenario(planned.scenario)


def test_a_plan_solves_no_problem(tiny: Path):
    """Not even one that is too large to be built: 4.5e8 edges."""
    big = {"task.agents": [30_000], "graph.sigma": [100.0], "graph.min_weight": [1e-9]}
    plan = make_plan(Request(tiny, big, seeds=3, target="distance=1%"))
    assert len(plan.runs) == 3
    with pytest.raises(ScenarioError, match="graph"):
        run(plan.runs[0].scenario)


# --- across kinds -------------------------------------------------------------------------------
def test_a_key_of_one_value_goes_to_the_kinds_that_have_it(tiny: Path):
    grid = {"algorithm.kind": ["mp", "admm", "consensus"], "algorithm.rho": [0.3]}
    plan = make_plan(Request(tiny, grid))
    mp, admm, consensus = (planned.scenario.algorithm for planned in plan.runs)
    assert (mp.kind, admm.kind, consensus.kind) == ("mp", "admm", "consensus")
    assert admm.rho == 0.3
    assert mp.alpha == admm.alpha == 0.8


def test_a_swept_key_must_be_known_to_all_kinds(tiny: Path):
    grid = {"algorithm.kind": ["mp", "admm"], "algorithm.rho": [0.3, 1.0]}
    with pytest.raises(ScenarioError, match=r"algorithm.rho: unknown key for kind 'mp'"):
        make_plan(Request(tiny, grid))
    with pytest.raises(ScenarioError, match=r"algorithm.rho: unknown key for kind 'mp'"):
        make_plan(Request(tiny, {"algorithm.rho": [0.3]}))


# --- the tables ---------------------------------------------------------------------------------
def test_intervals_are_those_of_scipy(rng: np.random.Generator):
    values = rng.normal(size=(7, 3))
    mean, low, high = mean_interval(values)
    for column in range(3):
        sample = values[:, column]
        expected = stats.t.interval(0.95, 6, loc=sample.mean(), scale=stats.sem(sample))
        assert (low[column], high[column]) == pytest.approx(expected, rel=1e-12)
        assert mean[column] == pytest.approx(sample.mean(), rel=1e-12)
    assert np.isnan(mean_interval([3.0])[1])


def test_curves_take_the_last_value_and_never_interpolate():
    one = pd.DataFrame({"time": [0.0, 1.0, 4.0], "distance": [8.0, 4.0, 2.0]})
    two = pd.DataFrame({"time": [0.0, 2.0], "distance": [6.0, 0.0]})
    curve = _curve([one, two], "time", ["distance"]).set_index("x")["distance"]
    assert curve.index[-1] == 4.0
    for x, expected in ((0.0, 7.0), (0.98, 7.0), (1.0, 5.0), (1.98, 5.0), (2.0, 2.0), (4.0, 1.0)):
        assert curve.loc[:x].iloc[-1] == expected


def test_rows_are_those_of_ordinary_runs(swept):
    assert swept.runs["status"].eq("done").all()
    row = swept.runs.iloc[5]
    folder = swept.folder.parent.parent / row["folder"]
    result = run(load_scenario(folder / "scenario.yaml"))
    assert (row["network.latency.mean"], row["network.drop"], row["seed"]) == (1.0, 0, 1)
    assert row["communications"] == result.summary["communications"]
    assert row["l2_error"] == result.summary["metrics"]["final"]["l2_error"]
    assert result.trace["distance"].iloc[-1] == row["distance"]


def test_summary_is_of_the_runs(swept):
    errors = swept.runs["l2_error"].to_numpy().reshape(4, 2)
    assert swept.summary["l2_error"].to_numpy() == pytest.approx(errors.mean(axis=1))
    assert swept.summary["runs"].eq(2).all()
    assert swept.summary.filter(regex="_(low|high)$").isna().all(axis=None)  # of two, nothing


def test_intervals_of_three_runs_never_below_zero(tiny: Path):
    plan = make_plan(Request(tiny, seeds=3))
    rows = {name: 3 * [1.0] for name in ("communications", "bytes", "simulated_time")}
    values = {"l2_error": [0.1, 0.1, 1.0], "objective": [-1.0, 1.0, 5.0], "target": 3 * [None]}
    times = {name: 3 * [NAN] for name in ("time_to_target", "communications_to_target")}
    runs = pd.DataFrame({"status": 3 * ["done"], **rows, **values, **times})
    (row,) = summary_table(plan, runs).to_dict("records")
    for name, least in (("l2_error", 0.0), ("objective", -np.inf)):
        mean, error = np.mean(values[name]), stats.sem(values[name])
        low, high = stats.t.interval(0.95, 2, loc=mean, scale=error)
        assert low < 0
        assert row[f"{name}_low"] == pytest.approx(max(low, least))
        assert row[f"{name}_high"] == pytest.approx(high)


def test_curves_end_where_the_runs_do(swept):
    time_curves = swept.curves[swept.curves["axis"] == "time"]
    ends = time_curves.groupby(["network.latency.mean", "network.drop"])["distance"].last()
    expected = swept.runs.groupby(["network.latency.mean", "network.drop"])["distance"].mean()
    pd.testing.assert_series_equal(ends, expected, rtol=1e-12)


def test_files_and_figures(swept):
    names = {path.name for path in swept.folder.iterdir()}
    assert names == {
        *("runs.csv", "curves.csv", "summary.csv", "manifest.json", "request.yaml"),
        *("curves.png", "heat_map.png"),
    }
    assert not list(swept.folder.parent.parent.glob("tiny-*/*.png"))


# --- workers ------------------------------------------------------------------------------------
def test_two_workers_give_the_same_bytes(swept, tiny: Path):
    again = sweep(tiny, GRID, seeds=2, jobs=2, out=tiny.parent / "results", figures=False)
    assert table_bytes(again.folder) == table_bytes(swept.folder)
    before = {path: path.stat().st_mtime_ns for path in tiny.parent.rglob("trace.csv")}
    third = sweep(tiny, GRID, seeds=2, jobs=2, out=tiny.parent / "results", figures=False)
    assert table_bytes(third.folder) == table_bytes(swept.folder)
    assert before == {path: path.stat().st_mtime_ns for path in tiny.parent.rglob("trace.csv")}


def test_killed_five_times_and_started_again(swept, tiny: Path):
    """SIGKILL when one more run is stored, or a moment later; finished runs stay as they are."""
    out, chance = tiny.parent / "results", random.Random(3)
    words = ["sweep", tiny, *SETTINGS, "--seeds", 2, "--jobs", 1, "--out", out, "--no-figures"]
    kept: dict[Path, int] = {}
    for _ in range(5):
        process = Command(*words, cwd=tiny.parent)
        wanted = len(kept) + 1
        while process.running() and len(list(out.glob("tiny-*/manifest.json"))) < wanted:
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.02))
        process.kill()
        found = {path: path.stat().st_mtime_ns for path in out.glob("tiny-*/manifest.json")}
        assert kept.items() <= found.items()
        kept = found
    assert Command(*words, cwd=tiny.parent).ended()[0] == 0
    found = {path: path.stat().st_mtime_ns for path in out.glob("tiny-*/manifest.json")}
    assert kept.items() <= found.items()
    assert sweep_tables(out) == table_bytes(swept.folder)
    for path in kept:
        Store(out).check(path.parent, None)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_keeps_what_is_finished(tiny: Path, number: int, code: int):
    out = tiny.parent / "results"
    words = ["sweep", tiny, "--set", "stop.time=1,1e7", "--jobs", 1, "--out", out]
    process = Command(*words, cwd=tiny.parent)
    while process.running() and not list(out.glob("tiny-*/manifest.json")):
        time.sleep(0.01)
    os.killpg(process.pid, number)
    found, errors = process.ended()
    assert found == code
    assert errors.strip().endswith(
        "what is finished is stored; the same command goes on from there"
    )
    assert "Traceback" not in errors
    (stored,) = out.glob("tiny-*")
    Store(out).check(stored, None)


def test_a_worker_that_is_killed_does_no_harm(tiny: Path):
    """The only worker is killed with a run in its hands; the run goes out again."""
    runs = make_plan(Request(tiny, seeds=3)).runs
    jobs = [partial(pack, run.scenario) for run in runs]
    outcomes, killed = {}, 0
    with LocalCrew(1) as crew:
        for number, outcome in run_all(jobs, crew):
            if outcome is None and number == 1:
                (process,) = crew._pool._processes
                os.kill(process, signal.SIGKILL)
                killed += 1
            elif outcome is not None:
                outcomes[number] = outcome
    assert killed == 1
    assert sorted(outcomes) == [0, 1, 2]
    assert all(isinstance(outcome, Done) for outcome in outcomes.values())


PLUGIN = """
import os
from agents.rules.model_propagation import ModelPropagation

class Deadly(ModelPropagation):
    kind = "deadly"

    def prepare(s, start):
        os._exit(9)

class Growing(ModelPropagation):
    kind = "growing"

    def prepare(s, start):
        raise ArithmeticError("too large")
"""


def test_runs_that_fail_are_recorded_and_the_others_go_on(tiny: Path):
    """One kills its worker, also when it runs alone; one raises; the plugin travels with them."""
    file = tiny.parent / "rules.py"
    file.write_text(PLUGIN)
    kinds = {"algorithm.kind": ["mp", "deadly", "growing"]}
    out = tiny.parent / "results"
    result = sweep(tiny, kinds, jobs=2, out=out, plugins=file)
    assert result.runs["status"].tolist() == ["done", "failed", "failed"]
    assert result.failed == 2
    assert "died twice" in result.runs["reason"][1]
    assert result.runs["reason"][2] == (
        "rule growing: prepare failed (rules.py:15): ArithmeticError: too large"
    )
    assert result.summary["failed"].tolist() == [0, 1, 1]
    assert not Store(out).has(out / "nothing")


def test_a_failed_run_shows_in_the_exit_code(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(jobs, crew):
        for number, _ in enumerate(jobs):
            yield number, None
            yield number, Failed("no luck")

    monkeypatch.setattr("simulator.sweeps.workers.run_all", fail)
    words = ["sweep", str(tiny), "--seeds", "2", "--out", str(tiny.parent / "results")]
    result = CliRunner().invoke(commands, words, standalone_mode=False)
    assert result.return_value == 1
    assert "failed: seed=1: no luck" in result.output


def test_named_files_travel_with_a_run(tmp_path: Path):
    """The worker needs nothing of the caller's disk."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "delays.txt").write_text("0.1\n0.2\n")
    path = write_tiny(home)
    overrides = {"network.latency": {"kind": "empirical", "file": "delays.txt"}}
    scenario = load_scenario(path, overrides)
    expected = run(scenario).trace
    job = pack(scenario)
    home.rename(tmp_path / "elsewhere")
    outcome = job.execute()
    assert isinstance(outcome, Done)
    pd.testing.assert_frame_equal(outcome.result.trace, expected)


def test_reasons_do_not_name_the_workers_folder(tmp_path: Path):
    (tmp_path / "edges.txt").write_text("0 99\n")
    scenario = load_scenario(write_tiny(tmp_path), {"graph": {"kind": "file", "file": "edges.txt"}})
    reasons = {pack(scenario).execute() for _ in range(2)}
    assert len(reasons) == 1
    (failed,) = reasons
    assert isinstance(failed, Failed)
    assert failed.reason.startswith("inputs/edges.txt")
