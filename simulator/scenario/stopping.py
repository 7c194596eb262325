"""The blocks ``stop`` and ``record`` of a scenario: when a run ends, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from agents.parameters import Count, Strict, report
from simulator.scenario.kinds import Metric
from simulator.scenario.quantities import Level, PositiveSeconds

#: Samples a run by default; fewer where there are so many agents that measuring takes long.
DEFAULT_SAMPLES, FEW_SAMPLES, MANY_AGENTS = 200, 20, 50_000
MOST_SAMPLES = 1_000_000


class Stop(Strict):
    """The run ends at whichever comes first."""

    #: All metrics by kind.
    known: ClassVar[Mapping[str, type[Metric]]] = {}

    time: PositiveSeconds | None = None
    """The simulated time of the end, events at that instant included."""
    communications: Count | None = None
    """The number of messages; the event (in rounds: the round) that reaches it is the last."""
    metric: str | None = None
    """A metric that ends the run when it reaches ``below`` (or ``above``)."""
    below: Level | None = None
    """A number, or a percentage of the metric's value at the start of the run, like 1%."""
    above: float | None = None
    """A level from below, for metrics that grow, such as accuracy."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.time is None and self.communications is None:
            raise ValueError("a run needs a limit: time, communications, or both")
        metric = self.known.get(self.metric or "", Metric)
        level, other = ("above", "below") if metric.grows else ("below", "above")
        if self.metric is None:
            given = [key for key in ("below", "above") if getattr(self, key) is not None]
            report([(key, "needs a metric, e.g. metric: distance") for key in given])
        elif getattr(self, other) is not None:
            direction = "grows" if other == "below" else "shrinks"
            report([(other, f"{self.metric} {direction} as agents learn: use {level}")])
        elif getattr(self, level) is None:
            report([("metric", f"{self.metric} needs a level to stop at: {level}")])
        elif not metric.relative and isinstance(self.below, str):
            what = f"a share of {self.metric} at the start means nothing: give a number"
            report([("below", what)])
        return self


class Record(Strict):
    """When samples are taken: every so many seconds or communications, or so many in all.

    And what is kept besides.
    """

    every: PositiveSeconds | None = None
    """Seconds between samples."""
    every_communications: Count | None = None
    """Messages between samples."""
    samples: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """At least so many samples and at most twice as many, evenly in time, however long the run."""
    only: list[str] | None = None
    """The metrics to measure; null is all that there are."""
    events: bool = False
    """Is the life of every message written to events.parquet?  It needs the extra events."""
    models: bool = False
    """Are the models of all samples written to history.npz?"""

    @model_validator(mode="after")
    def _one(self) -> Self:
        keys = ("every", "every_communications", "samples")
        given = [key for key in keys if getattr(self, key) is not None]
        if len(given) > 1:
            report([(given[1], f"give {given[0]} or {given[1]}, not both")])
        return self
