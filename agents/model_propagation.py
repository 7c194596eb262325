"""Model propagation (section 3 of the paper): smooth the solitary models over the graph."""

from __future__ import annotations

from agents.rule import Payload, Rule, Situation


class ModelPropagation(Rule):
    """Equation 6, for one agent l:

        θ_l = (α + ᾱ c_l)⁻¹ (α Σ_k (W_lk / D_ll) Θ̃_l^k + ᾱ c_l θ_l^sol),   ᾱ = 1 − α.

    Dividing by α and with μ = ᾱ/α this is θ_l = (S/D_ll + μ c_l θ_l^sol) / (1 + μ c_l), where
    S = Σ_k W_lk Θ̃_l^k is kept up to date by difference: an update costs O(p), whatever the degree.
    """

    SOLVES = "after"
    OBJECTIVE = "mp"

    def __init__(self, situation: Situation):
        super().__init__(situation)
        self.weights: list[float] = situation.weights.tolist()
        #: Θ̃_l^k, the last known models of the neighbours; each is replaced, never changed.
        self.copies = list(situation.copies)
        self.weighted_sum = situation.weights @ situation.copies
        anchor = situation.mu * situation.confidence
        # An agent without neighbours keeps its solitary model: it is never asked to solve.
        self.scale = 1.0 / (situation.degree * (1.0 + anchor)) if situation.degree else 0.0
        self.pull = (anchor / (1.0 + anchor)) * situation.solitary

    def payload(self, k: int) -> Payload:
        """The agent's own model."""
        return (self.model,)

    def absorb(self, k: int, received: Payload, sent: Payload) -> None:
        """Replace the copy of that neighbour's model."""
        (model,) = received
        self.weighted_sum += self.weights[k] * (model - self.copies[k])
        self.copies[k] = model

    def solve(self) -> None:
        """Equation 6."""
        self.model = self.scale * self.weighted_sum + self.pull
