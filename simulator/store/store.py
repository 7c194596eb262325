"""The store of results: ``results/<name>-<hash8>/``, filled and reused by every command.

A result is a folder of files.  ``manifest.json`` is among them when it is complete, and holds the
size and the SHA-256 of every other one, and of itself: what is not as it was written is noticed
when it is read, and computed again.  The store knows files only: it builds no problems and draws
nothing; ``results`` does that.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import pandas as pd

import simulator
from simulator.errors import DamagedError, MissingError, StoreError
from simulator.scenario.files import dump_scenario, scenario_files, scenario_hash_payload
from simulator.scenario.schema import Scenario
from simulator.store.drafts import drafting, replacing, replacing_file, shown_path, writing

if TYPE_CHECKING:
    from simulator.problem.problem import Floats
    from simulator.runs.plugins import Plugin

#: Raised whenever numbers change, so that old results are not taken for new ones.
RESULTS_VERSION = 2
#: The layout of a result's folder.
SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
TRACE = "trace.csv"
AGENTS = "agents.csv"
MODELS = "models.npz"
_DEPENDENCIES = ("simpy", "numpy", "scipy", "networkx", "pandas", "numba", "pydantic")
#: Seconds for which a result that was there may be away while another process replaces it.
_PATIENCE = 2.0

T = TypeVar("T")
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


class Store:
    """Results below one root folder."""

    def __init__(self, root: Path | str = "results"):
        self.root = Path(root)

    # --- where things are ---
    def folder(self, scenario: Scenario, plugin: Plugin | None = None) -> Path:
        """Where the result of a scenario lives, whether it is there or not."""
        return self.place(scenario.name, digest(scenario, plugin))

    def place(self, name: str, full_hash: str) -> Path:
        """Where the result of this name and hash lives, whether it is there or not."""
        return place_in(self.root, name, full_hash)

    def has(self, folder: Path, reads: Iterable[str] | None = ()) -> bool:
        """Is there a complete result?  See ``check``."""
        try:
            self.check(folder, reads)
        except (MissingError, DamagedError):
            return False
        return True

    def check(self, folder: Path, reads: Iterable[str] | None = ()) -> None:
        """Raise MissingError unless a result is there, DamagedError unless it is whole.

        Every file must have its size, and those that will be read (all of them for None) the
        content that was written.
        """
        manifest = read_manifest(folder)
        wanted = set(manifest["files"] if reads is None else reads)
        for name, known in manifest["files"].items():
            try:
                _check_file(folder / name, known, content=name in wanted)
            except MissingError:
                raise _damaged(folder / name, "the file is missing") from None

    def check_writable(self) -> None:
        """Find out before a long run, not after it, that results cannot be written."""
        with writing(self.root):
            place = self.root
            while not place.exists() and place != place.parent:
                place = place.parent
            with tempfile.TemporaryFile(dir=place):
                pass
            for part in self.root.parts:  # one that is too long is refused, also if it is not there
                with suppress(FileNotFoundError):
                    (place / part).lstat()

    # --- writing ---
    def save(
        self,
        scenario: Scenario,
        stored: Stored,
        *,
        full_hash: str,
        wall_time: float,
        plugin: Plugin | None = None,
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
            hashes = {path: sha256_of(draft / name) for path, name in copies.items()}
            if _digest(scenario, plugin, hashes) != full_hash:
                names = ", ".join(str(path) for path in copies)
                raise StoreError(
                    f"{folder}: not stored: the scenario's files changed during the run: {names}"
                )
            stored.trace.to_csv(draft / TRACE, index=False, lineterminator="\n")
            stored.agents.to_csv(draft / AGENTS, index=False, lineterminator="\n")
            np.savez(draft / MODELS, allow_pickle=False, **stored.arrays)
            files = _describe(draft)
            figures = _drawn(draft, draw)
            manifest = {
                "schema_version": SCHEMA_VERSION,
                "results_version": RESULTS_VERSION,
                "hash": full_hash,
                "seed": scenario.seed,
                "plugin": plugin and {"rules": sorted(plugin.rules), "sha256": plugin.sha256},
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
        manifest = self.manifest(folder)
        try:
            for name, known in manifest["figures"].items():
                _check_file(folder / name, known, content=True)
        except (MissingError, DamagedError):
            return False
        return bool(manifest["figures"])

    def add_figures(self, folder: Path, draw: Draw) -> None:
        """Draw the figures of a result that was stored without them."""
        manifest = self.manifest(folder)
        with writing(folder), drafting(self.root) as work:
            draft = work / "figures"
            draft.mkdir()
            manifest["figures"] = _drawn(draft, draw)
            write_manifest(draft, manifest)
            for name in [*manifest["figures"], MANIFEST]:
                os.replace(draft / name, folder / name)

    # --- reading ---
    def manifest(self, folder: Path) -> dict[str, Any]:
        """The manifest of a complete result."""
        return _patiently(lambda: read_manifest(folder))

    def trace(self, folder: Path) -> pd.DataFrame:
        """The samples, every number exactly as it was written, whatever the version of pandas."""
        return _patiently(lambda: self._table(folder, TRACE, dtype=str).astype("float64"))

    def arrays(self, folder: Path) -> dict[str, Floats]:
        """The models of all agents."""
        return _patiently(lambda: self._arrays(folder))

    def load(self, folder: Path) -> Stored:
        """All that is kept of a run."""
        return _patiently(
            lambda: Stored(
                self._table(folder, TRACE),
                self._table(folder, AGENTS, converters={"agent": str}),
                read_manifest(folder)["summary"],
                self._arrays(folder),
            )
        )

    def _table(self, folder: Path, name: str, **how: Any) -> pd.DataFrame:
        content = _read(folder, name, read_manifest(folder))
        try:
            return pd.read_csv(io.BytesIO(content), **how)
        except ValueError as error:
            raise _damaged(folder / name, f"no table: {error}") from None

    def _arrays(self, folder: Path) -> dict[str, Floats]:
        content = _read(folder, MODELS, read_manifest(folder))
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, EOFError, BadZipFile, AttributeError, TypeError) as error:
            raise _damaged(folder / MODELS, f"no arrays: {error}") from None


# --- hashes and names ---------------------------------------------------------------------------
def digest(scenario: Scenario, plugin: Plugin | None = None) -> str:
    """SHA-256 of all that numbers depend on: the scenario, its files, the plugin, our version."""
    return _digest(scenario, plugin, {path: sha256_of(path) for path in scenario_files(scenario)})


def _digest(scenario: Scenario, plugin: Plugin | None, hashes: dict[Path, str]) -> str:
    payload = {
        "results_version": RESULTS_VERSION,
        "plugin": None if plugin is None else plugin.sha256,
        "scenario": scenario_hash_payload(scenario, hashes),
    }
    return hash_of(payload)


def hash_of(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file that must be there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def place_in(root: Path, name: str, full_hash: str) -> Path:
    """The folder for a hash: eight digits of it, or more where another one begins with the same."""
    for digits in range(8, len(full_hash), 4):
        folder = root / f"{name}-{full_hash[:digits]}"
        try:
            other = read_manifest(folder)["hash"]
        except (MissingError, DamagedError):
            return folder
        if other == full_hash:
            return folder
    return root / f"{name}-{full_hash}"


# --- the manifest -------------------------------------------------------------------------------
def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """The last file of a folder: its presence means that the folder is complete.

    It is JSON that people can read, with the SHA-256 of its own content.
    """
    whole = {**content, "sha256": hash_of(content)}
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, as it was written by this version of the program."""
    path = folder / MANIFEST
    try:
        content = json.loads(_regular_bytes(path))
    except (ValueError, RecursionError):
        raise _damaged(path, "no JSON") from None
    if not isinstance(content, dict) or "schema_version" not in content:
        raise _damaged(path, "no manifest")
    versions = (content["schema_version"], content.get("results_version"))
    if versions != (SCHEMA_VERSION, RESULTS_VERSION):
        raise DamagedError(
            f"{path}: of another version of the program (layout {versions[0]}, results "
            f"{versions[1]}; this one has {SCHEMA_VERSION} and {RESULTS_VERSION})"
        )
    if content.pop("sha256", None) != hash_of(content):
        raise _damaged(path, "not as it was written")
    return content


def _describe(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of all files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in paths
    }


def _drawn(folder: Path, draw: Draw | None) -> dict[str, dict[str, Any]]:
    """Draw into a folder; the new files."""
    before = set(_describe(folder))
    if draw is not None:
        draw(folder)
    return {name: known for name, known in _describe(folder).items() if name not in before}


# --- reading what was written -------------------------------------------------------------------
def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(f"{shown_path(path)}: damaged: {why}")


def _regular_bytes(path: Path) -> bytes:
    """The content of a file; a pipe or a device could block for ever, so look before opening."""
    with _reading(path):
        if not stat.S_ISREG(path.stat().st_mode):
            raise _damaged(path, "not a regular file")
        return path.read_bytes()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what the file system says into what is wrong with a stored file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise MissingError(f"{shown_path(path)}: no such file") from None
        raise _damaged(path, f"cannot be read: {error.strerror}") from None


def _check_file(path: Path, known: dict[str, Any], content: bool) -> None:
    """Is a file there, of the size that was written, and with the same content?"""
    with _reading(path):
        found, size = path.stat(), known["bytes"]
        if not stat.S_ISREG(found.st_mode):
            raise _damaged(path, "not a regular file")
        if found.st_size != size:
            raise _damaged(path, f"{found.st_size} bytes where {size} were written")
        if content:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 != known["sha256"]:
                raise _damaged(path, "not as it was written")


def _read(folder: Path, name: str, manifest: dict[str, Any]) -> bytes:
    """A file of a result, checked."""
    content = _regular_bytes(folder / name)
    if hashlib.sha256(content).hexdigest() != manifest["files"][name]["sha256"]:
        raise _damaged(folder / name, "not as it was written")
    return content


def write_checked(path: Path, text: str, full_hash: str) -> None:
    """A file of its own: a line with its SHA-256 and the hash of what it was made from, then text.

    Written beside and moved into place.
    """
    with replacing_file(path) as draft:
        draft.write_text(f"{_first_line(text, full_hash)}\n{text}", encoding="utf-8")


def read_checked(path: Path, full_hash: str) -> str:
    """The text that ``write_checked`` wrote."""
    try:
        first, _, text = _regular_bytes(path).decode("utf-8").partition("\n")
    except UnicodeDecodeError:
        raise _damaged(path, "no text") from None
    if first != _first_line(text, full_hash):
        raise _damaged(path, "not as it was written")
    return text


def _first_line(text: str, full_hash: str) -> str:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return f"# layout {SCHEMA_VERSION}, of {full_hash}, SHA-256 {sha256}"


def _patiently(read: Callable[[], T]) -> T:
    """Read what is known to be there; another process may be replacing it just now."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return read()
        except MissingError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)


# --- what a run was made of ---------------------------------------------------------------------
def input_names(scenario: Scenario) -> dict[Path, str]:
    """Names for copies of the scenario's files, in ``inputs/``, each its own.

    Files of different folders may have the same name, and some file systems take ``A`` for ``a``.
    """
    names: dict[Path, str] = {}
    taken = set[str]()
    for path in scenario_files(scenario):
        name, number = path.name, 1
        while name.casefold() in taken:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        taken.add(name.casefold())
        names[path] = f"inputs/{name}"
    return names


def write_inputs(scenario: Scenario, folder: Path) -> dict[Path, str]:
    """The resolved scenario, with the files that it names copied beside it, by these names."""
    names = input_names(scenario)
    for path, name in names.items():
        (folder / "inputs").mkdir(exist_ok=True)
        shutil.copyfile(path, folder / name)
    (folder / "scenario.yaml").write_text(dump_scenario(scenario, names), encoding="utf-8")
    return names


@cache
def software() -> dict[str, str | None]:
    """What produced a result."""
    return {
        "murmuration": simulator.__version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in _DEPENDENCIES},
    }


def _git_commit() -> str | None:
    """The commit of the checkout that runs, if it is one."""
    here = Path(__file__).resolve().parent.parent
    git = shutil.which("git")
    if git is None or not (here / ".git").exists():
        return None
    command = [git, "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return answer.stdout.strip() or None
