"""Asynchronous runs: ``agents.gossip`` as one compiled loop, for all protocols and rules."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import FAILED, FINE, entry, floats, kernel
from agents.machinery.intrinsics import array_at, invoke
from simulator.engines.compiled.draws import CLOCK, PEERS, draw
from simulator.engines.compiled.event_notes import note
from simulator.engines.compiled.exchange import arrival, dispatch, note_arrived, send_number
from simulator.engines.compiled.on_off import is_off, on_off_of
from simulator.engines.compiled.outcomes import (
    BREATHE,
    ENOUGH_SENT,
    HALTED,
    NOTHING,
    TIME_IS_UP,
    short_of,
)
from simulator.engines.compiled.pool import HELLO, NONE, give_back, payload, slot_of, take
from simulator.engines.compiled.protocols import (
    AVERAGE,
    SOLVE_THEN_ANSWER,
    TELL,
    answer_then_solve,
    average,
    solve_then_answer,
    tell,
)
from simulator.engines.compiled.queue import ARRIVAL, KINDS, SWITCH, TICK, next_time, pop, push
from simulator.engines.compiled.switching import end, go_on, pause, renew, switch
from simulator.engines.compiled.world import LAYOUT, NOBODY, agent_of, choose, edge_of
from simulator.engines.event_rows import HANDLE, MISS, SKIP
from simulator.engines.event_rows import TICK as TICKED


@kernel
def _tick(run: Any, i: int, edge: int) -> None:
    if run.protocol == SOLVE_THEN_ANSWER:
        solve_then_answer.tick(run, i, edge)
    elif run.protocol == TELL:
        tell.tick(run, i, edge)
    else:
        answer_then_solve.tick(run, i, edge)


@kernel
def _handle(run: Any, i: int, slot: int) -> None:
    note_arrived(run, HANDLE, slot)
    if run.protocol == SOLVE_THEN_ANSWER:
        solve_then_answer.handle(run, i, slot)
    elif run.protocol == TELL:
        tell.handle(run, i, slot)
    elif run.protocol == AVERAGE:
        average.handle(run, i, slot)
    else:
        answer_then_solve.handle(run, i, slot)


@kernel
def _finish(run: Any, i: int) -> None:
    if run.protocol == SOLVE_THEN_ANSWER:
        solve_then_answer.finish(run, i)
    elif run.protocol == TELL:
        tell.finish(run, i)
    else:
        answer_then_solve.finish(run, i)


@entry
def advance(runs: Any, until: float, enough: float, breath: int) -> int:
    """Go on up to a time, or until so many messages are sent; at most ``breath`` events."""
    run = runs[0]
    # An event puts at most one message more on its way than it takes off it; a hello, or telling
    # everybody, one for each link.
    many = run.protocol == TELL or (run.hello and run.availability)
    for _ in range(breath):
        room = 3 + (run.most_links if many or run.started < run.n else 0)
        lack = short_of(run, room, room)
        if lack != NOTHING:
            return lack
        if run.draining != NOBODY:
            _drain(run)
        elif run.started < run.n:
            _start(run)
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
        number = 0 if run.protocol == SOLVE_THEN_ANSWER else send_number(run, i)
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
    if run.protocol == SOLVE_THEN_ANSWER:
        if agent.busy and agent.job >= 0:
            give_back(run, agent.job)
        for edge in range(agent.first, agent.first + agent.degree):
            edge_of(run, edge).version += 1
    agent.busy = False


@kernel
def _computed(run: Any, index: int) -> None:
    """An agent has finished computing, unless that was interrupted meanwhile."""
    i = end(run, index)
    if i != NOBODY:
        _finish(run, i)
        run.draining = i


@kernel
def _wind(run: Any, i: int) -> None:
    """Set the clock of agent i to its next tick."""
    push(run, run.now + draw(run, CLOCK) / agent_of(run, i).rate, TICK, i)


@kernel
def _ring(run: Any, i: int) -> None:
    agent = agent_of(run, i)
    u = draw(run, PEERS)
    if agent.busy or is_off(run, i):
        run.skipped += 1
        note(run, SKIP, i)
    else:
        note(run, TICKED, i)
        if agent.degree > 0:
            _tick(run, i, choose(run, i, u))
    _wind(run, i)


@kernel
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


@kernel
def _drain(run: Any) -> None:
    """Handle the next message of a mailbox, as part of the event that set its agent free."""
    agent = agent_of(run, run.draining)
    slot = agent.mailbox_first
    if slot == NONE or agent.busy:
        run.draining = NOBODY
        return
    agent.mailbox_first = slot_of(run, slot).next
    _handle(run, run.draining, slot)
