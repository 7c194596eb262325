"""The network: uplinks, delays and losses.  The one place that counts messages.

Section 4 of the design: a message leaves through its sender's uplink, is lost or not (decided
when it is sent), and arrives after its latency, unless its receiver is off.  Always: sent =
delivered + dropped + missed + in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import simpy
from simpy.events import NORMAL

from agents.messages import HELLO, Message
from simulator.engines.event_rows import DELIVER, DROP, MISS, SEND
from simulator.engines.reference.journal import Journal
from simulator.engines.reference.timeline import TIMERS, Happening, Timeline
from simulator.engines.setup import Setup
from simulator.engines.slowness import Lasting, Renewed
from simulator.scenario.laws import sampler, stream
from simulator.scenario.network import GilbertElliott, RateDrop


class Arrival(Happening):
    """A message reaches a mailbox; its value is the message."""


class Links:
    """The network's state and counters.

    ``mailboxes`` holds, for each directed edge, the function at its far end that takes a message
    and the number of the link there.  ``on_alarm`` is called when ``alarm`` messages were sent.
    """

    def __init__(
        self,
        env: Timeline,
        setup: Setup,
        on_alarm: Callable[[], None],
        journal: Journal | None = None,
    ):
        self.env, self._journal = env, journal
        config, streams = setup.scenario.network, setup.streams
        self.senders: list[int] = setup.owners.tolist()
        self.latency = sampler(config.latency.drawn, streams.latency)
        self.agent_factors = _listed(setup.latency_factors)
        self.link_factors = _listed(setup.link_factors)
        #: Factors that last; both directions of a link have that of the first.
        self.slow_agents = renewed(setup.lasting_latency, streams.slowness)
        self.slow_links = renewed(setup.lasting_links, streams.slowness)
        self.pairs = [min(pair) for pair in enumerate(setup.back.tolist())]
        self.lost = loss_model(config.drop, streams.loss, len(self.senders))
        self.message_bytes, self.hello_bytes = setup.message_bytes, setup.hello_bytes
        self.bandwidth = config.bandwidth
        self.uplink_free = [0.0] * (max(self.senders, default=-1) + 1)
        self.last_arrival = [0.0] * len(self.senders) if config.fifo else None
        self.retransmit_after = config.timer
        self.sent = self.delivered = self.dropped = self.missed = self.bytes = 0
        #: Who is on, where agents come and go; partitions; messages of rounds whose timer was due
        #: while they could not be sent again.
        self.on: list[bool] | None = None
        self._cuts = setup.cuts
        self._held: dict[int, list[Message]] = {}
        #: In rounds: is a message that has not arrived worth another attempt?
        self.awaited: Callable[[Message], bool] = lambda _: True
        self._timers = TIMERS if setup.near else NORMAL
        if setup.availability is not None or setup.cuts is not None:
            self._receivers: list[int] = setup.neighbour.tolist()
        self.mailboxes: list[tuple[Callable[[Message, int], None], int]] = []
        self.alarm, self.on_alarm = math.inf, on_alarm
        self._on_arrival: list[Callable[[simpy.Event], None]] = [self._arrive]

    @property
    def in_flight(self) -> int:
        """Messages on their way: counted in the queue, not concluded from the other counts."""
        return self.env.count(Arrival)

    def check_conservation(self) -> None:
        """Whatever was sent has been delivered, was dropped, or is on its way."""
        known = self.delivered + self.dropped + self.missed + self.in_flight
        what = "delivered, dropped, missed or in flight"
        assert self.sent == known, f"{self.sent} sent, {known} {what}"

    def send(self, message: Message) -> tuple[float, float]:
        """Put a message on its way: when it leaves the uplink, and arrives (inf: it is lost)."""
        edge = message.edge
        departure = now = self.env.now
        sender = self.senders[edge]
        size = self.hello_bytes if message.kind == HELLO else self.message_bytes
        if self.bandwidth is not None:
            departure = max(now, self.uplink_free[sender]) + size / self.bandwidth
            self.uplink_free[sender] = departure
        message.place = self.sent
        if self._journal is not None:
            self._journal.message(SEND, message)
        self.sent += 1
        self.bytes += size
        if self.sent >= self.alarm:
            self.on_alarm()
        lost = self.lost(edge, now)
        latency = self.latency()
        of_agent = 1.0 if self.slow_agents is None else self.slow_agents.now(sender, now)
        of_link = 1.0 if self.slow_links is None else self.slow_links.now(self.pairs[edge], now)
        if lost or self._parted(edge):
            self.dropped += 1
            if self._journal is not None:
                self._journal.message(DROP, message)
            return departure, math.inf
        if self.agent_factors is not None:
            of_agent = self.agent_factors[sender]
        if self.link_factors is not None:
            of_link *= self.link_factors[edge]
        arrival = departure + latency * of_agent * of_link
        if self.last_arrival is not None:
            arrival = max(arrival, self.last_arrival[edge])
            self.last_arrival[edge] = arrival
        self.env.schedule_at(Arrival(self.env, self._on_arrival, message), arrival)
        return departure, arrival

    def _parted(self, edge: int) -> bool:
        """Does a partition lie between the ends of a link?"""
        if self._cuts is None:
            return False
        return self._cuts.parted(self.env.now, self.senders[edge], self._receivers[edge])

    def _passes(self, edge: int) -> bool:
        """Are both ends of a link on, and no partition between them?"""
        if self.on is not None and not (self.on[self.senders[edge]] and self._is_on(edge)):
            return False
        return not self._parted(edge)

    def _is_on(self, edge: int) -> bool:
        return self.on is None or self.on[self._receivers[edge]]

    def send_surely(self, message: Message) -> float:
        """Send, and again ``retransmit_after`` after each departure, until it has arrived.

        When it leaves the uplink for the first time.

        A sender can't tell a slow message from a lost one.  The timer is scheduled right after its
        attempt's arrival, so an arrival at that very instant is in time.  Where an end is off or a
        partition between them when it is due, the message waits until it can pass.
        """
        departure, arrival = self.send(message)
        due = departure + self.retransmit_after
        if arrival > due or self.on is not None:

            def again(_: simpy.Event) -> None:
                if message.arrived or not self.awaited(message):
                    return
                if self._passes(message.edge):
                    self.send_surely(message.again())
                else:
                    self._held.setdefault(message.edge, []).append(message)

            if due < math.inf:
                self.env.schedule_at(Happening(self.env, [again]), due, self._timers)
        return departure

    def retry(self, edges: Iterable[int]) -> None:
        """Send again what waits on these edges, in their order, and can pass now."""
        for edge in edges:
            if edge in self._held and self._passes(edge):
                for message in sorted(self._held.pop(edge), key=lambda held: held.number):
                    if not message.arrived and self.awaited(message):
                        self.send_surely(message.again())

    def _arrive(self, event: simpy.Event) -> None:
        message: Any = event.value
        if not self._is_on(message.edge):
            self.missed += 1
            if self._journal is not None:
                self._journal.message(MISS, message)
            return
        self.delivered += 1
        if self._journal is not None:
            self._journal.message(DELIVER, message)
        receive, k = self.mailboxes[message.edge]
        receive(message, k)


def _listed(factors: Any) -> list[float] | None:
    return None if factors is None else factors.tolist()


def renewed(lasting: Lasting | None, rng: np.random.Generator) -> Renewed | None:
    """The factors as they change in a run, where they do."""
    return None if lasting is None else Renewed(lasting, rng)


def loss_model(
    config: RateDrop | GilbertElliott, rng: np.random.Generator, edges: int
) -> Callable[[int, float], bool]:
    """A function of (directed edge, time of sending) that says whether that message is lost."""
    uniform = stream(lambda: rng.random(4096))
    if isinstance(config, RateDrop):
        rate = config.rate
        return lambda edge, now: uniform() < rate

    # Two-state chain in continuous time: with rates g = 1/mean_good (good → bad) and
    # b = 1/mean_bad, and q = g/(g + b) the stationary probability of bad, the probability of bad
    # a time dt after state s is q + (s − q)·exp(−(g + b)·dt); long ago means stationary.
    g, b = 1.0 / config.mean_good, 1.0 / config.mean_bad
    q, total = g / (g + b), g + b
    drop = (config.drop_good, config.drop_bad)
    bad = [q] * edges
    since = [-math.inf] * edges

    def lost(edge: int, now: float) -> bool:
        stay = math.exp(-total * (now - since[edge]))
        bad[edge] = float(uniform() < q + (bad[edge] - q) * stay)
        since[edge] = now
        return uniform() < drop[int(bad[edge])]

    return lost
