"""Where compiled code is kept: in folders named by the hash of all sources that it may depend on.

Numba's own cache compares the modification time of a function's file, and misses changes in the
files of functions that it calls.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import MAGIC_NUMBER
from itertools import accumulate
from pathlib import Path
from typing import Any

#: Check every index in the engines and the built-in rules; plugins' are always checked.
CHECKED = os.environ.get("MURMURATION_CHECK_BOUNDS", "") not in ("", "0")

#: Folders of compiled code to keep, and seconds for which one that was used may still be in use.
KEPT, IN_USE = 60, 24 * 3600.0

#: What code depends on besides what is in ``agents``, by the name of its module or of a package
#: around it: the folder of its sources, or their content.
_SOURCES: dict[str, Path | bytes] = {}


def register_sources(name: str, sources: Path | bytes) -> None:
    """Say what compiled code of a module, or of the modules of a package, is made of."""
    _SOURCES[name] = sources


def _registered(module: str) -> bytes:
    """What was registered for a module and the packages around it."""
    names = accumulate(module.split("."), "{}.{}".format)
    sources = [_SOURCES[name] for name in names if name in _SOURCES]
    return b"".join(_content_of(s) if isinstance(s, Path) else s for s in sources)


@cache
def _content_of(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if "__pycache__" not in path.parts:  # compiled code lies there, with wrappers made for it
            digest.update(path.read_bytes())
    return digest.digest()


@cache
def _common() -> bytes:
    """What all compiled code depends on."""
    import numba

    ours = _content_of(Path(__file__).resolve().parents[1])
    return MAGIC_NUMBER + numba.__version__.encode() + bytes([CHECKED]) + ours


def is_ours(thing: type) -> bool:
    """Is this class one of the built-in ones?"""
    return thing.__module__.startswith("agents.")


def source_of(thing: type) -> bytes:
    """What the compiled code of a class depends on, besides what all code does.

    Its name is part of it: compiled code looks its module up by name, and several classes of one
    file may have the same kind.  So are the classes that it is made from.
    """
    return b"".join(map(_own_source_of, thing.__mro__[:-1]))


def _own_source_of(thing: type) -> bytes:
    name, registered = f"{thing.__module__}.{thing.__qualname__}", _registered(thing.__module__)
    if registered:
        return name.encode() + registered
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    return name.encode() + (_typed_in(thing) if file is None else Path(file).read_bytes())


def _typed_in(thing: type) -> bytes:
    """What stands for the source of a class of a notebook: its code, and what that names there.

    A function or a number of another cell may have changed since, and compiled code must follow.
    """
    own = vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}
    waiting: list[Any] = [*vars(thing).items()]
    seen, parts = set[str](), list[Any]()
    while waiting:
        name, value = waiting.pop()
        function = getattr(value, "py_func", value)  # of what @numba.njit made
        code = getattr(function, "__code__", None)
        if code is not None and getattr(function, "__module__", "") == thing.__module__:
            parts.append((name, code.co_code, code.co_consts, code.co_names))
            new = [other for other in code.co_names if other in own and other not in seen]
            seen.update(new)
            waiting += [(other, own[other]) for other in new]
        elif isinstance(value, bool | int | float | str | tuple):
            parts.append((name, value))
    return repr(parts).encode()


@cache
def _cache_root() -> Path:
    """The first place that can be written: beside the code, the user's cache, a temporary one."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(chosen)] if chosen else []
    places += [Path(__file__).resolve().parent / "__pycache__", home]
    for place in places:
        folder = place / "murmuration"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    folder = Path(tempfile.gettempdir()) / f"murmuration-cache-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    print(f"compiled code is kept in {folder}: no other place is writable", file=sys.stderr)
    return folder


def folder_of(function: Callable[..., Any]) -> Path:
    """Where the compiled code of a function is kept."""
    return cache_folder(_registered(function.__module__))


@cache
def cache_folder(content: bytes) -> Path:
    """Where code compiled from our sources and ``content`` is kept; old folders are removed."""
    root = _cache_root()
    folder = root / hashlib.sha256(_common() + content).hexdigest()[:20]
    if folder.exists():
        with suppress(OSError):
            os.utime(folder)  # the oldest are those that were not used for longest
        return folder
    folder.mkdir(exist_ok=True)
    for old in sorted(root.iterdir(), key=_used)[:-KEPT]:
        if time.time() - _used(old) > IN_USE:
            shutil.rmtree(old, ignore_errors=True)
    _announce()
    return folder


@cache
def _announce() -> None:
    """Say once why nothing seems to happen; MURMURATION_QUIET=1 keeps silent."""
    if not os.environ.get("MURMURATION_QUIET"):
        print("compiling, once; this takes 10 to 30 s …", file=sys.stderr)


def _used(path: Path) -> float:
    """When a folder was last used."""
    try:
        return path.stat().st_mtime
    except OSError:  # another process has just removed it
        return 0.0


@contextmanager
def cached_in(folder: Path) -> Iterator[None]:
    """What is compiled meanwhile is kept in this folder."""
    from numba import config  # type: ignore[attr-defined, unused-ignore]

    settings: Any = config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        settings.CACHE_DIR = before
