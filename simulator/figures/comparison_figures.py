"""The pictures of comparisons: curves of all sides, speed-ups, the phase diagram, tuning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from simulator.figures.frontier_figures import costs_axes, frontier_line, write_values
from simulator.figures.style import (
    BLUE,
    GREY,
    HALO,
    ORANGE,
    Look,
    legend_below,
    line_looks,
    log_scale,
    shown_value,
    value_ticks,
    wrapped,
)
from simulator.figures.sweep_figures import (
    UNDECIDED,
    caption,
    curves,
    short,
    shown_metric,
    value_map,
)
from simulator.sweeps.comparison import result_text
from simulator.sweeps.request import label, side_names
from simulator.sweeps.sweep import Comparison

#: The ratios that are drawn: in words, the columns of their intervals, colour and style.
_RATIOS = {
    "speedup": ("time", ["low", "high"], BLUE, "o-"),
    "communications_ratio": (
        "communications",
        ["communications_ratio_low", "communications_ratio_high"],
        ORANGE,
        "s--",
    ),
}
#: What a message costs is worth a panel where messages of sides differ in size by so much.
_OTHER_SIZE = 1.001
#: So many speed-ups are a table of their own, and no caption.
_MANY = 3


def comparison_pictures(comparison: Comparison, look: Look) -> Iterator[tuple[str, Figure]]:
    """All sides' curves; over one swept key the speed-up, over two the phase diagram.

    Without a target there is no speed-up: then there are curves for each value of a swept key.
    """
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    metric = common_metric(comparison, look)
    targeted = not comparison.speedup.empty
    if metric is not None and (not keys or (len(keys) == 1 and not targeted)):
        yield "comparison", sides_picture(comparison, metric, look)
    if not targeted:
        return
    panels = _panels(comparison, keys)
    if len(keys) > 1 and "world" in keys:
        keys.remove("world")
    if len(keys) == 1:
        yield "speedup", _speedup_lines(comparison, keys[0], panels, look)
    elif len(keys) == 2:
        yield "phase_diagram", _phase_diagram(comparison, keys, panels, look)
    if keys and comparison.tuning is not None:
        yield "tuning", _tuning_picture(comparison, look)


def _panels(comparison: Comparison, keys: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """The speed-ups of each world and other side, with a title."""
    table = comparison.speedup
    worlds = comparison.axes["world"] if "world" in keys and len(keys) > 1 else [None]
    first, *others = side_names(comparison.vary[1]).values()
    found = []
    for world in worlds:
        for other in others:
            own = table[table["second"] == other]
            own = own if world is None else own[own["world"] == world]
            title = [world] if world is not None else []
            title += [f"{first} over {other}"] if len(others) > 1 else []
            found.append((", ".join(title), own))
    return found


def _ratio_names(comparison: Comparison, look: Look) -> tuple[str, str]:
    """The sides of a ratio: above the line, the second (or all others), and below it the first."""
    side, (first, second) = comparison.vary[0], comparison.speedup[["first", "second"]].iloc[0]
    other = second if len(comparison.vary[1]) == 2 else "the other"
    return look.side(side, other), look.side(side, first)


# --- curves ---------------------------------------------------------------------------------------
def common_metric(comparison: Comparison, look: Look) -> str | None:
    """The metric to show: the one asked for, the target's, or the first that all sides share."""
    metric = shown_metric(comparison, look)
    shared = [] if comparison.at_equal.empty else list(comparison.at_equal["metric"].unique())
    if look.metric is not None or comparison.runs["target"].notna().any() or metric in shared:
        return metric
    return shared[0] if shared else metric


def sides_picture(comparison: Comparison, metric: str, look: Look) -> Figure:
    """Against seconds, messages and, where their sizes differ, bytes; what was tried in tuning."""
    side = comparison.vary[0]
    beside = next((key for key in comparison.axes if key != side), None)
    columns = ["time", "communications"]
    if _sizes_differ(comparison.runs):
        columns.append("bytes")
    tuned = comparison.tuning is not None and beside is None
    figure, grid = curves(comparison, metric, look, side, beside, columns, spare=int(tuned))
    lines = []
    if len(comparison.speedup) < _MANY:
        between = "\n" if look.narrow else "; "
        rows = [row for _, row in comparison.speedup.iterrows()]
        lines = [result_text(row, between) for row in rows]
    lines += [note.split(";")[0] for note in comparison.notes if "untuned" in note]
    caption(figure, comparison, "\n".join(lines))
    if tuned:
        room = look.room(len(columns) + 1)
        write_values(figure, _tried(grid[0, -1], comparison, room))
    return figure


def _sizes_differ(runs: pd.DataFrame) -> bool:
    """Do messages of some runs have more bytes than those of others?"""
    sent = runs[runs["communications"] > 0]
    sizes = sent["bytes"].astype(float) / sent["communications"].astype(float)
    return len(sizes) > 0 and bool(sizes.max() > _OTHER_SIZE * sizes.min())


def _tried(axis: Any, comparison: Comparison, room: float) -> list[tuple[Any, pd.DataFrame, int]]:
    """What every value of a tuned side costs on the held-out seeds; the one taken is filled."""
    key, values = comparison.vary
    table = comparison.tuning
    assert table is not None
    costs_axes(axis, table, room)
    axis.set_title("every value tried on held-out\nseeds; filled: taken")
    sides = [table[table[key] == label(value)] for value in values]
    return [
        frontier_line(axis, own, number, own["taken"])
        for number, own in enumerate(sides)
        if len(own)
    ]


# --- tuning ---------------------------------------------------------------------------------------
def _tuning_picture(comparison: Comparison, look: Look) -> Figure:
    """Time to target over the values tried, a line a combination, a panel a side and world."""
    table = comparison.tuning
    assert table is not None
    side = comparison.vary[0]
    by = [key for key in ("world", side) if key in table]
    keys = [key for key in comparison.axes if key not in ("world", side)]
    groups = list(table.groupby(by, sort=False))
    figure = look.picture(0.8 + (2.0 * len(groups) if look.narrow else 2.4))
    axes = look.panels(figure, 1, len(groups), sharey=True)[0]
    told: list[str] = []
    room = look.room(len(groups))
    for axis, (names, own) in zip(axes, groups, strict=True):
        told = _tuning_panel(axis, own, keys, look, room)
        axis.set_title(wrapped(", ".join(look.side(side, name) for name in names), room))
    if told:
        legend_below(figure, axes[0], ", ".join(map(look.words, told)))
    axes[0].set_ylabel("time to target (s)")
    caption(figure, comparison, "every value tried on held-out seeds; filled: taken")
    return figure


def _tuning_panel(
    axis: Any, table: pd.DataFrame, keys: list[str], look: Look, room: float
) -> list[str]:
    """Its lines, and the keys by which they are told apart."""
    values = list(dict.fromkeys(table["given"]))
    # Combinations that share their runs (rounds at any clock rate) are one line.
    lines = list({tuple(own["time"]): own for _, own in table.groupby(keys, sort=False)}.values())
    told = [key for key in keys if len({own[key].iloc[0] for own in lines}) > 1]
    one = told[0] if len(told) == 1 else None
    looks = line_looks([own[one].iloc[0] if one else 0.0 for own in lines])
    for own, (colour, style) in zip(lines, looks, strict=True):
        text = ", ".join(shown_value(own[key].iloc[0]) for key in told)
        x = np.array([values.index(value) for value in own["given"]])
        # Where all runs end at the limit the interval has no width, but for rounding.
        low = (own["time"] - own["time_paired_low"]).clip(lower=0.0)
        high = (own["time_paired_high"] - own["time"]).clip(lower=0.0)
        line = {"color": colour, "linestyle": style, "capsize": 2, "label": text}
        axis.errorbar(x, own["time"], [low, high], **line)
        for chosen, fill in ((own["taken"], colour), (~own["taken"], "white")):
            points = x[chosen.to_numpy()], own["time"][chosen]
            axis.plot(*points, "o", markeredgecolor=colour, markerfacecolor=fill, zorder=3)
    log_scale(axis)
    value_ticks(axis, [str(value) for value in values], room)
    axis.set_xlabel(wrapped(look.words(str(table["knob"].iloc[0])), room))
    return told


# --- over one key ---------------------------------------------------------------------------------
def _speedup_lines(
    comparison: Comparison, key: str, panels: list[tuple[str, pd.DataFrame]], look: Look
) -> Figure:
    """The ratios of time and of communications with their intervals, over one swept key."""
    figure = look.picture(0.7 + (1.9 * len(panels) if look.narrow else 2.4))
    axes = look.panels(figure, 1, len(panels), sharey=True)[0]
    for axis, (title, table) in zip(axes, panels, strict=True):
        x = np.arange(len(table))
        for ratio, (name, ends, colour, style) in _RATIOS.items():
            low, high = table[ends].to_numpy().T
            middle = table[ratio].to_numpy()
            axis.plot(x, middle, style, color=colour, label=f"ratio of {name}")
            if np.isfinite(low).all():
                axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
            above = middle >= table[list(_RATIOS)].max(axis=1).to_numpy()
            for position, text, up in zip(x, _bounded(table, ratio, 3), above, strict=True):
                place: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}
                place |= {
                    "va": "bottom" if up else "top",
                    "fontsize": 6.5,
                    "color": colour,
                    "path_effects": [HALO],
                }
                axis.annotate(text, (position, middle[position]), (0, 5 if up else -5), **place)
        axis.axhline(1.0, color=GREY, linestyle=":")
        log_scale(axis)
        axis.margins(x=0.14 if look.narrow else 0.08, y=0.15)  # room for the numbers
        values = [look.side(key, label(value)) for value in comparison.axes[key]]
        value_ticks(axis, values, look.room(len(panels)))
        axis.set_xlabel(look.words(key))
        axis.set_title(title)
    axes[0].set_ylabel(" / ".join(_ratio_names(comparison, look)))
    legend_below(figure, axes[0])
    caption(figure, comparison, geometric=True)
    return figure


def _bounded(table: pd.DataFrame, ratio: str, digits: int) -> list[str]:
    """Ratios, with ≥ or ≤ where they are only bounds."""
    signs = table["bound"].where(table["bound"] != "=", "").tolist()
    numbers = [short(value, digits) for value in table[ratio]]
    return [f"{sign} {number}".strip() for sign, number in zip(signs, numbers, strict=True)]


# --- over two keys --------------------------------------------------------------------------------
def _phase_diagram(
    comparison: Comparison,
    keys: list[str],
    panels: list[tuple[str, pd.DataFrame]],
    look: Look,
) -> Figure:
    """The ratios of time and of communications on a diverging logarithmic scale, a row each.

    In a narrow figure every map has a row of its own.
    """
    rows = 2 * len(panels) if look.narrow else 2
    figure = look.picture(0.9 + rows * (0.55 + 0.3 * len(comparison.axes[keys[1]])))
    axes = look.panels(figure, 2, len(panels), sharex=True, sharey=True)
    other, first = _ratio_names(comparison, look)
    for row, (ratio, (name, *_)) in zip(axes, _RATIOS.items(), strict=True):
        reach = _reach(comparison.speedup[ratio].to_numpy())
        for axis, (title, table) in zip(row, panels, strict=True):
            image = _ratio_map(axis, comparison, keys, table, ratio, reach, look)
            axis.set_title(f"{title}: {name}" if title else name)
            axis.label_outer()
        bar = figure.colorbar(image, ax=list(row))
        subs = (1.0,) if reach > 10 else (1.0, 2.0, 5.0)
        bar.ax.yaxis.set_major_locator(LogLocator(base=10, subs=subs))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        bar.ax.yaxis.minorticks_off()
        bar.set_label(f"{other} / {first}")
    seeds = comparison.runs["seed"].nunique()
    what = f"blue: {first} needs less; red: {other}; grey: undecided at 95 % ({seeds} seeds)"
    if comparison.tuning is not None:
        tuned = comparison.tuning[[comparison.vary[0], "knob"]].drop_duplicates()
        words = [
            f"{knob} of {look.side(comparison.vary[0], name)}"
            for name, knob in tuned.itertuples(index=False)
        ]
        what += f"\ntuned in each cell on held-out seeds: {', '.join(words)}"
    caption(figure, comparison, what)
    return figure


def _reach(ratios: np.ndarray) -> float:
    """The largest ratio, or the inverse of the smallest; at least 3."""
    finite = ratios[np.isfinite(ratios) & (ratios > 0)]
    return max(3.0, float(np.exp(np.abs(np.log(finite)).max()))) if len(finite) else 3.0


def _ratio_map(
    axis: Any,
    comparison: Comparison,
    keys: list[str],
    table: pd.DataFrame,
    ratio: str,
    reach: float,
    look: Look,
) -> Any:
    """One map: cells whose interval contains 1 are grey, with a number all the same."""
    low, high = table[_RATIOS[ratio][1]].to_numpy().T
    undecided = ~((low > 1) | (high < 1)) | (table["bound"] == "?").to_numpy()
    cmap = colormaps["RdBu"].with_extremes(bad=UNDECIDED)
    norm = LogNorm(vmin=1 / reach, vmax=reach)
    values, texts = table[ratio].to_numpy(dtype=float), _bounded(table, ratio, 2)
    return value_map(
        axis, comparison.axes, keys, look, values, texts, grey=undecided, cmap=cmap, norm=norm
    )
