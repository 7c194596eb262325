"""Synchronous runs as one compiled loop for all rules, compiled for one kind of rounds at a time.

An edge and a round stand for a message (``round_state``), where it needs no slot.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from agents.machinery.code_cache import is_ours
from agents.machinery.compiling import FAILED, bound_for, entry, kernel
from agents.machinery.intrinsics import invoke
from agents.protocol import Protocol, Rounds
from simulator.engines.compiled.changing import change_is_next
from simulator.engines.compiled.event_notes import note
from simulator.engines.compiled.exchange import arrival, note_at_receiver, transmit
from simulator.engines.compiled.on_off import is_off, on_off_of, parted
from simulator.engines.compiled.others import placed
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
    ALARM,
    ARRIVAL,
    BEGIN,
    COMPLETE,
    COMPUTED,
    ENTRY,
    KINDS,
    REPEAT,
    REPEATS,
    SWITCH,
    TIMER,
    full,
    next_time,
    pop,
    push,
    push_ranked,
)
from simulator.engines.compiled.record import ask, view
from simulator.engines.compiled.round_state import (
    MEMBER,
    has_arrived,
    inbox,
    member_of,
    note_arrival,
)
from simulator.engines.compiled.switching import end, go_on, pause, renew, switch
from simulator.engines.compiled.verbs import label_of, set_alarm
from simulator.engines.compiled.world import AGENT, EDGE, NOBODY, agent_of, edge_of
from simulator.engines.event_rows import HANDLE, MISS, NONE, STALE
from simulator.engines.event_rows import ROUND as ROUND_IS_OVER

# What the rounds do: their own functions take the places of these.
begin, hear, ring = Rounds.begin, Rounds.hear, Rounds.ring
complete, after_tick = Rounds.complete, Rounds.after_tick


AGENT_BYTES, EDGE_BYTES, MEMBER_BYTES = AGENT.itemsize, EDGE.itemsize, MEMBER.itemsize


@cache
def loop_of(rounds: type[Rounds], protocol: type[Protocol]) -> Any:
    """The loop of one kind of rounds, compiled for it alone."""
    label = label_of(rounds) if is_ours(protocol) else label_of(protocol)
    swap = placed(rounds, protocol, (begin, hear, ring, complete, after_tick), label)
    return entry(bound_for(advance, label, swap, kernel))


def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or to a round's end by which so many messages are sent.

    Where rounds wait for neighbours only, to the event.
    """
    run = runs[0]
    # An event may open the barrier for everybody, or send to all neighbours, with a timer each.
    # Where agents come and go, it may send again what waits at all edges of an agent.
    room = run.n + 2 * run.most_links + 6
    if run.cuts > 0 or run.availability:
        room = run.n + 4 * run.most_links * run.kept + 6
    slots = 2 * run.most_links * run.kept if run.recording or run.loose else 0
    if full(run, room):
        return QUEUE_IS_FULL
    if run.started == 0:
        run.started = run.n
        _begin_all(run)
    for _ in range(breath):
        lack = short_of(run, room, slots)
        if lack != NOTHING:
            return lack
        if run.resending != NOBODY:
            _resend_next(run)
        elif change_is_next(run, until):
            if invoke(run.change, run.here, 0, 0, 0, 0) == FAILED:
                raise IndexError("while something changed")
        elif run.size == 0 and until == math.inf:
            return NOTHING_LEFT
        elif run.size == 0 or next_time(run) > until:
            run.now = until
            return TIME_IS_UP
        else:
            if run.large and run.near:
                _foresee(run)
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
            elif kind == ALARM:
                _ring(run, index % run.n, index // run.n)
            elif kind == SWITCH:
                _switch(run, index)
            else:
                _repeat(run, index - 1)
        if run.resending != NOBODY:  # the event is not over
            continue
        over = run.working == 0
        if over:
            note(run, ROUND_IS_OVER, NONE)
            if not run.halt:
                _open_barrier(run)
        if run.halt:
            return HALTED
        if (over or run.near) and run.sent >= enough:
            return ENOUGH_SENT
    return BREATHE


@kernel
def _foresee(run: Any) -> None:
    """Ask for what the next events touch (``foresight``): behind a barrier it lies side by side."""
    entries = view(run.entries, run.capacity, ENTRY)
    for place in range(1, min(5, run.soon_count)):
        kind, index = entries[place].item % KINDS, entries[place].item // KINDS
        if kind == ARRIVAL:
            if not (run.loose or run.recording):
                ask(run.edges + index % run.edge_count * EDGE_BYTES, EDGE_BYTES)
        elif kind == BEGIN or kind == COMPLETE or kind == COMPUTED:  # noqa: SIM109
            i = index % run.n
            ask(run.members + i * MEMBER_BYTES, MEMBER_BYTES)
            ask(run.agents + i * AGENT_BYTES, AGENT_BYTES)
    kind, index = entries[0].item % KINDS, entries[0].item // KINDS
    if kind == ARRIVAL:
        if not (run.loose or run.recording):
            own = edge_of(run, index % run.edge_count)
            ask(run.members + own.neighbour * MEMBER_BYTES, MEMBER_BYTES)
    elif kind == BEGIN or kind == COMPLETE:  # noqa: SIM109
        agent = agent_of(run, index)
        ask(run.edges + agent.first * EDGE_BYTES, agent.degree * EDGE_BYTES)


def _begin_all(run: Any) -> None:
    """The first round."""
    if not run.near:
        _open_barrier(run)
        return
    run.working = 1  # there is no barrier
    for i in range(run.n):
        if agent_of(run, i).degree > 0:
            _next_round(run, i)


def _open_barrier(run: Any) -> None:
    """Everybody begins the next round."""
    if run.forgets:
        for i in range(run.n):
            if on_off_of(run, i).returned and not run.halt:  # one may reach the target
                on_off_of(run, i).returned = False
                renew(run, i)
    run.working = run.n
    for i in range(run.n):
        _next_round(run, i)


def _next_round(run: Any, i: int) -> None:
    """Agent i begins its next round; part of what it waits for may be there."""
    member = member_of(run, i)
    member.round += 1
    member.called = False
    member.woken = False
    member.gone = False
    push(run, run.now, BEGIN, i)
    member.arrived = 0
    if member.ahead == 0 and not run.loose:
        return
    member.ahead = 0
    agent, heard = agent_of(run, i), view(run.heard, run.edge_count, np.int64)
    for k in range(agent.first, agent.first + agent.degree):
        if heard[k] >= member.round - run.behind:
            member.arrived += 1
            hear(run, i, k)


def _begin(run: Any, i: int) -> None:
    if agent_of(run, i).degree == 0:
        run.working -= 1
    elif is_off(run, i):
        on_off_of(run, i).waits = True
    else:
        if run.near and run.forgets and on_off_of(run, i).returned:
            on_off_of(run, i).returned = False
            renew(run, i)
        begin(run, i)
        _go_on(run, i)


def _go_on(run: Any, i: int) -> None:
    """What takes no time, or has been waited for already, follows at once."""
    agent, member = agent_of(run, i), member_of(run, i)
    while run.ready or (member.waiting and member.woken):
        if run.ready:
            run.ready = False
            after_tick(run, i, -1 - agent.job)
        else:
            member.waiting = False
            member.woken = False
            member.gone = True
            complete(run, i)
    if member.over:
        member.over = False
        if run.near:
            note(run, ROUND_IS_OVER, i)
            _next_round(run, i)
        else:
            run.working -= 1


def _computed(run: Any, index: int) -> None:
    """An agent has finished computing, unless that was interrupted meanwhile."""
    i = end(run, index)
    if i != NOBODY:
        run.ready = True
        _go_on(run, i)


def _ring(run: Any, i: int, number: int) -> None:
    """The alarm of one of agent i's rounds; while it is off, it waits."""
    if number == member_of(run, i).round:
        if is_off(run, i):
            member_of(run, i).overdue = True
        else:
            ring(run, i)


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
    if member_of(run, i).overdue:
        member_of(run, i).overdue = False
        set_alarm(run, i, run.now)
    on_off.returned = run.forgets and (not on_off.new or on_off.returned)
    on_off.new = False
    run.several_returned = run.returned_at == run.now
    if not run.several_returned:
        run.returned_at = run.now
        push_ranked(run, run.now, REPEATS + run.scheduled, REPEAT, 1 + i)


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
def _is_awaited(run: Any, edge: int, sender: int, number: int) -> bool:
    """Has the message of a round not arrived, and is it worth another attempt?"""
    own = edge_of(run, edge)
    if has_arrived(run, own, number):
        return False
    if not run.loose:
        return True
    receiver = member_of(run, own.neighbour)
    least = receiver.round - run.behind + (1 if receiver.gone else 0)
    return number == member_of(run, sender).said and number >= least


@kernel
def _retry(run: Any, edge: int) -> None:
    """Send again what waits at an edge, the older first, if it can pass now."""
    held = view(run.held, run.edge_count, np.uint8)
    sender = edge_of(run, edge_of(run, edge).back).neighbour
    if held[edge] == 0 or not _passes(run, edge, sender):
        return
    flags, last = held[edge], member_of(run, sender).said
    held[edge] = 0
    for number in range(last + 1 - run.kept, last + 1):
        if (flags >> (number % run.kept)) & 1 and _is_awaited(run, edge, sender, number):
            transmit(run, edge, sender, number)


@kernel
def _due(run: Any, edge: int, number: int) -> None:
    """Send again what has not arrived."""
    sender = edge_of(run, edge_of(run, edge).back).neighbour
    if not _is_awaited(run, edge, sender, number):
        return
    if _passes(run, edge, sender):
        transmit(run, edge, sender, number)
    else:
        view(run.held, run.edge_count, np.uint8)[edge] |= 1 << (number % run.kept)


def _arrive(run: Any, index: int) -> None:
    edge, number, slot, place, sent_at = 0, 0, NONE, NONE, 0.0
    if run.loose or run.recording:
        message, slot = slot_of(run, index), index
        edge, number, sent_at = message.edge, message.number, message.sent_at
        if run.recording:
            place = ticket_of(run, slot).message
    else:
        edge, number = index % run.edge_count, index // run.edge_count
    own = edge_of(run, edge)
    i = own.neighbour
    outcome = arrival(run, i)
    _note(run, outcome, edge, place, sent_at)
    if outcome == MISS:
        if slot != NONE:
            give_back(run, slot)
        return
    if has_arrived(run, own, number):  # an earlier attempt was there, or something newer
        run.stale += 1
        _note(run, HANDLE, edge, place, sent_at)
        _note(run, STALE, edge, place, sent_at)
        if slot != NONE:
            give_back(run, slot)
        return
    if run.loose:
        _keep_newest(run, own, number, slot)
        return
    note_arrival(own, number)
    if slot != NONE:
        slots, at = inbox(run, own.back, number)
        slots[at] = slot
    if run.availability or run.cuts > 0:
        view(run.held, run.edge_count, np.uint8)[edge] &= ~(1 << (number % run.kept))
    member = member_of(run, i)
    if number > member.round:
        member.ahead += 1
        view(run.heard, run.edge_count, np.int64)[own.back] = number
    else:
        member.arrived += 1
        hear(run, i, own.back)


def _keep_newest(run: Any, own: Any, number: int, slot: int) -> None:
    """The message in a slot, the newest on an edge, takes the place of the last one."""
    i, k, heard = own.neighbour, own.back, own.version
    own.version = number
    view(run.heard, run.edge_count, np.int64)[k] = number
    slots, at = inbox(run, k, number)
    if slots[at] != NONE:
        give_back(run, slots[at])
    slots[at] = slot
    member = member_of(run, i)
    if number < member.round:
        run.late += 1
    if heard < member.round - run.behind <= number:
        member.arrived += 1
        hear(run, i, k)


@kernel
def _note(run: Any, kind: int, edge: int, number: int, sent_at: float) -> None:
    """Something happens to an attempt at its receiver's; ``edge`` is the sender's."""
    note_at_receiver(run, kind, edge, number, ROUND, NONE, sent_at)


def _wake(run: Any, i: int) -> None:
    """Agent i need not wait any longer; it may still be computing what to send."""
    member_of(run, i).woken = True
    _go_on(run, i)
