"""Synchronous runs (design, section 3): ``agents.agent.RoundAgent`` as one compiled loop.

Each directed edge carries exactly one message a round, so the edge stands for its message, and
the payloads of a round lie with the rule.  ``prepare``, ``absorb`` and ``solve`` are what the
rules do differently.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from numba import njit

from simulator.compiled.draws import low
from simulator.compiled.gossip import BREATHE, DRAWS_ARE_LOW, ENOUGH_SENT, HALTED, TIME_IS_UP
from simulator.compiled.network import send
from simulator.compiled.queue import KINDS, next_time, pop, push
from simulator.compiled.world import agent_of, compute_time, edge_of

#: Kinds of events.  The barrier opens for an agent; a message arrives, or is sent again; an agent
#: has got all its messages; it has finished computing.
BEGIN, ARRIVAL, AGAIN, COMPLETE, COMPUTED = range(5)


def solve(run: Any, i: int) -> None:
    """Agent i's costly step."""
    raise NotImplementedError


def prepare(run: Any, i: int) -> None:
    """Agent i puts down what it tells its neighbours in this round."""
    raise NotImplementedError


def absorb(run: Any, i: int, edge: int) -> None:
    """Agent i takes in what the neighbour at ``edge`` has told it."""
    raise NotImplementedError


@njit(cache=True)
def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or to a round's end by which so many messages are sent."""
    run = runs[0]
    if run.working == 0:
        _open_barrier(run)
    for _ in range(breath):
        if low(run):
            return DRAWS_ARE_LOW
        if next_time(run) > until:
            run.now = until
            return TIME_IS_UP
        item = pop(run)
        kind, index = item % KINDS, item // KINDS
        if kind == ARRIVAL:
            _arrive(run, index)
        elif kind == AGAIN:
            _transmit(run, index, edge_of(run, edge_of(run, index).back).neighbour)
        elif kind == BEGIN:
            _begin(run, index)
        elif kind == COMPLETE:
            _complete(run, index)
        else:
            _computed(run, index)
        if run.halt:
            return HALTED
        if run.working == 0:  # the round is over
            _open_barrier(run)
            if run.sent >= enough:
                return ENOUGH_SENT
    return BREATHE


@njit(cache=True)
def _open_barrier(run: Any) -> None:
    """Everybody begins the next round."""
    run.working = run.n
    for i in range(run.n):
        push(run, run.now, BEGIN, i)


@njit(cache=True)
def _begin(run: Any, i: int) -> None:
    if agent_of(run, i).degree == 0:
        run.working -= 1
    elif run.solves_before:
        _compute(run, i)
    else:
        _send_all(run, i)


@njit(cache=True)
def _compute(run: Any, i: int) -> None:
    duration = compute_time(run, i)
    if duration > 0.0:
        push(run, run.now + duration, COMPUTED, i)
    else:
        _computed(run, i)


@njit(cache=True)
def _computed(run: Any, i: int) -> None:
    solve(run, i)
    if run.solves_before:
        _send_all(run, i)
    else:
        run.working -= 1


@njit(cache=True)
def _send_all(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    prepare(run, i)
    agent.sent_at = run.now
    for edge in range(agent.first, agent.first + agent.degree):
        _transmit(run, edge, i)
    agent.waiting = True
    if agent.complete:  # the neighbours were faster; only where solving comes before sending
        _absorb_all(run, i)
        run.working -= 1


@njit(cache=True)
def _transmit(run: Any, edge: int, sender: int) -> None:
    """Send the message of an edge; if it is lost, again after a while."""
    lost, time = send(run, edge, sender)
    if lost:
        push(run, time + run.retransmit_after, AGAIN, edge)
    else:
        push(run, time, ARRIVAL, edge)


@njit(cache=True)
def _arrive(run: Any, edge: int) -> None:
    run.delivered += 1
    i = edge_of(run, edge).neighbour
    agent = agent_of(run, i)
    agent.inbox += 1
    if agent.inbox == agent.degree:
        push(run, run.now, COMPLETE, i)


@njit(cache=True)
def _complete(run: Any, i: int) -> None:
    """All messages are there; go on, unless still computing what to send."""
    agent_of(run, i).complete = True
    if not agent_of(run, i).waiting:
        return
    _absorb_all(run, i)
    if run.solves_before:
        run.working -= 1
    else:
        _compute(run, i)


@njit(cache=True)
def _absorb_all(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        absorb(run, i, edge)
        edge_of(run, edge).sent_at = agent_of(run, edge_of(run, edge).neighbour).sent_at
    agent.inbox = 0
    agent.complete = False
    agent.waiting = False
