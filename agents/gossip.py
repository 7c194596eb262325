"""Asynchronous agents: SimPy processes with a clock and a mailbox, one class a protocol.

An agent sees the rest of the world through ``World`` only: it can send, draw from the shared
random streams and report what happened; it measures nothing itself.  docs/design.md has the
protocols in a table.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator
from itertools import accumulate
from typing import Any

import simpy

from agents.messages import HELLO, REPLY, REQUEST, Message, Sheet, World
from agents.rule import ANSWER_THEN_SOLVE, AVERAGE, SOLVE_THEN_ANSWER, TELL


class GossipAgent:
    """Ticks, contacts neighbours, handles one message at a time; the base of all protocols.

    Subclasses write ``tick`` and ``handle``.  A message that finds the agent busy waits in the
    mailbox, in order of arrival.  ``edges`` are the agent's links.  While the agent is off, its
    clock goes on without effect, and computing pauses.
    """

    def __init__(
        self,
        env: simpy.Environment,
        world: World,
        number: int,
        edges: range,
        *,
        rate: float,
        peer_weights: list[float] | None,
        hello: bool,
    ):
        self.env, self.world, self.number, self.edges = env, world, number, edges
        self.rate, self.hello = rate, hello
        self.cumulative = None if peer_weights is None else list(accumulate(peer_weights))
        # The busiest calls, looked up once.
        self._put, self._refreshed, self.steps = world.send, world.refreshed, world.steps
        self._sheet, self._handled, self._ticked = world.sheets.take, world.handled, world.ticked
        self.on, self.busy = True, False
        #: What is being computed, until when; how often that was interrupted, and what was left.
        self._finish: Callable[[], None] | None = None
        self._due, self._pauses, self._left = 0.0, 0, 0.0
        self.mailbox: deque[tuple[Message, int]] = deque()

    def start(self) -> None:
        """Become a process of the environment."""
        self.env.process(self.run())

    def run(self) -> Generator[simpy.Event, Any, None]:
        """The Poisson clock.  An agent without neighbours ticks too, and does nothing."""
        timeout, gap, uniform, rate = (
            self.env.timeout,
            self.world.gap,
            self.world.uniform,
            self.rate,
        )
        if self.on:
            self._say_hello()
        while True:
            yield timeout(gap() / rate)
            u = uniform()
            if self.busy or not self.on:
                self.world.skipped(self.number)
            else:
                self._ticked(self.number)
                if self.edges:
                    self.tick(u)

    def _say_hello(self) -> None:
        """Once, if that is the start."""
        if not self.hello:
            return
        self.hello = False
        for edge in self.edges:
            sheet = self._sheet()
            self.steps.say_hello(self.number, sheet)
            self._send(HELLO, edge, sheet)

    def switch_off(self) -> None:
        """Stop computing, for the time being."""
        self.on = False
        if self.busy:
            self._pauses += 1
            self._left = self._due - self.env.now

    def switch_on(self, forget: bool) -> None:
        """Go on computing, or forget everything; who was off at first says hello now."""
        self.on = True
        if forget:
            self.mailbox.clear()
            self.busy = False
            self._forget()
            self.world.renew(self.number)
        elif self.busy:
            self._end_in(self._left)
        self._say_hello()

    def _forget(self) -> None:
        """What a protocol remembers of its links."""

    def _choose(self, u: float) -> int:
        """The link that u in [0, 1) picks: uniformly, or in proportion to the weights."""
        first, last = self.edges[0], len(self.edges) - 1
        if self.cumulative is None:
            return first + min(int(u * (last + 1)), last)
        return first + min(bisect_right(self.cumulative, u * self.cumulative[last]), last)

    def tick(self, u: float) -> None:
        """The clock rang and the agent is free; u in [0, 1) is there to choose a neighbour."""
        raise NotImplementedError

    def receive(self, message: Message, edge: int) -> None:
        """A message has arrived from the neighbour on link ``edge``."""
        if self.busy:
            self.mailbox.append((message, edge))
        else:
            self._turn_to(message, edge)

    def _turn_to(self, message: Message, edge: int) -> None:
        self._handled(message)
        self.handle(message, edge)

    def handle(self, message: Message, edge: int) -> None:
        """The agent is free and turns to a message."""
        raise NotImplementedError

    def _send(self, kind: int, edge: int, sheet: Sheet, answers: Message | None = None) -> None:
        """Send a message, with the number that belongs to it."""
        raise NotImplementedError

    def _tell(self, edge: int) -> Sheet:
        sheet = self._sheet()
        self.steps.tell(self.number, edge, sheet)
        return sheet

    def _compute(self, finish: Callable[[], None]) -> None:
        """Be busy for one solve, then ``finish``; at once if it takes no time."""
        duration = self.world.compute_time(self.number)
        if duration == 0.0:
            finish()
            return
        self.busy, self._finish = True, finish
        self._end_in(duration)

    def _end_in(self, duration: float) -> None:
        """Finish after so long, unless the agent is switched off before."""
        pauses, self._due = self._pauses, self.env.now + duration

        def done(_: simpy.Event) -> None:
            if pauses != self._pauses:
                return
            assert self._finish is not None
            self.busy = False
            self._finish()
            while self.mailbox and not self.busy:
                self._turn_to(*self.mailbox.popleft())

        self.env.timeout(duration).callbacks.append(done)

    def _solve(self) -> None:
        self.steps.solve(self.number)
        self.world.solved(self.number)


class Numbering(GossipAgent):
    """Every message carries the sender's send number; knowledge never goes back to an older one."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.sends = 0
        self.heard = [0] * len(self.edges)

    def _send(self, kind: int, edge: int, sheet: Sheet, answers: Message | None = None) -> None:
        self.sends += 1
        self._put(Message(kind, edge, sheet, self.sends, self.env.now, answers))

    def _fresh(self, message: Message, edge: int) -> bool:
        k = edge - self.edges.start
        if message.number <= self.heard[k]:
            self.world.stale(message)
            return False
        self.heard[k] = message.number
        self._refreshed(edge, message.sent_at)
        return True


class AnswersThenSolves(Numbering):
    """A tick sends a request; it is answered with the state as it was; both ends then solve."""

    def tick(self, u: float) -> None:
        """Send the request."""
        edge = self._choose(u)
        self._send(REQUEST, edge, self._tell(edge))

    def handle(self, message: Message, edge: int) -> None:
        """Answer a request with the state as it was before; then absorb and solve."""
        if self._take_in(message, edge) and message.kind != HELLO:
            self._compute(self._solve)

    def _take_in(self, message: Message, edge: int) -> bool:
        """Answer a request with the state as it was before; then absorb, unless it is stale."""
        fresh = self._fresh(message, edge)
        own = None if message.answers is None else message.answers.sheet
        if message.kind == REQUEST:
            own = self._tell(edge)
            self._send(REPLY, edge, own, message)
        if fresh and message.kind == HELLO:
            self.steps.introduce(self.number, edge, message.sheet)
        elif fresh:
            self.steps.absorb(self.number, edge, message.sheet, own)
        return fresh


class Averages(AnswersThenSolves):
    """The same, but absorbing gives a new model, and the asking end alone then solves."""

    def handle(self, message: Message, edge: int) -> None:
        """Answer a request with the model as it was; average; solve, if it is a reply."""
        if not self._take_in(message, edge):
            return
        if message.kind == REPLY:
            self._compute(self._solve)
        # Average and step hold together where solving takes no time.
        if message.kind != REPLY or self.busy:
            self.steps.changed(self.number)


class Tells(Numbering):
    """A tick solves and tells every neighbour the outcome; nobody answers."""

    def tick(self, u: float) -> None:
        """Solve, then send to all neighbours."""

        def finish() -> None:
            self._solve()
            for edge in self.edges:
                self._send(REQUEST, edge, self._tell(edge))

        self._compute(finish)

    def handle(self, message: Message, edge: int) -> None:
        """Absorb."""
        if not self._fresh(message, edge):
            return
        if message.kind == HELLO:
            self.steps.introduce(self.number, edge, message.sheet)
        else:
            self.steps.absorb(self.number, edge, message.sheet, None)


class SolvesThenAnswers(GossipAgent):
    """A tick solves and sends a request; the other end solves, absorbs and answers.

    Each end keeps a version of each link, raised whenever it absorbs; a reply echoes the version
    that came with its request, and is stale if the asking end's has moved since.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.versions = [0] * len(self.edges)

    def tick(self, u: float) -> None:
        """Solve, then send the request."""
        edge = self._choose(u)

        def finish() -> None:
            self._solve()
            self._send(REQUEST, edge, self._tell(edge))

        self._compute(finish)

    def _forget(self) -> None:
        # Nobody takes an old reply for a new one.
        self.versions = [version + 1 for version in self.versions]

    def _send(self, kind: int, edge: int, sheet: Sheet, answers: Message | None = None) -> None:
        # The first messages belong to version 0 of their links.
        version = 0 if kind == HELLO else self.versions[edge - self.edges.start]
        self._put(Message(kind, edge, sheet, version, self.env.now, answers))

    def handle(self, message: Message, edge: int) -> None:
        """A request: solve, absorb, answer.  A reply: absorb, unless stale."""
        k = edge - self.edges.start
        if message.kind == REQUEST:

            def finish() -> None:
                self._solve()
                own = self._tell(edge)
                self._absorb(edge, message, own)
                reply = Message(REPLY, edge, own, message.number, self.env.now, message)
                self._put(reply)

            self._compute(finish)
        elif message.number != self.versions[k]:
            self.world.stale(message)
        elif message.kind == HELLO:
            self.steps.introduce(self.number, edge, message.sheet)
            self._refreshed(edge, message.sent_at)
        else:
            assert message.answers is not None
            self._absorb(edge, message, message.answers.sheet)

    def _absorb(self, edge: int, message: Message, own: Sheet | None) -> None:
        self.steps.absorb(self.number, edge, message.sheet, own)
        self.versions[edge - self.edges.start] += 1
        self._refreshed(edge, message.sent_at)


#: The agents of each protocol.
AGENTS: dict[str, type[GossipAgent]] = {
    ANSWER_THEN_SOLVE: AnswersThenSolves,
    SOLVE_THEN_ANSWER: SolvesThenAnswers,
    TELL: Tells,
    AVERAGE: Averages,
}
