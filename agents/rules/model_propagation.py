"""Model propagation (section 3 of the paper): smooth the solitary models over the graph."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from agents.rule import (
    ANSWER_THEN_SOLVE,
    TELL,
    Floats,
    Rule,
    Start,
    TradeOff,
    per_agent,
    per_link,
)


class ModelPropagation(Rule):
    """Equation 6, for one agent l:

        θ_l = (α + ᾱ c_l)⁻¹ (α Σ_k (W_lk / D_ll) Θ̃_l^k + ᾱ c_l θ_l^sol),   ᾱ = 1 − α.

    Divided by α, with μ = ᾱ/α: θ_l = Σ_k g_k Θ̃_l^k + (μ c_l / (1 + μ c_l)) θ_l^sol, where
    g_k = W_lk / (D_ll (1 + μ c_l)).  This value is kept up to date by difference as copies come
    in, so that an update costs O(p), whatever the degree.
    """

    kind, protocols, objective = "mp", (ANSWER_THEN_SOLVE, TELL), "mp"

    class Parameters(TradeOff):
        """Keys of ``algorithm`` for model propagation."""

        confidence: Literal["data", "none"] = "data"
        """data: c_i = m_i / max m_j; none: 1 for everybody who has data (label propagation)."""

    #: The right-hand side for the copies as they are now, the copies Θ̃_l^k, and g_k.
    update: Floats = per_agent("p")
    copies: Floats = per_link("p")
    gain: Floats = per_link()

    def prepare(s: Any, start: Start) -> None:
        """An agent without neighbours has no links and keeps its model: it never solves."""
        anchor = start.mu * start.confidence
        s.gain = start.W / np.repeat(start.D * (1.0 + anchor), np.diff(start.first))
        s.copies = start.copies
        s.update = start.sum_over_links(s.gain[:, None] * s.copies)
        s.update += (anchor / (1.0 + anchor))[:, None] * start.solitary

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.update[i, x] += s.gain[k] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s: Any, i: int) -> None:
        """Equation 6."""
        for x in range(s.p):
            s.models[i, x] = s.update[i, x]
