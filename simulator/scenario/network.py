"""The blocks ``clock``, ``network`` and ``compute`` of a scenario: who wakes when, and how long
things take."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model, model_validator

from agents.parameters import MOST_INDEX, Probability, Strict, report
from simulator.scenario.laws import Law
from simulator.scenario.quantities import BytesPerSecond, PositiveSeconds, Seconds


# Modes and kinds are compared on one scenario: hence keys of time and network that play no part
# in a mode (the clock in rounds, retransmit_after in gossip) or for a baseline are allowed there.
class Clock(Strict):
    """Poisson clocks, and whom an agent that wakes up contacts; no part in synchronous rounds."""

    rate: Law[Any]
    """Ticks a second of each agent."""
    peers: Literal["uniform", "weighted"] = "uniform"
    """Neighbours are chosen with equal chances, or in proportion to the weights."""


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


def overlaps(cuts: list[Cut]) -> list[tuple[str, str]]:
    """Partitions that begin before an earlier one has ended."""
    order = sorted(range(len(cuts)), key=lambda k: cuts[k].begin)
    return [
        (f"{k}.from", f"must not be before {cuts[j].until:g} s, when partition {j + 1} ends")
        for j, k in pairwise(order)
        if cuts[k].begin < cuts[j].until
    ]


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
        report([(f"partitions.{key}", what) for key, what in overlaps(self.partitions)])
        return self

    @property
    def timer(self) -> float:
        """``retransmit_after`` as a number: infinite for never."""
        return math.inf if self.retransmit_after == "never" else self.retransmit_after


class Compute(Strict):
    """How long one solve takes."""

    time: Law[Any]
    """How long a solve takes."""
