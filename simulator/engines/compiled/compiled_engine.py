"""The compiled engine as a run drives it: the same outside as the SimPy engine."""

from __future__ import annotations

import math
import time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.code_cache import is_ours
from agents.machinery.compiling import address_of, as_array
from agents.running import FUNCTIONS, RunningRule
from simulator.engines import event_rows
from simulator.engines.changes import CHANGE, Arrivals
from simulator.engines.compiled import (
    changing,
    foresight,
    gossip,
    network,
    outcomes,
    pool,
    queue,
    rounds,
)
from simulator.engines.compiled.draws import STREAMS, Draws
from simulator.engines.compiled.network import LINK, UPLINK
from simulator.engines.compiled.on_off import ON_OFF, make_on_off
from simulator.engines.compiled.others import failure
from simulator.engines.compiled.pool import SLOT, TICKET
from simulator.engines.compiled.queue import (
    ENTRY,
    KINDS,
    REPEAT,
    REPEATS,
    SWITCH,
    SWITCHES,
)
from simulator.engines.compiled.record import attach
from simulator.engines.compiled.round_state import MEMBER, make_members
from simulator.engines.compiled.slowness import Slowness
from simulator.engines.compiled.switching import RENEWAL
from simulator.engines.compiled.world import (
    AGENT,
    EDGE,
    LAYOUT,
    NOBODY,
    NONE_FAILED,
    REGULAR,
    cumulative_weights,
    make_agents,
    make_edges,
)
from simulator.engines.event_rows import ROW, Sink
from simulator.engines.setup import Setup, progress
from simulator.engines.watch import Watch
from simulator.errors import DivergenceError
from simulator.problem.problem import Floats

#: Seconds between two returns to Python, where Ctrl-C is noticed.
BREATH = 0.2
#: Rows of events that are collected before they are written.
ROWS = 2**16
#: More messages than any run sends: a limit beyond it is none.
NO_LIMIT = 2**62


class CompiledEngine:
    """A run that can be advanced from sample to sample.

    The models and copies of the setup become the engine's own and change with the run.
    """

    def __init__(self, setup: Setup, watch: Watch | None, sink: Sink | None = None):
        self.setup, self.watch, self._events = setup, watch, sink
        config, n, edges = setup.scenario, setup.problem.n, len(setup.neighbour)
        self._synchronous = config.algorithm.mode == "sync"
        protocol = setup.protocol
        if self._synchronous:
            assert protocol.rounds is not None
            self._loop = rounds.loop_of(protocol.rounds, protocol)  # type: ignore[arg-type]
        else:
            self._loop = gossip.loop_of(protocol)  # type: ignore[arg-type]
        self.rule = RunningRule(setup.rule, setup.start(), setup.streams.rule)
        #: All numbers of the run, and the addresses of its arrays, which must be kept alive.
        self.run = np.zeros(1, LAYOUT)
        self.arrays: dict[str, NDArray[Any]] = {}
        run = self.run
        run["here"] = run.ctypes.data
        run["n"], run["p"], run["edge_count"] = n, setup.problem.p, edges
        run["hello"] = config.algorithm.start == "hello"
        run["message_bytes"], run["hello_bytes"] = setup.message_bytes, setup.hello_bytes
        run["retransmit_after"] = config.network.timer
        run["near"], run["loose"], run["behind"] = setup.near, setup.loose, config.rounds.slack
        run["deadline"] = config.rounds.deadline or math.inf
        run["kept"] = kept = 2 if setup.near and not setup.loose else 1
        run["diverged"] = run["draining"] = run["reached_sent"] = run["resending"] = NOBODY
        run["returned_at"] = -math.inf
        self._connect_rule()
        self._remember()
        run["most_links"], most_links = setup.most_links, setup.most_links
        most_sends = setup.most_sends
        run["versioned"], run["averages"] = protocol.versioned, protocol.averages
        run["most_sends"], most = most_sends, max(most_links, most_sends)
        # A message has up to two loss numbers; who comes back may send, and be sent, what waited.
        reserve = (2 if setup.availability is None else 4) * most * kept + 4
        self.draws = Draws(setup, reserve)
        block = self.draws.blocks.shape[1]
        run["block"], run["reserve"] = block, reserve
        uplinks, links = network.fill(run, setup)
        self._keep("draws", self.draws.blocks, float, (STREAMS, block))
        self._keep("cursors", self.draws.cursors, np.int64, (STREAMS,))
        self._keep("agents", make_agents(setup), AGENT, (n,))
        self._keep("edges", make_edges(setup), EDGE, (edges,))
        self._keep("uplinks", uplinks, UPLINK, (n,))
        self._keep("links", links, LINK, (edges if run["fifo"] or run["bursty"] else 0,))
        if setup.link_factors is not None:
            run["unequal_links"] = True
            self._keep("link_factors", setup.link_factors, float, (edges,))
        self._slowness = Slowness(run, setup)
        self._wind(setup)
        if watch is not None:
            watch.fill(run)
        if sink is not None:
            # An event may send to all neighbours, lose it all, and handle what they sent.
            run["recording"], run["most_rows"] = True, 4 * most * kept + 8
            run["row_capacity"] = rows = max(ROWS, 2 * (4 * most * kept + 8))
            self._keep("rows", np.zeros(rows, ROW), ROW, (rows,))
        # How many messages are on their way at a time depends on the latency: it may grow.
        slots = max(64, n // 4, 2 * most_links)
        in_slots = setup.loose or sink is not None or not self._synchronous
        self._resize_pool(slots if in_slots else 0)
        if self._synchronous:
            self._keep("members", make_members(setup), MEMBER, (n,))
            self._keep("told_at", np.zeros(n * kept), float, (n * kept,))
            heard = np.zeros(edges if setup.near else 0, np.int64)
            self._keep("heard", heard, np.int64, heard.shape)
            places = edges * kept if in_slots else 0
            self._keep("inbox", np.full(places, NOBODY), np.int64, (places,))
        self._resize_queue(3 * n + 2 * most_links + (edges if self._synchronous else n // 4) + 64)
        self._bring_to_life()
        run["next_change"] = math.inf
        if setup.arrivals is not None:
            self._let_arrive(setup.arrivals)
        #: When the copy at each directed edge was sent; copies of the start count as of time 0.
        self.sent_at: Floats = self.arrays["edges"]["sent_at"]
        #: True from the event that ends the run on.
        self.finished = False
        self._limit = min(config.stop.communications or NO_LIMIT, NO_LIMIT)
        self._stop_by_time = math.inf if config.stop.time is None else config.stop.time
        self._breath = 10_000
        self._begun = False

    def _wind(self, setup: Setup) -> None:
        """The agents' clocks, and whom they are about."""
        run, n = self.run, setup.problem.n
        run["to_all"] = setup.peers == "all"
        if setup.peers == "weighted":
            run["weighted"] = True
            self._keep("cumulative", cumulative_weights(setup), float, setup.neighbour.shape)
        elif setup.peers == "turn":
            run["in_turn"] = True
            self._keep("turns", np.full(n, NOBODY), np.int64, (n,))
        if setup.scenario.clock.ticks == "regular":
            run["regular"] = True
            self._keep("clocks", np.zeros(n, REGULAR), REGULAR, (n,))

    def _bring_to_life(self) -> None:
        """Comings and goings, and partitions."""
        setup, run, n = self.setup, self.run, self.setup.problem.n
        first = [np.empty((0, 2))]
        if setup.cuts is not None:
            run["cuts"] = count = len(setup.cuts.times)
            self._keep("cut_times", setup.cuts.times, float, (count, 2))
            self._keep("groups", setup.cuts.groups, np.int64, (count, n))
            if self._synchronous:
                first.append(np.column_stack([setup.cuts.times[:, 1], np.full(count, REPEAT)]))
        if setup.availability is not None:
            availability = setup.availability
            run["availability"], run["forgets"] = True, availability.forget
            if not self._synchronous:
                run["switch"] = address_of(gossip.switched)
            self._keep("on_off", make_on_off(setup), ON_OFF, (n,))
            run["traced"], run["switch_count"] = availability.laws is None, len(availability.times)
            self._keep("switch_times", availability.times, float, availability.times.shape)
            first.append(np.column_stack([availability.first, np.arange(n) * KINDS + SWITCH]))
            if availability.forget:
                self._keep_fresh()
            self._note_who_is_off(availability.on)
        if self._synchronous and (setup.cuts is not None or setup.availability is not None):
            edges = len(setup.neighbour)
            self._keep("held", np.zeros(edges, np.uint8), np.uint8, (edges,))
        self._schedule(np.concatenate(first))

    def _let_arrive(self, arrivals: Arrivals) -> None:
        """Points that arrive."""
        run, rule, count = self.run, self.rule, len(arrivals.times)
        n, p = rule.models.shape
        run["change"] = address_of(changing.changed)
        changes = np.zeros(count, CHANGE)
        changes["time"], changes["index"] = arrivals.times, arrivals.agents
        self._keep("changes", changes, CHANGE, (count,))
        run["change_count"] = run["arrivals"] = count
        run["next_change"] = arrivals.times[0] if count else math.inf
        run["most_points"], run["by_data"] = arrivals.most, arrivals.by_data
        assert rule.counts is not None
        self._keep("counts", rule.counts, np.int64, (n,))
        self._keep("fits", arrivals.solitary, float, (count, p))
        self._keep("c", rule.arrays["c"], float, (n,))
        self._keep("solitary", rule.arrays["solitary"], float, (n, p))
        if rule.loss is not None and rule.loss.data.smooth:
            self._keep("curvatures", arrivals.curvatures(self.setup.problem), float, (count,))
            self._keep("curvature", rule.loss.data.curvature, float, (n,))

    def _schedule(self, first: Floats) -> None:
        """The first switches and the ends of partitions, (time, item) each, in the queue."""
        entries = np.zeros(len(first), ENTRY)
        entries["time"], entries["item"] = first.T
        ranks = np.where(entries["item"] % KINDS == SWITCH, SWITCHES, REPEATS)
        entries["order"] = ranks + np.arange(len(first))
        entries = entries[np.isfinite(entries["time"])]
        entries = entries[np.lexsort((entries["order"], entries["time"]))]  # sorted: a heap
        self._resize_queue(len(self.arrays["entries"]) + len(entries))
        self.arrays["entries"][: len(entries)] = entries
        self.run["size"] = self.run["soon_count"] = len(entries)
        self.run["scheduled"] = len(first)

    def _keep_fresh(self) -> None:
        """What agents that forget have again."""
        self._fresh = fresh = self.setup.fresh()
        if isinstance(fresh, RunningRule):
            rows = [
                (live.ctypes.data, new.ctypes.data, int(np.prod(live.shape[1:])), links, -1, -1)
                for live, new, links in self.rule.remembered(fresh)
            ]
        else:
            rows = [
                (
                    live.ctypes.data,
                    0,
                    int(np.prod(live.shape[1:])),
                    links,
                    places.get("model", -1),
                    places.get("copy", -1),
                )
                for live, links, places in self.rule.forgotten()
            ]
            models = self.rule.arrays["solitary"] if fresh[0] is None else fresh[0]
            self._keep("fresh_models", models, float, models.shape)
            if fresh[1] is not None:
                self._keep("fresh_copies", fresh[1], float, fresh[1].shape)
        rows += [
            (array.ctypes.data, 0, int(np.prod(array.shape[1:])), links, -1, -1)
            for array, links in self.memory.values()
        ]
        self.run["renewal_count"] = len(rows)
        self._keep("renewals", np.array(rows, np.int64).ravel(), np.int64, (RENEWAL * len(rows),))

    def _note_who_is_off(self, on: NDArray[np.bool_]) -> None:
        if self._events is not None:
            rows = np.zeros(int(np.count_nonzero(~on)), ROW)
            rows["agent"], rows["kind"], rows["what"] = (
                np.flatnonzero(~on),
                event_rows.SWITCH,
                event_rows.OFF,
            )
            rows["sent_at"] = np.nan
            rows["message"] = rows["answers"] = rows["peer"] = event_rows.NONE
            self._events(rows)

    def _keep(self, name: str, array: NDArray[Any], dtype: Any, shape: tuple[int, ...]) -> None:
        self.arrays[name] = attach(self.run, name, array, dtype, shape)

    def _connect_rule(self) -> None:
        """The rule's functions and state, and in rounds the room for what is told."""
        run, setup, rule = self.run, self.setup, self.setup.rule
        for name, address in self.rule.pointers(bool(run["hello"][0])).items():
            run[name] = address
        run["state"], unsaid = self.rule.address, self.rule.unsaid
        run["unsaid"] = unsaid.ctypes.data
        run["unsaid_width"] = unsaid.strides[0] if unsaid is self.rule.models else 0
        run["random"], run["random_state"] = self.rule.random
        run["numbers"] = numbers = self.rule.numbers
        run["same_for_all"] = rule.same_for_all
        table = foresight.rule_arrays(run, self.rule)
        self._keep("rule_arrays", table, np.int64, table.shape)
        if run["large"][0] and not self._synchronous:
            run["foresee"] = address_of(foresight.foreseen)
        shape = self.rule.models.shape
        self._keep("models", self.rule.models, float, shape)
        if self._synchronous:
            rows = setup.problem.n if rule.same_for_all else len(setup.neighbour)
            rows *= int(run["kept"][0])
            self._keep("told", np.empty((rows, numbers)), float, (rows, numbers))

    def _remember(self) -> None:
        """The arrays of the protocol."""
        self.memory = self.setup.memory()
        addresses = np.array([array.ctypes.data for array, _ in self.memory.values()], np.int64)
        self._keep("memory", addresses, np.int64, addresses.shape)

    def _resize_pool(self, slots: int) -> None:
        """Room for so many messages on their way."""
        kept = ("slots", "tickets", "payloads")
        old = tuple(self.arrays[name] for name in kept if name in self.arrays)
        # In rounds what was told lies elsewhere.
        in_rounds = self._synchronous and not self.setup.loose
        numbers = 0 if in_rounds else self.rule.numbers
        new = pool.resize(self.run, slots, numbers, self._events is not None, old)
        self._keep("slots", new[0], SLOT, (slots,))
        self._keep("tickets", new[1], TICKET, new[1].shape)
        self._keep("payloads", new[2], float, (slots, 2, numbers))

    def _resize_queue(self, capacity: int) -> None:
        """Room for so many events."""
        self.arrays |= queue.resize(self.run, capacity, self.arrays)

    # --- what the recorder sees -----------------------------------------------------------------
    @property
    def now(self) -> float:
        """Simulated time."""
        return float(self.run["now"][0])

    @property
    def models(self) -> Floats:
        """All models, (n, p): the engine's own array, which the next events change."""
        return self.rule.models

    @property
    def exhausted(self) -> int:
        """Solves that hit their limit."""
        return self.rule.exhausted

    def _count(self, name: str) -> int:
        return int(self.run[name][0])

    def counters(self) -> dict[str, int]:
        """All counts of a sample row."""
        return {
            "communications": self._count("sent"),
            "delivered": self._count("delivered"),
            "dropped": self._count("dropped"),
            "missed": self._count("missed"),
            "in_flight": self._in_flight(),
            "stale": self._count("stale"),
            "skipped": self._count("skipped"),
            "bytes": self._count("bytes"),
        }

    def progress(self) -> dict[str, float]:
        """More of a sample row, where agents go through their rounds by themselves."""
        if not self.setup.near:
            return {}
        done = self.arrays["members"]["round"][self.arrays["agents"]["degree"] > 0] - 1
        # Before the first event, rounds have not begun.
        return progress(self._count("late"), np.maximum(done, 0))

    def _in_flight(self) -> int:
        """Messages on their way: counted in the queue, not concluded from the other counts."""
        return self._count("in_flight")

    # --- time -----------------------------------------------------------------------------------
    def advance(self, time: float | None, communications: int | None) -> None:
        """Run up to a time (all its events included), a number of communications, or the end."""
        until = min(math.inf if time is None else time, self._stop_by_time)
        enough = min(self._limit, communications or NO_LIMIT)
        self._begun = True
        while True:
            outcome = self._breathe(float(until), float(enough))
            if outcome == outcomes.DRAWS_ARE_LOW:
                self.draws.refill()
            elif outcome == outcomes.POOL_IS_SMALL:
                room = self._count("most_links")
                self._resize_pool(2 * len(self.arrays["slots"]) + room)
            elif outcome == outcomes.QUEUE_IS_FULL:
                self._resize_queue(2 * len(self.arrays["entries"]))
            elif outcome == outcomes.ROWS_ARE_FULL:
                self.flush()
            elif outcome != outcomes.BREATHE:
                break
        if outcome in (outcomes.TIME_IS_UP, outcomes.NOTHING_LEFT):
            stuck = self.is_stuck and math.isinf(self._stop_by_time)
            self.finished = until == self._stop_by_time or stuck
        elif outcome == outcomes.ENOUGH_SENT:
            self.finished = self._count("sent") >= self._limit
        else:
            self._halt()

    def _breathe(self, until: float, enough: float) -> int:
        """As many events as fit between two returns to Python."""
        started = clock.perf_counter()
        try:
            outcome = int(self._loop(self.run, until, enough, self._breath))
        except Exception as error:
            if is_ours(self.setup.protocol):
                raise
            raise failure(self.setup.protocol, self.run, error) from error
        if outcome == outcomes.BREATHE:
            elapsed = clock.perf_counter() - started
            self._breath = max(100, int(self._breath * min(2.0, BREATH / elapsed)))
        return outcome

    @property
    def is_stuck(self) -> bool:
        """Can nothing happen any more?  Rounds wait for those who do not come back."""
        return self._begun and self._count("size") == 0

    def absent(self) -> list[int]:
        """Who is off."""
        return (
            np.flatnonzero(~self.arrays["on_off"]["on"]).tolist()
            if self.run["availability"]
            else []
        )

    def _halt(self) -> None:
        """A law or the rule failed, a model is not finite, or the distance has its level."""
        if self._slowness.failure is not None:
            raise self._slowness.failure
        if self._count("failed") != NONE_FAILED:
            raise self._failure()
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

    def _failure(self) -> Exception:
        name = FUNCTIONS[self._count("failed") - 1]
        i, k, a, b = (self._count(f"failed_{x}") for x in ("i", "k", "a", "b"))
        shape = self.models[0].shape if name == "introduce" else self.rule.shape
        first, second = (as_array(address, shape) if address else None for address in (a, b))
        return self.rule.explain(name, i, k, first, second, f"{self.now:g} s")

    def flush(self) -> None:
        """Hand out the events that are waiting."""
        if self._events is not None:
            self._events(self.arrays["rows"][: self._count("row_count")])
            self.run["row_count"] = 0

    def stop(self) -> None:
        """End the run from outside: a metric that is checked at samples has reached its level."""
        self.finished = True

    def check(self) -> None:
        """The law of conservation, at the end of a run."""
        counts = self.counters()
        known = sum(counts[name] for name in ("delivered", "dropped", "missed", "in_flight"))
        sent = counts["communications"]
        assert sent == known, f"{sent} sent, {known} delivered, dropped, missed or in flight"
