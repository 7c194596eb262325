"""A central solver for a graph's smoothness plus the agents' losses, which sees all of them at once.

    minimise over Θ (n, p)   ½ Σ_ij K_ij θ_i·θ_j + Σ_k b_k ℓ(x_k·θ_{i(k)}, y_k)

with a sparse positive semidefinite K (n, n), K_ii > 0, and M points, the k-th one of agent i(k).
Nothing here is shared with the agents' ADMM, so that one may be checked against the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg

from agents.losses import Floats, Kinked, Loss, design
from simulator.errors import SimulatorError

Indices = NDArray[np.int64]

#: Residuals of the optimality conditions, relative to the size of the terms in them.
TOLERANCE = 1e-10
MULTIPLIER_LIMIT = 100
NEWTON_LIMIT = 200
#: Weight of the proximal term, relative to K_ii: K alone is singular.
PROXIMAL = 1e-6
#: A Newton system with at most so many active points and agents is factorised.
DENSE_POINTS = 1500
DENSE_AGENTS = 2000


def minimise(
    K: csr_array, loss: Loss, X: Floats | None, y: Floats, owner: Indices, b: Floats
) -> Floats:
    """The minimiser (n, p), or one of them; ``owner`` ascends, b > 0.

    Solved in Φ with φ_i = K_ii^½ θ_i, so that agents with weak links are solved as accurately.
    """
    root = np.sqrt(K.diagonal())
    scaled = csr_array(diags_array(1.0 / root) @ K @ diags_array(1.0 / root))
    if isinstance(loss, Kinked):
        Z, t, low = loss.boxed(X, y)
        system = _System(scaled, Z / root[owner, None], owner)
        Phi = _method_of_multipliers(system, t, low * b, b)
    else:
        Phi = _newton(_System(scaled, design(X, y) / root[owner, None], owner), loss, y, b)
    return Phi / root[:, None]


class _System:
    """The linear algebra of the problem, with K scaled to a diagonal of ones."""

    def __init__(self, K: csr_array, Z: Floats, owner: Indices):
        self.K, self.Z, self.owner = K, Z, owner
        self.n, self.p = K.shape[0], Z.shape[1]
        self.rows = self._per_agent(Z, owner)
        self.columns = csr_array(self.rows.T)
        self.lengths = np.linalg.norm(Z, axis=1)

    def _per_agent(self, Z: Floats, owner: Indices) -> csr_array:
        """(M, n·p): row k holds z_k in the columns of its agent."""
        index = owner[:, None] * self.p + np.arange(self.p)
        pointers = np.arange(len(Z) + 1) * self.p
        return csr_array((Z.ravel(), index.ravel(), pointers), shape=(len(Z), self.n * self.p))

    def predict(self, Theta: Floats) -> Floats:
        """z_k·θ_{i(k)}, (M,)."""
        return np.asarray(self.rows @ Theta.ravel())

    def gather(self, d: Floats) -> Floats:
        """Σ_k d_k z_k of each agent, (n, p)."""
        return np.asarray(self.columns @ d).reshape(self.n, self.p)

    def size(self, Theta: Floats, d: Floats) -> float:
        """The size of the terms whose sum vanishes at the optimum."""
        return float(np.linalg.norm(Theta) + np.linalg.norm(d * self.lengths))

    def solve(self, weights: Floats, tau: float, right: Floats, accuracy: float) -> Floats:
        """(K + τ I) Δ + Σ_k w_k z_k z_k·Δ = right, by preconditioned conjugate gradients."""
        size = self.n * self.p

        def apply(vector: Floats) -> Floats:
            Delta = vector.reshape(self.n, self.p)
            data = self.gather(weights * self.predict(Delta))
            return np.asarray(self.K @ Delta + tau * Delta + data).ravel()

        active = np.flatnonzero(weights)
        dense = len(active) <= DENSE_POINTS and self.n <= DENSE_AGENTS
        inverse = (self._dense_inverse if dense else self._block_inverse)(weights, active)
        solution, _ = cg(
            LinearOperator((size, size), matvec=apply, dtype=float),
            right.ravel(),
            rtol=accuracy,
            atol=0.0,
            maxiter=10_000,
            M=LinearOperator((size, size), matvec=inverse, dtype=float),
        )
        return np.asarray(solution).reshape(self.n, self.p)

    @cached_property
    def _smooth_inverse(self) -> Floats:
        """G = (K + PROXIMAL I)⁻¹, (n, n)."""
        matrix = self.K.toarray() + PROXIMAL * np.eye(self.n)
        return np.asarray(cho_solve(cho_factor(matrix), np.eye(self.n)))

    def _dense_inverse(self, weights: Floats, active: Indices) -> Callable[[Floats], Floats]:
        """The Newton matrix's inverse by Woodbury's identity, in the space of the active points."""
        G, Z, owner = self._smooth_inverse, self.Z[active], self.owner[active]
        inner = G[np.ix_(owner, owner)] * (Z @ Z.T) + np.diag(1.0 / weights[active])
        factor = cho_factor(inner, overwrite_a=True)

        def apply(vector: Floats) -> Floats:
            smooth = G @ vector.reshape(self.n, self.p)
            d = np.zeros(len(weights))
            d[active] = cho_solve(factor, self.predict(smooth)[active])
            return np.asarray(smooth - G @ self.gather(d)).ravel()

        return apply

    def _block_inverse(self, weights: Floats, active: Indices) -> Callable[[Floats], Floats]:
        """The inverses of the agents' own blocks, k I + Zᵀ diag(w) Z = k (I − UᵀU)⁻¹.

        Good where most points are active, which is where there are too many to factorise.
        """
        k = 1.0 + PROXIMAL  # K_ii = 1
        Z, owner = self.Z[active] * np.sqrt(weights[active])[:, None], self.owner[active]
        ends = np.searchsorted(owner, np.arange(self.n + 1))
        factors, owners = [np.empty((0, self.p))], [np.empty(0, dtype=np.int64)]
        for i in np.unique(owner):
            _, singular, Vt = np.linalg.svd(Z[ends[i] : ends[i + 1]], full_matrices=False)
            factors.append(Vt * (singular / np.sqrt(k + singular**2))[:, None])
            owners.append(np.full(len(singular), i))
        U = self._per_agent(np.concatenate(factors), np.concatenate(owners))
        Ut = csr_array(U.T)
        return lambda vector: (vector.ravel() - Ut @ (U @ vector.ravel())) / k


def _newton(system: _System, loss: Loss, y: Floats, b: Floats) -> Floats:
    """Smooth losses: Newton's method; the quadratic loss needs a single step."""
    Theta = np.zeros((system.n, system.p))
    for _ in range(NEWTON_LIMIT):
        s = system.predict(Theta)
        d = -b * loss.slope(s, y)
        gradient = system.K @ Theta - system.gather(d)
        relative = float(np.linalg.norm(gradient)) / max(system.size(Theta, d), 1e-300)
        if relative <= TOLERANCE:
            return Theta
        direction = system.solve(b * loss.bend(s, y), 0.0, -gradient, 0.01 * TOLERANCE)

        def slope(
            step: float, s: Floats = s, Theta: Floats = Theta, V: Floats = direction
        ) -> float:
            smooth = np.sum(V * (system.K @ (Theta + step * V)))
            rates = system.predict(V)
            return float(smooth + (b * loss.slope(s + step * rates, y)) @ rates)

        Theta = Theta + _step_length(slope) * direction
    raise SimulatorError(_failure(relative))


def _method_of_multipliers(system: _System, t: Floats, low: Floats, high: Floats) -> Floats:
    """Kinked losses, Σ_k max over d_k in [low_k, high_k] of −d_k (z_k·θ − t_k), without the kinks.

    Each step adds −‖d − old‖²/(2 penalty) to the maximum over d, and a small ‖Θ − old‖² to the
    minimum over Θ; that problem is smooth, with d = clip(old − penalty·(z·θ − t)), and solved by
    Newton's method.  At the fixed point both additions vanish.
    """
    Theta = np.zeros((system.n, system.p))
    d = np.clip(0.0, low, high)
    with np.errstate(divide="ignore"):
        unit = 1.0 / system.lengths**2
    for outer in range(MULTIPLIER_LIMIT):
        penalty = 10.0 ** min(outer, 3) * np.minimum(unit, high)
        Theta, d = _multiplier_step(system, t, low, high, penalty, Theta, d)
        r = system.predict(Theta) - t
        # The optimality conditions: KΘ = Σ d z, and d in the subdifferential of the loss.
        stationarity = float(np.linalg.norm(system.K @ Theta - system.gather(d)))
        wrong = np.where(d <= low, np.minimum(r, 0.0), np.where(d >= high, np.maximum(r, 0.0), r))
        residual = max(
            stationarity / max(system.size(Theta, d), 1e-300),
            float(
                np.max(np.abs(wrong), initial=0.0) / np.max(np.abs(r) + np.abs(t), initial=1e-300)
            ),
        )
        if residual <= TOLERANCE:
            return Theta
    raise SimulatorError(_failure(residual))


def _multiplier_step(
    system: _System,
    t: Floats,
    low: Floats,
    high: Floats,
    penalty: Floats,
    Theta: Floats,
    old: Floats,
) -> tuple[Floats, Floats]:
    """The next Θ and d."""
    anchor = Theta
    for _ in range(NEWTON_LIMIT):
        r = system.predict(Theta) - t
        d = np.clip(old - penalty * r, low, high)
        gradient = system.K @ Theta + PROXIMAL * (Theta - anchor) - system.gather(d)
        relative = float(np.linalg.norm(gradient)) / max(system.size(Theta, d), 1e-300)
        if relative <= 0.1 * TOLERANCE:
            break
        free = (low < d) & (d < high)
        accuracy = max(TOLERANCE, min(0.1, relative))
        direction = system.solve(np.where(free, penalty, 0.0), PROXIMAL, -gradient, accuracy)
        rates = system.predict(direction)
        bent = system.K @ direction + PROXIMAL * direction
        start = float(np.sum(Theta * bent) - np.sum(PROXIMAL * anchor * direction))
        curve = float(np.sum(direction * bent))

        def slope(
            step: float,
            r: Floats = r,
            rates: Floats = rates,
            start: float = start,
            curve: float = curve,
        ) -> float:
            return (
                start
                + step * curve
                - float(np.clip(old - penalty * (r + step * rates), low, high) @ rates)
            )

        Theta = Theta + _step_length(slope) * direction
    return Theta, d


def _step_length(slope: Callable[[float], float]) -> float:
    """A step in (0, 1] near the zero of the derivative along a direction, which is monotone."""
    first = slope(0.0)
    lower, upper, step = 0.0, 1.0, 1.0
    for _ in range(60):
        now = slope(step)
        if now > -0.1 * first:
            upper = step
        elif now < 0.5 * first and step < 1.0:
            lower = step
        else:
            break
        step = 0.5 * (lower + upper)
    return step


def _failure(residual: float) -> str:
    return (
        "the central solver did not reach the optimum of Q_CL (relative residual "
        f"{residual:.1e}, {TOLERANCE:.0e} is wanted); weights, features or targets of very "
        "different size are the usual cause"
    )
