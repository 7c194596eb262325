"""One guard around all calls of a plugin's code: what it raises ends in one message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from agents.machinery.code_errors import RAISED, CodeError, frames_in, place_of, told
from agents.machinery.discovery import kind_of
from simulator.errors import SimulatorError
from simulator.scenario.kinds import BASES, Kinds


@contextmanager
def blaming(plugins: Any) -> Iterator[None]:
    """What comes out of a plugin's code is an error of the user's, also what would end Python.

    ``plugins`` has their ``kinds``, or is None.
    """
    try:
        yield
    except SimulatorError:
        raise
    except CodeError as error:
        raise SimulatorError(str(error)) from error
    except RAISED as error:
        message = None if plugins is None else _message(plugins.kinds, error)
        if message is None:
            raise
        raise SimulatorError(message) from error


def _message(kinds: Kinds, error: BaseException) -> str | None:
    """What failed where, if a plugin's code did: ``graph ring: build failed (own.py:12): …``."""
    modules = {thing.__module__ for family in vars(kinds).values() for thing in family}
    raised: BaseException | None = error
    while raised is not None:
        frames = frames_in(modules, raised)
        if frames:
            last, line = frames[-1]
            place = place_of(last.f_code, line)
            for frame, _ in frames:
                if (who := _owner(kinds, frame)) is not None:
                    return f"{who}: {frame.f_code.co_name} failed ({place}): {told(raised)}"
            return f"{last.f_code.co_name} failed ({place}): {told(raised)}"
        raised = raised.__cause__  # SimPy raises a copy
    return None


def _owner(kinds: Kinds, frame: FrameType) -> str | None:
    """The family and kind of the class whose function this is a call of."""
    code = frame.f_code
    own = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    for family, base in BASES.items():
        for thing in getattr(kinds, family):
            if isinstance(own, thing):
                return f"{base.__name__.lower()} {own.kind}"
            if code.co_qualname == f"{thing.__qualname__}.{code.co_name}":
                return f"{base.__name__.lower()} {kind_of(thing)}"
    return None
