"""Distributions of delays and ages, as recorded and as their laws have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.rule import TELL
from simulator.engines.setup import Setup
from simulator.problem.problem import Floats
from simulator.scenario.network import RateDrop
from simulator.scenario.schema import Scenario

#: Bins per factor of ten, from 10^-9 to 10^9 seconds.
_BINS, _LOW, _HIGH = 12, -9, 9
_EDGES = np.logspace(_LOW, _HIGH, _BINS * (_HIGH - _LOW) + 1)
#: Draws from a law where there is no formula: enough for a line that looks smooth.
_DRAWS = 400_000


@dataclass
class Histogram:
    """How often values fell into logarithmic bins; values of (nearly) 0 are counted apart."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(_EDGES) - 1, dtype=np.int64)
    )
    zeros: int = 0
    total: int = 0
    sum: float = 0.0

    def add(self, values: Floats) -> None:
        """More values."""
        self.counts += np.histogram(values, _EDGES)[0]
        self.zeros += int((values < _EDGES[0]).sum())
        self.total += len(values)
        self.sum += float(values.sum())

    @property
    def mean(self) -> float:
        """The mean of all values; NaN where there are none."""
        return self.sum / self.total if self.total else float("nan")

    @property
    def shares(self) -> Floats:
        """The share of all values in each bin."""
        return self.counts / max(self.total, 1)


def together(*given: Histogram) -> tuple[Floats, list[Floats]]:
    """The bins between which any of them has values, (k + 1) edges and (k,) shares each."""
    used = np.flatnonzero(np.any([each.counts > 0 for each in given], axis=0))
    if not len(used):
        return _EDGES[:1], [np.zeros(0) for _ in given]
    inside = slice(used[0], used[-1] + 1)
    return _EDGES[inside.start : inside.stop + 1], [each.shares[inside] for each in given]


def delay_law(setup: Setup) -> Histogram:
    """The latencies that the scenario's law gives to messages on these links."""
    rng = np.random.default_rng(0)
    found = Histogram()
    found.add(_latencies(setup, rng, rng.integers(0, len(setup.neighbour), _DRAWS)))
    return found


def _latencies(setup: Setup, rng: np.random.Generator, edges: NDArray[np.int64]) -> Floats:
    delays = setup.scenario.network.latency.draw(rng, len(edges))
    if setup.latency_factors is not None:
        delays = delays * setup.latency_factors[setup.owners[edges]]
    if setup.link_factors is not None:
        delays = delays * setup.link_factors[edges]
    return delays


def age_law(setup: Setup, end: float) -> Histogram | None:
    """How old copies are at ``end`` if agents meet as their clocks have it and are never busy.

    Agent i hears from neighbour j when j contacts it and the message arrives, and when it
    contacts j and both messages arrive: at a rate

        r = λ_j π_j^i (1 − q) + λ_i π_i^j (1 − q)²,

    so the age is exponential plus a delay, and ``end`` where nothing was heard yet.  Rounds, where
    nobody chooses when to speak, have no such law, nor has a network whose agents come and go.
    """
    scenario = setup.scenario
    lives = scenario.availability is not None or scenario.network.partitions
    if scenario.algorithm.mode != "async" or lives:
        return None
    kept = 1 - _loss(scenario)
    chosen = setup.rates[setup.owners] * _chances(setup)
    if setup.rule.protocol == TELL:
        rates = setup.rates[setup.neighbour] * kept
    else:
        rates = chosen[setup.back] * kept + chosen * kept**2
    rng = np.random.default_rng(1)
    edges = rng.integers(0, len(rates), _DRAWS)
    with np.errstate(divide="ignore"):
        ages = rng.exponential(size=_DRAWS) / rates[edges]
    found = Histogram()
    found.add(np.minimum(ages + _latencies(setup, rng, setup.back[edges]), end))
    return found


def _chances(setup: Setup) -> Floats:
    """π_i^j of each directed edge."""
    weights: Any = np.ones(len(setup.neighbour))
    if setup.scenario.clock.peers == "weighted":
        weights = setup.problem.W.data
    return weights / np.bincount(setup.owners, weights)[setup.owners]


def _loss(scenario: Scenario) -> float:
    """The share of messages that is lost, in the long run."""
    drop = scenario.network.drop
    if isinstance(drop, RateDrop):
        return drop.rate
    whole = drop.mean_good + drop.mean_bad
    return (drop.drop_good * drop.mean_good + drop.drop_bad * drop.mean_bad) / whole
