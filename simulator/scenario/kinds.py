"""What people add: tasks, graphs, rules, losses, laws and metrics, as the schema knows them.

Each is a class with a ``kind`` and typed parameters; what the schema has to know beyond those is
stated here.  The classes themselves live in the upper rooms, and in plugins.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from agents.losses.loss import Loss
from agents.parameters import Strict
from agents.rule import Rule
from simulator.scenario.laws import Law

#: What is wrong with a combination of keys: (dotted key, message).
Problems = list[tuple[str, str]]


class Task(Strict):
    """Who has which data: the base of all tasks, whose ``build`` gives a ``Material``."""

    kind: str
    #: The graph that a scenario has which names none.
    default_graph: ClassVar[str | None] = None
    #: Are agents compared by the angle of their vectors, and not by their distance?
    angular: ClassVar[bool] = False

    @property
    def count(self) -> int | None:
        """The number of agents, where it is known before the data are."""
        return None

    @property
    def numbers(self) -> int | None:
        """The dimension of a model, where it is known before the data are."""
        return None

    @property
    def bytes_needed(self) -> float | None:
        """About how many bytes its data need, where it is known before the data are."""
        return None

    @property
    def has_vectors(self) -> bool:
        """Are there vectors that a graph can compare?"""
        return True

    @property
    def has_test(self) -> bool:
        """Are there test points?"""
        return False

    @property
    def has_targets(self) -> bool:
        """Are the true models known?"""
        return True

    def problems(self) -> Problems:
        """What is wrong with the task's own keys."""
        return []

    def build(self, rng: Any) -> Any:
        """The data and whatever else is known about the agents.

        Parameters
        ----------
        rng : numpy.random.Generator
            The only source of randomness: the same seed gives the same data.

        Returns
        -------
        simulator.problem.tasks.task.Material
            Names (n), points X (M, p) or None and targets y (M,) end to end, how many each agent
            has (n,), and where they are known true models (n, p) and vectors to compare (n, d).
        """
        raise NotImplementedError


class Graph(Strict):
    """Who knows whom: the base of all graphs, whose ``build`` gives the weights W."""

    kind: str
    allow_disconnected: bool = False
    """A graph in several parts is not an error."""

    def problems(self, task: Task) -> Problems:
        """What is wrong with this graph for that task."""
        return []

    def build(self, agents: Any, rng: Any) -> Any:
        """The weights between the agents.

        Parameters
        ----------
        agents : simulator.problem.graphs.graph.Agents
            Their names (n) and, where there are any, their vectors (n, d).
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        scipy.sparse.csr_array
            W, (n, n): symmetric, its entries positive, nothing on the diagonal; ``symmetric`` in
            ``simulator.problem.graphs.graph`` makes one of edges.
        """
        raise NotImplementedError


class Metric(Strict):
    """Something to measure of the agents' models, from outside."""

    kind: str
    #: In words, for figures and tables.
    label: ClassVar[str] = ""
    #: Is it measured in every run that allows it, or only where ``record.metrics`` asks for it?
    always: ClassVar[bool] = False
    #: Does it grow as agents learn?
    grows: ClassVar[bool] = False
    #: Is a share of its value at the start a sensible target?
    relative: ClassVar[bool] = True
    #: Does it mean anything for the baselines, which have no start and no optimum?
    of_baselines: ClassVar[bool] = True
    #: Does it mean anything for one agent alone, so that agents.csv has a column of it?
    by_agent: ClassVar[bool] = False

    def problems(self, task: Task) -> Problems:
        """Why it can't be measured on a task."""
        return []

    def available(self, view: Any) -> bool:
        """Can it be measured in this run (``simulator.theory.metrics.View``)?"""
        return True

    def measure(self, view: Any, models: Any) -> float:
        """Its value.

        Parameters
        ----------
        view : simulator.theory.metrics.View
            ``view.problem`` has the data, the graph and the true models; read only.
        models : numpy.ndarray
            (n, p), read only: the run's own.
        """
        raise NotImplementedError

    def each(self, view: Any, models: Any) -> Any:
        """Its value for each agent (n,), where ``by_agent`` says that it has one."""
        raise NotImplementedError


@dataclass(frozen=True)
class Kinds:
    """All classes that a scenario may name."""

    tasks: tuple[type[Task], ...] = ()
    graphs: tuple[type[Graph], ...] = ()
    rules: tuple[type[Rule], ...] = ()
    losses: tuple[type[Loss], ...] = ()
    laws: tuple[type[Law[Any]], ...] = ()
    metrics: tuple[type[Metric], ...] = ()

    def __add__(self, other: Self) -> Kinds:
        return Kinds(*((*getattr(self, f.name), *getattr(other, f.name)) for f in fields(self)))


#: The base class of each family, by the field of ``Kinds``.
BASES: dict[str, type] = {
    "tasks": Task,
    "graphs": Graph,
    "rules": Rule,
    "losses": Loss,
    "laws": Law,
    "metrics": Metric,
}


def family_of(thing: object) -> str:
    """``graph``: what messages call an object of one of the families."""
    return next(base.__name__.lower() for base in BASES.values() if isinstance(thing, base))
