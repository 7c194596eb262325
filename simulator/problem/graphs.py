"""Who knows whom: the graph of a scenario as a sparse symmetric matrix of weights.

Every kind of graph ends as the same thing: W (n, n) in CSR form, symmetric, with positive weights,
sorted indices and an empty diagonal.  Edges are handled as arrays, never one at a time, but for
those that networkx itself makes or reads.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError  # the exception only: see _graphml

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from simulator.errors import ScenarioError
from simulator.machine import require_memory, require_readable
from simulator.problem.generators import generate
from simulator.scenario.problem import (
    AngularKernel,
    GaussianKernel,
    Graph,
    GraphFile,
    NearestNeighbours,
    NetworkxGraph,
)
from simulator.scenario.quantities import LEAST, MOST

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A kernel graph is refused when building it would take more memory than this.
MEMORY = 2e9
_BYTES_PER_DIRECTED_EDGE = 50  # as measured, all working arrays included
_BLOCK = 2**16  # pairs whose vectors are compared at a time


def build_graph(
    graph: Graph,
    names: Sequence[str],
    points: Floats | None,
    rng: np.random.Generator,
    *,
    angular: bool = False,
) -> csr_array:
    """The weights W (n, n) between the agents called ``names``.

    ``points`` (n, d) are what kernels and nearest neighbours compare: auxiliary vectors, or the
    target models.  ``angular`` is the metric of a nearest-neighbour graph that names none.
    """
    if isinstance(graph, GraphFile):
        return _read_graph(graph.file, names)
    if isinstance(graph, NetworkxGraph):
        return _generated(graph, len(names), rng)
    if points is None:
        raise ScenarioError(
            f"graph.kind: {graph.kind} compares the agents' vectors, and there are none: "
            "give task.vectors, or a graph of kind networkx or file"
        )
    if isinstance(graph, NearestNeighbours):
        angular = angular if graph.metric is None else graph.metric == "angular"
    else:
        angular = isinstance(graph, AngularKernel)
    # cos φ − 1 = −‖u − v‖²/2 for unit vectors u and v, so the angular kernel is the Gaussian one
    # on directions, with spread √σ; the nearest by angle are the nearest by chord.
    spread = np.sqrt(graph.sigma) if angular else graph.sigma
    points = _directions(points, names) if angular else points
    if isinstance(graph, NearestNeighbours):
        return _nearest(points, graph.k, spread if graph.weights == "kernel" else None)
    return _kernel_graph(graph, points, spread)


def mirror(W: csr_array) -> Ints:
    """For the position of each entry (i, j) in ``W.indices``, the position of (j, i)."""
    positions = csr_array((np.arange(W.nnz), W.indices, W.indptr), shape=W.shape)
    return np.asarray(positions.tocsc().data, dtype=np.int64)


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


def listing(names: Sequence[str], which: Ints | None = None, limit: int = 5) -> str:
    """A few of the names, or of those at the places ``which``, and how many more there are."""
    count = len(names) if which is None else len(which)
    shown = names[:limit] if which is None else [names[i] for i in which[:limit].tolist()]
    return ", ".join(shown) + (f" and {count - limit} more" if count > limit else "")


def _symmetric(n: int, i: NDArray[np.int32], j: NDArray[np.int32], weights: Floats) -> csr_array:
    """W from undirected edges, each given once."""
    ends = (np.concatenate((i, j)), np.concatenate((j, i)))
    W = coo_array((np.concatenate((weights, weights)), ends), shape=(n, n)).tocsr()
    W.sort_indices()
    return W


# --- kernels and nearest neighbours -------------------------------------------------------------
def _kernel(distances: Floats, spread: float) -> Floats:
    """exp(−d²/2·spread²); what is too far away to be represented is 0."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-((distances / spread) ** 2) / 2)


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


def _kernel_graph(
    graph: GaussianKernel | AngularKernel, points: Floats, spread: float
) -> csr_array:
    """All pairs whose kernel exceeds ``min_weight``, found within the distance where it does."""
    least = max(graph.min_weight, np.finfo(float).smallest_subnormal)
    # A hair more than the cut-off, because rounding must not decide: the weight itself does, below.
    radius = spread * np.sqrt(-2 * np.log(least)) * (1 + 1e-9)
    tree = cKDTree(points)
    count = int(tree.count_neighbors(tree, radius))
    if count * _BYTES_PER_DIRECTED_EDGE > MEMORY:
        raise ScenarioError(
            f"graph.kind: {graph.kind} on {len(points)} agents has about {count // 2:,} edges "
            f"above min_weight = {graph.min_weight:g} and would need "
            f"{count * _BYTES_PER_DIRECTED_EDGE / 1e9:.1f} GB ({MEMORY / 1e9:g} GB are allowed); "
            "raise graph.min_weight, lower graph.sigma, or use graph.kind: knn"
        )
    i, j = tree.query_pairs(radius, output_type="ndarray").astype(np.int32).T
    weights = np.empty(len(i))
    for start in range(0, len(i), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = np.linalg.norm(points[i[block]] - points[j[block]], axis=1)
        weights[block] = _kernel(distances, spread)
    keep = weights > graph.min_weight
    return _symmetric(len(points), i[keep], j[keep], weights[keep])


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
    weights = np.ones(n * k) if spread is None else _kernel(distances[~drop], spread)
    ends = (np.repeat(np.arange(n, dtype=np.int32), k), nearest[~drop].astype(np.int32))
    directed = coo_array((weights, ends), shape=(n, n)).tocsr()
    W = csr_array(directed.maximum(directed.T))
    W.eliminate_zeros()
    W.sort_indices()
    return W


# --- networkx -----------------------------------------------------------------------------------
def _generated(graph: NetworkxGraph, n: int, rng: np.random.Generator) -> csr_array:
    """A graph of ``networkx.generators``; agent i is node i, or the i-th one."""
    seed = int(rng.integers(2**32))
    where, (i, j, weights) = generate(graph.generator, graph.arguments, n, seed)
    return _checked(n, i, j, pd.Series(weights, dtype=object), lambda _: where)


# --- files --------------------------------------------------------------------------------------
def _read_graph(path: Path, names: Sequence[str]) -> csr_array:
    """A GraphML file, or an edge list; agents are named as in the task."""
    if path.suffix.lower() == ".graphml":
        edges = _graphml(path)

        def where(row: int) -> str:
            return f"{path}: edge {edges['a'].iloc[row]} – {edges['b'].iloc[row]}"
    else:
        edges = _edge_list(path)

        def where(row: int) -> str:
            return f"{path}:{edges.index[row]}"

    index = pd.Index(names)
    i, j = (index.get_indexer(pd.Index(edges[end])).astype(np.int64) for end in ("a", "b"))
    for end, number in (("a", i), ("b", j)):
        unknown = np.flatnonzero(number < 0)
        if len(unknown):
            name = edges[end].iloc[unknown[0]]
            raise ScenarioError(
                f"{where(unknown[0])}: unknown agent {name!r}; the agents are {listing(names)}"
            )
    return _checked(len(names), i, j, edges["weight"], where)


def _checked(
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
    return _symmetric(n, low[once], high[once], weights[once])


def _graphml(path: Path) -> pd.DataFrame:
    """The edges of a GraphML file: columns a, b and weight (1 where the file gives none)."""
    text = read_text(path)
    # Entities are the one way in which XML can explode or fetch other files.  The parser is given
    # the decoded text, so no other encoding can hide a declaration from this check.
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ScenarioError(f"{path}: a GraphML file must not have a DOCTYPE or ENTITY declaration")
    try:
        made = nx.parse_graphml(text)
    except (ParseError, nx.NetworkXException, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"{path}: not a GraphML file that networkx can read: {error}") from None
    if made.is_directed():
        raise ScenarioError(f"{path}: the graph is directed; edgedefault must be undirected")
    return pd.DataFrame(made.edges(data="weight", default=1.0), columns=["a", "b", "weight"])


def _edge_list(path: Path) -> pd.DataFrame:
    """The edges of a text file: columns a, b and weight; the index is the line number."""
    text = re.sub(r"[ \t]*(#.*)?$", "", read_text(path), flags=re.MULTILINE)
    separator = "," if "," in text else r"\s+"
    edges = read_cells(path, text, separator, header=["a", "b", "weight"])
    short = np.flatnonzero((edges["a"] == "") | (edges["b"] == ""))
    if len(short):
        raise ScenarioError(
            f"{path}:{edges.index[short[0]]}: expected `agent agent [weight]`, "
            f"got {' '.join(edges.iloc[short[0]]).strip()!r}"
        )
    edges["weight"] = edges["weight"].where(edges["weight"] != "", "1")
    return edges


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    try:
        require_readable(path)
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ScenarioError(str(error)) from None


def read_cells(
    path: Path, text: str, separator: str = ",", header: list[str] | None = None
) -> pd.DataFrame:
    """A table of stripped strings without its blank lines; the index is the line number.

    Without ``header`` the first line holds the column names.  Cells that a line lacks are "".
    """
    shift = 0 if header is None else 1
    if header is not None:
        text = (" " if separator == r"\s+" else separator).join(header) + "\n" + text
    try:
        cells = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
        )
    except pd.errors.EmptyDataError:
        raise ScenarioError(f"{path}: the first line is empty; it must name the columns") from None
    except pd.errors.ParserError as error:
        match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if match is None:
            raise ScenarioError(f"{path}: malformed CSV: {error}") from None
        expected, line, found = map(int, match.groups())
        raise ScenarioError(
            f"{path}:{line - shift}: {found} cells in a line; at most {expected} are expected"
        ) from None
    cells = cells.apply(lambda column: column.str.strip())
    cells.index += 1 - shift
    columns = cells.iloc[0].tolist()
    rows: pd.DataFrame = cells.iloc[1:].set_axis(columns, axis=1)
    return rows[(rows != "").any(axis=1)]


def numbers(column: pd.Series[Any]) -> Floats:
    """The column as numbers; NaN for what is not one."""
    return pd.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
