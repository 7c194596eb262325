"""Synchronous runs as one compiled loop for all rules, compiled for one kind of rounds at a time.

Each directed edge carries one message a round, perhaps several times: the edge and the attempt's
number stand for the message, and what was told lies in ``told`` until the round is over.  An
attempt whose number is below ``round_first`` is of a round that is over.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from agents.machinery.compiling import FAILED, bound_for, entry, kernel
from agents.machinery.intrinsics import invoke
from agents.protocol import Rounds
from simulator.engines.compiled.changing import change_is_next
from simulator.engines.compiled.event_notes import note
from simulator.engines.compiled.exchange import arrival, note_at_receiver, transmit
from simulator.engines.compiled.on_off import is_off, on_off_of, parted
from simulator.engines.compiled.outcomes import (
    BREATHE,
    ENOUGH_SENT,
    HALTED,
    NOTHING,
    NOTHING_LEFT,
    QUEUE_IS_FULL,
    TIME_IS_UP,
    short_of,
)
from simulator.engines.compiled.pool import ROUND, give_back, slot_of, ticket_of
from simulator.engines.compiled.queue import (
    ARRIVAL,
    BEGIN,
    COMPLETE,
    COMPUTED,
    KINDS,
    REPEAT,
    REPEATS,
    SWITCH,
    TIMER,
    full,
    next_time,
    pop,
    push,
    push_early,
)
from simulator.engines.compiled.record import view
from simulator.engines.compiled.switching import end, go_on, pause, renew, switch
from simulator.engines.compiled.verbs import compiled, label_of
from simulator.engines.compiled.world import NOBODY, agent_of, edge_of
from simulator.engines.event_rows import HANDLE, MISS, NONE, STALE
from simulator.engines.event_rows import ROUND as ROUND_IS_OVER

# What the rounds do: their own functions take the places of these.
begin, hear, complete, after_tick = Rounds.begin, Rounds.hear, Rounds.complete, Rounds.after_tick


@cache
def loop_of(rounds: type[Rounds]) -> Any:
    """The loop of one kind of rounds, compiled for it alone."""
    label = label_of(rounds)
    places = (begin, hear, complete, after_tick)
    swap = {place: compiled(getattr(rounds, place.__name__), label) for place in places}
    return entry(bound_for(advance, label, swap, kernel))


def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or to a round's end by which so many messages are sent."""
    run = runs[0]
    # An event may open the barrier for everybody, or send to all neighbours, with a timer each.
    # Where agents come and go, it may send again what waits at all edges of an agent.
    room = run.n + 2 * run.most_links + 2
    if run.cuts > 0 or run.availability:
        room = run.n + 4 * run.most_links + 4
    slots = 2 * run.most_links if run.recording else 0
    if full(run, room):
        return QUEUE_IS_FULL
    if run.working == 0:
        _open_barrier(run)
    for _ in range(breath):
        lack = short_of(run, room, slots)
        if lack != NOTHING:
            return lack
        if run.resending != NOBODY:
            _resend_next(run)
            continue
        if change_is_next(run, until):
            if invoke(run.change, run.here, 0, 0, 0, 0) == FAILED:
                raise IndexError("while something changed")
            if run.halt:
                return HALTED
            continue
        if run.size == 0 and until == math.inf:
            return NOTHING_LEFT
        if run.size == 0 or next_time(run) > until:
            run.now = until
            return TIME_IS_UP
        item = pop(run)
        kind, index = item % KINDS, item // KINDS
        if kind == ARRIVAL:
            _arrive(run, index)
        elif kind == TIMER:
            _due(run, index % run.edge_count, index // run.edge_count)
        elif kind == BEGIN:
            _begin(run, index)
        elif kind == COMPLETE:
            _wake(run, index)
        elif kind == COMPUTED:
            _computed(run, index)
        elif kind == SWITCH:
            _switch(run, index)
        else:
            _repeat(run, index - 1)
        over = run.working == 0
        if over:
            note(run, ROUND_IS_OVER, NONE)
            if not run.halt:
                _open_barrier(run)
        if run.halt:
            return HALTED
        if over and run.sent >= enough:
            return ENOUGH_SENT
    return BREATHE


@kernel
def _open_barrier(run: Any) -> None:
    """Everybody begins the next round."""
    if run.forgets:
        for i in range(run.n):
            if on_off_of(run, i).returned and not run.halt:  # one may reach the target
                on_off_of(run, i).returned = False
                renew(run, i)
    run.working = run.n
    run.round_first = run.sent
    for i in range(run.n):
        agent = agent_of(run, i)
        agent.inbox = 0
        agent.woken = False
        push(run, run.now, BEGIN, i)


def _begin(run: Any, i: int) -> None:
    if agent_of(run, i).degree == 0:
        run.working -= 1
    elif is_off(run, i):
        on_off_of(run, i).waits = True
    else:
        begin(run, i)
        _go_on(run, i)


def _go_on(run: Any, i: int) -> None:
    """What takes no time, or has been waited for already, follows at once."""
    agent = agent_of(run, i)
    while run.ready or (agent.waiting and agent.woken):
        if run.ready:
            run.ready = False
            after_tick(run, i, -1 - agent.job)
        else:
            agent.waiting = False
            agent.woken = False
            complete(run, i)


def _computed(run: Any, index: int) -> None:
    """An agent has finished computing, unless that was interrupted meanwhile."""
    i = end(run, index)
    if i != NOBODY:
        run.ready = True
        _go_on(run, i)


@kernel
def _switch(run: Any, i: int) -> None:
    """Agent i stops computing, or goes on with it; what waited for its return is sent later on.

    Others may be switched at the same instant, and that comes first.
    """
    on_off = on_off_of(run, i)
    if not switch(run, i):
        pause(run, i)
        return
    go_on(run, i)
    if on_off.waits:
        on_off.waits = False
        push(run, run.now, BEGIN, i)
    on_off.returned = run.forgets and not on_off.new
    on_off.new = False
    run.several_returned = run.returned_at == run.now
    if not run.several_returned:
        run.returned_at = run.now
        push_early(run, run.now, REPEATS, REPEAT, 1 + i)


@kernel
def _repeat(run: Any, i: int) -> None:
    """Send what waited for agent i's return; or for several's, or the end of a partition: NOBODY.

    In the order of sender, then receiver: neighbours before it, itself, neighbours after it.
    """
    if i == NOBODY or run.several_returned:
        run.resending = 0
        return
    agent = agent_of(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        if edge_of(run, edge).neighbour < i:
            _retry(run, edge_of(run, edge).back)
    for edge in range(agent.first, agent.first + agent.degree):
        _retry(run, edge)
    for edge in range(agent.first, agent.first + agent.degree):
        if edge_of(run, edge).neighbour > i:
            _retry(run, edge_of(run, edge).back)


@kernel
def _resend_next(run: Any) -> None:
    """Look at the next of all edges, as part of the event that lets their messages pass."""
    _retry(run, run.resending)
    run.resending += 1
    if run.resending == run.edge_count:
        run.resending = NOBODY


@kernel
def _passes(run: Any, edge: int, sender: int) -> bool:
    """Are both ends of a link on, and no partition between them?"""
    receiver = edge_of(run, edge).neighbour
    if is_off(run, sender) or is_off(run, receiver):
        return False
    return not (run.cuts > 0 and parted(run, sender, receiver))


@kernel
def _retry(run: Any, edge: int) -> None:
    """Send again what waits at an edge, if it can pass now."""
    held = view(run.held, run.edge_count, np.uint8)
    sender = edge_of(run, edge_of(run, edge).back).neighbour
    if held[edge] and _passes(run, edge, sender):
        held[edge] = 0
        transmit(run, edge, sender)


@kernel
def _due(run: Any, edge: int, number: int) -> None:
    """Send again what has not arrived."""
    if number < run.round_first or edge_of(run, edge).version >= run.round_first:
        return
    sender = edge_of(run, edge_of(run, edge).back).neighbour
    if _passes(run, edge, sender):
        transmit(run, edge, sender)
    else:
        view(run.held, run.edge_count, np.uint8)[edge] = 1


def _arrive(run: Any, index: int) -> None:
    edge, number, sent_at = index % run.edge_count, index // run.edge_count, 0.0
    if run.recording:
        message = slot_of(run, index)
        edge, number, sent_at = message.edge, ticket_of(run, index).message, message.sent_at
        give_back(run, index)
    own = edge_of(run, edge)
    outcome = arrival(run, own.neighbour)
    _note(run, outcome, edge, number, sent_at)
    if outcome == MISS:
        return
    if number < run.round_first or own.version >= run.round_first:  # an earlier attempt was there
        run.stale += 1
        _note(run, HANDLE, edge, number, sent_at)
        _note(run, STALE, edge, number, sent_at)
        return
    own.version = number
    if run.availability or run.cuts > 0:
        view(run.held, run.edge_count, np.uint8)[edge] = 0
    agent_of(run, own.neighbour).inbox += 1
    hear(run, own.neighbour, own.back)


@kernel
def _note(run: Any, kind: int, edge: int, number: int, sent_at: float) -> None:
    """Something happens to an attempt at its receiver's; ``edge`` is the sender's."""
    note_at_receiver(run, kind, edge, number, ROUND, NONE, sent_at)


def _wake(run: Any, i: int) -> None:
    """Agent i need not wait any longer; it may still be computing what to send."""
    agent_of(run, i).woken = True
    _go_on(run, i)
