"""The store: names, damage, drafts, and several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from simulator import sweep
from simulator.cli.commands import commands
from simulator.errors import DamagedError, StoreError, StoreWarning
from simulator.runs.result import load_result, save_result
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.runs.tasks import Done, Run, pack, unfinished
from simulator.store import store as store_module
from simulator.store.store import MANIFEST, Store, Stored, digest, read_manifest
from simulator.store.whole_files import DRAFT, replacing, replacing_file
from tests.conftest import MEANS, ROOT, build
from tests.damage import DAMAGE, flip
from tests.sweeping import write_tiny

SCENARIO = build(MEANS, stop={"time": 1.0})
FILES = ("manifest.json", "trace.csv", "agents.csv", "models.npz", "scenario.yaml")


@pytest.fixture(scope="module")
def result():
    return run(SCENARIO)


@pytest.fixture
def stored(result, tmp_path: Path) -> tuple[Store, Path]:
    store = Store(tmp_path / "results")
    return store, save_result(store, result, full_hash=digest(SCENARIO), wall_time=1.0)


def content(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# --- input files --------------------------------------------------------------------------------
TWINS = """\
name: twins
task: {kind: mean_estimation, agents: 3}
graph: {kind: file, file: a/file.txt}
algorithm: {kind: mp, alpha: 0.8}
network: {latency: {kind: empirical, file: b/file.txt}}
compute: {time: {kind: empirical, file: c/FILE.txt}}
stop: {time: 9}
"""


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """Three files of the same name, but for capitals."""
    for name, text in (("a/file", "0 1\n1 2\n"), ("b/file", "0.5\n"), ("c/FILE", "0.1\n0.2\n")):
        path = tmp_path / f"{name}.txt"
        path.parent.mkdir()
        path.write_text(text)
    (tmp_path / "twins.yaml").write_text(TWINS)
    return tmp_path / "twins.yaml"


def test_files_of_the_same_name_stay_apart(twins: Path):
    scenario = load_scenario(twins)
    here = run(scenario)
    outcome = pack(scenario).execute()
    assert isinstance(outcome, Done)
    pd.testing.assert_frame_equal(outcome.result.trace, here.trace)
    store = Store(twins.parent / "results")
    folder = save_result(store, here, full_hash=digest(scenario), wall_time=0.0)
    names = sorted(path.name.casefold() for path in (folder / "inputs").iterdir())
    assert names == ["file-2.txt", "file-3.txt", "file.txt"]
    again = load_scenario(folder / "scenario.yaml")
    assert digest(again) == digest(scenario)
    pd.testing.assert_frame_equal(run(again).trace, here.trace)


def test_files_that_change_during_a_run_are_noticed(twins: Path):
    scenario, store = load_scenario(twins), Store(twins.parent / "results")
    before = digest(scenario)
    (twins.parent / "b" / "file.txt").write_text("0.6\n")
    with pytest.raises(StoreError, match="changed during the run"):
        save_result(store, run(scenario), full_hash=before, wall_time=0.0)
    assert list(store.root.iterdir()) == []


# --- names --------------------------------------------------------------------------------------
def test_what_was_stored_comes_back(stored, result):
    store, folder = stored
    assert folder == store.folder(SCENARIO)
    assert folder.name == f"test-{digest(SCENARIO)[:8]}"
    loaded = load_result(store, SCENARIO, folder)
    pd.testing.assert_frame_equal(loaded.trace, result.trace)
    pd.testing.assert_frame_equal(loaded.agents, result.agents, check_dtype=False)
    assert loaded.models.tobytes() == result.models.tobytes()
    assert loaded.summary == result.summary


def test_another_result_whose_hash_begins_alike_is_not_taken(stored, result):
    """Hashes that agree in 8, and in 12 digits: each has a folder of its own, and is found."""
    store, first = stored
    real = digest(SCENARIO)
    kept = Stored(result.trace, result.agents, result.summary, {"models": result.models})
    folders, last = {real: first}, real
    for shared in (8, 12):
        last = last[:shared] + "".join("1" if digit == "0" else "0" for digit in last[shared:])
        assert not store.has(store.place("test", last))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store_module, "digest", lambda *_, value=last: value)
            folders[last] = store.save(SCENARIO, kept, full_hash=last, wall_time=2.0)
        assert folders[last].name == f"test-{last[: shared + 4]}"
    assert len(set(folders.values())) == 3
    for full_hash, folder in folders.items():
        assert store.place("test", full_hash) == folder
        assert store.manifest(folder)["hash"] == full_hash


# --- damage -------------------------------------------------------------------------------------
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_damage_is_noticed_named_and_mended(stored, result, name: str, damage: str):
    store, folder = stored
    before = content(folder)
    DAMAGE[damage](folder / name)
    task = Run(SCENARIO, store, reads=None)
    if (name, damage) == ("manifest.json", "missing"):
        assert unfinished([task]) == [0]
    else:
        with pytest.warns(StoreWarning, match=rf"{name}: .*: computed again"):
            assert unfinished([task]) == [0]
    task.save(Done(result, 1.0))
    assert unfinished([task]) == []
    assert content(folder) == before
    assert [path.name for path in store.root.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "3", "null", '{"schema_version": []}', "[" * 100_000, "1" * 5000, "\ufeff{}"],
)
def test_json_of_another_shape_is_no_manifest(stored, text: str):
    store, folder = stored
    (folder / MANIFEST).write_text(text)
    with pytest.raises(DamagedError, match=MANIFEST):
        store.check(folder)
    assert store.folder(SCENARIO) == folder


def test_a_changed_number_in_the_manifest_is_noticed(stored):
    store, folder = stored
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["summary"]["metrics"]["final"]["l2_error"] += 1e-9
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(DamagedError, match="not as it was written"):
        store.manifest(folder)


def test_a_result_that_is_a_file(stored, result):
    store, folder = stored
    shutil.rmtree(folder)
    folder.write_text("")
    task = Run(SCENARIO, store)
    assert unfinished([task]) == [0]
    task.save(Done(result, 1.0))
    assert unfinished([task]) == []


def test_only_what_is_read_is_hashed(stored):
    """Of other files the size is enough: a sweep of many runs must not read gigabytes."""
    store, folder = stored
    flip(folder / "models.npz")
    store.check(folder, ["trace.csv"])
    with pytest.raises(DamagedError, match=r"models\.npz"):
        store.check(folder, ["models.npz"])
    with pytest.raises(DamagedError, match=r"models\.npz"):
        store.arrays(folder)


def _run_json(folder: Path, *words: str) -> dict:
    arguments = ["run", str(write_tiny(folder)), "--out", str(folder / "results"), "--json", *words]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    return json.loads(done.stdout)


def test_run_computes_a_damaged_result_again(tmp_path: Path):
    first = _run_json(tmp_path, "--no-figures")
    path = Path(first["folder"]) / "models.npz"
    before = path.read_bytes()
    path.write_bytes(b"")
    with pytest.warns(StoreWarning, match=r"models\.npz: damaged: 0 bytes where .*computed again"):
        assert _run_json(tmp_path, "--no-figures") == first
    assert path.read_bytes() == before
    path.write_bytes(b"")
    with pytest.warns(StoreWarning, match=r"models\.npz: damaged: .*computed again"):
        _run_json(tmp_path, "--no-figures", "--quiet")


def test_run_draws_damaged_figures_again(tmp_path: Path):
    path = Path(_run_json(tmp_path)["folder"]) / "error.png"
    before = path.read_bytes()
    path.write_bytes(b"")
    assert _run_json(tmp_path)["reused"]
    assert path.read_bytes() == before


def test_sweep_computes_damaged_results_again(tmp_path: Path):
    file, out = write_tiny(tmp_path), tmp_path / "results"
    first = sweep(file, seeds=3, jobs=1, out=out, figures=False)
    folders = [out / name for name in first.runs["folder"]]
    before = [content(folder) for folder in folders]
    (folders[0] / "trace.csv").write_bytes(b"")
    (folders[2] / MANIFEST).write_text("{")
    with pytest.warns(StoreWarning, match=r"trace\.csv: damaged: .* \(and 1 more\): computed"):
        again = sweep(file, seeds=3, jobs=1, out=out, figures=False)
    pd.testing.assert_frame_equal(again.runs, first.runs)
    assert [content(folder) for folder in folders] == before


def test_runs_of_one_sweep_whose_hashes_begin_alike(tmp_path: Path, monkeypatch):
    """Neither is there when the sweep begins: where the second one goes shows when it is saved."""
    real = store_module.hash_of
    file, out = write_tiny(tmp_path), tmp_path / "results"
    monkeypatch.setattr(store_module, "hash_of", lambda value: "00000000" + real(value)[8:])
    result = sweep(file, seeds=2, jobs=1, out=out, figures=False)
    assert result.runs["folder"].str.len().tolist() == [len("tiny-") + 8, len("tiny-") + 12]
    assert result.runs["l2_error"].nunique() == 2
    again = sweep(file, seeds=2, jobs=1, out=out, figures=False)
    pd.testing.assert_frame_equal(again.runs, result.runs)


# --- drafts -------------------------------------------------------------------------------------
def test_drafts_that_a_kill_left_behind_go_after_a_week(tmp_path: Path):
    """If no file in them has changed for so long; others may be another process's."""
    now, day = time.time(), 24 * 3600.0
    for name, ages in (("old", (9, 8)), ("recent", (6, 9)), ("at-work", (9, 1))):
        draft = tmp_path / f"{DRAFT}{name}"
        (draft / "new").mkdir(parents=True)
        for file, age in zip(("one", "two"), ages, strict=True):
            (draft / "new" / file).write_text("half")
            os.utime(draft / "new" / file, (now, now - age * day))
        for folder in (draft / "new", draft):
            os.utime(folder, (now, now - 9 * day))
    with replacing_file(tmp_path / "done") as draft:
        draft.write_text("done")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"done", f"{DRAFT}recent", f"{DRAFT}at-work"}


def test_a_draft_that_fails_leaves_nothing(tmp_path: Path):
    with pytest.raises(RuntimeError), replacing(tmp_path / "place"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def _save_often(root: str, times: int) -> None:
    scenario = SCENARIO
    outcome, store = run(scenario), Store(root)
    task = Run(scenario, store, reads=None)
    for _ in range(times):
        task.save(Done(outcome, 1.0), force=True)


def test_processes_that_save_the_same_result_do_not_fail(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_save_often, args=(str(tmp_path), 15)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == [Store(tmp_path).folder(SCENARIO).name]
    assert Store(tmp_path).has(Store(tmp_path).folder(SCENARIO), None)


def test_what_another_process_stored_meanwhile_stays(stored, result):
    store, folder = stored
    slower = replace(result, summary={**result.summary, "notes": ["slower"]})
    save_result(store, slower, full_hash=digest(SCENARIO), wall_time=9.0)
    assert store.manifest(folder)["wall_time"] == 1.0
    save_result(store, slower, full_hash=digest(SCENARIO), wall_time=9.0, force=True)
    assert store.manifest(folder)["wall_time"] == 9.0
    assert read_manifest(folder)["summary"]["notes"] == ["slower"]


# --- the layers ---------------------------------------------------------------------------------
def test_the_store_builds_no_problems_and_draws_nothing():
    code = (
        "import sys, simulator.store.store\n"
        "above = {'tasks', 'simulation', 'figures', 'results', 'work', 'workers', 'engine'}\n"
        "print(sorted(above & {name.removeprefix('simulator.') for name in sys.modules}),\n"
        "      'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[] False\n", done.stderr
