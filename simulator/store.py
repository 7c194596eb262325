"""The store of results: ``results/<name>-<hash8>/``, filled and reused by every command.

Everything is written beside and moved into place; ``manifest.json`` is written last, so its
presence means that the result is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import simulator
from simulator.errors import StoreError
from simulator.plugins import Plugin
from simulator.scenario import Scenario
from simulator.scenario_file import dump_scenario, scenario_files, scenario_hash_payload
from simulator.seeds import Streams
from simulator.simulation import Result
from simulator.tasks import build_problem

#: Raised whenever numbers change, so that old results are not taken for new ones.
RESULTS_VERSION = 2
#: The layout of a result's folder.
SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
_DEPENDENCIES = ("simpy", "numpy", "scipy", "networkx", "pandas", "numba", "pydantic")


class Store:
    """Results below one root folder."""

    def __init__(self, root: Path | str = "results"):
        self.root = Path(root)

    def folder(self, scenario: Scenario, plugin: Plugin | None = None) -> Path:
        """Where the result of a scenario lives, whether it is there or not."""
        return self.root / f"{scenario.name}-{digest(scenario, plugin)[:8]}"

    def has(self, folder: Path) -> bool:
        """Is there a complete result?"""
        return (folder / MANIFEST).is_file()

    def check_writable(self) -> None:
        """Find out before a long run, not after it, that results cannot be written."""
        place = self.root
        while not place.exists() and place != place.parent:
            place = place.parent
        with writing(self.root), tempfile.TemporaryFile(dir=place):
            pass

    def save(
        self, result: Result, wall_time: float, plugin: Plugin | None = None, figures: bool = True
    ) -> Path:
        """Write a result; one that is there already is replaced when the new one is complete."""
        folder = self.folder(result.scenario, plugin)
        with replacing(folder) as draft:
            write_inputs(result.scenario, draft)
            result.trace.to_csv(draft / "trace.csv", index=False, lineterminator="\n")
            result.agents.to_csv(draft / "agents.csv", index=False, lineterminator="\n")
            arrays = {"models": result.models, "solitary": result.problem.solitary}
            if result.optimum is not None:
                arrays["optimum"] = result.optimum
            if result.problem.targets is not None:
                arrays["targets"] = result.problem.targets
            np.savez(draft / "models.npz", allow_pickle=False, **arrays)
            if figures:
                from simulator.figures import draw_run

                draw_run(result, draft)
            manifest = {
                "schema_version": SCHEMA_VERSION,
                "results_version": RESULTS_VERSION,
                "hash": digest(result.scenario, plugin),
                "seed": result.scenario.seed,
                "plugin": plugin and {"rules": sorted(plugin.rules), "sha256": plugin.sha256},
                "wall_time": wall_time,
                "software": software(),
                "summary": result.summary,
            }
            write_json(draft / MANIFEST, manifest)
        return folder

    def manifest(self, folder: Path) -> dict[str, Any]:
        """The manifest of a complete result."""
        try:
            manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            manifest["summary"]["metrics"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{folder / MANIFEST}: cannot be read: {error}; use --force") from None
        return manifest

    def load(self, scenario: Scenario, folder: Path) -> Result:
        """A stored result; the problem is built again from the scenario."""
        manifest = self.manifest(folder)
        try:
            with np.load(folder / "models.npz", allow_pickle=False) as arrays:
                models = arrays["models"]
                optimum = arrays.get("optimum", None)
            trace = pd.read_csv(folder / "trace.csv")
            agents = pd.read_csv(folder / "agents.csv")
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(f"{folder}: cannot be read: {error}; use --force") from None
        problem = build_problem(scenario, Streams(scenario.seed, scenario.problem_seed))
        return Result(scenario, problem, trace, agents, manifest["summary"], models, optimum)

    def add_figures(self, result: Result, folder: Path) -> None:
        """Draw the figures of a result that was stored without them."""
        from simulator.figures import draw_run

        with writing(folder), tempfile.TemporaryDirectory(dir=self.root, prefix=".draft-") as draft:
            draw_run(result, Path(draft))
            for figure in sorted(Path(draft).iterdir()):
                os.replace(figure, folder / figure.name)


def digest(scenario: Scenario, plugin: Plugin | None = None) -> str:
    """SHA-256 of all that numbers depend on: the scenario, its files, the plugin, our version."""
    hashes = {path: _sha256(path) for path in scenario_files(scenario)}
    payload = {
        "results_version": RESULTS_VERSION,
        "plugin": None if plugin is None else plugin.sha256,
        "scenario": scenario_hash_payload(scenario, hashes),
    }
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_inputs(scenario: Scenario, folder: Path) -> None:
    """The resolved scenario, with the files that it names copied beside it."""
    names: dict[Path, str] = {}
    for path in scenario_files(scenario):
        stem, number = path.name, 1
        while stem in [*names.values(), "scenario.yaml"]:
            number += 1
            stem = f"{path.stem}-{number}{path.suffix}"
        names[path] = f"inputs/{stem}"
        (folder / "inputs").mkdir(exist_ok=True)
        shutil.copyfile(path, folder / "inputs" / stem)
    (folder / "scenario.yaml").write_text(dump_scenario(scenario, names), encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """JSON that people can read, and that is the same bytes for the same content."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn what the file system refuses into a plain error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{place}: results cannot be written: {reason}") from None


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A draft folder beside ``folder`` that takes its place at the end, or vanishes on failure."""
    with writing(folder):
        prefix = _draft_prefix(folder.parent)
        draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))
        try:
            draft.chmod(0o755)
            yield draft
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))
            if folder.exists():
                os.rename(folder, old / "old")
            os.rename(draft, folder)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """A draft beside ``path`` that takes its place at the end, or vanishes on failure."""
    with writing(path):
        prefix = _draft_prefix(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=prefix) as folder:
            draft = Path(folder) / path.name
            yield draft
            os.replace(draft, path)


def _draft_prefix(root: Path) -> str:
    """How drafts of this process begin; the folder is made, and old drafts are swept up."""
    root.mkdir(parents=True, exist_ok=True)
    _sweep_up(root)
    return f".draft-{os.getpid()}-"


def _sweep_up(root: Path) -> None:
    """Remove drafts of processes that were killed."""
    for draft in root.glob(".draft-*-*"):
        process = draft.name.split("-")[1]
        if process.isdigit() and not _alive(int(process)):
            shutil.rmtree(draft, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


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
