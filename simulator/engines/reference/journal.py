"""What happens in a run with SimPy, as rows (``simulator.engines.event_rows``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.messages import HELLO, Message
from simulator.engines.event_rows import DROP, HANDLE, NONE, ROW, SEND, SOLVE, TICK, Sink
from simulator.engines.setup import Setup

#: Rows that are collected before they are handed out.
ROWS = 2**14


class Journal:
    """Collects rows, and hands them out when there are many."""

    def __init__(self, setup: Setup, now: Callable[[], float], sink: Sink):
        self._now, self._sink = now, sink
        self._rows: list[tuple[Any, ...]] = []
        self._senders: list[int] = setup.owners.tolist()
        self._receivers: list[int] = setup.neighbour.tolist()
        self._sizes = setup.message_bytes, setup.hello_bytes

    def agent(self, kind: int, agent: int, what: int = NONE) -> None:
        """Something happens to an agent that is about no message."""
        self._add((self._now(), math.nan, NONE, NONE, 0, agent, NONE, kind, what))

    def message(self, kind: int, message: Message) -> None:
        """Something happens to a message: at its sender's, or at its receiver's."""
        agent, peer = self._receivers[message.edge], self._senders[message.edge]
        if kind in (SEND, DROP):
            agent, peer = peer, agent
        answers = NONE if message.answers is None else message.answers.place
        self._add(
            (
                self._now(),
                message.sent_at,
                message.place,
                answers,
                self._sizes[message.kind == HELLO],
                agent,
                peer,
                kind,
                message.kind,
            )
        )

    def _add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) == ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand out the rows that are waiting."""
        self._sink(np.array(self._rows, ROW))
        self._rows.clear()

    # --- what agents report and nobody counts ---------------------------------------------------
    def ticked(self, agent: int) -> None:
        """The agent's clock rang, and it acts."""
        self.agent(TICK, agent)

    def solved(self, agent: int) -> None:
        """The agent has a new model."""
        self.agent(SOLVE, agent)

    def handled(self, message: Message) -> None:
        """The receiver turns to the message."""
        self.message(HANDLE, message)


def ignore(_: Any) -> None:
    """What takes the place of a report that nobody wants."""
