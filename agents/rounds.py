"""Synchronous agents: SimPy processes that wait for all their neighbours in every round."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from agents.messages import ROUND, Message, Sheet, World


class RoundAgent:
    """Sends to all neighbours, waits for all of theirs; a round begins when ``go`` is called.

    ``solves_first`` says whether the rule solves before it sends; ``same_for_all`` whether it
    tells all neighbours the same.  While the agent is off it begins nothing, and computing pauses.
    """

    def __init__(
        self,
        env: simpy.Environment,
        world: World,
        number: int,
        edges: range,
        *,
        solves_first: bool,
        same_for_all: bool,
    ):
        self.env, self.world, self.number, self.edges = env, world, number, edges
        self.solves_first, self.same_for_all = solves_first, same_for_all
        self._begin, self._back = env.event(), env.event()
        self.on = True
        #: The end of computing, None while it pauses; when it is, and what was left of it.
        self._end: simpy.Event | None = None
        self._due, self._left, self._busy = 0.0, 0.0, False
        self._clear()

    def start(self) -> None:
        """Become a process of the environment."""
        self.env.process(self.run())

    def _clear(self) -> None:
        self.inbox: dict[int, Message] = {}
        self._complete = self.env.event()

    def go(self) -> None:
        """The barrier opens for a round."""
        self._begin.succeed()

    def switch_off(self) -> None:
        """Stop computing, for the time being."""
        self.on = False
        if self._busy:
            self._left, self._end = self._due - self.env.now, None

    def switch_on(self) -> None:
        """Go on computing, or begin what had to wait."""
        self.on = True
        if self._busy:
            self._end_in(self._left)
        back, self._back = self._back, self.env.event()
        back.succeed()

    def receive(self, message: Message, edge: int) -> None:
        """Keep the message until all are there; further attempts of it are stale, however late."""
        if message.arrived:
            self.world.handled(message)
            self.world.stale(message)
            return
        message.arrived = True
        self.inbox[edge] = message
        if len(self.inbox) == len(self.edges):
            self._complete.succeed()

    def run(self) -> Generator[simpy.Event, Any, None]:
        """One round after the other."""
        while True:
            yield self._begin
            self._begin = self.env.event()
            if self.edges:
                while not self.on:
                    yield self._back
                yield from self._round()
            self.world.round_done()

    def _round(self) -> Generator[simpy.Event, Any, None]:
        steps = self.world.steps
        if self.solves_first:
            yield from self._compute()
        now, sent = self.env.now, self._tell_all()
        for edge, sheet in zip(self.edges, sent, strict=True):
            self.world.send_surely(Message(ROUND, edge, sheet, 0, now))
        yield self._complete
        for edge, sheet in zip(self.edges, sent, strict=True):
            message = self.inbox[edge]
            self.world.handled(message)
            steps.absorb(self.number, edge, message.sheet, sheet)
            self.world.refreshed(edge, message.sent_at)
        self._clear()
        if not self.solves_first:
            yield from self._compute()

    def _tell_all(self) -> list[Sheet]:
        take, tell = self.world.sheets.take, self.world.steps.tell
        if self.same_for_all:
            sheet = take()
            tell(self.number, self.edges[0], sheet)
            return [sheet] * len(self.edges)
        sheets = []
        for edge in self.edges:
            sheets.append(take())
            tell(self.number, edge, sheets[-1])
        return sheets

    def _compute(self) -> Generator[simpy.Event, Any, None]:
        duration = self.world.compute_time(self.number)
        if duration > 0.0:
            self._busy = True
            self._end_in(duration)
            ended = None
            while ended is not self._end or ended is None:
                ended = self._end
                yield self._back if ended is None else ended
            self._busy = False
        self.world.steps.solve(self.number)
        self.world.solved(self.number)

    def _end_in(self, duration: float) -> None:
        self._end, self._due = self.env.timeout(duration), self.env.now + duration
