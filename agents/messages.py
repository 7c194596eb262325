"""Messages, and the world that agents send them into: the agents' side of the network in SimPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

REQUEST, REPLY, HELLO, ROUND = range(4)


class Sheet:
    """What a message says: a row of a block, known to compiled code by its address."""

    __slots__ = ("address", "block", "row")

    def __init__(self, block: NDArray[np.float64], row: int, address: int):
        self.block, self.row, self.address = block, row, address

    def array(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """The numbers, as many as the shape holds."""
        return self.block[self.row, : int(np.prod(shape))].reshape(shape)


class Sheets:
    """A pile of sheets, made in blocks; a block lives as long as a message refers to it."""

    BLOCK = 256

    def __init__(self, numbers: int):
        self.numbers = numbers
        self._used = self.BLOCK

    def take(self) -> Sheet:
        """A sheet to write on."""
        if self._used == self.BLOCK:
            self._block = np.zeros((self.BLOCK, self.numbers))
            self._start, self._used = int(self._block.ctypes.data), 0
        row = self._used
        self._used = row + 1
        return Sheet(self._block, row, self._start + 8 * self.numbers * row)


class Message:
    """What travels from one agent to another along a directed link."""

    __slots__ = (
        "_arrived",
        "_first",
        "answers",
        "edge",
        "kind",
        "link",
        "number",
        "place",
        "sent_at",
        "sheet",
        "told",
    )

    def __init__(
        self,
        kind: int,
        edge: int,
        sheet: Sheet,
        number: int,
        sent_at: float,
        answers: Message | None = None,
    ):
        self.kind = kind
        self.edge = edge
        self.sheet = sheet
        #: The sender's send number, or the version of the link at the asking end.
        self.number = number
        self.sent_at = sent_at
        #: A reply's request, as its sender remembers it; it does not travel and has no size.
        self.answers = answers
        #: Its place in the order of sending, which the network gives it.
        self.place = -1
        #: The receiver's link, which is known once it has arrived; what that one has answered.
        self.link = edge
        self.told: Sheet | None = None
        self._first: Message | None = None
        self._arrived = False

    def again(self) -> Message:
        """Another attempt to send the same."""
        attempt = Message(self.kind, self.edge, self.sheet, self.number, self.sent_at, self.answers)
        attempt._first = self._first or self
        return attempt

    @property
    def arrived(self) -> bool:
        """In rounds, where a message may be sent several times: has one attempt arrived?"""
        return (self._first or self)._arrived

    @arrived.setter
    def arrived(self, value: bool) -> None:
        (self._first or self)._arrived = value


class World:
    """All agents, and what they can do and report; the engine fills it in.

    An agent sees the rest of the world through it only; it measures nothing itself.
    """

    env: simpy.Environment
    agents: list[Any]
    #: The rule at work: tell, absorb, solve, introduce, changed, say_hello, each for one agent.
    steps: Any
    sheets: Sheets
    #: Put a message on the network; the same, again and again until it has arrived: when it leaves.
    send: Callable[[Message], Any]
    send_surely: Callable[[Message], float]
    #: An agent's next tick; a number that decides whom it contacts; one of the stream "rule".
    wind: Callable[[int], simpy.Event]
    uniform: Callable[[], float]
    random: Callable[[], float]
    #: How long an agent's next solve takes.
    compute_time: Callable[[int], float]
    #: The copy at an edge is now of so long ago; an agent turns to a message, which may be stale.
    refreshed: Callable[[int, float], None]
    handled: Callable[[Message], None]
    stale: Callable[[Message], None]
    #: An agent's clock rang, and found it busy; it has a new model; it has forgotten everything
    #: but its data; it has finished its round.
    ticked: Callable[[int], None]
    skipped: Callable[[int], None]
    solved: Callable[[int], None]
    renew: Callable[[int], None]
    round_done: Callable[[int], None]
    #: How long an agent waits at most in a round; let something happen to an agent at a time, after
    #: all messages of that instant.
    deadline: float
    alarm: Callable[[int, float, Callable[[], None]], None]

    #: As the compiled engine's record has it, for ``agents.checked``: does the same event go on
    #: with the next function?  The most links that an agent has, and messages that an event sends.
    goes_on = False
    most_links: int
    most_sends: int

    def __init__(self, **parts: Any):
        vars(self).update(parts)
