"""Model propagation (section 3 of the paper): smooth the solitary models over the graph."""

from __future__ import annotations

from agents.rule import Payload, Rule, Situation


class ModelPropagation(Rule):
    """Equation 6, for one agent l:

        θ_l = (α + ᾱ c_l)⁻¹ (α Σ_k (W_lk / D_ll) Θ̃_l^k + ᾱ c_l θ_l^sol),   ᾱ = 1 − α.

    Divided by α, with μ = ᾱ/α: θ_l = Σ_k g_k Θ̃_l^k + (μ c_l / (1 + μ c_l)) θ_l^sol, where
    g_k = W_lk / (D_ll (1 + μ c_l)).  This value is kept up to date by difference as copies come
    in, so that an update costs O(p), whatever the degree.
    """

    SOLVES = "after"
    OBJECTIVE = "mp"

    def __init__(self, situation: Situation):
        super().__init__(situation)
        anchor = situation.mu * situation.confidence
        # An agent without neighbours has no links and keeps its model: it never solves.
        gains = situation.weights / (situation.degree * (1.0 + anchor))
        self.gains: list[float] = gains.tolist()
        #: Θ̃_l^k, the last known models of the neighbours; each is replaced, never changed.
        self.copies = list(situation.copies)
        #: The right-hand side for the copies as they are now; replaced, never changed.
        self.update = gains @ situation.copies + anchor / (1.0 + anchor) * situation.solitary

    def payload(self, k: int) -> Payload:
        """The agent's own model."""
        return (self.model,)

    def absorb(self, k: int, received: Payload, sent: Payload) -> None:
        """Replace the copy of that neighbour's model."""
        (model,) = received
        self.update = self.update + self.gains[k] * (model - self.copies[k])
        self.copies[k] = model

    def solve(self) -> None:
        """Equation 6."""
        self.model = self.update
