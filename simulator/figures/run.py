"""The pictures of a run: error against time and communications, and the agents themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from simulator.problem.problem import Floats
from simulator.problem.tasks.linear_classification import LinearClassification
from simulator.problem.tasks.mean_estimation import MeanEstimation
from simulator.runs.result import Result

STYLE: Any = {
    "figure.dpi": 130,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}
#: Agents that a picture shows at most.
POINTS = 5000
#: Colours that stay apart for colour-blind readers and, by their lightness, in black and white.
BLUE, ORANGE, GREEN, GREY = "#0B4F8A", "#E08214", "#1B9E77", "#777777"
LABELS = {
    "accuracy": "mean test accuracy",
    "l2_error": "mean squared error\nto the true models",
    "distance": "mean squared distance\nto the optimum",
}


def draw_run(result: Result, folder: Path) -> None:
    """All figures of a run, as PNG files in a folder."""
    with rc_context(STYLE):
        if len(result.trace) > 1:
            rows = sum(name in result.trace for name in LABELS)
            with saved(folder / "error.png", (8.0, 1.0 + 2.2 * rows)) as figure:
                _errors(figure, result)
        if isinstance(result.scenario.task, MeanEstimation):
            with saved(folder / "models.png", (9.4, 1.9)) as figure:
                _moons(figure, result)
        if isinstance(result.scenario.task, LinearClassification):
            with saved(folder / "targets.png", (4.6, 4.4)) as figure:
                assert result.problem.targets is not None
                targets_and_links(figure, result.problem.targets[:, :2], result.problem.W)


@contextmanager
def saved(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure to draw on, written to a file at the end."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    yield figure
    figure.savefig(path)


def _errors(figure: Figure, result: Result) -> None:
    """The run's metrics (rows) against simulated time and against communications (columns)."""
    trace, table = result.trace, result.summary["metrics"]
    shown = [name for name in LABELS if name in trace]
    grid = figure.subplots(len(shown), 2, sharex="col", sharey="row", squeeze=False)
    for axes, name in zip(grid, shown, strict=True):
        for axis, x in zip(axes, ("time", "communications"), strict=True):
            # Metrics are step functions: between samples the last value holds.
            axis.step(trace[x], trace[name], where="post", color=BLUE, label="this run")
            for stage, style, colour in (("solitary", ":", ORANGE), ("optimum", "--", GREEN)):
                level = table.get(stage, {}).get(name, 0.0)
                if level > 0:
                    axis.axhline(level, color=colour, linestyle=style, label=stage)
        for number, cut in enumerate(result.scenario.network.partitions):
            end = min(cut.until, float(trace["time"].iloc[-1]))
            label = None if number else "partition"
            axes[0].axvspan(min(cut.begin, end), end, color="0.9", label=label)
        if name != "accuracy" and (trace[name] > 0).all():
            axes[0].set_yscale("log")
        axes[0].set_ylabel(LABELS[name])
    grid[0, 0].legend(loc="best", fontsize=8)
    grid[-1, 0].set_xlabel("simulated time (s)")
    grid[-1, 1].set_xlabel("communications (messages sent)")
    figure.suptitle(_title(result), fontsize=10)


def _moons(figure: Figure, result: Result) -> None:
    """The four panels of the paper's Figure 1, with the run's models as the third."""
    problem = result.problem
    assert problem.vectors is not None
    assert problem.targets is not None
    panels: list[tuple[str, Floats | None]] = [
        ("true means", problem.targets),
        ("solitary models", problem.solitary),
        (f"models at {result.summary['simulated_time']:.4g} s", result.models),
        ("optimum", result.optimum),
    ]
    drawn = [(title, models[:, 0]) for title, models in panels if models is not None]
    moon_panels(figure, problem.vectors, drawn)


def moon_panels(figure: Figure, vectors: Floats, panels: list[tuple[str, Floats]]) -> None:
    """Agents at their vectors (n, 2), coloured by their models (n,), a panel each."""
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharex=True, sharey=True))
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
                s=13,
                marker=marker,
                edgecolors="black",
                linewidths=0.25,
            )
        axis.set_title(title, fontsize=9)
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.grid(visible=False)
        for spine in axis.spines.values():
            spine.set_visible(True)
            spine.set_alpha(0.3)
    bar = figure.colorbar(points, ax=list(axes), shrink=0.85, extend="both", pad=0.015)
    bar.set_label("estimated mean")


def targets_and_links(figure: Figure, plane: Floats, W: csr_array) -> None:
    """The paper's Figure 4: the target models in their plane, and the links between them."""
    axis = figure.subplots()
    edges = W.tocoo()
    upper = edges.row < edges.col
    ends = np.stack([plane[edges.row[upper]], plane[edges.col[upper]]], axis=1)
    strength = np.clip(edges.data[upper] / max(edges.data.max(initial=0.0), 1e-300), 0.05, 1.0)
    axis.add_collection(
        LineCollection(list(ends), colors=BLUE, linewidths=0.7, alpha=0.35 * strength)
    )
    axis.scatter(
        plane[:, 0], plane[:, 1], s=18, color=ORANGE, edgecolors="black", linewidths=0.4, zorder=3
    )
    axis.axhline(0, color=GREY, linewidth=0.5)
    axis.axvline(0, color=GREY, linewidth=0.5)
    axis.set_aspect("equal")
    axis.set_xlabel("first coordinate")
    axis.set_ylabel("second coordinate")
    axis.set_title("target models and their links", fontsize=9)


def _title(result: Result) -> str:
    summary = result.summary
    mode = "asynchronous" if summary["mode"] == "async" else "synchronous"
    return f"{summary['name']}: {summary['algorithm']}, {mode}, {summary['agents']} agents"
