"""From a scenario to the start of a run: what both engines begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

from agents.rule import Rule, Start
from simulator.errors import ScenarioError
from simulator.problem.graphs.graph import mirror
from simulator.problem.problem import Floats, Problem
from simulator.scenario.algorithm import NormalStart, PropagatedStart
from simulator.scenario.laws import Law
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.theory.objectives import mp_optimum


@dataclass(frozen=True)
class Setup:
    """A problem, and everything about the devices that is fixed before the first event.

    Directed edges are numbered as the entries of W in CSR order: agent i's links are
    ``indptr[i] … indptr[i + 1] − 1``, towards ``neighbours[edge]``; ``back[edge]`` is the edge
    in the other direction.
    """

    scenario: Scenario
    problem: Problem
    rule: type[Rule]
    streams: Streams
    indptr: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    back: NDArray[np.int64]
    #: Clock rates, and factors on latency, by sender and by directed edge, and on computing time
    #: (None: 1 everywhere).
    rates: Floats
    latency_factors: Floats | None
    link_factors: Floats | None
    compute_factors: Floats | None
    #: The first models (n, p) and copies (edges, p).
    models: Floats
    copies: Floats

    @property
    def owners(self) -> NDArray[np.int64]:
        """The agent at the near end of each directed edge."""
        return np.repeat(np.arange(self.problem.n), np.diff(self.indptr))

    @property
    def message_bytes(self) -> int:
        """Header and 8 bytes a number."""
        return self.scenario.network.header + 8 * self.rule.vectors * self.problem.p

    @property
    def hello_bytes(self) -> int:
        """Header and one model."""
        return self.scenario.network.header + 8 * self.problem.p

    def links_of(self, i: int) -> range:
        """The edges that lead away from agent i."""
        return range(int(self.indptr[i]), int(self.indptr[i + 1]))

    def start(self) -> Start:
        """What the rule starts from."""
        problem, algorithm = self.problem, self.scenario.algorithm
        return Start(
            first=self.indptr,
            neighbour=self.neighbours,
            W=problem.W.data,
            D=problem.D,
            confidence=problem.confidence,
            solitary=problem.solitary,
            models=self.models,
            copies=self.copies,
            loss=problem.loss,
            X=problem.data.X,
            y=problem.data.y,
            offsets=problem.data.offsets,
            mu=getattr(algorithm, "trade_off", float("nan")),
            parameters=algorithm,
            ridge=getattr(self.scenario.task, "ridge", 0.0) if problem.loss.ridged else 0.0,
        )


def prepare(scenario: Scenario, problem: Problem, streams: Streams, rule: type[Rule]) -> Setup:
    """Draw the devices' fixed properties and the first models.

    From the stream "rates", in this order: clock rates, latency factors of the agents, compute
    factors, latency factors of the links.
    """
    rng, n = streams.rates, problem.n
    rates = _per_agent(scenario.clock.rate, rng, n, "clock.rate")
    latency_factors = _factors(
        getattr(scenario.network.latency, "per_agent", None), rng, n, "network.latency"
    )
    compute_factors = _factors(
        getattr(scenario.compute.time, "per_agent", None), rng, n, "compute.time"
    )
    link_factors = _link_factors(scenario, problem, rng)
    models, copies = first_models(scenario, problem, streams.data)
    W = problem.W
    return Setup(
        scenario=scenario,
        problem=problem,
        rule=rule,
        streams=streams,
        indptr=W.indptr.astype(np.int64),
        neighbours=W.indices.astype(np.int64),
        back=mirror(W),
        rates=rates,
        latency_factors=latency_factors,
        link_factors=link_factors,
        compute_factors=compute_factors,
        models=models,
        copies=copies,
    )


def _factors(law: Law[Any] | None, rng: np.random.Generator, n: int, key: str) -> Floats | None:
    return None if law is None else _per_agent(law, rng, n, f"{key}.per_agent")


def _link_factors(scenario: Scenario, problem: Problem, rng: np.random.Generator) -> Floats | None:
    """One factor an undirected link, drawn for i < j in ascending order, at both its edges."""
    law = getattr(scenario.network.latency, "per_link", None)
    if law is None:
        return None
    W = problem.W
    upper = triu(W, k=1, format="csr")
    upper.sort_indices()
    factors = _per_agent(law, rng, upper.nnz, "network.latency.per_link", "link")
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
    if start == "zero":
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
