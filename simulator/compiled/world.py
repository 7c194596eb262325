"""What a protocol works on in compiled code: agents, links, streams, network, queue.

Scalars that change live in small arrays and record arrays; everything else is fixed.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simulator.compiled.network import SENT, Law, Network, compile_law, draw, make_network
from simulator.compiled.queue import Queue
from simulator.metrics import Watch
from simulator.setup import Setup

Floats = NDArray[np.float64]

#: What has happened so far, beside the network's counts.
STALE, SKIPPED, EXHAUSTED, STARTED, WORKING, REACHED_AT_SENT, DIVERGED, HALT = range(8)
NOW, DISTANCE, REACHED_AT = range(3)
NOBODY = -1

AGENT = np.dtype(
    [
        #: Its links are the edges first … first + degree − 1.
        ("first", np.int64),
        ("degree", np.int64),
        ("rate", np.float64),
        #: Messages sent so far (mp); the message or, as −1 − edge, the tick that is being solved.
        ("sends", np.int64),
        ("job", np.int64),
        #: The mailbox, in order of arrival; in rounds, how many messages are there.
        ("mailbox_first", np.int32),
        ("mailbox_last", np.int32),
        ("inbox", np.int32),
        ("busy", np.bool_),
        #: In rounds: all messages are there; the own ones are sent, and when.
        ("complete", np.bool_),
        ("waiting", np.bool_),
        ("sent_at", np.float64),
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("neighbour", np.int32),
        ("back", np.int32),
        ("weight", np.float64),
        #: When the copy held at this edge was sent.
        ("sent_at", np.float64),
        #: The number of the last message heard (mp), or the version of this end (admm).
        ("version", np.int64),
    ],
    align=True,
)


class World(NamedTuple):
    """All but the learning."""

    agents: NDArray[Any]
    edges: NDArray[Any]
    #: Cumulative weights over each agent's links where peers are weighted; empty otherwise.
    cumulative: Floats
    rng_clock: np.random.Generator
    rng_peers: np.random.Generator
    rng_compute: np.random.Generator
    compute: Law
    compute_factors: Floats
    hello: bool
    solves_before: bool
    retransmit_after: float
    network: Network
    queue: Queue
    #: The watched distance: its reference (n, p), each agent's part, and the level to reach.
    reference: Floats
    parts: Floats
    level: float
    #: STALE … HALT, and NOW … REACHED_AT.
    counts: NDArray[np.int64]
    times: Floats


def make_world(setup: Setup, watch: Watch | None, queue: Queue) -> World:
    """The devices and links of a run, before the first event."""
    scenario, problem = setup.scenario, setup.problem
    agents = np.zeros(problem.n, AGENT)
    agents["first"] = setup.indptr[:-1]
    agents["degree"] = np.diff(setup.indptr)
    agents["rate"] = setup.rates
    agents["mailbox_first"] = NOBODY
    edges = np.zeros(len(setup.neighbours), EDGE)
    edges["neighbour"], edges["back"] = setup.neighbours, setup.back
    edges["weight"] = problem.W.data
    cumulative = np.empty(0)
    if scenario.clock.peers == "weighted":
        cumulative = np.empty(len(edges))
        _accumulate(setup.indptr, problem.W.data, cumulative)
    factors = setup.compute_factors
    counts, times = np.zeros(8, np.int64), np.zeros(3)
    counts[DIVERGED] = counts[REACHED_AT_SENT] = NOBODY
    if watch is not None:
        times[DISTANCE] = watch.total
    return World(
        agents=agents,
        edges=edges,
        cumulative=cumulative,
        rng_clock=setup.streams.clock,
        rng_peers=setup.streams.peers,
        rng_compute=setup.streams.compute,
        compute=compile_law(scenario.compute.time),
        compute_factors=np.empty(0) if factors is None else factors,
        hello=scenario.algorithm.start == "hello",
        solves_before=setup.rule.SOLVES == "before",
        retransmit_after=float(scenario.network.retransmit_after),
        network=make_network(setup),
        queue=queue,
        reference=np.empty((0, problem.p)) if watch is None else np.ascontiguousarray(watch.reference),
        parts=np.empty(0) if watch is None else np.array(watch.parts),
        level=0.0 if watch is None else float(watch.level),
        counts=counts,
        times=times,
    )


@njit(cache=True)
def _accumulate(indptr: NDArray[np.int64], weights: Floats, cumulative: Floats) -> None:
    for i in range(len(indptr) - 1):
        total = 0.0
        for edge in range(indptr[i], indptr[i + 1]):
            total += weights[edge]
            cumulative[edge] = total


@njit(cache=True)
def compute_time(world: World, i: int) -> float:
    """How long agent i's next solve takes."""
    duration = draw(world.rng_compute, world.compute)
    if len(world.compute_factors) > 0:
        duration *= world.compute_factors[i]
    return duration


@njit(cache=True)
def updated(world: World, i: int, model: Floats) -> None:
    """Agent i has a new model: see that it is finite, and follow the watched distance."""
    for x in model:
        if not math.isfinite(x):
            if world.counts[DIVERGED] == NOBODY:
                world.counts[DIVERGED] = i
            world.counts[HALT] = 1
            return
    if len(world.parts) == 0:
        return
    part = 0.0
    for x, y in zip(model, world.reference[i]):  # noqa: B905  (Numba has no strict)
        part += (x - y) ** 2
    times = world.times
    times[DISTANCE] += part - world.parts[i]
    world.parts[i] = part
    if times[DISTANCE] <= world.level and world.counts[REACHED_AT_SENT] == NOBODY:
        world.counts[REACHED_AT_SENT] = world.network.counts[SENT]
        times[REACHED_AT] = times[NOW]
        world.counts[HALT] = 1
