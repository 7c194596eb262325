"""A protocol of one's own: push-sum, which averages without a reply (Kempe, Dobra, Gehrke 2003).

    python -m simulator run docs/examples/push_sum.yaml --plugin docs/examples/push_sum.py

An agent holds a sum, at first its solitary model, and a weight, at first 1.  At a tick it sends
half of both to one neighbour and keeps the other half; what comes it adds to its own.  No mass is
made or destroyed, so that all ratios sum/weight, the estimates, go to the mean of the solitary
models.  A message that is lost takes its mass along: the ratios then agree on something else.
"""

from agents.protocol import Protocol, absorb, choose, compute, send, solve
from agents.rule import Rule, per_agent


class Push(Protocol):
    """A tick sends; who hears absorbs, old news as well, and solves."""

    kind = "push"

    def tick(w, i, u):
        """Send."""
        send(w, i, choose(w, i, u))

    def handle(w, i, m):
        """Take it in: what came late is mass too, so nobody asks whether it is fresh."""
        absorb(w, i, m)
        compute(w, i, m)

    def after(w, i, m):
        """Solve."""
        solve(w, i)


class PushSum(Rule):
    """θ_i = sum_i / weight_i."""

    kind, protocol, objective = "push_sum", Push, None
    modes, starts = ("async",), ("own",)
    extras, stateful, same_for_all = 1, True, False

    sums = per_agent("p")
    weights = per_agent()

    def prepare(s, start):
        """All that is known, with the weight 1."""
        s.sums = start.solitary.copy()
        s.weights[:] = 1.0

    def tell(s, i, k, out):
        """Half of what there is goes."""
        for x in range(s.p):
            s.sums[i, x] *= 0.5
            out[x] = s.sums[i, x]
        s.weights[i] *= 0.5
        out[s.p] = s.weights[i]

    def absorb(s, i, k, received, sent):
        """What comes is added."""
        for x in range(s.p):
            s.sums[i, x] += received[x]
        s.weights[i] += received[s.p]

    def solve(s, i):
        """The estimate."""
        for x in range(s.p):
            s.models[i, x] = s.sums[i, x] / s.weights[i]
