"""Synchronous runs (design, section 3): ``agents.agent.RoundAgent`` as one compiled loop.

Each directed edge carries exactly one message a round, so the edge stands for its message, and
the payloads of a round lie with the rule.  ``prepare``, ``absorb`` and ``solve`` are what the
rules do differently.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from numba import njit

from simulator.compiled.gossip import BREATHE, ENOUGH_SENT, HALTED, TIME_IS_UP
from simulator.compiled.network import DELIVERED, SENT, send
from simulator.compiled.queue import KINDS, SIZE, pop, push
from simulator.compiled.world import HALT, NOW, WORKING, World, compute_time

#: Kinds of events.  The barrier opens for an agent; a message arrives, or is sent again; an agent
#: has got all its messages; it has finished computing.
BEGIN, ARRIVAL, AGAIN, COMPLETE, COMPUTED = range(5)


def solve(world: World, rule: Any, i: int) -> None:
    """Agent i's costly step."""
    raise NotImplementedError


def prepare(world: World, rule: Any, i: int) -> None:
    """Agent i puts down what it tells its neighbours in this round."""
    raise NotImplementedError


def absorb(world: World, rule: Any, i: int, edge: int) -> None:
    """Agent i takes in what the neighbour at ``edge`` has told it."""
    raise NotImplementedError


@njit(cache=True)
def advance(world: World, rule: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or to a round's end by which so many messages are sent."""
    counts, times, queue = world.counts, world.times, world.queue
    if counts[WORKING] == 0:
        open_barrier(world)
    for _ in range(breath):
        if queue.counts[SIZE] == 0 or queue.entries[0].time > until:
            times[NOW] = until
            return TIME_IS_UP
        now, item = pop(queue)
        times[NOW] = now
        kind, index = item % KINDS, item // KINDS
        if kind == ARRIVAL:
            _arrive(world, index)
        elif kind == AGAIN:
            _transmit(world, index, world.edges[world.edges[index].back].neighbour)
        elif kind == BEGIN:
            _begin(world, rule, index)
        elif kind == COMPLETE:
            world.agents[index].complete = True
            if world.agents[index].waiting:
                _close(world, rule, index)
        else:
            _computed(world, rule, index)
        if counts[HALT]:
            return HALTED
        if counts[WORKING] == 0:  # the round is over
            open_barrier(world)
            if world.network.counts[SENT] >= enough:
                return ENOUGH_SENT
    return BREATHE


@njit(cache=True)
def open_barrier(world: World) -> None:
    """Everybody begins the next round."""
    world.counts[WORKING] = len(world.agents)
    for i in range(len(world.agents)):
        push(world.queue, world.times[NOW], BEGIN, i)


@njit(cache=True)
def _begin(world: World, rule: Any, i: int) -> None:
    if world.agents[i].degree == 0:
        world.counts[WORKING] -= 1
    elif world.solves_before:
        _compute(world, rule, i)
    else:
        _send_all(world, rule, i)


@njit(cache=True)
def _compute(world: World, rule: Any, i: int) -> None:
    duration = compute_time(world, i)
    if duration > 0.0:
        push(world.queue, world.times[NOW] + duration, COMPUTED, i)
    else:
        _computed(world, rule, i)


@njit(cache=True)
def _computed(world: World, rule: Any, i: int) -> None:
    solve(world, rule, i)
    if world.solves_before:
        _send_all(world, rule, i)
    else:
        world.counts[WORKING] -= 1


@njit(cache=True)
def _send_all(world: World, rule: Any, i: int) -> None:
    agent = world.agents[i]
    prepare(world, rule, i)
    agent.sent_at = world.times[NOW]
    for edge in range(agent.first, agent.first + agent.degree):
        _transmit(world, edge, i)
    agent.waiting = True
    if agent.complete:  # the neighbours were faster; only where solving comes before sending
        _absorb_all(world, rule, i)
        world.counts[WORKING] -= 1


@njit(cache=True)
def _transmit(world: World, edge: int, sender: int) -> None:
    """Send the message of an edge; if it is lost, again after a while."""
    lost, time = send(world.network, edge, sender, world.times[NOW])
    if lost:
        push(world.queue, time + world.retransmit_after, AGAIN, edge)
    else:
        push(world.queue, time, ARRIVAL, edge)


@njit(cache=True)
def _arrive(world: World, edge: int) -> None:
    world.network.counts[DELIVERED] += 1
    i = world.edges[edge].neighbour
    agent = world.agents[i]
    agent.inbox += 1
    if agent.inbox == agent.degree:
        push(world.queue, world.times[NOW], COMPLETE, i)


@njit(cache=True)
def _absorb_all(world: World, rule: Any, i: int) -> None:
    agent = world.agents[i]
    for edge in range(agent.first, agent.first + agent.degree):
        absorb(world, rule, i, edge)
        world.edges[edge].sent_at = world.agents[world.edges[edge].neighbour].sent_at
    agent.inbox = 0
    agent.complete = False
    agent.waiting = False


@njit(cache=True)
def _close(world: World, rule: Any, i: int) -> None:
    """Agent i has sent and received everything."""
    _absorb_all(world, rule, i)
    if world.solves_before:
        world.counts[WORKING] -= 1
    else:
        _compute(world, rule, i)
