"""Sides that are whole blocks, and what they have at equal budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from simulator import Comparison, compare
from simulator.cli.commands import commands
from simulator.errors import ScenarioError
from simulator.figures.comparison_figures import comparison_pictures
from simulator.sweeps.comparison import comparison_request
from simulator.sweeps.equal import equal_rows
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Request, label, side_names
from simulator.sweeps.sweep_file import read_request
from tests.sweeping import write_tiny

TINY = """\
name: tiny
task: {kind: linear_classification, agents: 6, dimension: 3, loss: logistic, test_points: 20}
graph: {kind: angular_kernel, sigma: 1}
algorithm: {kind: djam, mu: 0.1}
network: {latency: 50 ms}
stop: {time: 5}
"""
BLOCKS = [
    {"kind": "admm", "mu": 0.1},
    {"kind": "dpsgd", "step": 0.05},
    {"kind": "adpsgd", "step": 0.05},
]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("blocks")
    file = write_tiny(folder, TINY)
    vary = ("algorithm", BLOCKS)
    return compare(file, vary=vary, seeds=2, target="none", jobs=1, out=folder / "results")


# --- names ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0.1, "50 ms", True], [0.1, "50 ms", "true"]),
        (BLOCKS, ["admm", "dpsgd", "adpsgd"]),
        (["10 ms", {"kind": "pareto", "mean": 1}], ["10 ms", "pareto"]),
        ([{"kind": "cd", "mu": 1}, {"kind": "cd", "mu": 2}], ["mu=1", "mu=2"]),
        ([{"kind": "cd", "mu": 1}, {"kind": "cd", "mu": 1, "ridge": 2}], ["cd", "ridge=2"]),
        (
            [{"kind": "mp", "mu": 1}, {"kind": "cd", "mu": 1}, {"kind": "cd", "mu": 2}],
            ["mp", "cd, mu=1", "cd, mu=2"],
        ),
        ([{"time": 1}, {"time": 2}], ["time=1", "time=2"]),
    ],
)
def test_sides_are_called_by_what_differs(values: list[Any], names: list[Any]):
    assert list(side_names(values).values()) == names
    # The same when they come back from a manifest, as labels.
    assert list(side_names([label(value) for value in values]).values()) == names


# --- equal budgets --------------------------------------------------------------------------------
def trace(*rows: tuple[float, int, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["time", "communications", "bytes", "l2_error"])


def test_equal_budgets_by_hand():
    """Budgets 30 messages (b's first), 300 bytes (a's second), 4 s (b's both)."""
    a = [
        trace((0, 0, 0, 8.0), (2, 20, 200, 4.0), (5, 50, 500, 1.0)),
        trace((0, 0, 0, 6.0), (3, 30, 300, 3.0)),
    ]
    b = [
        trace((0, 0, 0, 8.0), (1, 10, 400, 2.0), (4, 30, 1200, 1.0)),
        trace((0, 0, 0, 6.0), (4, 40, 1600, 1.5)),
    ]
    table = pd.DataFrame(equal_rows({"a": a, "b": b}, ["l2_error"])).set_index(["equal", "side"])
    assert table["budget"].groupby("equal").unique().map(list).to_dict() == {
        "communications": [30],
        "bytes": [300],
        "time": [3],
    }
    assert table["mean"].to_dict() == {
        ("communications", "a"): (4 + 3) / 2,
        ("communications", "b"): (1 + 6) / 2,  # 40 messages are after the budget
        ("bytes", "a"): (4 + 3) / 2,
        ("bytes", "b"): (8 + 6) / 2,
        ("time", "a"): (4 + 3) / 2,
        ("time", "b"): (2 + 6) / 2,
    }
    row = table.loc[("communications", "b")]
    assert row["ratio"] == pytest.approx(np.sqrt(1 / 4 * 6 / 3))
    assert np.isnan([row["low"], row["high"]]).all()  # of two runs
    assert (table.xs("a", level="side")["ratio"] == 1).all()


def test_who_sends_nothing_has_no_part_in_budgets():
    silent = [trace((0, 0, 0, 2.0))]
    sides = {"a": [trace((0, 0, 0, 4.0), (1, 5, 50, 1.0))], "alone": silent, "failed": [None]}
    rows = equal_rows(sides, ["l2_error"])
    assert {row["budget"] for row in rows} == {5, 50, 1}
    found = {row["side"]: (row["runs"], row["mean"]) for row in rows if row["equal"] == "bytes"}
    assert found["a"] == (1, 1.0)
    assert found["alone"] == (1, 2.0)
    assert found["failed"][0] == 0
    assert np.isnan(found["failed"][1])


# --- from end to end ------------------------------------------------------------------------------
def test_blocks_are_compared_without_a_target(compared: Comparison):
    """A rule of rounds beside rules of gossip, of different objectives, each to its limit."""
    assert compared.runs["simulated_time"].tolist() == pytest.approx([5.0] * 6)
    assert compared.speedup.empty
    table = compared.at_equal
    assert list(dict.fromkeys(table["side"])) == ["admm", "dpsgd", "adpsgd"]
    assert set(table["metric"]) == {"l2_error", "accuracy"}  # optima differ: no distance, no gap
    ends = compared.runs[["communications", "bytes"]].min()
    budgets = table.groupby("equal")["budget"].first()
    assert budgets["communications"] == ends["communications"]
    assert budgets["bytes"] == ends["bytes"]
    assert "comparison.png" in {path.name for path in compared.folder.iterdir()}


def test_such_a_comparison_is_read_again_as_it_was(compared: Comparison):
    again = Comparison.load(compared.folder)
    pd.testing.assert_frame_equal(again.at_equal, compared.at_equal, check_dtype=False)
    shown = CliRunner().invoke(commands, ["show", str(compared.folder)])
    assert shown.exit_code == 0, shown.exception
    assert "accuracy at equal budgets" in shown.output
    assert "kind: admm" not in shown.output
    (figure,) = (picture for _, picture in comparison_pictures(again, look()))
    labels = [axis.get_xlabel() for axis in figure.axes]
    assert [text.split()[0] for text in labels] == ["simulated", "communications", "bytes"]
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    assert [text.get_text() for text in legend.get_texts()][:3] == ["admm", "dpsgd", "adpsgd"]


def look() -> Any:
    from simulator.figures.style import Look

    return Look()


def test_blocks_of_one_objective_have_a_distance(tmp_path: Path):
    """By default the target is one of distance, as between modes."""
    file = write_tiny(tmp_path, TINY)
    blocks = [{"kind": kind, "mu": 0.1} for kind in ("admm", "djam", "cd")]
    plan = make_plan(comparison_request(Request(file), vary=("algorithm", blocks)))
    assert [run.scenario.stop.metric for run in plan.runs] == ["distance"] * 3
    with pytest.raises(ScenarioError, match="or --target none"):
        make_plan(comparison_request(Request(file), vary=("algorithm", BLOCKS)))


def test_blocks_in_a_file_and_their_mistakes(tmp_path: Path):
    write_tiny(tmp_path, TINY)
    file = tmp_path / "rules.yaml"
    text = "base: tiny.yaml\ntarget: none\nvary:\n  algorithm:\n    - {kind: admm, mu: 0.1}\n"
    file.write_text(f"{text}    - {{kind: dpsgd, step: 0.1}}\n")
    plan = make_plan(comparison_request(read_request(file)))
    assert [run.scenario.algorithm.kind for run in plan.runs] == ["admm", "dpsgd"]
    file.write_text(f"{text}    - {{kind: dpsgd, stop: 0.1}}\n")
    with pytest.raises(ScenarioError, match=r"rules\.yaml:6:\d+: vary\.algorithm: .*stop: unknown"):
        make_plan(comparison_request(read_request(file)))


def test_nothing_is_tuned_without_a_target(tmp_path: Path):
    file = write_tiny(tmp_path, TINY)
    words = ["--vary", "algorithm={kind: cd},{kind: dpsgd, step: 1}", "--target", "none"]
    words += ["--tune", "dpsgd:algorithm.step=0.1,0.2", "--out", str(tmp_path / "results")]
    result = CliRunner().invoke(commands, ["compare", str(file), *words])
    assert "without a target no value is better" in str(result.exception)
