"""The agent: a SimPy process around a rule, with a clock, a mailbox and one thing to do at a time.

``GossipAgent`` follows section 2 of the design (asynchronous), ``RoundAgent`` section 3
(synchronous).  An agent sees the rest of the world through ``World`` only: it can send, draw
from the shared random streams and report what happened; it measures nothing itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator
from itertools import accumulate
from typing import Any, Protocol

import simpy

from agents.rule import Payload, Rule

REQUEST, REPLY, HELLO, ROUND = range(4)


class Message:
    """What travels from one agent to another along a directed edge."""

    __slots__ = ("answers", "edge", "kind", "number", "payload", "sent_at")

    def __init__(
        self,
        kind: int,
        edge: int,
        payload: Payload,
        number: int,
        sent_at: float,
        answers: Payload = (),
    ):
        self.kind = kind
        self.edge = edge
        self.payload = payload
        #: The sender's send number ("after" rules), or the version of the link at the asking end.
        self.number = number
        self.sent_at = sent_at
        #: A reply's request, as its sender remembers it; it does not travel and has no size.
        self.answers = answers


class World(Protocol):
    """What an agent can do and report."""

    def send(self, message: Message) -> object:
        """Put a message on the network."""

    def send_surely(self, message: Message) -> None:
        """The same, but a lost message is sent again until it arrives."""

    def gap(self) -> float:
        """A standard exponential: the time to the next tick of a clock of rate 1."""

    def uniform(self) -> float:
        """A number in [0, 1) that decides which neighbour is contacted."""

    def compute_time(self, agent: int) -> float:
        """How long the agent's next solve takes."""

    def updated(self, agent: int, rule: Rule) -> None:
        """The agent has a new model."""

    def refreshed(self, edge: int, sent_at: float) -> None:
        """The agent's copy of the neighbour at the far end of ``edge`` is now of ``sent_at``."""

    def stale(self) -> None:
        """A message came too late to be of use."""

    def skipped(self) -> None:
        """A tick found its agent busy."""

    def round_done(self) -> None:
        """The agent has finished the current round."""


class _Process:
    """What both kinds of agent have: a rule, a number, and links to neighbours.

    ``edges[k]`` is the directed edge from this agent to the neighbour on link k.
    """

    def __init__(self, env: simpy.Environment, world: World, number: int, rule: Rule, edges: range):
        self.env, self.world = env, world
        self.number, self.rule, self.edges = number, rule, edges

    def start(self) -> None:
        """Become a process of the environment."""
        self.env.process(self.run())

    def run(self) -> Generator[simpy.Event, Any, None]:
        """The process."""
        raise NotImplementedError

    def receive(self, message: Message, k: int) -> None:
        """A message has arrived from the neighbour on link k."""
        raise NotImplementedError

    def _solve(self) -> None:
        self.rule.solve()
        self.world.updated(self.number, self.rule)


class GossipAgent(_Process):
    """Ticks, contacts one neighbour a tick, answers requests; the protocol of one kind of rule.

    Subclasses write ``tick`` and ``receive``, which differ in when the rule solves.  A message
    that finds the agent busy waits in the mailbox, in order of arrival.
    """

    def __init__(
        self,
        env: simpy.Environment,
        world: World,
        number: int,
        rule: Rule,
        edges: range,
        rate: float,
        peer_weights: list[float] | None,
        hello: bool,
    ):
        super().__init__(env, world, number, rule, edges)
        self.rate, self.hello = rate, hello
        self.cumulative = None if peer_weights is None else list(accumulate(peer_weights))
        # The busiest calls, looked up once.
        self._put, self._refreshed = world.send, world.refreshed
        self.busy = False
        self.mailbox: deque[tuple[Message, int]] = deque()

    def run(self) -> Generator[simpy.Event, Any, None]:
        """The Poisson clock.  An agent without neighbours ticks too, and does nothing."""
        timeout, gap, uniform, rate = (
            self.env.timeout,
            self.world.gap,
            self.world.uniform,
            self.rate,
        )
        if self.hello:
            for k in range(len(self.edges)):
                self._send(HELLO, k, (self.rule.model,))
        while True:
            yield timeout(gap() / rate)
            u = uniform()
            if not self.edges:
                continue
            if self.busy:
                self.world.skipped()
            else:
                self.tick(self._choose(u))

    def _choose(self, u: float) -> int:
        """The link that u in [0, 1) picks: uniformly, or in proportion to the weights."""
        last = len(self.edges) - 1
        if self.cumulative is None:
            return min(int(u * (last + 1)), last)
        return min(bisect_right(self.cumulative, u * self.cumulative[last]), last)

    def tick(self, k: int) -> None:
        """The clock rang and the agent is free: contact the neighbour on link k."""
        raise NotImplementedError

    def _send(self, kind: int, k: int, payload: Payload) -> None:
        """Send a message of the agent's own, with the number that belongs to it."""
        raise NotImplementedError

    def _compute(self, finish: Callable[[], None]) -> None:
        """Be busy for one solve, then ``finish``; at once if it takes no time."""
        duration = self.world.compute_time(self.number)
        if duration == 0.0:
            finish()
            return

        def done(_: simpy.Event) -> None:
            self.busy = False
            finish()
            while self.mailbox and not self.busy:
                self.receive(*self.mailbox.popleft())

        self.busy = True
        self.env.timeout(duration).callbacks.append(done)


class AnswersThenSolves(GossipAgent):
    """For rules that solve after receiving, as mp does.

    Every message carries the sender's send number; knowledge never goes back to an older one.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.sends = 0
        self.heard = [0] * len(self.edges)

    def _send(self, kind: int, k: int, payload: Payload) -> None:
        self.sends += 1
        self._put(Message(kind, self.edges[k], payload, self.sends, self.env.now))

    def tick(self, k: int) -> None:
        """Send the request."""
        self._send(REQUEST, k, self.rule.payload(k))

    def receive(self, message: Message, k: int) -> None:
        """Answer a request with the state as it was before; then absorb and solve."""
        if self.busy:
            self.mailbox.append((message, k))
            return
        own = self.rule.payload(k)
        if message.kind == REQUEST:
            self._send(REPLY, k, own)
        if message.number <= self.heard[k]:
            self.world.stale()
            return
        self.heard[k] = message.number
        self._refreshed(self.edges[k], message.sent_at)
        if message.kind == HELLO:
            self.rule.introduce(k, message.payload[0])
        else:
            self.rule.absorb(k, message.payload, own)
            self._compute(self._solve)


class SolvesThenAnswers(GossipAgent):
    """For rules that solve before sending, as admm does.

    Each end keeps a version of each link, raised whenever it absorbs; a reply echoes the version
    that came with its request, and is stale if the asking end's has moved since.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.versions = [0] * len(self.edges)

    def tick(self, k: int) -> None:
        """Solve, then send the request."""

        def finish() -> None:
            self._solve()
            self._send(REQUEST, k, self.rule.payload(k))

        self._compute(finish)

    def _send(self, kind: int, k: int, payload: Payload) -> None:
        self._put(Message(kind, self.edges[k], payload, self.versions[k], self.env.now))

    def _reply(self, k: int, request: Message, payload: Payload) -> None:
        self._put(
            Message(REPLY, self.edges[k], payload, request.number, self.env.now, request.payload)
        )

    def receive(self, message: Message, k: int) -> None:
        """A request: solve, absorb, answer.  A reply: absorb, unless stale."""
        if self.busy:
            self.mailbox.append((message, k))
        elif message.kind == REQUEST:

            def finish() -> None:
                self._solve()
                own = self.rule.payload(k)
                self._absorb(k, message, own)
                self._reply(k, message, own)

            self._compute(finish)
        elif message.number != self.versions[k]:
            self.world.stale()
        elif message.kind == HELLO:
            self.rule.introduce(k, message.payload[0])
            self.world.refreshed(self.edges[k], message.sent_at)
        else:
            self._absorb(k, message, message.answers)

    def _absorb(self, k: int, message: Message, own: Payload) -> None:
        self.rule.absorb(k, message.payload, own)
        self.versions[k] += 1
        self.world.refreshed(self.edges[k], message.sent_at)


class RoundAgent(_Process):
    """Sends to all neighbours, waits for all of theirs; a round begins when ``go`` is called."""

    def __init__(self, env: simpy.Environment, world: World, number: int, rule: Rule, edges: range):
        super().__init__(env, world, number, rule, edges)
        self._begin = env.event()
        self._forget()

    def _forget(self) -> None:
        self.inbox: dict[int, Message] = {}
        self._complete = self.env.event()

    def go(self) -> None:
        """The barrier opens."""
        self._begin.succeed()

    def receive(self, message: Message, k: int) -> None:
        """Keep the message until all are there."""
        self.inbox[k] = message
        if len(self.inbox) == len(self.edges):
            self._complete.succeed()

    def run(self) -> Generator[simpy.Event, Any, None]:
        """One round after the other."""
        while True:
            yield self._begin
            self._begin = self.env.event()
            if self.edges:
                yield from self._round()
            self.world.round_done()

    def _round(self) -> Generator[simpy.Event, Any, None]:
        if self.rule.SOLVES == "before":
            yield from self._compute()
        now, sent = self.env.now, [self.rule.payload(k) for k in range(len(self.edges))]
        for k, edge in enumerate(self.edges):
            self.world.send_surely(Message(ROUND, edge, sent[k], 0, now))
        yield self._complete
        for k, edge in enumerate(self.edges):
            message = self.inbox[k]
            self.rule.absorb(k, message.payload, sent[k])
            self.world.refreshed(edge, message.sent_at)
        self._forget()
        if self.rule.SOLVES == "after":
            yield from self._compute()

    def _compute(self) -> Generator[simpy.Event, Any, None]:
        duration = self.world.compute_time(self.number)
        if duration > 0.0:
            yield self.env.timeout(duration)
        self._solve()
