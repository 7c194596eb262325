"""Asynchronous runs (design, section 2): ``agents.agent.GossipAgent`` as one compiled loop.

The loop is compiled once for each rule.  ``tick``, ``handle`` and ``finish`` are what the rules
do differently: ``mp`` and ``admm`` implement them.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simulator.compiled.draws import CLOCK, PEERS, draw, low
from simulator.compiled.memory import row, view
from simulator.compiled.messages import HELLO, NONE, REPLY, give_back, payload, slot_of, take
from simulator.compiled.network import send
from simulator.compiled.queue import KINDS, next_time, pop, push
from simulator.compiled.world import NOBODY, agent_of, compute_time, edge_of

#: Kinds of events: a clock rings, a message arrives, an agent has finished computing.
TICK, ARRIVAL, COMPUTED = range(3)
#: Why a loop returned to Python.
TIME_IS_UP, ENOUGH_SENT, HALTED, BREATHE, DRAWS_ARE_LOW, POOL_IS_SMALL = range(6)


def tick(run: Any, i: int, edge: int) -> None:
    """Agent i's clock rang and it is free: contact the neighbour at ``edge``."""
    raise NotImplementedError


def handle(run: Any, i: int, slot: int) -> None:
    """Agent i is free and turns to a message, whose slot it now has to pass on or give back."""
    raise NotImplementedError


def finish(run: Any, i: int) -> None:
    """Agent i has finished computing."""
    raise NotImplementedError


@njit(cache=True)
def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or until so many messages are sent; at most ``breath`` events."""
    run = runs[0]
    for _ in range(breath):
        # A step puts at most one message more on its way than it takes off it, but for a start.
        room = 2 if run.started == run.n else 2 + agent_of(run, run.started).degree
        if run.free_slots < room:
            return POOL_IS_SMALL
        if low(run):
            return DRAWS_ARE_LOW
        if run.draining != NOBODY:
            _drain(run)
        elif run.started < run.n:
            _start(run)
        elif next_time(run) > until:
            run.now = until
            return TIME_IS_UP
        else:
            item = pop(run)
            kind, index = item % KINDS, item // KINDS
            if kind == ARRIVAL:
                _arrive(run, index)
            elif kind == TICK:
                _ring(run, index)
            else:
                agent_of(run, index).busy = False
                finish(run, index)
                run.draining = index
        if run.draining == NOBODY:  # the event is over
            if run.halt:
                return HALTED
            if run.sent >= enough:
                return ENOUGH_SENT
    return BREATHE


@njit(cache=True)
def _start(run: Any) -> None:
    """The next agent says hello, if that is the start, and winds its clock."""
    i = run.started
    run.started += 1
    agent = agent_of(run, i)
    if run.hello:
        for edge in range(agent.first, agent.first + agent.degree):
            # Send numbers are mp's; admm's first messages belong to version 0 of their link.
            agent.sends += 1
            slot = dispatch(run, HELLO, edge, i, 0 if run.solves_before else agent.sends)
            if slot != NONE:
                payload(run, slot, 0)[: run.p] = row(run.models, i, run.p)
    _wind(run, i)


@njit(cache=True)
def _wind(run: Any, i: int) -> None:
    """Set the clock of agent i to its next tick."""
    push(run, run.now + draw(run, CLOCK) / agent_of(run, i).rate, TICK, i)


@njit(cache=True)
def _ring(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    u = draw(run, PEERS)
    if agent.degree > 0:
        if agent.busy:
            run.skipped += 1
        else:
            tick(run, i, _choose(run, agent.first, agent.degree, u))
    _wind(run, i)


@njit(cache=True)
def _choose(run: Any, first: int, degree: int, u: float) -> int:
    """The edge that u in [0, 1) picks: uniformly, or in proportion to the weights."""
    if not run.weighted:
        return first + min(int(u * degree), degree - 1)
    share = view(run.cumulative, run.edge_count, np.float64)[first : first + degree]
    return first + min(np.searchsorted(share, u * share[degree - 1], "right"), degree - 1)


@njit(cache=True)
def _arrive(run: Any, slot: int) -> None:
    run.delivered += 1
    i = slot_of(run, slot).receiver
    agent = agent_of(run, i)
    if not agent.busy:
        handle(run, i, slot)
        return
    slot_of(run, slot).next = NONE
    if agent.mailbox_first == NONE:
        agent.mailbox_first = slot
    else:
        slot_of(run, agent.mailbox_last).next = slot
    agent.mailbox_last = slot


@njit(cache=True)
def _drain(run: Any) -> None:
    """Handle the next message of a mailbox, as part of the event that set its agent free."""
    agent = agent_of(run, run.draining)
    slot = agent.mailbox_first
    if slot == NONE or agent.busy:
        run.draining = NOBODY
        return
    agent.mailbox_first = slot_of(run, slot).next
    handle(run, run.draining, slot)


# --- for the rules -------------------------------------------------------------------------------
@njit(cache=True)
def compute(run: Any, i: int, job: int) -> None:
    """Be busy for one solve, then ``finish`` the job; at once if it takes no time."""
    agent = agent_of(run, i)
    agent.job = job
    duration = compute_time(run, i)
    if duration == 0.0:
        finish(run, i)
    else:
        agent.busy = True
        push(run, run.now + duration, COMPUTED, i)


@njit(cache=True)
def dispatch(run: Any, kind: int, edge: int, sender: int, number: int) -> int:
    """Send a new message; the slot for its payload, or NONE if it is lost."""
    lost, arrival = send(run, edge, sender)
    if lost:
        return NONE
    slot = take(run)
    message = slot_of(run, slot)
    message.receiver = edge_of(run, edge).neighbour
    message.edge = edge
    message.back = edge_of(run, edge).back
    _post(run, slot, kind, number, arrival)
    return slot


@njit(cache=True)
def answer(run: Any, slot: int, sender: int, asking: int, number: int) -> bool:
    """Send the reply in the slot of its request; False if it is lost, and the slot with it."""
    message = slot_of(run, slot)
    message.edge, message.back = message.back, message.edge
    message.receiver = asking
    lost, arrival = send(run, message.edge, sender)
    if lost:
        give_back(run, slot)
        return False
    _post(run, slot, REPLY, number, arrival)
    return True


@njit(cache=True)
def _post(run: Any, slot: int, kind: int, number: int, arrival: float) -> None:
    message = slot_of(run, slot)
    message.kind = kind
    message.number = number
    message.sent_at = run.now
    push(run, arrival, ARRIVAL, slot)
