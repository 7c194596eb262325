"""The learning problem of a scenario: the agents' data, their solitary models and their graph.

Generated data come from the stream ``data`` alone and the graph from ``graph`` alone, each task
drawing in the order that its function states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.losses import LOSSES
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.problem.graphs import (
    build_graph,
    connected_parts,
    listing,
    numbers,
    read_cells,
    read_text,
)
from simulator.problem.problem import DataSets, Problem
from simulator.scenario.problem import (
    ConfidenceWidth,
    Files,
    FixedCount,
    LinearClassification,
    MeanEstimation,
    Samples,
)
from simulator.scenario.quantities import MOST
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams

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


def build_problem(scenario: Scenario, streams: Streams) -> Problem:
    """The problem that the scenario describes; the same seed gives the same problem."""
    task, graph = scenario.task, scenario.graph
    ridge = 0.0
    loss = LOSSES["quadratic"]()
    if isinstance(task, MeanEstimation):
        material = _moons(task, streams.data)
    else:
        loss, ridge = LOSSES[task.loss](), task.ridge
        if isinstance(task, LinearClassification):
            material = _separators(task, streams.data)
        else:
            material = _from_files(task)
    names, data = material.names, material.data
    W = build_graph(
        graph,
        names,
        material.targets if material.vectors is None else material.vectors,
        streams.graph,
        angular=isinstance(task, LinearClassification),
    )
    part, remark = connected_parts(W, names, graph.allow_disconnected)
    _somebody_has_data(part, data.sizes, names)
    try:
        solitary = loss.fit_all(data.X, data.y, data.offsets, ridge)
    except ValueError as error:
        raise ScenarioError(f"task: {error}") from None
    wrong = np.flatnonzero(~np.isfinite(solitary).all(axis=1))
    if len(wrong):
        raise ScenarioError(
            f"task: the solitary model of agent {listing(names, wrong)} is not finite; "
            "the numbers of its training points are too large"
        )
    return Problem(
        W=W,
        loss=loss,
        data=data,
        confidence=confidence(data.sizes, scenario.algorithm.confidence == "data"),
        solitary=solitary,
        targets=material.targets,
        test=material.test,
        vectors=material.vectors,
        names=names,
        notes=() if remark is None else (remark,),
    )


def confidence(sizes: Ints, by_data: bool) -> Floats:
    """c_i = m_i / max_j m_j, or C = I (label propagation); 0 for an agent without data."""
    return sizes / sizes.max() if by_data else (sizes > 0).astype(float)


def _somebody_has_data(part: Ints, sizes: Ints, names: Sequence[str]) -> None:
    """In each connected part of the graph: otherwise its models would be anything at all."""
    without = np.bincount(part, weights=sizes) == 0
    if without.any():
        agents = np.flatnonzero(part == np.flatnonzero(without)[0])
        raise ScenarioError(
            f"a connected part of the graph in which no agent has data: agent "
            f"{listing(names, agents)}; at least one needs a training point"
        )


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


# --- generated data -----------------------------------------------------------------------------
def _sizes(samples: Samples, n: int, rng: np.random.Generator) -> Ints:
    """m_i (n), the number of points of each agent."""
    if isinstance(samples, FixedCount):
        return np.full(n, samples.value)
    if isinstance(samples, ConfidenceWidth):
        c = rng.uniform(0.5 - samples.width / 2, 0.5 + samples.width / 2, n)
        return np.ceil(c * samples.max).astype(np.int64)
    return rng.integers(samples.low, samples.high, n, endpoint=True)


def _mean_size(samples: Samples) -> float:
    """The mean of m_i."""
    if isinstance(samples, FixedCount):
        return samples.value
    if isinstance(samples, ConfidenceWidth):
        return samples.max / 2
    return (samples.low + samples.high) / 2


def _moons(task: MeanEstimation, rng: np.random.Generator) -> Material:
    """Section 5.1: the first half of the agents on the upper moon (mean 1), the rest below (−1).

    Drawn in this order: places on the moons, their noise, sizes, samples.
    """
    n = task.agents
    require_memory(n * 500 + n * _mean_size(task.samples) * 24, "task: the agents and their points")
    upper = np.arange(n) < (n + 1) // 2
    t = rng.uniform(0, np.pi, n)
    x = np.where(upper, np.cos(t), 1 - np.cos(t))
    y = np.where(upper, np.sin(t), 0.5 - np.sin(t))
    vectors = np.column_stack((x, y)) + task.noise * rng.standard_normal((n, 2))
    means = np.where(upper, 1.0, -1.0)
    sizes = _sizes(task.samples, n, rng)
    samples = np.sqrt(task.variance) * rng.standard_normal(sizes.sum())
    samples += np.repeat(means, sizes)
    return Material(
        names=[str(i) for i in range(n)],
        data=DataSets(None, samples, _offsets(sizes)),
        targets=means[:, None],
        vectors=vectors,
    )


def _separators(task: LinearClassification, rng: np.random.Generator) -> Material:
    """Section 5.2: each agent's label is the side of its own plane, now and then flipped.

    Drawn in this order: targets, sizes, training points, their flips, test points, their flips;
    a uniform number decides each flip, whatever the probability.
    """
    n = task.agents
    # Of each point its features, and a few models of each agent.
    rows = n * (_mean_size(task.samples) + task.test_points) + 5 * n
    needed = n * 500 + rows * task.dimension * 8
    require_memory(needed, "task: the agents' points of so many dimensions")
    targets = np.zeros((n, task.dimension))
    targets[:, :2] = rng.standard_normal((n, 2))

    def labelled(sizes: Ints, flip: float) -> DataSets:
        X = _points(task.points, int(sizes.sum()), task.dimension, rng)
        # Only the first two entries of a target differ from 0.
        side = np.einsum("mp,mp->m", X[:, :2], np.repeat(targets[:, :2], sizes, axis=0))
        flipped = rng.random(len(X)) < flip
        return DataSets(X, np.where((side >= 0) ^ flipped, 1.0, -1.0), _offsets(sizes))

    data = labelled(_sizes(task.samples, n, rng), task.flip)
    test = labelled(np.full(n, task.test_points), task.flip if task.test_flip else 0.0)
    return Material([str(i) for i in range(n)], data, test, targets)


def _points(law: str, count: int, p: int, rng: np.random.Generator) -> Floats:
    """Points (count, p), uniform on the cube [−1, 1]^p, in the unit ball or on the unit sphere."""
    if law == "cube":
        return rng.uniform(-1, 1, (count, p))
    X = rng.standard_normal((count, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if law == "ball":
        X *= rng.random((count, 1)) ** (1 / p)
    return X


# --- the user's own files -----------------------------------------------------------------------
def _from_files(task: Files) -> Material:
    """CSV files whose first line names the columns; see ``Files`` for what they hold."""
    train = _table(task.train, task.agent)
    test = None if task.test is None else _table(task.test, task.agent)
    tables = [train] if test is None else [train, test]
    names = _names_in(tables) if task.agents is None else _listed(task.agents)
    features = _features(task, train)
    data = train.data_sets(names, features, task.target)
    held_out = None if test is None else test.data_sets(names, features, task.target)
    if task.loss in ("hinge", "logistic"):
        if not features:
            raise ScenarioError(f"task.features: the {task.loss} loss needs at least one feature")
        for table in tables:
            table.require_labels(task.target, task.loss)
    vectors = None
    if task.vectors is not None:
        vectors = _one_row_an_agent(_table(task.vectors, task.agent), names, None)
    targets = None
    if task.targets is not None:
        targets = _one_row_an_agent(_table(task.targets, task.agent), names, features)
    return Material(names, data, held_out, targets, vectors)


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

    def data_sets(self, names: Sequence[str], features: list[str], target: str) -> DataSets:
        """The rows grouped by agent, in the order of the file; no features: a mean."""
        self.require(target, "target")
        for column in features:
            self.require(column, "features")
        agents = self.agents(names)
        order = np.argsort(agents, kind="stable")
        X = np.column_stack([self.numbers(c) for c in features])[order] if features else None
        sizes = np.bincount(agents, minlength=len(names))
        return DataSets(X, self.numbers(target)[order], _offsets(sizes))

    def require_labels(self, target: str, loss: str) -> None:
        """The targets are −1 or +1."""
        wrong = np.flatnonzero(np.abs(self.numbers(target)) != 1)
        if len(wrong):
            raise self.fail(wrong[0], target, f"is no label; the {loss} loss allows -1 and 1")


def _table(path: Path, agent: str) -> Table:
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


def _features(task: Files, train: Table) -> list[str]:
    reserved = (task.agent, task.target)
    if task.agent == task.target:
        raise ScenarioError(f"task.agent and task.target are the same column {task.agent!r}")
    if task.features is None:
        return [column for column in train.cells.columns if column not in reserved]
    for k, column in enumerate(task.features):
        if column in reserved:
            raise ScenarioError(f"task.features: {column!r} is the agent's or the target's column")
        if column in task.features[:k]:
            raise ScenarioError(f"task.features: {column!r} is there twice")
    return task.features


def _names_in(tables: list[Table]) -> list[str]:
    """The agents that have points: as integers in their order if all are, as strings otherwise."""
    names = pd.unique(pd.concat([table.cells[table.agent] for table in tables])).tolist()
    try:
        return sorted(names, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(names)


def _listed(path: Path) -> list[str]:
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


def _one_row_an_agent(table: Table, names: Sequence[str], features: list[str] | None) -> Floats:
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
