"""The compiled engine as a run drives it: the same outside as ``simulator.engine.SimpyEngine``."""

from __future__ import annotations

import math
import sys
import time as clock
from pathlib import Path
from typing import Any

import numpy as np

import agents.proximal
from simulator.compiled import admm, gossip, mp, rounds
from simulator.compiled.messages import grow, make_pool
from simulator.compiled.network import DELIVERED, DROPPED, SENT
from simulator.compiled.queue import KINDS, SIZE, make_queue
from simulator.compiled.world import (
    DIVERGED,
    EXHAUSTED,
    NOBODY,
    NOW,
    REACHED_AT,
    REACHED_AT_SENT,
    SKIPPED,
    STALE,
    make_world,
)
from simulator.errors import DivergenceError, ScenarioError
from simulator.metrics import Watch
from simulator.problem import Floats
from simulator.setup import RULES, Setup

#: Seconds between two returns to Python, where Ctrl-C is noticed.
BREATH = 0.2


class CompiledEngine:
    """A run that can be advanced from sample to sample.

    The models and copies of the setup become the engine's own and change with the run.
    """

    def __init__(self, setup: Setup, watch: Watch | None):
        if setup.rule not in RULES.values():
            raise ScenarioError(
                f"engine: compiled runs only the built-in rules {' and '.join(RULES)}, not "
                f"{setup.scenario.algorithm.kind!r}; a plugin's rule needs engine: simpy"
            )
        self.setup, self.watch = setup, watch
        stop, n, edges = setup.scenario.stop, setup.problem.n, len(setup.neighbours)
        self.rule = (mp.make_mp if setup.rule is RULES["mp"] else admm.make_admm)(setup)
        self._synchronous = setup.scenario.algorithm.mode == "sync"
        # Synchronously a message an edge, and one event an agent, are all there can be at a time.
        # Asynchronously, messages come to as many as the latency allows: the pool and queue grow.
        numbers = setup.rule.VECTORS * setup.problem.p
        slots = 1 if self._synchronous else max(64, n // 4, 2 + int(np.diff(setup.indptr).max()))
        self.pool = make_pool(slots, 2 if setup.rule.SOLVES == "before" else 1, numbers)
        self._fixed_events = edges + 2 * n if self._synchronous else 2 * n
        queue = make_queue(self._fixed_events + slots)
        self.world = make_world(setup, watch, queue)
        #: When the copy at each directed edge was sent; copies of the start count as of time 0.
        self.sent_at: Floats = self.world.edges["sent_at"]
        #: True from the event that ends the run on.
        self.finished = False
        self._limit = stop.communications or math.inf
        self._stop_by_time = math.inf if stop.time is None else stop.time
        self._events = 10_000
        _prepare_cache(rounds.advance if self._synchronous else gossip.advance)

    # --- what the recorder sees -----------------------------------------------------------------
    @property
    def now(self) -> float:
        """Simulated time."""
        return float(self.world.times[NOW])

    @property
    def models(self) -> Floats:
        """All models, (n, p): the engine's own array, which the next events change."""
        return self.rule.models

    @property
    def exhausted(self) -> int:
        """Solves that hit their limit."""
        return int(self.world.counts[EXHAUSTED])

    def counters(self) -> dict[str, int]:
        """All counts of a sample row."""
        sent, delivered, dropped = (int(self.world.network.counts[k]) for k in range(3))
        return {
            "communications": sent,
            "delivered": delivered,
            "dropped": dropped,
            "in_flight": sent - delivered - dropped,
            "stale": int(self.world.counts[STALE]),
            "skipped": int(self.world.counts[SKIPPED]),
            "bytes": sent * self.setup.message_bytes,
        }

    # --- time -----------------------------------------------------------------------------------
    def advance(self, time: float | None, communications: int | None) -> None:
        """Run up to a time (all its events included), a number of communications, or the end."""
        until = min(math.inf if time is None else time, self._stop_by_time)
        enough = min(self._limit, communications or math.inf)
        while True:
            outcome = self._advance(float(until), float(enough))
            if outcome == gossip.TIME_IS_UP:
                self.finished = until == self._stop_by_time
                return
            if outcome == gossip.ENOUGH_SENT:
                self.finished = self.world.network.counts[SENT] >= self._limit
                return
            if outcome == gossip.HALTED:
                self._halt()
                return
            if outcome == gossip.POOL_IS_SMALL:
                self._grow()

    def _advance(self, until: float, enough: float) -> int:
        """As many events as fit into a breath."""
        started = clock.perf_counter()
        if self._synchronous:
            outcome = rounds.advance(self.world, self.rule, until, enough, self._events)
        else:
            outcome = gossip.advance(
                self.world, self.pool, self.rule, until, enough, self._events
            )
        if outcome == gossip.BREATHE:
            elapsed = clock.perf_counter() - started
            self._events = max(100, int(self._events * min(2.0, BREATH / elapsed)))
        return int(outcome)

    def _halt(self) -> None:
        """A model is no longer finite, or the watched distance has reached its level."""
        world, agent = self.world, int(self.world.counts[DIVERGED])
        sent = int(world.network.counts[SENT])
        if agent != NOBODY:
            raise DivergenceError(
                f"the model of agent {self.setup.problem.names[agent]} is no longer finite at "
                f"time {self.now:g} s, after {sent} communications: {self.models[agent][:4]}"
            )
        assert self.watch is not None
        self.watch.reached = float(world.times[REACHED_AT]), int(world.counts[REACHED_AT_SENT])
        self.finished = True

    def _grow(self) -> None:
        """Twice the room for messages on their way, and for their events."""
        self.pool = grow(self.pool)
        queue = make_queue(self._fixed_events + len(self.pool.slots))
        old = self.world.queue
        size = old.counts[SIZE]
        queue.entries[:size] = old.entries[:size]
        queue.counts[:] = old.counts
        self.world = self.world._replace(queue=queue)

    def stop(self) -> None:
        """End the run from outside: a metric that is checked at samples has reached its level."""
        self.finished = True

    def check(self) -> None:
        """The law of conservation, at the end of a run."""
        entries, counts = self.world.queue.entries, self.world.queue.counts
        arrival = rounds.ARRIVAL if self._synchronous else gossip.ARRIVAL
        waiting = np.count_nonzero(entries["item"][: counts[SIZE]] % KINDS == arrival)
        sent, delivered, dropped = self.world.network.counts[[SENT, DELIVERED, DROPPED]]
        in_flight = sent - delivered - dropped
        assert in_flight == waiting, f"{in_flight} in flight, {waiting} in the queue"


def _prepare_cache(function: Any) -> None:
    """Drop compiled code that is out of date, and say so if there is something to compile.

    Numba compiles a function again when its own file has changed, but not when a function that it
    calls has: here anything newer than a cached function counts.
    """
    if function.signatures:  # loaded already
        return
    sources = [*Path(__file__).parent.glob("*.py"), Path(agents.proximal.__file__)]
    newest = max(source.stat().st_mtime for source in sources)
    folder = Path(function.stats.cache_path)
    for index in folder.glob("*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)
    name = function.py_func.__module__.rsplit(".", 1)[-1]
    if sys.stderr.isatty() and not any(folder.glob(f"{name}.advance-*.nbi")):
        print("compiling the engine, once; this takes about half a minute …", file=sys.stderr)
