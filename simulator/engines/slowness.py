"""Slowness that lasts: factors of agents and links that are drawn anew now and then.

A factor is drawn anew at the instants of a Poisson process of rate 1/τ, each agent's and each
link's own.  None of these is an event: at a use, a time Δ after the last one, it is still the old
one with probability exp(−Δ/τ), and else a new draw, whatever happened in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.errors import ScenarioError
from simulator.problem.problem import Floats
from simulator.scenario.laws import Law


@dataclass(frozen=True)
class Lasting:
    """Factors of agents, or of links, beside whose law ``lasts`` stands."""

    key: str
    law: Law[Any]
    #: What they are at time 0: of each agent, or of each directed edge.
    first: Floats

    @property
    def lasts(self) -> float:
        """τ, in seconds."""
        return float(self.law.lasts)  # type: ignore[attr-defined]

    def anew(self, rng: np.random.Generator) -> float:
        """Another draw."""
        value = float(self.law.draw(rng, 1)[0])
        if not 0 < value < math.inf:
            raise ScenarioError(f"{self.key}: one that had lasted drew {value}; it must be above 0")
        return value


class Renewed:
    """The factors as they change in a run."""

    def __init__(self, lasting: Lasting, rng: np.random.Generator):
        self.lasting, self._rng, self._lasts = lasting, rng, lasting.lasts
        self._values: list[float] = lasting.first.tolist()
        self._used = [0.0] * len(self._values)

    def now(self, k: int, now: float) -> float:
        """Factor k, which is used now: kept, or drawn anew."""
        chance = math.exp(-(now - self._used[k]) / self._lasts)
        self._used[k] = now
        if self._rng.random() >= chance:
            self._values[k] = self.lasting.anew(self._rng)
        return self._values[k]
