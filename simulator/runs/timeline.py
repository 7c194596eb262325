"""A recorded run as a trace that Perfetto (ui.perfetto.dev) and Chrome open.

A track an agent; a slice for what it sends, receives and computes, and while it is off; an arrow
from every send to its delivery.  Every arrow that begins has an end, or its message a drop or a
miss: what is under way at the end of the run, or of the window, ends there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.runs.story import Recorded, Window
from simulator.store.whole_files import replacing_file

#: Microseconds that a thing without length takes up, to be seen and to hold an arrow's end.
INSTANT = 1.0
_PROCESS = 1


class _Tracks:
    """Turns events, in their order, into those of a trace."""

    def __init__(self, names: list[str]):
        self._names = names
        #: Since when each agent may be computing, or is off; whom each message under way is for.
        self._since: dict[int, float] = {}
        self._off: dict[int, float] = {}
        self._under_way: dict[int, int] = {}

    def head(self) -> Iterator[dict[str, Any]]:
        """What the tracks are called, and their order."""
        for agent, name in enumerate(self._names):
            place = {"ph": "M", "pid": _PROCESS, "tid": agent + 1}
            yield {**place, "name": "thread_name", "args": {"name": f"agent {name}"}}
            yield {**place, "name": "thread_sort_index", "args": {"sort_index": agent}}

    def of(self, row: Any) -> Iterator[dict[str, Any]]:
        """What an event adds."""
        kind, time, agent, number = row.kind, row.time, row.agent, row.message
        if kind in ("tick", "handle"):
            self._since[agent] = time
        if kind in ("tick", "skip"):
            yield self._point(kind, time, agent)
        elif kind == "send":
            self._under_way[number] = row.peer
            yield self._slice(f"{row.what} to {self._names[row.peer]}", time, agent, number)
            yield self._arrow("s", time, agent, number)
        elif kind in ("drop", "miss"):
            self._under_way.pop(number, None)
            yield self._point(kind, time, agent, number)
        elif kind == "deliver":
            yield self._slice(f"{row.what} from {self._names[row.peer]}", time, agent, number)
            if self._under_way.pop(number, None) is not None:
                yield self._arrow("f", time, agent, number)
        elif kind == "stale":
            yield self._point(kind, time, agent, number)
        elif kind == "solve":
            begin = self._since.get(agent, time)
            yield self._slice("solve", begin, agent, until=time)
        elif kind == "switch" and row.what == "off":
            self._off[agent] = time
        elif kind == "switch":
            yield self._slice("off", self._off.pop(agent, time), agent, until=time)
        elif kind == "round":
            yield self._point("round over", time, agent) | ({"s": "g"} if agent < 0 else {})

    def tail(self, end: float) -> Iterator[dict[str, Any]]:
        """What is not finished at the end."""
        for agent, since in self._off.items():
            yield self._slice("off", since, agent, until=end)
        for number, receiver in self._under_way.items():
            yield self._slice("still under way", end, receiver, number)
            yield self._arrow("f", end, receiver, number)

    def _slice(
        self, name: str, time: float, agent: int, message: int | None = None, until: float = 0.0
    ) -> dict[str, Any]:
        place = {"ph": "X", "pid": _PROCESS, "tid": agent + 1, "ts": time * 1e6}
        length = max(INSTANT, (until - time) * 1e6)
        return {**place, "name": name, "dur": length, "args": _about(message)}

    def _point(
        self, name: str, time: float, agent: int, message: int | None = None
    ) -> dict[str, Any]:
        place = {"ph": "i", "s": "t", "pid": _PROCESS, "tid": agent + 1, "ts": time * 1e6}
        return {**place, "name": name, "args": _about(message)}

    def _arrow(self, end: str, time: float, agent: int, number: int) -> dict[str, Any]:
        place = {"ph": end, "pid": _PROCESS, "tid": agent + 1, "ts": time * 1e6}
        binding = {"bp": "e"} if end == "f" else {}
        return {**place, "name": "message", "cat": "message", "id": number, **binding}


def _about(message: int | None) -> dict[str, int]:
    return {} if message is None else {"message": message}


def write_timeline(recorded: Recorded, path: Path, window: Window) -> int:
    """Write the trace of a window; how many messages are in it."""
    tracks, sent = _Tracks(recorded.names), 0
    with replacing_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        lines = _lines(tracks, recorded, window)
        file.write(next(lines))
        for line in lines:
            file.write(",\n")
            file.write(line)
            sent += line.startswith('{"ph": "s"')
        file.write("\n]}\n")
    return sent


def _lines(tracks: _Tracks, recorded: Recorded, window: Window) -> Iterator[str]:
    for entry in tracks.head():
        yield _text(entry)
    for piece in recorded.pieces(window):
        for row in _plain(piece).itertuples(index=False):
            for entry in tracks.of(row):
                yield _text(entry)
    for entry in tracks.tail(min(window.end, recorded.end)):
        yield _text(entry)


def _plain(piece: pd.DataFrame) -> pd.DataFrame:
    return piece.astype({"kind": object, "what": object})


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)
