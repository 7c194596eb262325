"""Collaborative learning in compiled code: ``agents.admm``, all agents in flat arrays."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simulator.compiled import gossip, primal, rounds
from simulator.compiled.dispatch import implement
from simulator.compiled.memory import ADDRESS, row
from simulator.compiled.messages import HELLO, NONE, REQUEST, give_back, payload, slot_of
from simulator.compiled.world import FIELDS, agent_of, edge_of, updated
from simulator.setup import Setup

Floats = NDArray[np.float64]

LAYOUT = np.dtype(
    [
        *FIELDS,
        *primal.FIELDS,
        ("rho", np.float64),
        #: Z_ei^i, Z_ei^j, Λ_ei^i, Λ_ei^j of each directed edge (edges, 4, p).
        ("state", ADDRESS),
        #: The sums a·v of the links' pulls (n, p).
        ("pull_sums", ADDRESS),
        #: What the agents have sent in the current round (edges, 4, p), of a synchronous run.
        ("round_payloads", ADDRESS),
    ],
    align=True,
)


def make(run: NDArray[Any], setup: Setup, _: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The rule's arrays; the models of the setup are taken over, not copied."""
    problem, rho, owners = setup.problem, setup.scenario.algorithm.rho, setup.owners
    (edges, p), weights = setup.copies.shape, problem.W.data
    run["rho"] = rho
    state = np.zeros((edges, 4, p))
    state[:, 0], state[:, 1] = setup.models[owners], setup.copies
    kappa = weights * rho / (weights + rho)
    pull_sums = np.zeros((problem.n, p))
    _sum_pulls(setup.indptr, kappa, state, rho, pull_sums)
    a = np.bincount(owners, kappa, minlength=problem.n) + rho * np.diff(setup.indptr)
    in_rounds = setup.scenario.algorithm.mode == "sync"
    return {
        "models": setup.models,
        "state": state,
        "pull_sums": pull_sums,
        "round_payloads": np.empty((edges if in_rounds else 0, 4, p)),
        **primal.make(run, setup, a),
    }


@njit(cache=True)
def _sum_pulls(
    indptr: NDArray[np.int64], kappa: Floats, state: Floats, rho: float, total: Floats
) -> None:
    for i in range(len(total)):
        for edge in range(indptr[i], indptr[i + 1]):
            for x in range(total.shape[1]):
                z_own, z_other = state[edge, 0, x], state[edge, 1, x]
                total[i, x] += _pull(kappa[edge], rho, z_own, z_other, 0.0, 0.0)


@njit(cache=True)
def _pull(
    kappa: float, rho: float, z_own: float, z_other: float, dual_own: float, dual_other: float
) -> float:
    """A link's part of a·v, at one coordinate: κ_j u_j + ρ w_j."""
    return kappa * (z_other - dual_other / rho) + rho * (z_own - dual_own / rho)


@njit(cache=True)
def _solve(run: Any, i: int) -> None:
    """Step 1: the primal problem."""
    if not primal.step(run, i, row(run.pull_sums, i, run.p), row(run.models, i, run.p)):
        run.exhausted += 1
    updated(run, i)


@njit(cache=True)
def _tell(run: Any, i: int, edge: int, place: Any) -> None:
    """Write Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j into a message (4p,), right after a solve."""
    p, rho, weight = run.p, run.rho, edge_of(run, edge).weight
    model, state = row(run.models, i, p), row(run.state, edge, 4 * p)
    share = weight / (weight + rho)
    for x in range(p):
        u = state[p + x] - state[3 * p + x] / rho
        place[x] = model[x]
        place[p + x] = share * model[x] + (1.0 - share) * u
        place[2 * p + x] = state[2 * p + x]
        place[3 * p + x] = state[3 * p + x]


@njit(cache=True)
def _set(
    run: Any, i: int, edge: int, x: int, z_own: float, z_other: float, d_own: float, d_other: float
) -> None:
    """Change a link at coordinate x, and the sum of pulls by the difference."""
    p, rho, weight = run.p, run.rho, edge_of(run, edge).weight
    kappa = weight * rho / (weight + rho)
    state = row(run.state, edge, 4 * p)
    old = _pull(kappa, rho, state[x], state[p + x], state[2 * p + x], state[3 * p + x])
    new = _pull(kappa, rho, z_own, z_other, d_own, d_other)
    row(run.pull_sums, i, p)[x] += new - old
    state[x], state[p + x] = z_own, z_other
    state[2 * p + x], state[3 * p + x] = d_own, d_other


@njit(cache=True)
def _absorb(run: Any, i: int, edge: int, received: Any, sent: Any) -> None:
    """Steps 2 and 3: the secondary and dual variables of a link, from both payloads.

    In the other end's payload "own" is j and "other" is i, so they cross over here.
    """
    p, rho = run.p, run.rho
    for x in range(p):
        own, other, dual_own, dual_other = (
            sent[x],
            sent[p + x],
            sent[2 * p + x],
            sent[3 * p + x],
        )
        z_own = 0.5 * ((dual_own + received[3 * p + x]) / rho + own + received[p + x])
        z_other = 0.5 * ((received[2 * p + x] + dual_other) / rho + received[x] + other)
        dual_own += rho * (own - z_own)
        dual_other += rho * (other - z_other)
        _set(run, i, edge, x, z_own, z_other, dual_own, dual_other)


# --- asynchronous: agents.agent.SolvesThenAnswers ------------------------------------------------
@njit(cache=True)
def _tick(run: Any, i: int, edge: int) -> None:
    gossip.compute(run, i, -1 - edge)


@njit(cache=True)
def _handle(run: Any, i: int, slot: int) -> None:
    message = slot_of(run, slot)
    if message.kind == REQUEST:
        gossip.compute(run, i, slot)
        return
    edge = message.back
    own, p = edge_of(run, edge), run.p
    if message.number != own.version:
        run.stale += 1
    else:
        own.sent_at = message.sent_at
        if message.kind == HELLO:
            # The warm start of section 4.2: Z_ei^j is the neighbour's solitary model.
            model, state = payload(run, slot, 0), row(run.state, edge, 4 * p)
            for x in range(p):
                duals = state[2 * p + x], state[3 * p + x]
                _set(run, i, edge, x, state[x], model[x], duals[0], duals[1])
        else:
            _absorb(run, i, edge, payload(run, slot, 1), payload(run, slot, 0))
            own.version += 1
    give_back(run, slot)


@njit(cache=True)
def _finish(run: Any, i: int) -> None:
    """Solve; then send the request, or absorb the one that came and answer it."""
    _solve(run, i)
    job = agent_of(run, i).job
    if job < 0:
        edge = -1 - job
        slot = gossip.dispatch(run, REQUEST, edge, i, edge_of(run, edge).version)
        if slot != NONE:
            _tell(run, i, edge, payload(run, slot, 0))
        return
    message = slot_of(run, job)
    edge = message.back
    own = edge_of(run, edge)
    _tell(run, i, edge, payload(run, job, 1))
    _absorb(run, i, edge, payload(run, job, 0), payload(run, job, 1))
    own.version += 1
    own.sent_at = message.sent_at
    gossip.answer(run, job, i, own.neighbour, message.number)


# --- synchronous: agents.agent.RoundAgent --------------------------------------------------------
@njit(cache=True)
def _prepare(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        _tell(run, i, edge, row(run.round_payloads, edge, 4 * run.p))


@njit(cache=True)
def _absorb_round(run: Any, i: int, edge: int) -> None:
    width, back = 4 * run.p, edge_of(run, edge).back
    received, sent = row(run.round_payloads, back, width), row(run.round_payloads, edge, width)
    _absorb(run, i, edge, received, sent)


implement(gossip.tick, LAYOUT, _tick)
implement(gossip.handle, LAYOUT, _handle)
implement(gossip.finish, LAYOUT, _finish)
implement(rounds.solve, LAYOUT, _solve)
implement(rounds.prepare, LAYOUT, _prepare)
implement(rounds.absorb, LAYOUT, _absorb_round)
