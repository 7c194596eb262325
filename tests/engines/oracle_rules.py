"""The rules of docs/design.md in plain NumPy, for ``oracle_simulation``.

Models are computed anew from all that an agent knows; θ_i is ``Theta[i, i]``, agent i's copy of
neighbour j's model ``Theta[i, j]``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from tests import oracles


# --- where a run begins ---------------------------------------------------------------------------
def first_models(problem, algorithm, rng):
    """``algorithm.start``: Theta by (agent, agent) and by (agent, neighbour); Theta once forgotten.

    Whoever forgets has its data only: then neighbours are taken to agree with the agent.
    """
    start, solitary, (n, p) = algorithm.start, problem.solitary, problem.solitary.shape
    links = [(int(i), int(j)) for i, j in zip(*problem.W.toarray().nonzero(), strict=True)]
    own = {(i, i): solitary[i] for i in range(n)} | {(i, j): solitary[i] for i, j in links}
    if start in ("own", "hello"):
        return own, own
    if start == "known":
        return own | {(i, j): solitary[j] for i, j in links}, own
    if start in ("zero", "private"):
        zero = {link: np.zeros(p) for link in own}
        return zero, zero
    if getattr(start, "kind", None) == "normal":
        models, copies = rng.standard_normal((n, p)), rng.standard_normal((len(links), p))
        drawn = {(i, i): start.scale * models[i] for i in range(n)}
        drawn |= {link: start.scale * copy for link, copy in zip(links, copies, strict=True)}
        return drawn, drawn
    alpha = 1 / (1 + algorithm.trade_off) if start == "mp" else start.alpha
    optimum = propagated(problem, alpha, problem.solitary)
    return {(i, j): optimum[j] for i, j in own}, own


def propagated(problem, alpha, solitary):
    """The fixed point of equation 6."""
    W, c = problem.W.toarray(), problem.confidence[:, None]
    P = W / np.maximum(W.sum(axis=1, keepdims=True), 1e-300)
    own, weight = (1 - alpha) * c, alpha + (1 - alpha) * c
    fixed = np.linalg.solve(np.eye(len(W)) - alpha / weight * P, own / weight * solitary)
    return np.where(W.any(axis=1)[:, None], fixed, solitary)  # who has no neighbours learns alone


class Copies:
    """What every rule knows that keeps one copy of each neighbour's model."""

    protocol = "answer, then solve"

    def __init__(self, problem, algorithm, streams, penalty=0.0):
        self.problem, self.algorithm, self.rng = problem, algorithm, streams.rule
        self.W, self.penalty = problem.W.toarray(), penalty
        self.N = [[int(j) for j in np.flatnonzero(row)] for row in self.W]
        first, fresh = first_models(problem, algorithm, streams.data)
        self.Theta, self.fresh = dict(first), dict(fresh)

    def tell(self, i, j):
        return self.Theta[i, i]

    def absorb(self, i, j, received, sent):
        self.Theta[i, j] = received

    def introduce(self, i, j, model):
        self.absorb(i, j, model, self.model(i))

    def forget(self, i):
        self.Theta |= {(i, j): self.fresh[i, j] for j in (i, *self.N[i])}

    def model(self, i):
        return self.Theta[i, i]

    def models(self):
        return np.array([self.model(i) for i in range(len(self.W))])

    # --- what rules are made of -------------------------------------------------------------------
    def mean(self, i):
        """Σ_j (W_ij / D_ii) Θ̃_i^j."""
        return sum(self.W[i, j] / self.W[i].sum() * self.Theta[i, j] for j in self.N[i])

    def smoothed(self, i, alpha, solitary):
        """Equation 6."""
        own = (1 - alpha) * self.problem.confidence[i]
        return (alpha * self.mean(i) + own * solitary) / (alpha + own)

    def data(self, i):
        X, y = self.problem.data[i]
        return np.ones((len(y), 1)) if X is None else X, y

    def slopes(self, i, theta):
        """The gradients of agent i's points, one a row."""
        X, y = self.data(i)
        s = X @ theta
        if self.problem.loss.kind == "quadratic":
            return X * (2 * (s - y))[:, None]
        return X * (-y / (1 + np.exp(y * s)))[:, None]

    def gradient(self, i, theta):
        """∇L_i."""
        return self.slopes(i, theta).sum(axis=0)


class Propagation(Copies):
    """mp, equation 6."""

    def solve(self, i):
        alpha = 1 / (1 + self.algorithm.trade_off)
        self.Theta[i, i] = self.smoothed(i, alpha, self.problem.solitary[i])


class Relaxation(Copies):
    """djam: argmin D‖θ − v‖² + μ D (L_i(θ) + r‖θ‖²) by the oracles' own solvers."""

    def solve(self, i):
        D, mu, (X, y) = self.W[i].sum(), self.algorithm.trade_off, self.data(i)
        H = 2 * D * (1 + mu * self.algorithm.ridge) * np.eye(self.problem.p)
        solver = oracles.SOLVERS[self.problem.loss.kind]
        self.Theta[i, i] = solver(H, 2 * D * self.mean(i), X, y, mu * D)


class Descent(Copies):
    """cd: (1 − a) θ + a (v − (μ/2) ∇), where ∇ and ℓ are those of L_i + r‖θ‖².

    With privacy, points are scaled, their gradients clipped, and noise is added as long as the
    budget lasts; then the last private model is smoothed, or kept.
    """

    protocol = "tell"

    def __init__(self, *args):
        super().__init__(*args)
        self.privacy = self.algorithm.privacy
        if self.privacy is None:
            return
        self.left = [self.privacy.updates] * self.problem.n
        self.scale = 2 * self.privacy.clip / self._per_update()
        self.private = {}
        if self.algorithm.start == "private":
            for i in range(self.problem.n):
                self.solve(i)
            first = propagated(self.problem, self.privacy.smoothing, self.models())
            self.Theta = {(i, j): first[j] for i, j in self.Theta}

    def _per_update(self):
        """The largest ε_t or μ_t of which so many spend at most ε."""
        k, delta, epsilon = self.privacy.updates, self.privacy.delta, self.privacy.epsilon

        def spent(e):
            """The least of three bounds."""
            S, squares = k * e * (math.exp(e) - 1) / (math.exp(e) + 1), k * e * e
            if delta == 0:
                return k * e
            logs = math.log(1 / delta), math.log(math.e + math.sqrt(squares) / delta)
            return min(k * e, *(S + math.sqrt(2 * squares * log) for log in logs))

        def excess(sigma):
            """P(loss > ε) − e^ε Q(loss > ε) − δ of two normal laws, 1 apart."""
            point = 0.5 - epsilon * sigma**2
            P, Q = norm.cdf(point / sigma), norm.cdf((point - 1) / sigma)
            return P - math.exp(epsilon) * Q - delta

        if self.privacy.noise == "gaussian":
            return 1 / brentq(excess, 0.01, 1e4, xtol=1e-15, rtol=1e-14) / math.sqrt(k)
        return brentq(lambda e: spent(e) - epsilon, epsilon / k / 2, 2 * epsilon, rtol=1e-15)

    def data(self, i):
        X, y = super().data(i)
        if self.privacy is None:
            return X, y
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        return X * np.minimum(1, self.privacy.radius / np.maximum(lengths, 1e-300)), y

    def noise(self, p):
        """Of the given law, by formulas of uniform numbers."""
        if self.privacy.noise == "gaussian":
            u, w = self.rng.random((p, 2)).T
            return self.scale * np.sqrt(-2 * np.log(1 - u)) * np.cos(2 * np.pi * w)
        u = self.rng.random(p) - 0.5
        return -self.scale * np.sign(u) * np.log(1 - 2 * np.abs(u))

    def solve(self, i):
        mu, ridge = self.algorithm.trade_off, self.algorithm.ridge
        (X, y), theta = self.data(i), self.model(i)
        bend = {"quadratic": 2.0, "logistic": 0.25}[self.problem.loss.kind]
        slopes, hidden = self.slopes(i, theta), self.privacy is not None and len(y)
        if hidden and not self.left[i]:
            if self.privacy.after == "smooth":
                self.Theta[i, i] = self.smoothed(i, self.privacy.smoothing, self.private[i])
            return
        if self.privacy is None:
            ell, gradient = bend * np.linalg.eigvalsh(X.T @ X).max(initial=0.0), slopes.sum(axis=0)
        else:
            ell = bend * len(y) * self.privacy.radius**2
            order = 1 if self.privacy.noise == "laplace" else 2
            lengths = np.linalg.norm(slopes, order, axis=1, keepdims=True)
            clipped = slopes * np.minimum(1, self.privacy.clip / np.maximum(lengths, 1e-300))
            gradient = clipped.sum(axis=0)
        if hidden:
            self.left[i] -= 1
            gradient = gradient + self.noise(len(theta))
        a = 1 / (1 + mu / 2 * (ell + 2 * ridge))
        step = self.mean(i) - mu / 2 * (gradient + 2 * ridge * theta)
        self.Theta[i, i] = (1 - a) * theta + a * step
        if hidden:
            self.private[i] = self.Theta[i, i]


class Mixing(Copies):
    """dpsgd: Σ_j M_ij θ_j − γ (∇L_i + (λ/n) θ_i), M of Metropolis, over those just heard."""

    def __init__(self, *args):
        super().__init__(*args)
        self.heard = {}

    def absorb(self, i, j, received, sent):
        super().absorb(i, j, received, sent)
        self.heard.setdefault(i, set()).add(j)

    def forget(self, i):
        super().forget(i)
        self.heard.pop(i, None)

    def solve(self, i):
        heard = sorted(self.heard.pop(i, ()))
        weight = {j: 1 / (1 + max(len(self.N[i]), len(self.N[j]))) for j in heard}
        weight[i] = 1 - sum(weight.values())
        mixed = sum(weight[j] * self.Theta[i, j] for j in weight)
        self.Theta[i, i] = mixed - self.algorithm.step * self.slope(i, self.model(i))

    def slope(self, i, theta):
        """∇f_i."""
        return self.gradient(i, theta) + self.penalty / self.problem.n * theta


class Pairs(Mixing):
    """adpsgd: both ends take the mean of two models; who asked then steps, from where it was."""

    protocol = "average"

    def __init__(self, *args):
        super().__init__(*args)
        self.before = {}

    def absorb(self, i, j, received, sent):
        self.before[i] = self.model(i)
        self.Theta[i, i] = (self.model(i) + received) / 2

    def solve(self, i):
        step = self.algorithm.step * self.slope(i, self.before[i])
        self.Theta[i, i] = self.model(i) - step


class Wandering(Copies):
    """Those of test_oracle_network.py: noise in what is told, and in the step to where it should.

    An agent remembers a part of what it told beside what it heard; under *average* it takes means.
    Under *solve, then answer* it tells its copy and a factor too.
    """

    def __init__(self, *args):
        super().__init__(*args)
        protocols = ("answer, then solve", "solve, then answer", "tell", "average", "sparing")
        words = self.algorithm.kind.removeprefix("wandering_")
        self.protocol = next(p for p in protocols if p.startswith(words))

    def tell(self, i, j):
        if self.protocol == "solve, then answer":
            return np.array([*self.model(i), *self.Theta[i, j], self.rng.random()])
        return self.model(i) + 0.1 * self.rng.random(self.problem.p)

    def introduce(self, i, j, model):
        if self.protocol == "solve, then answer":
            self.Theta[i, j] = model
        else:
            super().introduce(i, j, model)

    def absorb(self, i, j, received, sent):
        p = self.problem.p
        if self.protocol == "solve, then answer":
            received, sent = received[2 * p] * received[:p], received[2 * p] * sent[p : 2 * p]
        self.Theta[i, j] = 0.75 * received + 0.25 * sent
        if self.protocol == "average":
            self.Theta[i, i] = (self.model(i) + received) / 2

    def solve(self, i):
        copies = np.mean([self.Theta[i, j] for j in self.N[i]], axis=0)
        aim = (self.problem.solitary[i] + copies) / 2
        self.Theta[i, i] = self.model(i) + self.rng.random() * (aim - self.model(i))


class Collaboration(oracles.ADMM):
    """admm, section 4.2 with messages: Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j."""

    protocol = "solve, then answer"

    def __init__(self, problem, algorithm, streams, penalty=0.0):
        super().__init__(problem, algorithm.trade_off, algorithm.rho, ridge=algorithm.ridge)
        self.first, fresh = first_models(problem, algorithm, streams.data)
        self.fresh = dict(fresh)
        self.steps = getattr(algorithm.primal, "gradient_steps", 0)
        for i in range(problem.n):
            self._begin(i, self.first)

    def _begin(self, i, Theta):
        self.Theta[i, i] = Theta[i, i]
        for j in map(int, self.neighbours[i]):
            self.Z[i, j, i], self.Z[i, j, j] = Theta[i, i], Theta[i, j]
            self.Lambda[i, j, i] = self.Lambda[i, j, j] = 0 * Theta[i, i]

    def forget(self, i):
        self._begin(i, self.fresh)

    def model(self, i):
        return self.Theta[i, i]

    def solve(self, i):
        if self.steps:
            self._descend(i)
        else:
            self.primal(i)

    def _descend(self, i):
        """(Sub)gradient steps on the primal problem, from which the neighbours' part is eliminated.

        Minimised over θ_j, the terms of link (i, j) are (κ/2)‖θ − u‖², κ = Wρ/(W + ρ).
        """
        W, rho, theta = self.W[i], self.rho[i], self.Theta[i, i]
        points = []  # (weight, centre) of the quadratic terms
        u = {}
        for j in self.neighbours[i]:
            u[j] = self.Z[i, j, j] - self.Lambda[i, j, j] / rho[j]
            points.append((W[j] * rho[j] / (W[j] + rho[j]), u[j]))
            points.append((rho[j], self.Z[i, j, i] - self.Lambda[i, j, i] / rho[j]))
        X, y = self.problem.data[i]
        b, a = self.mu * W.sum(), sum(weight for weight, _ in points)
        kind = self.problem.loss.kind
        for k in range(self.steps):
            s = X @ theta
            # At a kink the slope is 0; whatever is as near as rounding may bring it is on it.
            slopes = {
                "hinge": lambda s=s: np.where(y * s < 1 - 1e-9, -y, 0.0),
                "absolute": lambda s=s: np.where(
                    np.abs(s - y) <= 1e-9 * (1 + np.abs(y)), 0.0, np.sign(s - y)
                ),
            }[kind]()
            gradient = sum(weight * (theta - centre) for weight, centre in points)
            theta = theta - 2 / (a * (k + 2)) * (gradient + b * X.T @ slopes)
        self.Theta[i, i] = theta
        for j in self.neighbours[i]:
            self.Theta[i, j] = (W[j] * theta + rho[j] * u[j]) / (W[j] + rho[j])

    def tell(self, i, j):
        own, other = self.Theta[i, i], self.Theta[i, j]
        return np.array([own, other, self.Lambda[i, j, i], self.Lambda[i, j, j]])

    def absorb(self, i, j, received, sent):
        theirs = {j: received[0], i: received[1]}, {j: received[2], i: received[3]}
        mine = {i: sent[0], j: sent[1]}, {i: sent[2], j: sent[3]}
        for k in (i, j):
            Z = ((mine[1][k] + theirs[1][k]) / self.rho[i, j] + mine[0][k] + theirs[0][k]) / 2
            self.Z[i, j, k] = Z
            self.Lambda[i, j, k] = mine[1][k] + self.rho[i, j] * (mine[0][k] - Z)

    def introduce(self, i, j, model):
        self.Z[i, j, j] = model


RULES = {
    "mp": Propagation,
    "djam": Relaxation,
    "cd": Descent,
    "dpsgd": Mixing,
    "adpsgd": Pairs,
    "admm": Collaboration,
    **{
        f"wandering_{word}": Wandering for word in ("answer", "solve", "tell", "average", "sparing")
    },
}


def rule_of(scenario, problem, streams):
    """The rule that a scenario names."""
    algorithm = scenario.algorithm
    penalty = 0.0 if problem.loss.kind == "quadratic" else scenario.task.ridge
    return RULES[algorithm.kind](problem, algorithm, streams, penalty)
