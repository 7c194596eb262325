"""What people add: tasks, graphs, rules, losses, laws and metrics, as the schema knows them.

Each is a class with a ``kind`` and typed parameters; what the schema has to know beyond those is
stated here.  The classes themselves live in the upper rooms, and in plugins, all of whose code is
called within ``blaming``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce
from operator import or_
from types import FrameType
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Discriminator, Tag

from agents.losses.loss import Loss
from agents.machinery import discovery
from agents.machinery.code_errors import RAISED, CodeError, frames_in, place_of, told
from agents.parameters import Strict
from agents.protocol import Protocol
from agents.rule import Rule
from simulator.errors import SimulatorError
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

    @property
    def has_columns(self) -> bool:
        """Is there a file of points, a column of which may say when each arrives?"""
        return False

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
        simulator.problem.problem.Material
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
    #: May it ask for the optimum of the rule's objective?
    needs_optimum: ClassVar[bool] = True
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
    protocols: tuple[type[Protocol], ...] = ()

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
    "protocols": Protocol,
}


def family_of(thing: object) -> str:
    """``graph``: what messages call an object of one of the families."""
    return next(base.__name__.lower() for base in BASES.values() if isinstance(thing, base))


def kind_of(model: type) -> str:
    """What a class is called in scenario files."""
    return str(discovery.kind_of(model))


def one_of(models: Sequence[type[BaseModel]], default: str | None = None) -> Any:
    """The type of a block whose ``kind`` says which of the models it is.

    The tags send a value to one branch, so that a mistake in it gives one message and not several.
    """

    def tag(value: Any) -> Any:
        if isinstance(value, dict):
            return value.get("kind", default)
        return getattr(value, "kind", None)

    tagged: list[Any] = [Annotated[model, Tag(kind_of(model))] for model in models]
    return Annotated[reduce(or_, tagged), Discriminator(tag)]


@contextmanager
def blaming(plugins: Any) -> Iterator[None]:
    """What comes out of a plugin's code is an error of the user's, also what would end Python.

    ``plugins`` has their ``kinds``, or is None.
    """
    try:
        yield
    except SimulatorError:
        raise
    except CodeError as error:
        raise SimulatorError(str(error)) from error
    except RAISED as error:
        message = None if plugins is None else _message(plugins.kinds, error)
        if message is None:
            raise
        raise SimulatorError(message) from error


def _message(kinds: Kinds, error: BaseException) -> str | None:
    """What failed where, if a plugin's code did: ``graph ring: build failed (own.py:12): …``."""
    modules = {thing.__module__ for family in vars(kinds).values() for thing in family}
    raised: BaseException | None = error
    while raised is not None:
        frames = frames_in(modules, raised)
        if frames:
            last, line = frames[-1]
            place = place_of(last.f_code, line)
            for frame, _ in frames:
                if (who := _owner(kinds, frame)) is not None:
                    return f"{who}: {frame.f_code.co_name} failed ({place}): {told(raised)}"
            return f"{last.f_code.co_name} failed ({place}): {told(raised)}"
        raised = raised.__cause__  # SimPy raises a copy
    return None


def _owner(kinds: Kinds, frame: FrameType) -> str | None:
    """The family and kind of the class whose function this is a call of."""
    code = frame.f_code
    own = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    for family, base in BASES.items():
        for thing in getattr(kinds, family):
            if isinstance(own, thing):
                return f"{base.__name__.lower()} {own.kind}"
            if code.co_qualname == f"{thing.__qualname__}.{code.co_name}":
                return f"{base.__name__.lower()} {kind_of(thing)}"
    return None
