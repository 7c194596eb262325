"""Files that appear whole or not at all: made in a draft beside their place, then moved there.

A draft is a folder on which its process holds a lock.  A lock ends with its process, whatever ended
that, and is seen from every container that shares the folder, where the number of a process means
nothing: a draft without one was left behind by a kill, and is removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simulator.errors import StoreError

#: How the names of drafts begin, and those of folders for work in the system's temporary folder.
DRAFT = ".draft-"
SCRATCH = ".murmuration-"
_LOCK = ".lock"
#: Where locks cannot be had, a folder of this age (in seconds) has been left behind.
_OLD = 24 * 3600.0
#: Renames that may be lost to others who replace the same folder at the same time.
_ATTEMPTS = 1000
#: What a rename says of a place where something else is.
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


#: Where this process has swept up.
_tidied = set[tuple[Path, str]]()


# --- folders with a lock ------------------------------------------------------------------------
@contextmanager
def locked_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder that is ours while the context lasts, and then vanishes.

    A process sweeps up after others when it first comes to a place.
    """
    if (parent.absolute(), prefix) not in _tidied:
        _tidied.add((parent.absolute(), prefix))
        sweep_up(parent, prefix)
    folder, lock = _new_locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        try:
            _remove(folder)
        except BaseException:  # a signal, in the middle of it
            _remove(folder)
            raise
        finally:
            os.close(lock)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for work in the system's temporary folder."""
    with locked_folder(Path(tempfile.gettempdir()), SCRATCH) as folder:
        yield folder


def sweep_up(parent: Path, prefix: str) -> None:
    """Remove folders that processes left behind when they were killed."""
    with suppress(OSError):
        for folder in parent.glob(f"{prefix}*"):
            with suppress(OSError):
                _remove_if_dead(folder)


def sweep_up_scratch() -> None:
    """Remove what killed processes left in the system's temporary folder."""
    sweep_up(Path(tempfile.gettempdir()), SCRATCH)


class _NotOursError(Exception):
    """Somebody else holds the lock, or has just removed the folder."""


def _new_locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        try:
            return folder, _lock(folder)
        except _NotOursError:  # swept up by another process before we had the lock
            continue
        except BaseException:
            _remove(folder)
            raise


def _lock(folder: Path) -> int:
    """Lock a folder for this process; where the file system has no locks, go without."""
    path = folder / _LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise _NotOursError from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _NotOursError from None
        except OSError:
            return lock
        # Who had the lock before us may have removed the folder meanwhile.
        try:
            same = os.path.samestat(os.stat(path), os.fstat(lock))
        except FileNotFoundError:
            same = False
        if not same:
            raise _NotOursError
    except BaseException:
        os.close(lock)
        raise
    return lock


def _remove_if_dead(folder: Path) -> None:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        return
    if not (folder / _LOCK).exists():
        with suppress(OSError):  # just made, or not one of ours: only an empty one goes at once
            folder.rmdir()
        if folder.exists() and time.time() - about.st_mtime > _OLD:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        lock = _lock(folder)
    except _NotOursError:
        return
    try:
        if _locks_hold(lock) or time.time() - about.st_mtime > _OLD:
            _remove(folder)
    finally:
        os.close(lock)


def _locks_hold(lock: int) -> bool:
    """Does this file system have locks?"""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    """All that is in a folder, its lock last: half removed, it is still known as ours."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()


# --- writing ------------------------------------------------------------------------------------
@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn what the file system refuses into a plain error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{shown_path(place)}: results cannot be written: {reason}") from None


def shown_path(path: Path) -> str:
    """A path for a message: one that is far too long is cut."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 300 else f"{text[:150]} … {text[-100:]}"


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
        _move_in(draft, path, work)


@contextmanager
def drafting(parent: Path) -> Iterator[Path]:
    """A folder for drafts of what is in ``parent``, which is made if it is not there."""
    parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(parent, DRAFT) as work:
        yield work


def _move_in(draft: Path, place: Path, work: Path) -> None:
    """Put a draft in its place; what is there, perhaps just put by another process, goes away."""
    for attempt in range(_ATTEMPTS):
        try:
            os.replace(draft, place)
            return
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
        with suppress(FileNotFoundError):
            os.rename(place, work / f"old-{attempt}")
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(place))
