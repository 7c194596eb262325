"""What happened, as rows of a buffer that Python empties when it is full."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.machinery.compiling import kernel
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.event_rows import DROP, NONE, OFF, ON, ROW, SEND, SWITCH

FIELDS: Fields = [
    ("recording", np.bool_),
    ("rows", ADDRESS),
    ("row_capacity", np.int64),
    #: How many rows are waiting in the buffer, and the most that one event may add.
    ("row_count", np.int64),
    ("most_rows", np.int64),
]


@kernel
def crowded(run: Any) -> bool:
    """Might one more event find the buffer full?"""
    return run.recording and run.row_count + run.most_rows > run.row_capacity


@kernel
def note(run: Any, kind: int, agent: int) -> None:
    """Something happens to an agent that is about no message."""
    if run.recording:
        write(run, kind, agent, NONE, NONE, NONE, NONE, 0, math.nan)


@kernel
def note_switch(run: Any, agent: int, on: bool) -> None:
    """An agent goes on or off."""
    if run.recording:
        what = ON if on else OFF
        write(run, SWITCH, agent, NONE, NONE, what, NONE, 0, math.nan)


@kernel
def note_send(
    run: Any,
    sender: int,
    receiver: int,
    what: int,
    answers: int,
    size: int,
    sent_at: float,
    lost: bool,
) -> None:
    """The latest message was sent, and perhaps lost."""
    if run.recording:
        number = run.sent - 1
        write(run, SEND, sender, receiver, number, what, answers, size, sent_at)
        if lost:
            write(run, DROP, sender, receiver, number, what, answers, size, sent_at)


@kernel
def write(
    run: Any,
    kind: int,
    agent: int,
    peer: int,
    message: int,
    what: int,
    answers: int,
    size: int,
    sent_at: float,
) -> None:
    """One row; only where events are recorded."""
    row = view(run.rows, run.row_capacity, ROW)[run.row_count]
    run.row_count += 1
    row.time = run.now
    row.kind = kind
    row.agent = agent
    row.peer = peer
    row.message = message
    row.what = what
    row.answers = answers
    row.bytes = size
    row.sent_at = sent_at
