"""Frontiers: time to target against communications to target, a line a side, a panel a world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from simulator.figures.style import COUNTS, LOOKS, PLAIN, Look, keep, title
from simulator.figures.sweep import select
from simulator.sweeps.frontier import Frontier
from simulator.sweeps.request import label, side_names

#: Points nearer than this, as a ratio, share a label.
_NEAR = 1.06


def draw_frontier(frontier: Frontier, folder: Path, look: Look | None = None) -> None:
    """The figure of a frontier, as files in a folder."""
    look = look or Look()
    with rc_context(look.style):
        keep(frontier_pictures(frontier, look), folder, look)


def frontier_pictures(frontier: Frontier, look: Look) -> Iterator[tuple[str, Figure]]:
    """A panel a world or combination, all with the same axes."""
    key, values = frontier.vary
    names = side_names(values)
    by = [name for name in frontier.points if name in frontier.axes]
    by = by[: by.index(key)]
    groups: list[tuple[Any, pd.DataFrame]] = [("", frontier.points)]
    if by:
        groups = list(frontier.points.groupby(by, sort=False))
    columns = 1 if look.narrow else min(2, len(groups))
    rows = -(-len(groups) // columns)
    figure = look.picture(0.8 + 2.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, (name, table) in zip(axes, groups, strict=False):
        for number, value in enumerate(values):
            own = select(table, {key: value})
            frontier_line(axis, own, LOOKS[number % len(LOOKS)][0], above=number == 0)
        axis.set_title(", ".join(map(str, name)) if by else "", loc="left")
        costs_axes(axis)
        axis.label_outer()
    left, right = axes[0].get_xlim()
    axes[0].set_xlim(0.45 * left, 1.1 * right)  # room for labels
    for axis in axes[len(groups) :]:
        axis.set_visible(False)
    lines = []
    for number, value in enumerate(values):
        knob = str(select(frontier.points, {key: value})["knob"].iloc[0])
        name = f"{look.side(key, names[label(value)])}: {look.words(knob)}"
        marker = "o" if number == 0 else "s"
        lines.append(Line2D([], [], color=LOOKS[number % len(LOOKS)][0], marker=marker, label=name))
    figure.legend(handles=lines, loc="outside lower center", ncols=columns, frameon=False)
    seeds = frontier.runs["seed"].nunique()
    what = f"geometric means and paired 95 % intervals over {seeds} seeds"
    title(figure, f"{frontier.name}: {what}; lower left is better")
    yield "frontier", figure


def frontier_line(
    axis: Any,
    points: pd.DataFrame,
    colour: str,
    *,
    above: bool,
    taken: pd.Series[bool] | None = None,
) -> None:
    """One side's points in the order of its knob, with intervals both ways and their values."""
    x, y = points["communications"], points["time"]
    errors = {
        f"{way}err": [
            (points[cost] - points[f"{cost}_paired_low"]).clip(lower=0.0),
            (points[f"{cost}_paired_high"] - points[cost]).clip(lower=0.0),
        ]
        for way, cost in (("x", "communications"), ("y", "time"))
        if np.isfinite(points[f"{cost}_paired_low"]).all()
    }
    axis.errorbar(x, y, color=colour, capsize=2, elinewidth=1, linewidth=1.2, **errors)
    filled = np.ones(len(points), bool) if taken is None else taken.to_numpy()
    for chosen, face in ((filled, colour), (~filled, "white")):
        style = {"markeredgecolor": colour, "markerfacecolor": face, "markersize": 5}
        axis.plot(x[chosen], y[chosen], "o" if above else "s", zorder=3, **style)
    for text, across, up, level in _labels(points):
        # On a level stretch labels side by side would run into one another: they are turned, away
        # from the other side's line.
        turn = (40 if above else -40) if level else 0
        axis.annotate(
            text,
            (across, up),
            (3, 6 if above else -6) if level else (5, 5) if above else (-6, -1),
            textcoords="offset points",
            rotation=turn,
            rotation_mode="anchor",
            ha="left" if above or level else "right",
            va="bottom" if above else "top",
            color=colour,
            fontsize=6.5,
        )


def _labels(points: pd.DataFrame) -> list[tuple[str, float, float, bool]]:
    """The knob's values where their points are, and whether the line is level there.

    Values whose points lie in one place share a label.
    """
    place = np.log(points[["communications", "time"]].to_numpy())
    groups: list[list[int]] = []
    for number in range(len(points)):
        if groups and np.abs(place[number] - place[groups[-1][-1]]).max() < np.log(_NEAR):
            groups[-1].append(number)
        else:
            groups.append([number])
    found = []
    for group in groups:
        ends = [_shown(points.iloc[number]) for number in (group[0], group[-1])]
        text = ends[0] if len(group) == 1 else f"{ends[0]} … {ends[1]}"
        middle = points.iloc[group[len(group) // 2]]
        bound = "≥ " if middle["censored"] else ""
        around = place[max(group[0] - 1, 0) : group[-1] + 2]
        cost = float(middle["communications"]), float(middle["time"])
        # The most frugal point has room on its left.
        level = bool(np.ptp(around[:, 1]) < 0.1 * np.ptp(around[:, 0]))
        level &= place[group, 0].min() > place[:, 0].min()
        found.append((bound + text, *cost, bool(level)))
    return found


def _shown(point: pd.Series[Any]) -> str:
    value = point["given"]
    if point["knob"] == "clock.rate" and isinstance(value, int | float):
        return f"{value:g}/s"
    return f"{value:g}" if isinstance(value, float) else str(value)


def costs_axes(axis: Any) -> None:
    """Logarithmic, in plain numbers and units."""
    axis.set_xscale("log")
    axis.set_yscale("log")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        side.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(COUNTS)
    axis.yaxis.set_major_formatter(PLAIN)
    axis.set_xlabel("communications to target (messages sent)")
    axis.set_ylabel("time to target (s)")
