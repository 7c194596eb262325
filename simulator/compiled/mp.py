"""Model propagation in compiled code: ``agents.model_propagation``, all agents in flat arrays."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from simulator.compiled import gossip, rounds
from simulator.compiled.dispatch import implement
from simulator.compiled.memory import ADDRESS, row
from simulator.compiled.messages import HELLO, NONE, REQUEST, give_back, payload, slot_of
from simulator.compiled.world import FIELDS, agent_of, edge_of, updated
from simulator.setup import Setup

LAYOUT = np.dtype(
    [
        *FIELDS,
        #: The right-hand side of equation 6 for the copies as they are now (n, p).
        ("update", ADDRESS),
        #: Θ̃ (edges, p).
        ("copies", ADDRESS),
        #: What the agents have sent in the current round (n, p), of a synchronous run.
        ("round_models", ADDRESS),
    ],
    align=True,
)


def make(run: NDArray[Any], setup: Setup, edges: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The rule's arrays; the models and copies of the setup are taken over, not copied."""
    problem, mu = setup.problem, setup.scenario.algorithm.trade_off
    anchor = mu * problem.confidence
    # Who has no neighbours never solves.
    scale = np.where(problem.D > 0, problem.D, 1.0) * (1.0 + anchor)
    edges["weight"] = problem.W.data / np.repeat(scale, np.diff(setup.indptr))
    shape = (problem.n, len(edges))
    sums = csr_array((edges["weight"], np.arange(len(edges)), setup.indptr), shape=shape)
    update = sums @ setup.copies
    update += (anchor / (1.0 + anchor))[:, None] * problem.solitary
    rounds = setup.scenario.algorithm.mode == "sync"
    return {
        "models": setup.models,
        "copies": setup.copies,
        "update": update,
        "round_models": np.empty_like(update) if rounds else np.empty(0),
    }


@njit(cache=True)
def _absorb(run: Any, i: int, edge: int, model: Any) -> None:
    """Replace agent i's copy of the neighbour's model at ``edge``."""
    gain = edge_of(run, edge).weight
    update, copy = row(run.update, i, run.p), row(run.copies, edge, run.p)
    for x in range(run.p):
        update[x] += gain * (model[x] - copy[x])
        copy[x] = model[x]


@njit(cache=True)
def _solve(run: Any, i: int) -> None:
    """Equation 6."""
    model, update = row(run.models, i, run.p), row(run.update, i, run.p)
    for x in range(run.p):
        model[x] = update[x]
    updated(run, i)


@njit(cache=True)
def _tell(run: Any, i: int, place: Any) -> None:
    """Write the agent's model into a message."""
    model = row(run.models, i, run.p)
    for x in range(run.p):
        place[x] = model[x]


# --- asynchronous: agents.agent.AnswersThenSolves ------------------------------------------------
@njit(cache=True)
def _tick(run: Any, i: int, edge: int) -> None:
    agent = agent_of(run, i)
    agent.sends += 1
    slot = gossip.dispatch(run, REQUEST, edge, i, agent.sends)
    if slot != NONE:
        _tell(run, i, payload(run, slot, 0))


@njit(cache=True)
def _handle(run: Any, i: int, slot: int) -> None:
    message = slot_of(run, slot)
    kind, edge = message.kind, message.back
    own = edge_of(run, edge)
    fresh = message.number > own.version
    if fresh:
        own.version = message.number
        own.sent_at = message.sent_at
        # Absorbing leaves the model as it is, so the answer may come after it.
        _absorb(run, i, edge, payload(run, slot, 0))
    else:
        run.stale += 1
    if kind == REQUEST:
        agent = agent_of(run, i)
        agent.sends += 1
        if gossip.answer(run, slot, i, own.neighbour, agent.sends):
            _tell(run, i, payload(run, slot, 0))
    else:
        give_back(run, slot)
    if fresh and kind != HELLO:
        gossip.compute(run, i, 0)


# --- synchronous: agents.agent.RoundAgent --------------------------------------------------------
@njit(cache=True)
def _prepare(run: Any, i: int) -> None:
    _tell(run, i, row(run.round_models, i, run.p))


@njit(cache=True)
def _absorb_round(run: Any, i: int, edge: int) -> None:
    _absorb(run, i, edge, row(run.round_models, edge_of(run, edge).neighbour, run.p))


implement(gossip.tick, LAYOUT, _tick)
implement(gossip.handle, LAYOUT, _handle)
implement(gossip.finish, LAYOUT, _solve)
implement(rounds.solve, LAYOUT, _solve)
implement(rounds.prepare, LAYOUT, _prepare)
implement(rounds.absorb, LAYOUT, _absorb_round)
