"""Kernel graphs and nearest neighbours: agents are linked by how alike their vectors are."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import coo_array, csr_array
from scipy.spatial import cKDTree

from agents.parameters import Count, Positive
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.problem.graphs.graph import Agents, symmetric
from simulator.scenario.kinds import Graph, Problems, Task

Floats = NDArray[np.float64]

#: A kernel graph is refused when building it would take more memory than this.
MEMORY = 2e9
_BYTES_PER_DIRECTED_EDGE = 50  # as measured, all working arrays included
_BLOCK = 2**16  # pairs whose vectors are compared at a time


class _Comparing(Graph):
    """A graph on the agents' vectors."""

    sigma: Positive = 0.1
    """σ of the kernel."""

    def problems(self, task: Task) -> Problems:
        """Vectors that are not there, or whose angles (or distances) mean nothing."""
        if not task.has_vectors:
            what = f"{self.kind} needs the agents' auxiliary vectors: give task.vectors"
            return [("kind", what)]
        angular, key = self.by_angle(task.angular)
        if task.count is None or angular == task.angular:
            return []
        if angular:
            what = f"{task.kind} has points whose angles mean nothing"
            return [(key, f"{what}; use gaussian_kernel, or knn with metric: euclidean")]
        what = f"{task.kind} compares its agents by the angle of their targets"
        return [(key, f"{what}; use angular_kernel, or knn with metric: angular")]

    def by_angle(self, usual: bool) -> tuple[bool, str]:
        """Does the angle count and not the distance, and which key says so?"""
        raise NotImplementedError

    def spread(self, angular: bool) -> float:
        """Of the kernel on what is compared."""
        return float(np.sqrt(self.sigma)) if angular else self.sigma


class _Kernel(_Comparing):
    """All pairs whose weight exceeds ``min_weight``."""

    angular: ClassVar[bool]
    min_weight: Annotated[float, Field(ge=0, lt=1)]

    def by_angle(self, usual: bool) -> tuple[bool, str]:
        """What the kernel compares."""
        return self.angular, "kind"

    def problems(self, task: Task) -> Problems:
        """A complete graph that is too large, too: it need not be built to know its size."""
        found, n = super().problems(task), task.count or 0
        if self.min_weight == 0 and _too_many(n * (n - 1)):
            what = f"0 keeps the complete graph of {n:,} agents; {_needs(n * (n - 1))}"
            found = [*found, ("min_weight", f"{what}; raise it, or use graph.kind: knn")]
        return found

    def build(self, agents: Agents, rng: np.random.Generator) -> csr_array:
        """The weights."""
        points = agents.compared(self.kind, self.angular)
        return _kernel_graph(self.kind, points, self.spread(self.angular), self.min_weight)


class GaussianKernel(_Kernel):
    """W_ij = exp(−‖v_i − v_j‖² / 2σ²) on auxiliary vectors; weights ≤ min_weight are dropped."""

    kind: Literal["gaussian_kernel"] = "gaussian_kernel"
    angular = False
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Weights up to it are left out; 0 keeps the complete graph."""


class AngularKernel(_Kernel):
    """W_ij = exp((cos φ_ij − 1) / σ), φ_ij the angle of target models (or auxiliary vectors)."""

    kind: Literal["angular_kernel"] = "angular_kernel"
    angular = True
    min_weight: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """Weights up to it are left out."""


class NearestNeighbours(_Comparing):
    """The k nearest by distance or angle, symmetrised by union; weights 1 or of the kernel."""

    kind: Literal["knn"] = "knn"
    k: Count = 10
    """How many."""
    metric: Literal["euclidean", "angular"] | None = None
    """By default angular for linear_classification, euclidean otherwise."""
    weights: Literal["unit", "kernel"] = "unit"
    """1, or of the kernel; sigma plays no part in unit weights, with which it can be compared."""

    def by_angle(self, usual: bool) -> tuple[bool, str]:
        """What the metric says."""
        return (usual, "kind") if self.metric is None else (self.metric == "angular", "metric")

    def problems(self, task: Task) -> Problems:
        """More neighbours than agents, too."""
        found = super().problems(task)
        if task.count is not None and self.k >= task.count:
            what = f"must be less than the number of agents, {task.count} (got {self.k})"
            found = [("k", what), *found]
        return found

    def build(self, agents: Agents, rng: np.random.Generator) -> csr_array:
        """The weights."""
        angular, _ = self.by_angle(agents.angular)
        points = agents.compared(self.kind, angular)
        return _nearest(points, self.k, self.spread(angular) if self.weights == "kernel" else None)


def kernel(distances: Floats, spread: float) -> Floats:
    """exp(−d²/2·spread²); what is too far away to be represented is 0."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-((distances / spread) ** 2) / 2)


def _too_many(directed_edges: int) -> bool:
    return directed_edges * _BYTES_PER_DIRECTED_EDGE > MEMORY


def _needs(directed_edges: int) -> str:
    """What so many edges need, and what is allowed."""
    needed = directed_edges * _BYTES_PER_DIRECTED_EDGE / 1e9
    return (
        f"its {directed_edges // 2:,} edges would need {needed:.1f} GB "
        f"({MEMORY / 1e9:g} GB are allowed)"
    )


def _kernel_graph(kind: str, points: Floats, spread: float, min_weight: float) -> csr_array:
    """All pairs whose kernel exceeds ``min_weight``, found within the distance where it does."""
    least = max(min_weight, np.finfo(float).smallest_subnormal)
    # A hair more than the cut-off, because rounding must not decide: the weight itself does, below.
    radius = spread * np.sqrt(-2 * np.log(least)) * (1 + 1e-9)
    tree = cKDTree(points)
    count = int(tree.count_neighbors(tree, radius))
    if _too_many(count):
        where = f"graph.kind: {kind} on {len(points):,} agents, above min_weight = {min_weight:g}"
        advice = "raise graph.min_weight, lower graph.sigma, or use graph.kind: knn"
        raise ScenarioError(f"{where}: {_needs(count)}; {advice}")
    i, j = tree.query_pairs(radius, output_type="ndarray").astype(np.int32).T
    weights = np.empty(len(i))
    for start in range(0, len(i), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = np.linalg.norm(points[i[block]] - points[j[block]], axis=1)
        weights[block] = kernel(distances, spread)
    keep = weights > min_weight
    return symmetric(len(points), i[keep], j[keep], weights[keep])


def _nearest(points: Floats, k: int, spread: float | None) -> csr_array:
    """Each agent linked to its k nearest, united with the links the other way round.

    Weights are 1, or of the kernel with the given spread.
    """
    n = len(points)
    if k >= n:
        raise ScenarioError(f"graph.k: {k} neighbours need more than {n} agents (k < {n})")
    needed = n * (k + 1) * 2 * _BYTES_PER_DIRECTED_EDGE
    require_memory(needed, f"graph.k: the {k:,} nearest of {n:,} agents")
    distances, nearest = map(np.asarray, cKDTree(points).query(points, k=k + 1))
    # Among agents at the same place, the one who asks may come anywhere, or not at all.
    drop = nearest == np.arange(n)[:, None]
    drop[~drop.any(axis=1), k] = True
    weights = np.ones(n * k) if spread is None else kernel(distances[~drop], spread)
    ends = (np.repeat(np.arange(n, dtype=np.int32), k), nearest[~drop].astype(np.int32))
    directed = coo_array((weights, ends), shape=(n, n)).tocsr()
    W = csr_array(directed.maximum(directed.T))
    W.eliminate_zeros()
    W.sort_indices()
    return W
