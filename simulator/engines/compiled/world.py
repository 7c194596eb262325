"""Agents and links in compiled code, the record that holds everything, and the rule's calls."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import FAILED, floats, kernel
from agents.machinery.intrinsics import invoke
from simulator.engines import watch
from simulator.engines.compiled import (
    draws,
    event_notes,
    network,
    on_off,
    pool,
    queue,
    round_state,
    slowness,
)
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.event_rows import SOLVE as SOLVED
from simulator.engines.setup import Setup

NOBODY = -1

AGENT = np.dtype(
    [
        #: Its links are the edges first … first + degree − 1.
        ("first", np.int64),
        ("degree", np.int64),
        ("rate", np.float64),
        ("compute_factor", np.float64),
        #: Messages sent so far; the message or, as −1 − edge, the tick that is being solved.
        ("sends", np.int64),
        ("job", np.int64),
        ("busy", np.bool_),
        #: The mailbox, in order of arrival.
        ("mailbox_first", np.int64),
        ("mailbox_last", np.int64),
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("neighbour", np.int64),
        ("back", np.int64),
        #: When the copy held at this edge was sent.
        ("sent_at", np.float64),
        #: The number of the last message heard here, the version of this end, or, in rounds, what
        #: has arrived at the far end (``round_state``): whichever the protocol needs.
        ("version", np.int64),
    ],
    align=True,
)
#: A clock that ticks regularly: when for the first time, and how often it was wound.
REGULAR = np.dtype([("first", np.float64), ("ticks", np.int64)], align=True)
FIELDS: Fields = [
    *watch.FIELDS,
    *queue.FIELDS,
    *draws.FIELDS,
    *network.FIELDS,
    *slowness.FIELDS,
    *pool.FIELDS,
    *event_notes.FIELDS,
    *on_off.FIELDS,
    *round_state.FIELDS,
    #: The address of this record, for functions behind pointers.
    ("here", ADDRESS),
    ("edge_count", np.int64),
    #: What changes (``changing``): the function, all changes, the next one and its time.
    ("change", ADDRESS),
    ("changes", ADDRESS),
    ("change_count", np.int64),
    ("change_place", np.int64),
    ("next_change", np.float64),
    #: Points: how many each agent has, how many have arrived and ever will, and the largest number
    #: of any agent's; solitary models and curvatures after each arrival, and as they are.
    ("counts", ADDRESS),
    ("arrived", np.int64),
    ("arrivals", np.int64),
    ("most_points", np.float64),
    ("by_data", np.bool_),
    ("fits", ADDRESS),
    ("curvatures", ADDRESS),
    ("curvature", ADDRESS),
    ("c", ADDRESS),
    ("solitary", ADDRESS),
    ("agents", ADDRESS),
    ("edges", ADDRESS),
    #: Cumulative weights over each agent's links, where peers are weighted.
    ("weighted", np.bool_),
    ("cumulative", ADDRESS),
    #: The link that each agent chose last, where they are chosen in turn.
    ("in_turn", np.bool_),
    ("turns", ADDRESS),
    #: Is a tick about all neighbours?  Clocks that tick regularly.
    ("to_all", np.bool_),
    ("regular", np.bool_),
    ("clocks", ADDRESS),
    ("hello", np.bool_),
    #: The bytes of a message and of a hello.
    ("message_bytes", np.int64),
    ("hello_bytes", np.int64),
    #: What the protocol declares: versions of links, that absorbing changes models, and the most
    #: messages that one event sends.
    ("versioned", np.bool_),
    ("averages", np.bool_),
    ("most_sends", np.int64),
    #: What the present event has brought about: was the message at hand answered, with which
    #: number, as which message; has a computation ended; was a model changed?
    ("replied", np.int64),
    ("reply_number", np.int64),
    ("reply_place", np.int64),
    ("ready", np.bool_),
    ("changed", np.bool_),
    #: The rule: its functions and its state.
    ("tell", ADDRESS),
    ("absorb", ADDRESS),
    ("solve", ADDRESS),
    ("introduce", ADDRESS),
    ("refresh", ADDRESS),
    ("state", ADDRESS),
    #: What stands for an agent's message where it sent none, and the bytes to the next agent's.
    ("unsaid", ADDRESS),
    ("unsaid_width", np.int64),
    #: NumPy's function for the next number of the stream "rule", and its state.
    ("random", ADDRESS),
    ("random_state", ADDRESS),
    #: Its arrays: (address, bytes of an entry, is there one a link?) each.
    ("rule_arrays", ADDRESS),
    ("rule_array_count", np.int64),
    #: The most links that an agent has.
    ("most_links", np.int64),
    #: Time and counts.
    ("now", np.float64),
    ("stale", np.int64),
    ("skipped", np.int64),
    #: When the watched distance reached its level.
    ("reached_at", np.float64),
    ("reached_sent", np.int64),
    #: How many agents have started; whose mailbox is being emptied.
    ("started", np.int64),
    ("draining", np.int64),
    #: Protocols from outside: the addresses of their arrays; then, as ``agents.checked`` has it,
    #: which function acts, for whom, with which message, and what it and its event have done.
    ("memory", ADDRESS),
    ("acting", np.int64),
    ("acts_for", np.int64),
    ("at_hand", np.int64),
    ("goes_on", np.bool_),
    ("ended", np.bool_),
    ("answered", np.bool_),
    ("sends_made", np.int64),
    ("notes_made", np.int64),
    ("computations", np.int64),
    ("last_taken", np.int64),
    #: Is there a reason to end the run?  Who has a model that is not finite; which of the rule's
    #: functions failed, and its arguments.
    ("halt", np.bool_),
    ("diverged", np.int64),
    ("failed", np.int64),
    ("failed_i", np.int64),
    ("failed_k", np.int64),
    ("failed_a", ADDRESS),
    ("failed_b", ADDRESS),
]
LAYOUT = np.dtype(FIELDS, align=True)
#: The rule's functions, as ``failed`` numbers them; 0 is none.
NONE_FAILED, TELL, ABSORB, SOLVE, INTRODUCE, REFRESH = range(6)


def make_agents(setup: Setup) -> NDArray[Any]:
    """The agents (n) before the first event."""
    agents = np.zeros(setup.problem.n, AGENT)
    agents["first"], agents["degree"] = setup.first[:-1], np.diff(setup.first)
    agents["rate"] = setup.rates
    agents["compute_factor"] = 1.0 if setup.compute_factors is None else setup.compute_factors
    agents["mailbox_first"] = NOBODY
    return agents


def make_edges(setup: Setup) -> NDArray[Any]:
    """The directed edges before the first event."""
    edges = np.zeros(len(setup.neighbour), EDGE)
    edges["neighbour"], edges["back"] = setup.neighbour, setup.back
    return edges


def cumulative_weights(setup: Setup) -> NDArray[np.float64]:
    """Cumulative weights over each agent's links, added in their order."""
    cumulative = np.empty(len(setup.neighbour))
    weights = setup.problem.W.data
    for low, high in zip(setup.first[:-1].tolist(), setup.first[1:].tolist(), strict=True):
        np.cumsum(weights[low:high], out=cumulative[low:high])
    return cumulative


@kernel
def agent_of(run: Any, i: int) -> Any:
    """Agent i."""
    return view(run.agents, run.n, AGENT)[i]


@kernel
def edge_of(run: Any, edge: int) -> Any:
    """A directed edge."""
    return view(run.edges, run.edge_count, EDGE)[edge]


@kernel
def choose(run: Any, i: int, u: float) -> int:
    """Agent i's edge that u in [0, 1) picks: uniformly, by weight, or the next in turn."""
    first, degree = agent_of(run, i).first, agent_of(run, i).degree
    if run.in_turn:
        turns = view(run.turns, run.n, np.int64)
        if turns[i] == NOBODY:
            turns[i] = first + min(int(u * degree), degree - 1)
        else:
            turns[i] = first if turns[i] == first + degree - 1 else turns[i] + 1
        return turns[i]
    if not run.weighted:
        return first + min(int(u * degree), degree - 1)
    cumulative = floats(run.cumulative, run.edge_count)
    level = u * cumulative[first + degree - 1]
    low, high = 0, degree
    while low < high:  # the first link whose cumulative weight exceeds the level
        middle = (low + high) // 2
        if cumulative[first + middle] > level:
            high = middle
        else:
            low = middle + 1
    return first + min(low, degree - 1)


# --- the rule -------------------------------------------------------------------------------------
@kernel
def _do(run: Any, which: int, function: int, i: int, k: int, a: int, b: int) -> None:
    # What comes after a failure in the same event would change what it was about.
    if run.failed == NONE_FAILED and invoke(function, run.state, i, k, a, b) == FAILED:
        run.failed, run.failed_i, run.failed_k = which, i, k
        run.failed_a, run.failed_b = a, b
        run.halt = True


@kernel
def tell(run: Any, i: int, edge: int, out: int) -> None:
    """Write what agent i tells the neighbour at ``edge`` to an address."""
    _do(run, TELL, run.tell, i, edge, out, out)


@kernel
def absorb(run: Any, i: int, edge: int, received: int, sent: int) -> None:
    """Agent i takes in what came from the neighbour at ``edge``."""
    _do(run, ABSORB, run.absorb, i, edge, received, sent)


@kernel
def introduce(run: Any, i: int, edge: int, model: int) -> None:
    """Agent i takes in a hello."""
    _do(run, INTRODUCE, run.introduce, i, edge, model, model)


@kernel
def refresh(run: Any, i: int) -> None:
    """Agent i derives anew what depends on its data and weights."""
    _do(run, REFRESH, run.refresh, i, 0, 0, 0)


@kernel
def unsaid(run: Any, i: int) -> int:
    """The address of what stands for agent i's message where it sent none."""
    return run.unsaid + run.unsaid_width * i


_follow = kernel(watch.follow)


@kernel
def solve(run: Any, i: int) -> None:
    """Agent i's costly step, and what its new model means for the run."""
    _do(run, SOLVE, run.solve, i, 0, 0, 0)
    if run.failed != NONE_FAILED:
        return
    event_notes.note(run, SOLVED, i)
    consider(run, i)


@kernel
def consider(run: Any, i: int) -> None:
    """What agent i's new model means for the run."""
    outcome = _follow(run, i)
    if outcome == watch.DIVERGED:
        run.diverged = i
        run.halt = True
    elif outcome == watch.REACHED and run.reached_sent == NOBODY:
        run.reached_at, run.reached_sent = run.now, run.sent
        run.halt = True
