"""Solutions that are asked for again and again: runs on one network share one problem.

A sweep over delays, a comparison, a figure of several rules all need the same few optima.  What a
process has solved it remembers by the content of what was asked, so that nobody has to hand
solutions around and no solution can belong to another problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
P = ParamSpec("P")

#: How many solutions a function remembers, and how many numbers a solution may have: at most 50 MB.
MOST = 64
LARGEST = 100_000


def remembered(solve: Callable[P, Floats]) -> Callable[P, Floats]:
    """``solve``, a pure function of arrays and values, which solves nothing twice."""
    solutions: dict[Hashable, Floats] = {}
    turn = Lock()  # workers may be threads

    @wraps(solve)
    def recall(*args: P.args, **kwargs: P.kwargs) -> Floats:
        key = tuple(_content(part) for part in (*args, *sorted(kwargs.items())))
        with turn:
            found = solutions.pop(key, None)
        if found is None:
            found = solve(*args, **kwargs)
        if found.size <= LARGEST:
            with turn:
                solutions[key] = found  # the last one in: the first to go is the longest unused
                while len(solutions) > MOST:
                    del solutions[next(iter(solutions))]
        return found.copy()

    return recall


def _content(part: Any) -> Hashable:
    """What tells an argument from another; of an object with fields, its class and their values."""
    if isinstance(part, np.ndarray):
        data = np.ascontiguousarray(part)
        return part.shape, part.dtype.str, hashlib.blake2b(data.tobytes()).digest()
    if isinstance(part, csr_array):
        return part.shape, *(_content(array) for array in (part.data, part.indices, part.indptr))
    if isinstance(part, tuple):
        return tuple(_content(item) for item in part)
    return type(part), repr(part)
