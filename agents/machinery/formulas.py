"""What a loss states, its value, slope and bend, from Python and behind pointers for compiled code.

It is compiled for each loss by itself; the steps of ``agents.proximal`` are compiled once for all.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery import code_cache, compiling
from agents.machinery.code_errors import RAISED, CodeError, failed
from agents.machinery.discovery import kind_of

Floats = NDArray[np.float64]


class LossError(CodeError):
    """A loss that fails: the message names the loss, the formula and its line."""


class Formulas:
    """A loss's value, slope and bend, from Python and, through pointers, from compiled code."""

    def __init__(self, loss: Any):
        self.loss = loss
        self._functions = _formulas_of(loss.__class__, tuple(loss.constants))
        self._constants = np.array([*loss.constants.values(), 0.0])
        numbers = {"C": len(self._constants)}
        self._record = self._functions.layout.record(numbers, {"constants": self._constants})
        self.address = int(self._record.ctypes.data)

    def each(self, label: str, s: Floats, y: Floats, out: Floats) -> None:
        """out ← values, slopes or bends of each prediction s and target y."""
        if not compiling.JIT:
            self._functions.functions[label](self.loss, s, y, out)
        else:
            places = s.ctypes.data, y.ctypes.data, out.ctypes.data
            pointer = self.pointer(label)
            if compiling.call(pointer, self.address, len(s), *places) == compiling.FAILED:
                raise self.fault(label, s, y) or self._failed(label, "in compiled code only")
        if not code_cache.is_ours(type(self.loss)) and np.isnan(out).any():
            fault = self.fault(label, s, y)
            if fault is not None:
                raise fault

    def pointer(self, label: str) -> int:
        """Of values, slopes or bends."""
        try:
            return self._functions.address(label, getattr(self.loss, _FORMULAS[label]))
        except compiling.CompilationError as error:
            fault = self.fault(label, np.zeros(1), np.ones(1))
            if fault is None:
                raise
            raise fault from error

    def fault(self, label: str, s: Floats, y: Floats) -> LossError | None:
        """What a formula gets wrong with one of these: in plain Python, which says where."""
        formula: Any = getattr(type(self.loss), _FORMULAS[label])
        for given in zip(s.tolist(), y.tolist(), strict=True):
            where = f" for the prediction {given[0]:g} and the target {given[1]:g}"
            try:
                answer = formula(self.loss, *given)
                if not isinstance(answer, Real):
                    raise TypeError(f"it must give a number, got {type(answer).__name__}")
            except RAISED as error:
                return self._failed(label, error, where)
            if math.isnan(answer) and np.isfinite(given).all():
                return self._failed(label, "it gives NaN", where)
        return None

    def _failed(self, label: str, why: str | BaseException, where: str = "") -> LossError:
        formula = getattr(type(self.loss), _FORMULAS[label])
        return LossError(failed(f"loss {self.loss.kind}", formula, why, where))


#: What the compiled forms are called, and the functions of a loss that they apply to arrays.
_FORMULAS = {"values": "value", "slopes": "slope", "bends": "bend"}


@cache
def _formulas_of(loss: Any, constants: tuple[str, ...]) -> compiling.Functions:
    """The formulas of a loss's class, ready to be compiled; ``constants`` are its parameters."""
    wrap = compiling.wrap_for(loss)
    parameters = ", ".join([*(f"s.constants[{k}]" for k in range(len(constants))), "0.0"])
    pairs = "floats(k, i), floats(a, i), floats(b, i)"

    def each(name: str) -> Callable[..., Any]:
        return wrap(compiling.bind(_each, name, formula=wrap(getattr(loss, name))))

    return compiling.Functions(
        f"loss_{kind_of(loss)}",
        compiling.Layout({"C": int}, {"constants": (float, ("C",))}),
        {label: each(name) for label, name in _FORMULAS.items()},
        {label: f"f_{label}(Constants({parameters}), {pairs})" for label in _FORMULAS},
        code_cache.source_of(loss),
        {"Constants": namedtuple("Constants", [*constants, "end"])},
    )


def formula(c: Any, s: float, y: float) -> float:
    """ℓ, or one of its derivatives; ``bind`` puts the loss's own in the place of this name."""
    raise NotImplementedError


def _each(c: Any, s: Floats, y: Floats, out: Floats) -> None:
    for k in range(len(out)):
        out[k] = formula(c, s[k], y[k])
