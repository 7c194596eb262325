"""The learning problem of a run: who has which data, who knows whom, and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from agents.losses import Loss
from agents.machinery.code_errors import read_only
from simulator.scenario.tables import Floats as Floats
from simulator.scenario.tables import Ints, Table
from simulator.showing import Shown

Point = tuple[Floats | None, Floats]


def offsets_of(sizes: Ints) -> Ints:
    """Where each agent's points begin, (n + 1), from their numbers (n)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


class DataSets(Sequence[Point]):
    """The agents' data sets, stored end to end; item i is agent i's ``(X, y)``.

    ``X`` has one row a point and is None for the estimation of a mean; ``offsets`` (n + 1) says
    where each agent's points begin.
    """

    def __init__(self, X: Floats | None, y: Floats, offsets: Ints):
        self.X, self.y, self.offsets = X, y, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Point:  # type: ignore[override]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        points = slice(self.offsets[i % len(self)], self.offsets[i % len(self) + 1])
        return (None if self.X is None else self.X[points]), self.y[points]

    def read_only(self) -> DataSets:
        """The same for those who only look."""
        return DataSets(_locked(self.X), read_only(self.y), read_only(self.offsets))

    @property
    def sizes(self) -> Ints:
        """m_i, the number of points of each agent."""
        return np.diff(self.offsets)

    @property
    def owner(self) -> Ints:
        """The agent of each point."""
        return np.repeat(np.arange(len(self)), self.sizes)


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
    #: When each point arrives, where a column of the user's says so.
    times: Floats | None = None


@dataclass(frozen=True, repr=False)
class Problem(Shown):
    """The learning problem of a run: who has which data, who knows whom, what would be right.

    n agents with models in R^p on a weighted graph.
    """

    #: (n, n) symmetric, nonnegative, empty diagonal, indices sorted.
    W: csr_array
    loss: Loss
    data: DataSets
    #: c_i in [0, 1], and the solitary models (n, p).
    confidence: Floats
    solitary: Floats
    #: True models (n, p), test points and auxiliary vectors (n, d), where there are any.
    targets: Floats | None
    test: DataSets | None
    vectors: Floats | None
    #: The agents' names, as the user's files call them; their numbers otherwise.
    names: list[str]
    #: Remarks for the user, such as "the graph falls into 2 parts".
    notes: tuple[str, ...] = ()
    #: The user's table of agents, one row each in their order, where there is one.
    about: Table | None = None
    #: When each point arrives, where a column of the user's says so.
    times: Floats | None = None

    @property
    def n(self) -> int:
        """The number of agents."""
        return len(self.confidence)

    @property
    def p(self) -> int:
        """The dimension of a model."""
        return int(self.solitary.shape[1])

    @cached_property
    def D(self) -> Floats:
        """D_ii = Σ_j W_ij."""
        return np.asarray(self.W.sum(axis=1), dtype=float).ravel()

    @property
    def undetermined(self) -> bool:
        """Is there a connected part of the graph in which nobody has data (yet)?"""
        count, part = connected_components(self.W, directed=False)
        return bool((np.bincount(part, self.data.sizes, count) == 0).any())

    def at(self, counts: NDArray[np.int64], confidence: Floats, solitary: Floats) -> Problem:
        """The same with the first ``counts`` points of each agent alone, and what follows."""
        data = self.data
        place = np.arange(len(data.y)) - np.repeat(data.offsets[:-1], data.sizes)
        there = place < np.repeat(counts, data.sizes)
        X = None if data.X is None else data.X[there]
        now = DataSets(X, data.y[there], offsets_of(counts))
        return replace(self, data=now, confidence=confidence, solitary=solitary)

    def title(self) -> str:
        """Its size."""
        points = f"{int(self.data.sizes.sum()):,} points"
        graph = f"{self.n:,} agents, {self.W.nnz // 2:,} edges"
        return f"Problem: {graph}, models in R^{self.p}, {self.loss.kind} loss, {points}"

    def table(self) -> pd.DataFrame:
        """One row an agent."""
        return pd.DataFrame(
            {
                "agent": self.names,
                "points": self.data.sizes,
                "confidence": self.confidence,
                "degree": self.D,
            }
        )

    def read_only(self) -> Problem:
        """The same for those who only look: its arrays can't be changed, and are not copied."""
        W = copy(self.W)
        W.data, W.indices, W.indptr = map(read_only, (W.data, W.indices, W.indptr))
        arrays = ("confidence", "solitary", "targets", "vectors")
        shown: dict[str, Any] = {name: _locked(getattr(self, name)) for name in arrays}
        test = None if self.test is None else self.test.read_only()
        same = replace(self, W=W, data=self.data.read_only(), test=test, **shown)
        vars(same)["D"] = read_only(self.D)  # where cached_property keeps it
        return same


def _locked(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else read_only(array)
