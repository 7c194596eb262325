"""From a scenario to the start of a run: what both engines begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.admm import CollaborativeADMM
from agents.model_propagation import ModelPropagation
from agents.rule import Rule, Situation
from simulator.errors import ScenarioError
from simulator.graphs import mirror
from simulator.laws import FactorLaw, Law
from simulator.optimum import mp_optimum
from simulator.problem import Floats, Problem
from simulator.scenario import GradientSteps, NormalStart, PropagatedStart, Scenario
from simulator.seeds import Streams

RULES: Mapping[str, type[Rule]] = {"mp": ModelPropagation, "admm": CollaborativeADMM}


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
    #: Clock rates, and factors on latency and computing time (None: 1 everywhere).
    rates: Floats
    latency_factors: Floats | None
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
        return self.scenario.network.header + 8 * self.rule.VECTORS * self.problem.p

    def situation(self, i: int) -> Situation:
        """What agent i is told at the start."""
        problem, algorithm = self.problem, self.scenario.algorithm
        links = slice(self.indptr[i], self.indptr[i + 1])
        X, y = problem.data[i]
        primal = algorithm.primal
        return Situation(
            weights=problem.W.data[links],
            degree=float(problem.D[i]),
            X=X,
            y=y,
            loss=problem.loss,
            confidence=float(problem.confidence[i]),
            solitary=problem.solitary[i],
            model=self.models[i],
            copies=self.copies[links],
            mu=algorithm.trade_off,
            rho=algorithm.rho,
            gradient_steps=primal.gradient_steps if isinstance(primal, GradientSteps) else 0,
            parameters=algorithm.parameters,
        )


def prepare(scenario: Scenario, problem: Problem, streams: Streams, rule: type[Rule]) -> Setup:
    """Draw the devices' fixed properties and the first models.

    From the stream "rates", in this order: clock rates, latency factors, compute factors.
    """
    rng, n = streams.rates, problem.n
    rates = _per_agent(scenario.clock.rate, rng, n, "clock.rate")
    latency_factors = _factors(scenario.network.latency.per_agent, rng, n, "network.latency")
    compute_factors = _factors(scenario.compute.time.per_agent, rng, n, "compute.time")
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
        compute_factors=compute_factors,
        models=models,
        copies=copies,
    )


def _factors(law: FactorLaw | None, rng: np.random.Generator, n: int, key: str) -> Floats | None:
    return None if law is None else _per_agent(law, rng, n, f"{key}.per_agent")


def _per_agent(law: Law, rng: np.random.Generator, n: int, key: str) -> Floats:
    values = law.draw(rng, n)
    if not np.all((values > 0) & np.isfinite(values)):
        agent = int(np.argmin((values > 0) & np.isfinite(values)))
        raise ScenarioError(f"{key}: agent {agent} drew {values[agent]}; it must be above 0")
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
            mu = scenario.algorithm.trade_off
        models = mp_optimum(problem.W, problem.confidence, problem.solitary, mu)
        return models, models[neighbour]
    copied = neighbour if start == "known" else owner
    return problem.solitary.copy(), problem.solitary[copied]
