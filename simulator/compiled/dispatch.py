"""How the loops of ``gossip`` and ``rounds`` come to the rule at hand: by the record's type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import overload


def implement(placeholder: Callable[..., Any], layout: np.dtype[Any], function: Any) -> None:
    """Let compiled calls of ``placeholder`` for a run of this layout be calls of ``function``."""

    def choose(run: types.Type, *others: types.Type) -> Callable[..., Any] | None:
        return function.py_func if run == from_dtype(layout) else None

    choose.__signature__ = inspect.signature(function.py_func)  # type: ignore[attr-defined]
    overload(placeholder)(choose)
