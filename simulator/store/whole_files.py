"""Files that appear whole or not at all, and are checked when they are read.

They are made in a draft beside their place, and then moved there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from simulator.errors import DamagedError, MissingError, StoreError

#: How the names of drafts begin, and those of folders for work in the system's temporary folder.
DRAFT = ".draft-"
SCRATCH = "murmuration-"
#: Seconds without a change after which a draft has been left behind by a kill.
_WEEK = 7 * 24 * 3600.0
#: How often a folder is moved in again that another process has just put there as well.
_ATTEMPTS = 100


# --- folders that vanish --------------------------------------------------------------------------
@contextmanager
def scratch(parent: Path | None = None, prefix: str = SCRATCH) -> Iterator[Path]:
    """A folder for work, by default in the system's temporary folder."""
    _sweep_up(parent or Path(tempfile.gettempdir()), prefix)
    with tempfile.TemporaryDirectory(
        prefix=prefix, dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


@contextmanager
def drafting(parent: Path) -> Iterator[Path]:
    """A folder for drafts of what is in ``parent``, which is made if it is not there."""
    parent.mkdir(parents=True, exist_ok=True)
    with scratch(parent, DRAFT) as work:
        yield work


@cache
def _sweep_up(parent: Path, prefix: str) -> None:
    """Remove what was left behind by kills; a process looks once at a place."""
    for folder in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # another process is sweeping too
            newest = max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
            if time.time() - newest > _WEEK:
                shutil.rmtree(folder)


# --- writing --------------------------------------------------------------------------------------
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
    """A draft of ``folder`` that takes its place at the end, or vanishes on failure."""
    with writing(folder), drafting(folder.parent) as work:
        draft = work / "new"
        draft.mkdir()
        yield draft
        _move_in(draft, folder, work)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """A draft of the file ``path`` that takes its place at the end, or vanishes on failure."""
    with writing(path), drafting(path.parent) as work:
        draft = work / path.name
        yield draft
        os.replace(draft, path)


def _move_in(draft: Path, folder: Path, work: Path) -> None:
    """Put a draft in its place; what is there goes aside, to vanish with the other drafts."""
    for attempt in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            os.rename(folder, work / f"old-{attempt}")
        try:
            os.rename(draft, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _ATTEMPTS - 1:
                raise


# --- hashes ---------------------------------------------------------------------------------------
def hash_of(content: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file that must be there."""
    try:
        return _sha256(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of all files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    known = [{"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in paths]
    names = [path.relative_to(folder).as_posix() for path in paths]
    return dict(zip(names, known, strict=True))


# --- reading what was written ---------------------------------------------------------------------
def damaged(path: Path, why: str) -> DamagedError:
    """What is wrong with a stored file."""
    return DamagedError(f"{path}: damaged: {why}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the file system says into what is wrong with a stored file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(f"{path}: no such file") from None
    except OSError as error:
        raise damaged(path, f"cannot be read: {error.strerror}") from None


def check_file(path: Path, known: dict[str, Any], content: bool) -> None:
    """Is a file there, of the size that was written, and with the same content?"""
    with reading(path):
        size = path.stat().st_size
        if size != known["bytes"]:
            raise damaged(path, f"{size} bytes where {known['bytes']} were written")
        if content and _sha256(path) != known["sha256"]:
            raise damaged(path, "not as it was written")
