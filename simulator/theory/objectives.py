"""The objectives and their minimisers, from the global view that no agent has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array, triu
from scipy.sparse.linalg import cg

from simulator.errors import NoOptimumError, SimulatorError
from simulator.problem.problem import Floats, Problem
from simulator.theory.central import minimise, remembered

#: Numbers in one block of an edge sum, and in one that the processor's cache holds.
BLOCK, CACHED = 1 << 20, 1 << 16
#: Up to so many agents, or on a denser graph than 1/10, model propagation is solved directly.
DIRECT_AGENTS = 4000


class Objective:
    """What an algorithm minimises, as a function of Θ (n, p)."""

    #: Can a least value of 0 have only one minimiser?
    unique_at_zero: ClassVar[bool]

    def __init__(self, problem: Problem, mu: float, ridge: float = 0.0):
        self.problem, self.mu, self.ridge = problem, mu, ridge
        upper = triu(problem.W, k=1, format="coo")
        self.first, self.second = upper.coords
        self.weights = upper.data
        self.owner = problem.data.owner

    def __call__(self, Theta: Floats) -> float:
        """Q(Θ)."""
        raise NotImplementedError

    def minimiser(self, near: Floats | None = None) -> Floats:
        """Θ* (n, p), sought from ``near`` on; NoOptimumError where there is none."""
        raise NotImplementedError

    def smoothness(self, Theta: Floats) -> float:
        """Σ_{i<j} W_ij‖θ_i − θ_j‖², from the differences: ΘᵀLΘ would cancel near consensus."""
        total, block = 0.0, max(1, BLOCK // Theta.shape[1])
        for start in range(0, len(self.weights), block):
            edges = slice(start, start + block)
            squares = self._squares(Theta, self.first[edges], self.second[edges])
            total += float(self.weights[edges] @ squares)
        return total

    def _squares(self, Theta: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
        """‖θ_i − θ_j‖² of each pair: in blocks, or memory would be what takes the time."""
        squares, block = np.empty(len(first)), max(1, CACHED // Theta.shape[1])
        ends = np.empty((2, block, Theta.shape[1]))
        for start in range(0, len(first), block):
            pairs = slice(start, min(start + block, len(first)))
            one, other = ends[:, : pairs.stop - start]
            # All numbers are in range; "raise", the default, would go through a copy.
            np.take(Theta, first[pairs], axis=0, out=one, mode="clip")
            np.take(Theta, second[pairs], axis=0, out=other, mode="clip")
            one -= other
            np.einsum("ep,ep->e", one, one, out=squares[pairs])
        return squares


class Propagation(Objective):
    """Equation 4: Q_MP(Θ) = ½ (Σ_{i<j} W_ij‖θ_i − θ_j‖² + μ Σ_i D_ii c_i‖θ_i − θ_i^sol‖²)."""

    unique_at_zero = True

    def __call__(self, Theta: Floats) -> float:
        """Q_MP(Θ)."""
        problem, smoothness = self.problem, self.smoothness(Theta)
        distances = np.sum((Theta - problem.solitary) ** 2, axis=1)
        attachment = float((problem.D * problem.confidence) @ distances)
        return 0.5 * (smoothness + self.mu * attachment)

    def minimiser(self, near: Floats | None = None) -> Floats:
        """Proposition 1."""
        problem = self.problem
        return mp_optimum(problem.W, problem.confidence, problem.solitary, self.mu, near)


class Collaboration(Objective):
    """Equation 7: Q_CL(Θ) = Σ_{i<j} W_ij‖θ_i − θ_j‖² + μ Σ_i D_ii L_i(θ_i).

    A ridge r adds r‖θ_i‖² to each L_i.
    """

    unique_at_zero = False

    def __call__(self, Theta: Floats) -> float:
        """Q_CL(Θ)."""
        problem, data, models = self.problem, self.problem.data, Theta[self.owner]
        predictions = models[:, 0] if data.X is None else np.einsum("kp,kp->k", data.X, models)
        losses = float(problem.D[self.owner] @ problem.loss.values(predictions, data.y))
        losses += self.ridge * float(problem.D @ np.einsum("ip,ip->i", Theta, Theta))
        return self.smoothness(Theta) + self.mu * losses

    def minimiser(self, near: Floats | None = None) -> Floats:
        """By the central solver."""
        return cl_optimum(self.problem, self.mu, self.ridge, near)


#: The objectives that rules name.
OBJECTIVES: dict[str, type[Objective]] = {"mp": Propagation, "cl": Collaboration}


@remembered
def mp_optimum(
    W: csr_array, confidence: Floats, solitary: Floats, mu: float, near: Floats | None = None
) -> Floats:
    """The minimiser (n, p) of Q_MP, Proposition 1's closed form.

    Multiplied by D/α it reads (D − W + μ D C) Θ = μ D C Θ^sol, and in Φ = D^½ Θ

        (I − D^−½ W D^−½ + μ C) Φ = μ C D^½ Θ^sol,

    which is positive definite and well scaled.  Agents without neighbours keep their models.
    """
    degrees = np.asarray(W.sum(axis=1), dtype=float).ravel()
    linked = np.flatnonzero(degrees > 0)
    Theta = solitary.copy()
    if len(linked) == 0:
        return Theta
    root = np.sqrt(degrees[linked])
    c = confidence[linked]
    similarity = csr_array(W[linked][:, linked])
    matrix = diags_array(1.0 + mu * c) - diags_array(1 / root) @ similarity @ diags_array(1 / root)
    right = (mu * c * root)[:, None] * solitary[linked]
    n = len(linked)
    if n <= DIRECT_AGENTS or similarity.nnz > n * n / 10:
        with _solvable():
            Phi = cho_solve(cho_factor(matrix.toarray(), overwrite_a=True), right)
    else:
        first = np.zeros_like(right) if near is None else root[:, None] * near[linked]
        rows = zip(right.T, first.T, strict=True)
        Phi = np.column_stack([_conjugate_gradients(csr_array(matrix), *row) for row in rows])
    Theta[linked] = Phi / root[:, None]
    return Theta


def cl_optimum(
    problem: Problem, mu: float, ridge: float = 0.0, near: Floats | None = None
) -> Floats:
    """The minimiser (n, p) of Q_CL, or one of them where there are several.

    Agents without neighbours do not occur in Q_CL, as D_ii = 0; they keep their solitary models.
    """
    data, linked = problem.data, problem.D > 0
    Theta = problem.solitary.copy()
    if not linked.any():
        return Theta
    owner = data.owner
    used = linked[owner]
    number = np.cumsum(linked) - 1
    degrees = problem.D[linked]
    laplacian = diags_array((1.0 + mu * ridge) * degrees) - problem.W[linked][:, linked]
    with _solvable():
        Theta[linked] = minimise(
            csr_array(2.0 * laplacian),
            problem.loss,
            None if data.X is None else data.X[used],
            data.y[used],
            number[owner[used]],
            mu * problem.D[owner[used]],
            definite=ridge > 0.0,
            near=None if near is None else near[linked],
        )
    return Theta


@contextmanager
def _solvable() -> Iterator[None]:
    """What LAPACK says of a matrix that overflow or rounding has spoilt, in plain words."""
    try:
        yield
    except (np.linalg.LinAlgError, ValueError) as error:
        raise NoOptimumError(
            f"the optimum cannot be computed ({error}): the trade-off, the weights and the data "
            "differ too much in size"
        ) from None


def consensus_model(problem: Problem, ridge: float) -> Floats:
    """The one model (p,) for all that minimises Σ_i L_i(θ), equation 2.

    It is the solitary model of an agent who has everybody's data, with the same ridge.  For some
    losses a device's own method, coordinate descent, is too slow on so many points.
    """
    data = problem.data
    with _solvable():
        if not problem.loss.slow_on_many:
            return problem.loss.fit(data.X, data.y, ridge, problem.p)
        everybody = np.zeros(len(data.y), dtype=np.int64)
        return minimise(
            csr_array(np.array([[ridge]])),
            problem.loss,
            data.X,
            data.y,
            everybody,
            np.ones(len(data.y)),
        )[0]


def _conjugate_gradients(matrix: csr_array, right: Floats, first: Floats) -> Floats:
    solution, failed = cg(matrix, right, x0=first, rtol=1e-12, atol=0.0, maxiter=100_000)
    if failed:
        raise SimulatorError("conjugate gradients did not reach the optimum of Q_MP to 1e-12")
    return np.asarray(solution)
