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

import numpy as np

from agents import protocol as plain
from agents.machinery.code_cache import source_of
from agents.machinery.compiling import bound_for, inlined, kernel
from agents.machinery.intrinsics import array_at, next_double
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
    give_back,
    payload,
    slot_of,
    ticket_of,
)
from simulator.engines.compiled.pool import take as take_slot
from simulator.engines.compiled.queue import (
    ALARM,
    ARRIVAL,
    COMPLETE,
    DEADLINES,
    push,
    push_ranked,
)
from simulator.engines.compiled.record import view
from simulator.engines.compiled.round_state import has_arrived, inbox, member_of, told, told_at
from simulator.engines.compiled.world import LAYOUT, agent_of, edge_of, tell
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


@inlined
def run_of(w: Any) -> Any:
    return array_at(w.here, 1, LAYOUT)[0]


@inlined
def owns(run: Any, i: int, k: int) -> bool:
    agent = agent_of(run, i)
    return agent.first <= k < agent.first + agent.degree


@inlined
def is_nothing(run: Any, m: int) -> bool:
    return m == NO_MESSAGE


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
def send_all(run: Any, i: int) -> None:
    agent, member = agent_of(run, i), member_of(run, i)
    number = member.said = member.round
    if run.same_for_all:
        tell(run, i, agent.first, told(run, i, agent.first, number))
    else:
        for edge in range(agent.first, agent.first + agent.degree):
            tell(run, i, edge, told(run, i, edge, number))
    times, place = told_at(run, i, number)
    times[place] = run.now
    if run.loose and (run.availability or run.cuts > 0):  # older ones are not sent any more
        held = view(run.held, run.edge_count, np.uint8)
        for edge in range(agent.first, agent.first + agent.degree):
            held[edge] = 0
    for edge in range(agent.first, agent.first + agent.degree):
        member.departed = transmit(run, edge, i, number)


@inlined
def arrived(run: Any, i: int) -> int:
    return member_of(run, i).arrived


@inlined
def needed(run: Any, i: int) -> int:
    return member_of(run, i).needed


@inlined
def deadline(run: Any) -> float:
    return run.deadline


@inlined
def alarm(run: Any, i: int, after: float) -> None:
    if after < math.inf:
        set_alarm(run, i, member_of(run, i).departed + after)


@kernel
def set_alarm(run: Any, i: int, time: float) -> None:
    """The alarm of agent i's present round."""
    push_ranked(run, time, DEADLINES + i, ALARM, i + run.n * member_of(run, i).round)


@inlined
def has_sent(run: Any, i: int) -> bool:
    return member_of(run, i).said == member_of(run, i).round


@inlined
def has_come(run: Any, i: int, k: int) -> bool:
    back = edge_of(run, edge_of(run, k).back)
    return run.loose or has_arrived(run, back, member_of(run, i).round)


@inlined
def take(run: Any, i: int, k: int) -> None:
    if run.loose:
        _take_newest(run, i, k)
        return
    j, back, number = edge_of(run, k).neighbour, edge_of(run, k).back, member_of(run, i).round
    times, at = told_at(run, j, number)
    if run.recording:
        slots, place = inbox(run, k, number)
        message = ticket_of(run, slots[place]).message
        note_at_receiver(run, HANDLE, back, message, ROUND, NONE, times[at])
        give_back(run, slots[place])
    world.absorb(run, i, k, told(run, j, back, number), told(run, i, k, number))
    edge_of(run, k).sent_at = times[at]


@kernel
def _take_newest(run: Any, i: int, k: int) -> None:
    slots, place = inbox(run, k, 0)
    slot = slots[place]
    if slot == NONE:
        return
    at, number = slot_of(run, slot).sent_at, member_of(run, i).said
    if run.recording:
        message = ticket_of(run, slot).message
        note_at_receiver(run, HANDLE, edge_of(run, k).back, message, ROUND, NONE, at)
    world.absorb(run, i, k, payload(run, slot, 0), told(run, i, k, number))
    edge_of(run, k).sent_at = at
    give_back(run, slot)
    slots[place] = NONE


@inlined
def wait(run: Any, i: int) -> None:
    member_of(run, i).waiting = True


@inlined
def wake(run: Any, i: int) -> None:
    member = member_of(run, i)
    if not member.called:
        member.called = True
        push(run, run.now, COMPLETE, i)


@inlined
def end_round(run: Any, i: int) -> None:
    member_of(run, i).over = True


#: The compiled form of each verb.
VERBS = {
    verb: globals()[verb.__name__]
    for verb in {*plain.GOSSIP, *plain.ROUNDS, *plain.CHECKING, plain.introduce}
}


def label_of(protocol: type) -> str:
    """What tells a protocol's compiled code from others': its name and a hash of its source."""
    return f"{protocol.__name__}_{hashlib.sha256(source_of(protocol)).hexdigest()[:16]}"


def compiled(function: Callable[..., Any], label: str) -> Any:
    """A function of a protocol with the verbs, and its own helpers, in their compiled forms."""
    return inlined(bound_for(function, label, dict(VERBS), inlined))
