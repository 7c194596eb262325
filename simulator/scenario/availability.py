"""Devices that come and go, and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agents.parameters import MOST_INDEX, Strict, report
from simulator.errors import ScenarioError
from simulator.scenario.cells import held_by, read_cells, read_text, times
from simulator.scenario.laws import Law
from simulator.scenario.quantities import InputFile


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

    @property
    def order(self) -> NDArray[np.int64]:
        """The rows agent by agent, each agent's in the order of the file."""
        return np.argsort(self.agents, kind="stable")


def read_trace(path: Path) -> Trace:
    """The rows of a file with the columns agent, time and state."""
    return _trace_in(path, read_text(path))


@lru_cache(maxsize=4)
def _trace_in(path: Path, text: str) -> Trace:
    cells = read_cells(path, text)
    if sorted(cells.columns) != ["agent", "state", "time"]:
        got = ", ".join(cells.columns)
        raise ScenarioError(f"{path}:1: the columns must be agent, time and state (got {got})")
    for column, wrong, what in (
        ("state", ~cells["state"].isin(["on", "off"]), "is neither on nor off"),
        ("agent", cells["agent"] == "", "is no name of an agent"),
    ):
        for line, cell in cells[column][wrong].items():
            raise ScenarioError(f"{path}:{line}: column {column!r}: {cell!r} {what}")
    agents, names = pd.factorize(cells["agent"])
    seconds = times(cells["time"].tolist(), lambda row: f"{path}:{cells.index[row]}: column 'time'")
    trace = Trace(
        list(names), cells.index.to_numpy(), agents, seconds, (cells["state"] == "on").to_numpy()
    )
    order = trace.order
    again = (np.diff(agents[order]) == 0) & (np.diff(seconds[order]) <= 0)
    if again.any():
        row, before = min(zip(order[1:][again], order[:-1][again], strict=True))
        time, agent = cells["time"].iloc[row], names[agents[row]]
        raise ScenarioError(
            f"{path}:{trace.lines[row]}: column 'time': {time!r} must be later than agent "
            f"{agent!r} in line {trace.lines[before]}"
        )
    return trace


class Traced(Strict):
    """Agents come and go as a file says: columns agent, time and state (on or off).

    An agent is on until its first row.
    """

    kind: Literal["trace"] = "trace"
    file: Annotated[InputFile, held_by(read_trace)]
    """The switches: columns agent, time and state, one a row."""
    forget: bool = False
    """Do agents come back with their data only, without models and copies?"""


Availability = OnOff | Traced


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
