"""Messages, and what an agent can do and report: the agents' side of the network."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
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
        "number",
        "place",
        "sent_at",
        "sheet",
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


class Steps(Protocol):
    """The rule at work: its functions, each for one agent."""

    def tell(self, i: int, k: int, out: Sheet) -> None:
        """Write what agent i tells the neighbour on link k."""

    def absorb(self, i: int, k: int, received: Sheet, sent: Sheet | None) -> None:
        """Agent i takes in what came from link k."""

    def solve(self, i: int) -> None:
        """Agent i gets a new model."""

    def introduce(self, i: int, k: int, model: Sheet) -> None:
        """Agent i takes in a hello."""

    def changed(self, i: int) -> None:
        """Agent i has a new model without having solved."""

    def say_hello(self, i: int, out: Sheet) -> None:
        """Write agent i's model."""


class World(Protocol):
    """What an agent can do and report."""

    steps: Steps
    sheets: Sheets

    def send(self, message: Message) -> Any:
        """Put a message on the network."""

    def send_surely(self, message: Message) -> None:
        """The same, again and again until it has arrived."""

    def gap(self) -> float:
        """A standard exponential: the time to the next tick of a clock of rate 1."""

    def uniform(self) -> float:
        """A number in [0, 1) that decides which neighbour is contacted."""

    def compute_time(self, agent: int) -> float:
        """How long the agent's next solve takes."""

    def refreshed(self, edge: int, sent_at: float) -> None:
        """The agent's copy of the neighbour at the far end of ``edge`` is now of ``sent_at``."""

    def handled(self, message: Message) -> None:
        """The agent that got a message turns to it."""

    def stale(self, message: Message) -> None:
        """A message came too late to be of use."""

    def ticked(self, agent: int) -> None:
        """The agent's clock rang, and it acts."""

    def skipped(self, agent: int) -> None:
        """A tick found its agent busy."""

    def solved(self, agent: int) -> None:
        """The agent has a new model."""

    def renew(self, agent: int) -> None:
        """The agent has forgotten everything but its data: its model and copies are as at first."""

    def round_done(self) -> None:
        """The agent has finished the current round."""
