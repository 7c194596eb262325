"""What a rule is: the update logic of an agent, written once for every engine.

A rule is pure mathematics: it knows no clock and no network.  Its class declares the arrays that it
keeps, one entry an agent or one a link, and functions over them:

``tell(s, i, k, out)``
    what agent i tells the neighbour on link k, written into ``out``;
``absorb(s, i, k, received, sent)``
    agent i takes in what came from link k; ``sent`` is its own part of the same exchange; in the
    protocol *average*, and there alone, it changes the model;
``solve(s, i)``
    the costly step, which gives agent i a new model, ``s.models[i]``;
``introduce(s, i, k, model)``
    the neighbour on link k says hello with its solitary model, before any exchange;
``refresh(s, i)``
    agent i's data, c_i, θ_i^sol, or the weights of its links have changed: derive again what
    depends on them.  It is called for every agent before the first event, too.

They are called with the state ``s`` of *all* agents in place of ``self``, and act on agent i alone.
Links are directed and numbered: ``s.first[i] … s.first[i + 1] − 1`` are those of agent i, towards
``s.neighbour[k]``.  When they are called is the business of the protocol that the rule names,
see docs/design.md.  The functions are compiled, so they are written as plain loops over numbers;
with ``NUMBA_DISABLE_JIT=1`` they run as they stand, and a debugger can step through them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from agents.losses.loss import Loss
from agents.parameters import Collaborative, Strict, TradeOff

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Words for protocols of ``agents.protocols``, which a rule may name by its class, too.
ANSWER_THEN_SOLVE, SOLVE_THEN_ANSWER, TELL = "answer, then solve", "solve, then answer", "tell"
AVERAGE = "average"


# --- declarations --------------------------------------------------------------------------------
@dataclass(frozen=True)
class Array:
    """An array of a rule's state: its first axis, and the others (``"p"``, or a number).

    ``given`` says what it is at the start, and again for an agent that has forgotten everything:
    ``"model"`` or ``"copy"``, the agent's first model or its first copy of the neighbour's, or a
    tuple of these for the first vectors of an entry (what it does not name is 0); ``"prepare"``,
    what ``prepare`` fills and nobody forgets.  All else is 0 until messages or ``refresh`` fill it.
    """

    over: Literal["agents", "links", "run"]
    shape: tuple[int | str, ...]
    dtype: type
    given: str | tuple[str, ...] = ()

    @property
    def vectors(self) -> tuple[str, ...]:
        """What the first vectors of an entry are given: the model or the copy."""
        given = (self.given,) if isinstance(self.given, str) else self.given
        return tuple(name for name in given if name != "prepare")


def per_agent(*shape: int | str, dtype: type = float, given: str | tuple[str, ...] = ()) -> Any:
    """An entry for each agent: a number, or an array of the given shape, such as ``"p"``."""
    return Array("agents", shape, dtype, given)


def per_link(*shape: int | str, dtype: type = float, given: str | tuple[str, ...] = ()) -> Any:
    """An entry for each directed link."""
    return Array("links", shape, dtype, given)


def scratch(*shape: int | str) -> Any:
    """Room for intermediate results: its content means nothing from one call to the next."""
    return Array("run", shape, float)


@dataclass
class Start:
    """What is known before the first message: all that ``prepare`` starts from."""

    #: Agent i's links are first[i] … first[i + 1] − 1, towards ``neighbour``, weights ``W``.
    first: Indices
    neighbour: Indices
    W: Floats
    #: D_ii, c_i and θ_i^sol; where the start is private, the first private models instead.
    D: Floats
    confidence: Floats
    solitary: Floats
    #: θ_i(0), (n, p), and the first copies of the neighbours' models, (links, p).  A rule may take
    #: them over as they are.
    models: Floats
    copies: Floats
    #: The agents' loss, and their points end to end.
    loss: Loss
    X: Floats | None
    y: Floats
    offsets: Indices
    #: The trade-off μ; NaN for rules without one.
    mu: float
    parameters: Any
    #: λ of the fit's (λ/2)‖θ‖², 0 for losses that need none.
    ridge: float = 0.0
    #: How many of their points agents have; None: all.
    counts: Indices | None = None
    #: What ``proximal`` and ``gradients`` asked for.
    steps: tuple[Floats | None, Floats | None, int] | None = field(default=None, init=False)
    slopes: bool = field(default=False, init=False)
    curved: bool = field(default=False, init=False)
    clip: float = field(default=0.0, init=False)
    norm: int = field(default=1, init=False)

    def proximal(
        self, a: Floats | None = None, b: Floats | None = None, gradient_steps: int = 0
    ) -> None:
        """Make ``prox`` available: argmin (a_i/2)‖θ − v‖² + b_i L_i(θ), or a few steps to it.

        a and b are given here once and for all, or by ``weigh`` in ``refresh``.
        """
        self.steps = a, b, gradient_steps

    def gradients(self, clip: float = 0.0, norm: int = 1) -> None:
        """Make ``gradient`` available, each point's clipped to an L1 or L2 norm above 0."""
        self.slopes, self.clip, self.norm = True, clip, norm

    def curvatures(self) -> None:
        """Make ``curvature`` available, of smooth losses."""
        self.curved = True

    def sum_over_links(self, values: Floats) -> Floats:
        """Σ over each agent's links, (n, …)."""
        total = np.zeros((len(self.D), *values.shape[1:]))
        linked = np.flatnonzero(np.diff(self.first))
        if len(linked):
            total[linked] = np.add.reduceat(values, self.first[linked], axis=0)
        return total


class Rule:
    """Base class of all rules; see the module's text."""

    kind: ClassVar[str]
    #: The protocols that it can follow, the first by default; ``protocol`` is short for one.
    protocols: ClassVar[tuple[Any, ...]] = (ANSWER_THEN_SOLVE,)
    protocol: ClassVar[Any] = ANSWER_THEN_SOLVE
    #: What the rule minimises, for the metrics that need an optimum: Q_MP, Q_CL, or the loss of one
    #: model for all (mp, cl, consensus).
    objective: ClassVar[str | None] = None
    #: What a message holds: so many vectors of length p, and so many numbers after them.  It is an
    #: array (vectors, p), or (p,) for a single vector; with extras all numbers, one after another.
    vectors: ClassVar[int] = 1
    extras: ClassVar[int] = 0
    #: Does an agent tell all its neighbours the same?
    same_for_all: ClassVar[bool] = True
    #: May ``tell`` change the sender's arrays (but not its model)?
    stateful: ClassVar[bool] = False
    #: The starts that it allows; mp is another.
    starts: ClassVar[tuple[str, ...]] = ("own", "hello", "known", "zero", "normal")
    #: The modes that it has, the default first.
    modes: ClassVar[tuple[str, ...]] = ("async", "sync")
    #: Does it count on hearing each neighbour once a round, so that ``rounds.slack`` is an error?
    once_a_round: ClassVar[bool] = False
    #: Does it need a loss without kinks?
    smooth_only: ClassVar[bool] = False
    #: The state: name → declaration.
    arrays: ClassVar[dict[str, Array]] = {}

    class Parameters(Strict):
        """The rule's own keys of ``algorithm``; whatever is a number is an attribute of ``s``."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "protocols" in vars(cls):
            cls.protocol = cls.protocols[0]
        elif "protocol" in vars(cls):
            cls.protocols = (cls.protocol,)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Array)}
        cls.arrays = {**cls.arrays, **own}

    def prepare(s: Any, start: Start) -> None:  # noqa: N805
        """Fill the state before the first event, with NumPy; what is left alone is 0.

        Parameters
        ----------
        s
            The state: its arrays, of n agents or of all directed links, are there and hold zeros.
        start
            What is known before the first message, a ``Start``.
        """

    def tell(s: Any, i: int, k: int, out: Floats) -> None:  # noqa: N805
        """Write what agent i tells the neighbour on link k: its model, unless the rule says more.

        Parameters
        ----------
        s
            The state of all agents; it may not be changed here, unless the rule is ``stateful``.
        i
            The agent.
        k
            One of its links, ``s.first[i] ≤ k < s.first[i + 1]``, towards ``s.neighbour[k]``.
        out
            The message: (p,), (vectors, p) where ``vectors`` is more than one, or where there are
            ``extras`` (vectors · p + extras,).
        """
        for x in range(s.p):
            out[x] = s.models[i, x]

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:  # noqa: N805
        """Take in what came from link k.

        Parameters
        ----------
        s, i, k
            The state, the agent and its link.
        received
            The neighbour's message, as ``tell`` wrote it.
        sent
            What agent i said in the same exchange, of the same shape.  Where it said nothing: its
            model, or NaN where messages hold more.
        """
        raise NotImplementedError

    def solve(s: Any, i: int) -> None:  # noqa: N805
        """Write agent i's new model into ``s.models[i]``, (p,): the costly step."""
        raise NotImplementedError

    @classmethod
    def shape(cls, p: int) -> tuple[int, ...]:
        """The shape of a message about models of length p."""
        if cls.extras:
            return (cls.vectors * p + cls.extras,)
        return (p,) if cls.vectors == 1 else (cls.vectors, p)

    @classmethod
    def tells_models(cls) -> bool:
        """Is a message one vector, of a model's length?"""
        return cls.vectors == 1 and cls.extras == 0

    def columns(s: Any, parameters: Any) -> dict[str, Any]:  # noqa: N805
        """After the run, more columns of agents.csv: name → an array (n,)."""
        return {}

    #: None: the hello is absorbed like any other message; only where that is one vector.
    introduce: ClassVar[Callable[..., None] | None] = None
    #: None: ``prepare`` fills everything, and nothing that it depends on may change.
    refresh: ClassVar[Callable[..., None] | None] = None


# --- what a rule may call ------------------------------------------------------------------------
# These are what runs without compilation; agents.running has the compiled forms.
def prox(s: Any, i: int, v: Floats, theta: Floats) -> bool:
    """θ ← argmin (a_i/2)‖θ − v‖² + b_i L_i(θ), as ``Start.proximal`` has set it up.

    False if a limit of passes was reached before the accuracy.
    """
    return bool(s.loss.prox(i, v, theta))


def weigh(s: Any, i: int, a: float, b: float) -> None:
    """From now on a_i and b_i of ``prox`` are these; what follows from i's points is made anew."""
    s.loss.weigh(i, a, b)


def curvature(s: Any, i: int) -> float:
    """The Lipschitz constant of ∇L_i, as ``Start.curvatures`` has asked for."""
    return float(s.loss.data.curvature[i])


def summed(terms: Floats) -> float:
    """Σ of an array, (m,), added in pairs as NumPy does."""
    return float(np.add.reduceat(terms, [0])[0]) if len(terms) else 0.0


def gradient(s: Any, i: int, theta: Floats, out: Floats) -> None:
    """out ← a (sub)gradient of L_i at θ."""
    s.loss.gradient_of(i, theta, out)


def uniform(s: Any) -> float:
    """A random number in [0, 1), from the stream ``rule``; other laws are formulas of it."""
    return float(s.stream.random())


__all__ = [
    "ANSWER_THEN_SOLVE",
    "AVERAGE",
    "SOLVE_THEN_ANSWER",
    "TELL",
    "Collaborative",
    "Floats",
    "Rule",
    "Start",
    "Strict",
    "TradeOff",
    "curvature",
    "gradient",
    "per_agent",
    "per_link",
    "prox",
    "scratch",
    "summed",
    "uniform",
    "weigh",
]
