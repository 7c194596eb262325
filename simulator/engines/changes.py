"""What changes in a run whatever its agents do: points that arrive.

All of it is known before the first event.  Both engines are handed the changes in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.losses.loss import design
from simulator.problem.build import confidence
from simulator.problem.problem import Floats, Problem
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams

Ints = NDArray[np.int64]
#: When something changes, and for which agent.
CHANGE = np.dtype([("time", np.float64), ("index", np.int64)], align=True)


@dataclass(frozen=True)
class Arrivals:
    """The points that arrive after time 0, in their order: by time, then agent, then their own."""

    #: How many points each agent has at first (n), and the largest number that any will ever have.
    counts: Ints
    most: int
    by_data: bool
    #: When and at whom they arrive, and how many points that agent then has; (k,) each.
    times: Floats
    agents: Ints
    sizes: Ints
    #: The agent's solitary model from then on, (k, p).
    solitary: Floats

    def confidence(self, counts: Ints) -> Floats:
        """c_i(t) = m_i(t) / M, or 1 for who has data."""
        return confidence(counts, self.by_data, self.most)

    def curvatures(self, problem: Problem) -> Floats:
        """Lipschitz constants of the agent's gradient from then on, (k,)."""
        data = problem.data
        begins = data.offsets[self.agents]
        return problem.loss.curvatures(design(data.X, data.y), begins, self.sizes)


def arrivals_of(scenario: Scenario, problem: Problem, streams: Streams) -> Arrivals | None:
    """From the stream "arrivals": all gaps, in the order of the agents, then of their points."""
    stream = scenario.stream
    if stream is None:
        return None
    data = problem.data
    owner, place = data.owner, np.arange(len(data.y)) - np.repeat(data.offsets[:-1], data.sizes)
    if stream.column is None:
        waits = place >= stream.at_first
        gaps = np.zeros(len(place))
        gaps[waits] = stream.gaps.draw(streams.arrivals, int(np.count_nonzero(waits)))
        times = _sums(gaps, data.offsets)
    else:
        assert problem.times is not None
        times = problem.times
        waits = times > 0
    counts = np.bincount(owner[~waits], minlength=problem.n)
    # What comes after the end is not fitted.
    if not waits.any():
        return None
    late = np.flatnonzero(waits & (times <= (scenario.stop.time or np.inf)))
    late = late[np.lexsort((place[late], owner[late], times[late]))]
    agents, sizes = owner[late], place[late] + 1
    ridge = getattr(scenario.task, "ridge", 0.0)
    solitary = problem.loss.fit_growing(data.X, data.y, data.offsets, agents, sizes, ridge)
    by_data = getattr(scenario.algorithm, "confidence", "data") == "data"
    most = int(data.sizes.max())
    return Arrivals(counts, most, by_data, times[late], agents, sizes, solitary)


def _sums(gaps: Floats, offsets: Ints) -> Floats:
    """Sums of each agent's gaps, added one by one."""
    times = np.zeros(len(gaps))
    sizes = np.diff(offsets)
    total = np.zeros(len(sizes))
    for j in range(int(sizes.max(initial=0))):
        more = np.flatnonzero(sizes > j)
        total[more] += gaps[offsets[more] + j]
        times[offsets[more] + j] = total[more]
    return times


def problem_at_first(problem: Problem, arrivals: Arrivals, ridge: float) -> Problem:
    """The problem as it is at time 0."""
    data, counts = problem.data, arrivals.counts
    everybody = np.arange(problem.n)
    solitary = problem.loss.fit_growing(data.X, data.y, data.offsets, everybody, counts, ridge)
    solitary[counts == 0] = 0.0
    return problem.at(counts, arrivals.confidence(counts), solitary)
