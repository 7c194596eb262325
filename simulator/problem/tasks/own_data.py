"""The user's own data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from agents.losses.loss import Loss
from agents.losses.quadratic import Quadratic
from agents.parameters import NonNegative
from simulator.errors import ScenarioError
from simulator.problem.problem import DataSets, Material, offsets_of
from simulator.scenario.kinds import Task
from simulator.scenario.quantities import InputFile
from simulator.scenario.tables import Floats, Table, listing, read_table, read_text

#: The name of the feature that is 1 for every point.
INTERCEPT = "intercept"


class Files(Task):
    """The user's own data: CSV files with an agent column, features and a target."""

    kind: Literal["files"] = "files"
    train: InputFile
    """Training points, one a row."""
    test: InputFile | None = None
    """Points that nobody learns from: for accuracy (loss hinge or logistic) or test_error."""
    agents: InputFile | None = None
    """One agent a line, in order; needed only where some agent has no training point.  Or a table
    with a column of agents, and others that other keys name, such as sites.column."""
    vectors: InputFile | None = None
    """Auxiliary vectors, one row an agent, for a kernel or nearest-neighbour graph."""
    targets: InputFile | None = None
    """True models, one row an agent, where they are known (for l2_error)."""
    agent: str = "agent"
    """The column that names the agent."""
    target: str = "y"
    """The column of targets or labels."""
    features: list[str] | None = None
    """Columns to use; all but the agent's and the target's by default; [] estimates a mean."""
    intercept: bool = False
    """One more feature, ``intercept``, that is 1 for every point; it comes last in the models."""
    loss: Loss = Quadratic()
    """The agents' loss."""
    ridge: NonNegative = 0.01
    """λ of the solitary hinge and logistic fits; the other losses, with which they can be compared
    on one scenario, need none.  0 is possible where every agent's fit is unique without it."""

    @property
    def has_vectors(self) -> bool:
        """Are there vectors that a graph can compare?"""
        return self.vectors is not None

    @property
    def has_test(self) -> bool:
        """Are there test points?"""
        return self.test is not None

    @property
    def has_targets(self) -> bool:
        """Are the true models known?"""
        return self.targets is not None

    @property
    def bytes_needed(self) -> float:
        """Of the text, its cells and the numbers."""
        files = (self.train, self.test, self.agents, self.vectors, self.targets)
        return sum(10.0 * file.stat().st_size for file in files if file is not None)

    @property
    def has_columns(self) -> bool:
        """Yes."""
        return True

    def build(self, rng: Any) -> Material:
        """CSV files whose first line names the columns."""
        return self.with_times(None)

    def with_times(self, time: str | None) -> Material:
        """The same, with a column of the training file that says when each point arrives."""
        tables = [read_table(file, self.agent) for file in (self.train, self.test) if file]
        about = None
        if self.agents is not None and has_columns(self.agents, self.agent):
            about = read_table(self.agents, self.agent)
            names = only_once(about)
        else:
            names = names_in(tables) if self.agents is None else listed(self.agents)
        features = self._columns(tables[0], time)
        train, arrivals = tables[0], None
        if time is not None:
            if time not in train.cells.columns:
                what = f"{train.path} has no column {time!r}"
                what = f"{what}; the columns are {listing(list(train.cells.columns))}"
                raise ScenarioError(f"stream.column: {what}")
            arrivals = train.numbers(time)
        common = names, features, self.target, self.intercept
        sets = [data_sets(train, *common, arrivals)]
        sets += [data_sets(test, *common) for test in tables[1:]]
        if self.loss.labels:
            if not features and not self.intercept:
                raise ScenarioError(
                    f"task.features: the {self.loss.kind} loss needs at least one feature"
                )
            what = f"is no label; the {self.loss.kind} loss allows -1 and 1"
            for table in tables:
                table.refuse(self.target, np.abs(table.numbers(self.target)) != 1, what)
        vectors = None
        if self.vectors is not None:
            vectors = one_row_an_agent(read_table(self.vectors, self.agent), names, None)
        targets = None
        if self.targets is not None:
            keys = [*features, *([INTERCEPT] if self.intercept else [])]
            targets = one_row_an_agent(read_table(self.targets, self.agent), names, keys)
        test = sets[1] if len(sets) > 1 else None
        if arrivals is not None:
            arrivals = arrivals[np.lexsort((arrivals, train.agents(names)))]
        return Material(names, sets[0], test, targets, vectors, about, arrivals)

    def _columns(self, train: Table, time: str | None) -> list[str]:
        """The features."""
        reserved = (self.agent, self.target, time)
        if time in (self.agent, self.target):
            raise ScenarioError(f"stream.column: {time!r} is the agent's or the target's column")
        if self.agent == self.target:
            raise ScenarioError(f"task.agent and task.target are the same column {self.agent!r}")
        columns = self.features
        if columns is None:
            columns = [column for column in train.cells.columns if column not in reserved]
        if self.intercept and INTERCEPT in columns:
            what = f"{self.train} has a column {INTERCEPT!r} already; leave one out"
            raise ScenarioError(f"task.intercept: {what}")
        for column in columns:
            if column in reserved:
                what = "is the agent's or the target's column"
                what = "is the column of times" if column == time else what
                raise ScenarioError(f"task.features: {column!r} {what}")
            if columns.count(column) > 1:
                raise ScenarioError(f"task.features: {column!r} is there twice")
        return columns


# --- what its files hold --------------------------------------------------------------------------
def data_sets(
    table: Table,
    names: Sequence[str],
    features: list[str],
    target: str,
    intercept: bool,
    times: Floats | None = None,
) -> DataSets:
    """The rows grouped by agent, in the order of times, then of the file; no features: a mean.

    With an intercept every point has one feature more, 1.
    """
    table.require(target, "target")
    for column in features:
        table.require(column, "features")
    agents = table.agents(names)
    order = np.argsort(agents, kind="stable") if times is None else np.lexsort((times, agents))
    columns = [table.numbers(column) for column in features]
    columns += [np.ones(len(order))] if intercept else []
    X = np.column_stack(columns)[order] if columns else None
    sizes = np.bincount(agents, minlength=len(names))
    return DataSets(X, table.numbers(target)[order], offsets_of(sizes))


def names_in(tables: list[Table]) -> list[str]:
    """The agents that have points: as integers in their order if all are, as strings otherwise."""
    names = pd.unique(pd.concat([table.cells[table.agent] for table in tables])).tolist()
    try:
        return sorted(names, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(names)


def listed(path: Path) -> list[str]:
    """One agent a line; blank lines and those that begin with # are left out."""
    seen: dict[str, int] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if name in seen:
            raise ScenarioError(f"{path}:{number}: agent {name!r} is already in line {seen[name]}")
        seen[name] = number
    if not seen:
        raise ScenarioError(f"{path}: no agents; expected one name a line")
    return list(seen)


def has_columns(path: Path, agent: str) -> bool:
    """Is a file of agents a table, with several columns or one that is called ``agent``?"""
    try:
        with path.open(encoding="utf-8-sig") as file:
            titles = [title.strip(' "\n') for title in file.readline().split(",")]
    except (OSError, UnicodeDecodeError):  # whoever reads it will say so
        return False
    return len(titles) > 1 or agent in titles


def only_once(table: Table) -> list[str]:
    """The agents of a table, in its order, each of which has one row."""
    names = table.cells[table.agent]
    twice = names.duplicated().to_numpy()
    table.refuse(table.agent, twice, "is there twice; each agent has one row")
    return [str(name) for name in names]


def one_row_an_agent(table: Table, names: Sequence[str], features: list[str] | None) -> Floats:
    """Vectors (n, d), or with ``features`` models (n, p) in the order of the features.

    Columns that are called like the features are taken by name, others by their order.
    """
    columns = [column for column in table.cells.columns if column != table.agent]
    if not columns:
        raise ScenarioError(f"{table.path}: no column of numbers beside {table.agent!r}")
    if features is not None:
        if len(columns) != max(len(features), 1):
            raise ScenarioError(
                f"{table.path}: {len(columns)} columns of numbers ({listing(columns)}); "
                f"a model has {max(len(features), 1)}"
            )
        if set(columns) == set(features):
            columns = features
    agents = table.agents(names)
    only_once(table)
    missing = np.setdiff1d(np.arange(len(names)), agents)
    if len(missing):
        raise ScenarioError(f"{table.path}: no row for agent {listing(names, missing)}")
    values = np.column_stack([table.numbers(column) for column in columns])
    return values[np.argsort(agents)]
