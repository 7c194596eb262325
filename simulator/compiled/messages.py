"""Messages of asynchronous runs: a pool of slots, so that nothing is allocated a message.

A slot is free, on its way, in a mailbox, or in the hands of its receiver.  Free slots form a
linked list, and so does each mailbox.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

REQUEST, REPLY, HELLO = range(3)
NONE = -1

SLOT = np.dtype(
    [
        ("sent_at", np.float64),
        #: The sender's send number (mp), or the version of the link at the asking end (admm).
        ("number", np.int64),
        ("edge", np.int64),
        ("next", np.int32),
        ("kind", np.int32),
    ]
)
FIRST_FREE, FREE = range(2)


class Pool(NamedTuple):
    """Slots (capacity,), and what they say: payloads (capacity, 1 or 2, numbers a message).

    A reply takes its request's slot.  admm's reply keeps the request in part 0, because the asking
    end needs what it sent, and has its own payload in part 1.
    """

    slots: NDArray[Any]
    payloads: NDArray[np.float64]
    counts: NDArray[np.int64]


def make_pool(capacity: int, parts: int, numbers: int) -> Pool:
    """A pool of free slots."""
    pool = Pool(
        np.zeros(capacity, SLOT),
        np.zeros((capacity, parts, numbers)),
        np.array([0, capacity]),
    )
    pool.slots["next"] = np.arange(1, capacity + 1)
    pool.slots["next"][-1] = NONE
    return pool


def grow(pool: Pool) -> Pool:
    """A pool of twice the size with the same messages in the same slots."""
    old, (_, parts, numbers) = len(pool.slots), pool.payloads.shape
    grown = make_pool(2 * old, parts, numbers)
    grown.slots[:old] = pool.slots
    grown.payloads[:old] = pool.payloads
    grown.slots["next"][-1] = pool.counts[FIRST_FREE]
    grown.counts[:] = old, old + pool.counts[FREE]
    return grown


@njit(cache=True)
def take(pool: Pool) -> int:
    """A free slot; there always is one, see ``gossip.advance``."""
    slot = pool.counts[FIRST_FREE]
    pool.counts[FIRST_FREE] = pool.slots[slot].next
    pool.counts[FREE] -= 1
    return slot


@njit(cache=True)
def give_back(pool: Pool, slot: int) -> None:
    """The message is done with."""
    pool.slots[slot].next = pool.counts[FIRST_FREE]
    pool.counts[FIRST_FREE] = slot
    pool.counts[FREE] += 1
