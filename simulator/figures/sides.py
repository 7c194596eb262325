"""Curves of all sides of a comparison: error against seconds, messages and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simulator.figures.frontier import costs_axes, frontier_line, write_values
from simulator.figures.run import AXES
from simulator.figures.style import COUNTS, LOOKS, PLAIN, Look, legend_below
from simulator.figures.sweep import (
    band,
    caption,
    metric_words,
    scale,
    select,
    shown_metric,
    stage_lines,
)
from simulator.sweeps.comparison import Comparison, costs_text, speedup_text
from simulator.sweeps.request import label, side_names

#: What a message costs is worth a panel where messages of sides differ in size by so much.
_OTHER_SIZE = 1.001
#: So many speed-ups are a table of their own, and no caption.
_MANY = 3


def common_metric(comparison: Comparison, look: Look) -> str | None:
    """The metric to show: the one asked for, the target's, or the first that all sides share."""
    metric = shown_metric(comparison, look)
    shared = [] if comparison.at_equal.empty else list(comparison.at_equal["metric"].unique())
    if look.metric is not None or comparison.runs["target"].notna().any() or metric in shared:
        return metric
    return shared[0] if shared else metric


def sides_picture(comparison: Comparison, metric: str, look: Look) -> Figure:
    """A column for seconds, messages and, where their sizes differ, bytes; a colour a side.

    A row for each value of a swept key.  Narrow figures have all panels one below the other.
    """
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    rows: list[dict[str, Any]] = [{}]
    if keys:
        rows = [{keys[0]: value} for value in comparison.axes[keys[0]]]
    columns = {**AXES, **({"bytes": "bytes sent"} if _sizes_differ(comparison.runs) else {})}
    tuned = comparison.tuning is not None and not keys
    count = len(columns) + tuned
    shape = (len(rows) * count, 1) if look.narrow else (len(rows), count)
    wide = {x: any(_needs_log(comparison, x, row) for row in rows) for x in columns}
    figure = look.picture(1.2 + (1.5 if look.narrow or keys else 2.1) * shape[0])
    grid = figure.subplots(*shape, squeeze=False).reshape(len(rows), count)
    for row, axes in zip(rows, grid, strict=True):
        for axis, (x, text) in zip(axes, columns.items(), strict=False):
            if axis is not grid[0, 0]:
                axis.sharey(grid[0, 0])
            _panel(axis, comparison, metric, x, row, look)
            _x_axis(axis, x, wide[x])
            if look.narrow or row is rows[-1]:
                axis.set_xlabel(text)
            if look.narrow or x == "time":
                axis.set_ylabel(metric_words(comparison, metric, look))
            else:
                axis.tick_params(labelleft=False)
        for key, value in row.items():
            what = "" if key == "world" else f"{look.words(key)}: "
            axes[0].set_title(f"{what}{label(value)}", loc="left")
    legend_below(figure, grid[0, 0], look.words(comparison.vary[0]))
    _caption(figure, comparison, look)
    if tuned:
        write_values(figure, _tried(grid[0, -1], comparison, 0.7 * look.width / shape[1]))
    return figure


def _panel(
    axis: Any, comparison: Comparison, metric: str, x: str, row: dict[str, Any], look: Look
) -> None:
    """One metric of all sides against one thing."""
    key, values = comparison.vary
    curves, runs = select(comparison.curves, {**row, "axis": x}), select(comparison.runs, row)
    scale(axis, comparison, metric)
    for number, (value, name) in enumerate(zip(values, side_names(values).values(), strict=True)):
        colour, style = LOOKS[number % len(LOOKS)]
        band(axis, select(curves, {key: value}), metric, colour, style, look.side(key, name))
    stage_lines(axis, runs, metric)
    levels = runs["level"].dropna().unique()
    if runs["target"].eq(metric).any() and len(levels):
        what = "target" if len(levels) == 1 else "target (mean over seeds)"
        level = float(np.mean(levels))
        axis.axhline(level, color="black", linewidth=0.8, label=what, zorder=1)


def _sizes_differ(runs: pd.DataFrame) -> bool:
    """Do messages of some runs have more bytes than those of others?"""
    sent = runs[runs["communications"] > 0]
    sizes = sent["bytes"].astype(float) / sent["communications"].astype(float)
    return len(sizes) > 0 and bool(sizes.max() > _OTHER_SIZE * sizes.min())


def _needs_log(comparison: Comparison, x: str, row: dict[str, Any]) -> bool:
    """Do sides end more than ten times apart, so that one would be a needle?"""
    key, values = comparison.vary
    curves = select(comparison.curves, {**row, "axis": x})
    ends = [float(select(curves, {key: value})["x"].max()) for value in values]
    spent = [end for end in ends if end > 0]
    return bool(spent and max(spent) > 10 * min(spent))


def _x_axis(axis: Any, x: str, wide: bool) -> None:
    """Logarithmic where that was found, the same in all rows; large numbers as 12k and 3M."""
    if wide:
        axis.set_xscale("log")
    else:
        axis.locator_params(axis="x", nbins=5)
    axis.xaxis.set_major_formatter(PLAIN if x == "time" else COUNTS)


def _caption(figure: Figure, comparison: Comparison, look: Look) -> None:
    """The speed-ups where they are few, and what was not tuned."""
    lines = []
    if len(comparison.speedup) < _MANY:
        between = "\n" if look.narrow else "; "
        lines = [
            f"{speedup_text(row)}{between}{costs_text(row)}"
            for _, row in comparison.speedup.iterrows()
        ]
    lines += [note.split(";")[0] for note in comparison.notes if "untuned" in note]
    caption(figure, comparison, "\n".join(lines))


def _tried(axis: Any, comparison: Comparison, room: float) -> list[tuple[Any, pd.DataFrame, int]]:
    """What every value of a tuned side costs on the held-out seeds; the one taken is filled."""
    key, values = comparison.vary
    assert comparison.tuning is not None
    costs_axes(axis, comparison.tuning, room)
    axis.set_title("every value tried on held-out\nseeds; filled: taken")
    sides = [comparison.tuning[comparison.tuning[key] == label(value)] for value in values]
    return [
        frontier_line(axis, own, number, own["taken"])
        for number, own in enumerate(sides)
        if len(own)
    ]
