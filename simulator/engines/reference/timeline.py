"""Simulated time: SimPy's environment and events, and all that is done inside of them.

Nothing else relies on how SimPy is made.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any

import simpy
from simpy.events import NORMAL, EventPriority

#: Among the events of one instant: halts come first, then agents are switched on and off, then
#: data change, then is sent again what that lets pass; where rounds wait for neighbours only,
#: deadlines come after all else, and then timers; samples come last.
FIRST, SWITCHES, CHANGES, REPEATS, DEADLINES, TIMERS, LAST = map(
    EventPriority, (-4, -3, -2, -1, 2, 3, 4)
)


class Timeline(simpy.Environment):
    """SimPy's environment, with events at absolute times.

    ``now + (at − now)`` may differ from ``at`` in the last bit, which would break fifo links.
    """

    def schedule_at(self, event: simpy.Event, at: float, priority: EventPriority = NORMAL) -> None:
        """Let an event happen at time ``at``; ties are broken by priority, then order of calls."""
        heappush(self._queue, (at, priority, next(self._eid), event))

    def schedule_of(self, agent: int, event: simpy.Event, at: float) -> None:
        """The same for an agent's deadline: ties are broken by agent."""
        heappush(self._queue, (at, DEADLINES, (agent, next(self._eid)), event))  # type: ignore[misc]

    def only(self, kind: type[simpy.Event]) -> bool:
        """Is nothing to come but events of this kind?"""
        return all(isinstance(entry[3], kind) for entry in self._queue)

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
