"""What agents and links are in rounds, in compiled code.

An edge carries one message a round, perhaps several times.  Where agents wait for their neighbours'
messages of the very round, an agent's next message may arrive before its last one, and no other:
what was told is kept for two rounds then, and lies in ``told`` until it is absorbed.  Where they
may go on without (``loose``), the newest message of a link waits in a slot.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import floats, inlined, kernel
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.setup import Setup

MEMBER = np.dtype(
    [
        #: Its round, from 1, and the one that it last told of.
        ("round", np.int64),
        ("said", np.int64),
        #: How many messages it waits for, how many have come that count, and how many of the next
        #: round.
        ("needed", np.int64),
        ("arrived", np.int64),
        ("ahead", np.int64),
        #: When the last message that it sent left the uplink.
        ("departed", np.float64),
        #: Was it called to wait no longer, did that reach it, does it wait, has it gone on; has it
        #: finished; did an alarm ring while it was off?
        ("called", np.bool_),
        ("woken", np.bool_),
        ("waiting", np.bool_),
        ("gone", np.bool_),
        ("over", np.bool_),
        ("overdue", np.bool_),
    ],
    align=True,
)
FIELDS: Fields = [
    ("members", ADDRESS),
    #: Is everybody in a round of its own?  May it go on without its neighbours' messages of it?
    ("near", np.bool_),
    ("loose", np.bool_),
    #: By how many rounds what counts may be behind.
    ("behind", np.int64),
    ("deadline", np.float64),
    #: What was told, by agent or by edge, when it was by each agent, and of how many rounds.
    ("told", ADDRESS),
    ("told_at", ADDRESS),
    ("kept", np.int64),
    ("same_for_all", np.bool_),
    #: Slots of messages that are there, by the receiver's link (and round), where they have slots.
    ("inbox", ADDRESS),
    ("late", np.int64),
    ("retransmit_after", np.float64),
    #: How many have not finished the round behind the barrier.
    ("working", np.int64),
]


def make_members(setup: Setup) -> NDArray[Any]:
    """The agents (n) before their first round."""
    members = np.zeros(setup.problem.n, MEMBER)
    members["needed"] = setup.needed
    return members


@kernel
def member_of(run: Any, i: int) -> Any:
    """Agent i in rounds."""
    return view(run.members, run.n, MEMBER)[i]


@inlined
def told(run: Any, i: int, edge: int, number: int) -> int:
    """The address of what agent i tells the neighbour at ``edge`` in a round."""
    row = (i if run.same_for_all else edge) * run.kept + number % run.kept
    return run.told + 8 * run.numbers * row


@inlined
def told_at(run: Any, i: int, number: int) -> Any:
    """Where it says when agent i told that: an array and a place."""
    return floats(run.told_at, run.n * run.kept), i * run.kept + number % run.kept


@inlined
def inbox(run: Any, k: int, number: int) -> Any:
    """Where the slot is of what came on link k in a round: an array and a place."""
    return view(run.inbox, run.edge_count * run.kept, np.int64), k * run.kept + number % run.kept


# An edge's version is the newest round whose message has arrived, where messages are loose;
# otherwise twice the last round up to which all have, and 1 more if the next but one has as well.
@kernel
def has_arrived(run: Any, edge: Any, number: int) -> bool:
    """Has an edge's message of a round arrived?"""
    if run.loose:
        return edge.version >= number
    whole = edge.version >> 1
    return number <= whole or (edge.version & 1 == 1 and number == whole + 2)


@kernel
def note_arrival(edge: Any, number: int) -> None:
    """The message of a round has arrived for the first time, of the very rounds."""
    whole = edge.version >> 1
    if number == whole + 2:
        edge.version += 1
    else:
        edge.version = 2 * (whole + 2 if edge.version & 1 == 1 else number)
