"""The verbs of ``agents.protocol`` in compiled code, over the run's record and slots of messages.

They have the names and the text of theirs.  All are part of the functions that use them: as kernels
of their own they cost 5 to 8 % of speed.
"""
# mypy: disallow_untyped_decorators=False
# ruff: noqa: D103

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

from agents import protocol as plain
from agents.machinery.code_cache import source_of
from agents.machinery.compiling import bound_for, inlined
from agents.machinery.intrinsics import next_double
from simulator.engines.compiled import switching, world
from simulator.engines.compiled.event_notes import note_send
from simulator.engines.compiled.exchange import (
    dispatch,
    note_at_receiver,
    send_number,
    stale,
    transmit,
)
from simulator.engines.compiled.network import send as put
from simulator.engines.compiled.pool import (
    NONE,
    REPLY,
    REQUEST,
    ROUND,
    payload,
    slot_of,
    ticket_of,
)
from simulator.engines.compiled.pool import take as take_slot
from simulator.engines.compiled.queue import ARRIVAL, COMPLETE, push
from simulator.engines.compiled.world import agent_of, edge_of, tell
from simulator.engines.event_rows import HANDLE

#: Has the message at hand been answered, and did the reply get lost?
NOT_ANSWERED, ANSWERED, LOST = range(3)
#: The message of a computation that has been answered before; links are −1 − k.
NO_MESSAGE = -(2**62)


# --- looking --------------------------------------------------------------------------------------
@inlined
def links(run: Any, i: int) -> Any:
    agent = agent_of(run, i)
    return range(agent.first, agent.first + agent.degree)


choose = world.choose


@inlined
def peers(run: Any, i: int, k: int) -> Any:
    agent = agent_of(run, i)
    return range(agent.first, agent.first + agent.degree) if run.to_all else range(k, k + 1)


@inlined
def is_request(run: Any, m: int) -> bool:
    return slot_of(run, m).kind == REQUEST


@inlined
def is_reply(run: Any, m: int) -> bool:
    return slot_of(run, m).kind == REPLY


@inlined
def link(run: Any, m: int) -> int:
    return slot_of(run, m).back


@inlined
def random(run: Any) -> float:
    return next_double(run.random, run.random_state)


@inlined
def fresh(run: Any, i: int, m: int) -> bool:
    message = slot_of(run, m)
    own = edge_of(run, message.back)
    if run.versioned:
        new = message.number == own.version
    else:
        new = message.number > own.version
        if new:
            own.version = message.number
    if not new:
        stale(run, m)
    return new


# --- acting ---------------------------------------------------------------------------------------
@inlined
def send(run: Any, i: int, k: int) -> None:
    slot = take_slot(run)
    tell(run, i, k, payload(run, slot, 0))
    number = edge_of(run, k).version if run.versioned else send_number(run, i)
    dispatch(run, slot, REQUEST, k, i, number)


@inlined
def answer(run: Any, i: int, m: int) -> None:
    # The reply takes its request's slot, but only when the event is over, see ``settle``.
    message = slot_of(run, m)
    k = message.back
    tell(run, i, k, payload(run, m, 1))
    run.reply_number = message.number if run.versioned else send_number(run, i)
    asking = edge_of(run, k).neighbour
    _, arrival = put(run, k, i, asking, run.message_bytes)
    lost = arrival == math.inf
    run.replied = LOST if lost else ANSWERED
    run.reply_place = run.sent - 1
    if run.recording:
        place = ticket_of(run, m).message
        note_send(run, i, asking, REPLY, place, run.message_bytes, run.now, lost)
    if not lost:
        push(run, arrival, ARRIVAL, m)


@inlined
def absorb(run: Any, i: int, m: int) -> None:
    message = slot_of(run, m)
    own = edge_of(run, message.back)
    if message.kind == REPLY:
        world.absorb(run, i, message.back, payload(run, m, 1), payload(run, m, 0))
    else:
        told = world.unsaid(run, i) if run.replied == NOT_ANSWERED else payload(run, m, 1)
        world.absorb(run, i, message.back, payload(run, m, 0), told)
    if run.versioned:
        own.version += 1
    run.changed = run.averages
    own.sent_at = message.sent_at


@inlined
def introduce(run: Any, i: int, m: int) -> None:
    message = slot_of(run, m)
    world.introduce(run, i, message.back, payload(run, m, 0))
    edge_of(run, message.back).sent_at = message.sent_at


@inlined
def solve(run: Any, i: int) -> None:
    world.solve(run, i)
    run.changed = False


@inlined
def compute(run: Any, i: int, m: int) -> None:
    run.ready = switching.compute(run, i, m if run.replied == NOT_ANSWERED else NO_MESSAGE)


@inlined
def compute_tick(run: Any, i: int, k: int) -> None:
    run.ready = switching.compute(run, i, -1 - k)


# --- rounds ---------------------------------------------------------------------------------------
@inlined
def _told(run: Any, i: int, edge: int) -> int:
    """The address of what agent i tells the neighbour at ``edge`` in this round."""
    return run.told + 8 * run.numbers * (i if run.same_for_all else edge)


@inlined
def send_all(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    if run.same_for_all:
        tell(run, i, agent.first, _told(run, i, agent.first))
    else:
        for edge in range(agent.first, agent.first + agent.degree):
            tell(run, i, edge, _told(run, i, edge))
    agent.sent_at = run.now
    for edge in range(agent.first, agent.first + agent.degree):
        transmit(run, edge, i)


@inlined
def arrived(run: Any, i: int) -> int:
    return agent_of(run, i).inbox


@inlined
def take(run: Any, i: int, k: int) -> None:
    j, back = edge_of(run, k).neighbour, edge_of(run, k).back
    at = agent_of(run, j).sent_at
    note_at_receiver(run, HANDLE, back, edge_of(run, back).version, ROUND, NONE, at)
    world.absorb(run, i, k, _told(run, j, back), _told(run, i, k))
    edge_of(run, k).sent_at = at


@inlined
def wait(run: Any, i: int) -> None:
    agent_of(run, i).waiting = True


@inlined
def wake(run: Any, i: int) -> None:
    push(run, run.now, COMPLETE, i)


@inlined
def end_round(run: Any, i: int) -> None:
    run.working -= 1


#: The compiled form of each verb.
VERBS = {verb: globals()[verb.__name__] for verb in {*plain.GOSSIP, *plain.ROUNDS, plain.introduce}}


def label_of(protocol: type) -> str:
    """What tells a protocol's compiled code from others': its name and a hash of its source."""
    return f"{protocol.__name__}_{hashlib.sha256(source_of(protocol)).hexdigest()[:16]}"


def compiled(function: Callable[..., Any], label: str) -> Any:
    """A function of a protocol with the verbs, and its own helpers, in their compiled forms."""
    return inlined(bound_for(function, label, dict(VERBS), inlined))
