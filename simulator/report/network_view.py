"""Where agents stand in a picture of the network, and which links are drawn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, identity
from scipy.sparse.csgraph import breadth_first_order, laplacian
from scipy.sparse.linalg import lobpcg

from simulator.engines.setup import first_models
from simulator.problem.problem import Floats, Problem
from simulator.report.parts import squeezed, typed
from simulator.runs.result import Result
from simulator.scenario.algorithm import NormalStart
from simulator.seeds import Streams
from simulator.theory.metrics import View

#: More agents than this in a picture hide one another, and make the page slow.
MOST_AGENTS = 10_000
#: Up to so many a spring layout is quick.
_SPRING = 1_000
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


def arrange(problem: Problem, most_links: int) -> Layout:
    """Coordinates where there are any, else a layout of the graph."""
    coordinates = _coordinates(problem)
    notes: tuple[str, ...] = ()
    agents = np.arange(problem.n)
    if problem.n > MOST_AGENTS:
        agents = _some(problem, coordinates is not None)
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
    return Layout(agents, _fitted(places), links, weights, how, notes)


def _coordinates(problem: Problem) -> tuple[Floats, str] | None:
    """Two coordinates of each agent, and what they are."""
    if problem.vectors is not None and problem.vectors.shape[1] >= 2:
        more = " (the first two numbers)" if problem.vectors.shape[1] > 2 else ""
        return problem.vectors[:, :2], f"at the coordinates of their vectors{more}"
    if problem.targets is not None and problem.p >= 2:
        return problem.targets[:, :2], "at the first two coordinates of their true models"
    return None


def _some(problem: Problem, placed: bool) -> Indices:
    """Agents to draw of very many: every so many, or a ball of neighbours that keeps its links."""
    if placed:
        return np.arange(0, problem.n, -(-problem.n // MOST_AGENTS))
    degrees = np.diff(problem.W.indptr)
    order = breadth_first_order(problem.W, int(degrees.argmax()), return_predecessors=False)
    return np.sort(order[:MOST_AGENTS]).astype(np.int64)


def _spring(W: csr_array) -> Floats:
    graph = nx.from_scipy_sparse_array(W)
    places = nx.spring_layout(graph, seed=0, iterations=60)
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


def _fitted(places: Floats) -> Floats:
    """The same picture, its longer side from 0 to 1, y upwards."""
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / (max(float((high - low).max()), 1e-300))


#: Share of values at either end that a colour scale leaves out, so that a few do not stretch it.
_TAIL = 0.1


def thinned(count: int, most: int) -> np.ndarray:
    """Positions of at most ``most`` of ``count`` things, evenly, the first and last among them."""
    return np.unique(np.linspace(0, count - 1, max(2, min(count, most))).round().astype(int))


def stages(result: Result, most: int) -> tuple[Floats, Floats]:
    """Times (k,) and models (k, n, p) to colour by: those recorded, or the first and the last."""
    if result.kept is not None:
        rows = thinned(len(result.kept.samples), most)
        times = result.trace["time"].to_numpy()[result.kept.samples[rows]]
        return times, result.kept.models[rows]
    end = float(result.summary["simulated_time"])
    first = first_of(result)
    if end == 0:
        return np.zeros(1), result.models[None]
    return np.array([0.0, end]), np.stack([first, result.models])


def first_of(result: Result) -> Floats:
    """The models at the start; the solitary ones where the start was drawn at random."""
    scenario, problem = result.scenario, result.problem
    if scenario.algorithm.rule is None or isinstance(scenario.algorithm.start, NormalStart):
        return problem.solitary
    return first_models(scenario, problem, Streams(scenario.seed).data)[0]


def colourings(
    result: Result, times: Floats, models: Floats, agents: np.ndarray
) -> Iterable[dict[str, Any]]:
    """Models and errors of the agents that are drawn, over time."""
    yield by_model(result.problem, times, models[:, agents])
    view = View(result.scenario, result.problem)
    for metric in view.metrics:
        if metric.by_agent:
            values = np.stack([view.each(metric, each)[agents] for each in models])
            text = metric.label.replace("mean ", "").replace("\n", " ")
            log = not metric.grows and bool((values[np.isfinite(values)] > 0).any())
            yield colouring(metric.kind, text or metric.kind, times, values, log=log)


def model_values(problem: Problem, models: Floats) -> tuple[Floats, str]:
    """A number for each model of (k, n, p), (k, n), and what it is.

    The model itself where it is a number, else its part along the direction that tells most of
    the last ones apart.
    """
    if problem.p == 1:
        return models[..., 0], "model"
    middle = models[-1].mean(axis=0)
    direction = np.linalg.svd(models[-1] - middle, full_matrices=False)[2][0]
    return (models - middle) @ direction, "model (principal component)"


def reach_of(values: Floats) -> float:
    """How far from 0 colours go: as far as most of the values (k, n) at any time."""
    return float(np.quantile(np.abs(values), 1 - _TAIL)) or 1.0


def by_model(problem: Problem, times: Floats, models: Floats) -> dict[str, Any]:
    """The models; where there are negative and positive ones, they part mid-scale."""
    values, text = model_values(problem, models)
    found = colouring("model", text, times, values, log=False)
    reach = reach_of(values)
    if values[-1].min() < 0 < values[-1].max():
        return {**found, "diverging": True, "low": -reach, "high": reach}
    return found


def colouring(kind: str, text: str, times: Floats, values: Floats, *, log: bool) -> dict[str, Any]:
    """Values (times, agents), and the range that the colours span."""
    known = values[np.isfinite(values)]
    if log:
        known = known[known > 0]
    low, high = np.quantile(known, [_TAIL, 1 - _TAIL]) if len(known) else (0.0, 1.0)
    return {
        "kind": kind,
        "label": text,
        "times": typed(times, "f8"),
        "values": squeezed(values, log=log),
        "low": float(low),
        "high": float(high) if high > low else float(low) + 1.0,
        "diverging": False,
    }
