"""What a plugin's protocol says of itself, and can't be."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from agents import protocol as verbs
from agents.machinery.code_errors import place_of
from agents.machinery.compiling import names_in
from agents.messages import World
from agents.protocol import ALL, GOSSIP, ROUNDS, Protocol, Rounds
from simulator.errors import SimulatorError

#: The functions of each, and those that must be there.
_GOSSIP = ("tick", "handle", "after_tick", "after")
_ROUNDS = ("begin", "hear", "ring", "complete", "after_tick")
#: Which function goes on after which verb.
_CONTINUED = {verbs.compute: "after", verbs.compute_tick: "after_tick", verbs.wait: "complete"}


def check_protocol(protocol: type[Protocol], place: str) -> None:
    """Raise SimulatorError for what would not run, or not as its author thinks."""
    for name in ("versioned", "averages", "tells_all"):
        value = getattr(protocol, name)
        if not isinstance(value, bool):
            raise SimulatorError(f"{place}.{name} is {value!r}; allowed: True, False")
    most = protocol.most_sends
    if not (isinstance(most, int) and not isinstance(most, bool) and (most == ALL or most >= 0)):
        raise SimulatorError(f"{place}.most_sends is {most!r}; it must be a number from 0, or ALL")
    for name, array in protocol.arrays.items():
        if name in _TAKEN or name.startswith("_"):
            raise SimulatorError(f"{place}: the name of the array {name!r} is taken")
        if array.over == "run" or array.given:
            what = "a protocol has per_agent and per_link arrays, which start at 0"
            raise SimulatorError(f"{place}.{name}: {what}")
    _check_functions(protocol, Protocol, _GOSSIP, GOSSIP, ("tick", "handle"), place)
    rounds: Any = protocol.rounds
    if rounds is None:
        return
    if not (isinstance(rounds, type) and issubclass(rounds, Rounds)):
        raise SimulatorError(f"{place}.rounds is {rounds!r}; it must be a class of Rounds, or None")
    inside = f"{place}.rounds"
    _check_functions(rounds, Rounds, _ROUNDS, ROUNDS, ("begin", "complete"), inside)


#: What the world has already.
_TAKEN = {"here", *World.__annotations__, *vars(World)}


def _check_functions(
    thing: type[Any],
    base: type[Any],
    names: tuple[str, ...],
    allowed: tuple[Any, ...],
    needed: tuple[str, ...],
    place: str,
) -> None:
    missing = [name for name in needed if getattr(thing, name) is getattr(base, name)]
    if missing:
        raise SimulatorError(f"{place} must implement {', '.join(missing)}")
    used = set[Any]()
    for name in names:
        used |= _verbs_in(getattr(thing, name), allowed, f"{place}.{name}", ())
    for verb, name in _CONTINUED.items():
        if verb in used and getattr(thing, name) is getattr(base, name):
            raise SimulatorError(f"{place} calls {verb.__name__}, so it must implement {name}")


def _verbs_in(
    function: Any, allowed: tuple[Any, ...], place: str, callers: tuple[Any, ...]
) -> set[Any]:
    """The verbs that a function and its helpers call."""
    if not isinstance(function, FunctionType):
        raise SimulatorError(f"{place} is {function!r:.60}; it must be a function")
    place = f"{place} ({place_of(function.__code__)})"
    if function.__closure__:
        what = "is inside another function, whose variables compiled code does not see"
        raise SimulatorError(f"{place}: {function.__name__} {what}")
    if function in callers:
        raise SimulatorError(f"{place}: {function.__name__} calls itself")
    found = set[Any]()
    for name in sorted(names_in(function.__code__)):
        thing = function.__globals__.get(name)
        if isinstance(thing, ModuleType) and thing.__name__.startswith("agents"):
            raise SimulatorError(f"{place}: import verbs by name, not as {name}.…")
        if not isinstance(thing, FunctionType):
            continue
        if thing in allowed:
            found.add(thing)
        elif thing.__module__ == verbs.__name__:
            words = ", ".join(sorted(verb.__name__ for verb in allowed))
            raise SimulatorError(f"{place}: {name} is no verb here; allowed: {words}")
        else:
            found |= _verbs_in(thing, allowed, place, (*callers, function))
    return found
