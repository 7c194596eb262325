"""What the next events will touch is asked for while the present one goes on.

Where agents and links are more than the processor's cache holds, nearly every event touches others
than the last one and would wait for memory at each of its steps: measured, asking in advance saves
half of the time from some thousand agents on.  Nothing depends on it but time.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import FINE, kernel
from agents.machinery.intrinsics import array_at
from agents.running import RunningRule
from simulator.engines.compiled.draws import PEERS, upcoming
from simulator.engines.compiled.pool import SLOT, slot_of
from simulator.engines.compiled.queue import ARRIVAL, ENTRY, KINDS, TICK
from simulator.engines.compiled.record import ask, view
from simulator.engines.compiled.world import AGENT, EDGE, LAYOUT, agent_of, choose

#: Bytes of agents and links that a processor has close at hand; fewer, and asking is wasted time.
#: Long vectors do not count: they come in whole lines anyway.
CACHE = 2**20
SLOT_BYTES, AGENT_BYTES, EDGE_BYTES = SLOT.itemsize, AGENT.itemsize, EDGE.itemsize
#: How many of the next events, as the queue stands, are looked at: the root and its children.
NEXT = 5


def rule_arrays(run: NDArray[Any], rule: RunningRule) -> NDArray[np.int64]:
    """The table of the rule's arrays; the record learns whether the run is a large one."""
    kept = rule.kept()
    run["large"] = AGENT_BYTES * run["n"] + EDGE_BYTES * run["edge_count"] > CACHE
    run["rule_array_count"] = len(kept)
    rows = [(array.ctypes.data, array.strides[0], links) for array, links in kept]
    return np.array(rows, np.int64).ravel()


def foreseen(here: int, _i: int, _k: int, _a: int, _b: int) -> int:
    """``foresee`` behind a pointer: compiled only where a run is large."""
    foresee(array_at(here, 1, LAYOUT)[0])
    return FINE


@kernel
def foresee(run: Any) -> None:
    """Ask for all that the next event touches, and for the beginnings of the few after it."""
    entries = view(run.entries, run.capacity, ENTRY)
    for place in range(1, min(NEXT, run.soon_count)):
        kind, index = entries[place].item % KINDS, entries[place].item // KINDS
        if kind == ARRIVAL:
            ask(run.slots + index * SLOT_BYTES, SLOT_BYTES)
        elif kind == TICK:
            ask(run.agents + index * AGENT_BYTES, AGENT_BYTES)
    if run.size == 0:
        return
    kind, index = entries[0].item % KINDS, entries[0].item // KINDS
    if kind == ARRIVAL:
        message = slot_of(run, index)
        ask(run.payloads + 16 * run.numbers * index, 16 * run.numbers)
        ask(run.agents + message.receiver * AGENT_BYTES, AGENT_BYTES)
        ask(run.edges + message.back * EDGE_BYTES, EDGE_BYTES)
        _ask_for_state(run, message.receiver, message.back)
    elif kind == TICK:
        if agent_of(run, index).degree > 0 and not (run.weighted or run.in_turn):
            edge = choose(run, index, upcoming(run, PEERS))
            ask(run.edges + edge * EDGE_BYTES, EDGE_BYTES)
        _ask_for_state(run, index, -1)


@kernel
def _ask_for_state(run: Any, i: int, edge: int) -> None:
    """What the rule keeps of an agent and, unless it is −1, of a link."""
    table = view(run.rule_arrays, 3 * run.rule_array_count, np.int64)
    for k in range(run.rule_array_count):
        size = table[3 * k + 1]
        index = edge if table[3 * k + 2] else i
        if index >= 0:
            ask(table[3 * k] + index * size, size)
