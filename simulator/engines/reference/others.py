"""Protocols from outside in SimPy: with checked verbs, and the line where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.checked import CHECKED, FUNCTIONS, begin_function, end_function
from agents.machinery.code_cache import is_ours
from agents.machinery.code_errors import RAISED, CodeError, frames_in, place_of, told
from agents.machinery.compiling import bound_for
from agents.protocol import Protocol, Rounds
from simulator.errors import SimulatorError

#: The functions whose second argument is a message.
WITH_MESSAGES = ("handle", "after")


def checked(thing: type[Any], protocol: type[Protocol]) -> type[Any]:
    """A protocol or its rounds as agents call it: ours as it stands."""
    if is_ours(protocol):
        return thing
    functions = {name: getattr(thing, name) for name in FUNCTIONS if hasattr(thing, name)}
    in_rounds = issubclass(thing, Rounds)
    guarded = {
        name: _guarded(
            name, function, protocol, must_end=in_rounds and name not in ("hear", "ring")
        )
        for name, function in functions.items()
    }
    return type(thing.__name__, (thing,), guarded)


def _guarded(
    name: str, function: Callable[..., None], protocol: type[Protocol], must_end: bool
) -> Callable[..., None]:
    body = bound_for(function, "checked", dict(CHECKED), lambda helper: helper)
    acting, modules = FUNCTIONS.index(name), {function.__module__, protocol.__module__}

    def call(w: Any, i: int, *rest: Any) -> None:
        message = rest[0] if name in WITH_MESSAGES else None
        begin_function(w, acting, i, message, w.goes_on)
        try:
            body(w, i, *rest)
            end_function(w, must_end)
        except (CodeError, SimulatorError):
            raise
        except RAISED as error:
            places = [place_of(frame.f_code, line) for frame, line in frames_in(modules, error)]
            place = places[-1] if places else place_of(function.__code__)
            where = f"{name} failed for agent {i} at {w.env.now:g} s ({place})"
            raise CodeError(f"protocol {protocol.kind}: {where}: {told(error)}") from error
        w.goes_on = w.agents[i].goes_on

    return call
