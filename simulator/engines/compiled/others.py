"""Protocols from outside in compiled code: with checked verbs, and arrays of their own."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from agents.checked import CHECKED, FUNCTIONS, begin_function, end_function
from agents.machinery.code_cache import is_ours
from agents.machinery.code_errors import CodeError, told
from agents.machinery.compiling import (
    CompilationError,
    bind,
    bound_for,
    inlined,
    inlined_of_others,
)
from agents.machinery.intrinsics import array_at
from agents.protocol import Protocol, Rounds
from simulator.engines.compiled.round_state import member_of
from simulator.engines.compiled.verbs import NO_MESSAGE, VERBS, compiled

#: The functions that are given a message, and those that are given the agent alone.
WITH_MESSAGES, ALONE = ("handle", "after"), ("begin", "ring", "complete")


def placed(
    thing: type, protocol: type[Protocol], places: Iterable[Callable[..., Any]], label: str
) -> dict[Any, Any]:
    """What takes the place of each function: that of ``thing``, the protocol or its rounds."""
    if is_ours(protocol):
        return {place: compiled(getattr(thing, place.__name__), label) for place in places}

    def make(function: Callable[..., Any], swap: dict[Any, Any]) -> Any:
        return inlined_of_others(bound_for(function, label, swap, inlined_of_others))

    swap = {**VERBS, **{verb: make(checked, dict(VERBS)) for verb, checked in CHECKED.items()}}
    parts: dict[str, Any] = {
        "world": inlined_of_others(bind(_world_of(protocol), label)),
        "begin": make(begin_function, dict(VERBS)),
        "end": make(end_function, dict(VERBS)),
        "goes_on": _round_goes_on if issubclass(thing, Rounds) else _goes_on,
    }
    found = {}
    for place in places:
        name = place.__name__
        must_end = issubclass(thing, Rounds) and name not in ("hear", "ring")
        call = _with if name in WITH_MESSAGES else _alone if name in ALONE else _without
        own = {
            "body": make(getattr(thing, name), swap),
            "ACTING": FUNCTIONS.index(name),
            "MUST_END": must_end,
        }
        found[place] = inlined_of_others(bind(call, f"{name}_{label}", **parts, **own))
    return found


# What ``bind`` gives the three functions below, which call those of a protocol.
world: Any = None
begin: Any = None
body: Any = None
end: Any = None
goes_on: Any = None
ACTING, MUST_END = 0, False


def _with(run: Any, i: int, m: int) -> None:
    w = world(run)
    begin(w, ACTING, i, m, run.goes_on)
    body(w, i, m)
    end(w, MUST_END)
    run.goes_on = goes_on(run, i)


def _without(run: Any, i: int, x: Any) -> None:
    w = world(run)
    begin(w, ACTING, i, NO_MESSAGE, run.goes_on)
    body(w, i, x)
    end(w, MUST_END)
    run.goes_on = goes_on(run, i)


def _alone(run: Any, i: int) -> None:
    w = world(run)
    begin(w, ACTING, i, NO_MESSAGE, run.goes_on)
    body(w, i)
    end(w, MUST_END)
    run.goes_on = goes_on(run, i)


@inlined
def _goes_on(run: Any, i: int) -> bool:
    """Does the same event go on with another function of the protocol?"""
    return run.ready


@inlined
def _round_goes_on(run: Any, i: int) -> bool:
    """The same in rounds."""
    member = member_of(run, i)
    return run.ready or (member.waiting and member.woken)


def _world_of(protocol: type[Protocol]) -> Callable[..., Any]:
    """From the run's record to a tuple of its address and of the protocol's arrays, by name."""
    parts = ["run.here"]
    for number, array in enumerate(protocol.arrays.values()):
        axes = ["run.n" if array.over == "agents" else "run.edge_count"]
        axes += ["run.p" if axis == "p" else str(axis) for axis in array.shape]
        address = f"array_at(run.memory, {len(protocol.arrays)}, np.int64)[{number}]"
        kind = "np.float64" if array.dtype is float else "np.int64"
        parts.append(f"array_at({address}, ({', '.join(axes)},), {kind})")
    scope = {"np": np, "array_at": array_at}
    scope["World"] = namedtuple("World", ["here", *protocol.arrays])
    exec(f"def world(run):\n    return World({', '.join(parts)})\n", scope)  # noqa: S102 - our own
    made: Callable[..., Any] = scope["world"]
    return made


def failure(protocol: type[Protocol], run: Any, error: Exception) -> CodeError:
    """What a protocol has got wrong."""
    who = f"protocol {protocol.kind}"
    if isinstance(error, NumbaError):
        return CompilationError(who, "a function", error, protocol.tick)
    name, i, now = FUNCTIONS[int(run["acting"][0])], int(run["acts_for"][0]), run["now"][0]
    where = f"{name} failed for agent {i} at {now:g} s"
    return CodeError(f"{who}: {where}: {told(error)}; engine: simpy says in which line")
