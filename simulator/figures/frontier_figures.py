"""Frontiers: time to target against communications to target, a line a side, a panel a world."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from simulator.figures.style import (
    COUNTS,
    HALO,
    LOOKS,
    PLAIN,
    Look,
    shown_value,
    title,
    wrapped,
)
from simulator.figures.sweep_figures import place_words, select
from simulator.sweeps.request import label, side_names
from simulator.sweeps.sweep import Frontier

#: Points nearer than this, as a ratio, share a label.
_NEAR = 1.06
#: The two costs, and what the axes call them.
_COSTS = {
    "communications": "communications to target (messages sent)",
    "time": "time to target (s)",
}
#: Of an axis, how far up points stand that did not get to the target, with room for an arrow.
_EDGE = 0.93
#: How far that arrow goes each way, in points.
_ARROW = 13
#: Where a label may stand, as seen from its point: of the first side, and of the others.
_RIGHT = ((1, 1), (1, 0), (0, 1), (1, -1), (-1, 1), (-1, 0), (0, -1), (-1, -1))
_LEFT = tuple((-x, -y) for x, y in _RIGHT)


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
    lines = []
    for axis, (name, table) in zip(axes, groups, strict=False):
        axis.set_title(place_words(dict(zip(by, name, strict=False)), look), loc="left")
        costs_axes(axis, frontier.points, 0.8 * look.width / columns)
        sides = [select(table, {key: value}) for value in values]
        lines += [frontier_line(axis, own, number) for number, own in enumerate(sides)]
    for row, axis in enumerate(axes):
        axis.set_visible(row < len(groups))
        if not look.narrow:
            axis.label_outer()
    handles = []
    for number, value in enumerate(values):
        knob = str(select(frontier.points, {key: value})["knob"].iloc[0])
        name = f"{look.side(key, names[label(value)])}: {look.words(knob)}"
        handles.append(Line2D([], [], **_marks(number), label=name))
    if (frontier.points["censored"] > 0).any():
        handles.append(Line2D([], [], color="black", marker="$\\nearrow$", linewidth=0,
                              label="at least: not all seeds got there"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    seeds = frontier.runs["seed"].nunique()
    what = f"geometric means and paired 95 % intervals over {seeds} seeds"
    title(figure, f"{frontier.name}: {what}; lower left is better")
    write_values(figure, lines)
    yield "frontier", figure


def _marks(number: int) -> dict[str, Any]:
    """Colour and marker of a side."""
    shapes = "os^vDP<>"
    return {"color": LOOKS[number % len(LOOKS)][0], "marker": shapes[number % len(shapes)]}


def costs_axes(axis: Any, points: pd.DataFrame, room: float) -> None:
    """Logarithmic, in plain numbers and units, as wide as the points that got to the target.

    ``room`` is the panel's width in inches.
    """
    exact = points[points["censored"] == 0]
    shown = points if exact.empty else exact
    sides = (axis.xaxis, axis.set_xlim, COUNTS), (axis.yaxis, axis.set_ylim, PLAIN)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for (cost, text), (side, limit, formatter) in zip(_COSTS.items(), sides, strict=True):
        low, high = float(shown[cost].min()), float(shown[cost].max())
        margin = 1.5 * (high / low) ** 0.12  # for labels
        limit(low / margin, high * margin)
        side.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        side.set_major_formatter(formatter)
        side.set_minor_formatter(NullFormatter())
        side.set_label_text(wrapped(text, room))


def frontier_line(
    axis: Any, points: pd.DataFrame, number: int, taken: pd.Series[bool] | None = None
) -> tuple[Any, pd.DataFrame, int]:
    """One side's points in the order of its knob, with intervals both ways.

    What did not get to the target for every seed costs at least so much: an arrow shows it, at the
    edge where the point itself is beyond.  Returned is what ``write_values`` needs.
    """
    marks = _marks(number)
    points = points.assign(taken=True if taken is None else taken)
    for cost, (low, high) in zip(_COSTS, (axis.get_xlim(), axis.get_ylim()), strict=True):
        ends = low * (high / low) ** (1 - _EDGE), low * (high / low) ** _EDGE
        points[f"{cost}_at"] = points[cost].clip(*ends)
    at, late = ["communications_at", "time_at"], points["censored"] > 0
    exact = points[~late]
    errors = {
        f"{way}err": [
            (exact[cost] - exact[f"{cost}_paired_low"]).clip(lower=0.0),
            (exact[f"{cost}_paired_high"] - exact[cost]).clip(lower=0.0),
        ]
        for way, cost in (("x", "communications"), ("y", "time"))
        if np.isfinite(exact[f"{cost}_paired_low"]).all()
    }
    line = {"color": marks["color"], "capsize": 2, "elinewidth": 1, "linewidth": 1.2}
    axis.errorbar(exact["communications"], exact["time"], **line, **errors)
    for chosen, face in ((points["taken"], marks["color"]), (~points["taken"], "white")):
        for place in points.loc[chosen, at].itertuples(index=False):
            axis.plot(*place, markerfacecolor=face, markersize=5, zorder=3, **marks)
    for place in points.loc[late, at].itertuples(index=False):
        arrow = {"arrowstyle": "<-", "color": marks["color"], "shrinkA": 0, "shrinkB": 3}
        axis.annotate("", place, (_ARROW, _ARROW), textcoords="offset points", arrowprops=arrow)
    return axis, points, number


def write_values(figure: Figure, lines: list[tuple[Any, pd.DataFrame, int]]) -> None:
    """The knob's values beside their points, where they run into nothing; without room, none.

    Called last: where there is room depends on where the panels are.
    """
    figure.draw_without_rendering()
    ink = {axis: [] for axis, _, _ in lines}  # type: dict[Any, list[np.ndarray]]
    for axis, points, _ in lines:
        places = axis.transData.transform(points[["communications_at", "time_at"]])
        ink[axis] += [np.linspace(*ends, 40) for ends in pairwise(places)]
        ink[axis] += [np.repeat(places, 30, axis=0)]  # to lie on a point is worse than on a line
        arrows = places[(points["censored"] > 0).to_numpy()]
        ink[axis] += [np.linspace(tail, tail + _ARROW * figure.dpi / 72, 20) for tail in arrows]
        exact = points[points["censored"] == 0]
        for cost, end in product(_COSTS, ("low", "high")):
            bars = exact.assign(**{cost: exact[f"{cost}_paired_{end}"]})
            tips = axis.transData.transform(bars[list(_COSTS)])
            starts = axis.transData.transform(exact[list(_COSTS)])
            ink[axis] += [np.linspace(*ends, 40) for ends in zip(starts, tips, strict=True)]
    written: dict[Any, list[Bbox]] = {axis: [] for axis in ink}
    for axis, points, number in lines:
        for text, place in _labels(points):
            note = axis.annotate(text, place, (0, 0), textcoords="offset points", fontsize=6.5)
            note.set(ha="center", va="center", color=_marks(number)["color"], zorder=4)
            note.set_path_effects([HALO])
            note.set_in_layout(False)
            room = axis.bbox, written[axis], ink[axis], figure.dpi / 72
            found = _place_for(note.get_window_extent(), _RIGHT if number == 0 else _LEFT, *room)
            if found is None:
                note.remove()
            else:
                note.xyann, box = found
                written[axis].append(box)


def _place_for(
    text: Bbox, ways: Any, panel: Bbox, others: list[Bbox], ink: list[np.ndarray], point: float
) -> tuple[tuple[float, float], Bbox] | None:
    """Where a text that is centred on its point hides least: the shift in points, and the box.

    None where it would leave the panel, or run into another text, wherever it stood.
    """
    best, least = None, np.inf
    for far, way in product((4, 9, 18), ways):
        shift = np.multiply(way, (text.width / 2 + far * point, text.height / 2 + far * point))
        box = text.translated(*shift).padded(1)
        inside = panel.contains(box.x0, box.y0) and panel.contains(box.x1, box.y1)
        if not inside or box.count_overlaps(others):
            continue
        hidden = sum(int(box.count_contains(each)) for each in ink)
        if hidden < least:
            best, least = ((shift[0] / point, shift[1] / point), box), hidden
    return best


def _labels(points: pd.DataFrame) -> list[tuple[str, tuple[float, float]]]:
    """The knob's values and where they belong; values in one place share a label."""
    places = points[["communications_at", "time_at"]].to_numpy()
    groups: list[list[int]] = []
    for number in range(len(points)):
        if groups and np.abs(np.log(places[number] / places[groups[-1][0]])).max() < np.log(_NEAR):
            groups[-1].append(number)
        else:
            groups.append([number])
    found = []
    for group in groups:
        ends = [_shown(points.iloc[number]) for number in (group[0], group[-1])]
        text = ends[0] if len(group) == 1 else f"{ends[0]} … {ends[1]}"
        found.append((text, tuple(places[group[len(group) // 2]])))
    # The ends of the line tell most: they choose their places first.
    return [*found[:1], *found[:0:-1]]


def _shown(point: pd.Series[Any]) -> str:
    value = point["given"]
    if point["knob"] == "clock.rate" and isinstance(value, int | float):
        return f"{value:g}/s"
    return shown_value(value)
