"""What protocols are made of: sending a message, answering one, what its arrival means."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.event_notes import note_send, write
from simulator.engines.compiled.network import send
from simulator.engines.compiled.on_off import is_off
from simulator.engines.compiled.pool import (
    HELLO,
    NONE,
    ROUND,
    give_back,
    payload,
    slot_of,
    take,
    ticket_of,
)
from simulator.engines.compiled.queue import ARRIVAL, TIMER, TIMERS, push, push_ranked
from simulator.engines.compiled.round_state import told, told_at
from simulator.engines.compiled.world import agent_of, edge_of
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
    message.kind = kind
    message.number = number
    message.sent_at = run.now
    if run.recording:
        ticket = ticket_of(run, slot)
        ticket.message, ticket.answers = run.sent - 1, NONE
    push(run, arrival, ARRIVAL, slot)


@kernel
def transmit(run: Any, edge: int, sender: int, number: int) -> float:
    """In rounds: send an edge's message of a round, with a timer if it will not be there by then.

    When it leaves.
    """
    size, receiver = run.message_bytes, edge_of(run, edge).neighbour
    departure, arrival = send(run, edge, sender, receiver, size)
    times, place = told_at(run, sender, number)
    note_send(run, sender, receiver, ROUND, NONE, size, times[place], arrival == math.inf)
    message = edge + run.edge_count * number
    if arrival < math.inf:
        has_slot = run.loose or run.recording
        push(run, arrival, ARRIVAL, _slot(run, edge, sender, number) if has_slot else message)
    due = departure + run.retransmit_after
    if due < math.inf and (arrival > due or run.availability):
        order = TIMERS + run.scheduled if run.near else run.scheduled
        push_ranked(run, due, order, TIMER, message)
    return departure


@kernel
def _slot(run: Any, edge: int, sender: int, number: int) -> int:
    """What must be known of the latest attempt when it arrives, perhaps rounds later."""
    slot = take(run)
    message = slot_of(run, slot)
    times, place = told_at(run, sender, number)
    message.edge, message.number, message.sent_at = edge, number, times[place]
    if run.recording:
        ticket_of(run, slot).message = run.sent - 1
    if run.loose:
        said = floats(told(run, sender, edge, number), run.numbers)
        out = floats(payload(run, slot, 0), run.numbers)
        for x in range(run.numbers):
            out[x] = said[x]
    return slot


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
