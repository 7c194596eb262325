"""What is stored, listed, shown and drawn again; and tables that fit a terminal."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib import rc_context
from rich.console import Console

from simulator import Result
from simulator.cli.sweep_terminal import _interval
from simulator.cli.terminal import Column, fitted, number
from simulator.errors import DamagedError
from simulator.figures.frontier_figures import costs_axes, frontier_line, write_values
from simulator.figures.style import LogTicks, Look, read_labels, wrapped
from simulator.store.store import Store
from tests.damage import DAMAGE, flip
from tests.processes import Command

TINY = """
name: tiny
task: {kind: mean_estimation, agents: 8}
graph: {kind: gaussian_kernel, sigma: 0.5}
algorithm: {kind: mp, alpha: 0.8}
network: {latency: 50 ms}
stop: {time: 5}
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A folder with a run, a sweep and a comparison, without figures."""
    from simulator import compare, sweep

    folder = tmp_path_factory.mktemp("stored")
    (folder / "tiny.yaml").write_text(TINY)
    out = folder / "results"
    how = {"seeds": 2, "jobs": 1, "out": out, "figures": False, "progress": False}
    sweep(folder / "tiny.yaml", {"network.latency": ["10 ms", "1 s"]}, **how)
    compare(folder / "tiny.yaml", target="distance=50%", limit_time="1 min", **how)
    return folder


def test_list_shows_what_is_there(stored, here):
    done = here("list", cwd=stored)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert text.count("mp, async") == 6
    assert text.count("mp, sync") == 2
    assert "sweeps/tiny-" in text
    assert here("list", "--out", "none", cwd=stored).stdout == "none: nothing is stored there\n"


def test_show_is_what_the_command_printed(stored, here):
    for folder in (stored / "results" / "sweeps").iterdir():
        what = json.loads((folder / "manifest.json").read_text())["what"]
        text = here("show", folder.name, cwd=stored).stdout
        assert ("speed-up of async over sync" in text) == (what == "compare")
        assert "10 ms" in text or what == "compare"  # as it was given
    run = next(path for path in (stored / "results").iterdir() if path.name != "sweeps")
    assert "tiny: mp, " in here("show", run, cwd=stored).stdout
    wrong = here("show", "nothing", cwd=stored)
    assert (wrong.returncode, "no result is stored there" in wrong.stderr) == (2, True)


def test_draw_draws_again_without_computing(stored, here, monkeypatch):
    monkeypatch.setattr("simulator.runs.simulation._run", None)
    runs = [path for path in (stored / "results").iterdir() if path.name != "sweeps"]
    options = ["--format", "pdf", "--width", 3.3, "--metric", "l2_error"]
    done = here("draw", runs[0], *options, "--labels", "l2_error=my error", cwd=stored)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in runs[0].glob("*.*")} >= {"error.pdf", "models.pdf"}
    assert Store(stored / "results").has_figures(runs[0])
    to = stored / "figures"
    folder, _ = sorted((stored / "results" / "sweeps").iterdir())
    done = here("draw", folder, "--to", to, "--width", 3.3, cwd=stored)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in to.iterdir()} < {"comparison.png", "curves.png"}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("runs.csv", "sweep"), ("summary.csv", "sweep"), ("curves.csv", "sweep")),
        *(("pairs.csv", "compare"), ("speedup.csv", "compare"), ("at_equal.csv", "compare")),
    ],
)
def test_damaged_tables_are_told_of_and_not_shown(stored, here, tmp_path, name, what, damage):
    for folder in (stored / "results" / "sweeps").iterdir():
        if json.loads((folder / "manifest.json").read_text())["what"] == what:
            place = shutil.copytree(folder, tmp_path / "copy")
    DAMAGE[damage](place / name)
    commands = [["show"], ["draw"], ["report"]] if damage == "another byte" else [["show"]]
    for command in commands:
        done = here(*command, place)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{name}: damaged: " in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def with_files(tmp_path_factory) -> Path:
    """A run that read files, and was recorded."""
    from simulator import run

    folder = tmp_path_factory.mktemp("with_files")
    (folder / "edges.csv").write_text("".join(f"{k},{k + 1},0.5\n" for k in range(7)))
    (folder / "delays.txt").write_text("0.25\n0.75\n")
    values = {
        **yaml.safe_load(TINY),
        "graph": {"kind": "file", "file": str(folder / "edges.csv")},
        "network": {"latency": {"kind": "empirical", "file": str(folder / "delays.txt")}},
        "record": {"events": True, "models": True},
    }
    run(values, out=folder / "results", progress=False)
    return next((folder / "results").iterdir())


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("scenario.yaml", "alpha: 0.8", "alpha: 0.7"),
        ("inputs/edges.csv", "2,3,0.5", "2,3,0.6"),
        ("inputs/delays.txt", "0.75", "0.95"),
    ],
)
def test_another_problem_is_not_taken_for_the_one_that_was_run(
    with_files, here, tmp_path, name, before, after
):
    """A digit changes and the size does not."""
    place = shutil.copytree(with_files, tmp_path / "copy")
    was = {path.name for path in place.rglob("*")}
    text = (place / name).read_text()
    assert before in text
    (place / name).write_text(text.replace(before, after))
    for command in ("draw", "report", "animate", "show", "inspect"):
        done = here(command, place)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"{place / name}: damaged: not as it was written\n"
    with pytest.raises(DamagedError, match=f"{name}: damaged: not as it was written"):
        Result.load(place)
    assert {path.name for path in place.rglob("*")} == was


@pytest.mark.parametrize("name", ["agents.csv", "models.npz", "events.parquet", "error.png"])
def test_show_finds_damage_to_whatever_the_manifest_knows(with_files, here, tmp_path, name):
    place = shutil.copytree(with_files, tmp_path / "copy")
    flip(place / name)
    done = here("show", place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{place / name}: damaged: not as it was written\n"


def test_quiet_is_not_silent_about_damage(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    for command in ("run", "sweep"):
        words = [command, "tiny.yaml", "--no-figures", "--quiet", "--out", command]
        assert Command(*words, cwd=tmp_path).ended() == (0, "")
        (trace,) = (tmp_path / command).glob("*/trace.csv")
        flip(trace)
        code, output = Command(*words, cwd=tmp_path).ended()
        assert (code, len(output.splitlines())) == (0, 1)
        assert "trace.csv: damaged: not as it was written: computed again" in output


def test_a_table_that_was_added_is_not_read(stored, here, tmp_path):
    """Only what the manifest knows is the sweep's."""
    for folder in (stored / "results" / "sweeps").iterdir():
        place = shutil.copytree(folder, tmp_path / folder.name)
        for name in ("tuning.csv", "at_equal.csv", "frontier.csv"):
            if not (place / name).exists():
                (place / name).write_text("nonsense\n1,2\n")
        assert here("show", place).stdout == here("show", folder).stdout.replace(
            str(folder), str(place)
        )
        assert here("report", place).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "jpg"], "--format jpg: unknown; allowed: png, pdf, svg"),
        (["--metric", "accuracy"], "--metric accuracy: not in these runs; allowed: "),
        (["--labels", "x"], "--labels x: expected KEY=WORDS"),
        (["--width", "1"], "--width: must be 2 to 40 inches (got 1)"),
    ],
)
def test_wrong_wishes(stored, here, options, message):
    folder = next((stored / "results" / "sweeps").iterdir())
    done = here("draw", folder, *options, cwd=stored)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_labels():
    assert read_labels(["network.drop=loss", "algorithm.mode=async=no barrier"]) == {
        "network.drop": "loss",
        "algorithm.mode=async": "no barrier",
    }
    look = Look(labels={"algorithm.mode=async": "no barrier"})
    assert look.side("algorithm.mode", "async") == "no barrier"
    assert look.side("algorithm.mode", "sync") == "rounds"


# --- figures --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.004, 3.0, [0.01, 0.1, 1.0]),
        (0.02, 3.0, [0.03, 0.1, 0.3, 1.0, 3.0]),
        (0.8, 2.4, [1.0, 1.5, 2.0]),
        (1.35, 2.0, [1.4, 1.6, 1.8, 2.0]),
        (1e-22, 100.0, [1e-22, 1e-18, 1e-14, 1e-10, 1e-6, 1e-2, 100.0]),
    ],
)
def test_log_axes_have_ticks_however_little_they_span(low, high, ticks):
    found = LogTicks().tick_values(low, high)
    np.testing.assert_allclose([tick for tick in found if low <= tick <= high], ticks)


def test_long_keys_are_broken_at_dots():
    assert wrapped("stop.communications", 1) == "stop.\ncommunications"
    assert wrapped("availability.off.mean", 4) == "availability.off.mean"
    assert wrapped("a mean of 0.5 seconds", 0.5) == "a mean of\n0.5 seconds"
    assert wrapped("within a: 10 s (95 %)", 0.7) == "within a:\n10 s (95 %)"


def points_of_a_side(costs: dict[str, tuple[float, float]], late: set[str]) -> pd.DataFrame:
    """A frontier's points by their knob's values: communications and time."""
    rows = []
    for name, (sent, time) in costs.items():
        row = {"knob": "network.retransmit_after", "given": name, "censored": int(name in late)}
        for cost, value in (("communications", sent), ("time", time)):
            ends = {f"{cost}_paired_low": value / 1.1, f"{cost}_paired_high": value * 1.1}
            row |= {cost: value, **ends}
        rows.append(row)
    return pd.DataFrame(rows)


@pytest.mark.parametrize("width", [6.8, 3.3])
def test_a_frontier_can_be_read(width):
    """No value runs into another or leaves the panel; who did not get there stands at the edge."""
    near = {f"{k} ms": (1e5 * (1 + 0.06 * k), 10 / (1 + 0.02 * k)) for k in range(12)}
    points = points_of_a_side(near | {"never": (3e11, 2.0)}, late={"never"})
    with rc_context(Look(width=width).style):
        figure = Look(width=width).picture(3.0)
        axis = figure.subplots()
        costs_axes(axis, points, width)
        write_values(figure, [frontier_line(axis, points, 0), frontier_line(axis, points, 1)])
        figure.draw_without_rendering()
    assert axis.get_xlim()[1] < 1e6
    texts = [text for text in axis.texts if text.get_text()]
    assert {"0 ms", "never"} <= {text.get_text() for text in texts}
    boxes = [text.get_window_extent() for text in texts]
    for row, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:row])
        assert axis.bbox.contains(box.x0, box.y0)
        assert axis.bbox.contains(box.x1, box.y1)
    arrows = [note for note in axis.texts if getattr(note, "arrow_patch", None) is not None]
    assert len(arrows) == 2
    assert all(axis.get_xlim()[0] < arrow.xy[0] < axis.get_xlim()[1] for arrow in arrows)


# --- tables ---------------------------------------------------------------------------------------
def printed(columns: list[Column], width: int) -> list[str]:
    console = Console(width=width, highlight=False, soft_wrap=True, file=io.StringIO())
    with console.capture() as captured:
        for table in fitted(columns, width):
            console.print(table)
    return captured.get().splitlines()


def test_tables_fit_and_cut_nothing():
    names = ["network.latency.per_link.sigma", "communications to target", "final accuracy"]
    names += ["time to target (s)", "bytes", "final L2 error", "final distance"]
    columns = [Column(name, ["12,345 ± 1,234", "1"]) for name in names]
    lines = printed(columns, 80)
    assert max(len(line.rstrip()) for line in lines) <= 80
    text = "".join("\n".join(lines).split())
    assert "…" not in text
    for piece in ("per_link", "sigma", "communications", "accuracy", "distance"):
        assert piece in text
    assert len(printed(columns[:2], 80)) == 3  # one table, with headings in one line


def test_numbers_stand_at_the_right_and_words_at_the_left():
    columns = [
        Column("delay", ["5 ms", "100 ms"]),
        Column("rule", ["mp", "2cd"]),
        Column("final L2 error", ["never", "≥ 0.5 ± 1"]),
        Column("runs", ["3", "12, 1 failed"]),
        Column("none", ["", ""]),
    ]
    assert [line.rstrip() for line in printed(columns, 80)] == [
        " delay  rule  final L2 error          runs  none",
        "  5 ms  mp             never             3",
        "100 ms  2cd        ≥ 0.5 ± 1  12, 1 failed",
    ]
    narrow = [columns[0], Column("communications to target", ["12", "345"])]
    assert [line.rstrip() for line in printed(narrow, 18)] == [
        "        communications",  # folded, and never cut
        " delay       to target",
        "  5 ms              12",
        "100 ms             345",
    ]


def test_numbers_without_37_digits():
    assert [number(2.3e36), number(-1.5e12), number(12345.6), number(0.0123456)] == [
        *("2.3e36", "-1.5e12", "12,346", "0.01235"),
    ]


def test_an_interval_has_the_digits_that_show_its_width():
    assert _interval(8.84, 2.1234, 37.4) == "8.84 (2.1 … 37)"
    assert _interval(0.6993, 0.6961, 0.7025) == "0.699 (0.696 … 0.703)"
    assert _interval(0.6993, np.nan, np.nan) == "0.6993"
