"""Tables of the user's files: text, cells with line numbers, and the agents' rows in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.parameters import MOST
from simulator.errors import ScenarioError
from simulator.problem.problem import DataSets, offsets_of
from simulator.scenario.cells import listing, numbers, read_cells, read_text

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: The name of the feature that is 1 for every point.
INTERCEPT = "intercept"


@dataclass(frozen=True)
class Table:
    """A CSV file as strings; ``cells.index`` holds line numbers."""

    path: Path
    agent: str
    cells: pd.DataFrame

    def require(self, column: str, key: str) -> None:
        """The column exists."""
        if column not in self.cells.columns:
            raise ScenarioError(
                f"{self.path}: no column {column!r} (task.{key}); "
                f"the columns are {listing(list(self.cells.columns), limit=12)}"
            )

    def fail(self, row: int, column: str, problem: str) -> ScenarioError:
        """An error at a cell."""
        value = self.cells[column].iloc[row]
        return ScenarioError(
            f"{self.path}:{self.cells.index[row]}: column {column!r}: {value!r} {problem}"
        )

    def numbers(self, column: str) -> Floats:
        """The column's finite numbers."""
        values = numbers(self.cells[column])
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise self.fail(wrong[0], column, "is not a finite number")
        extreme = np.flatnonzero(np.abs(values) > MOST)
        if len(extreme):
            raise self.fail(extreme[0], column, f"is too large; at most {MOST:g} is allowed")
        return values

    def agents(self, names: Sequence[str]) -> Ints:
        """The number of each row's agent."""
        given = pd.Index(self.cells[self.agent])
        found = pd.Index(names).get_indexer(given).astype(np.int64)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            allowed = f"is not an agent; the agents are {listing(names)}"
            raise self.fail(unknown[0], self.agent, allowed)
        return found

    def data_sets(
        self, names: Sequence[str], features: list[str], target: str, *, intercept: bool = False
    ) -> DataSets:
        """The rows grouped by agent, in the order of the file; no features: a mean.

        With an intercept every point has one feature more, 1.
        """
        self.require(target, "target")
        for column in features:
            self.require(column, "features")
        agents = self.agents(names)
        order = np.argsort(agents, kind="stable")
        columns = [self.numbers(column) for column in features]
        columns += [np.ones(len(order))] if intercept else []
        X = np.column_stack(columns)[order] if columns else None
        sizes = np.bincount(agents, minlength=len(names))
        return DataSets(X, self.numbers(target)[order], offsets_of(sizes))

    def require_labels(self, target: str, loss: str) -> None:
        """The targets are −1 or +1."""
        wrong = np.flatnonzero(np.abs(self.numbers(target)) != 1)
        if len(wrong):
            raise self.fail(wrong[0], target, f"is no label; the {loss} loss allows -1 and 1")


def read_table(path: Path, agent: str) -> Table:
    """A CSV file with a column of agents, every row with a name."""
    cells = read_cells(path, read_text(path))
    repeated = cells.columns[cells.columns.duplicated()]
    if len(repeated):
        raise ScenarioError(f"{path}: two columns are called {repeated[0]!r}")
    table = Table(path, agent, cells)
    table.require(agent, "agent")
    if cells.empty:
        raise ScenarioError(f"{path}: no rows below the line of column names")
    nameless = np.flatnonzero(cells[agent] == "")
    if len(nameless):
        raise table.fail(nameless[0], agent, "is no name of an agent")
    return table


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
    again = np.flatnonzero(names.duplicated())
    if len(again):
        raise table.fail(again[0], table.agent, "is there twice; each agent has one row")
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
    again = np.flatnonzero(pd.Series(agents).duplicated())
    if len(again):
        raise table.fail(again[0], table.agent, "is there twice; each agent has one row")
    missing = np.setdiff1d(np.arange(len(names)), agents)
    if len(missing):
        raise ScenarioError(f"{table.path}: no row for agent {listing(names, missing)}")
    values = np.column_stack([table.numbers(column) for column in columns])
    return values[np.argsort(agents)]
