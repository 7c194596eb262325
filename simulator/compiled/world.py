"""Agents and links in compiled code, and the record that holds everything but the rule."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simulator.compiled import draws, messages, network, queue
from simulator.compiled.memory import ADDRESS, Fields, row, view
from simulator.setup import Setup

NOBODY = -1

AGENT = np.dtype(
    [
        #: Its links are the edges first … first + degree − 1.
        ("first", np.int64),
        ("degree", np.int64),
        ("rate", np.float64),
        ("compute_factor", np.float64),
        #: Messages sent so far (mp); the message or, as −1 − edge, the tick that is being solved.
        ("sends", np.int64),
        ("job", np.int64),
        ("busy", np.bool_),
        #: The mailbox, in order of arrival.
        ("mailbox_first", np.int64),
        ("mailbox_last", np.int64),
        #: In rounds: messages that are there; are they all; the own ones are sent, and when.
        ("inbox", np.int64),
        ("complete", np.bool_),
        ("waiting", np.bool_),
        ("sent_at", np.float64),
        #: The squared distance from the watched reference.
        ("distance", np.float64),
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("neighbour", np.int64),
        ("back", np.int64),
        #: W_ij; in mp its place is taken by the gain with which a new copy counts.
        ("weight", np.float64),
        #: When the copy held at this edge was sent.
        ("sent_at", np.float64),
        #: The number of the last message heard (mp), or the version of this end (admm).
        ("version", np.int64),
    ],
    align=True,
)
FIELDS: Fields = [
    *queue.FIELDS,
    *draws.FIELDS,
    *network.FIELDS,
    *messages.FIELDS,
    ("n", np.int64),
    ("p", np.int64),
    ("edge_count", np.int64),
    ("agents", ADDRESS),
    ("edges", ADDRESS),
    #: Cumulative weights over each agent's links, where peers are weighted.
    ("weighted", np.bool_),
    ("cumulative", ADDRESS),
    ("hello", np.bool_),
    ("solves_before", np.bool_),
    ("retransmit_after", np.float64),
    #: All models (n, p).
    ("models", ADDRESS),
    #: The watched distance: from what (n, p), its sum now, and the level to reach.
    ("watched", np.bool_),
    ("reference", ADDRESS),
    ("distance", np.float64),
    ("level", np.float64),
    ("reached_at", np.float64),
    ("reached_sent", np.int64),
    #: Time and counts.
    ("now", np.float64),
    ("stale", np.int64),
    ("skipped", np.int64),
    ("exhausted", np.int64),
    #: How many agents have started; whose mailbox is being emptied; who still works in this round.
    ("started", np.int64),
    ("draining", np.int64),
    ("working", np.int64),
    #: Who has a model that is not finite; is there a reason to end the run?
    ("diverged", np.int64),
    ("halt", np.bool_),
]


def make_agents(setup: Setup) -> NDArray[Any]:
    """The agents (n) before the first event."""
    agents = np.zeros(setup.problem.n, AGENT)
    agents["first"], agents["degree"] = setup.indptr[:-1], np.diff(setup.indptr)
    agents["rate"] = setup.rates
    agents["compute_factor"] = 1.0 if setup.compute_factors is None else setup.compute_factors
    agents["mailbox_first"] = NOBODY
    return agents


def make_edges(setup: Setup) -> NDArray[Any]:
    """The directed edges before the first event."""
    edges = np.zeros(len(setup.neighbours), EDGE)
    edges["neighbour"], edges["back"] = setup.neighbours, setup.back
    edges["weight"] = setup.problem.W.data
    return edges


@njit(cache=True)
def accumulate(indptr: NDArray[np.int64], weights: Any, cumulative: Any) -> None:
    """Cumulative weights over each agent's links."""
    for i in range(len(indptr) - 1):
        total = 0.0
        for edge in range(indptr[i], indptr[i + 1]):
            total += weights[edge]
            cumulative[edge] = total


@njit(cache=True)
def agent_of(run: Any, i: int) -> Any:
    """Agent i."""
    return view(run.agents, run.n, AGENT)[i]


@njit(cache=True)
def edge_of(run: Any, edge: int) -> Any:
    """A directed edge."""
    return view(run.edges, run.edge_count, EDGE)[edge]


@njit(cache=True)
def compute_time(run: Any, i: int) -> float:
    """How long agent i's next solve takes."""
    return draws.draw(run, draws.COMPUTE) * agent_of(run, i).compute_factor


@njit(cache=True)
def updated(run: Any, i: int) -> None:
    """Agent i has a new model: see that it is finite, and follow the watched distance."""
    model = row(run.models, i, run.p)
    for x in range(run.p):
        if not math.isfinite(model[x]):
            run.diverged = i
            run.halt = True
            return
    if not run.watched:
        return
    reference, agent, distance = row(run.reference, i, run.p), agent_of(run, i), 0.0
    for x in range(run.p):
        distance += (model[x] - reference[x]) ** 2
    run.distance += distance - agent.distance
    agent.distance = distance
    if run.distance <= run.level and run.reached_sent == NOBODY:
        run.reached_at, run.reached_sent = run.now, run.sent
        run.halt = True
