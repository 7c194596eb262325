"""Agents that come and go in compiled code: ``simulator.engines.reference.living``."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.draws import OFF, ON, draw
from simulator.engines.compiled.events import note_switch
from simulator.engines.compiled.memory import view
from simulator.engines.compiled.presence import life_of
from simulator.engines.compiled.queue import SWITCH, SWITCHES, push_early
from simulator.engines.compiled.world import agent_of, consider, edge_of


@kernel
def switch(run: Any, i: int) -> bool:
    """Agent i goes on or off, and its next switch is planned; is it on now?"""
    life = life_of(run, i)
    life.on = not life.on
    note_switch(run, i, life.on)
    time = math.inf
    if run.traced:
        life.next += 1
        if life.next < life.last:
            time = floats(run.switch_times, run.switch_count)[life.next]
    else:
        time = run.now + draw(run, ON if life.on else OFF)
    if time < math.inf:
        push_early(run, time, SWITCHES, SWITCH, i)
    return life.on


@kernel
def renew(run: Any, i: int) -> None:
    """Give agent i the state of the start again; it is an update, as any other."""
    agent = agent_of(run, i)
    table = view(run.renewals, 4 * run.renewal_count, np.int64)
    for k in range(run.renewal_count):
        words, of_links = table[4 * k + 2], table[4 * k + 3]
        begin = agent.first if of_links else i
        count = words * (agent.degree if of_links else 1)
        live = view(table[4 * k] + 8 * words * begin, count, np.int64)
        fresh = view(table[4 * k + 1] + 8 * words * begin, count, np.int64)
        for x in range(count):
            live[x] = fresh[x]
    for edge in range(agent.first, agent.first + agent.degree):
        edge_of(run, edge).sent_at = run.now
    consider(run, i)
