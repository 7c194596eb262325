"""Old results stay readable: of each layout since the third there is one in ``layouts``.

Each has a run ``tiny`` with its events and its models, runs ``plain``, and a sweep and a comparison
of these.  When ``SCHEMA_VERSION`` is raised, add one of the layout that was, made by that version.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from simulator import Comparison, Result, Sweep, results
from simulator.errors import LayoutError, StoreWarning
from simulator.store.store import (
    MANIFEST,
    RESULTS_VERSION,
    SCHEMA_VERSION,
    Store,
    read_manifest,
    software,
    write_manifest,
)
from tests.conftest import ROOT
from tests.sweeping import write_tiny

LAYOUTS = sorted((Path(__file__).parent / "layouts").iterdir())


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda path: path.name.split(".")[0])
def old(request, tmp_path_factory) -> Path:
    """The results of an older version."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    return folder / "results"


def of_version(folder: Path, **versions: int) -> None:
    """Write the manifest as another version of the program would."""
    manifest = json.loads((folder / MANIFEST).read_text()) | versions
    del manifest["sha256"]
    write_manifest(folder, manifest)


def test_the_present_layout_will_be_an_old_one():
    names = [path.name for path in LAYOUTS]
    assert names == [f"layout-{number}.tar.xz" for number in range(3, SCHEMA_VERSION + 1)]


def test_results_of_every_layout_are_read(old, here):
    table = results(old)
    assert sorted(table["what"]) == ["compare", *["run"] * 9, "sweep"]
    assert here("list", "--out", old).stdout.count("plain-") == 10
    (run,) = old.glob("tiny-*")
    for command in (["inspect"], ["inspect", "--agent", "2"], ["report"], ["draw"]):
        done = here(command[0], run, *command[1:])
        assert (done.returncode, done.stderr) == (0, "")
    result = Result.load(run)
    assert len(result.trace) == 5
    assert result.history.shape == (5, 6, 1)
    assert (result.events["kind"] == "send").sum() == result.trace["communications"].iloc[-1]
    for place in (run, *(old / "sweeps").iterdir()):
        done = here("show", place)
        assert (done.returncode, done.stderr) == (0, "")
        was = read_manifest(place)["results_version"]
        assert ("does not reuse it" in done.stdout) == (was != RESULTS_VERSION)


def test_sweeps_of_every_layout_are_read(old, here):
    for place in (old / "sweeps").iterdir():
        compared = "vary" in read_manifest(place)
        found = (Comparison if compared else Sweep).load(place)
        assert len(found.runs) == 4
        for command in ("report", "draw"):
            done = here(command, place)
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("step", [-1, 1])
def test_the_version_of_results_decides_only_what_is_reused(tmp_path, here, step: int):
    """It is in the hash, so that one of another version has another folder."""
    file = write_tiny(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simulator.store.store.RESULTS_VERSION", RESULTS_VERSION + step)
        here("run", file, "--no-figures", cwd=tmp_path)
    (other,) = (tmp_path / "results").iterdir()
    before = {path: path.read_bytes() for path in other.iterdir()}
    assert f"version:  {RESULTS_VERSION + step}; " in here("show", other, cwd=tmp_path).stdout
    done = json.loads(here("run", file, "--no-figures", "--json", cwd=tmp_path).stdout)
    assert not done["reused"]
    assert Path(done["folder"]).name != other.name
    assert {path: path.read_bytes() for path in other.iterdir()} == before
    assert len(results(tmp_path / "results")) == 2


@pytest.mark.parametrize(("layout", "age"), [(2, "an early"), (SCHEMA_VERSION + 1, "a newer")])
def test_a_layout_of_others_is_told_of_and_never_overwritten(tmp_path, here, layout, age):
    file = write_tiny(tmp_path)
    here("run", file, "--no-figures", cwd=tmp_path)
    (other,) = (tmp_path / "results").iterdir()
    of_version(other, schema_version=layout)
    before = {path: path.read_bytes() for path in other.iterdir()}
    for command in ("show", "draw", "report", "inspect"):
        done = here(command, other, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"of {age} version of the program" in done.stderr
    with pytest.raises(LayoutError):
        Result.load(other)
    for reused in (False, True):  # it has a place of its own
        done = here("run", file, "--no-figures", "--json", cwd=tmp_path)
        assert done.stderr == ""
        assert json.loads(done.stdout)["reused"] == reused
    assert {path: path.read_bytes() for path in other.iterdir()} == before
    with pytest.warns(StoreWarning, match=f"{age} version of the program: .*: not listed"):
        assert len(results(tmp_path / "results")) == 1


def test_a_problem_that_is_built_otherwise_today_is_told_of(old, monkeypatch):
    (run,) = old.glob("tiny-*")
    real = Store.load

    def of_others(store, folder):
        stored = real(store, folder)
        stored.arrays["solitary"] = stored.arrays["solitary"] + 1
        return stored

    monkeypatch.setattr(Store, "load", of_others)
    with pytest.warns(StoreWarning, match="are not those of the run"):
        Result.load(run)


def test_the_commit_is_that_of_the_checkout():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    commit = software()["commit"]
    assert commit is not None
    assert commit.removesuffix("-dirty") == head.stdout.strip()
