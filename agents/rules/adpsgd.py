"""Asynchronous decentralised parallel gradient descent (Lian et al. 2018), full batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.parameters import Positive, Strict
from agents.rule import AVERAGE, Floats, Rule, Start, gradient, per_agent, scratch


class ADPSGD(Rule):
    """θ_i ← (θ_i + θ_j)/2 − γ ∇f_i(θ_i) at the asking end, θ_j ← (θ_i + θ_j)/2 at the other.

    f_i = L_i + (λ/2n)‖θ‖²; the gradient is taken before averaging.  Only the asking end steps: a
    step at both would let those with many neighbours step more often.  Σ f_i is least at the
    consensus model; with γ fixed, the models keep moving near it.
    """

    kind, protocol, objective = "adpsgd", AVERAGE, "consensus"
    modes, starts = ("async",), ("own", "zero", "normal")

    class Parameters(Strict):
        """Keys of ``algorithm`` for asynchronous decentralised gradient descent."""

        step: Positive
        """The step γ."""

    #: The model before it was averaged, λ/n, and the gradient.
    before: Floats = per_agent("p")
    decay: Floats = per_agent(given="prepare")
    slope: Floats = scratch("p")

    def prepare(s: Any, start: Start) -> None:
        """The penalty's part of the gradient."""
        s.decay = np.full(len(start.D), start.ridge / len(start.D))
        start.gradients()

    def refresh(s: Any, i: int) -> None:
        """Nothing is derived."""

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Average."""
        for x in range(s.p):
            s.before[i, x] = s.models[i, x]
            s.models[i, x] = 0.5 * (s.models[i, x] + received[x])

    def solve(s: Any, i: int) -> None:
        """Step, by the gradient at the model before averaging."""
        gradient(s, i, s.before[i], s.slope)
        for x in range(s.p):
            s.models[i, x] -= s.step * (s.slope[x] + s.decay[i] * s.before[i, x])
