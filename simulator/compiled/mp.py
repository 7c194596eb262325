"""Model propagation in compiled code: ``agents.model_propagation``, all agents in flat arrays."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from simulator.compiled import gossip, rounds
from simulator.compiled.dispatch import implement
from simulator.compiled.messages import HELLO, NONE, REQUEST, Pool, give_back
from simulator.compiled.world import STALE, World, updated
from simulator.setup import Setup

Floats = NDArray[np.float64]


class MP(NamedTuple):
    """Models and right-hand sides of equation 6 (n, p), copies Θ̃ (edges, p), D_ii (1 + μ c_i) (n).

    ``sent`` (n, p) is what the agents have sent in the current round, of a synchronous run.
    """

    models: Floats
    update: Floats
    copies: Floats
    scale: Floats
    sent: Floats


def make_mp(setup: Setup) -> MP:
    """The rule's start; the models and copies of the setup are taken over, not copied."""
    problem, mu = setup.problem, setup.scenario.algorithm.trade_off
    anchor = mu * problem.confidence
    # Who has no neighbours never solves.
    scale = np.where(problem.D > 0, problem.D, 1.0) * (1.0 + anchor)
    update = (anchor / (1.0 + anchor))[:, None] * problem.solitary
    own_copies = csr_array(
        (problem.W.data, np.arange(len(setup.copies)), setup.indptr),
        shape=(problem.n, len(setup.copies)),
    )
    update += (own_copies @ setup.copies) / scale[:, None]
    sent = np.empty_like(update) if setup.scenario.algorithm.mode == "sync" else np.empty((0, 1))
    return MP(setup.models, update, setup.copies, scale, sent)


@njit(cache=True)
def _absorb(world: World, rule: MP, i: int, edge: int, model: Floats) -> None:
    """Replace agent i's copy of the neighbour's model at ``edge``."""
    gain = world.edges[edge].weight / rule.scale[i]
    update, copy = rule.update[i], rule.copies[edge]
    for x in range(len(model)):
        update[x] += gain * (model[x] - copy[x])
        copy[x] = model[x]


@njit(cache=True)
def _solve(world: World, rule: MP, i: int) -> None:
    """Equation 6."""
    rule.models[i, :] = rule.update[i]
    updated(world, i, rule.models[i])


@njit(cache=True)
def _number(world: World, i: int) -> int:
    """The agent's next send number."""
    world.agents[i].sends += 1
    return world.agents[i].sends


# --- asynchronous: agents.agent.AnswersThenSolves ------------------------------------------------
@njit(cache=True)
def _tick(world: World, pool: Pool, rule: MP, i: int, edge: int) -> None:
    slot = gossip.dispatch(world, pool, REQUEST, edge, i, _number(world, i))
    if slot != NONE:
        pool.payloads[slot, 0, :] = rule.models[i]


@njit(cache=True)
def _handle(world: World, pool: Pool, rule: MP, i: int, slot: int) -> None:
    message, edges = pool.slots[slot], world.edges
    kind, number, sent_at = message.kind, message.number, message.sent_at
    edge = edges[message.edge].back
    fresh = number > edges[edge].version
    if fresh:
        edges[edge].version = number
        edges[edge].sent_at = sent_at
        # Absorbing leaves the model as it is, so the answer may come after it.
        _absorb(world, rule, i, edge, pool.payloads[slot, 0])
    else:
        world.counts[STALE] += 1
    if kind == REQUEST:
        if gossip.answer(world, pool, slot, edge, i, _number(world, i)):
            pool.payloads[slot, 0, :] = rule.models[i]
    else:
        give_back(pool, slot)
    if fresh and kind != HELLO:
        gossip.compute(world, pool, rule, i, 0)


@njit(cache=True)
def _finish(world: World, pool: Pool, rule: MP, i: int) -> None:
    _solve(world, rule, i)


# --- synchronous: agents.agent.RoundAgent --------------------------------------------------------
@njit(cache=True)
def _prepare(world: World, rule: MP, i: int) -> None:
    rule.sent[i, :] = rule.models[i]


@njit(cache=True)
def _absorb_round(world: World, rule: MP, i: int, edge: int) -> None:
    _absorb(world, rule, i, edge, rule.sent[world.edges[edge].neighbour])


implement(gossip.tick, MP, _tick)
implement(gossip.handle, MP, _handle)
implement(gossip.finish, MP, _finish)
implement(rounds.solve, MP, _solve)
implement(rounds.prepare, MP, _prepare)
implement(rounds.absorb, MP, _absorb_round)
