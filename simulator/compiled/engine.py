"""The compiled engine as a run drives it: the same outside as ``simulator.engine.SimpyEngine``."""

from __future__ import annotations

import math
import sys
import time as clock
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import agents.proximal
from simulator.compiled import admm, gossip, messages, mp, network, rounds
from simulator.compiled.draws import Draws
from simulator.compiled.memory import attach
from simulator.compiled.queue import ENTRY, KINDS
from simulator.compiled.world import NOBODY, accumulate, make_agents, make_edges
from simulator.errors import DivergenceError
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
        self.setup, self.watch = setup, watch
        config, n, edges = setup.scenario, setup.problem.n, len(setup.neighbours)
        rule = mp if setup.rule is RULES["mp"] else admm
        self._synchronous = config.algorithm.mode == "sync"
        self._loop = rounds.advance if self._synchronous else gossip.advance
        #: All numbers of the run, and the addresses of its arrays, which must be kept alive.
        self.run = np.zeros(1, rule.LAYOUT)
        self.arrays: dict[str, NDArray[Any]] = {}
        run = self.run
        run["n"], run["p"], run["edge_count"] = n, setup.problem.p, edges
        run["hello"] = config.algorithm.start == "hello"
        run["solves_before"] = setup.rule.SOLVES == "before"
        run["retransmit_after"] = config.network.retransmit_after
        run["diverged"] = run["draining"] = run["reached_sent"] = NOBODY
        most_links = int(np.diff(setup.indptr).max())
        self.draws = Draws(setup, reserve=2 * most_links + 4)
        run["block"], run["reserve"] = self.draws.blocks.shape[1], 2 * most_links + 4
        uplinks, links = network.fill(run, setup)
        self._keep(draws=self.draws.blocks, cursors=self.draws.cursors)
        self._keep(agents=make_agents(setup), edges=make_edges(setup))
        self._keep(uplinks=uplinks, links=links, **rule.make(run, setup, self.arrays["edges"]))
        if config.clock.peers == "weighted":
            run["weighted"] = True
            self._keep(cumulative=np.empty(edges))
            accumulate(setup.indptr, setup.problem.W.data, self.arrays["cumulative"])
        if watch is not None:
            run["watched"], run["distance"], run["level"] = True, watch.total, watch.level
            self._keep(reference=np.ascontiguousarray(watch.reference))
            self.arrays["agents"]["distance"] = watch.parts
        # A tick (or a round's step) and a computation an agent; rounds have a message an edge.
        # How many are on their way at a time without rounds depends on the latency: it may grow.
        run["parts"] = 2 if setup.rule.SOLVES == "before" else 1
        run["numbers"] = setup.rule.VECTORS * setup.problem.p
        self._resize(0 if self._synchronous else max(64, n // 4, 2 * most_links))
        #: When the copy at each directed edge was sent; copies of the start count as of time 0.
        self.sent_at: Floats = self.arrays["edges"]["sent_at"]
        #: True from the event that ends the run on.
        self.finished = False
        self._limit = config.stop.communications or math.inf
        self._stop_by_time = math.inf if config.stop.time is None else config.stop.time
        self._events = 10_000
        _prepare_cache(self._loop)

    def _keep(self, **arrays: NDArray[Any]) -> None:
        for name, array in arrays.items():
            self.arrays[name] = attach(self.run, name, array)

    def _resize(self, slots: int) -> None:
        """Room for so many messages on their way, and for all events that there can be."""
        run, n = self.run, self.setup.problem.n
        if slots:
            old = tuple(self.arrays[name] for name in ("slots", "payloads") if name in self.arrays)
            new = messages.resize(run, slots, old)
            self._keep(slots=new[0], payloads=new[1])
        size = int(run["size"][0])
        entries = np.empty(2 * n + (slots or len(self.setup.neighbours)), ENTRY)
        if size:
            entries[:size] = self.arrays["entries"][:size]
        run["capacity"] = len(entries)
        self._keep(entries=entries)

    # --- what the recorder sees -----------------------------------------------------------------
    @property
    def now(self) -> float:
        """Simulated time."""
        return float(self.run["now"][0])

    @property
    def models(self) -> Floats:
        """All models, (n, p): the engine's own array, which the next events change."""
        return self.arrays["models"]

    @property
    def exhausted(self) -> int:
        """Solves that hit their limit."""
        return self._count("exhausted")

    def _count(self, name: str) -> int:
        return int(self.run[name][0])

    def counters(self) -> dict[str, int]:
        """All counts of a sample row."""
        sent, delivered, dropped = map(self._count, ("sent", "delivered", "dropped"))
        return {
            "communications": sent,
            "delivered": delivered,
            "dropped": dropped,
            "in_flight": sent - delivered - dropped,
            "stale": self._count("stale"),
            "skipped": self._count("skipped"),
            "bytes": sent * self.setup.message_bytes,
        }

    # --- time -----------------------------------------------------------------------------------
    def advance(self, time: float | None, communications: int | None) -> None:
        """Run up to a time (all its events included), a number of communications, or the end."""
        until = min(math.inf if time is None else time, self._stop_by_time)
        enough = min(self._limit, communications or math.inf)
        while True:
            outcome = self._breathe(float(until), float(enough))
            if outcome == gossip.DRAWS_ARE_LOW:
                self.draws.refill()
            elif outcome == gossip.POOL_IS_SMALL:
                self._resize(2 * len(self.arrays["slots"]))
            elif outcome != gossip.BREATHE:
                break
        if outcome == gossip.TIME_IS_UP:
            self.finished = until == self._stop_by_time
        elif outcome == gossip.ENOUGH_SENT:
            self.finished = self._count("sent") >= self._limit
        else:
            self._halt()

    def _breathe(self, until: float, enough: float) -> int:
        """As many events as fit between two returns to Python."""
        started = clock.perf_counter()
        outcome = int(self._loop(self.run, until, enough, self._events))
        if outcome == gossip.BREATHE:
            elapsed = clock.perf_counter() - started
            self._events = max(100, int(self._events * min(2.0, BREATH / elapsed)))
        return outcome

    def _halt(self) -> None:
        """A model is no longer finite, or the watched distance has reached its level."""
        agent = self._count("diverged")
        if agent != NOBODY:
            raise DivergenceError(
                f"the model of agent {self.setup.problem.names[agent]} is no longer finite at time "
                f"{self.now:g} s, after {self._count('sent')} communications: "
                f"{self.models[agent][:4]}"
            )
        assert self.watch is not None
        self.watch.reached = float(self.run["reached_at"][0]), self._count("reached_sent")
        self.finished = True

    def stop(self) -> None:
        """End the run from outside: a metric that is checked at samples has reached its level."""
        self.finished = True

    def check(self) -> None:
        """The law of conservation, at the end of a run."""
        items = self.arrays["entries"]["item"][: self._count("size")]
        arrival = rounds.ARRIVAL if self._synchronous else gossip.ARRIVAL
        waiting = np.count_nonzero(items % KINDS == arrival)
        in_flight = self.counters()["in_flight"]
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
