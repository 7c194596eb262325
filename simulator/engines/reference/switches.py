"""Agents that come and go, with SimPy: events that switch them, and events that end partitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from simpy.events import EventPriority

from simulator.engines.availability import Availability
from simulator.engines.event_rows import OFF, ON, SWITCH
from simulator.engines.reference.timeline import REPEATS, SWITCHES, Happening
from simulator.scenario.laws import sampler

if TYPE_CHECKING:
    from simulator.engines.reference.simpy_engine import SimpyEngine


class Switches:
    """Switches a run's agents on and off; switches come before all else at their instant.

    In rounds, what waits for a return or for the end of a partition is sent again after them.
    """

    def __init__(self, engine: SimpyEngine):
        self.engine, self.env = engine, engine.env
        setup = engine.setup
        self.on: list[bool] = []
        if engine.synchronous and setup.cuts is not None:
            # What a partition holds up goes on when it ends.
            for end in setup.cuts.times[:, 1].tolist():
                everywhere = partial(engine.links.retry, range(len(setup.neighbour)))
                self._at(end, everywhere, REPEATS)
        if setup.availability is not None:
            self._begin(setup.availability)

    def _begin(self, availability: Availability) -> None:
        engine = self.engine
        self.on = engine.links.on = availability.on.tolist()
        self._next = _stays(engine, availability)
        self.forget = availability.forget
        #: Who was never on, and has nothing to forget.
        self._new = {i for i, on in enumerate(self.on) if not on}
        #: Who has come back since the last barrier, in rounds.
        self.returned: set[int] = set()
        #: The links of those who come back at this instant.
        self._open_again: set[int] = set()
        for i, on in enumerate(self.on):
            if not on:
                engine.agents[i].on = False
                self._note(i)
        for i, time in enumerate(availability.first.tolist()):
            self._at(time, partial(self._switch, i), SWITCHES)

    def _at(self, time: float, action: Callable[[], None], priority: EventPriority) -> None:
        if time < math.inf:
            event = Happening(self.env, [lambda _: action()])
            self.env.schedule_at(event, time, priority)

    def _note(self, i: int) -> None:
        if self.engine.journal is not None:
            self.engine.journal.agent(SWITCH, i, ON if self.on[i] else OFF)

    def _switch(self, i: int) -> None:
        on = self.on[i] = not self.on[i]
        self._note(i)
        self._at(self._next(i, self.env.now, on), partial(self._switch, i), SWITCHES)
        agent: Any = self.engine.agents[i]
        forget = self.forget and i not in self._new
        if not on:
            agent.switch_off()
            return
        self._new.discard(i)
        if self.engine.synchronous:
            near = self.engine.setup.near  # whoever waits for neighbours only forgets by itself
            agent.switch_on(forget and near)
            if forget and not near:
                self.returned.add(i)
            if not self._open_again:
                self._at(self.env.now, self._repeat, REPEATS)
            own = self.engine.setup.links_of(i)
            self._open_again.update(own, self.engine.setup.back[own.start : own.stop].tolist())
        else:
            agent.switch_on(forget)

    def _repeat(self) -> None:
        """Send what waited for those who have just come back, by sender, then receiver."""
        self.engine.links.retry(sorted(self._open_again))
        self._open_again.clear()

    def renew_returned(self) -> None:
        """At a barrier: whoever has come back since the last one has forgotten everything.

        Each is an update; one that reaches the target is the last of the run.
        """
        for i in sorted(self.returned):
            if not self.engine.reached:
                self.engine.renew(i)
        self.returned.clear()


def _stays(engine: SimpyEngine, availability: Availability) -> Callable[[int, float, bool], float]:
    """A function of (agent, now, is it on from now) that says when it switches next."""
    if availability.laws is None:
        times, ends = availability.times.tolist(), availability.starts[1:].tolist()
        places = availability.starts[:-1].tolist()

        def next_time(i: int, now: float, on: bool) -> float:
            places[i] += 1
            return times[places[i]] if places[i] < ends[i] else math.inf

        return next_time
    streams = engine.setup.streams
    stay_on = sampler(availability.laws[0], streams.on)
    stay_off = sampler(availability.laws[1], streams.off)
    return lambda i, now, on: now + (stay_on() if on else stay_off())
