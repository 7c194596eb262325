"""What a recorded run tells of one agent, one link, or all: read from the store, in pieces.

And as a trace that Perfetto (ui.perfetto.dev) and Chrome open.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.engines.event_rows import KINDS
from simulator.errors import SimulatorError
from simulator.problem.problem import Floats
from simulator.scenario.tables import listing
from simulator.store.recording import COLUMNS, EventsFile, batches
from simulator.store.store import Store, Stored
from simulator.store.whole_files import replacing_file


@dataclass(frozen=True)
class Window:
    """A part of a run: between two times, both included."""

    begin: float = -np.inf
    end: float = np.inf

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows in it."""
        return table[(table["time"] >= self.begin) & (table["time"] <= self.end)]


class Recorded:
    """A result of the store whose events were recorded."""

    def __init__(self, folder: Path):
        self.folder = folder
        store = Store(folder.parent)
        store.scenario_file(folder)  # events are told of agents that it has made
        self.stored: Stored = store.load(folder)
        if self.stored.events is None:
            raise SimulatorError(
                f"{folder}: no events were recorded; run it again with --set record.events=true"
            )
        self.file: EventsFile = self.stored.events
        self.names: list[str] = self.stored.agents["agent"].tolist()

    @cached_property
    def end(self) -> float:
        """When the run ended."""
        return float(self.stored.trace["time"].iloc[-1])

    def number(self, name: str) -> int:
        """The number of an agent that is given by its name, or by its number."""
        name = name.strip()
        if name in self.names:
            return self.names.index(name)
        if name.isdecimal() and int(name) < len(self.names):
            return int(name)
        raise SimulatorError(
            f"{self.folder}: no agent {name!r}; its agents are {listing(self.names)}"
        )

    def pieces(self, window: Window) -> Iterator[pd.DataFrame]:
        """The events in a window, some at a time."""
        for piece in batches(self.file.path):
            yield window.of(piece)
            if len(piece) and piece["time"].iloc[-1] > window.end:
                return

    def events(
        self, window: Window, agent: int | None = None, peer: int | None = None
    ) -> pd.DataFrame:
        """The events in a window: those of an agent, or of the messages between two."""
        chosen = []
        for piece in self.pieces(window):
            if agent is None:
                chosen.append(piece)
            elif peer is None:
                # A message that is sent to it, or lost on the way, is part of its story too.
                chosen.append(piece[(piece["agent"] == agent) | (piece["peer"] == agent)])
            else:
                pair = {agent, peer}
                chosen.append(piece[piece["agent"].isin(pair) & piece["peer"].isin(pair)])
        return pd.concat(chosen, ignore_index=True)[list(COLUMNS)]

    # --- all agents -------------------------------------------------------------------------------
    def counts(self, window: Window) -> pd.DataFrame:
        """How often each kind of event happened, by agent."""
        total = np.zeros((len(self.names), len(KINDS)), dtype=np.int64)
        for piece in self.pieces(window):
            own = piece[piece["agent"] >= 0]
            np.add.at(total, (own["agent"].to_numpy(), own["kind"].cat.codes.to_numpy()), 1)
        return pd.DataFrame(total, columns=list(KINDS), index=self.names)

    # --- one agent --------------------------------------------------------------------------------
    def errors(self, agent: int) -> pd.DataFrame | None:
        """The agent's squared distances over time, where models were recorded."""
        history, arrays = self.stored.history, self.stored.arrays
        if history is None:
            return None
        columns: dict[str, Any] = {"time": self._sample_times()}
        for name, key in (("distance", "optimum"), ("l2_error", "targets")):
            if key in arrays:
                columns[name] = np.sum((history.models[:, agent] - arrays[key][agent]) ** 2, axis=1)
        return pd.DataFrame(columns)

    def _sample_times(self) -> Floats:
        assert self.stored.history is not None
        times: Floats = self.stored.trace["time"].to_numpy()[self.stored.history.samples]
        return times

    def moves(
        self, agent: int, events: pd.DataFrame, window: Window, most: int
    ) -> pd.DataFrame | None:
        """Between which samples in a window its model moved most, and what it handled meanwhile."""
        if self.stored.history is None or len(self.stored.history.samples) < 2:
            return None
        times, models = self._sample_times(), self.stored.history.models[:, agent]
        moved = np.sqrt(np.sum(np.diff(models, axis=0) ** 2, axis=1))
        moved[(times[:-1] < window.begin) | (times[1:] > window.end)] = 0.0
        handled = events[(events["kind"] == "handle") & (events["agent"] == agent)]
        rows = []
        for k in np.argsort(-moved, kind="stable")[:most].tolist():
            if moved[k] == 0:
                break
            inside = (handled["time"] > times[k]) & (handled["time"] <= times[k + 1])
            rows.append(
                {
                    "from": times[k],
                    "until": times[k + 1],
                    "moved": moved[k],
                    "messages": handled[inside],
                }
            )
        return pd.DataFrame(rows, columns=["from", "until", "moved", "messages"])


#: What is counted with a neighbour: kinds of events, and whether the row is the agent's own.
_COUNTED = {
    "sent": [("send", True)],
    "lost": [("drop", True), ("miss", False)],
    "came": [("deliver", True)],
    "lost_to_it": [("drop", False), ("miss", True)],
    "stale": [("stale", True)],
}


def contacts(events: pd.DataFrame, agent: int, end: float) -> pd.DataFrame:
    """One row a neighbour: what went there, what came from there, how late, how old at the end."""
    messages = events[events["message"] >= 0]
    other = np.where(messages["agent"] == agent, messages["peer"], messages["agent"])
    own = (messages["agent"] == agent).to_numpy()
    kind = messages["kind"].to_numpy()
    rows = []
    for peer in np.unique(other).tolist():
        here = other == peer
        counted = {
            name: sum(
                int((here & (own == its_own) & (kind == each)).sum()) for each, its_own in parts
            )
            for name, parts in _COUNTED.items()
        }
        came = messages[here & own & (kind == "deliver")]
        handled = messages[here & own & (kind == "handle")]
        delay = float((came["time"] - came["sent_at"]).median()) if len(came) else np.nan
        age = end - float(handled["sent_at"].max()) if len(handled) else np.nan
        rows.append({"peer": peer, **counted, "delay": delay, "age": age})
    return pd.DataFrame(rows, columns=["peer", *_COUNTED, "delay", "age"])


def fates(events: pd.DataFrame) -> pd.DataFrame:
    """One row a message that was sent: from whom, when, and what became of it."""
    sends = events[events["kind"] == "send"].set_index("message")
    table = pd.DataFrame(
        {
            "from": sends["agent"],
            "to": sends["peer"],
            "what": sends["what"].astype(str),
            "sent": sends["time"],
            "arrived": np.nan,
            "fate": "under way",
        }
    )
    # In the order of a message's life, so that the last one holds.
    words = {"drop": "lost", "miss": "missed", "deliver": "waiting", "handle": "handled"}
    for kind, word in {**words, "stale": "stale"}.items():
        rows = events[events["kind"] == kind].set_index("message")
        known = rows.index.intersection(table.index)
        table.loc[known, "fate"] = word
        if kind in ("miss", "deliver"):
            table.loc[known, "arrived"] = rows.loc[known, "time"]
    return table.reset_index()


def off_time(events: pd.DataFrame, agent: int, end: float) -> tuple[int, float]:
    """How often the agent went off, and how long it was off up to ``end``."""
    switches = events[(events["kind"] == "switch") & (events["agent"] == agent)]
    offs = switches.loc[switches["what"] == "off", "time"].to_numpy()
    ons = switches.loc[switches["what"] == "on", "time"].to_numpy()
    ons = np.append(ons, [end] * max(0, len(offs) - len(ons)))
    # A window may begin with a return.
    return len(offs), float(np.sum(ons[len(ons) - len(offs) :] - offs))


# --- as a trace -----------------------------------------------------------------------------------
# A track an agent; a slice for what it sends, receives and computes, and while it is off; an arrow
# from every send to its delivery.  Every arrow that begins has an end, or its message a drop or a
# miss: what is under way at the end of the run, or of the window, ends there.

#: Microseconds that a thing without length takes up, to be seen and to hold an arrow's end.
_INSTANT = 1.0
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
            yield _point(kind, time, agent)
        elif kind == "send":
            self._under_way[number] = row.peer
            yield _slice(f"{row.what} to {self._names[row.peer]}", time, agent, number)
            yield _arrow("s", time, agent, number)
        elif kind in ("drop", "miss"):
            self._under_way.pop(number, None)
            yield _point(kind, time, agent, number)
        elif kind == "deliver":
            yield _slice(f"{row.what} from {self._names[row.peer]}", time, agent, number)
            if self._under_way.pop(number, None) is not None:
                yield _arrow("f", time, agent, number)
        elif kind == "stale":
            yield _point(kind, time, agent, number)
        elif kind == "solve":
            begin = self._since.get(agent, time)
            yield _slice("solve", begin, agent, until=time)
        elif kind == "switch" and row.what == "off":
            self._off[agent] = time
        elif kind == "switch":
            yield _slice("off", self._off.pop(agent, time), agent, until=time)
        elif kind == "round":
            yield _point("round over", time, agent) | ({"s": "g"} if agent < 0 else {})

    def tail(self, end: float) -> Iterator[dict[str, Any]]:
        """What is not finished at the end."""
        for agent, since in self._off.items():
            yield _slice("off", since, agent, until=end)
        for number, receiver in self._under_way.items():
            yield _slice("still under way", end, receiver, number)
            yield _arrow("f", end, receiver, number)


def _slice(
    name: str, time: float, agent: int, message: int | None = None, until: float = 0.0
) -> dict[str, Any]:
    length = max(_INSTANT, (until - time) * 1e6)
    return _entry("X", name, time, agent, dur=length, args=_about(message))


def _point(name: str, time: float, agent: int, message: int | None = None) -> dict[str, Any]:
    return _entry("i", name, time, agent, s="t", args=_about(message))


def _arrow(end: str, time: float, agent: int, number: int) -> dict[str, Any]:
    binding = {"bp": "e"} if end == "f" else {}
    return _entry(end, "message", time, agent, cat="message", id=number, **binding)


def _entry(phase: str, name: str, time: float, agent: int, **more: Any) -> dict[str, Any]:
    place = {"ph": phase, "pid": _PROCESS, "tid": agent + 1, "ts": time * 1e6}
    return {**place, "name": name, **more}


def _about(message: int | None) -> dict[str, int]:
    return {} if message is None else {"message": message}


def write_timeline(recorded: Recorded, path: Path, window: Window) -> int:
    """Write the trace of a window; how many messages are in it."""
    sent = 0
    with replacing_file(path) as draft, draft.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [')
        for number, entry in enumerate(_entries(recorded, window)):
            text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
            file.write(f",\n{text}" if number else f"\n{text}")
            sent += entry["ph"] == "s"
        file.write("\n]}\n")
    return sent


def _entries(recorded: Recorded, window: Window) -> Iterator[dict[str, Any]]:
    tracks = _Tracks(recorded.names)
    yield from tracks.head()
    for piece in recorded.pieces(window):
        for row in piece.astype({"kind": object, "what": object}).itertuples(index=False):
            yield from tracks.of(row)
    yield from tracks.tail(min(window.end, recorded.end))
