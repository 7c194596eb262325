"""Where agents stand in pictures, which links are drawn, and what colours say of models."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, identity
from scipy.sparse.csgraph import breadth_first_order, laplacian
from scipy.sparse.linalg import lobpcg

from simulator.problem.problem import Floats, Problem

#: More agents than this in a picture hide one another, and make a page slow.
MOST_AGENTS = 10_000
#: Up to so many a spring layout is quick.
_SPRING = 1_000
#: Share of values at either end that a colour scale leaves out, so that a few do not stretch it.
_TAIL = 0.1
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The agents that are drawn (ascending), their places (n, 2) in [0, 1]² and their links."""

    agents: Indices
    places: Floats
    #: Pairs (e, 2) of positions in ``agents``, and the weights (e,).
    links: Indices
    weights: Floats
    #: What the places are, and what was left out.
    how: str
    notes: tuple[str, ...]


def arrange(problem: Problem, most_links: int, most_agents: int = MOST_AGENTS) -> Layout:
    """Coordinates where there are any, else a layout of the graph."""
    coordinates = _coordinates(problem)
    notes: tuple[str, ...] = ()
    agents = np.arange(problem.n)
    if problem.n > most_agents:
        agents = _some(problem, coordinates is not None, most_agents)
        notes = (f"Drawn are {len(agents):,} of {problem.n:,} agents.",)
    W = problem.W[agents][:, agents]
    if coordinates is not None:
        places, how = coordinates[0][agents], coordinates[1]
    elif len(agents) <= _SPRING:
        places, how = _spring(W), "placed so that linked ones are near (springs)"
    else:
        places, how = _spectral(W), "placed so that linked ones are near (spectral layout)"
    links, weights, left_out = _strongest(W, most_links)
    if left_out:
        notes += (f"Drawn are the strongest {len(links):,} of {len(links) + left_out:,} links.",)
    low, high = places.min(axis=0), places.max(axis=0)
    fitted = (places - low) / max(float((high - low).max()), 1e-300)
    return Layout(agents, fitted, links, weights, how, notes)


def _coordinates(problem: Problem) -> tuple[Floats, str] | None:
    """Two coordinates of each agent, and what they are."""
    vectors, targets = problem.vectors, problem.targets
    if vectors is not None and vectors.shape[1] == 2:
        return vectors, "at the coordinates of their vectors"
    if vectors is not None and vectors.shape[1] > 2:
        middle = vectors.mean(axis=0)
        return (vectors - middle) @ _directions(vectors - middle, 2), (
            "where their vectors are, along the two directions in which they differ most"
        )
    if targets is not None and problem.p >= 2:
        return targets[:, :2], "at the first two coordinates of their true models"
    return None


def _directions(centred: Floats, count: int) -> Floats:
    """The (d, count) directions in which points (n, d) differ most."""
    directions = np.linalg.svd(centred, full_matrices=False)[2][:count]
    # The sign of a direction is nobody's choice: its largest entry is positive.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return np.asarray((directions * np.sign(largest)).T)


def _some(problem: Problem, placed: bool, most: int) -> Indices:
    """Agents to draw of very many: every so many, or a ball of neighbours that keeps its links."""
    if placed:
        return np.arange(0, problem.n, -(-problem.n // most))
    degrees = np.diff(problem.W.indptr)
    order = breadth_first_order(problem.W, int(degrees.argmax()), return_predecessors=False)
    return np.sort(order[:most]).astype(np.int64)


def _spring(W: csr_array) -> Floats:
    graph = nx.from_scipy_sparse_array(W)
    far = 2 / math.sqrt(W.shape[0])
    places = nx.spring_layout(graph, seed=0, iterations=100, k=far)
    return np.array([places[i] for i in range(W.shape[0])])


def _spectral(W: csr_array) -> Floats:
    """The eigenvectors of the two least positive eigenvalues of the normalised Laplacian."""
    L: Any = laplacian(W, normed=True)
    start = np.random.default_rng(0).normal(size=(W.shape[0], 4))
    start[:, 0] = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    # A picture needs no digits: whatever is reached after so many steps will do.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        _, vectors = lobpcg(
            L + 1e-3 * identity(W.shape[0]), start, largest=False, maxiter=60, tol=1e-4
        )
    # Ranks spread what the eigenvectors crowd at a few places.
    ranks = np.argsort(np.argsort(vectors[:, 1:3], axis=0), axis=0) / W.shape[0]
    scale = np.abs(vectors[:, 1:3]).max(axis=0) + 1e-300
    return 0.5 * ranks + 0.25 * (vectors[:, 1:3] / scale + 1)


def _strongest(W: csr_array, most: int) -> tuple[Indices, Floats, int]:
    """Undirected links, the strongest of them if there are too many; how many were left out."""
    edges = W.tocoo()
    upper = edges.row < edges.col
    links = np.stack([edges.row[upper], edges.col[upper]], axis=1).astype(np.int64)
    weights = edges.data[upper]
    if len(links) <= most:
        return links, weights, 0
    kept = np.sort(np.argsort(-weights, kind="stable")[:most])
    return links[kept], weights[kept], len(links) - most


# --- colours --------------------------------------------------------------------------------------
def model_values(models: Floats) -> tuple[Floats, str]:
    """A number for each model of (k, n, p), (k, n), and what it is.

    The model itself where it is a number, else its part along the direction that tells most of
    the last ones apart.
    """
    if models.shape[2] == 1:
        return models[..., 0], "model"
    middle = models[-1].mean(axis=0)
    values = (models - middle) @ _directions(models[-1] - middle, 1)
    return values[..., 0], "model (principal component)"


def span(values: Floats) -> tuple[float, float]:
    """The ends of a colour scale: those of most of the values at any time."""
    low, high = np.quantile(values, [_TAIL, 1 - _TAIL]) if values.size else (0.0, 1.0)
    return float(low), float(high) if high > low else float(low) + 1.0


def reach(values: Floats) -> float:
    """How far from 0 colours go, where negative and positive values part mid-scale."""
    return float(np.quantile(np.abs(values), 1 - _TAIL)) or 1.0
