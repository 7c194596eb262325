"""Exact block coordinate descent on Q_CL (DJAM, Almeida and Xavier 2018; FedRelax)."""

from __future__ import annotations

from typing import Any

import numpy as np

from agents.rule import (
    ANSWER_THEN_SOLVE,
    TELL,
    Collaborative,
    Floats,
    Rule,
    Start,
    per_agent,
    per_link,
    prox,
    summed,
    weigh,
)


class DJAM(Rule):
    """θ_i ← argmin D_ii‖θ − v_i‖² + μ D_ii L_i(θ),   v_i = Σ_j (W_ij / D_ii) Θ̃_i^j.

    With a ridge r it is the proximal point of v_i / (1 + μr) with a = 2 D_ii (1 + μr).  That vector
    is kept up to date by difference as copies come in.
    """

    kind, protocols, objective = "djam", (ANSWER_THEN_SOLVE, TELL), "cl"

    class Parameters(Collaborative):
        """Keys of ``algorithm`` for block coordinate descent."""

    #: v_i / (1 + μr), the copies Θ̃_i^j, and W_ij / (D_ii (1 + μr)).
    v: Floats = per_agent("p")
    copies: Floats = per_link("p", given="copy")
    gain: Floats = per_link()

    def prepare(s: Any, start: Start) -> None:
        """The proximal step."""
        start.proximal()

    def refresh(s: Any, i: int) -> None:
        """The proximal step's factors, gains, and v anew."""
        first, last, stiffness = s.first[i], s.first[i + 1], s.D[i] * (1.0 + s.mu * s.ridge)
        weigh(s, i, 2.0 * stiffness, s.mu * s.D[i])
        for k in range(first, last):
            s.gain[k] = s.W[k] / stiffness
        terms = np.empty(last - first)
        for x in range(s.p):
            for k in range(first, last):
                terms[k - first] = s.gain[k] * s.copies[k, x]
            s.v[i, x] = summed(terms)

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.v[i, x] += s.gain[k] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s: Any, i: int) -> None:
        """The proximal step."""
        if not prox(s, i, s.v[i], s.models[i]):
            s.exhausted[i] += 1
