"""The pictures of a run: error against time and communications, and the agents themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from simulator.errors import ScenarioError
from simulator.figures.agents import layout, model_panels, moon_panels, targets_and_links
from simulator.figures.style import (
    BLUE,
    COUNTS,
    GREEN,
    GREY,
    ORANGE,
    STYLE,
    Look,
    keep,
    legend_below,
    log_scale,
    title,
)
from simulator.problem.problem import Floats
from simulator.problem.tasks.linear_classification import LinearClassification
from simulator.problem.tasks.mean_estimation import MeanEstimation
from simulator.runs.result import Result
from simulator.scenario.choice import kind_of

__all__ = [
    "BLUE", "GREEN", "GREY", "ORANGE", "STYLE", "draw_run", "moon_panels", "run_pictures",
    "targets_and_links",
]  # fmt: skip

#: What tasks are judged by: the first that is measured is drawn where nobody asks for a metric.
SHOWN = ("accuracy", "test_error", "l2_error", "distance")
AXES = {"time": "simulated time (s)", "communications": "communications (messages sent)"}


def draw_run(result: Result, folder: Path, look: Look | None = None) -> None:
    """All figures of a run, as files in a folder."""
    look = look or Look()
    with rc_context(look.style):
        keep(run_pictures(result, look), folder, look)


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


def _errors(figure: Figure, result: Result, names: list[str], look: Look) -> None:
    """The run's metrics (rows) against simulated time and against communications (columns).

    In a narrow figure communications are below time.
    """
    trace, table = result.trace, result.summary["metrics"]
    known = {kind_of(metric): metric for metric in result.scenario.kinds.metrics}
    labels = {kind: metric.label for kind, metric in known.items()}
    shape = (2 * len(names), 1) if look.narrow else (len(names), 2)
    grid = figure.subplots(*shape, squeeze=False)
    for row, name in enumerate(names):
        axes = grid[2 * row : 2 * row + 2, 0] if look.narrow else grid[row]
        for axis, (x, text) in zip(axes, AXES.items(), strict=True):
            # Metrics are step functions: between samples the last value holds.
            axis.step(trace[x], trace[name], where="post", color=BLUE, label="this run")
            for stage, style, colour in (("solitary", ":", ORANGE), ("optimum", "--", GREEN)):
                level = table.get(stage, {}).get(name, 0.0)
                if level > 0:
                    axis.axhline(level, color=colour, linestyle=style, label=stage)
            if not known[name].grows and (trace[name] > 0).all():
                log_scale(axis)
            axis.locator_params(axis="x", nbins=5)
            if x == "communications":
                axis.xaxis.set_major_formatter(COUNTS)
            if look.narrow or row == len(names) - 1:
                axis.set_xlabel(text)
            axis.set_ylabel(look.metric_label(name, labels))
        for number, cut in enumerate(result.scenario.network.partitions):
            end = min(cut.until, float(trace["time"].iloc[-1]))
            label = None if number else "partition"
            axes[0].axvspan(min(cut.begin, end), end, color="0.9", label=label)
        if not look.narrow:
            axes[1].sharey(axes[0])
            axes[1].set_ylabel("")
            axes[1].tick_params(labelleft=False)
    legend_below(figure, grid[0, 0])
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
