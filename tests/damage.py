"""What may happen to a stored file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def flip(path: Path) -> None:
    """Change one byte in the middle; the size stays."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "garbage": lambda path: path.write_bytes(os.urandom(300)),
    "another byte": flip,
    "missing": lambda path: path.unlink(),
    "a folder": _folder_instead,
}
