"""Asynchronous runs (design, section 2): ``agents.agent.GossipAgent`` as one compiled loop.

The loop is compiled once for each rule.  ``tick``, ``handle`` and ``finish`` are what the rules
do differently; ``mp`` and ``admm`` implement them, and the type of ``rule`` picks the version.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simulator.compiled.messages import FREE, HELLO, NONE, REPLY, Pool, give_back, take
from simulator.compiled.network import DELIVERED, SENT, send
from simulator.compiled.queue import KINDS, SIZE, pop, push
from simulator.compiled.world import HALT, NOW, SKIPPED, STARTED, World, compute_time

#: Kinds of events: a clock rings, a message arrives, an agent has finished computing.
TICK, ARRIVAL, COMPUTED = range(3)
#: Why the loop returned to Python.
TIME_IS_UP, ENOUGH_SENT, HALTED, BREATHE, POOL_IS_SMALL = range(5)


def tick(world: World, pool: Pool, rule: Any, i: int, edge: int) -> None:
    """Agent i's clock rang and it is free: contact the neighbour at ``edge``."""
    raise NotImplementedError


def handle(world: World, pool: Pool, rule: Any, i: int, slot: int) -> None:
    """Agent i is free and turns to a message, whose slot it now has to pass on or give back."""
    raise NotImplementedError


def finish(world: World, pool: Pool, rule: Any, i: int) -> None:
    """Agent i has finished computing."""
    raise NotImplementedError


@njit(cache=True)
def advance(
    world: World, pool: Pool, rule: Any, until: float, enough: float, breath: int
) -> int:
    """Go on up to a time, or until so many messages are sent; at most ``breath`` events."""
    agents, counts, times, queue = world.agents, world.counts, world.times, world.queue
    for _ in range(breath):
        if counts[STARTED] < len(agents):
            i = counts[STARTED]
            # One more than can be in hand while others are on their way.
            if pool.counts[FREE] < agents[i].degree + 2:
                return POOL_IS_SMALL
            counts[STARTED] += 1
            _start(world, pool, rule, i)
        else:
            # An event puts at most one message more on its way than it takes off it.
            if pool.counts[FREE] < 2:
                return POOL_IS_SMALL
            if queue.counts[SIZE] == 0 or queue.entries[0].time > until:
                times[NOW] = until
                return TIME_IS_UP
            now, item = pop(queue)
            times[NOW] = now
            kind, index = item % KINDS, item // KINDS
            if kind == ARRIVAL:
                _arrive(world, pool, rule, index)
            elif kind == TICK:
                _ring(world, pool, rule, index)
            else:
                _computed(world, pool, rule, index)
        if counts[HALT]:
            return HALTED
        if world.network.counts[SENT] >= enough:
            return ENOUGH_SENT
    return BREATHE


@njit(cache=True)
def _start(world: World, pool: Pool, rule: Any, i: int) -> None:
    agent, p = world.agents[i], rule.models.shape[1]
    if world.hello:
        for edge in range(agent.first, agent.first + agent.degree):
            # Send numbers are mp's; admm's first messages belong to version 0 of their link.
            agent.sends += 1
            number = 0 if world.solves_before else agent.sends
            slot = dispatch(world, pool, HELLO, edge, i, number)
            if slot != NONE:
                pool.payloads[slot, 0, :p] = rule.models[i]
    _wind(world, i)


@njit(cache=True)
def _wind(world: World, i: int) -> None:
    """Set the clock of agent i to its next tick."""
    gap = world.rng_clock.standard_exponential() / world.agents[i].rate
    push(world.queue, world.times[NOW] + gap, TICK, i)


@njit(cache=True)
def _ring(world: World, pool: Pool, rule: Any, i: int) -> None:
    agent = world.agents[i]
    u = world.rng_peers.random()
    if agent.degree > 0:
        if agent.busy:
            world.counts[SKIPPED] += 1
        else:
            tick(world, pool, rule, i, _choose(world, agent.first, agent.degree, u))
    _wind(world, i)


@njit(cache=True)
def _choose(world: World, first: int, degree: int, u: float) -> int:
    """The edge that u in [0, 1) picks: uniformly, or in proportion to the weights."""
    if len(world.cumulative) == 0:
        return first + min(int(u * degree), degree - 1)
    share = world.cumulative[first : first + degree]
    return first + min(np.searchsorted(share, u * share[degree - 1], "right"), degree - 1)


@njit(cache=True)
def _arrive(world: World, pool: Pool, rule: Any, slot: int) -> None:
    world.network.counts[DELIVERED] += 1
    i = world.edges[pool.slots[slot].edge].neighbour
    agent = world.agents[i]
    if not agent.busy:
        handle(world, pool, rule, i, slot)
    else:
        pool.slots[slot].next = NONE
        if agent.mailbox_first == NONE:
            agent.mailbox_first = slot
        else:
            pool.slots[agent.mailbox_last].next = slot
        agent.mailbox_last = slot


@njit(cache=True)
def _computed(world: World, pool: Pool, rule: Any, i: int) -> None:
    agent = world.agents[i]
    agent.busy = False
    finish(world, pool, rule, i)
    while agent.mailbox_first != NONE and not agent.busy:
        slot = agent.mailbox_first
        agent.mailbox_first = pool.slots[slot].next
        handle(world, pool, rule, i, slot)


# --- for the rules -------------------------------------------------------------------------------
@njit(cache=True)
def compute(world: World, pool: Pool, rule: Any, i: int, job: int) -> None:
    """Be busy for one solve, then ``finish`` the job; at once if it takes no time."""
    agent = world.agents[i]
    agent.job = job
    duration = compute_time(world, i)
    if duration == 0.0:
        finish(world, pool, rule, i)
    else:
        agent.busy = True
        push(world.queue, world.times[NOW] + duration, COMPUTED, i)


@njit(cache=True)
def dispatch(world: World, pool: Pool, kind: int, edge: int, sender: int, number: int) -> int:
    """Send a new message; the slot for its payload, or NONE if it is lost."""
    now = world.times[NOW]
    lost, arrival = send(world.network, edge, sender, now)
    if lost:
        return NONE
    slot = take(pool)
    _label(world, pool, slot, kind, edge, number, arrival)
    return slot


@njit(cache=True)
def answer(world: World, pool: Pool, slot: int, edge: int, sender: int, number: int) -> bool:
    """Send the reply in the slot of its request; False if it is lost, and the slot with it."""
    now = world.times[NOW]
    lost, arrival = send(world.network, edge, sender, now)
    if lost:
        give_back(pool, slot)
        return False
    _label(world, pool, slot, REPLY, edge, number, arrival)
    return True


@njit(cache=True)
def _label(
    world: World, pool: Pool, slot: int, kind: int, edge: int, number: int, arrival: float
) -> None:
    message = pool.slots[slot]
    message.kind = kind
    message.edge = edge
    message.number = number
    message.sent_at = world.times[NOW]
    push(world.queue, arrival, ARRIVAL, slot)
