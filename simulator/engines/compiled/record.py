"""A run's state as one record of numbers and of the addresses of its arrays.

Compiled functions are handed the record, which is a pointer.  A tuple of arrays, Numba's usual
way, would be unpacked and reference-counted at every call: measured, 4.5 µs a message instead of
a fraction of one, and a minute to compile.  The engine keeps the arrays alive; their types and
lengths are checked where they are attached (``attach``), and every index where
``MURMURATION_CHECK_BOUNDS=1`` asks for it.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import kernel
from agents.machinery.intrinsics import array_at, prefetch

#: The type of a record's field that holds the address of an array.
ADDRESS = np.int64
Fields = list[tuple[str, Any]]


def attach(
    run: NDArray[Any], name: str, array: NDArray[Any], dtype: Any, shape: tuple[int, ...]
) -> NDArray[Any]:
    """Write an array's address into the record; the caller keeps the array."""
    if array.dtype != np.dtype(dtype) or array.shape != shape or not array.flags.c_contiguous:
        raise TypeError(
            f"{name} must be a contiguous array of {np.dtype(dtype)} with shape {shape}, "
            f"got {array.dtype} {array.shape}"
        )
    run[name] = array.ctypes.data
    return array


#: ``view(address, count, dtype)``: the array (count,) at an address.
view = array_at

#: Bytes that come from memory at a time, and of how many lines at most one asks in advance.
LINE, LINES = 64, 6


@kernel
def ask(address: int, size: int) -> None:
    """Ask for so many bytes, which will be needed soon; of many, for the first few lines."""
    last = address + min(size, LINES * LINE) - 1
    for line in range(address, last, LINE):
        prefetch(line)
    prefetch(last)
