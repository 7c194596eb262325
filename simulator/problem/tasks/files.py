"""The user's own data."""

from __future__ import annotations

from typing import Any, Literal

from agents.losses.loss import Loss
from agents.losses.quadratic import Quadratic
from agents.parameters import NonNegative
from simulator.errors import ScenarioError
from simulator.problem.tables import (
    INTERCEPT,
    Table,
    has_columns,
    listed,
    names_in,
    one_row_an_agent,
    only_once,
    read_table,
)
from simulator.problem.tasks.task import Material
from simulator.scenario.kinds import Task
from simulator.scenario.quantities import InputFile


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

    def build(self, rng: Any) -> Material:
        """CSV files whose first line names the columns."""
        train = read_table(self.train, self.agent)
        test = None if self.test is None else read_table(self.test, self.agent)
        tables = [train] if test is None else [train, test]
        about = None
        if self.agents is not None and has_columns(self.agents, self.agent):
            about = read_table(self.agents, self.agent)
            names = only_once(about)
        else:
            names = names_in(tables) if self.agents is None else listed(self.agents)
        features = self._columns(train)
        data = train.data_sets(names, features, self.target, intercept=self.intercept)
        held_out = None
        if test is not None:
            held_out = test.data_sets(names, features, self.target, intercept=self.intercept)
        if self.loss.labels:
            if not features and not self.intercept:
                raise ScenarioError(
                    f"task.features: the {self.loss.kind} loss needs at least one feature"
                )
            for table in tables:
                table.require_labels(self.target, self.loss.kind)
        vectors = None
        if self.vectors is not None:
            vectors = one_row_an_agent(read_table(self.vectors, self.agent), names, None)
        targets = None
        if self.targets is not None:
            keys = [*features, *([INTERCEPT] if self.intercept else [])]
            targets = one_row_an_agent(read_table(self.targets, self.agent), names, keys)
        return Material(names, data, held_out, targets, vectors, about)

    def _columns(self, train: Table) -> list[str]:
        """The features."""
        reserved = (self.agent, self.target)
        if self.agent == self.target:
            raise ScenarioError(f"task.agent and task.target are the same column {self.agent!r}")
        columns = self.features
        if columns is None:
            columns = [column for column in train.cells.columns if column not in reserved]
        if self.intercept and INTERCEPT in columns:
            raise ScenarioError(
                f"task.intercept: {self.train} has a column {INTERCEPT!r} already; leave one out"
            )
        if self.features is None:
            return columns
        for k, column in enumerate(self.features):
            if column in reserved:
                raise ScenarioError(
                    f"task.features: {column!r} is the agent's or the target's column"
                )
            if column in self.features[:k]:
                raise ScenarioError(f"task.features: {column!r} is there twice")
        return self.features
