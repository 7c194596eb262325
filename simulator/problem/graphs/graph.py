"""What all graphs have in common.

Every kind of graph ends as the same thing: W (n, n) in CSR form, symmetric, with positive weights,
sorted indices and an empty diagonal.  Edges are handled as arrays, never one at a time, but for
those that networkx itself makes or reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from agents.machinery.code_errors import failed
from agents.parameters import LEAST, MOST
from simulator.errors import ScenarioError
from simulator.scenario.kinds import Graph
from simulator.scenario.tables import listing, numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
