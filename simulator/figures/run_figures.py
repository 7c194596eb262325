"""The pictures of a run: error against time and communications, and the agents themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from matplotlib import rcParams
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from simulator.errors import ScenarioError
from simulator.figures.style import (
    BLUE,
    COUNTS,
    GREEN,
    GREY,
    ORANGE,
    Look,
    draw,
    legend_below,
    log_scale,
    title,
    wrapped,
)
from simulator.problem.problem import Floats, Problem
from simulator.problem.tasks.papers import LinearClassification, MeanEstimation
from simulator.runs.result import Result
from simulator.scenario.kinds import kind_of

#: What tasks are judged by: the first that is measured is drawn where nobody asks for a metric.
SHOWN = ("accuracy", "test_error", "l2_error", "distance")
AXES = {"time": "simulated time (s)", "communications": "communications (messages sent)"}


def run_pictures(result: Result, look: Look) -> Iterator[tuple[str, Figure]]:
    """All figures of a run by name; drawn within the look's style."""
    names = shown_metrics(result, look)
    if len(result.trace) > 1:
        rows = len(names) * (2 if look.narrow else 1)
        figure = look.picture(0.8 + (1.45 if look.narrow else 1.75) * rows)
        _errors(figure, result, names, look)
        yield "error", figure
    task = result.scenario.task
    if isinstance(task, MeanEstimation):
        figure = look.picture(2.1 if look.narrow else 1.25)
        assert result.problem.vectors is not None
        one = [(stage, models[:, 0]) for stage, models in _stages(result)]
        moon_panels(figure, result.problem.vectors, one)
        yield "models", figure
    elif isinstance(task, LinearClassification):
        figure = look.picture(*(2 * [min(look.width, 4.4)]))
        assert result.problem.targets is not None
        targets_and_links(figure, result.problem.targets[:, :2], result.problem.W)
        yield "targets", figure
    elif layout(result.problem) is not None:
        figure = look.picture(2.9 if look.narrow else 2.0)
        model_panels(figure, result.problem, _stages(result))
        yield "models", figure


draw_run = partial(draw, run_pictures)


def shown_metrics(result: Result, look: Look) -> list[str]:
    """What the figure of errors shows."""
    measured = [kind_of(metric) for metric in result.scenario.kinds.metrics]
    there = [name for name in measured if name in result.trace]
    if look.metric is None:
        known = [name for name in SHOWN if name in there]
        asked = [metric.kind for metric in getattr(result.scenario.record, "metrics", ())]
        shown = [*known[:1], *(name for name in asked if name in there)]
        return list(dict.fromkeys(shown)) or there[:1]
    if look.metric not in there:
        raise ScenarioError(
            f"--metric {look.metric}: not measured in this run; allowed: {', '.join(there)}"
        )
    return [look.metric]


def curve_axes(figure: Figure, rows: int, look: Look, sharey: Any) -> list[list[Any]]:
    """Of each row the panels for time and for communications; one below the other if narrow."""
    shape = (2 * rows, 1) if look.narrow else (rows, 2)
    grid = figure.subplots(*shape, squeeze=False, sharey=sharey).reshape(rows, 2)
    for row in grid if look.narrow else grid[-1:]:
        for axis, text in zip(row, AXES.values(), strict=True):
            axis.set_xlabel(text)
    for axis in grid.ravel():
        axis.locator_params(axis="x", nbins=5)
    for axis in grid[:, 1]:
        axis.xaxis.set_major_formatter(COUNTS)
    return [list(row) for row in grid]


def _errors(figure: Figure, result: Result, names: list[str], look: Look) -> None:
    """The run's metrics (rows) against simulated time and against communications."""
    trace, table = result.trace, result.summary["metrics"]
    known = {kind_of(metric): metric for metric in result.scenario.kinds.metrics}
    labels = {kind: metric.label for kind, metric in known.items()}
    grid = curve_axes(figure, len(names), look, sharey="row")
    for name, axes in zip(names, grid, strict=True):
        for axis, x in zip(axes, AXES, strict=True):
            # Metrics are step functions: between samples the last value holds.
            axis.step(trace[x], trace[name], where="post", color=BLUE, label="this run")
            for stage, style, colour in (("solitary", ":", ORANGE), ("optimum", "--", GREEN)):
                level = table.get(stage, {}).get(name, 0.0)
                if level > 0:
                    axis.axhline(level, color=colour, linestyle=style, label=stage)
            if not known[name].grows and (trace[name] > 0).all():
                log_scale(axis)
        for axis in axes if look.narrow else axes[:1]:
            axis.set_ylabel(look.metric_label(name, labels))
        for number, cut in enumerate(result.scenario.network.partitions):
            end = min(cut.until, float(trace["time"].iloc[-1]))
            label = None if number else "partition"
            axes[0].axvspan(min(cut.begin, end), end, color="0.9", label=label)
    legend_below(figure, grid[0][0])
    title(figure, _title(result))


def _stages(result: Result) -> list[tuple[str, Floats]]:
    """True, solitary, final and best models, as far as they are known."""
    problem = result.problem
    time = result.summary["simulated_time"]
    stages: list[tuple[str, Floats | None]] = [
        ("true means" if problem.data.X is None else "true models", problem.targets),
        ("solitary models", problem.solitary),
        (f"models at {time:,.0f} s" if time >= 1000 else f"models at {time:.4g} s", result.models),
        ("optimum", result.optimum),
    ]
    return [(stage, models) for stage, models in stages if models is not None]


def _title(result: Result) -> str:
    summary = result.summary
    text = f"{summary['name']}: {summary['algorithm']}"
    if result.scenario.algorithm.rule is not None:
        text += ", asynchronous" if summary["mode"] == "async" else ", synchronous"
    return f"{text}, {summary['agents']:,} agents"


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
    for axis, (name, models) in zip(axes, panels, strict=True):
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
        _bare(axis, name)
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
    for axis, (name, _), colours in zip(axes, panels, values, strict=True):
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
        _bare(axis, name)
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


def _bare(axis: Any, name: str) -> None:
    """A panel in which places have no names."""
    axis.set_title(name)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_alpha(0.3)
