"""Files that are checked when they are read: SHA-256, sizes, and words for what is damaged."""

from __future__ import annotations

import errno
import hashlib
import json
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from simulator.errors import DamagedError, MissingError, StoreError
from simulator.store.drafts import replacing_file, shown_path

#: Seconds for which a result that was there may be away while another process replaces it.
_PATIENCE = 2.0

T = TypeVar("T")


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


def describe(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of all files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in paths
    }


# --- reading what was written -------------------------------------------------------------------
def damaged(path: Path, why: str) -> DamagedError:
    """What is wrong with a stored file."""
    return DamagedError(f"{shown_path(path)}: damaged: {why}")


def regular_bytes(path: Path) -> bytes:
    """The content of a file; a pipe or a device could block for ever, so look before opening."""
    with _reading(path):
        if not stat.S_ISREG(path.stat().st_mode):
            raise damaged(path, "not a regular file")
        return path.read_bytes()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what the file system says into what is wrong with a stored file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise MissingError(f"{shown_path(path)}: no such file") from None
        raise damaged(path, f"cannot be read: {error.strerror}") from None


def check_file(path: Path, known: dict[str, Any], content: bool) -> None:
    """Is a file there, of the size that was written, and with the same content?"""
    with _reading(path):
        found, size = path.stat(), known["bytes"]
        if not stat.S_ISREG(found.st_mode):
            raise damaged(path, "not a regular file")
        if found.st_size != size:
            raise damaged(path, f"{found.st_size} bytes where {size} were written")
        if content:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if sha256 != known["sha256"]:
                raise damaged(path, "not as it was written")


def read_known(path: Path, known: dict[str, Any]) -> bytes:
    """The content of a file, if it is what was written."""
    content = regular_bytes(path)
    if hashlib.sha256(content).hexdigest() != known["sha256"]:
        raise damaged(path, "not as it was written")
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
        first, _, text = regular_bytes(path).decode("utf-8").partition("\n")
    except UnicodeDecodeError:
        raise damaged(path, "no text") from None
    if first != _first_line(text, full_hash):
        raise damaged(path, "not as it was written")
    return text


def _first_line(text: str, full_hash: str) -> str:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return f"# of {full_hash}, SHA-256 {sha256}"


def patiently(read: Callable[[], T]) -> T:
    """Read what is known to be there; another process may be replacing it just now."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return read()
        except MissingError:
            if time.monotonic() > end:
                raise
        time.sleep(0.01)
