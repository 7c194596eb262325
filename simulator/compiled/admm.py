"""Collaborative learning in compiled code: ``agents.admm``, all agents in flat arrays."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simulator.compiled import gossip, rounds
from simulator.compiled.dispatch import implement
from simulator.compiled.messages import HELLO, NONE, REQUEST, Pool, give_back
from simulator.compiled.primal import Primal, make_primal, primal_step
from simulator.compiled.world import EXHAUSTED, STALE, World, updated
from simulator.setup import Setup

Floats = NDArray[np.float64]
#: The four vectors of a link; a payload has the agent's model and copy in place of Z.
OWN, OTHER, DUAL_OWN, DUAL_OTHER = range(4)


class ADMM(NamedTuple):
    """Models (n, p), links (edges, 4, p), and the sums of pulls a·v (n, p).

    ``sent`` (edges, 4, p) is what the agents have sent in the current round, of a synchronous run;
    of an asynchronous one (1, 4, p), for the payload at hand.
    """

    models: Floats
    links: Floats
    pull_sum: Floats
    rho: float
    primal: Primal
    sent: Floats


def make_admm(setup: Setup) -> ADMM:
    """The rule's start; the models of the setup are taken over, not copied."""
    problem, rho = setup.problem, setup.scenario.algorithm.rho
    edges, p = setup.copies.shape
    owners = setup.owners
    links = np.zeros((edges, 4, p))
    links[:, OWN], links[:, OTHER] = setup.models[owners], setup.copies
    sent = np.empty((edges if setup.scenario.algorithm.mode == "sync" else 1, 4, p))
    pull_sum = np.zeros_like(setup.models)
    _sum_pulls(setup.indptr, problem.W.data, links, rho, pull_sum)
    weights = problem.W.data
    kappa = np.bincount(owners, weights * rho / (weights + rho), minlength=problem.n)
    a = kappa + rho * np.diff(setup.indptr)
    return ADMM(setup.models, links, pull_sum, rho, make_primal(setup, a), sent)


@njit(cache=True)
def _sum_pulls(
    indptr: NDArray[np.int64], weights: Floats, links: Floats, rho: float, total: Floats
) -> None:
    for i in range(len(total)):
        for edge in range(indptr[i], indptr[i + 1]):
            for x in range(total.shape[1]):
                total[i, x] += _pull(links[edge], weights[edge], rho, x)


@njit(cache=True)
def _pull(link: Floats, weight: float, rho: float, x: int) -> float:
    """A link's part of a·v: κ_j u_j + ρ w_j, at coordinate x."""
    kappa = weight * rho / (weight + rho)
    u = link[OTHER, x] - link[DUAL_OTHER, x] / rho
    return kappa * u + rho * (link[OWN, x] - link[DUAL_OWN, x] / rho)


@njit(cache=True)
def _solve(world: World, rule: ADMM, i: int) -> None:
    """Step 1: the primal problem."""
    if not primal_step(rule.primal, i, rule.pull_sum[i], rule.models[i]):
        world.counts[EXHAUSTED] += 1
    updated(world, i, rule.models[i])


@njit(cache=True)
def _payload(world: World, rule: ADMM, i: int, edge: int, payload: Floats) -> None:
    """Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j, right after a solve, into ``payload`` (4, p)."""
    link, weight = rule.links[edge], world.edges[edge].weight
    share = weight / (weight + rule.rho)
    for x in range(link.shape[1]):
        model = rule.models[i, x]
        u = link[OTHER, x] - link[DUAL_OTHER, x] / rule.rho
        payload[OWN, x] = model
        payload[OTHER, x] = share * model + (1.0 - share) * u
        payload[DUAL_OWN, x] = link[DUAL_OWN, x]
        payload[DUAL_OTHER, x] = link[DUAL_OTHER, x]


@njit(cache=True)
def _absorb(
    world: World, rule: ADMM, i: int, edge: int, received: Floats, sent: Floats
) -> None:
    """Steps 2 and 3: the secondary and dual variables of a link, from both payloads."""
    link, weight, rho = rule.links[edge], world.edges[edge].weight, rule.rho
    for x in range(link.shape[1]):
        own, other, dual_own, dual_other = (
            sent[OWN, x],
            sent[OTHER, x],
            sent[DUAL_OWN, x],
            sent[DUAL_OTHER, x],
        )
        before = _pull(link, weight, rho, x)
        # In the other end's payload "own" is the neighbour: they cross over.
        z_own = 0.5 * ((dual_own + received[DUAL_OTHER, x]) / rho + own + received[OTHER, x])
        z_other = 0.5 * ((received[DUAL_OWN, x] + dual_other) / rho + received[OWN, x] + other)
        link[OWN, x], link[OTHER, x] = z_own, z_other
        link[DUAL_OWN, x] = dual_own + rho * (own - z_own)
        link[DUAL_OTHER, x] = dual_other + rho * (other - z_other)
        rule.pull_sum[i, x] += _pull(link, weight, rho, x) - before


@njit(cache=True)
def _introduce(world: World, rule: ADMM, i: int, edge: int, model: Floats) -> None:
    """Z_ei^j is the neighbour's solitary model."""
    link, weight, rho = rule.links[edge], world.edges[edge].weight, rule.rho
    for x in range(len(model)):
        before = _pull(link, weight, rho, x)
        link[OTHER, x] = model[x]
        rule.pull_sum[i, x] += _pull(link, weight, rho, x) - before


@njit(cache=True)
def _vectors(pool: Pool, slot: int, part: int) -> Floats:
    """A payload as (4, p)."""
    return pool.payloads[slot, part].reshape((4, -1))


# --- asynchronous: agents.agent.SolvesThenAnswers ------------------------------------------------
@njit(cache=True)
def _tick(world: World, pool: Pool, rule: ADMM, i: int, edge: int) -> None:
    gossip.compute(world, pool, rule, i, -1 - edge)


@njit(cache=True)
def _handle(world: World, pool: Pool, rule: ADMM, i: int, slot: int) -> None:
    message = pool.slots[slot]
    if message.kind == REQUEST:
        gossip.compute(world, pool, rule, i, slot)
        return
    edge = world.edges[message.edge].back
    link = world.edges[edge]
    if message.number != link.version:
        world.counts[STALE] += 1
    else:
        link.sent_at = message.sent_at
        if message.kind == HELLO:
            p = rule.models.shape[1]
            _introduce(world, rule, i, edge, pool.payloads[slot, 0, :p])
        else:
            _absorb(world, rule, i, edge, _vectors(pool, slot, 1), _vectors(pool, slot, 0))
            link.version += 1
    give_back(pool, slot)


@njit(cache=True)
def _finish(world: World, pool: Pool, rule: ADMM, i: int) -> None:
    """Solved: now send the request, or absorb the one that came and answer it."""
    _solve(world, rule, i)
    job = world.agents[i].job
    if job < 0:
        edge = -1 - job
        slot = gossip.dispatch(world, pool, REQUEST, edge, i, world.edges[edge].version)
        if slot != NONE:
            _payload(world, rule, i, edge, _vectors(pool, slot, 0))
        return
    message = pool.slots[job]
    edge = world.edges[message.edge].back
    number = message.number
    own = _vectors(pool, job, 1)
    _payload(world, rule, i, edge, own)
    _absorb(world, rule, i, edge, _vectors(pool, job, 0), own)
    world.edges[edge].version += 1
    world.edges[edge].sent_at = message.sent_at
    gossip.answer(world, pool, job, edge, i, number)


# --- synchronous: agents.agent.RoundAgent --------------------------------------------------------
@njit(cache=True)
def _prepare(world: World, rule: ADMM, i: int) -> None:
    agent = world.agents[i]
    for edge in range(agent.first, agent.first + agent.degree):
        _payload(world, rule, i, edge, rule.sent[edge])


@njit(cache=True)
def _absorb_round(world: World, rule: ADMM, i: int, edge: int) -> None:
    _absorb(world, rule, i, edge, rule.sent[world.edges[edge].back], rule.sent[edge])


implement(gossip.tick, ADMM, _tick)
implement(gossip.handle, ADMM, _handle)
implement(gossip.finish, ADMM, _finish)
implement(rounds.solve, ADMM, _solve)
implement(rounds.prepare, ADMM, _prepare)
implement(rounds.absorb, ADMM, _absorb_round)
