"""A run's state as one record of numbers and of the addresses of its arrays.

Compiled functions are handed the record, which is a pointer.  A tuple of arrays, Numba's usual
way, would be unpacked and reference-counted at every call: measured, 4.5 µs a message instead of
a fraction of one, and a minute to compile.  The engine keeps the arrays alive, and their types
and lengths are written here and in the modules' ``view`` calls: nothing checks them at run time.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic
from numpy.typing import NDArray

#: The type of a record's field that holds the address of an array.
ADDRESS = np.int64
Fields = list[tuple[str, Any]]


def attach(run: NDArray[Any], name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Write an array's address into the record; the caller keeps the array."""
    assert array.flags.c_contiguous, name
    run[name] = array.ctypes.data
    return array


@intrinsic
def _pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@njit(cache=True)
def view(address: int, count: int, dtype: Any) -> Any:
    """The array (count,) at an address."""
    place: Any = _pointer(address)  # type: ignore[call-arg, unused-ignore]
    return carray(place, count, dtype)


@njit(cache=True)
def row(address: int, i: int, width: int) -> Any:
    """Row i of an array of floats (…, width)."""
    place: Any = _pointer(address + 8 * width * i)  # type: ignore[call-arg, unused-ignore]
    return carray(place, width, np.float64)
