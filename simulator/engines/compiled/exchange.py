"""What protocols are made of: sending a message, answering one, what its arrival means."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

from agents.machinery.compiling import kernel
from simulator.engines.compiled.event_notes import note_send, write
from simulator.engines.compiled.network import send
from simulator.engines.compiled.on_off import is_off
from simulator.engines.compiled.pool import (
    HELLO,
    NONE,
    REPLY,
    REQUEST,
    give_back,
    payload,
    slot_of,
    take,
    ticket_of,
)
from simulator.engines.compiled.queue import ARRIVAL, push
from simulator.engines.compiled.world import agent_of, edge_of, tell
from simulator.engines.event_rows import DELIVER, MISS, STALE


@kernel
def dispatch(run: Any, slot: int, kind: int, edge: int, sender: int, number: int) -> None:
    """Send a new message, whose slot holds what it says and is given back if it is lost."""
    size = run.hello_bytes if kind == HELLO else run.message_bytes
    receiver = edge_of(run, edge).neighbour
    _, arrival = send(run, edge, sender, receiver, size)
    note_send(run, sender, receiver, kind, NONE, size, run.now, arrival == math.inf)
    if arrival == math.inf:
        give_back(run, slot)
        return
    message = slot_of(run, slot)
    message.receiver = receiver
    message.edge = edge
    message.back = edge_of(run, edge).back
    if run.recording:
        ticket_of(run, slot).answers = NONE
    _post(run, slot, kind, number, arrival)


@kernel
def send_told(run: Any, i: int, edge: int, number: int) -> None:
    """Send what agent i tells the neighbour at ``edge``, unasked."""
    slot = take(run)
    tell(run, i, edge, payload(run, slot, 0))
    dispatch(run, slot, REQUEST, edge, i, number)


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
def arrival(run: Any, i: int) -> int:
    """A message comes to agent i, and counts as delivered, or as missed if that one is off."""
    if is_off(run, i):
        run.missed += 1
        return MISS
    run.delivered += 1
    return DELIVER


@kernel
def note_at_receiver(
    run: Any, kind: int, edge: int, message: int, what: int, answers: int, sent_at: float
) -> None:
    """Something happens to a message at its receiver's; ``edge`` is the sender's."""
    if run.recording:
        receiver, back = edge_of(run, edge).neighbour, edge_of(run, edge).back
        size = run.hello_bytes if what == HELLO else run.message_bytes
        sender = edge_of(run, back).neighbour
        write(run, kind, receiver, sender, message, what, answers, size, sent_at)


@kernel
def note_arrived(run: Any, kind: int, slot: int) -> None:
    """The same of the message in a slot."""
    if run.recording:
        message, ticket = slot_of(run, slot), ticket_of(run, slot)
        number, answers = ticket.message, ticket.answers
        note_at_receiver(run, kind, message.edge, number, message.kind, answers, message.sent_at)


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
