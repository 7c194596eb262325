"""Frontiers: time to target against communications to target, a line a side, a panel a world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulator.figures.run import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from simulator.figures.sweep import in_words
from simulator.sweeps.frontier import Frontier
from simulator.sweeps.request import label

_COLOURS = (BLUE, ORANGE, GREEN, GREY)
#: Points nearer than this, as a ratio, share a label.
_NEAR = 1.06
_SIDES = {"async": "gossip", "sync": "rounds"}


def draw_frontier(frontier: Frontier, folder: Path) -> None:
    """A panel a world or combination, all with the same axes."""
    key, values = frontier.vary
    by = [name for name in frontier.points if name in frontier.axes]
    by = by[: by.index(key)]
    groups: list[tuple[Any, pd.DataFrame]] = [("", frontier.points)]
    if by:
        groups = list(frontier.points.groupby(by, sort=False))
    columns = min(2, len(groups))
    rows = -(-len(groups) // columns)
    with (
        rc_context(STYLE),
        saved(folder / "frontier.png", (5.0 * columns, 0.6 + 3.7 * rows)) as fig,
    ):
        axes = fig.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for axis, (name, table) in zip(axes, groups, strict=False):
            for number, value in enumerate(values):
                own = table[table[key] == label(value)]
                colour = _COLOURS[number % len(_COLOURS)]
                frontier_line(axis, own, colour, above=number == 0)
            axis.set_title(", ".join(map(str, name)) if by else "", fontsize=10, loc="left")
            costs_axes(axis)
            axis.label_outer()
        for axis in axes[len(groups) :]:
            axis.set_visible(False)
        for number, value in enumerate(values):
            own = frontier.points[frontier.points[key] == label(value)]
            _name_side(axes[0], number, str(label(value)), str(own["knob"].iloc[0]))
        seeds = frontier.runs["seed"].nunique()
        name = frontier.folder.name.rsplit("-", 1)[0]
        what = f"geometric means and paired 95 % intervals over {seeds} seeds; lower left is better"
        fig.suptitle(f"{name}: {what}", fontsize=9)


def _name_side(axis: Any, number: int, side: str, knob: str) -> None:
    """Whose line has which colour, and what its labels are."""
    name = f"{_SIDES.get(side, side)}: {in_words(knob)}"
    colour = _COLOURS[number % len(_COLOURS)]
    axis.text(
        0.98, 0.97 - 0.075 * number, name, color=colour, ha="right", va="top",
        fontsize=9, fontweight="bold", transform=axis.transAxes,
    )  # fmt: skip


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
            points[cost] - points[f"{cost}_paired_low"],
            points[f"{cost}_paired_high"] - points[cost],
        ]
        for way, cost in (("x", "communications"), ("y", "time"))
        if np.isfinite(points[f"{cost}_paired_low"]).all()
    }
    axis.errorbar(x, y, color=colour, capsize=2, elinewidth=1, linewidth=1.2, **errors)
    filled = np.ones(len(points), bool) if taken is None else taken.to_numpy()
    for chosen, face in ((filled, colour), (~filled, "white")):
        style = {"markeredgecolor": colour, "markerfacecolor": face, "markersize": 5}
        axis.plot(x[chosen], y[chosen], "o" if above else "s", zorder=3, **style)
    for text, across, up in _labels(points):
        axis.annotate(
            text,
            (across, up),
            (5, 5) if above else (-5, -5),
            textcoords="offset points",
            ha="left" if above else "right",
            va="bottom" if above else "top",
            color=colour,
            fontsize=7.5,
        )


def _labels(points: pd.DataFrame) -> list[tuple[str, float, float]]:
    """The knob's values where their points are; those in one place share a label."""
    groups: list[list[int]] = []
    place = np.log(points[["communications", "time"]].to_numpy())
    for number in range(len(points)):
        near = groups and np.abs(place[number] - place[groups[-1][-1]]).max() < np.log(_NEAR)
        if near:
            groups[-1].append(number)
        else:
            groups.append([number])
    found = []
    for group in groups:
        ends = [_shown(points.iloc[number]) for number in (group[0], group[-1])]
        text = ends[0] if len(group) == 1 else f"{ends[0]} … {ends[1]}"
        middle = points.iloc[group[len(group) // 2]]
        bound = "≥ " if middle["censored"] else ""
        found.append((bound + text, float(middle["communications"]), float(middle["time"])))
    return found


def _shown(point: pd.Series[Any]) -> str:
    value = point["value"]
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
    axis.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlabel("communications to target (messages sent)")
    axis.set_ylabel("time to target (s)")


def _thousands(value: float, _: Any) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
