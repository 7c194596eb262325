"""The command line as a user meets it: in a process of its own, or for short in this one."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from simulator import shipped
from simulator.cli.commands import commands
from simulator.errors import ScenarioError
from tests.conftest import ROOT
from tests.processes import Command, nobody_reads

TINY = """
name: tiny
task: {kind: mean_estimation, agents: 20}
algorithm: {kind: mp, alpha: 0.9}
stop: {time: 20}
"""


def simulator(*arguments, cwd=ROOT, **options):
    command = [sys.executable, "-m", "simulator", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, **options
    )


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_run_writes_a_complete_result_and_reuses_it(tiny, here):
    first = simulator("run", "tiny.yaml", cwd=tiny)
    assert first.returncode == 0, first.stderr
    (folder,) = (tiny / "results").iterdir()
    assert entries(folder) == {
        "agents.csv",
        "error.png",
        "manifest.json",
        "models.npz",
        "models.png",
        "scenario.yaml",
        "trace.csv",
    }
    assert "already computed" not in first.stdout
    again = here("run", "tiny.yaml", cwd=tiny)
    assert "already computed" in again.stdout
    # What the summary prints is a law.
    manifest = json.loads((folder / "manifest.json").read_text())
    summary = manifest["summary"]
    assert summary["communications"] == sum(
        summary[name] for name in ("delivered", "dropped", "missed", "in_flight")
    )
    with np.load(folder / "models.npz") as arrays:
        assert arrays["models"].shape == (20, 1)


def test_the_resolved_scenario_gives_the_same_bytes(tiny, here):
    here("run", "tiny.yaml", "--no-figures", cwd=tiny)
    (folder,) = (tiny / "results").iterdir()
    trace = (folder / "trace.csv").read_bytes()
    arrays = (folder / "models.npz").read_bytes()
    again = here("run", folder / "scenario.yaml", "--force", "--no-figures", cwd=tiny)
    assert again.returncode == 0, again.stderr
    assert [path.name for path in (tiny / "results").iterdir()] == [folder.name]
    assert (folder / "trace.csv").read_bytes() == trace
    assert (folder / "models.npz").read_bytes() == arrays
    elsewhere = here("run", folder / "scenario.yaml", "--out", "other", "--no-figures", cwd=tiny)
    assert elsewhere.returncode == 0
    assert (tiny / "other" / folder.name / "trace.csv").read_bytes() == trace


def test_named_files_travel_with_the_result(tiny, here):
    out = tiny / "out"
    done = here("run", "scenarios/stations.yaml", "--out", out, "--no-figures", "--json")
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout)["folder"])
    assert entries(folder / "inputs") == {
        "edges.csv",
        "stations.txt",
        "test.csv",
        "train.csv",
        "vectors.csv",
    }
    moved = tiny / "moved"
    folder.rename(moved)
    again = here("run", moved / "scenario.yaml", "--out", out, "--no-figures", "--json")
    assert again.returncode == 0, again.stderr
    assert Path(json.loads(again.stdout)["folder"]).name == folder.name
    assert (folder / "trace.csv").read_bytes() == (moved / "trace.csv").read_bytes()


def test_json_and_quiet(tiny, here):
    done = here("run", "tiny.yaml", "--json", "--no-figures", "--seed", 4, cwd=tiny)
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert summary["seed"] == 4
    assert summary["reused"] is False
    silent = here("run", "tiny.yaml", "--quiet", "--no-figures", "--seed", 5, cwd=tiny)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")


def test_nothing_is_said_about_compiling_where_that_is_not_wanted(tiny, here, monkeypatch):
    def ends(watch, *_):
        watch.compiling = 9.0

    monkeypatch.setattr("simulator.runs.simulation.Stopwatch.__exit__", ends)
    for quiet in ("", "1"):
        monkeypatch.setenv("MURMURATION_QUIET", quiet)
        done = here("run", "tiny.yaml", "--no-figures", "--force", cwd=tiny)
        assert ("compil" in done.stderr) == (not quiet)


def test_what_is_missing_is_installed_from_where_we_are(monkeypatch, tmp_path):
    """And never from a package of another's."""
    assert shipped.install("report") == "pip install -e '.[report]'"
    monkeypatch.setattr(shipped, "root", lambda: tmp_path)
    assert shipped.install("report") == "pip install 'murmuration-sim[report]'"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "none.yaml"], "none.yaml"),
        (["run", "."], "."),
        (["run", "tiny.yaml", "--set", "network.drop=2"], "network.drop"),
        (["run", "tiny.yaml", "--set", "network.drop=0,0.1"], "exactly one value"),
        (["run", "tiny.yaml", "--set", "nonsense"], "nonsense"),
        (["run", "tiny.yaml", "--set", "aplha=1"], "aplha"),
        (["run", "tiny.yaml", "--set", "seed=1", "--seed", "2"], "--seed"),
        (["run", "tiny.yaml", "--seed", "-1"], "seed"),
        (["run", "tiny.yaml", "--seed", "x"], "x"),
        (["run", "tiny.yaml", "--plugin", "none.py"], "none.py"),
        (["run", "tiny.yaml", "--set", "algorithm.kind=mine"], "--plugin"),
        (["run", "tiny.yaml", "--set", "graph={kind: knn, k: 50}"], "50"),
        (["run", "tiny.yaml", "--set", "graph.sigma=1e-9"], "graph"),
        (["run", "tiny.yaml", "--set", "graph={kind: knn, k: 1}"], "allow_disconnected"),
        (["run", "tiny.yaml", "--wrong"], "--wrong"),
        (["run"], "SCENARIO"),
        (["nothing"], "nothing"),
        (["run", "tiny.yaml", "--out", "tiny.yaml"], "tiny.yaml"),
        (["run", "tiny.yaml", "--set", "task.agents=2000000000"], "2 GB are allowed"),
        (
            ["run", "tiny.yaml", "--set", "task.agents=2000000000", "--set", "graph={kind: knn}"],
            "this machine has",
        ),
        (["run", "tiny.yaml", "--set", "algorithm.start={kind: normal, scale: 1e308}"], "1e+100"),
    ],
)
def test_wrong_input_ends_with_2_a_short_message_and_no_files(tiny, here, arguments, complaint):
    done = here(*arguments, cwd=tiny)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 6
    assert done.stdout == ""
    assert entries(tiny) == {"tiny.yaml"}


def test_a_results_folder_that_cannot_be_written(tiny, here):
    (tiny / "file").write_text("")
    done = here("run", "tiny.yaml", "--out", "file/below", cwd=tiny)
    assert done.returncode == 2
    assert "results cannot be written" in done.stderr


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk_leaves_the_old_result_untouched(tiny, here):
    """A limit on the size of files stands for a disk that is full."""
    here("run", "tiny.yaml", "--no-figures", cwd=tiny)
    (folder,) = (tiny / "results").iterdir()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    process = Command("run", "tiny.yaml", "--force", "--no-figures", cwd=tiny, first=small_files)
    code, output = process.ended()
    assert code == 2, output
    assert "results cannot be written" in output
    assert "Traceback" not in output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert entries(tiny / "results") == {folder.name}


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interruption_leaves_nothing_behind(tiny, sent, code):
    (tiny / "tiny.yaml").write_text(TINY.replace("time: 20", "time: 1e7"))
    process = Command("run", "tiny.yaml", cwd=tiny)
    time.sleep(0.7)  # wherever it stands by then, it ends cleanly
    os.kill(process.pid, sent)
    found, output = process.ended()
    assert found == code, output
    assert "Traceback" not in output
    assert entries(tiny / "results") == set()


@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_in_code_that_is_made_of_text(tiny, sent, code):
    """As dataclasses are: of a bare KeyboardInterrupt Python dies of SIGINT, whatever came."""
    text = f"import signal; signal.raise_signal(signal.{sent})"
    (tiny / "plugin.py").write_text(f"exec({text!r})\n")
    done = simulator("run", "tiny.yaml", "--plugin", "plugin.py", cwd=tiny)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("kind", [ValueError, ScenarioError, OSError])
def test_a_signal_that_a_library_turns_into_its_own_error_is_still_one(here, monkeypatch, kind):
    def converting(**_):
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException as error:
            raise kind("could not go on") from error

    monkeypatch.setattr(commands, "main", converting)
    done = here("list")
    assert done.returncode == 143
    assert done.stderr == "terminated; nothing is half written\n"


def test_a_signal_that_is_swallowed_shows_at_the_end(here, monkeypatch):
    def going_on(**_):
        with suppress(BaseException):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(commands, "main", going_on)
    done = here("list")
    assert done.returncode == 130
    assert done.stderr == "interrupted; the command had come to its end\n"


def _clearing_away_for_long() -> None:
    def clearing(**_):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            time.sleep(60)

    commands.main = clearing


def test_a_second_ctrl_c_ends_at_once(tiny):
    assert Command("list", cwd=tiny, first=_clearing_away_for_long).ended(30) == (130, "")


# --- where output goes ----------------------------------------------------------------------------
@pytest.mark.parametrize("words", [["schema"], ["list"], ["--help"], ["run", "tiny.yaml"]])
def test_a_pipe_that_nobody_reads_is_no_failed_run(tiny, here, words):
    """Exit code 1 would mean that, 2 a mistake; a shell has 141 for it."""
    here("run", "tiny.yaml", "--no-figures", cwd=tiny)
    assert Command(*words, cwd=tiny, first=nobody_reads).ended() == (141, "")


def test_what_cannot_be_encoded_is_shown_in_another_way(tiny, here, monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    done = here("run", "tiny.yaml", "--out", "x y/é", "--no-figures", cwd=tiny)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"x y/\\xe9/tiny-" in output.buffer.getvalue()
    assert len(list((tiny / "x y" / "é").iterdir())) == 1


def test_validate_shows_all_errors_of_all_files(tiny, here):
    (tiny / "bad.yaml").write_text("name: x\nseed: -1\ntask: {kind: meen}\nstop: {time: 0}\n")
    done = here("validate", "tiny.yaml", "bad.yaml", cwd=tiny)
    assert done.returncode == 2
    assert done.stdout == "tiny.yaml: valid\n"
    assert len(done.stderr.splitlines()) == 3
    assert all(line.startswith("bad.yaml:") for line in done.stderr.splitlines())


def test_more_than_ten_mistakes_are_ten_lines_unless_validate_shows_them(tiny, here):
    file = tiny / "wrong.yaml"
    file.write_text("".join(f"unknown_{k}: 1\n" for k in range(30)))
    told = here("run", "wrong.yaml", cwd=tiny)
    lines = told.stderr.splitlines()
    assert (told.returncode, len(lines)) == (2, 10)
    whole = here("validate", "wrong.yaml", cwd=tiny).stderr.splitlines()
    assert whole[:9] == lines[:9]
    assert lines[9] == f"… and {len(whole) - 9} more; validate shows all that is in a file"


def test_schema_and_help(here):
    assert json.loads(here("schema").stdout)["type"] == "object"
    for command in ([], ["run"], ["validate"], ["schema"]):
        done = here(*command, "--help")
        assert done.returncode == 0
        assert "xample" in done.stdout


def test_help_does_not_load_the_numerical_libraries():
    code = (
        "import sys; sys.argv = ['x', '--help']\n"
        "from simulator.__main__ import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'numba', 'matplotlib', 'networkx', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda f: f.stem)
def test_shipped_scenarios_are_valid_and_say_what_they_show(file, here):
    text = file.read_text()
    if "\nbase:" in text:  # a sweep file
        assert text.startswith("# ")
        return
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n# ")
    assert here("validate", file).returncode == 0
