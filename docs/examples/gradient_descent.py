"""Gradient descent on Q_CL: at each contact a step on the own loss and on the graph's term.

    python -m simulator run docs/examples/gradient_descent.yaml \\
        --plugin docs/examples/gradient_descent.py
"""

from agents.parameters import Positive
from agents.rule import Rule, TradeOff, gradient, per_agent, per_link, scratch


class GradientDescent(Rule):
    """θ_i ← θ_i − step ∇_i Q_CL / D_ii = θ_i − step (2 (θ_i − Σ_k W_ik Θ̃_i^k / D_ii) + μ ∇L_i)."""

    kind, objective = "gradient_descent", "cl"

    class Parameters(TradeOff):
        """Keys of ``algorithm``."""

        step: Positive = 0.05
        """The length of a step."""

    copies, total, slope = per_link("p"), per_agent("p"), scratch("p")

    def prepare(s, start):
        """Copies of the start, and Σ_k W_ik Θ̃_i^k."""
        s.copies = start.copies
        s.total = start.sum_over_links(start.W[:, None] * start.copies)
        start.gradients()

    def absorb(s, i, k, received, sent):
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.total[i, x] += s.W[k] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s, i):
        """One step."""
        gradient(s, i, s.models[i], s.slope)
        for x in range(s.p):
            pull = s.models[i, x] - s.total[i, x] / s.D[i]
            s.models[i, x] -= s.step * (2.0 * pull + s.mu * s.slope[x])
