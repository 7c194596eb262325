"""Points that arrive, with SimPy: one event after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.engines.changes import Arrivals
from simulator.engines.event_rows import POINT
from simulator.engines.reference.timeline import CHANGES, Happening

if TYPE_CHECKING:
    from simulator.engines.reference.simpy_engine import SimpyEngine


class Changing:
    """Lets points arrive; they come before all else at their instant but switches."""

    def __init__(self, engine: SimpyEngine, arrivals: Arrivals):
        self.engine, self.arrivals = engine, arrivals
        self._place, loss = 0, engine.rule.loss
        self._curvatures = None
        if loss is not None and loss.data.smooth:
            self._curvatures = arrivals.curvatures(engine.setup.problem)
        self._wait()

    def _wait(self) -> None:
        """For the next one."""
        if self._place < len(self.arrivals.times):
            event = Happening(self.engine.env, [lambda _: self._arrive()])
            self.engine.env.schedule_at(event, float(self.arrivals.times[self._place]), CHANGES)

    def _arrive(self) -> None:
        """A point arrives: fitted again at once, and what follows from it is derived."""
        engine, arrivals, new = self.engine, self.arrivals, self._place
        rule, i = engine.rule, int(arrivals.agents[new])
        assert rule.counts is not None
        rule.counts[i] += 1
        rule.arrays["c"][i] = arrivals.confidence(rule.counts[i : i + 1])[0]
        rule.arrays["solitary"][i] = arrivals.solitary[new]
        if rule.loss is not None and self._curvatures is not None:
            rule.loss.data.curvature[i] = self._curvatures[new]
        if engine.journal is not None:
            engine.journal.agent(POINT, i)
        rule.refresh(i, f"{engine.env.now:g} s")
        engine.settle(i)
        self._place += 1
        self._wait()
