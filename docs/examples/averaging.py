"""A rule of one's own: pairwise averaging, the simplest gossip algorithm there is.

    python -m simulator run docs/examples/averaging.yaml --plugin docs/examples/averaging.py

When two agents talk, both move a share of the way towards the other's model, so that all models
converge to the mean of the solitary ones: a consensus, which is just what the paper's algorithms
avoid.
"""

from agents.parameters import Probability
from agents.rule import Rule, Strict, per_agent


class Averaging(Rule):
    """θ_i ← θ_i + step (θ_j − θ_i), at both ends of an exchange."""

    kind = "averaging"

    class Parameters(Strict):
        """Keys of ``algorithm``."""

        step: Probability = 0.5
        """The share of the way; 0.5 averages."""

    heard = per_agent("p")

    def absorb(s, i, k, received, sent):
        """Remember what came."""
        for x in range(s.p):
            s.heard[i, x] = received[x]

    def solve(s, i):
        """Move towards it."""
        for x in range(s.p):
            s.models[i, x] += s.step * (s.heard[i, x] - s.models[i, x])
