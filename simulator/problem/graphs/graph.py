"""What all graphs have in common; kernel graphs and nearest neighbours.

Every kind of graph ends as the same thing: W (n, n) in CSR form, symmetric, with positive weights,
sorted indices and an empty diagonal.  Edges are handled as arrays, never one at a time, but for
those that networkx itself makes or reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from agents.machinery.code_errors import failed
from agents.parameters import LEAST, MOST, Count, Positive
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.scenario.kinds import Graph, Problems, Task
from simulator.scenario.tables import Floats, Ints, listing, numbers

#: A kernel graph is refused when building it would take more memory than this.
MEMORY = 2e9
_BYTES_PER_DIRECTED_EDGE = 50  # as measured, all working arrays included
_BLOCK = 2**16  # pairs whose vectors are compared at a time


@dataclass(frozen=True)
class Agents:
    """Those whom a graph is to link."""

    names: Sequence[str]
    #: What kernels and nearest neighbours compare (n, d): auxiliary vectors, or the target models.
    vectors: Floats | None
    #: By the angle of the vectors, where the graph does not say otherwise?
    angular: bool = False

    def compared(self, kind: str, angular: bool) -> Floats:
        """The points whose distances count: the vectors, or their directions.

        cos φ − 1 = −‖u − v‖²/2 for unit vectors u and v, so the angular kernel is the Gaussian one
        on directions, with spread √σ; the nearest by angle are the nearest by chord.
        """
        if self.vectors is None:
            raise ScenarioError(
                f"graph.kind: {kind} compares the agents' vectors, and there are none: "
                "give task.vectors, or a graph of kind networkx or file"
            )
        return _directions(self.vectors, self.names) if angular else self.vectors


def _directions(points: Floats, names: Sequence[str]) -> Floats:
    """The points (n, d) projected on the unit sphere."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    zero = np.flatnonzero(lengths == 0)
    if len(zero):
        raise ScenarioError(
            f"graph: an angle needs vectors other than 0, but 0 is the vector of agent "
            f"{listing(names, zero)}"
        )
    return np.asarray(points / lengths, dtype=float)


def mirror(W: csr_array) -> Ints:
    """For the position of each entry (i, j) in ``W.indices``, the position of (j, i)."""
    positions = csr_array((np.arange(W.nnz), W.indices, W.indptr), shape=W.shape)
    return np.asarray(positions.tocsc().data, dtype=np.int64)


def check_weights(W: Any, n: int, graph: Graph) -> None:
    """Refuse what is not W as the engines rely on it, of a plugin's graph."""
    who = f"graph {graph.kind}"
    good = (
        isinstance(W, csr_array)
        and W.shape == (n, n)
        and W.dtype == np.float64
        and W.has_canonical_format
    )
    if not good:
        what = f"a SciPy csr_array of floats with shape ({n}, {n}) and sorted indices"
        what = f"it must give {what}, as symmetric(n, i, j, weights) does, got {type(W).__name__}"
        raise ScenarioError(failed(who, graph.build, what))
    wrong = None
    if not (np.isfinite(W.data).all() and (W.data > 0).all()):
        wrong = "a weight that is not a finite number above 0"
    elif W.diagonal().any():
        wrong = "an edge from an agent to itself"
    elif (W != W.T).nnz:
        wrong = "weights that are not symmetric"
    if wrong:
        raise ScenarioError(failed(who, graph.build, f"it gives {wrong}"))


def connected_parts(W: csr_array, names: Sequence[str], allowed: bool) -> tuple[Ints, str | None]:
    """The part (n) of the graph that each agent belongs to, and a remark if there are several."""
    count, labels = connected_components(W, directed=False)
    part = labels.astype(np.int64)
    if count == 1:
        return part, None
    sizes = np.sort(np.bincount(part))[::-1]
    shown = [str(size) for size in sizes[:5]] + (["…"] if count > 5 else [])
    remark = f"the graph falls into {count} parts of {', '.join(shown[:-1])} and {shown[-1]} agents"
    if allowed:
        return part, remark
    isolated = np.flatnonzero(np.diff(W.indptr) == 0)
    if len(isolated):
        remark += f"; without any neighbour: {listing(names, isolated)}"
    raise ScenarioError(
        f"graph: {remark}; it must be connected, unless graph.allow_disconnected is true"
    )


def symmetric(n: int, i: NDArray[np.int32], j: NDArray[np.int32], weights: Floats) -> csr_array:
    """W from undirected edges, each given once."""
    ends = (np.concatenate((i, j)), np.concatenate((j, i)))
    W = coo_array((np.concatenate((weights, weights)), ends), shape=(n, n)).tocsr()
    W.sort_indices()
    return W


def checked(
    n: int, i: Ints, j: Ints, given: pd.Series[Any], where: Callable[[int], str]
) -> csr_array:
    """W from edges that may be listed twice (once each way), if their weights make sense."""
    weights = numbers(given)
    faulty = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(faulty):
        raise ScenarioError(
            f"{where(faulty[0])}: weight {given.iloc[faulty[0]]!r}; a weight is a finite number > 0"
        )
    extreme = np.flatnonzero((weights < LEAST) | (weights > MOST))
    if len(extreme):
        raise ScenarioError(
            f"{where(extreme[0])}: weight {weights[extreme[0]]:g}; "
            f"a weight must lie between {LEAST:g} and {MOST:g}"
        )
    loops = np.flatnonzero(i == j)
    if len(loops):
        raise ScenarioError(f"{where(loops[0])}: an edge from an agent to itself")
    low, high = np.minimum(i, j).astype(np.int32), np.maximum(i, j).astype(np.int32)
    order = np.lexsort((high, low))
    low, high, weights = low[order], high[order], weights[order]
    again = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    unequal = np.flatnonzero(again & (weights[1:] != weights[:-1]))
    if len(unequal):
        k = unequal[0]
        first, second = where(order[k]), where(order[k + 1])
        raise ScenarioError(
            f"{second}: asymmetric weight {weights[k + 1]:.12g}: it is {weights[k]:.12g} for "
            f"the same two agents at {first}; both directions must have the same weight"
        )
    once = np.append(True, ~again)[: len(low)]
    return symmetric(n, low[once], high[once], weights[once])


# --- agents whose vectors are alike --------------------------------------------------------------
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
