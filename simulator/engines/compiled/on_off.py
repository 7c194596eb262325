"""Who is on, and who is cut off from whom, in compiled code."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.setup import Setup

ON_OFF = np.dtype(
    [
        ("on", np.bool_),
        #: Was it never on?  In rounds: does the beginning of one wait for the return; has the agent
        #: come back since it began one, and is to forget?
        ("new", np.bool_),
        ("waits", np.bool_),
        ("returned", np.bool_),
        #: How often its computing was interrupted; when it is due; what was left of it.
        ("pauses", np.int64),
        ("due", np.float64),
        ("left", np.float64),
        #: The next of its switches in a trace, and the end of them.
        ("next", np.int64),
        ("last", np.int64),
    ],
    align=True,
)
FIELDS: Fields = [
    ("availability", np.bool_),
    ("forgets", np.bool_),
    #: In gossip: the function that lets agents come and go.
    ("switch", ADDRESS),
    ("on_off", ADDRESS),
    #: The times of a trace's switches, agent by agent; where there is none, stays are drawn.
    ("traced", np.bool_),
    ("switch_count", np.int64),
    ("switch_times", ADDRESS),
    #: Partitions: how many, the present or next one, begins and ends (cuts, 2), groups (cuts, n).
    ("cuts", np.int64),
    ("cut", np.int64),
    ("cut_times", ADDRESS),
    ("groups", ADDRESS),
    #: In rounds: edges whose message is to be sent again as soon as it can pass, 1, or 2 of an odd
    #: round where two are kept, or both; the next of them
    #: to look at, where all are; when somebody last came back, and whether others did as well.
    ("held", ADDRESS),
    ("resending", np.int64),
    ("returned_at", np.float64),
    ("several_returned", np.bool_),
    #: What forgetting puts back: (address, address of fresh values or 0, words, over links, and
    #: where in it the first model and the first copy are, or −1) each; first models, and copies (0:
    #: the models).
    ("renewals", ADDRESS),
    ("renewal_count", np.int64),
    ("fresh_models", ADDRESS),
    ("fresh_copies", ADDRESS),
]


def make_on_off(setup: Setup) -> NDArray[Any]:
    """Who is on (n), before the first event."""
    assert setup.availability is not None
    availability = setup.availability
    on_off = np.zeros(setup.problem.n, ON_OFF)
    on_off["on"], on_off["new"] = availability.on, ~availability.on
    on_off["next"], on_off["last"] = availability.starts[:-1], availability.starts[1:]
    return on_off


@kernel
def on_off_of(run: Any, i: int) -> Any:
    """The comings and goings of agent i."""
    return view(run.on_off, run.n, ON_OFF)[i]


@kernel
def is_off(run: Any, i: int) -> bool:
    """Is agent i switched off?"""
    return run.availability and not on_off_of(run, i).on


@kernel
def parted(run: Any, one: int, other: int) -> bool:
    """Does a partition lie between two agents now?"""
    if run.cut == run.cuts:
        return False
    times = floats(run.cut_times, (run.cuts, 2))
    while run.cut < run.cuts and run.now >= times[run.cut, 1]:
        run.cut += 1
    if run.cut == run.cuts or run.now < times[run.cut, 0]:
        return False
    groups = view(run.groups, run.cuts * run.n, np.int64)
    return groups[run.cut * run.n + one] != groups[run.cut * run.n + other]
