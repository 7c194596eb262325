"""Who is on and when, and who is cut off from whom: what engines know before the first event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.errors import ScenarioError
from simulator.problem.problem import Floats, Problem
from simulator.scenario.laws import Law
from simulator.scenario.network import OnOff, Traced, read_trace
from simulator.scenario.schema import Scenario
from simulator.scenario.tables import listing
from simulator.seeds import Streams

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Availability:
    """The agents' comings and goings."""

    #: Who is on at time 0 (n), and when each switches for the first time (infinite: never).
    on: NDArray[np.bool_]
    first: Floats
    #: The laws of later stays; None where a trace has all of them: agent i's switches are
    #: ``times[starts[i]:starts[i + 1]]``.
    laws: tuple[Law[Any], Law[Any]] | None
    times: Floats
    starts: Ints
    forget: bool


def availability_of(scenario: Scenario, problem: Problem, streams: Streams) -> Availability | None:
    """From the stream "availability", in this order: states, shares of the first stays, the stays.

    The first stay is the rest of one that a random instant falls into, so that the process is
    stationary from the start.
    """
    config = scenario.availability
    if config is None:
        return None
    n = problem.n
    if isinstance(config, Traced):
        return _traced(config, problem)
    assert isinstance(config, OnOff)
    rng = streams.availability
    on = rng.random(n) < config.share_on
    share = rng.random(n)
    stays = np.where(on, config.on.weighted(rng, n), config.off.weighted(rng, n))
    starts = np.zeros(n + 1, dtype=np.int64)
    laws = (config.on, config.off)
    return Availability(on, share * stays, laws, np.empty(0), starts, config.forget)


def _traced(config: Traced, problem: Problem) -> Availability:
    trace = read_trace(config.file)
    number = pd.Index(problem.names).get_indexer(pd.Index(trace.names))
    unknown = np.flatnonzero(number[trace.agents] < 0)
    if len(unknown):
        name = trace.names[trace.agents[unknown[0]]]
        raise ScenarioError(
            f"{config.file}:{trace.lines[unknown[0]]}: column 'agent': {name!r} is not an agent; "
            f"the agents are {listing(problem.names)}"
        )
    agents = number[trace.agents]
    order = np.argsort(agents, kind="stable")
    agents, times, state = agents[order], trace.times[order], trace.on[order]
    # An agent is on until its first row; who is switched on again stays on.
    new = np.append(True, agents[1:] != agents[:-1])[: len(agents)]
    before = np.where(new, True, np.roll(state, 1))
    on = np.ones(problem.n, dtype=bool)
    on[agents[times == 0]] = state[times == 0]
    kept = (state != before) & (times > 0)
    starts = np.concatenate(([0], np.cumsum(np.bincount(agents[kept], minlength=problem.n))))
    first = np.append(times[kept], np.inf)[starts[:-1]]
    first[starts[:-1] == starts[1:]] = np.inf
    return Availability(on, first, None, times[kept], starts, config.forget)


# --- partitions ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Cuts:
    """Partitions in the order of time: when each begins and ends (k, 2), and the groups (k, n)."""

    times: Floats
    groups: Ints

    def parted(self, now: float, one: int, other: int) -> bool:
        """Is what is sent from one agent to the other now lost?"""
        k = int(np.searchsorted(self.times[:, 1], now, side="right"))
        if k == len(self.times) or now < self.times[k, 0]:
            return False
        return bool(self.groups[k, one] != self.groups[k, other])


def cuts(scenario: Scenario, problem: Problem, streams: Streams, sites: Ints | None) -> Cuts | None:
    """All partitions; random groups come from the stream "sites", in the scenario's order."""
    config = scenario.network.partitions
    if not config:
        return None
    groups = []
    for k, cut in enumerate(config):
        if isinstance(cut.groups, int):
            group = np.empty(problem.n, dtype=np.int64)
            if cut.groups > problem.n:
                raise ScenarioError(
                    f"network.partitions.{k}.groups: {cut.groups} groups of {problem.n} agents"
                )
            for number, part in enumerate(
                np.array_split(streams.sites.permutation(problem.n), cut.groups)
            ):
                group[part] = number
        elif cut.groups == "by site":
            assert sites is not None
            group = sites
        else:
            group = _listed(cut.groups, problem.names, f"network.partitions.{k}.groups")
        groups.append(group)
    order = sorted(range(len(config)), key=lambda k: config[k].begin)
    times = np.array([(config[k].begin, config[k].until) for k in order])
    return Cuts(times, np.stack([groups[k] for k in order]).astype(np.int64))


def _listed(groups: list[list[Any]], names: list[str], key: str) -> Ints:
    number = {name: i for i, name in enumerate(names)}
    group = np.full(len(names), len(groups), dtype=np.int64)  # who is in no list
    for place, members in enumerate(groups):
        for name in members:
            if name not in number:
                raise ScenarioError(
                    f"{key}: {name!r} is not an agent; the agents are {listing(names)}"
                )
            group[number[name]] = place
    return group
