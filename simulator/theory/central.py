"""A central solver for a graph's smoothness plus all agents' losses at once.

    minimise over Θ (n, p)   ½ Σ_ij K_ij θ_i·θ_j + Σ_k b_k ℓ(x_k·θ_{i(k)}, y_k)

with a sparse positive semidefinite K (n, n), K_ii > 0, and M points, the k-th one of agent i(k).
Nothing here is shared with the agents' ADMM, so that one may be checked against the other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from threading import Lock
from typing import Any, ParamSpec

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from agents.losses import Floats, Kinked, Loss, design
from agents.losses.loss import Indices
from simulator.errors import NoOptimumError, SimulatorError

Data = Callable[[Floats], tuple[Floats, Floats]]
P = ParamSpec("P")

#: Residuals of the optimality conditions, relative to their terms: aimed at, and insisted on, which
#: is less: points whose kinks lie within 1e-9 of one vertex can't be told apart by rounded numbers.
TOLERANCE = 1e-10
REQUIRED = 1e-8
#: KΘ cannot be computed more accurately than to ROUNDING·TOLERANCE·‖Θ‖.
ROUNDING = 1e-5
NEWTON_LIMIT = 100
#: Weight of the proximal term, relative to K_ii: K alone is singular.
PROXIMAL = 1e-6
#: Powers of ten of the penalties in turn; the higher ones are for badly scaled problems only.
_ONCE = (0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
HARDNESS = (*_ONCE, *_ONCE, *_ONCE, *_ONCE, 13, 14)
#: A Newton system with at most so many active points and agents is factorised.
DENSE_POINTS = 1500
DENSE_AGENTS = 2000
#: How many solutions a function remembers, and how many numbers a solution may have: at most 50 MB.
MOST = 64
LARGEST = 100_000


# --- what is asked for again and again ------------------------------------------------------------
def remembered(solve: Callable[P, Floats]) -> Callable[P, Floats]:
    """``solve``, a pure function of arrays and values, which solves nothing twice.

    A sweep over delays, a comparison, a figure of several rules all need the same few optima.  What
    a process has solved it remembers by the content of what was asked, so that nobody has to hand
    solutions around and no solution can belong to another problem.
    """
    solutions: dict[Hashable, Floats] = {}
    turn = Lock()  # workers may be threads

    @wraps(solve)
    def recall(*args: P.args, **kwargs: P.kwargs) -> Floats:
        key = tuple(_content(part) for part in (*args, *sorted(kwargs.items())))
        with turn:
            found = solutions.pop(key, None)
        if found is None:
            found = solve(*args, **kwargs)
        if found.size <= LARGEST:
            with turn:
                solutions[key] = found  # the last one in: the first to go is the longest unused
                while len(solutions) > MOST:
                    del solutions[next(iter(solutions))]
        return found.copy()

    return recall


def _content(part: Any) -> Hashable:
    """What tells an argument from another; of an object with fields, its class and their values."""
    if isinstance(part, np.ndarray):
        data = np.ascontiguousarray(part)
        return part.shape, part.dtype.str, hashlib.blake2b(data.tobytes()).digest()
    if isinstance(part, csr_array):
        return part.shape, *(_content(array) for array in (part.data, part.indices, part.indptr))
    if isinstance(part, tuple):
        return tuple(_content(item) for item in part)
    return type(part), repr(part)


# --- the solver -----------------------------------------------------------------------------------
@remembered
def minimise(
    K: csr_array,
    loss: Loss,
    X: Floats | None,
    y: Floats,
    owner: Indices,
    b: Floats,
    definite: bool = False,
    near: Floats | None = None,
) -> Floats:
    """The minimiser (n, p), or one of them; ``owner`` ascends, b > 0.

    Where K is ``definite`` there is one for every loss.  It is sought from ``near`` on.

    Solved in Φ with φ_i = K_ii^½ θ_i, so that agents with weak links are solved as accurately.
    """
    root = np.sqrt(K.diagonal())
    first = np.zeros((K.shape[0], 1 if X is None else X.shape[1]))
    first += 0.0 if near is None else near * root[:, None]
    scaled = csr_array(diags_array(1.0 / root) @ K @ diags_array(1.0 / root))
    if isinstance(loss, Kinked):
        (Z, t), low = loss.boxed(X, y), loss.low
        system = _System(scaled, Z / root[owner, None], owner, b)
        Phi, residual = _kinked_optimum(system, t, low * b, b, first)
    else:
        system = _System(scaled, design(X, y) / root[owner, None], owner, b)
        Phi, residual = _smooth_optimum(system, loss, y, b, first)
    Theta: Floats = Phi / root[:, None]
    if loss.runs_away and not definite:
        _require_minimiser(K, Theta, design(X, y) * y[:, None], owner)
    if not residual <= REQUIRED:
        raise SimulatorError(
            "the central solver did not reach the optimum of Q_CL (relative residual "
            f"{residual:.1e}, {REQUIRED:.0e} is wanted); weights, features or targets of very "
            "different size are the usual cause"
        )
    return Theta


def _require_minimiser(K: csr_array, Theta: Floats, Z: Floats, owner: Indices) -> None:
    """The logistic loss has none where one model is right on all points of a connected part.

    If it is, Q_CL falls for ever along it; and Newton's method has run away in that direction.
    """
    parts, part = connected_components(K, directed=False)
    sums = np.zeros((parts, Theta.shape[1]))
    np.add.at(sums, part, Theta)
    margins = np.einsum("kp,kp->k", Z, sums[part[owner]])
    wrong = np.bincount(part[owner], weights=margins < 0, minlength=parts)
    right = np.bincount(part[owner], weights=margins > 0, minlength=parts)
    if np.any((wrong == 0) & (right > 0)):
        raise NoOptimumError(
            "Q_CL has no minimiser: one model classifies all points of a connected part of the "
            "graph, and the logistic loss rewards making it ever larger; use the hinge loss, or "
            "more data"
        )


class _System:
    """The linear algebra of the problem, with K scaled to a diagonal of ones."""

    def __init__(self, K: csr_array, Z: Floats, owner: Indices, b: Floats):
        self.K, self.Z, self.owner = K, Z, owner
        self.n, self.p = K.shape[0], Z.shape[1]
        self.rows = self._per_agent(Z, owner)
        self.columns = csr_array(self.rows.T)
        self.lengths = np.linalg.norm(Z, axis=1)
        #: The size of the forces that the points may exert.
        self.pull = max(float(np.linalg.norm(b * self.lengths)), 1e-300)

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

    def relative(self, residual: Floats, Theta: Floats, d: Floats) -> float:
        """The size of KΘ − Σ d z relative to its terms.

        These may vanish at the optimum: then to the data's pull on Θ = 0, and to rounding.
        """
        terms = np.linalg.norm(d * self.lengths) + 1e-3 * self.pull
        return float(np.linalg.norm(residual) / (terms + ROUNDING * np.linalg.norm(Theta)))

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
            maxiter=2000,
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
        roots = np.sqrt(weights[active])
        inner = G[np.ix_(owner, owner)] * (Z @ Z.T) * np.outer(roots, roots)
        inner[np.diag_indices_from(inner)] += 1.0
        factor = cho_factor(inner, overwrite_a=True)

        def apply(vector: Floats) -> Floats:
            smooth = G @ vector.reshape(self.n, self.p)
            d = np.zeros(len(weights))
            d[active] = roots * cho_solve(factor, roots * self.predict(smooth)[active])
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


def _newton(
    system: _System,
    data: Data,
    tau: float,
    anchor: Floats,
    tolerance: float,
    refinements: int = 0,
) -> tuple[Floats, Floats, float]:
    """Minimise ½ ΘᵀKΘ + (τ/2)‖Θ − anchor‖² + the data's part, which is smooth, from the anchor.

    ``data`` gives for predictions s the negative slopes d and the curvatures of its terms.
    ``refinements`` more steps are taken once the tolerance is met.  Returns Θ, d and the gradient
    that is left, relative to the size of its terms.
    """
    Theta = anchor
    for iteration in range(NEWTON_LIMIT):
        s = system.predict(Theta)
        d, weights = data(s)
        smooth = system.K @ Theta + tau * (Theta - anchor)
        gradient = smooth - system.gather(d)
        residual = system.relative(gradient, Theta, d)
        if residual <= tolerance:
            if refinements == 0:
                break
            refinements -= 1
        accuracy = max(1e-8, min(0.1, residual))
        # Some damping, as the matrix is singular where the data leave models undetermined.
        damping = max(tau, PROXIMAL * 10.0**-iteration, 1e-11)
        direction = system.solve(weights, damping, -gradient, accuracy)
        start = float(np.sum(smooth * direction))
        curve = float(np.sum((system.K @ direction + tau * direction) * direction))
        step = _step_length(data, s, system.predict(direction), start, curve)
        Theta = Theta + step * direction
        if step * np.linalg.norm(direction) <= 1e-15 * np.linalg.norm(Theta):
            break  # all that rounding allows
    return Theta, d, residual


def _step_length(data: Data, s: Floats, rates: Floats, start: float, curve: float) -> float:
    """A step in (0, 1] near the zero of the derivative along a direction, which is monotone."""
    first = start - float(data(s)[0] @ rates)
    lower, upper, step = 0.0, 1.0, 1.0
    for _ in range(60):
        now = start + step * curve - float(data(s + step * rates)[0] @ rates)
        if now > -0.1 * first:
            upper = step
        elif now < 0.5 * first and step < 1.0:
            lower = step
        else:
            break
        step = 0.5 * (lower + upper)
    return step


def _smooth_optimum(
    system: _System, loss: Loss, y: Floats, b: Floats, first: Floats
) -> tuple[Floats, float]:
    """Smooth losses: Newton's method; the quadratic loss needs a single step."""
    Theta, _, residual = _newton(
        system,
        lambda s: (-b * loss.slopes(s, y), b * loss.bends(s, y)),
        0.0,
        first,
        TOLERANCE,
        refinements=1,
    )
    return Theta, residual


def _kinked_optimum(
    system: _System, t: Floats, low: Floats, high: Floats, first: Floats
) -> tuple[Floats, float]:
    """Kinked losses, Σ_k max over d_k in [low_k, high_k] of −d_k (s_k − t_k), without the kinks.

    A step of the proximal method of multipliers adds −(d_k − old_k)²/(2 penalty_k) to the maximum
    and a small ‖Θ − old‖² to the minimum.  That problem is smooth, with
    d = clip(old − penalty·(s − t)); at the fixed point of the steps both additions vanish.
    """
    Theta, d = first, np.clip(0.0, low, high)
    with np.errstate(divide="ignore"):
        unit = np.minimum(1.0 / system.lengths**2, high)
    best = (Theta, math.inf)
    for hardness in HARDNESS:
        penalty, tau, old = 10.0**hardness * unit, PROXIMAL * 10.0 ** min(0, 3 - hardness), d

        def data(s: Floats, old: Floats = old, penalty: Floats = penalty) -> tuple[Floats, Floats]:
            d = np.clip(old - penalty * (s - t), low, high)
            return d, np.where((low < d) & (d < high), penalty, 0.0)

        Theta, d, _ = _newton(system, data, tau, Theta, 0.1 * TOLERANCE)
        # The optimality conditions: KΘ = Σ_k d_k z_k, and −d_k a subgradient of the loss.
        stationarity = system.relative(system.K @ Theta - system.gather(d), Theta, d)
        r = system.predict(Theta) - t
        wrong = np.where(d <= low, np.minimum(r, 0.0), np.where(d >= high, np.maximum(r, 0.0), r))
        sizes = np.abs(r) + np.abs(t)
        kinks = float(np.max(np.abs(wrong), initial=0.0) / np.max(sizes, initial=1e-300))
        best = min(best, (Theta, max(stationarity, kinks)), key=lambda found: found[1])
        if best[1] <= TOLERANCE:
            break
    return best
