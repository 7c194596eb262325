"""Pictures of the agents: where they are, who knows whom, and their models as colours."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
from matplotlib import rcParams
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from simulator.figures.style import BLUE, GREY, ORANGE, wrapped
from simulator.problem.problem import Floats, Problem

#: Agents that a picture shows at most.
POINTS = 5000
#: Agents whose graph is laid out where nothing says where they are, and links that are drawn.
_LAID_OUT, _LINKS = 600, 8000


def moon_panels(figure: Figure, vectors: Floats, panels: list[tuple[str, Floats]]) -> None:
    """Agents at their vectors (n, 2), coloured by their models (n,), a panel each."""
    axes = _panels(figure, len(panels))
    # Of very many agents every so many are drawn: more would be slow and hide one another.
    step = -(-len(vectors) // POINTS)
    if step > 1:
        figure.suptitle(f"one agent in {step} of {len(vectors):,}", fontsize=8)
    points: Any = None
    for axis, (title, models) in zip(axes, panels, strict=True):
        # Red and blue are equally dark: without colours the shape tells the sign.
        for marker, chosen in (("^", models[::step] >= 0), ("v", models[::step] < 0)):
            points = axis.scatter(
                *vectors[::step][chosen].T,
                c=models[::step][chosen],
                cmap="RdBu",
                vmin=-1.5,
                vmax=1.5,
                s=_size(figure, len(axes), len(vectors) // step),
                marker=marker,
                edgecolors="black",
                linewidths=0.25 if len(vectors) // step < 1000 else 0,  # edges would hide them
            )
        _bare(axis, title)
        axis.set_aspect("equal")
    bar = figure.colorbar(points, ax=list(axes), shrink=0.85, extend="both", pad=0.015)
    bar.set_label("estimated mean")


def model_panels(figure: Figure, problem: Problem, panels: list[tuple[str, Floats]]) -> None:
    """Any graph, its links in grey, with the agents coloured by their models (n, p)."""
    places = layout(problem)
    assert places is not None
    values, what = model_colours([models for _, models in panels])
    every = np.concatenate(values)
    low, high = np.quantile(every, [0.1, 0.9])  # one odd model must not take all the colours
    axes = _panels(figure, len(panels))
    step = -(-len(places) // POINTS)
    points: Any = None
    for axis, (title, _), colours in zip(axes, panels, values, strict=True):
        if step == 1 and problem.W.nnz <= 2 * _LINKS:
            _links(axis, places, problem.W, colour=GREY, strength=0.5)
        points = axis.scatter(
            *places[::step].T,
            c=colours[::step],
            cmap="cividis",
            vmin=low,
            vmax=high if high > low else low + 1,
            s=_size(figure, len(axes), len(places) // step),
            edgecolors="black",
            linewidths=0.3,
            zorder=3,
        )
        _bare(axis, title)
    bar = figure.colorbar(points, ax=list(axes), shrink=0.85, extend="both", pad=0.015)
    bar.set_label(wrapped(what, 0.5 * figure.get_figheight()))


def layout(problem: Problem) -> Floats | None:
    """Places (n, 2): the vectors, their two main directions, or the graph pulled into shape.

    None where there is nothing to place the agents by, and too many to lay out.
    """
    if problem.vectors is not None and problem.vectors.shape[1] >= 2:
        return _main_directions(problem.vectors, 2)
    if problem.n > _LAID_OUT:
        return None
    graph = nx.from_scipy_sparse_array(problem.W)
    placed = nx.spring_layout(graph, seed=0, iterations=100, k=2 / math.sqrt(problem.n))
    return np.array([placed[i] for i in range(problem.n)])


def model_colours(models: list[Floats]) -> tuple[list[Floats], str]:
    """One number for each agent's model, for all panels alike, and what it is."""
    if models[0].shape[1] == 1:
        return [theta[:, 0] for theta in models], "model"
    together = _main_directions(np.concatenate(models), 1)[:, 0]
    ends = np.cumsum([len(theta) for theta in models])[:-1]
    return np.split(together, ends), "models along their main direction"


def _main_directions(points: Floats, count: int) -> Floats:
    """Points (n, d) as they are where d = count, else on the directions in which they differ."""
    if points.shape[1] == count:
        return points
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:count]
    # The sign of a direction is nobody's choice: its largest entry is positive.
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return np.asarray(centred @ (directions * signs[:, None]).T)


def targets_and_links(figure: Figure, plane: Floats, W: csr_array) -> None:
    """The paper's Figure 4: the target models in their plane, and the links between them."""
    axis = figure.subplots()
    _links(axis, plane, W, colour=BLUE, strength=0.35)
    axis.scatter(
        plane[:, 0], plane[:, 1], s=18, color=ORANGE, edgecolors="black", linewidths=0.4, zorder=3
    )
    axis.axhline(0, color=GREY, linewidth=0.5)
    axis.axvline(0, color=GREY, linewidth=0.5)
    axis.set_aspect("equal")
    axis.set_xlabel("first coordinate")
    axis.set_ylabel("second coordinate")
    axis.set_title("target models and their links", fontsize=rcParams["font.size"])


def _links(axis: Any, places: Floats, W: csr_array, *, colour: str, strength: float) -> None:
    """Lines between neighbours, the stronger the heavier their weight."""
    edges = W.tocoo()
    upper = edges.row < edges.col
    ends = np.stack([places[edges.row[upper]], places[edges.col[upper]]], axis=1)
    weight = np.clip(edges.data[upper] / max(edges.data.max(initial=0.0), 1e-300), 0.05, 1.0)
    lines = LineCollection(list(ends), colors=colour, linewidths=0.7, alpha=strength * weight)
    axis.add_collection(lines)


def _panels(figure: Figure, count: int) -> list[Any]:
    """So many panels in a row, or in two where the figure is narrow."""
    rows = 2 if figure.get_figwidth() < 5 and count > 2 else 1
    columns = -(-count // rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return list(axes[:count])


def _size(figure: Figure, panels: int, agents: int) -> float:
    """The area of a marker: as large as there is room."""
    columns = -(-panels // (2 if figure.get_figwidth() < 5 and panels > 2 else 1))
    width = 72 * figure.get_figwidth() / columns  # of a panel, in points
    return float(np.clip((0.35 * width) ** 2 / max(agents, 1), 3, 40))


def _bare(axis: Any, title: str) -> None:
    """A panel in which places have no names."""
    axis.set_title(title)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_alpha(0.3)
