"""What happened in a run, one row each: the form in which both engines hand it out.

docs/results.md says what the kinds and columns mean.  An engine collects rows in a buffer and gives
it to a function of the run's whenever it is full, so that memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = (
    "tick",
    "skip",
    "send",
    "drop",
    "miss",
    "deliver",
    "handle",
    "stale",
    "solve",
    "switch",
    "round",
    "point",
)
TICK, SKIP, SEND, DROP, MISS, DELIVER, HANDLE, STALE, SOLVE, SWITCH, ROUND, POINT = range(
    len(KINDS)
)
#: What a message is, as ``agents.messages`` numbers it, and what a switch does.
WHAT = ("request", "reply", "hello", "round", "on", "off")
ON, OFF = WHAT.index("on"), WHAT.index("off")
#: No message, no request, no peer, nobody.
NONE = -1

ROW = np.dtype(
    [
        ("time", np.float64),
        ("sent_at", np.float64),
        ("message", np.int64),
        ("answers", np.int64),
        ("bytes", np.int64),
        ("agent", np.int32),
        ("peer", np.int32),
        ("kind", np.int8),
        ("what", np.int8),
    ],
    align=True,
)
Rows = NDArray[Any]
#: Takes rows, which it must not keep: the engine uses their place again.
Sink = Callable[[Rows], None]
