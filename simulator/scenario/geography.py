"""Laws that depend on the agents themselves: where they are, and columns of the user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from agents.parameters import MOST_INDEX, Strict, report
from simulator.errors import ScenarioError
from simulator.scenario.laws import Constant, Law, Q
from simulator.scenario.quantities import InputFile, KilometresPerSecond, Seconds
from simulator.scenario.tables import Floats, Table, held_by, parsed, read_cells, times

#: In kilometres: the mean radius of the earth, and half and a quarter of the way around it.
EARTH, FARTHEST, FAR = 6371.0, 20015.0, 10007.0
ONE: Law[Any] = Constant[float](value=1.0)


# --- the matrix ---------------------------------------------------------------------------------
@parsed
def read_matrix(path: Path, text: str) -> tuple[list[str], Floats]:
    """Names of sites and times between them; an error names line and cell of what is wrong."""
    table = Table(path, "site", read_cells(path, text))
    names, own = table.cells.columns[1:].tolist(), table.cells.iloc[:, 0].tolist()
    if len(set(names)) != len(names) or not all(names) or not names:
        raise ScenarioError(f"{path}: the first line must name the sites, each in its own way")
    for line, given, expected in zip(table.cells.index, own, names, strict=False):
        if given != expected:
            what = f"{given!r} where {expected!r} is expected, as in line 1"
            raise ScenarioError(f"{path}:{line}: {what}")
    if len(own) != len(names):
        what = f"{len(own)} rows for {len(names)} columns; it must be square"
        raise ScenarioError(f"{path}: {what}")
    rows = [
        times(cells, lambda column, row=row: table.place(row, names[column]))  # type: ignore[misc]
        for row, cells in enumerate(table.cells.iloc[:, 1:].to_numpy().tolist())
    ]
    matrix = np.array(rows)
    matrix.flags.writeable = False
    return names, matrix


# --- laws -----------------------------------------------------------------------------------------
class Column(Law[Q]):
    """Each agent's own value: a column of numbers of the agents' file (task.agents, a CSV file)."""

    kind: Literal["column"] = "column"
    column: str
    """The column's name."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Nothing is drawn: ``simulator.engines.setup`` reads the column."""
        raise ScenarioError(f"{{kind: column, column: {self.column}}} is for agents only")

    @property
    def drawn(self) -> Law[Any]:
        """1 at every use, times the agent's value."""
        return ONE

    @property
    def mean_value(self) -> float:
        """Not known before the file is read: 1 stands for it."""
        return 1.0

    @property
    def rare_value(self) -> float:
        """Not known before the file is read: 1 stands for it."""
        return 1.0


class Geographic(Law[Q]):
    """A latency that is fixed by the two ends of a link, times a jitter of mean 1."""

    jitter: Law[Any]
    """A law of mean 1 that multiplies each message's latency."""

    @property
    def drawn(self) -> Law[Any]:
        """The jitter."""
        return self.jitter

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """The jitter."""
        return self.jitter.draw(rng, size)


class BySite(Geographic[Q]):
    """As a matrix says, from the sender's site to the receiver's.

    A CSV file: the first line and the first column name the sites, in the same order; the cells
    are times, in seconds or with a unit.
    """

    kind: Literal["sites"] = "sites"
    file: Annotated[InputFile, held_by(read_matrix)]
    """The matrix: sites in the first line and the first column, times in seconds in the cells."""
    round_trip: bool = False
    """Are the times of the file there and back?  Then one way takes half of them."""

    def matrix(self) -> tuple[list[str], Floats]:
        """The sites' names, and one-way times (from, to)."""
        names, times = read_matrix(self.file)
        return names, times / 2 if self.round_trip else times

    @property
    def mean_value(self) -> float:
        """The mean of the matrix."""
        return float(self.matrix()[1].mean())

    @property
    def rare_value(self) -> float:
        """The slowest way, with a rare jitter."""
        return float(self.matrix()[1].max()) * self.jitter.rare_value


class ByDistance(Geographic[Q]):
    """(base + great-circle distance / speed) × jitter, from columns of the agents' file."""

    kind: Literal["distance"] = "distance"
    base: Seconds = 0.0
    """What every message takes, however near."""
    speed: KilometresPerSecond = 200_000.0
    """Of light in glass, by default."""
    latitude: str = "latitude"
    """The column of latitudes, in degrees north."""
    longitude: str = "longitude"
    """The column of longitudes, in degrees east."""

    def over(self, kilometres: Any) -> Any:
        """The time for a distance."""
        return self.base + kilometres / self.speed

    @property
    def mean_value(self) -> float:
        """Between random places on the earth."""
        return float(self.over(FAR))

    @property
    def rare_value(self) -> float:
        """To the other side of the earth, with a rare jitter."""
        return float(self.over(FARTHEST)) * self.jitter.rare_value


def great_circle(latitude: Floats, longitude: Floats, one: Any, other: Any) -> Floats:
    """Kilometres between agents (haversine), given degrees (n) and the numbers of both ends."""
    north, east = np.radians(latitude), np.radians(longitude)
    between = (
        np.sin((north[one] - north[other]) / 2) ** 2
        + np.cos(north[one]) * np.cos(north[other]) * np.sin((east[one] - east[other]) / 2) ** 2
    )
    return 2 * EARTH * np.arcsin(np.sqrt(np.minimum(between, 1.0)))


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
