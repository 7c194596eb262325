"""The pictures of comparisons: speed-ups, the phase diagram, tuning; curves are in ``sides``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from simulator.figures.frontier_figures import costs_axes, frontier_line, write_values
from simulator.figures.run_figures import AXES
from simulator.figures.style import (
    BLUE,
    COUNTS,
    GREY,
    LOOKS,
    ORANGE,
    PLAIN,
    Look,
    draw,
    legend_below,
    line_looks,
    log_scale,
    shown_value,
    value_ticks,
    wrapped,
)
from simulator.figures.sweep_figures import (
    band,
    caption,
    cells,
    matrix,
    metric_words,
    scale,
    select,
    shown,
    shown_metric,
    stage_lines,
    ticks,
    write,
)
from simulator.sweeps.comparison import Comparison, costs_text, speedup_text
from simulator.sweeps.request import label, side_names

#: The ratios that are drawn, and in words.
_RATIOS = {"speedup": "time", "communications_ratio": "communications"}
#: A cell that is not decided: its interval contains 1.
_UNDECIDED = "#E6E6E6"


def comparison_pictures(comparison: Comparison, look: Look) -> Iterator[tuple[str, Figure]]:
    """All sides' curves; over one swept key the speed-up, over two the phase diagram.

    Without a target there is no speed-up: then there are curves for each value of a swept key.
    """
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    panels = _panels(comparison, keys)
    metric = common_metric(comparison, look)
    targeted = not comparison.speedup.empty
    if metric is not None and (not keys or (len(keys) == 1 and not targeted)):
        yield "comparison", sides_picture(comparison, metric, look)
    if not targeted:
        return
    if len(keys) > 1 and "world" in keys:
        keys.remove("world")
    if len(keys) == 1:
        rows = len(panels) if look.narrow else 1
        figure = look.picture(0.7 + (1.9 if look.narrow else 2.4) * rows)
        _speedup_lines(figure, comparison, keys[0], panels, look)
        yield "speedup", figure
    elif len(keys) == 2:
        # A narrow figure has the two ratios of each panel one below the other.
        rows = 2 * len(panels) if look.narrow else 2
        figure = look.picture(0.9 + rows * (0.55 + 0.3 * len(comparison.axes[keys[1]])))
        _phase_diagram(figure, comparison, keys, panels, look)
        yield "phase_diagram", figure
    if keys and comparison.tuning is not None:
        yield "tuning", _tuning_picture(comparison, look)


draw_comparison = partial(draw, comparison_pictures)


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


# --- tuning ---------------------------------------------------------------------------------------
def _tuning_picture(comparison: Comparison, look: Look) -> Figure:
    """Time to target over the values tried, a line a combination, a panel a side and world."""
    table = comparison.tuning
    assert table is not None
    side = comparison.vary[0]
    by = [key for key in ("world", side) if key in table]
    keys = [key for key in comparison.axes if key not in ("world", side)]
    groups = list(table.groupby(by, sort=False))
    shape = (len(groups), 1) if look.narrow else (1, len(groups))
    figure = look.picture(0.8 + (2.0 if look.narrow else 2.4) * shape[0])
    axes = figure.subplots(*shape, squeeze=False, sharey=True).ravel()
    told: list[str] = []
    room = 0.8 * look.width / shape[1]
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
    lines = {tuple(own["time"]): (name, own) for name, own in table.groupby(keys, sort=False)}
    told = [key for key in keys if len({own[key].iloc[0] for _, own in lines.values()}) > 1]
    one = told[0] if len(told) == 1 else None
    looks = line_looks([own[one].iloc[0] if one else 0.0 for _, own in lines.values()])
    for (_, own), (colour, style) in zip(lines.values(), looks, strict=True):
        text = ", ".join(shown_value(own[key].iloc[0]) for key in told)
        x = np.array([values.index(value) for value in own["given"]])
        # Where all runs end at the limit the interval has no width, but for rounding.
        low = (own["time"] - own["time_paired_low"]).clip(lower=0.0)
        high = (own["time_paired_high"] - own["time"]).clip(lower=0.0)
        axis.errorbar(
            x, own["time"], [low, high], color=colour, linestyle=style, capsize=2, label=text
        )
        for chosen, fill in ((own["taken"], colour), (~own["taken"], "white")):
            points = x[chosen.to_numpy()], own["time"][chosen]
            axis.plot(*points, "o", markeredgecolor=colour, markerfacecolor=fill, zorder=3)
    log_scale(axis)
    value_ticks(axis, [str(value) for value in values], room)
    axis.set_xlabel(wrapped(look.words(str(table["knob"].iloc[0])), room))
    return told


# --- over one key ---------------------------------------------------------------------------------
def _speedup_lines(
    figure: Figure,
    comparison: Comparison,
    key: str,
    panels: list[tuple[str, pd.DataFrame]],
    look: Look,
) -> None:
    """The ratios of time and of communications with their intervals, over one swept key."""
    shape = (len(panels), 1) if look.narrow else (1, len(panels))
    axes = figure.subplots(*shape, squeeze=False, sharey=True).ravel()
    for axis, (title, table) in zip(axes, panels, strict=True):
        x = np.arange(len(table))
        for ratio, colour, style, name in _ratios():
            low = table["low" if ratio == "speedup" else f"{ratio}_low"]
            high = table["high" if ratio == "speedup" else f"{ratio}_high"]
            middle = table[ratio].to_numpy()
            axis.plot(x, middle, style, color=colour, label=name)
            if np.isfinite(low).all():
                axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
            above = middle >= table[list(_RATIOS)].max(axis=1).to_numpy()
            for position, value, bound, up in zip(x, middle, table["bound"], above, strict=True):
                text = f"{value:.3g}" if bound == "=" else f"{bound} {value:.3g}"
                place: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}
                place |= {"va": "bottom" if up else "top", "fontsize": 6.5, "color": colour}
                axis.annotate(text, (position, value), (0, 5 if up else -5), **place)
        axis.axhline(1.0, color=GREY, linestyle=":")
        log_scale(axis)
        axis.margins(x=0.14 if look.narrow else 0.08, y=0.15)  # room for the numbers
        value_ticks(axis, [shown(v) for v in comparison.axes[key]], 0.8 * look.width / shape[1])
        axis.set_xlabel(look.words(key))
        axis.set_title(title)
    first, second = comparison.speedup[["first", "second"]].iloc[0]
    other = second if len(comparison.vary[1]) == 2 else "the other"
    side = comparison.vary[0]
    axes[0].set_ylabel(f"{look.side(side, other)} / {look.side(side, first)}")
    legend_below(figure, axes[0])
    seeds = comparison.runs["seed"].nunique()
    what = f"geometric mean and 95 % interval over {seeds} seeds" if seeds > 1 else ""
    caption(figure, comparison, what)


def _ratios() -> Iterator[tuple[str, str, str, str]]:
    """Each ratio that is drawn: column, colour, style, and in words."""
    looks = ((BLUE, "o-"), (ORANGE, "s--"))
    for (ratio, name), (colour, style) in zip(_RATIOS.items(), looks, strict=True):
        yield ratio, colour, style, f"ratio of {name}"


# --- over two keys --------------------------------------------------------------------------------
def _phase_diagram(
    figure: Figure,
    comparison: Comparison,
    keys: list[str],
    panels: list[tuple[str, pd.DataFrame]],
    look: Look,
) -> None:
    """The ratios of time and of communications on a diverging logarithmic scale, a row each.

    In a narrow figure every map has a row of its own.
    """
    shape = (2 * len(panels), 1) if look.narrow else (2, len(panels))
    axes = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True).reshape(2, -1)
    side, (first, second) = comparison.vary[0], comparison.speedup[["first", "second"]].iloc[0]
    other = second if len(comparison.vary[1]) == 2 else "the other"
    first, other = look.side(side, first), look.side(side, other)
    for row, (ratio, name) in zip(axes, _RATIOS.items(), strict=True):
        reach = _reach(comparison.speedup[ratio].to_numpy())
        image: Any = None
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
            f"{knob} of {look.side(side, name)}" for name, knob in tuned.itertuples(index=False)
        ]
        what += f"\ntuned in each cell on held-out seeds: {', '.join(words)}"
    caption(figure, comparison, what)


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
    before = "" if ratio == "speedup" else f"{ratio}_"
    values = matrix(table, ratio, comparison.axes, keys)
    low = matrix(table, f"{before}low", comparison.axes, keys)
    high = matrix(table, f"{before}high", comparison.axes, keys)
    bounds = matrix(table, "bound", comparison.axes, keys, dtype=object)
    undecided = ~((low > 1) | (high < 1)) | (bounds == "?")
    cmap = colormaps["RdBu"].with_extremes(bad=_UNDECIDED)
    norm = LogNorm(vmin=1 / reach, vmax=reach)
    shown = np.ma.masked_array(values, undecided)
    image = axis.imshow(shown, origin="lower", aspect="auto", cmap=cmap, norm=norm)
    ticks(axis, comparison.axes, keys, look)
    for row, column, value in cells(values):
        bound = "" if bounds[row, column] == "=" else f"{bounds[row, column]} "
        light = _UNDECIDED if undecided[row, column] else None
        write(axis, image, row, column, value, bound, digits=2, background=light)
    return image


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
