"""A network that lives: devices that come and go, partitions, and where the agents are."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from agents.parameters import MOST_INDEX, Strict, report
from simulator.machine import require_readable
from simulator.scenario.laws import Law
from simulator.scenario.quantities import InputFile, PositiveSeconds, Seconds

_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)
_STATES = {"on": True, "off": False}


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
class Switch:
    """A line of a trace: from then on the agent is on or off."""

    line: int
    agent: str
    time: float
    on: bool


def read_switches(path: Path) -> list[Switch]:
    """The rows of a file with the columns agent, time and state; ValueError says what is wrong."""
    try:
        require_readable(path)
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    names = [cell.strip() for cell in next(lines, [])]
    if sorted(names) != ["agent", "state", "time"]:
        raise ValueError(
            f"{path.name}:1: the columns must be agent, time and state (got {', '.join(names)})"
        )
    switches: list[Switch] = []
    last: dict[str, Switch] = {}
    for number, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            raise ValueError(f"{path.name}:{number}: {len(cells)} cells; must be 3")
        row = dict(zip(names, (cell.strip() for cell in cells), strict=True))
        switch = _switch(f"{path.name}:{number}", number, row)
        before = last.get(switch.agent)
        if before is not None and switch.time <= before.time:
            raise ValueError(
                f"{path.name}:{number}: column 'time': {row['time']!r} must be later than agent "
                f"{switch.agent!r} in line {before.line}"
            )
        last[switch.agent] = switch
        switches.append(switch)
    return switches


def _switch(place: str, number: int, row: dict[str, str]) -> Switch:
    if row["state"] not in _STATES:
        raise ValueError(f"{place}: column 'state': {row['state']!r} is neither on nor off")
    if not row["agent"]:
        raise ValueError(f"{place}: column 'agent': '' is no name of an agent")
    return Switch(number, row["agent"], read_seconds(place, "time", row["time"]), _is_on(row))


def _is_on(row: dict[str, str]) -> bool:
    return _STATES[row["state"]]


def read_seconds(place: str, column: str, text: str) -> float:
    """A time in a cell: seconds, or a number with a unit."""
    try:
        number = float(text)
    except ValueError:
        try:
            return _SECONDS.validate_python(text)
        except ValidationError:
            number = math.nan
    if not (number >= 0 and math.isfinite(number)):
        what = "is not a time: a number from 0, in seconds or with a unit like '8 h'"
        raise ValueError(f"{place}: column {column!r}: {text!r} {what}")
    return number


def _holds_switches(path: Path) -> Path:
    read_switches(path)
    return path


class Traced(Strict):
    """Agents come and go as a file says: columns agent, time and state (on or off).

    An agent is on until its first row.
    """

    kind: Literal["trace"] = "trace"
    file: Annotated[InputFile, AfterValidator(_holds_switches)]
    """The trace."""
    forget: bool = False
    """Do agents come back with their data only, without models and copies?"""


Availability = OnOff | Traced


# --- partitions ---------------------------------------------------------------------------------
def _sort_of_groups(value: Any) -> str:
    if isinstance(value, list):
        return "lists"
    return "name" if isinstance(value, str) else "number"


#: An agent of a group: its name, which may look like a number.
_Name = Annotated[str | int, AfterValidator(str)]
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
            twice = [name for k, name in enumerate(names) if name in names[:k]]
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


# --- sites --------------------------------------------------------------------------------------
class Sites(Strict):
    """Where agents are: as a column of the agents' file says, or at random."""

    column: str | None = None
    """A column of task.agents, a CSV file, with the name of each agent's site."""
    random: Annotated[int, Field(ge=1, le=MOST_INDEX)] | None = None
    """So many sites, to which agents are assigned at random."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.column is None) == (self.random is None):
            report([("column", "give column or random, and not both")])
        return self
