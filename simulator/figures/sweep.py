"""The pictures of sweeps and comparisons: curves with bands, heat maps, the phase diagram."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps, rc_context
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulator.figures.run import BLUE, GREY, LABELS, ORANGE, STYLE, saved
from simulator.sweeps.comparison import Comparison
from simulator.sweeps.plan import label
from simulator.sweeps.sweep import Sweep

#: More lines than this in one picture cannot be told apart.
_MOST_LINES = 8
_AXES = {"time": "simulated time (s)", "communications": "communications (messages sent)"}
_SIDES = ((BLUE, "-"), (ORANGE, "--"))
#: 0.01 and 1e-05 rather than mathematics, which the style leaves unparsed.
_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def draw_sweep(sweep: Sweep, folder: Path) -> None:
    """Curves of every combination, and a heat map where two keys were swept."""
    keys = list(sweep.axes)
    metric = _metric(sweep)
    if metric is None:
        return
    with rc_context(STYLE):
        lines = len(sweep.axes[keys[0]]) if keys else 1
        if len(keys) <= 2 and lines <= _MOST_LINES:
            panels = sweep.axes[keys[1]] if len(keys) == 2 else [None]
            size = (9.0, 0.5 + 2.7 * len(panels))
            with saved(folder / "curves.png", size) as figure:
                _curve_panels(figure, sweep, metric, keys)
        if len(keys) == 2:
            timed = sweep.summary["time_to_target"].notna().any()
            with saved(folder / "heat_map.png", _map_size(sweep.axes, keys)) as figure:
                _heat_map(figure, sweep, "time_to_target" if timed else metric, keys)


def draw_comparison(comparison: Comparison, folder: Path) -> None:
    """Both sides' curves; over one swept key the speed-up, over two the phase diagram."""
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    with rc_context(STYLE):
        metric = _metric(comparison)
        if not keys and metric is not None:
            with saved(folder / "comparison.png", (9.0, 3.6)) as figure:
                _both_sides(figure, comparison, metric)
        elif len(keys) == 1:
            with saved(folder / "speedup.png", (5.4, 3.6)) as figure:
                _speedup_line(figure, comparison, keys[0])
        elif len(keys) == 2:
            with saved(folder / "phase_diagram.png", _map_size(comparison.axes, keys)) as figure:
                _phase_diagram(figure, comparison, keys)


def _metric(sweep: Sweep) -> str | None:
    """The metric to show: the target's, or the first that the runs have."""
    wanted = [*sweep.runs["target"].dropna().unique(), "accuracy", "l2_error", "distance"]
    return next((name for name in wanted if name in sweep.curves), None)


# --- curves -------------------------------------------------------------------------------------
def _curve_panels(figure: Figure, sweep: Sweep, metric: str, keys: list[str]) -> None:
    """A row of two panels for each value of the second key, a line for each of the first."""
    rows = sweep.axes[keys[1]] if len(keys) == 2 else [None]
    lines = sweep.axes[keys[0]] if keys else [None]
    colours = colormaps["viridis"](np.linspace(0.0, 0.85, len(lines)))
    axes = figure.subplots(len(rows), 2, squeeze=False, sharex="col", sharey=True)
    for row, (left, right) in zip(rows, axes, strict=True):
        for axis, x in ((left, "time"), (right, "communications")):
            for value, colour in zip(lines, colours, strict=True):
                chosen = {keys[0]: value} if keys else {}
                chosen |= {keys[1]: row} if len(keys) == 2 else {}
                curve = _select(sweep.curves, chosen | {"axis": x})
                _band(axis, curve, metric, colour, "-", str(label(value)) if keys else "")
            _scale(axis, sweep.curves, metric)
        left.set_ylabel(LABELS.get(metric, metric))
        if len(keys) == 2:
            left.set_title(f"{keys[1]} = {label(row)}", fontsize=8, loc="left")
    for axis, text in zip(axes[-1], _AXES.values(), strict=True):
        axis.set_xlabel(text)
    if keys:
        axes[0, 1].legend(title=keys[0], fontsize=7.5, title_fontsize=7.5)
    _caption(figure, sweep)


def _both_sides(figure: Figure, comparison: Comparison, metric: str) -> None:
    """Error against simulated time and against communications, a colour a side."""
    key, values = comparison.vary
    axes = figure.subplots(1, 2, sharey=True)
    levels = comparison.runs["level"].dropna().unique()
    for axis, (x, text) in zip(axes, _AXES.items(), strict=True):
        for value, (colour, style) in zip(values, _SIDES, strict=True):
            curve = _select(comparison.curves, {key: value, "axis": x})
            _band(axis, curve, metric, colour, style, f"{key.split('.')[-1]}: {label(value)}")
        if comparison.runs["target"].eq(metric).any() and len(levels):
            what = "target" if len(levels) == 1 else "target (mean over seeds)"
            axis.axhline(float(np.mean(levels)), color=GREY, linestyle=":", label=what)
        _scale(axis, comparison.curves, metric)
        if _needs_log(comparison, x):
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(_PLAIN)
        else:
            axis.locator_params(axis="x", nbins=6)
        axis.set_xlabel(text)
    axes[0].set_ylabel(LABELS.get(metric, metric))
    axes[1].legend(fontsize=7.5)
    _caption(figure, comparison, speedup_text(comparison.speedup.iloc[0], comparison.vary))


def _needs_log(comparison: Comparison, x: str) -> bool:
    """Do the two sides end more than ten times apart, so that one would be a needle?"""
    key, values = comparison.vary
    ends = [_select(comparison.curves, {key: value, "axis": x})["x"].max() for value in values]
    return bool(min(ends) > 0 and max(ends) > 10 * min(ends))


def _band(axis: Any, curve: pd.DataFrame, metric: str, colour: Any, style: str, text: str) -> None:
    if curve.empty:
        return
    x, middle = curve["x"].to_numpy(), curve[metric].to_numpy()
    axis.step(x, middle, where="post", color=colour, linestyle=style, label=text or None)
    low, high = curve[f"{metric}_low"].to_numpy(), curve[f"{metric}_high"].to_numpy()
    if np.isfinite(low).all():
        if _positive(middle):
            low = np.maximum(low, middle.min() / 10)  # a logarithmic axis has no room below 0
        axis.fill_between(x, low, high, step="post", color=colour, alpha=0.18, linewidth=0)


def _positive(values: np.ndarray) -> bool:
    return bool(np.nanmin(values) > 0)


def _scale(axis: Any, curves: pd.DataFrame, metric: str) -> None:
    """A logarithmic axis for errors, as far down as the means go: some bands end below 0."""
    values = curves[metric].to_numpy()
    if metric != "accuracy" and _positive(values):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(_PLAIN)
        axis.set_ylim(bottom=0.5 * np.nanmin(values))


def _select(table: pd.DataFrame, values: dict[str, Any]) -> pd.DataFrame:
    for key, value in values.items():
        table = table[table[key] == label(value)]
    return table


# --- maps ---------------------------------------------------------------------------------------
def _map_size(axes: dict[str, list[Any]], keys: list[str]) -> tuple[float, float]:
    return 2.8 + 0.75 * len(axes[keys[0]]), 1.6 + 0.55 * len(axes[keys[1]])


def _heat_map(figure: Figure, sweep: Sweep, measure: str, keys: list[str]) -> None:
    """The mean over seeds, the first key along x and the second along y."""
    values = _matrix(sweep.summary, measure, sweep.axes, keys)
    late = _matrix(sweep.summary, "censored", sweep.axes, keys)
    finite = values[np.isfinite(values)]
    wide = len(finite) and finite.min() > 0 and finite.max() > 10 * finite.min()
    norm = LogNorm() if wide else Normalize()
    axis = figure.subplots()
    image = axis.imshow(values, origin="lower", aspect="auto", cmap="cividis", norm=norm)
    _ticks(axis, sweep.axes, keys)
    for row, column, value in _cells(values):
        bound = "≥ " if measure == "time_to_target" and late[row, column] else ""
        _write(axis, image, row, column, value, bound)
    text = "time to target (s)" if measure == "time_to_target" else LABELS.get(measure, measure)
    figure.colorbar(image, ax=axis).set_label(text)
    _caption(figure, sweep, f"mean over {sweep.runs['seed'].nunique()} seeds")


def _phase_diagram(figure: Figure, comparison: Comparison, keys: list[str]) -> None:
    """The speed-up on a diverging logarithmic scale, with the line of equal time."""
    values = _matrix(comparison.speedup, "speedup", comparison.axes, keys)
    bounds = _matrix(comparison.speedup, "bound", comparison.axes, keys, dtype=object)
    finite = values[np.isfinite(values) & (values > 0)]
    reach = max(10.0, float(np.exp(np.abs(np.log(finite)).max()))) if len(finite) else 10.0
    axis = figure.subplots()
    image = axis.imshow(
        values,
        origin="lower",
        aspect="auto",
        cmap="RdBu",
        norm=LogNorm(vmin=1 / reach, vmax=reach),
    )
    _ticks(axis, comparison.axes, keys)
    for row, column, value in _cells(values):
        bound = bounds[row, column]
        _write(axis, image, row, column, value, "" if bound == "=" else f"{bound} ")
    if min(values.shape) > 1 and np.isfinite(values).all() and values.min() < 1 < values.max():
        axis.contour(np.log(values), levels=[0.0], colors="black", linewidths=1.6)
    first, second = (label(value) for value in comparison.vary[1])
    bar = figure.colorbar(image, ax=axis)
    bar.ax.yaxis.set_major_locator(LogLocator(base=10))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    bar.ax.yaxis.minorticks_off()
    bar.set_label(f"speed-up: time of {second} / time of {first}")
    what = f"blue: {first} is faster; red: {second}; black line: equal time"
    _caption(figure, comparison, what)


def _speedup_line(figure: Figure, comparison: Comparison, key: str) -> None:
    """The speed-up with its interval, over one swept key."""
    table = comparison.speedup
    x = np.arange(len(table))
    axis = figure.subplots()
    middle = table["speedup"].to_numpy()
    axis.plot(x, middle, "o-", color=BLUE)
    if np.isfinite(table["low"]).all():
        axis.fill_between(x, table["low"], table["high"], color=BLUE, alpha=0.18, linewidth=0)
    for position, value, bound in zip(x, middle, table["bound"], strict=True):
        text = "" if bound == "=" else f"{bound} "
        axis.annotate(
            f"{text}{value:.3g}", (position, value), (0, 6), textcoords="offset points", fontsize=8
        )
    axis.axhline(1.0, color=GREY, linestyle=":")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(_PLAIN)
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_xticks(x, [str(label(value)) for value in comparison.axes[key]])
    axis.set_xlabel(key)
    first, second = (label(value) for value in comparison.vary[1])
    axis.set_ylabel(f"time of {second} / time of {first}")
    _caption(figure, comparison)


def _matrix(
    table: pd.DataFrame,
    column: str,
    axes: dict[str, list[Any]],
    keys: list[str],
    dtype: Any = float,
) -> np.ndarray:
    """A column of a table as (values of the second key, values of the first key)."""
    shape = len(axes[keys[0]]), len(axes[keys[1]])
    return table[column].to_numpy(dtype=dtype).reshape(shape).T


def _cells(values: np.ndarray) -> Iterator[tuple[int, int, float]]:
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            yield row, column, float(value)


def _write(axis: Any, image: Any, row: int, column: int, value: float, bound: str) -> None:
    """A cell's number, black on light colours and white on dark ones."""
    red, green, blue, _ = image.cmap(image.norm(value))
    light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    text = f"{bound}{value:,.0f}" if abs(value) >= 100 else f"{bound}{value:.3g}"
    colour = "black" if light else "white"
    halo = [withStroke(linewidth=2.5, foreground=(red, green, blue))]
    axis.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=7.5,
        color=colour,
        path_effects=halo,
        zorder=4,
    )


def _ticks(axis: Any, axes: dict[str, list[Any]], keys: list[str]) -> None:
    axis.set_xticks(range(len(axes[keys[0]])), [str(label(v)) for v in axes[keys[0]]])
    axis.set_yticks(range(len(axes[keys[1]])), [str(label(v)) for v in axes[keys[1]]])
    axis.set_xlabel(keys[0])
    axis.set_ylabel(keys[1])
    axis.grid(visible=False)


def speedup_text(row: pd.Series[Any], vary: tuple[str, list[Any]]) -> str:
    """``speed-up of async over sync: ≥ 12.3 (95 %: 10.1 … 15.0), 10 pairs``."""
    first, second = (label(value) for value in vary[1])
    if row["bound"] == "none":
        return f"no pair of {first} and {second} reached the target"
    bound = "" if row["bound"] == "=" else f"{row['bound']} "
    interval = ""
    if np.isfinite(row["low"]):
        interval = f" (95 %: {row['low']:.3g} … {row['high']:.3g})"
    used = f"{row['used']} pair{'' if row['used'] == 1 else 's'}"
    value = f"{bound}{row['speedup']:.3g}{interval}"
    return f"speed-up of {first} over {second}: {value}, {used}"


def _caption(figure: Figure, sweep: Sweep, more: str = "") -> None:
    seeds = sweep.runs["seed"].nunique()
    name = sweep.folder.name.rsplit("-", 1)[0]
    shown = f"mean and 95 % interval over {seeds} seeds" if seeds > 1 else "one seed"
    figure.suptitle(f"{name}: {more or shown}", fontsize=9)
