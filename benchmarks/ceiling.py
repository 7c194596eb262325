"""The ceiling: the same ticks, partners, draws and queue operations as a gossip run, no learning.

The loop is written out in one function, with a tick and two messages an exchange; messages carry
nothing.  No engine with this queue and these random numbers can be faster than this.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.machinery.compiling import entry
from simulator.engines.compiled import draws, network, queue, world
from simulator.engines.compiled.queue import KINDS, pop, push
from simulator.engines.compiled.record import attach, view
from simulator.engines.compiled.world import AGENT, EDGE, LAYOUT
from simulator.engines.setup import Setup

TICK, REQUEST, REPLY = range(3)


@entry
def _loop(runs: Any, until: float) -> bool:
    """Run to a time; False if the random numbers ran low before."""
    run = runs[0]
    agents, edges = view(run.agents, run.n, AGENT), view(run.edges, run.edge_count, EDGE)
    if run.started == 0:
        for i in range(run.n):
            push(run, draws.draw(run, draws.CLOCK), TICK, i)
        run.started = 1
    while True:
        if draws.low(run):
            return False
        if queue.next_time(run) > until:
            return True
        item = pop(run)
        kind, index = item % KINDS, item // KINDS
        if kind == TICK:
            agent = agents[index]
            u = draws.draw(run, draws.PEERS)
            edge = agent.first + min(int(u * agent.degree), agent.degree - 1)
            _, arrival = network.send(run, edge, index, edges[edge].neighbour, 40)
            if arrival < math.inf:
                push(run, arrival, REQUEST, edge)
            push(run, run.now + draws.draw(run, draws.CLOCK) / agent.rate, TICK, index)
        else:
            run.delivered += 1
            if kind == REQUEST:
                back, sender = edges[index].back, edges[index].neighbour
                _, arrival = network.send(run, back, sender, edges[back].neighbour, 40)
                if arrival < math.inf:
                    push(run, arrival, REPLY, back)


def ceiling(setup: Setup):
    """A function that runs to a time and returns the number of deliveries so far."""
    run = np.zeros(1, LAYOUT)
    n, edge_count = setup.problem.n, len(setup.neighbour)
    run["n"], run["edge_count"] = n, edge_count
    blocks = draws.Draws(setup, max(8, n))
    uplinks, links = network.fill(run, setup)
    arrays = {
        "agents": world.make_agents(setup),
        "edges": world.make_edges(setup),
        "uplinks": uplinks,
        "links": links,
        "draws": blocks.blocks,
        "cursors": blocks.cursors,
    }
    for name, array in arrays.items():
        attach(run, name, array, array.dtype, array.shape)
    arrays |= queue.resize(run, 100 * n + 1000, {})
    run["block"] = blocks.blocks.shape[1]
    run["reserve"] = 8

    def advance(until: float) -> int:
        while not _loop(run, until):
            blocks.refill()
        assert arrays  # the record has only their addresses
        return int(run["delivered"][0])

    return advance
