"""Decentralised parallel gradient descent to one model for all (Lian et al. 2017), full batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.parameters import Positive, Strict
from agents.rule import (
    Floats,
    Indices,
    Rule,
    Start,
    gradient,
    per_agent,
    per_link,
    scratch,
    summed,
)


class DPSGD(Rule):
    """θ_i ← Σ_j M_ij θ_j − γ ∇f_i(θ_i),   f_i = L_i + (λ/2n)‖θ‖².

    M_ij = 1 / (1 + max(|N_i|, |N_j|)), and M_ii the rest, so that M is doubly stochastic: W/D would
    end elsewhere.  The gradient is taken before averaging.  Σ f_i is least at the consensus model;
    with γ fixed, the models come to rest near it, not at it.  Where a round goes on without some
    neighbours, M_ii is the rest of what the others have, and the mean of the models is not kept.
    """

    kind, objective = "dpsgd", "consensus"
    modes, starts, once_a_round = ("sync",), ("own", "zero", "normal"), True

    class Parameters(Strict):
        """Keys of ``algorithm`` for decentralised gradient descent."""

        step: Positive
        """The step γ."""

    #: M_ij, M_ii, Σ_j M_ij θ_j and Σ_j M_ij over what this round has brought, from how many, λ/n,
    #: and the gradient.
    M: Floats = per_link()
    own: Floats = per_agent()
    mixed: Floats = per_agent("p")
    weight: Floats = per_agent()
    heard: Indices = per_agent(dtype=int)
    decay: Floats = per_agent(given="prepare")
    slope: Floats = scratch("p")

    def prepare(s: Any, start: Start) -> None:
        """The penalty's part of the gradient."""
        s.decay = np.full(len(start.D), start.ridge / len(start.D))
        start.gradients()

    def refresh(s: Any, i: int) -> None:
        """The weights."""
        first, last = s.first[i], s.first[i + 1]
        for k in range(first, last):
            j = s.neighbour[k]
            s.M[k] = 1.0 / (1.0 + max(last - first, s.first[j + 1] - s.first[j]))
        s.own[i] = 1.0 - summed(s.M[first:last])

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Each neighbour is heard at most once a round."""
        s.weight[i] += s.M[k]
        s.heard[i] += 1
        for x in range(s.p):
            s.mixed[i, x] += s.M[k] * received[x]

    def solve(s: Any, i: int) -> None:
        """Average and step."""
        gradient(s, i, s.models[i], s.slope)
        everybody = s.heard[i] == s.first[i + 1] - s.first[i]
        own = s.own[i] if everybody else 1.0 - s.weight[i]
        s.weight[i], s.heard[i] = 0.0, 0
        for x in range(s.p):
            step = s.slope[x] + s.decay[i] * s.models[i, x]
            s.models[i, x] = own * s.models[i, x] + s.mixed[i, x] - s.step * step
            s.mixed[i, x] = 0.0
