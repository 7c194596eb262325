"""The store of results: ``results/<name>-<hash8>/``, filled and reused by every command.

A result is a folder of files.  ``manifest.json`` is among them when it is complete, and holds the
size and the SHA-256 of every other one, and of itself: what is not as it was written is noticed
when it is read, and computed again.  The store knows files only: it builds no problems and draws
nothing; ``results`` does that.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator import __version__
from simulator.errors import DamagedError, LayoutError, MissingError, StoreError
from simulator.scenario.files import dump_scenario, scenario_files, scenario_hash_payload
from simulator.scenario.schema import Scenario
from simulator.store.recording import EVENTS, HISTORY, EventsFile, History
from simulator.store.whole_files import (
    check_file,
    damaged,
    describe,
    drafting,
    hash_of,
    reading,
    replacing,
    sha256_of,
    writing,
)

if TYPE_CHECKING:
    from simulator.problem.problem import Floats

#: Raised whenever numbers change, so that old results are not taken for new ones: it is part of
#: every hash.  Whether a result can be read does not depend on it.
RESULTS_VERSION = 6
#: The layout of a result's folder, and the first one that is read; of each since then there is one
#: in tests/store/layouts.
SCHEMA_VERSION, _OLDEST = 3, 3
MANIFEST = "manifest.json"
SCENARIO = "scenario.yaml"
#: The folder with copies of the files that the scenario names.
INPUTS = "inputs"
TRACE = "trace.csv"
AGENTS = "agents.csv"
MODELS = "models.npz"
_DEPENDENCIES = ("simpy", "numpy", "scipy", "networkx", "pandas", "numba", "pydantic")
#: Draws figures into a folder.
Draw = Callable[[Path], None]


@dataclass(frozen=True)
class Stored:
    """What is kept of a run."""

    #: One row a sample; one row an agent.
    trace: pd.DataFrame
    agents: pd.DataFrame
    #: Final figures, ready for JSON.
    summary: dict[str, Any]
    #: Models by what they are: ``models``, ``solitary``, and ``optimum`` and ``targets`` if known.
    arrays: dict[str, Floats]
    #: What was recorded besides.
    events: EventsFile | None = None
    history: History | None = None


class Store:
    """Results below one root folder."""

    def __init__(self, root: Path | str = "results"):
        self.root = Path(root)

    # --- where things are ---
    def folder(self, scenario: Scenario) -> Path:
        """Where the result of a scenario lives, whether it is there or not."""
        return self.place(scenario.name, digest(scenario))

    def place(self, name: str, full_hash: str) -> Path:
        """Where the result of this name and hash lives, whether it is there or not."""
        return place_in(self.root, name, full_hash)

    def has(self, folder: Path, reads: Iterable[str] | None = ()) -> bool:
        """Is there a complete result?  See ``check``."""
        return _is_right(lambda: self.check(folder, reads))

    def check(self, folder: Path, reads: Iterable[str] | None = ()) -> None:
        """Raise MissingError unless a result is there, DamagedError unless it is whole.

        Every file must have its size, and those that will be read (all of them for None) the
        content that was written.
        """
        check_files(folder, read_manifest(folder), reads)

    def check_writable(self) -> None:
        """Find out before a long run, not after it, that results cannot be written."""
        with writing(self.root):
            place = next(place for place in (self.root, *self.root.parents) if place.exists())
            with tempfile.TemporaryFile(dir=place):
                pass

    # --- writing ---
    def save(
        self,
        scenario: Scenario,
        stored: Stored,
        *,
        full_hash: str,
        wall_time: float,
        draw: Draw | None = None,
        force: bool = False,
    ) -> Path:
        """Write a result and return its folder.

        ``full_hash`` is that of the scenario when the run began: a file that the scenario names
        and that has changed since is an error.  If a whole result is there meanwhile, of another
        process that computed the same, it stays, unless ``force``.
        """
        folder = self.place(scenario.name, full_hash)
        if not force and self.has(folder, None):
            return folder
        with replacing(folder) as draft:
            copies = write_inputs(scenario, draft)
            stored.trace.to_csv(draft / TRACE, index=False, lineterminator="\n")
            stored.agents.to_csv(draft / AGENTS, index=False, lineterminator="\n")
            np.savez(draft / MODELS, allow_pickle=False, **stored.arrays)
            if stored.history is not None:
                history = {"samples": stored.history.samples, "models": stored.history.models}
                np.savez(draft / HISTORY, allow_pickle=False, **history)
            if stored.events is not None:
                shutil.copyfile(stored.events.path, draft / EVENTS)
            files = describe(draft)
            hashes = {path: files[name]["sha256"] for path, name in copies.items()}
            if digest(scenario, hashes) != full_hash:
                names = ", ".join(str(path) for path in copies)
                raise StoreError(
                    f"{folder}: not stored: the scenario's files changed during the run: {names}"
                )
            figures, plugins = _drawn(draft, draw), scenario.plugins
            manifest = {
                "schema_version": SCHEMA_VERSION,
                "results_version": RESULTS_VERSION,
                "hash": full_hash,
                "seed": scenario.seed,
                "plugins": plugins
                and {"references": list(plugins.references), "sha256": plugins.sha256},
                "wall_time": wall_time,
                "software": software(),
                "summary": stored.summary,
                "files": files,
                "figures": figures,
            }
            write_manifest(draft, manifest)
        return folder

    def has_figures(self, folder: Path) -> bool:
        """Are figures there, as they were drawn?"""
        known = self.manifest(folder)["figures"]
        return bool(known) and _is_right(lambda: check_files(folder, {"files": known}))

    def add_figures(self, folder: Path, draw: Draw) -> None:
        """Draw the figures of a result that was stored without them."""
        manifest = self.manifest(folder)
        with writing(folder), drafting(self.root) as work:
            draft = work / "figures"
            draft.mkdir()
            drawn = _drawn(draft, draw)
            manifest["figures"] = {**manifest["figures"], **drawn}
            write_manifest(draft, manifest)
            for name in [*drawn, MANIFEST]:
                os.replace(draft / name, folder / name)

    # --- reading ---
    def scenario_file(self, folder: Path) -> Path:
        """The resolved scenario of a whole result; it and the files it names are as written."""
        names = read_manifest(folder)["files"]
        self.check(folder, [n for n in names if n == SCENARIO or n.startswith(f"{INPUTS}/")])
        return folder / SCENARIO

    def manifest(self, folder: Path) -> dict[str, Any]:
        """The manifest of a complete result."""
        return read_manifest(folder)

    def trace(self, folder: Path) -> pd.DataFrame:
        """The samples, every number exactly as it was written, whatever the version of pandas."""
        return _read_table(folder, read_manifest(folder), TRACE, dtype=str).astype("float64")

    def arrays(self, folder: Path) -> dict[str, Floats]:
        """The models of all agents."""
        return _read_arrays(folder, read_manifest(folder), MODELS)

    def load(self, folder: Path) -> Stored:
        """All that is kept of a run."""
        manifest = read_manifest(folder)
        files, events, history = manifest["files"], None, None
        if EVENTS in files:
            check_file(folder / EVENTS, files[EVENTS], content=True)
            events = EventsFile(folder / EVENTS)
        if HISTORY in files:
            arrays = _read_arrays(folder, manifest, HISTORY)
            history = History(arrays["samples"].astype(np.int64), arrays["models"])
        return Stored(
            _read_table(folder, manifest, TRACE),
            _read_table(folder, manifest, AGENTS, converters={"agent": str}),
            manifest["summary"],
            _read_arrays(folder, manifest, MODELS),
            events,
            history,
        )


def _is_right(check: Callable[[], None]) -> bool:
    try:
        check()
    except (MissingError, DamagedError):
        return False
    return True


def _read_table(folder: Path, manifest: dict[str, Any], name: str, **how: Any) -> pd.DataFrame:
    """A table of a result, a sweep or a comparison, if it is as it was written."""
    table: pd.DataFrame = pd.read_csv(io.BytesIO(read_file(folder, manifest, name)), **how)
    return table


def _read_arrays(folder: Path, manifest: dict[str, Any], name: str) -> dict[str, Floats]:
    with np.load(io.BytesIO(read_file(folder, manifest, name)), allow_pickle=False) as arrays:
        return dict(arrays)


# --- hashes and names -----------------------------------------------------------------------------
def digest(scenario: Scenario, hashes: dict[Path, str] | None = None) -> str:
    """SHA-256 of all that numbers depend on: the scenario, its files, plugins, our version.

    ``hashes`` has those of files that are known already, and gets those that are not.
    """
    hashes = {} if hashes is None else hashes
    for path in scenario_files(scenario):
        if path not in hashes:
            hashes[path] = sha256_of(path)
    payload = {
        "results_version": RESULTS_VERSION,
        "plugins": scenario.plugins and scenario.plugins.sha256,
        "scenario": scenario_hash_payload(scenario, hashes),
    }
    return hash_of(payload)


def place_in(root: Path, name: str, full_hash: str) -> Path:
    """The folder for a hash: eight digits of it, or more where another one begins with the same.

    What another version of the program has put there, and this one does not read, stays.
    """
    for digits in range(8, len(full_hash), 4):
        folder = root / f"{name}-{full_hash[:digits]}"
        try:
            if read_manifest(folder)["hash"] == full_hash:
                return folder
        except LayoutError:
            continue
        except (MissingError, DamagedError):
            return folder
    return root / f"{name}-{full_hash}"


# --- the manifest ---------------------------------------------------------------------------------
def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """The last file of a folder: its presence means that the folder is complete.

    It is JSON that people can read, with the SHA-256 of its own content.
    """
    whole = {**content, "sha256": hash_of(content)}
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest as it was written, by this or an earlier version of the program."""
    path = folder / MANIFEST
    try:
        with reading(path):
            content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise damaged(path, "no JSON") from None
    if not isinstance(content, dict) or "schema_version" not in content:
        raise damaged(path, "no manifest")
    layout = content["schema_version"]
    if isinstance(layout, int) and not _OLDEST <= layout <= SCHEMA_VERSION:
        age = "a newer" if layout > SCHEMA_VERSION else "an early"
        raise LayoutError(
            f"{path}: of {age} version of the program: it has layout {layout}, and "
            f"this version reads {_OLDEST} to {SCHEMA_VERSION}; it stays as it is"
        )
    if content.pop("sha256", None) != hash_of(content):
        raise damaged(path, "not as it was written")
    return content


def check_files(
    folder: Path,
    manifest: dict[str, Any],
    reads: Iterable[str] | None = None,
    *,
    figures: bool = False,
) -> None:
    """Is every file there that the manifest knows?  See ``Store.check``.

    A result is whole without its ``figures``.
    """
    files = {**manifest["files"], **(manifest.get("figures", {}) if figures else {})}
    wanted = set(files if reads is None else reads)
    for name, known in files.items():
        try:
            check_file(folder / name, known, content=name in wanted)
        except MissingError:
            raise damaged(folder / name, "the file is missing") from None


def read_file(folder: Path, manifest: dict[str, Any], name: str) -> bytes:
    """The content of a file of a result, if it is what was written."""
    path, known = folder / name, manifest["files"][name]
    with reading(path):
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != known["sha256"]:
        raise damaged(path, "not as it was written")
    return content


def _drawn(folder: Path, draw: Draw | None) -> dict[str, dict[str, Any]]:
    """Draw into a folder; the new files."""
    before = set(describe(folder))
    if draw is not None:
        draw(folder)
    return {name: known for name, known in describe(folder).items() if name not in before}


# --- what a run was made of -----------------------------------------------------------------------
def input_names(scenario: Scenario) -> dict[Path, str]:
    """Names for copies of the scenario's files, below a result's folder, each its own.

    Files of different folders may have the same name, and some file systems take ``A`` for ``a``.
    """
    names: dict[str, Path] = {}
    for path in scenario_files(scenario):
        name, number = path.name, 1
        while name.casefold() in map(str.casefold, names):
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        names[name] = path
    return {path: f"{INPUTS}/{name}" for name, path in names.items()}


def write_inputs(scenario: Scenario, folder: Path) -> dict[Path, str]:
    """The resolved scenario, with the files that it names copied beside it, by these names."""
    names = input_names(scenario)
    for path, name in names.items():
        (folder / INPUTS).mkdir(exist_ok=True)
        shutil.copyfile(path, folder / name)
    (folder / SCENARIO).write_text(dump_scenario(scenario, names), encoding="utf-8")
    return names


@cache
def software() -> dict[str, str | None]:
    """What produced a result."""
    return {
        "murmuration": __version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in _DEPENDENCIES},
    }


def _git_commit() -> str | None:
    """The commit of the checkout that runs, if it is one."""
    here = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (here / ".git").exists():
        return None
    words = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    command = [git, "-C", str(here), *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return answer.stdout.strip() or None
