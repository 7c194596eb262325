"""The pictures of a run: error against time and communications, and the agents themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csr_array, triu

from simulator.errors import ScenarioError
from simulator.figures.agent_layout import Indices, arrange, model_values, span
from simulator.figures.style import (
    BLUE,
    COUNTS,
    GREEN,
    GREY,
    ORANGE,
    PLAIN,
    Look,
    legend_below,
    log_scale,
    title,
    wrapped,
)
from simulator.problem.problem import Floats, Problem
from simulator.problem.tasks.papers import LinearClassification, MeanEstimation
from simulator.runs.result import TELLING, Result, what_ran
from simulator.scenario.kinds import kind_of

#: What curves are drawn against.
AXES = {
    "time": "simulated time (s)",
    "communications": "communications (messages sent)",
    "bytes": "bytes sent",
}
#: Agents that a picture shows at most, those that nothing places, and links that are drawn.
_POINTS, _LAID_OUT, _LINKS = 5000, 600, 8000


def run_pictures(result: Result, look: Look) -> Iterator[tuple[str, Figure]]:
    """All figures of a run by name; drawn within the look's style."""
    names = shown_metrics(result, look)
    if len(result.trace) > 1:
        rows = len(names) * (2 if look.narrow else 1)
        figure = look.picture(0.8 + (1.45 if look.narrow else 1.75) * rows)
        _errors(figure, result, names, look)
        yield "error", figure
    task, problem = result.scenario.task, result.problem
    if isinstance(task, MeanEstimation):
        figure = look.picture(2.1 if look.narrow else 1.25)
        assert problem.vectors is not None
        one = [(stage, models[:, 0]) for stage, models in _stages(result)]
        moon_panels(figure, problem.vectors, one)
        yield "models", figure
    elif isinstance(task, LinearClassification):
        figure = look.picture(*(2 * [min(look.width, 4.4)]))
        assert problem.targets is not None
        targets_and_links(figure, problem.targets[:, :2], problem.W)
        yield "targets", figure
    elif can_be_placed(problem):
        figure = look.picture(2.9 if look.narrow else 2.0)
        model_panels(figure, problem, _stages(result))
        yield "models", figure


def problem_pictures(problem: Problem, look: Look) -> Iterator[tuple[str, Figure]]:
    """The graph, with the solitary models (and the true ones) on it."""
    if not can_be_placed(problem):
        return
    panels = [("solitary models", problem.solitary)]
    if problem.targets is not None:
        panels.insert(0, ("true models", problem.targets))
    figure = look.picture(0.8 + 0.5 * look.width / len(panels))
    model_panels(figure, problem, panels)
    yield "agents", figure


def shown_metrics(result: Result, look: Look) -> list[str]:
    """What the figure of errors shows."""
    measured = [kind_of(metric) for metric in result.scenario.kinds.metrics]
    there = [name for name in measured if name in result.trace]
    if look.metric is None:
        known = [name for name in TELLING if name in there]
        asked = [metric.kind for metric in getattr(result.scenario.record, "metrics", ())]
        shown = [*known[:1], *(name for name in asked if name in there)]
        return list(dict.fromkeys(shown)) or there[:1]
    if look.metric not in there:
        raise ScenarioError(
            f"--metric {look.metric}: not measured in this run; allowed: {', '.join(there)}"
        )
    return [look.metric]


# --- curves ---------------------------------------------------------------------------------------
def curve_axes(
    figure: Figure,
    rows: int,
    look: Look,
    columns: Mapping[str, str],
    *,
    alike: bool,
    spare: int = 0,
) -> Any:
    """Panels (rows, columns + spare) against these of AXES; spare ones have axes of their own.

    A column's x axis is ``linear`` or ``log``; y axes are all ``alike``, or those of a row.
    """
    grid = look.panels(figure, rows, len(columns) + spare)
    for row, axes in enumerate(grid):
        for column, (axis, (x, scale)) in enumerate(zip(axes, columns.items(), strict=False)):
            first = grid[0, 0] if alike else axes[0]
            if axis is not first:
                axis.sharey(first)
            axis.set_xscale(scale)
            if scale == "linear":
                axis.locator_params(axis="x", nbins=5)
            axis.xaxis.set_major_formatter(PLAIN if x == "time" else COUNTS)
            if look.narrow or row == rows - 1:
                axis.set_xlabel(AXES[x])
            axis.tick_params(labelleft=look.narrow or column == 0)
    return grid


def _errors(figure: Figure, result: Result, names: list[str], look: Look) -> None:
    """The run's metrics (rows) against simulated time and against communications."""
    trace, table = result.trace, result.summary["metrics"]
    known = {kind_of(metric): metric for metric in result.scenario.kinds.metrics}
    labels = {kind: metric.label for kind, metric in known.items()}
    columns = dict.fromkeys(("time", "communications"), "linear")
    grid = curve_axes(figure, len(names), look, columns, alike=False)
    for name, axes in zip(names, grid, strict=True):
        for axis, x in zip(axes, columns, strict=True):
            # Metrics are step functions: between samples the last value holds.
            axis.step(trace[x], trace[name], where="post", color=BLUE, label="this run")
            for stage, style, colour in (("solitary", ":", ORANGE), ("optimum", "--", GREEN)):
                look_of = {"color": colour, "linestyle": style, "label": stage}
                if f"{name}_{stage}" in trace:  # it moves
                    axis.step(trace[x], trace[f"{name}_{stage}"], where="post", **look_of)
                    continue
                level = table.get(stage, {}).get(name, 0.0)
                if level > 0:
                    axis.axhline(level, **look_of)
            if not known[name].grows and (trace[name] > 0).all():
                log_scale(axis)
            if look.narrow or x == "time":
                axis.set_ylabel(look.metric_label(name, labels))
        for number, cut in enumerate(result.scenario.network.partitions):
            end = min(cut.until, float(trace["time"].iloc[-1]))
            label = None if number else "partition"
            axes[0].axvspan(min(cut.begin, end), end, color="0.9", label=label)
    legend_below(figure, grid[0, 0])
    title(figure, _title(result))


def _title(result: Result) -> str:
    summary = result.summary
    return f"{summary['name']}: {what_ran(summary)}, {summary['agents']:,} agents"


# --- agents ---------------------------------------------------------------------------------------
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


def can_be_placed(problem: Problem) -> bool:
    """Have agents coordinates, or are they few enough to lay out their graph?"""
    vectors = problem.vectors
    return problem.n <= _LAID_OUT or (vectors is not None and vectors.shape[1] >= 2)


def moon_panels(figure: Figure, vectors: Floats, panels: list[tuple[str, Floats]]) -> None:
    """Agents at their vectors (n, 2), coloured by their models (n,), a panel each."""
    axes = _panels(figure, len(panels))
    # Of very many agents every so many are drawn: more would be slow and hide one another.
    step = -(-len(vectors) // _POINTS)
    if step > 1:
        figure.suptitle(f"one agent in {step} of {len(vectors):,}", fontsize=8)
    for axis, (name, models) in zip(axes, panels, strict=True):
        places, shades = vectors[::step], models[::step]
        # Red and blue are equally dark: without colours the shape tells the sign.
        for marker, chosen in (("^", shades >= 0), ("v", shades < 0)):
            more = {"cmap": "RdBu", "vmin": -1.5, "vmax": 1.5, "marker": marker}
            points = draw_agents(axis, places[chosen], shades[chosen], len(places), **more)
        _bare(axis, name)
        axis.set_aspect("equal")
    _colour_bar(figure, points, axes, "estimated mean", extend="both")


def model_panels(figure: Figure, problem: Problem, panels: list[tuple[str, Floats]]) -> None:
    """Any graph, its links in grey, with the agents coloured by their models (n, p)."""
    layout = arrange(problem, _LINKS + 1, _POINTS)
    stages = np.stack([models[layout.agents] for _, models in panels])
    values, what = model_values(stages)
    low, high = span(values)
    axes = _panels(figure, len(panels))
    for axis, (name, _), shades in zip(axes, panels, values, strict=True):
        if len(layout.links) <= _LINKS:
            draw_links(axis, layout.places, layout.links, layout.weights, GREY, 0.5)
        scale = {"cmap": "cividis", "vmin": low, "vmax": high}
        points = draw_agents(axis, layout.places, shades, len(shades), **scale)
        _bare(axis, name)
    _colour_bar(figure, points, axes, what, extend="both")


def targets_and_links(figure: Figure, plane: Floats, W: csr_array) -> None:
    """The paper's Figure 4: the target models in their plane, and the links between them."""
    axis = figure.subplots()
    upper = triu(W, 1).tocoo()
    draw_links(axis, plane, np.stack([upper.row, upper.col], axis=1), upper.data, BLUE, 0.35)
    axis.scatter(
        plane[:, 0], plane[:, 1], s=18, color=ORANGE, edgecolors="black", linewidths=0.4, zorder=3
    )
    axis.axhline(0, color=GREY, linewidth=0.5)
    axis.axvline(0, color=GREY, linewidth=0.5)
    axis.set_aspect("equal")
    axis.set_xlabel("first coordinate")
    axis.set_ylabel("second coordinate")
    axis.set_title("target models and their links", fontsize=rcParams["font.size"])


def draw_agents(axis: Any, places: Floats, shades: Floats, count: int, **more: Any) -> Any:
    """Some of ``count`` agents at their places, as large as there is room."""
    figure = axis.get_figure()
    width = 72 * figure.get_figwidth() / axis.get_gridspec().ncols  # of a panel, in points
    area = float(np.clip((0.35 * width) ** 2 / max(count, 1), 3, 40))
    edge = 0.25 if count < 1000 else 0  # edges would hide them
    return axis.scatter(
        places[:, 0],
        places[:, 1],
        c=shades,
        s=area,
        edgecolors="black",
        linewidths=edge,
        zorder=3,
        **more,
    )


def draw_links(
    axis: Any, places: Floats, links: Indices, weights: Floats, colour: str, strength: float
) -> None:
    """Lines between neighbours, the stronger the heavier their weight."""
    weight = np.clip(weights / max(weights.max(initial=0.0), 1e-300), 0.05, 1.0)
    alpha = strength * weight
    lines = LineCollection(list(places[links]), colors=colour, linewidths=0.7, alpha=alpha)
    axis.add_collection(lines)


def _panels(figure: Figure, count: int) -> list[Any]:
    """So many panels in a row, or in two where the figure is narrow."""
    rows = 2 if figure.get_figwidth() < 5 and count > 2 else 1
    columns = -(-count // rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return list(axes[:count])


def _colour_bar(figure: Figure, points: Any, axes: list[Any], what: str, **more: Any) -> None:
    bar = figure.colorbar(points, ax=axes, shrink=0.85, pad=0.015, **more)
    bar.set_label(wrapped(what, 0.75 * figure.get_figheight()))


def _bare(axis: Any, name: str) -> None:
    """A panel in which places have no names."""
    axis.set_title(name)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
        spine.set_alpha(0.3)
