"""Model propagation (section 3 of the paper): smooth the solitary models over the graph."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from agents.rule import (
    ANSWER_THEN_SOLVE,
    TELL,
    Floats,
    Rule,
    TradeOff,
    per_agent,
    per_link,
    summed,
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
    copies: Floats = per_link("p", given="copy")
    gain: Floats = per_link()

    def refresh(s: Any, i: int) -> None:
        """Gains, and the sum anew."""
        first, last, anchor = s.first[i], s.first[i + 1], s.mu * s.c[i]
        for k in range(first, last):
            s.gain[k] = s.W[k] / (s.D[i] * (1.0 + anchor))
        terms = np.empty(last - first)
        for x in range(s.p):
            for k in range(first, last):
                terms[k - first] = s.gain[k] * s.copies[k, x]
            s.update[i, x] = summed(terms) + anchor / (1.0 + anchor) * s.solitary[i, x]

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.update[i, x] += s.gain[k] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s: Any, i: int) -> None:
        """Equation 6."""
        for x in range(s.p):
            s.models[i, x] = s.update[i, x]
