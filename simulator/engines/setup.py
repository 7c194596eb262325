"""From a scenario to the start of a run: what both engines begin with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from agents.protocol import ALL, Protocol
from agents.protocols import protocol_of
from agents.rule import Rule, Start
from agents.running import Fresh, RunningRule
from simulator.engines.availability import Availability, Cuts, availability_of, cuts
from simulator.engines.changes import Arrivals, arrivals_of, problem_at_first
from simulator.engines.places import column_of, fixed_latency, sites_of
from simulator.engines.slowness import Lasting
from simulator.errors import ScenarioError
from simulator.problem.graphs.graph import mirror
from simulator.problem.problem import Floats, Problem
from simulator.scenario.algorithm import NormalStart, PropagatedStart
from simulator.scenario.geography import Column
from simulator.scenario.laws import Law
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.theory.objectives import mp_optimum


@dataclass(frozen=True)
class Setup:
    """A problem, and everything about the devices that is fixed before the first event.

    Directed edges are numbered as the entries of W in CSR order: agent i's links are
    ``first[i] … first[i + 1] − 1``, towards ``neighbour[edge]``; ``back[edge]`` is the edge
    in the other direction.
    """

    scenario: Scenario
    problem: Problem
    rule: type[Rule]
    streams: Streams
    first: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    back: NDArray[np.int64]
    #: Clock rates, and fixed factors on latency, by sender and by directed edge, and on computing
    #: time (None: 1 everywhere).
    rates: Floats
    latency_factors: Floats | None
    link_factors: Floats | None
    compute_factors: Floats | None
    #: Factors that last for a while only, times these.
    lasting_latency: Lasting | None
    lasting_links: Lasting | None
    lasting_computing: Lasting | None
    #: The first models (n, p) and copies (edges, p).
    models: Floats
    copies: Floats
    #: The private models (n, p) that these were made from, where the start is private.
    released: Floats | None = None
    #: Comings and goings, and partitions, if there are any.
    availability: Availability | None = None
    cuts: Cuts | None = None
    #: Points that arrive, if any do, and the problem as it is at time 0.
    arrivals: Arrivals | None = None
    first_problem: Problem | None = None
    #: The number of each agent's site, where there are any.
    sites: NDArray[np.int64] | None = None

    @property
    def most_links(self) -> int:
        """The most links that an agent has."""
        return int(np.diff(self.first).max())

    @property
    def most_sends(self) -> int:
        """The most messages that one event sends."""
        most = self.protocol.most_sends
        return self.most_links if most == ALL else most

    @property
    def protocol(self) -> type[Protocol]:
        """The protocol that the scenario chooses of the rule's."""
        return protocol_of(self.rule, self.scenario.algorithm.protocol)

    @property
    def peers(self) -> str:
        """Whom a tick is about: uniform, weighted, turn or all."""
        return self.scenario.peers

    @property
    def near(self) -> bool:
        """Does everybody go through rounds by itself, and wait for its neighbours only?"""
        scenario = self.scenario
        return scenario.algorithm.mode == "sync" and scenario.rounds.barrier == "neighbours"

    @property
    def loose(self) -> bool:
        """May an agent go on without its neighbours' messages of its very round?"""
        return self.near and self.scenario.rounds.loose

    @property
    def needed(self) -> NDArray[np.int64]:
        """For how many messages each agent (n) waits in a round."""
        share = self.scenario.rounds.share
        counts = [math.ceil(share * count) for count in np.diff(self.first).tolist()]
        return np.array(counts, dtype=np.int64)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The agent at the near end of each directed edge."""
        return np.repeat(np.arange(self.problem.n), np.diff(self.first))

    @property
    def message_bytes(self) -> int:
        """Header and 8 bytes a number."""
        return self.scenario.network.header + 8 * math.prod(self.rule.shape(self.problem.p))

    @property
    def hello_bytes(self) -> int:
        """Header and one model."""
        return self.scenario.network.header + 8 * self.problem.p

    def links_of(self, i: int) -> range:
        """The edges that lead away from agent i."""
        return range(int(self.first[i]), int(self.first[i + 1]))

    def memory(self) -> dict[str, tuple[NDArray[Any], bool]]:
        """The protocol's own arrays before the first event, and whether links have them."""
        n, p, links = self.problem.n, self.problem.p, len(self.neighbour)
        found: dict[str, tuple[NDArray[Any], bool]] = {}
        for name, array in self.protocol.arrays.items():
            first = n if array.over == "agents" else links
            shape = first, *(p if axis == "p" else int(axis) for axis in array.shape)
            found[name] = np.zeros(shape, array.dtype), array.over == "links"
        return found

    def start(self) -> Start:
        """What the rule starts from."""
        return self._start(self.models, self.copies)

    def fresh(self) -> Fresh:
        """What an agent that has forgotten everything starts from again: its data alone.

        The arbitrary starts have their first numbers again.  To be asked before the first event.
        """
        start = self.scenario.algorithm.start
        arbitrary = start == "zero" or isinstance(start, NormalStart)
        if self.rule.refresh is not None:
            return (self.models.copy(), self.copies.copy()) if arbitrary else (None, None)
        solitary = self.problem.solitary
        models, copies = solitary.copy(), solitary[self.owners]
        if arbitrary:
            models, copies = self.models.copy(), self.copies.copy()
        return RunningRule(self.rule, self._start(models, copies), self.streams.rule)

    def _start(self, models: Floats, copies: Floats) -> Start:
        algorithm, data = self.scenario.algorithm, self.problem.data
        problem = self.problem if self.first_problem is None else self.first_problem
        return Start(
            first=self.first,
            neighbour=self.neighbour,
            W=problem.W.data,
            D=problem.D,
            confidence=problem.confidence,
            solitary=problem.solitary if self.released is None else self.released,
            models=models,
            copies=copies,
            loss=problem.loss,
            X=data.X,
            y=data.y,
            offsets=data.offsets,
            counts=None if self.arrivals is None else self.arrivals.counts.copy(),
            mu=getattr(algorithm, "trade_off", float("nan")),
            parameters=algorithm,
            ridge=getattr(self.scenario.task, "ridge", 0.0) if problem.loss.ridged else 0.0,
        )


def progress(late: int, done: NDArray[np.int64]) -> dict[str, float]:
    """What a sample says of rounds that agents go through by themselves.

    ``late`` is how many messages came after their round; ``done`` how many rounds each has done.
    """
    least, mean, most = int(done.min()), float(done.mean()), int(done.max())
    return {"late": late, "round_least": least, "round_mean": mean, "round_most": most}


def prepare(scenario: Scenario, problem: Problem, streams: Streams, rule: type[Rule]) -> Setup:
    """Draw the devices' fixed properties and the first models.

    From the stream "rates", in this order: clock rates, latency factors of the agents, compute
    factors, latency factors of the links.
    """
    rng, n = streams.rates, problem.n
    own = partial(_of_agents, rng=rng, problem=problem)
    latency, computing = scenario.network.latency, scenario.compute.time
    rates = own(scenario.clock.rate, "clock.rate")
    assert rates is not None
    latency_factors, lasting_latency = _parted(latency, "per_agent", "network.latency", own)
    compute_factors, lasting_computing = _parted(computing, "per_agent", "compute.time", own)
    if isinstance(computing, Column):
        times = column_of(problem, computing.column, "compute.time.column")
        compute_factors = times if compute_factors is None else times * compute_factors
    links = partial(_of_links, rng=rng, problem=problem)
    link_factors, lasting_links = _parted(latency, "per_link", "network.latency", links)
    sites = sites_of(scenario, problem, streams)
    owners = np.repeat(np.arange(n, dtype=np.int64), np.diff(problem.W.indptr))
    ends = owners, problem.W.indices.astype(np.int64)
    fixed = fixed_latency(scenario, problem, sites, ends)
    if fixed is not None:
        link_factors = fixed if link_factors is None else fixed * link_factors
    arrivals = arrivals_of(scenario, problem, streams)
    first = (
        problem
        if arrivals is None
        else problem_at_first(problem, arrivals, getattr(scenario.task, "ridge", 0.0))
    )
    if first.undetermined and scenario.algorithm.starts_from_mp:
        what = "a connected part of the graph has no data at time 0, so that nothing determines"
        raise ScenarioError(f"algorithm.start: {what} where mp starts; use another, or more data")
    models, copies = first_models(scenario, first, streams.data)
    W = problem.W
    setup = Setup(
        scenario=scenario,
        problem=problem,
        rule=rule,
        streams=streams,
        first=W.indptr.astype(np.int64),
        neighbour=W.indices.astype(np.int64),
        back=mirror(W),
        rates=rates,
        latency_factors=latency_factors,
        link_factors=link_factors,
        compute_factors=compute_factors,
        lasting_latency=lasting_latency,
        lasting_links=lasting_links,
        lasting_computing=lasting_computing,
        models=models,
        copies=copies,
        availability=availability_of(scenario, problem, streams),
        cuts=cuts(scenario, problem, streams, sites),
        arrivals=arrivals,
        first_problem=first,
        sites=sites,
    )
    return _warm(setup) if scenario.algorithm.start == "private" else setup


def _warm(setup: Setup) -> Setup:
    """The start private: each agent's first step from zero, smoothed free of charge."""
    scenario, problem = setup.scenario, setup.problem
    algorithm: Any = scenario.algorithm.model_copy(update={"start": "zero"})
    cold = replace(setup, scenario=scenario.model_copy(update={"algorithm": algorithm}))
    rule = RunningRule(setup.rule, cold.start(), setup.streams.rule)
    for i in range(problem.n):
        rule.solve(i)
    mu = (1 - algorithm.privacy.smoothing) / algorithm.privacy.smoothing
    models = mp_optimum(problem.W, problem.confidence, rule.models, mu)
    return replace(setup, models=models, copies=models[setup.neighbour], released=rule.models)


def _parted(
    times: Law[Any], name: str, key: str, drawn: Callable[[Law[Any] | None, str], Floats | None]
) -> tuple[Floats | None, Lasting | None]:
    """The factors beside a law of times: those that are fixed, and those that are not."""
    law: Any = getattr(times, name, None)
    factors = drawn(law, f"{key}.{name}")
    if factors is None or getattr(law, "lasts", None) is None:
        return factors, None
    return None, Lasting(f"{key}.{name}", law, factors)


def _of_agents(
    law: Law[Any] | None, key: str, *, rng: np.random.Generator, problem: Problem
) -> Floats | None:
    """A number for each agent: from a law, or from a column of the user's file."""
    if law is None:
        return None
    if isinstance(law, Column):
        return column_of(problem, law.column, f"{key}.column")
    return _per_agent(law, rng, problem.n, key)


def _of_links(
    law: Law[Any] | None, key: str, *, rng: np.random.Generator, problem: Problem
) -> Floats | None:
    """One factor an undirected link, drawn for i < j in ascending order, at both its edges."""
    if law is None:
        return None
    W = problem.W
    upper = triu(W, k=1, format="csr")
    upper.sort_indices()
    factors = _per_agent(law, rng, upper.nnz, key, "link")
    upper.data = factors
    both = csr_array(upper + upper.T)
    both.sort_indices()
    return np.ascontiguousarray(both.data, dtype=float)


def _per_agent(
    law: Law[Any], rng: np.random.Generator, n: int, key: str, whose: str = "agent"
) -> Floats:
    values = law.draw(rng, n)
    if not np.all((values > 0) & np.isfinite(values)):
        number = int(np.argmin((values > 0) & np.isfinite(values)))
        raise ScenarioError(f"{key}: {whose} {number} drew {values[number]}; it must be above 0")
    return values


def first_models(
    scenario: Scenario, problem: Problem, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """``algorithm.start`` (section 2 of the design): the models (n, p) and copies (edges, p)."""
    start, p = scenario.algorithm.start, problem.p
    owner = np.repeat(np.arange(problem.n), np.diff(problem.W.indptr))
    neighbour = problem.W.indices
    if isinstance(start, NormalStart):
        models = start.scale * rng.standard_normal((problem.n, p))
        return models, start.scale * rng.standard_normal((len(owner), p))
    if start in ("zero", "private"):
        return np.zeros((problem.n, p)), np.zeros((len(owner), p))
    if start == "mp" or isinstance(start, PropagatedStart):
        if isinstance(start, PropagatedStart):
            mu = (1 - start.alpha) / start.alpha
        else:
            mu = scenario.algorithm.trade_off  # type: ignore[attr-defined]
        models = mp_optimum(problem.W, problem.confidence, problem.solitary, mu)
        return models, models[neighbour]
    copied = neighbour if start == "known" else owner
    return problem.solitary.copy(), problem.solitary[copied]
