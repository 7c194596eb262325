"""What a task gives, and how many points its agents have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from agents.parameters import MOST_COUNT, Count, Probability, Strict, report
from simulator.problem.problem import DataSets
from simulator.scenario.kinds import one_of
from simulator.scenario.tables import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Material:
    """What a task gives: data, and whatever else is known about the agents."""

    names: list[str]
    data: DataSets
    test: DataSets | None = None
    targets: Floats | None = None
    vectors: Floats | None = None
    #: The user's table of agents, one row each in the order of the names, where there is one.
    about: Table | None = None


# --- how many points an agent has ---------------------------------------------------------------
class ConfidenceWidth(Strict):
    """Section 5.1: c_i uniform around 1/2 with the given width, m_i = ceil(c_i · max)."""

    kind: Literal["confidence_width"] = "confidence_width"
    width: Probability = 1.0
    """How much confidences differ."""
    max: Count = 100
    """Points of an agent with confidence 1."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        c = rng.uniform(0.5 - self.width / 2, 0.5 + self.width / 2, n)
        return np.ceil(c * self.max).astype(np.int64)

    @property
    def mean(self) -> float:
        """The mean of m_i."""
        return self.max / 2


class UniformCount(Strict):
    """Section 5.2: m_i uniform on low … high, both included; 0 is an agent without data."""

    kind: Literal["uniform"] = "uniform"
    low: Annotated[int, Field(ge=0, le=MOST_COUNT)] = 1
    """The least number of points."""
    high: Count = 20
    """The greatest."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        return rng.integers(self.low, self.high, n, endpoint=True)

    @property
    def mean(self) -> float:
        """The mean of m_i."""
        return (self.low + self.high) / 2

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            report([("low", f"must not exceed high, {self.high} (got {self.low})")])
        return self


class FixedCount(Strict):
    """Every agent has ``value`` points."""

    kind: Literal["constant"] = "constant"
    value: Count
    """Points an agent."""

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """m_i, (n,)."""
        return np.full(n, self.value)

    @property
    def mean(self) -> float:
        """m_i."""
        return self.value


def kind_by_default(kind: str) -> BeforeValidator:
    """A block without ``kind`` is of this one."""

    def fill(value: Any) -> Any:
        return {"kind": kind, **value} if isinstance(value, dict) else value

    return BeforeValidator(fill)


Samples = one_of([ConfidenceWidth, UniformCount, FixedCount])
