"""The blocks ``clock``, ``network``, ``compute`` and ``availability`` of a scenario: who wakes
when, who is off, and how long things take."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model, model_validator

from agents.parameters import MOST_INDEX, Probability, Strict, report
from simulator.errors import ScenarioError
from simulator.scenario.laws import Law
from simulator.scenario.quantities import (
    BytesPerSecond,
    InputFile,
    Percentage,
    PositiveSeconds,
    Seconds,
)
from simulator.scenario.tables import Table, held_by, parsed, read_cells, times


# Modes and kinds are compared on one scenario: hence keys of time and network that play no part
# in a mode (the clock in rounds, retransmit_after in gossip) or for a baseline are allowed there.
class Clock(Strict):
    """When an agent wakes up, and whom it then contacts; no part in synchronous rounds."""

    rate: Law[Any]
    """Ticks a second of each agent."""
    ticks: Literal["poisson", "regular"] = "poisson"
    """At the instants of a Poisson process; or every 1/rate, from a random one of the first."""
    peers: Literal["uniform", "weighted", "turn", "all"] | None = None
    """Neighbours are chosen with equal chances, in proportion to the weights, or in turn from a
    random first; in the protocol tell, and there by default, it is all of them.  Otherwise null is
    uniform."""


class GilbertElliott(Strict):
    """Bursty loss: each directed link is a two-state Markov chain in continuous time."""

    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    mean_good: PositiveSeconds
    """The mean time that a link stays good."""
    mean_bad: PositiveSeconds
    """The mean time that it stays bad."""
    drop_good: Probability = 0.0
    """The probability of loss while it is good."""
    drop_bad: Probability = 1.0
    """The probability of loss while it is bad."""

    @property
    def extremes(self) -> tuple[float, float]:
        """The probability of loss at the best and at the worst of times."""
        return min(self.drop_good, self.drop_bad), max(self.drop_good, self.drop_bad)


class RateDrop(Strict):
    """Every message is lost with the same probability, independently."""

    kind: Literal["rate"] = "rate"
    rate: Probability = 0.0
    """The probability that a message is lost."""

    @property
    def extremes(self) -> tuple[float, float]:
        """The probability of loss at the best and at the worst of times."""
        return self.rate, self.rate


def _plain_is_rate(value: Any) -> Any:
    """``0.1`` stands for ``{kind: rate, rate: 0.1}``."""
    if isinstance(value, dict):
        return {"kind": "rate", **value}
    return value if isinstance(value, Strict) else {"kind": "rate", "rate": value}


_Drop = Annotated[RateDrop | GilbertElliott, Field(discriminator="kind")]
Drop = Annotated[_Drop, BeforeValidator(_plain_is_rate, json_schema_input_type=Probability | _Drop)]


#: A time after which something is done again, or never.
Timer = Annotated[
    Annotated[Literal["never"], Tag("name")] | Annotated[PositiveSeconds, Tag("time")],
    Discriminator(lambda value: "name" if value == "never" else "time"),
]


# --- partitions ---------------------------------------------------------------------------------
def _sort_of_groups(value: Any) -> str:
    if isinstance(value, list):
        return "lists"
    return "name" if isinstance(value, str) else "number"


def _number_is_name(value: Any) -> Any:
    return str(value) if type(value) is int else value


#: An agent of a group: its name, which may look like a number.
_Name = Annotated[str, BeforeValidator(_number_is_name, json_schema_input_type=str | int)]
Groups = Annotated[
    Annotated[int, Field(ge=2, le=MOST_INDEX), Tag("number")]
    | Annotated[Literal["by site"], Tag("name")]
    | Annotated[
        list[Annotated[list[_Name], Field(min_length=1)]], Field(min_length=1), Tag("lists")
    ],
    Discriminator(_sort_of_groups),
]


class Cut(Strict):
    """While it lasts, what is sent from one group to another is lost."""

    until: PositiveSeconds
    """The end, from which on messages pass again."""
    groups: Groups
    """So many random groups of equal size, ``by site``, or lists of agents; who is in none of them
    is in one more."""

    @property
    def begin(self) -> float:
        """When it begins; ``from`` is a word of Python's."""
        return float(getattr(self, "from"))

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.begin >= self.until:
            report([("until", f"must be later than from, {self.begin:g} s (got {self.until:g} s)")])
        if isinstance(self.groups, list):
            names = [name for group in self.groups for name in group]
            twice = [name for name, count in Counter(names).items() if count > 1]
            report([("groups", f"agent {name!r} is there twice") for name in twice[:1]])
        return self


_FROM = Field(description="The beginning: what is sent from then on is lost.")
Partition: Any = create_model("Partition", __base__=Cut, **{"from": (Seconds, _FROM)})  # type: ignore[call-overload]
Partition.__doc__ = Cut.__doc__


# --- the block ------------------------------------------------------------------------------------
class Network(Strict):
    """What happens to a message on its way."""

    latency: Law[Any]
    """How long a message is under way."""
    drop: Drop = Field(default=0.0, validate_default=True)
    """The probability that a message is lost, or a law of bursts."""
    bandwidth: BytesPerSecond | None = None
    """Bytes per second of an agent's uplink; null is unlimited."""
    header: Annotated[int, Field(ge=0, le=10**9)] = 32
    """Bytes of a message beside its numbers, which have 8 each."""
    fifo: bool = False
    """Do messages on a link arrive in the order in which they were sent?"""
    retransmit_after: Timer = 1.0
    """In rounds, what has not arrived so long after it left the uplink is sent again; never waits
    for ever.  Gossip sends nothing again, and may have the key so that both modes can be compared
    on one scenario."""
    partitions: list[Cut] = Field(default=[])
    """Times in which the network is in several parts."""

    @model_validator(mode="after")
    def _one_after_another(self) -> Self:
        cuts = self.partitions
        order = sorted(range(len(cuts)), key=lambda k: cuts[k].begin)
        early = [(j, k) for j, k in pairwise(order) if cuts[k].begin < cuts[j].until]
        what = "must not be before {:g} s, when partition {} ends"
        report([(f"partitions.{k}.from", what.format(cuts[j].until, j + 1)) for j, k in early])
        return self

    @property
    def timer(self) -> float:
        """``retransmit_after`` as a number: infinite for never."""
        return math.inf if self.retransmit_after == "never" else self.retransmit_after


class Rounds(Strict):
    """For whom an agent waits in synchronous rounds, and how long; no part in gossip."""

    barrier: Literal["all", "neighbours"] = "all"
    """Nobody begins a round before everybody has finished the one before; or everybody waits for
    the messages of its own neighbours only."""
    slack: Annotated[int, Field(ge=0, le=100)] = 0
    """By how many rounds a neighbour's newest message may be behind."""
    enough: Percentage | None = None
    """An agent goes on when so many of its neighbours' messages have come, rounded up."""
    deadline: PositiveSeconds | None = None
    """It goes on when it has waited so long since its last message left."""

    @property
    def share(self) -> Fraction:
        """For which share of its neighbours an agent waits."""
        return Fraction((self.enough or "100%").removesuffix("%")) / 100

    @property
    def loose(self) -> bool:
        """May an agent go on without its neighbours' messages of its very round?"""
        return self.slack > 0 or self.share < 1 or self.deadline is not None

    @model_validator(mode="after")
    def _one_wait(self) -> Self:
        given = [key for key in ("enough", "deadline") if getattr(self, key) is not None]
        keys = [*(["slack"] if self.slack else []), *given]
        if self.barrier == "all":
            what = "a barrier for all waits for everything; it needs barrier: neighbours"
            report([(key, what) for key in keys])
        elif self.slack and given:
            report([(given[0], "does not go with slack; give one of the two")])
        return self


class Compute(Strict):
    """How long one solve takes."""

    time: Law[Any]
    """How long a solve takes."""


# --- availability -------------------------------------------------------------------------------
class OnOff(Strict):
    """Agents come and go by themselves: stays of both kinds in turn, stationary from the start."""

    kind: Literal["on_off"] = "on_off"
    on: Law[Any]
    off: Law[Any]
    forget: bool = False
    """Do agents come back with their data only, without models and copies?"""

    @property
    def share_on(self) -> float:
        """The share of time that an agent is on, in the long run."""
        return self.on.mean_value / (self.on.mean_value + self.off.mean_value)


@dataclass(frozen=True)
class Trace:
    """The rows of a trace: from then on the agent is on or off."""

    #: The agents' names; of each row its line, the place of its agent in the names, time and state.
    names: list[str]
    lines: NDArray[np.int64]
    agents: NDArray[np.int64]
    times: NDArray[np.float64]
    on: NDArray[np.bool_]


@parsed
def read_trace(path: Path, text: str) -> Trace:
    """The rows of a file with the columns agent, time and state."""
    table = Table(path, "agent", read_cells(path, text))
    cells, lines = table.cells, table.cells.index.to_numpy()
    if sorted(cells.columns) != ["agent", "state", "time"]:
        got = ", ".join(cells.columns)
        raise ScenarioError(f"{path}:1: the columns must be agent, time and state (got {got})")
    on = (cells["state"] == "on").to_numpy()
    table.refuse("state", ~on & (cells["state"] != "off").to_numpy(), "is neither on nor off")
    table.refuse("agent", (cells["agent"] == "").to_numpy(), "is no name of an agent")
    agents, names = pd.factorize(cells["agent"])
    seconds = times(cells["time"].tolist(), lambda row: table.place(row, "time"))
    order = np.argsort(agents, kind="stable")
    again = (np.diff(agents[order]) == 0) & (np.diff(seconds[order]) <= 0)
    if again.any():
        row, before = min(zip(order[1:][again], order[:-1][again], strict=True))
        what = f"must be later than agent {names[agents[row]]!r} in line {lines[before]}"
        raise table.fail(row, "time", what)
    return Trace(list(names), lines, agents, seconds, on)


class Traced(Strict):
    """Agents come and go as a file says: columns agent, time and state (on or off).

    An agent is on until its first row.
    """

    kind: Literal["trace"] = "trace"
    file: Annotated[InputFile, held_by(read_trace)]
    """The switches: columns agent, time and state, one a row."""
    forget: bool = False
    """Do agents come back with their data only, without models and copies?"""
