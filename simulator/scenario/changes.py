"""What changes in a run: data that arrive."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from agents.parameters import MOST_COUNT, Strict, report


class Stream(Strict):
    """Points arrive one by one: after random gaps, or when a column of task.train says so."""

    gaps: Any = None
    """The time between two points of an agent, in their order."""
    first: Annotated[int, Field(ge=0, le=MOST_COUNT)] | None = None
    """How many points each agent has at time 0, beside gaps; 1 by default."""
    column: Annotated[str, Field(min_length=1)] | None = None
    """Or the column of task.train that has the time of each point; up to 0: there at first."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.gaps is None) == (self.column is None):
            report([("gaps", "give either gaps, the times between points, or a column")])
        if self.column is not None and self.first is not None:
            report([("first", "the column says which points are there at first; leave it out")])
        return self

    @property
    def at_first(self) -> int:
        """How many points each agent has at time 0, where there are gaps."""
        return 1 if self.first is None else self.first
