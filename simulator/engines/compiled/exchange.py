"""What protocols are made of: sending a message, answering one, being busy."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

from agents.compiling import kernel
from simulator.engines.compiled.events import note_message, note_send
from simulator.engines.compiled.messages import (
    HELLO,
    NONE,
    REPLY,
    give_back,
    slot_of,
    take,
    ticket_of,
)
from simulator.engines.compiled.network import send
from simulator.engines.compiled.presence import life_of
from simulator.engines.compiled.queue import push
from simulator.engines.compiled.world import agent_of, compute_time, edge_of
from simulator.engines.events import STALE

#: Kinds of events: a clock rings, a message arrives, an agent has finished computing.
TICK, ARRIVAL, COMPUTED = range(3)


@kernel
def compute(run: Any, i: int, job: int) -> bool:
    """Be busy for one solve with a job; True if that takes no time and it is to be finished now."""
    agent = agent_of(run, i)
    agent.job = job
    duration = compute_time(run, i)
    if duration == 0.0:
        return True
    agent.busy = True
    end_in(run, i, duration)
    return False


@kernel
def end_in(run: Any, i: int, duration: float) -> None:
    """Finish after so long, unless the agent is switched off before."""
    index = i
    if run.living:
        life = life_of(run, i)
        life.due = run.now + duration
        index += run.n * life.pauses
    push(run, run.now + duration, COMPUTED, index)


@kernel
def pause(run: Any, i: int) -> None:
    """Agent i, which is computing, stops for the time being."""
    life = life_of(run, i)
    life.pauses += 1
    life.left = life.due - run.now


@kernel
def dispatch(run: Any, kind: int, edge: int, sender: int, number: int) -> int:
    """Send a new message; the slot for what it says, or NONE if it is lost."""
    size = run.hello_bytes if kind == HELLO else run.message_bytes
    receiver = edge_of(run, edge).neighbour
    _, arrival = send(run, edge, sender, receiver, size)
    note_send(run, sender, receiver, kind, NONE, size, run.now, arrival == math.inf)
    if arrival == math.inf:
        return NONE
    slot = take(run)
    message = slot_of(run, slot)
    message.receiver = receiver
    message.edge = edge
    message.back = edge_of(run, edge).back
    if run.recording:
        ticket_of(run, slot).answers = NONE
    _post(run, slot, kind, number, arrival)
    return slot


@kernel
def answer(run: Any, slot: int, sender: int, asking: int, number: int) -> bool:
    """Send the reply in the slot of its request; False if it is lost, and the slot with it."""
    message = slot_of(run, slot)
    message.edge, message.back = message.back, message.edge
    message.receiver = asking
    _, arrival = send(run, message.edge, sender, asking, run.message_bytes)
    lost = arrival == math.inf
    if run.recording:
        ticket = ticket_of(run, slot)
        ticket.answers = ticket.message
        note_send(run, sender, asking, REPLY, ticket.answers, run.message_bytes, run.now, lost)
    if lost:
        give_back(run, slot)
        return False
    _post(run, slot, REPLY, number, arrival)
    return True


@kernel
def _post(run: Any, slot: int, kind: int, number: int, arrival: float) -> None:
    message = slot_of(run, slot)
    message.kind = kind
    message.number = number
    if run.recording:
        ticket_of(run, slot).message = run.sent - 1
    message.sent_at = run.now
    push(run, arrival, ARRIVAL, slot)


@kernel
def send_number(run: Any, i: int) -> int:
    """The number of agent i's next message."""
    agent = agent_of(run, i)
    agent.sends += 1
    return agent.sends


@kernel
def note_arrived(run: Any, kind: int, slot: int) -> None:
    """Something happens to a message at its receiver's."""
    if run.recording:
        message, ticket = slot_of(run, slot), ticket_of(run, slot)
        size = run.hello_bytes if message.kind == HELLO else run.message_bytes
        sender = edge_of(run, message.back).neighbour
        note_message(
            run,
            kind,
            message.receiver,
            sender,
            ticket.message,
            message.kind,
            ticket.answers,
            size,
            message.sent_at,
        )


@kernel
def stale(run: Any, slot: int) -> None:
    """A message came too late to be of use."""
    run.stale += 1
    note_arrived(run, STALE, slot)


@kernel
def fresh(run: Any, slot: int) -> bool:
    """Is this message newer than all heard from its sender?  It counts as heard, or as stale."""
    message = slot_of(run, slot)
    own = edge_of(run, message.back)
    if message.number <= own.version:
        stale(run, slot)
        return False
    own.version = message.number
    own.sent_at = message.sent_at
    return True
