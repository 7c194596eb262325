"""The network in compiled code: ``simulator.network`` on flat arrays, draw for draw.

Everything that a send needs is in ``Network``; nothing here knows what a message says.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simulator import laws, scenario
from simulator.setup import Setup

Floats = NDArray[np.float64]

SENT, DELIVERED, DROPPED = range(3)
CONSTANT, UNIFORM, EXPONENTIAL, LOGNORMAL, PARETO, EMPIRICAL = range(6)


class Law(NamedTuple):
    """A law of ``simulator.laws``: its code, its parameters, and a file's numbers if it has one."""

    code: int
    a: float
    b: float
    values: Floats


class Network(NamedTuple):
    """The state of all uplinks and links; arrays of length 0 belong to features not in use."""

    rng_loss: np.random.Generator
    rng_latency: np.random.Generator
    latency: Law
    #: Factors on the latency, one a sender.
    factors: Floats
    #: Loss in the good and in the bad state; Gilbert–Elliott's rates and each link's last state.
    drop_good: float
    drop_bad: float
    bad_share: float
    bad_rate: float
    bad: Floats
    since: Floats
    #: Seconds a message spends in an uplink, and when each uplink is free.
    transmission: float
    uplink_free: Floats
    #: The last arrival on each link, for fifo.
    last_arrival: Floats
    #: SENT, DELIVERED, DROPPED.
    counts: NDArray[np.int64]


def compile_law(law: laws.Law) -> Law:
    """The numbers of a law for compiled code."""
    # A lognormal of mean 0 is the constant 0, and is not drawn.
    if isinstance(law, laws.Constant) or law.mean_value == 0:
        return Law(CONSTANT, law.mean_value, 0.0, np.empty(0))
    values = law.values() if isinstance(law, laws.Empirical) else np.empty(0)
    return Law(law.code, *law.parameters(), values)


def make_network(setup: Setup) -> Network:
    """The network of a run, before the first message."""
    config, edges, none = setup.scenario.network, len(setup.neighbours), np.empty(0)
    factors = setup.latency_factors
    drop = config.drop
    loss: tuple[float, float, float, float]
    if isinstance(drop, scenario.GilbertElliott):
        good_to_bad, bad_to_good = 1.0 / drop.mean_good, 1.0 / drop.mean_bad
        total = good_to_bad + bad_to_good
        share = good_to_bad / total
        loss = (drop.drop_good, drop.drop_bad, share, total)
        bad, since = np.full(edges, share), np.full(edges, -np.inf)
    else:
        loss, bad, since = (drop.rate, drop.rate, 0.0, 0.0), none, none
    return Network(
        setup.streams.loss,
        setup.streams.latency,
        compile_law(config.latency),
        none if factors is None else factors,
        *loss,
        bad,
        since,
        transmission=setup.message_bytes / config.bandwidth if config.bandwidth else 0.0,
        uplink_free=np.zeros(setup.problem.n) if config.bandwidth else none,
        last_arrival=np.zeros(edges) if config.fifo else none,
        counts=np.zeros(3, np.int64),
    )


@njit(cache=True)
def draw(rng: np.random.Generator, law: Law) -> float:
    """One value of a law: the same call of the generator as ``simulator.laws`` makes."""
    if law.code == CONSTANT:
        return law.a
    if law.code == LOGNORMAL:
        return rng.lognormal(law.a, law.b)
    if law.code == EXPONENTIAL:
        return rng.exponential(law.a)
    if law.code == UNIFORM:
        return rng.uniform(law.a, law.b)
    if law.code == PARETO:
        return (rng.pareto(law.a) + 1.0) * law.b
    count = len(law.values)
    return law.values[min(int(rng.random() * count), count - 1)]


@njit(cache=True)
def _lost(network: Network, edge: int, now: float) -> bool:
    """Is a message on this link lost?  See ``simulator.network.loss_model``."""
    rng = network.rng_loss
    if len(network.bad) == 0:
        return rng.random() < network.drop_good
    share = network.bad_share
    stay = math.exp(-network.bad_rate * (now - network.since[edge]))
    is_bad = rng.random() < share + (network.bad[edge] - share) * stay
    network.bad[edge] = 1.0 if is_bad else 0.0
    network.since[edge] = now
    return rng.random() < (network.drop_bad if is_bad else network.drop_good)


@njit(cache=True)
def send(network: Network, edge: int, sender: int, now: float) -> tuple[bool, float]:
    """Put a message on its way: (lost, when it left the uplink) or (not lost, when it arrives)."""
    departure = now
    if network.transmission > 0.0:
        departure = max(now, network.uplink_free[sender]) + network.transmission
        network.uplink_free[sender] = departure
    network.counts[SENT] += 1
    lost = _lost(network, edge, now)
    latency = draw(network.rng_latency, network.latency)
    if lost:
        network.counts[DROPPED] += 1
        return True, departure
    if len(network.factors) > 0:
        latency *= network.factors[sender]
    arrival = departure + latency
    if len(network.last_arrival) > 0:
        arrival = max(arrival, network.last_arrival[edge])
        network.last_arrival[edge] = arrival
    return False, arrival
