"""Whose fault an exception is: what a plugin's code gets wrong is told in words, with its line."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Container
from pathlib import Path
from types import FrameType
from typing import Any

from numpy.typing import NDArray

#: What code may raise that fails: also what would end Python without a word.
RAISED = (Exception, SystemExit)


class CodeError(Exception):
    """What a rule or a loss gets wrong; the message says all."""


def told(error: BaseException) -> str:
    """The exception in one line; some libraries write a page."""
    if isinstance(error, CodeError):
        return str(error)
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first[:300]}".removesuffix(": ")


def frames_in(modules: Container[str], error: BaseException) -> list[tuple[FrameType, int]]:
    """The calls of these modules' code that an exception passed, the outermost first, and lines."""
    walk = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in walk if frame.f_globals.get("__name__") in modules]


def place_of(code: Any, line: int | None = None) -> str:
    """``own.py:12``: a line of a function, or where it begins."""
    return f"{Path(code.co_filename).name}:{line or code.co_firstlineno}"


def code_of(function: Callable[..., Any] | property) -> Any:
    """The code of a function, also of a property or below decorators."""
    inner: Any = function.fget if isinstance(function, property) else function
    return inspect.unwrap(inner).__code__


def failed(
    who: str,
    function: Callable[..., Any] | property,
    why: str | BaseException,
    where: str = "",
) -> str:
    """What messages about a plugin's function look like: ``graph ring: build failed (…): …``.

    An exception is told with the last line of the function's module that it passed.
    """
    code, line = code_of(function), None
    if isinstance(why, BaseException):
        lines = [line for _, line in frames_in((getattr(function, "__module__", ""),), why)]
        line, why = lines[-1] if lines else None, told(why)
    return f"{who}: {code.co_name} failed{where} ({place_of(code, line)}): {why}"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, which nobody can change by this name."""
    view = array.view()
    view.flags.writeable = False
    return view
