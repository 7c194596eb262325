"""Going on and off in compiled code, and being busy, which pauses while an agent is off.

``simulator.engines.reference.switches`` has the same for SimPy.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.draws import COMPUTE, OFF, ON, draw
from simulator.engines.compiled.event_notes import note_switch
from simulator.engines.compiled.on_off import on_off_of
from simulator.engines.compiled.queue import COMPUTED, SWITCH, SWITCHES, push, push_ranked
from simulator.engines.compiled.record import view
from simulator.engines.compiled.slowness import COMPUTING, factor_now
from simulator.engines.compiled.world import NOBODY, agent_of, consider, edge_of, refresh

#: Numbers in a row of what forgetting puts back.
RENEWAL = 6


# --- being busy -----------------------------------------------------------------------------------
@kernel
def compute(run: Any, i: int, job: int) -> bool:
    """Be busy for one solve with a job; True if that takes no time and it is to be finished now."""
    agent = agent_of(run, i)
    agent.job = job
    factor = agent.compute_factor
    if run.slow_computing:
        factor *= factor_now(run, COMPUTING, i)
    duration = draw(run, COMPUTE) * factor
    if duration == 0.0:
        return True
    agent.busy = True
    end_in(run, i, duration)
    return False


@kernel
def end_in(run: Any, i: int, duration: float) -> None:
    """Finish after so long, unless the agent is switched off before."""
    index = i
    if run.availability:
        on_off = on_off_of(run, i)
        on_off.due = run.now + duration
        index += run.n * on_off.pauses
    push(run, run.now + duration, COMPUTED, index)


@kernel
def pause(run: Any, i: int) -> None:
    """Agent i stops for the time being, if it is computing."""
    if agent_of(run, i).busy:
        on_off = on_off_of(run, i)
        on_off.pauses += 1
        on_off.left = on_off.due - run.now


@kernel
def go_on(run: Any, i: int) -> None:
    """Agent i takes up what it was computing, if anything."""
    if agent_of(run, i).busy:
        end_in(run, i, on_off_of(run, i).left)


@kernel
def end(run: Any, index: int) -> int:
    """Who has finished computing with this event: NOBODY, if it was interrupted meanwhile."""
    i = index
    if run.availability:
        i = index % run.n
        if index // run.n != on_off_of(run, i).pauses:
            return NOBODY
    agent_of(run, i).busy = False
    return i


# --- on and off -----------------------------------------------------------------------------------
@kernel
def switch(run: Any, i: int) -> bool:
    """Agent i goes on or off, and its next switch is planned; is it on now?"""
    on_off = on_off_of(run, i)
    on_off.on = not on_off.on
    note_switch(run, i, on_off.on)
    time = math.inf
    if run.traced:
        on_off.next += 1
        if on_off.next < on_off.last:
            time = floats(run.switch_times, run.switch_count)[on_off.next]
    else:
        time = run.now + draw(run, ON if on_off.on else OFF)
    if time < math.inf:
        push_ranked(run, time, SWITCHES + run.scheduled, SWITCH, i)
    return on_off.on


@kernel
def renew(run: Any, i: int) -> None:
    """Give agent i the state of the start again; it is an update, as any other."""
    agent = agent_of(run, i)
    table = view(run.renewals, RENEWAL * run.renewal_count, np.int64)
    for k in range(run.renewal_count):
        row = RENEWAL * k
        words, of_links = table[row + 2], table[row + 3]
        begin = agent.first if of_links else i
        entries = agent.degree if of_links else 1
        count = words * entries
        live = view(table[row] + 8 * words * begin, count, np.int64)
        if table[row + 1] != 0:
            fresh = view(table[row + 1] + 8 * words * begin, count, np.int64)
            for x in range(count):
                live[x] = fresh[x]
        else:
            for x in range(count):
                live[x] = 0
        for entry in range(entries):
            place = table[row] + 8 * words * (begin + entry)
            if table[row + 4] >= 0:
                _copy(run, place + 8 * table[row + 4], run.fresh_models, i)
            if table[row + 5] >= 0 and run.fresh_copies != 0:
                _copy(run, place + 8 * table[row + 5], run.fresh_copies, begin + entry)
            elif table[row + 5] >= 0:
                _copy(run, place + 8 * table[row + 5], run.fresh_models, i)
    if run.refresh != 0:
        refresh(run, i)
    for edge in range(agent.first, agent.first + agent.degree):
        edge_of(run, edge).sent_at = run.now
    consider(run, i)


@kernel
def _copy(run: Any, place: int, models: int, k: int) -> None:
    """Write the k-th of some models to an address."""
    out, model = floats(place, run.p), floats(models + 8 * run.p * k, run.p)
    for x in range(run.p):
        out[x] = model[x]
