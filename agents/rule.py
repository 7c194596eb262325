"""The rule: the pluggable update logic of one agent.

A rule is pure mathematics.  It knows the weights of the agent's links and the agent's own data,
but no clock, no network and no other agent: links are numbered 0 … |N_i| − 1 (``k`` below).
It does three things:

``payload(k)``
    what the neighbour on link k is told;
``absorb(k, received, sent)``
    take in what came from link k, given what was sent in the same exchange;
``solve()``
    the costly step, which gives the agent a new model.

A class attribute says when ``solve`` happens; the protocol around it is that of ``Agent``:

=========================  =====================================  ================================
                           SOLVES = "after" (as mp)               SOLVES = "before" (as admm)
=========================  =====================================  ================================
the agent's clock ticks    send payload                           solve, send payload
a request arrives          reply with payload, absorb, solve      solve, absorb, reply with payload
the reply arrives          absorb, solve                          absorb
a message is out of date   an older one than the last absorbed    a reply whose link has changed
                           from that neighbour                    since its request was sent
a synchronous round        send all, absorb all, solve            solve, send all, absorb all
=========================  =====================================  ================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from agents.losses import Loss

Floats = NDArray[np.float64]

#: A message's content: arrays that nobody changes any more.
Payload = tuple[Floats, ...]


@dataclass(frozen=True)
class Situation:
    """What one agent knows before the first message: all that a rule is built from."""

    #: W_ij for j in N_i, in the order of the links, and their sum D_ii.
    weights: Floats
    degree: float
    #: S_i: the points (None for a mean) and targets, and the loss over them.
    X: Floats | None
    y: Floats
    loss: Loss
    #: c_i and θ_i^sol.
    confidence: float
    solitary: Floats
    #: θ_i(0), and the first copies Θ̃_i^j(0) of the neighbours' models, (|N_i|, p).
    model: Floats
    copies: Floats
    #: The trade-off μ, admm's ρ and gradient steps (0: exact), and a plugin's own parameters.
    mu: float
    rho: float = 1.0
    gradient_steps: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)


class Rule(ABC):
    """Base class of all rules; see the module's text for the protocol."""

    SOLVES: ClassVar[Literal["before", "after"]] = "after"
    #: The objective that the rule minimises, for the metrics that need an optimum.
    OBJECTIVE: ClassVar[Literal["mp", "cl"] | None] = None
    #: How many vectors of length p a payload holds: a message's size is 8·p·VECTORS + header.
    VECTORS: ClassVar[int] = 1

    #: θ_i, (p,).  Replaced at each solve, never changed in place: messages may refer to it.
    model: Floats
    #: How many solves stopped at a limit before they were accurate.
    exhausted: int = 0

    def __init__(self, situation: Situation):
        self.model = situation.model

    @abstractmethod
    def payload(self, k: int) -> Payload:
        """What the neighbour on link k is told."""

    @abstractmethod
    def absorb(self, k: int, received: Payload, sent: Payload) -> None:
        """Take in ``received`` from link k; ``sent`` is the agent's own part of the exchange."""

    @abstractmethod
    def solve(self) -> None:
        """Compute a new ``model``."""

    def introduce(self, k: int, model: Floats) -> None:
        """The neighbour on link k says hello with its solitary model, before any exchange."""
        self.absorb(k, (model,), (self.model,))
