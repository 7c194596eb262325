"""A rule of one's own: pairwise gossip averaging (Boyd et al., 2006).

    python -m simulator run docs/examples/averaging.yaml --plugin docs/examples/averaging.py

Both ends of an exchange move to the mean of their two models, so all agents drift to the one
average of the solitary models: consensus, which is just what the paper does not want.
"""

from agents.rule import Rule


class Averaging(Rule):
    """θ_i, θ_j ← (θ_i + θ_j)/2, or with ``parameters: {step: s}`` a share s of the way."""

    SOLVES = "after"  # absorb first, then solve; the reply carries the model as it was before

    def __init__(self, situation):
        super().__init__(situation)  # the first model is situation.model
        self.step = float(situation.parameters.get("step", 0.5))
        self.heard = self.model

    def payload(self, k):
        """What the neighbour on link k is told."""
        return (self.model,)

    def absorb(self, k, received, sent):
        """Remember what came."""
        (self.heard,) = received

    def solve(self):
        """Move towards it; a new array, since messages may still refer to the old one."""
        self.model = self.model + self.step * (self.heard - self.model)


RULES = {"averaging": Averaging}
