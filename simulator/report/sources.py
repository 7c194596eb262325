"""What a page is made from: folders of the store, each a run or a sweep, found whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import MissingError, SimulatorError
from simulator.store.store import MANIFEST, check_files, read_manifest


@dataclass(frozen=True)
class Source:
    """A folder of the store and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def is_run(self) -> bool:
        """A run, or else a sweep, a comparison or a frontier."""
        return "summary" in self.manifest


def find(path: Path) -> Source:
    """A whole result, sweep or comparison; SimulatorError says what is wrong with it."""
    folder = path.parent if path.name == MANIFEST else path
    try:
        manifest = read_manifest(folder)
    except MissingError:
        what = f"it has no {MANIFEST}" if folder.is_dir() else "no such folder"
        raise SimulatorError(f"{folder}: no result: {what}") from None
    check_files(folder, manifest)
    return Source(folder, manifest)
