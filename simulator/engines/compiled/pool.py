"""Messages on their way: a pool of slots, so that nothing is allocated a message.

A slot is free, on its way, in a mailbox, or in the hands of its receiver.  Free slots form a
linked list, and so does each mailbox.  In rounds messages need a slot only where events are
recorded.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import kernel
from simulator.engines.compiled.record import ADDRESS, Fields, view

REQUEST, REPLY, HELLO, ROUND = range(4)
NONE = -1

SLOT = np.dtype(
    [
        ("sent_at", np.float64),
        #: The sender's send number, or the version of the link at the asking end.
        ("number", np.int64),
        #: The directed edge at the sender's end and the one at the receiver's.
        ("edge", np.int64),
        ("back", np.int64),
        ("receiver", np.int64),
        ("kind", np.int64),
        #: The next free slot, or the next one in the mailbox.
        ("next", np.int64),
    ],
    align=True,
)
#: Where events are recorded: a message's place in the order of sending, and its request's.
TICKET = np.dtype([("message", np.int64), ("answers", np.int64)], align=True)
FIELDS: Fields = [
    ("slots", ADDRESS),
    ("tickets", ADDRESS),
    ("slot_count", np.int64),
    ("first_free", np.int64),
    ("free_slots", np.int64),
    #: What messages say: (slots, 2, numbers).
    ("payloads", ADDRESS),
    ("numbers", np.int64),
]


def resize(
    run: NDArray[Any], count: int, numbers: int, recorded: bool, old: tuple[NDArray[Any], ...]
) -> tuple[NDArray[Any], ...]:
    """Slots and payloads of so many numbers for ``count`` messages; the old ones stay in place."""
    slots = np.zeros(count, SLOT)
    tickets = np.zeros(count if recorded else 0, TICKET)
    payloads = np.zeros((count, 2, numbers))
    before = len(old[0]) if old else 0
    slots["next"] = np.arange(1, count + 1)
    slots["next"][-1:] = run["first_free"][0] if old else NONE  # rounds need none at all
    if old:
        slots[:before], payloads[:before] = old[0], old[2]
        tickets[: len(old[1])] = old[1]
    run["first_free"], run["slot_count"] = before, count
    run["free_slots"] += count - before
    return slots, tickets, payloads


@kernel
def slot_of(run: Any, slot: int) -> Any:
    """The message in a slot."""
    return view(run.slots, run.slot_count, SLOT)[slot]


@kernel
def ticket_of(run: Any, slot: int) -> Any:
    """The numbers of the message in a slot, where events are recorded."""
    return view(run.tickets, run.slot_count, TICKET)[slot]


@kernel
def payload(run: Any, slot: int, part: int) -> int:
    """The address of what a message says, ``numbers`` floats.

    A reply takes its request's slot: part 0 keeps the request, because the asking end needs what
    it sent, and part 1 is the reply.
    """
    return run.payloads + 8 * run.numbers * (2 * slot + part)


@kernel
def take(run: Any) -> int:
    """A free slot; there always is one, see ``gossip.advance``."""
    slot = run.first_free
    run.first_free = slot_of(run, slot).next
    run.free_slots -= 1
    return slot


@kernel
def give_back(run: Any, slot: int) -> None:
    """The message is done with."""
    slot_of(run, slot).next = run.first_free
    run.first_free = slot
    run.free_slots += 1
