"""Agents in SimPy: when they turn to what, in gossip and in rounds; protocols say what they do."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator
from itertools import accumulate
from typing import Any

import simpy

from agents.messages import HELLO, Message, Sheet, World
from agents.protocol import Protocol, Rounds, hello


class Agent:
    """What all agents can do: compute, which pauses while they are off."""

    def __init__(self, world: World, number: int, edges: range):
        self.env, self.world, self.number, self.edges = world.env, world, number, edges
        self.on, self.busy = True, False
        #: What follows a computation, with which link or message; is that now.
        self._then: Callable[[Any, int, Any], None] | None = None
        self._job: Any = None
        self._ready = False
        #: When it is done; how often it was interrupted, and what was left of it.
        self._due, self._pauses, self._left = 0.0, 0, 0.0
        #: Has absorbing changed the model?
        self.changed = False

    def compute(self, then: Callable[[Any, int, Any], None], job: Any) -> None:
        """Be busy for one solve; what takes no time is over when the present function returns."""
        duration = self.world.compute_time(self.number)
        self._then, self._job = then, job
        if duration == 0.0:
            self._ready = True
            return
        self.busy = True
        self._end_in(duration)

    def _end_in(self, duration: float) -> None:
        """Finish after so long, unless the agent is switched off before."""
        pauses, self._due = self._pauses, self.env.now + duration

        def done(_: simpy.Event) -> None:
            if pauses == self._pauses:
                self.busy, self._ready = False, True
                self._go_on()

        self.env.timeout(duration).callbacks.append(done)

    @property
    def goes_on(self) -> bool:
        """Does the same event go on with another function of the protocol?"""
        return self._ready

    def _follow(self) -> None:
        """Do what follows the computation."""
        self._ready = False
        assert self._then is not None
        self._then(self.world, self.number, self._job)

    def _go_on(self) -> None:
        """The agent has finished computing: an event of its own."""
        raise NotImplementedError

    def switch_off(self) -> None:
        """Stop computing, for the time being."""
        self.on = False
        if self.busy:
            self._pauses += 1
            self._left = self._due - self.env.now

    def switch_on(self, forget: bool) -> None:
        """Go on computing."""
        self.on = True
        if self.busy:
            self._end_in(self._left)


class GossipAgent(Agent):
    """Ticks, and handles one message at a time.

    A message that finds the agent busy waits in the mailbox, in order of arrival.  While the agent
    is off, its clock goes on without effect.
    """

    def __init__(
        self,
        world: World,
        number: int,
        edges: range,
        protocol: type[Protocol],
        *,
        peer_weights: list[float] | None,
        in_turn: bool,
        to_all: bool,
        hello: bool,
    ):
        super().__init__(world, number, edges)
        self.hello, self.in_turn, self.to_all = hello, in_turn, to_all
        #: The link that was chosen last, where that is done in turn.
        self.turn: int | None = None
        self.cumulative = None if peer_weights is None else list(accumulate(peer_weights))
        self.tick, self.handle = protocol.tick, protocol.handle
        self.after, self.after_tick = protocol.after, protocol.after_tick
        self.versioned, self.averages = protocol.versioned, protocol.averages
        #: How often the agent has sent; what was last heard on each link, or the link's version.
        self.sends, self.marks = 0, [0] * len(edges)
        self.mailbox: deque[Message] = deque()

    def start(self) -> None:
        """Become a process of the environment."""
        self.env.process(self.run())

    def run(self) -> Generator[simpy.Event, Any, None]:
        """The clock.  An agent without neighbours ticks too, and does nothing."""
        world, wind = self.world, self.world.wind
        uniform, ticked = world.uniform, world.ticked
        if self.on:
            self._say_hello()
        while True:
            yield wind(self.number)
            u = uniform()
            if self.busy or not self.on:
                world.skipped(self.number)
            else:
                ticked(self.number)
                if self.edges:
                    self.tick(world, self.number, u)
                    if self._ready or self.changed:
                        self._end_event()

    def _say_hello(self) -> None:
        """Once, if that is the start."""
        if not self.hello:
            return
        self.hello = False
        world = self.world
        for edge in self.edges:
            sheet = world.sheets.take()
            world.steps.say_hello(self.number, sheet)
            # Where links have versions, the first messages belong to version 0 of theirs.
            self.sends += not self.versioned
            world.send(Message(HELLO, edge, sheet, self.sends, self.env.now))

    def switch_on(self, forget: bool) -> None:
        """Go on computing, or forget everything; who was off at first says hello now."""
        if forget:
            self.mailbox.clear()
            self.busy, self.turn = False, None
            if self.versioned:  # nobody takes an old reply for a new one
                self.marks = [mark + 1 for mark in self.marks]
            self.world.renew(self.number)
        super().switch_on(forget)
        self._say_hello()

    def choose(self, u: float) -> int:
        """The link that u in [0, 1) picks; in turn, it picks the first alone."""
        first, last = self.edges[0], len(self.edges) - 1
        if self.turn is not None:
            self.turn = first if self.turn == first + last else self.turn + 1
            return self.turn
        if self.in_turn:
            self.turn = first + min(int(u * (last + 1)), last)
            return self.turn
        if self.cumulative is None:
            return first + min(int(u * (last + 1)), last)
        return first + min(bisect_right(self.cumulative, u * self.cumulative[last]), last)

    def receive(self, message: Message, edge: int) -> None:
        """A message has arrived from the neighbour on link ``edge``."""
        message.link = edge
        if self.busy:
            self.mailbox.append(message)
        else:
            self._turn_to(message)

    def _turn_to(self, message: Message) -> None:
        self.world.handled(message)
        if message.kind == HELLO:
            hello(self.world, self.number, message)
        else:
            self.handle(self.world, self.number, message)
        if self._ready or self.changed:
            self._end_event()

    def _end_event(self) -> None:
        """What takes no time follows at once; then look whether the model has changed."""
        while self._ready:
            self._follow()
        if self.changed:
            self.changed = False
            self.world.steps.changed(self.number)

    def _go_on(self) -> None:
        self._end_event()
        while self.mailbox and not self.busy:
            self._turn_to(self.mailbox.popleft())


class RoundAgent(Agent):
    """Takes part in rounds, each of which begins when ``go`` is called; off, it begins nothing.

    ``needed`` is how many messages of its round it waits for.  A neighbour may be one round ahead.
    """

    def __init__(
        self,
        world: World,
        number: int,
        edges: range,
        rounds: type[Rounds],
        *,
        same_for_all: bool,
        needed: int,
    ):
        super().__init__(world, number, edges)
        self.rounds, self.after_tick, self.same_for_all = rounds, rounds.after_tick, same_for_all
        self.needed = needed
        #: Its round, the one it last told of, what it told, by link, and when the last of it left.
        self.round, self.said, self.departed = 0, 0, 0.0
        self.told: list[Sheet] = []
        #: What has come for this round and for the next, by link; how much of it counts now.
        self.inbox: dict[int, Message] = {}
        self.ahead: dict[int, Message] = {}
        self.arrived = 0
        #: Was the agent called to wait no longer, did that reach it, does it wait, has it gone on?
        self.called = self.woken = self.waiting = self.gone = False
        #: Has it finished the round; is it yet to begin it; did an alarm ring while it was off; is
        #: it to forget before the next one?
        self.over = self._late = self._overdue = self.forgetful = False

    def _soon(self, action: Callable[[], None]) -> None:
        """An event of its own, at this instant."""
        event = self.env.event()
        event.callbacks.append(lambda _: action())
        event.succeed()

    def go(self) -> None:
        """A round begins, as soon as the agent is on; part of what it waits for may be there."""
        self.round += 1
        self.called = self.woken = self.gone = False
        self._soon(self._begin)
        self.arrived = 0
        for k in self._there():
            self.arrived += 1
            self.rounds.hear(self.world, self.number, k)

    def _there(self) -> list[int]:
        """The links that have brought what counts in the round that begins."""
        self.inbox, self.ahead = self.ahead, {}
        return sorted(self.inbox)

    def _begin(self) -> None:
        if not self.edges:
            self.world.round_done(self.number)
        elif self.on:
            if self.forgetful:
                self.forgetful = False
                self.world.renew(self.number)
            self.rounds.begin(self.world, self.number)
            self._go_on()
        else:
            self._late = True

    def switch_on(self, forget: bool) -> None:
        """Go on computing, or begin or end what had to wait; forget when the next round begins."""
        super().switch_on(forget)
        self.forgetful = self.forgetful or forget
        if self._late:
            self._late = False
            self._soon(self._begin)
        if self._overdue:
            self._overdue = False
            self._alarm_at(self.env.now)

    def receive(self, message: Message, edge: int) -> None:
        """Keep the message; further attempts of it are stale, however late."""
        if message.arrived:
            self._ignore(message)
            return
        message.arrived = True
        if message.number > self.round:
            self.ahead[edge] = message
        else:
            self.inbox[edge] = message
            self.arrived += 1
            self.rounds.hear(self.world, self.number, edge)

    def _ignore(self, message: Message) -> None:
        self.world.handled(message)
        self.world.stale(message)

    def awaits(self, message: Message, newest: int) -> bool:
        """Is a message sent again that has not arrived?  ``newest`` is its sender's last round."""
        return True

    def taken(self, k: int) -> Message | None:
        """What is new on link k."""
        return self.inbox.pop(k, None)

    def alarm(self, after: float) -> None:
        """Let the present round ring so long after the last message has left."""
        if after < math.inf:
            self._alarm_at(self.departed + after)

    def _alarm_at(self, time: float) -> None:
        number = self.round

        def ring() -> None:
            if self.round == number:
                if self.on:
                    self.rounds.ring(self.world, self.number)
                else:
                    self._overdue = True

        self.world.alarm(self.number, time, ring)

    @property
    def goes_on(self) -> bool:
        """Does the same event go on with another function?"""
        return self._ready or (self.waiting and self.woken)

    def wake(self) -> None:
        """Need not wait any longer in this round."""
        if self.called:
            return
        self.called = True

        def woken() -> None:
            self.woken = True
            self._go_on()

        self._soon(woken)

    def _go_on(self) -> None:
        """What takes no time, or has been waited for already, follows at once."""
        while self.goes_on:
            if self._ready:
                self._follow()
            else:
                self.waiting, self.gone = False, True
                self.woken = False
                self.rounds.complete(self.world, self.number)
        if self.over:
            self.over = False
            self.world.round_done(self.number)


class LooseRoundAgent(RoundAgent):
    """Keeps the newest message of each link; those of ``slack`` rounds before its own count too."""

    def __init__(self, *parts: Any, slack: int, **more: Any):
        super().__init__(*parts, **more)
        self.slack = slack
        #: The newest round heard on each link; how many messages came after their round.
        self.heard = dict.fromkeys(self.edges, 0)
        self.late = 0

    def _there(self) -> list[int]:
        return [k for k in self.edges if self.heard[k] >= self.round - self.slack]

    def receive(self, message: Message, edge: int) -> None:
        """Keep the message if nothing newer is known on its link."""
        heard, least = self.heard[edge], self.round - self.slack
        if message.number <= heard:
            self._ignore(message)
            return
        message.arrived = True
        self.heard[edge], self.inbox[edge] = message.number, message
        self.late += message.number < self.round
        if heard < least <= message.number:
            self.arrived += 1
            self.rounds.hear(self.world, self.number, edge)

    def awaits(self, message: Message, newest: int) -> bool:
        """Only the last one of its sender's, and while it still counts."""
        return message.number == newest >= self.round - self.slack + self.gone
