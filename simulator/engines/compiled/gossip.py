"""Asynchronous runs as one compiled loop for all rules, compiled for one protocol at a time."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from agents.machinery.compiling import FAILED, FINE, bound_for, entry, floats, kernel
from agents.machinery.intrinsics import array_at, invoke
from agents.protocol import Protocol, hello
from simulator.engines.compiled.changing import change_is_next
from simulator.engines.compiled.draws import CLOCK, PEERS, draw
from simulator.engines.compiled.event_notes import note
from simulator.engines.compiled.exchange import arrival, dispatch, note_arrived, send_number
from simulator.engines.compiled.on_off import is_off, on_off_of
from simulator.engines.compiled.others import placed
from simulator.engines.compiled.outcomes import (
    BREATHE,
    ENOUGH_SENT,
    HALTED,
    NOTHING,
    TIME_IS_UP,
    short_of,
)
from simulator.engines.compiled.pool import (
    HELLO,
    NONE,
    REPLY,
    give_back,
    payload,
    slot_of,
    take,
    ticket_of,
)
from simulator.engines.compiled.queue import ARRIVAL, KINDS, SWITCH, TICK, next_time, pop, push
from simulator.engines.compiled.record import view
from simulator.engines.compiled.switching import end, go_on, pause, renew, switch
from simulator.engines.compiled.verbs import (
    ANSWERED,
    NO_MESSAGE,
    NOT_ANSWERED,
    compiled,
    label_of,
)
from simulator.engines.compiled.world import LAYOUT, NOBODY, REGULAR, agent_of, consider, edge_of
from simulator.engines.event_rows import HANDLE, MISS, SKIP
from simulator.engines.event_rows import TICK as TICKED

# What the protocol does: its own functions take the places of these.
tick, handle, after, after_tick = (
    Protocol.tick,
    Protocol.handle,
    Protocol.after,
    Protocol.after_tick,
)


@cache
def loop_of(protocol: type[Protocol]) -> Any:
    """The loop of a protocol, compiled for it alone."""
    label = label_of(protocol)
    swap = placed(protocol, protocol, (tick, handle, after, after_tick), label)
    swap[hello] = compiled(hello, label)
    return entry(bound_for(advance, label, swap, kernel))


def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or until so many messages are sent; at most ``breath`` events."""
    run = runs[0]
    # An event sends as many messages as the protocol has it; a hello, one for each link.
    greeting = run.hello and run.availability
    for _ in range(breath):
        hellos = run.most_links if greeting or run.started < run.n else 0
        room = 3 + max(run.most_sends, hellos)
        lack = short_of(run, room, room)
        if lack != NOTHING:
            return lack
        if run.draining != NOBODY:
            _drain(run)
        elif run.started < run.n:
            _start(run)
        elif change_is_next(run, until):
            if invoke(run.change, run.here, 0, 0, 0, 0) == FAILED:
                raise IndexError("while something changed")
        elif next_time(run) > until:
            run.now = until
            return TIME_IS_UP
        else:
            item = pop(run)
            if run.foresee != 0:
                invoke(run.foresee, run.here, 0, 0, 0, 0)
            kind, index = item % KINDS, item // KINDS
            if kind == ARRIVAL:
                _arrive(run, index)
            elif kind == TICK:
                _ring(run, index)
            elif kind == SWITCH:
                if invoke(run.switch, run.here, index, 0, 0, 0) == FAILED:
                    raise IndexError("while an agent went on or off")
            else:
                _computed(run, index)
        if run.draining == NOBODY:  # the event is over
            if run.halt:
                return HALTED
            if run.sent >= enough:
                return ENOUGH_SENT
    return BREATHE


@kernel
def _start(run: Any) -> None:
    """The next agent says hello, if that is the start, and winds its clock."""
    i = run.started
    run.started += 1
    if run.hello and not is_off(run, i):
        _say_hello(run, i)
    _wind(run, i)


@kernel
def _say_hello(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        # Where links have versions, the first messages belong to version 0 of theirs.
        number = 0 if run.versioned else send_number(run, i)
        slot = take(run)
        out = floats(payload(run, slot, 0), run.p)
        models = floats(run.models, (run.n, run.p))
        for x in range(run.p):
            out[x] = models[i, x]
        dispatch(run, slot, HELLO, edge, i, number)


def switched(here: int, i: int, _k: int, _a: int, _b: int) -> int:
    """Agent i goes on or off: behind a pointer, and compiled only where that happens."""
    verdict = FINE
    try:
        _switch(array_at(here, 1, LAYOUT)[0], i)
    except Exception:
        verdict = FAILED
    return verdict


@kernel
def _switch(run: Any, i: int) -> None:
    """Agent i stops computing, or goes on with it, or forgets everything."""
    if not switch(run, i):
        pause(run, i)
        return
    on_off = on_off_of(run, i)
    first = on_off.new
    on_off.new = False
    if run.forgets and not first:
        _forget(run, i)
        renew(run, i)
    else:
        go_on(run, i)
    if first and run.hello:
        _say_hello(run, i)


@kernel
def _forget(run: Any, i: int) -> None:
    """What agent i was computing and what waits for it are gone; old replies will be stale."""
    agent = agent_of(run, i)
    slot = agent.mailbox_first
    while slot != NONE:
        following = slot_of(run, slot).next
        give_back(run, slot)
        slot = following
    agent.mailbox_first = NONE
    if agent.busy and agent.job >= 0:
        give_back(run, agent.job)
    if run.versioned:
        for edge in range(agent.first, agent.first + agent.degree):
            edge_of(run, edge).version += 1
    if run.in_turn:
        view(run.turns, run.n, np.int64)[i] = NOBODY
    agent.busy = False


def _computed(run: Any, index: int) -> None:
    """An agent has finished computing, unless that was interrupted meanwhile."""
    i = end(run, index)
    if i == NOBODY:
        return
    job = agent_of(run, i).job
    run.ready = True
    _end_event(run, i, job)
    run.draining = i


def _end_event(run: Any, i: int, m: int) -> None:
    """What takes no time follows at once; then see to the message, and whether models changed."""
    while run.ready:
        run.ready = False
        job = agent_of(run, i).job
        if job >= 0 or job == NO_MESSAGE:
            after(run, i, job)
        else:
            after_tick(run, i, -1 - job)
    if m >= 0:
        settle(run, i, m)
    if run.changed:
        run.changed = False
        consider(run, i)


@kernel
def _wind(run: Any, i: int) -> None:
    """Set the clock of agent i to its next tick."""
    rate = agent_of(run, i).rate
    if run.regular:
        clock = view(run.clocks, run.n, REGULAR)[i]
        if clock.ticks == 0:
            clock.first = draw(run, CLOCK) / rate
        push(run, clock.first + clock.ticks / rate, TICK, i)
        clock.ticks += 1
    else:
        push(run, run.now + draw(run, CLOCK) / rate, TICK, i)


def _ring(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    u = draw(run, PEERS)
    if agent.busy or is_off(run, i):
        run.skipped += 1
        note(run, SKIP, i)
    else:
        note(run, TICKED, i)
        if agent.degree > 0:
            tick(run, i, u)
            _end_event(run, i, NONE)
    _wind(run, i)


def _arrive(run: Any, slot: int) -> None:
    i = slot_of(run, slot).receiver
    outcome = arrival(run, i)
    note_arrived(run, outcome, slot)
    if outcome == MISS:
        give_back(run, slot)
        return
    agent = agent_of(run, i)
    if not agent.busy:
        _handle(run, i, slot)
        return
    slot_of(run, slot).next = NONE
    if agent.mailbox_first == NONE:
        agent.mailbox_first = slot
    else:
        slot_of(run, agent.mailbox_last).next = slot
    agent.mailbox_last = slot


def _handle(run: Any, i: int, slot: int) -> None:
    """Agent i turns to a message."""
    note_arrived(run, HANDLE, slot)
    if slot_of(run, slot).kind == HELLO:
        hello(run, i, slot)
    else:
        handle(run, i, slot)
    _end_event(run, i, slot)


@kernel
def settle(run: Any, i: int, m: int) -> None:
    """The event is over: its message is done with, has become a reply, or is kept for later."""
    if run.replied == ANSWERED:
        message = slot_of(run, m)
        message.edge, message.back = message.back, message.edge
        message.receiver = edge_of(run, message.edge).neighbour
        message.kind = REPLY
        message.number = run.reply_number
        message.sent_at = run.now
        if run.recording:
            ticket = ticket_of(run, m)
            ticket.message, ticket.answers = run.reply_place, ticket.message
    elif not (agent_of(run, i).busy and agent_of(run, i).job == m):
        give_back(run, m)
    run.replied = NOT_ANSWERED


def _drain(run: Any) -> None:
    """Handle the next message of a mailbox, as part of the event that set its agent free."""
    agent = agent_of(run, run.draining)
    slot = agent.mailbox_first
    if slot == NONE or agent.busy:
        run.draining = NOBODY
        return
    agent.mailbox_first = slot_of(run, slot).next
    _handle(run, run.draining, slot)
