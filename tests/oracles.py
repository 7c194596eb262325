"""The paper's recursions, written out as plain sequential loops over dense arrays.

They share no code with the packages under test beyond the problem's data and the random streams.
"""

from __future__ import annotations

import heapq
import itertools

import numpy as np


def ticks(rates, weights, streams, peers):
    """Yield (time, i, j) for ever: Poisson clocks and random partners, as DESIGN section 4 says."""
    n = len(rates)
    queue = [(streams.clock.standard_exponential() / rates[i], i) for i in range(n)]
    heapq.heapify(queue)
    while True:
        time, i = heapq.heappop(queue)
        u = streams.peers.random()
        heapq.heappush(queue, (time + streams.clock.standard_exponential() / rates[i], i))
        neighbours = np.flatnonzero(weights[i])
        if len(neighbours) == 0:
            continue
        if peers in (None, "uniform"):
            j = neighbours[min(int(u * len(neighbours)), len(neighbours) - 1)]
        else:
            share = np.cumsum(weights[i, neighbours])
            j = neighbours[min(np.searchsorted(share, u * share[-1], "right"), len(share) - 1)]
        yield time, i, int(j)


def model_propagation(problem, mu, exchanges, start="own"):
    """Section 3.2: Θ̃ as a dense (n, n, p) array; ``exchanges`` is a list of (i, j)."""
    W, c, solitary = problem.W.toarray(), problem.confidence, problem.solitary
    n, p = solitary.shape
    alpha = 1 / (1 + mu)
    Theta = np.zeros((n, n, p))
    for i, j in itertools.product(range(n), range(n)):
        if i == j or W[i, j] > 0:
            Theta[i, j] = {"own": solitary[i], "known": solitary[j], "zero": 0 * solitary[i]}[start]
        if i == j and start != "zero":
            Theta[i, i] = solitary[i]
    for i, j in exchanges:
        Theta[i, j], Theta[j, i] = Theta[j, j].copy(), Theta[i, i].copy()
        for k in (i, j):
            mean = sum(W[k, m] / W[k].sum() * Theta[k, m] for m in np.flatnonzero(W[k]))
            Theta[k, k] = (alpha * mean + (1 - alpha) * c[k] * solitary[k]) / (
                alpha + (1 - alpha) * c[k]
            )
    return Theta[np.arange(n), np.arange(n)]


def synchronous_model_propagation(problem, mu, rounds):
    """Equation 5."""
    W, alpha = problem.W.toarray(), 1 / (1 + mu)
    P = W / W.sum(axis=1, keepdims=True)
    C = np.diag(problem.confidence)
    left = np.linalg.inv(alpha * np.eye(len(W)) + (1 - alpha) * C)
    Theta = problem.solitary
    for _ in range(rounds):
        Theta = left @ (alpha * P @ Theta + (1 - alpha) * C @ problem.solitary)
    return Theta


class ADMM:
    """Section 4.2 and appendix D with all of the paper's variables, in dictionaries.

    The primal problem is solved over Θ_i in full, (|N_i| + 1)·p unknowns at once.
    """

    def __init__(self, problem, mu, rho, start="own", ridge=0.0):
        self.problem, self.mu, self.ridge = problem, mu, ridge
        self.W = problem.W.toarray()
        self.rho = self.W / 2 if rho == "auto" else np.full_like(self.W, rho)
        self.neighbours = [np.flatnonzero(row) for row in self.W]
        self.Z, self.Lambda = {}, {}
        self.Theta = {}
        solitary = problem.solitary
        for i, N in enumerate(self.neighbours):
            self.Theta[i, i] = solitary[i]
            for j in N:
                copy = {"own": solitary[i], "known": solitary[j], "zero": 0 * solitary[j]}[start]
                own = 0 * solitary[i] if start == "zero" else solitary[i]
                self.Z[i, j, i], self.Z[i, j, j] = own, copy  # Z_ei^i and Z_ei^j of e = (i, j)
                self.Lambda[i, j, i] = self.Lambda[i, j, j] = 0 * own

    def primal(self, i):
        """Minimise L_ρ^i over (θ_i, θ_j for j in N_i)."""
        N, p = self.neighbours[i], self.problem.p
        size = (len(N) + 1) * p
        H, g = np.zeros((size, size)), np.zeros(size)  # ½ xᵀHx − gᵀx + μ D_ii L_i(θ_i)
        own, eye = slice(0, p), np.eye(p)
        for k, j in enumerate(N, 1):
            other, w, rho = slice(k * p, (k + 1) * p), self.W[i, j], self.rho[i, j]
            H[own, own] += (w + rho) * eye
            H[other, other] += (w + rho) * eye
            H[own, other] -= w * eye
            H[other, own] -= w * eye
            g[own] += rho * self.Z[i, j, i] - self.Lambda[i, j, i]
            g[other] += rho * self.Z[i, j, j] - self.Lambda[i, j, j]
        X, y = self.problem.data[i]
        X = np.ones((len(y), 1)) if X is None else X
        b = self.mu * self.W[i].sum()
        H[own, own] += 2 * b * self.ridge * eye
        x = SOLVERS[self.problem.loss.kind](H, g, np.pad(X, ((0, 0), (0, size - p))), y, b)
        self.Theta[i, i] = x[own]
        for k, j in enumerate(N, 1):
            self.Theta[i, j] = x[k * p : (k + 1) * p]

    def exchange(self, pairs):
        """Steps 2 and 3 for the edges in ``pairs``, from the values before any of them."""
        Z, Lambda = {}, {}
        for i, j in pairs:
            rho = self.rho[i, j]
            for k in (i, j):
                mean = 0.5 * (
                    (self.Lambda[i, j, k] + self.Lambda[j, i, k]) / rho
                    + self.Theta[i, k]
                    + self.Theta[j, k]
                )
                for end, far in ((i, j), (j, i)):
                    Z[end, far, k] = mean
                    Lambda[end, far, k] = self.Lambda[end, far, k] + rho * (
                        self.Theta[end, k] - mean
                    )
        self.Z.update(Z)
        self.Lambda.update(Lambda)

    def gossip(self, exchanges):
        for i, j in exchanges:
            self.primal(i)
            self.primal(j)
            self.exchange([(i, j)])
        return self.models()

    def rounds(self, count):
        edges = [(i, j) for i, N in enumerate(self.neighbours) for j in N if i < j]
        for _ in range(count):
            for i in range(len(self.neighbours)):
                self.primal(i)
            self.exchange(edges)
        return self.models()

    def models(self):
        return np.array([self.Theta[i, i] for i in range(len(self.neighbours))])


def _quadratic(H, g, X, y, b):
    return np.linalg.solve(H + 2 * b * X.T @ X, g + 2 * b * X.T @ y)


def _pieces(H, g, X, y, b, states):
    """Exact minimiser of ½xᵀHx − gᵀx + b Σ_k piecewise-linear loss, by trying every combination.

    A state (slope, None) says that point k lies on a linear piece, (None, kink) that its
    prediction is exactly at the kink.  Only for a handful of points.
    """
    size = len(g)
    for combination in itertools.product(*states):
        fixed = [k for k, (_, kink, _) in enumerate(combination) if kink is not None]
        free = [k for k in range(len(y)) if k not in fixed]
        A = X[fixed]
        right = g - b * sum((combination[k][0] * X[k] for k in free), np.zeros(size))
        KKT = np.block([[H, A.T], [A, np.zeros((len(fixed), len(fixed)))]])
        target = np.concatenate([right, [combination[k][1] for k in fixed]])
        solution = np.linalg.lstsq(KKT, target, rcond=None)[0]
        if np.abs(KKT @ solution - target).max() > 1e-9:
            continue
        x, multipliers = solution[:size], solution[size:] / b
        if all(combination[k][2](x @ X[k], None) for k in free) and all(
            combination[k][2](None, m) for k, m in zip(fixed, multipliers, strict=True)
        ):
            return x
    raise AssertionError("no combination satisfies the optimality conditions")


def _hinge(H, g, X, y, b):
    e = 1e-9
    states = [
        [
            (0.0, None, lambda s, m, t=t: s * t >= 1 - e),
            (-t, None, lambda s, m, t=t: s * t <= 1 + e),
            (None, t, lambda s, m, t=t: -e <= -m * t <= 1 + e),
        ]
        for t in y
    ]
    return _pieces(H, g, X, y, b, states)


def _absolute(H, g, X, y, b):
    e = 1e-9
    states = [
        [
            (1.0, None, lambda s, m, t=t: s >= t - e),
            (-1.0, None, lambda s, m, t=t: s <= t + e),
            (None, t, lambda s, m, t=t: abs(m) <= 1 + e),
        ]
        for t in y
    ]
    return _pieces(H, g, X, y, b, states)


def _logistic(H, g, X, y, b):
    x = np.linalg.solve(H, g)
    for _ in range(60):
        q = 1 / (1 + np.exp(y * (X @ x)))
        gradient = H @ x - g - b * X.T @ (y * q)
        step = np.linalg.solve(H + b * X.T @ ((q * (1 - q))[:, None] * X), gradient)
        x = x - step
        if np.abs(step).max() < 1e-14:
            return x
    raise AssertionError("Newton's method did not converge")


SOLVERS = {"quadratic": _quadratic, "hinge": _hinge, "absolute": _absolute, "logistic": _logistic}
