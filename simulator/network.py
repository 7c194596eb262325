"""The network: uplinks, delays and losses.  The one place that counts messages.

Section 4 of the design: a message leaves through its sender's uplink, is lost or not (decided
when it is sent), and arrives after its latency.  Always: sent = delivered + dropped + in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappush
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray
from simpy.events import NORMAL, EventPriority

from agents.agent import Message
from simulator.laws import sampler, stream
from simulator.scenario import GilbertElliott, Network, RateLoss
from simulator.seeds import Streams

#: Among the events of one instant: halts come first, samples last.
FIRST, LAST = EventPriority(-1), EventPriority(2)


class Timeline(simpy.Environment):
    """SimPy's environment, with events at absolute times.

    ``now + (at − now)`` may differ from ``at`` in the last bit, which would break fifo links.
    """

    def schedule_at(self, event: simpy.Event, at: float, priority: EventPriority = NORMAL) -> None:
        """Let an event happen at time ``at``; ties are broken by priority, then order of calls."""
        heappush(self._queue, (at, priority, next(self._eid), event))

    def count(self, kind: type[simpy.Event]) -> int:
        """How many events of one kind are still to come."""
        return sum(isinstance(entry[3], kind) for entry in self._queue)


class Happening(simpy.Event):
    """An event that is certain from the start, as a Timeout is, and calls one function."""

    def __init__(
        self,
        env: simpy.Environment,
        callbacks: list[Callable[[simpy.Event], None]],
        value: Any = None,
    ):
        self.env = env
        self.callbacks = callbacks  # shared between events: SimPy takes it off, unchanged
        self._value = value
        self._ok = True


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
        config: Network,
        streams: Streams,
        *,
        senders: NDArray[np.int64],
        latency_factors: NDArray[np.float64] | None,
        message_bytes: int,
        on_alarm: Callable[[], None],
    ):
        self.env = env
        self.senders: list[int] = senders.tolist()
        self.latency = sampler(config.latency, streams.latency)
        self.factors = None if latency_factors is None else latency_factors.tolist()
        self.lost = loss_model(config.drop, streams.loss, len(self.senders))
        self.message_bytes = message_bytes
        self.transmission = message_bytes / config.bandwidth if config.bandwidth else 0.0
        self.uplink_free = [0.0] * (max(self.senders, default=-1) + 1)
        self.last_arrival = [0.0] * len(self.senders) if config.fifo else None
        self.retransmit_after = config.retransmit_after
        self.sent = self.delivered = self.dropped = 0
        self.mailboxes: list[tuple[Callable[[Message, int], None], int]] = []
        self.alarm, self.on_alarm = math.inf, on_alarm
        self._on_arrival: list[Callable[[simpy.Event], None]] = [self._arrive]

    @property
    def in_flight(self) -> int:
        """Messages on their way."""
        return self.sent - self.delivered - self.dropped

    def check_conservation(self) -> None:
        """What is on its way by the counters is what the event queue holds."""
        waiting = self.env.count(Arrival)
        assert self.in_flight == waiting, f"{self.in_flight} in flight, {waiting} in the queue"

    @property
    def bytes(self) -> int:
        """Bytes sent so far; all messages of a run have the same size."""
        return self.sent * self.message_bytes

    def send(self, message: Message) -> float | None:
        """Put a message on its way; if it is lost, the time when it left the uplink."""
        edge = message.edge
        departure = now = self.env._now
        if self.transmission:
            sender = self.senders[edge]
            departure = max(now, self.uplink_free[sender]) + self.transmission
            self.uplink_free[sender] = departure
        self.sent += 1
        if self.sent >= self.alarm:
            self.on_alarm()
        lost = self.lost(edge, now)
        latency = self.latency()
        if lost:
            self.dropped += 1
            return departure
        if self.factors is not None:
            latency *= self.factors[self.senders[edge]]
        arrival = departure + latency
        if self.last_arrival is not None:
            arrival = max(arrival, self.last_arrival[edge])
            self.last_arrival[edge] = arrival
        self.env.schedule_at(Arrival(self.env, self._on_arrival, message), arrival)
        return None

    def send_surely(self, message: Message) -> None:
        """Send, and send again ``retransmit_after`` after each loss; every attempt counts."""
        departure = self.send(message)
        if departure is not None:
            again = Happening(self.env, [lambda _: self.send_surely(message)])
            self.env.schedule_at(again, departure + self.retransmit_after)

    def _arrive(self, event: simpy.Event) -> None:
        self.delivered += 1
        message: Message = event._value
        receive, k = self.mailboxes[message.edge]
        receive(message, k)


def loss_model(
    config: RateLoss | GilbertElliott, rng: np.random.Generator, edges: int
) -> Callable[[int, float], bool]:
    """A function of (directed edge, time of sending) that says whether that message is lost."""
    uniform = stream(lambda: rng.random(4096))
    if isinstance(config, RateLoss):
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
