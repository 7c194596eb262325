"""The pictures of comparisons: curves of all sides, speed-ups, the phase diagram, tuning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps, rc_context
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulator.figures.frontier import costs_axes, frontier_line
from simulator.figures.run import BLUE, GREEN, GREY, LABELS, ORANGE, STYLE, saved
from simulator.figures.sweep import (
    AXES,
    PLAIN,
    band,
    caption,
    cells,
    in_words,
    matrix,
    scale,
    select,
    shown_metric,
    ticks,
    write,
)
from simulator.sweeps.comparison import Comparison, costs_text, speedup_text
from simulator.sweeps.request import label

_LOOKS = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (GREY, ":"), ("#7B3294", "-"))
#: The ratios that are drawn, and in words.
_RATIOS = {"speedup": "time", "communications_ratio": "communications"}
#: A cell that is not decided: its interval contains 1.
_UNDECIDED = "#E6E6E6"


def draw_comparison(comparison: Comparison, folder: Path) -> None:
    """All sides' curves; over one swept key the speed-up, over two the phase diagram."""
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    panels = _panels(comparison, keys)
    if len(keys) > 1 and "world" in keys:
        keys.remove("world")
    metric = shown_metric(comparison)
    with rc_context(STYLE):
        if not keys and metric is not None:
            tuned = comparison.tuning is not None
            with saved(folder / "comparison.png", (12.6 if tuned else 9.0, 3.7)) as figure:
                _all_sides(figure, comparison, metric)
        elif len(keys) == 1:
            with saved(folder / "speedup.png", (1.2 + 4.4 * len(panels), 3.8)) as figure:
                _speedup_lines(figure, comparison, keys[0], panels)
        elif len(keys) == 2:
            columns, rows = (len(comparison.axes[key]) for key in keys)
            size = (1.6 + (1.1 + 0.72 * columns) * len(panels), 1.6 + 2 * (0.9 + 0.45 * rows))
            with saved(folder / "phase_diagram.png", size) as figure:
                _phase_diagram(figure, comparison, keys, panels)
        if keys and comparison.tuning is not None:
            _draw_tuning(comparison, folder)


def _panels(comparison: Comparison, keys: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """The speed-ups of each world and other side, with a title."""
    table = comparison.speedup
    worlds = comparison.axes["world"] if "world" in keys and len(keys) > 1 else [None]
    first, *others = (label(value) for value in comparison.vary[1])
    found = []
    for world in worlds:
        for other in others:
            own = table[table["second"] == other]
            own = own if world is None else own[own["world"] == world]
            title = [world] if world is not None else []
            title += [f"{first} over {other}"] if len(others) > 1 else []
            found.append((", ".join(title), own))
    return found


# --- curves ---------------------------------------------------------------------------------------
def _all_sides(figure: Figure, comparison: Comparison, metric: str) -> None:
    """Error against simulated time and against communications, a colour a side."""
    key, values = comparison.vary
    tuned = comparison.tuning is not None
    grid = figure.subplots(1, 3 if tuned else 2)
    grid[1].sharey(grid[0])
    levels = comparison.runs["level"].dropna().unique()
    for axis, (x, text) in zip(grid, AXES.items(), strict=False):
        for number, value in enumerate(values):
            colour, style = _LOOKS[number % len(_LOOKS)]
            curve = select(comparison.curves, {key: value, "axis": x})
            band(axis, curve, metric, colour, style, f"{key.split('.')[-1]}: {label(value)}")
        if comparison.runs["target"].eq(metric).any() and len(levels):
            what = "target" if len(levels) == 1 else "target (mean over seeds)"
            axis.axhline(float(np.mean(levels)), color=GREY, linestyle=":", label=what)
        scale(axis, comparison.curves, metric)
        if _needs_log(comparison, x):
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(PLAIN)
        else:
            axis.locator_params(axis="x", nbins=6)
        axis.set_xlabel(text)
    grid[0].set_ylabel(LABELS.get(metric, metric))
    grid[0].legend(fontsize=7.5)
    if tuned:
        _tried(grid[2], comparison)
    lines = [f"{speedup_text(row)}; {costs_text(row)}" for _, row in comparison.speedup.iterrows()]
    lines += [note.split(";")[0] for note in comparison.notes if "untuned" in note]
    caption(figure, comparison, "\n".join(lines))


def _needs_log(comparison: Comparison, x: str) -> bool:
    """Do sides end more than ten times apart, so that one would be a needle?"""
    key, values = comparison.vary
    ends = [select(comparison.curves, {key: value, "axis": x})["x"].max() for value in values]
    return bool(min(ends) > 0 and max(ends) > 10 * min(ends))


def _tried(axis: Any, comparison: Comparison) -> None:
    """What every value of a tuned side costs on the held-out seeds; the one taken is filled."""
    key, values = comparison.vary
    assert comparison.tuning is not None
    for number, value in enumerate(values):
        own = comparison.tuning[comparison.tuning[key] == label(value)]
        if len(own):
            colour = _LOOKS[number % len(_LOOKS)][0]
            frontier_line(axis, own, colour, above=number == 0, taken=own["taken"])
    costs_axes(axis)
    axis.set_title("every value tried on held-out seeds; filled: taken", fontsize=8)


def _draw_tuning(comparison: Comparison, folder: Path) -> None:
    """Time to target over the values tried, a line a combination, a panel a side and world."""
    table = comparison.tuning
    assert table is not None
    side = comparison.vary[0]
    by = [key for key in ("world", side) if key in table]
    keys = [key for key in comparison.axes if key not in ("world", side)]
    groups = list(table.groupby(by, sort=False))
    with saved(folder / "tuning.png", (1.0 + 4.2 * len(groups), 3.6)) as figure:
        axes = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
        for axis, (names, own) in zip(axes, groups, strict=True):
            _tuning_panel(axis, own, keys)
            axis.set_title(", ".join(map(str, names)), fontsize=9)
        axes[0].set_ylabel("time to target (s)")
        caption(figure, comparison, "every value tried on held-out seeds; filled: taken")


def _tuning_panel(axis: Any, table: pd.DataFrame, keys: list[str]) -> None:
    values = list(dict.fromkeys(table["value"]))
    # Combinations that share their runs (rounds at any clock rate) are one line.
    lines = {tuple(own["time"]): (name, own) for name, own in table.groupby(keys, sort=False)}
    told = [key for key in keys if len({own[key].iloc[0] for _, own in lines.values()}) > 1]
    colours = colormaps["viridis"](np.linspace(0.0, 0.85, len(lines)))
    for (_, own), colour in zip(lines.values(), colours, strict=True):
        text = ", ".join(str(own[key].iloc[0]) for key in told)
        x = np.array([values.index(value) for value in own["value"]])
        low, high = own["time"] - own["time_low"], own["time_high"] - own["time"]
        axis.errorbar(x, own["time"], [low, high], color=colour, capsize=2, label=text)
        for chosen, fill in ((own["taken"], colour), (~own["taken"], "white")):
            points = x[chosen.to_numpy()], own["time"][chosen]
            axis.plot(*points, "o", markeredgecolor=colour, markerfacecolor=fill, zorder=3)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(PLAIN)
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(range(len(values)), [str(value) for value in values])
    axis.set_xlabel(in_words(str(table["knob"].iloc[0])))
    if told:
        axis.legend(title=", ".join(map(in_words, told)), fontsize=7, title_fontsize=7)


# --- over one key ---------------------------------------------------------------------------------
def _speedup_lines(
    figure: Figure, comparison: Comparison, key: str, panels: list[tuple[str, pd.DataFrame]]
) -> None:
    """The ratios of time and of communications with their intervals, over one swept key."""
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (title, table) in zip(axes, panels, strict=True):
        x = np.arange(len(table))
        for ratio, colour, style, name in _ratios():
            low = table["low" if ratio == "speedup" else f"{ratio}_low"]
            high = table["high" if ratio == "speedup" else f"{ratio}_high"]
            middle = table[ratio].to_numpy()
            axis.plot(x, middle, style, color=colour, label=name)
            if np.isfinite(low).all():
                axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
            for position, value, bound in zip(x, middle, table["bound"], strict=True):
                text = f"{value:.3g}" if bound == "=" else f"{bound} {value:.3g}"
                place = {"textcoords": "offset points", "fontsize": 8, "color": colour}
                axis.annotate(text, (position, value), (0, 6), ha="center", **place)
        axis.axhline(1.0, color=GREY, linestyle=":")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(PLAIN)
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xticks(x, [str(label(value)) for value in comparison.axes[key]])
        axis.set_xlabel(in_words(key))
        axis.set_title(title, fontsize=9)
    first, second = comparison.speedup[["first", "second"]].iloc[0]
    other = second if len(comparison.vary[1]) == 2 else "the other"
    axes[0].set_ylabel(f"{other} / {first}")
    axes[0].legend(fontsize=8)
    caption(figure, comparison)


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
) -> None:
    """The ratios of time and of communications on a diverging logarithmic scale, a row each."""
    axes = figure.subplots(2, len(panels), squeeze=False, sharex=True, sharey=True)
    first, second = comparison.speedup[["first", "second"]].iloc[0]
    other = second if len(comparison.vary[1]) == 2 else "the other"
    for row, (ratio, name) in zip(axes, _RATIOS.items(), strict=True):
        reach = _reach(comparison.speedup[ratio].to_numpy())
        image: Any = None
        for axis, (title, table) in zip(row, panels, strict=True):
            image = _ratio_map(axis, comparison, keys, table, ratio, reach)
            axis.set_title(f"{title}: {name}" if title else name, fontsize=9)
            axis.label_outer()
        bar = figure.colorbar(image, ax=list(row))
        bar.ax.yaxis.set_major_locator(LogLocator(base=10))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        bar.ax.yaxis.minorticks_off()
        bar.set_label(f"{name} of {other} / {first}")
    seeds = comparison.runs["seed"].nunique()
    what = f"blue: {first} needs less; red: {other}; grey: undecided at 95 % ({seeds} seeds)"
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
    ticks(axis, comparison.axes, keys)
    for row, column, value in cells(values):
        bound = "" if bounds[row, column] == "=" else f"{bounds[row, column]} "
        light = _UNDECIDED if undecided[row, column] else None
        write(axis, image, row, column, value, bound, background=light)
    return image
