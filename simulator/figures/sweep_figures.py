"""The pictures of sweeps: curves with bands and heat maps; and what those of comparisons share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from simulator.errors import ScenarioError
from simulator.figures.run_figures import AXES, SHOWN, curve_axes
from simulator.figures.style import (
    GREY,
    PLAIN,
    Look,
    draw,
    legend_below,
    line_looks,
    log_scale,
    shown_value,
    title,
    value_ticks,
    wrapped,
)
from simulator.sweeps.request import label, tabled
from simulator.sweeps.sweep import Sweep
from simulator.sweeps.tables import STAGES

#: More lines than this in one picture cannot be told apart.
_MOST_LINES = 8
_COSTS = {
    "time_to_target": "time to target (s)",
    "communications_to_target": "communications to target",
}


def sweep_pictures(sweep: Sweep, look: Look) -> Iterator[tuple[str, Figure]]:
    """Curves of every combination, and a heat map where two keys were swept."""
    keys = list(sweep.axes)
    metric = shown_metric(sweep, look)
    if metric is None:
        return
    lines = len(sweep.axes[keys[0]]) if keys else 1
    if len(keys) <= 2 and lines <= _MOST_LINES and metric in sweep.curves:
        panels = len(sweep.axes[keys[1]]) if len(keys) == 2 else 1
        rows = panels * (2 if look.narrow else 1)
        figure = look.picture(0.8 + (1.5 if look.narrow else 1.9) * rows)
        _curve_panels(figure, sweep, metric, keys, look)
        yield "curves", figure
    if len(keys) == 2:
        measure = look.metric or telling(sweep) or metric
        figure = look.picture(1.1 + 0.42 * len(sweep.axes[keys[1]]))
        _heat_map(figure, sweep, measure, keys, look)
        yield "heat_map", figure


draw_sweep = partial(draw, sweep_pictures)


def shown_metric(sweep: Sweep, look: Look) -> str | None:
    """The metric to show: the one asked for, the target's, or the first that the runs have."""
    if look.metric is not None:
        if look.metric not in sweep.summary:
            known = [*sweep.metrics, *_COSTS, "communications", "bytes", "simulated_time"]
            allowed = ", ".join(name for name in known if name in sweep.summary)
            raise ScenarioError(f"--metric {look.metric}: not in these runs; allowed: {allowed}")
        return look.metric
    wanted = [*sweep.runs["target"].dropna().unique(), *SHOWN, *sweep.metrics]
    return next((name for name in wanted if name in sweep.curves), None)


def telling(sweep: Sweep) -> str | None:
    """What a map should show: the time to a target, or what differs most against its noise.

    That is the variance between combinations over the mean variance of their own means.  Without
    several seeds nothing is known of the noise.
    """
    summary = sweep.summary
    if summary["time_to_target"].notna().any():
        return "time_to_target"
    found = {}
    for name in [name for name in SHOWN if name in summary] or sweep.metrics:
        if name not in summary or not np.isfinite(summary[f"{name}_low"]).all():
            continue
        middle = summary[name].to_numpy()
        noise = float(np.mean((summary[f"{name}_high"].to_numpy() - middle) ** 2))
        if noise > 0:
            found[name] = float(np.var(middle)) / noise
    return max(found, key=lambda name: found[name]) if found else None


# --- curves -------------------------------------------------------------------------------------
def _curve_panels(figure: Figure, sweep: Sweep, metric: str, keys: list[str], look: Look) -> None:
    """Two panels for each value of the second key, a line for each of the first."""
    rows = sweep.axes[keys[1]] if len(keys) == 2 else [None]
    lines = sweep.axes[keys[0]] if keys else [None]
    panels = curve_axes(figure, len(rows), look, sharey=True)
    for row, axes in zip(rows, panels, strict=True):
        here = {keys[1]: row} if len(keys) == 2 else {}
        for axis, x in zip(axes, AXES, strict=True):
            scale(axis, sweep, metric)
            for value, (colour, style) in zip(lines, line_looks(lines), strict=True):
                chosen = {keys[0]: value} if keys else {}
                curve = select(sweep.curves, chosen | here | {"axis": x})
                text = look.side(keys[0], label(value)) if keys else ""
                band(axis, curve, metric, colour, style, text)
            stage_lines(axis, select(sweep.runs, here), metric)
        for axis in axes if look.narrow else axes[:1]:
            axis.set_ylabel(metric_words(sweep, metric, look))
        if len(keys) == 2:
            axes[0].set_title(f"{look.words(keys[1])}: {label(row)}", loc="left")
    legend_below(figure, panels[0][0], look.words(keys[0]) if keys else None)
    caption(figure, sweep)


def band(axis: Any, curve: pd.DataFrame, metric: str, colour: Any, style: Any, text: str) -> None:
    """A mean as a step function, with its interval.

    On a logarithmic axis, which has no room for what ends below 0, the lower half mirrors the
    upper one: the same factor below the mean as above it.
    """
    if curve.empty:
        return
    x, middle = curve["x"].to_numpy(), curve[metric].to_numpy()
    axis.step(x, middle, where="post", color=colour, linestyle=style, label=text or None)
    low, high = curve[f"{metric}_low"].to_numpy(), curve[f"{metric}_high"].to_numpy()
    if np.isfinite(low).all():
        if axis.get_yscale() == "log":
            low = middle**2 / high
        if metric == "accuracy":  # a share, however wide the interval of few seeds
            low, high = low.clip(0, 1), high.clip(0, 1)
        axis.fill_between(x, low, high, step="post", color=colour, alpha=0.18, linewidth=0)


def stage_lines(axis: Any, runs: pd.DataFrame, metric: str) -> None:
    """What solitary models and the optimum have, where that is the same for all runs of a seed."""
    for stage, style in zip(STAGES, (":", "--"), strict=True):
        name = f"{metric}_{stage}"
        if name not in runs or runs[name].isna().any():
            continue
        spread = runs.groupby("seed")[name].agg(lambda values: values.max() - values.min())
        level = float(runs[name].mean())
        if level > 0 and (spread <= 1e-9 * level).all():
            axis.axhline(level, color=GREY, linestyle=style, linewidth=1, label=stage)


def scale(axis: Any, sweep: Sweep, metric: str) -> None:
    """A logarithmic axis for errors, unless they span so little that it would have one number."""
    values = sweep.curves[metric].to_numpy(dtype=float)
    grows = sweep.metrics.get(metric, ("", False))[1]
    if not grows and np.nanmin(values) > 0 and np.nanmax(values) > 2 * np.nanmin(values):
        log_scale(axis)


def metric_words(sweep: Sweep, metric: str, look: Look) -> str:
    """A metric, or a cost, for an axis."""
    known = {kind: text for kind, (text, _) in sweep.metrics.items()}
    return look.metric_label(metric, {**_COSTS, **known})


def select(table: pd.DataFrame, values: dict[str, Any]) -> pd.DataFrame:
    """The rows with these values."""
    for key, value in values.items():
        table = table[table[key] == tabled(value)]
    return table


# --- maps ---------------------------------------------------------------------------------------
def _heat_map(figure: Figure, sweep: Sweep, measure: str, keys: list[str], look: Look) -> None:
    """The mean over seeds with its interval, the first key along x and the second along y."""
    parts = [f"{measure}{end}" for end in ("", "_low", "_high")]
    values, low, high = (matrix(sweep.summary, part, sweep.axes, keys) for part in parts)
    late = matrix(sweep.summary, "censored", sweep.axes, keys)
    finite = values[np.isfinite(values)]
    wide = len(finite) and finite.min() > 0 and finite.max() > 10 * finite.min()
    norm = LogNorm() if wide else Normalize()
    axis = figure.subplots()
    image = axis.imshow(values, origin="lower", aspect="auto", cmap="cividis", norm=norm)
    ticks(axis, sweep.axes, keys, look)
    timed = measure in _COSTS
    for row, column, value in cells(values):
        bound = "≥ " if timed and late[row, column] else ""
        ends = low[row, column], high[row, column]
        text = " … ".join(short(end, 2) for end in ends) if np.isfinite(ends).all() else ""
        write(axis, image, row, column, value, bound, interval=text)
    bar = figure.colorbar(image, ax=axis)
    bar.set_label(metric_words(sweep, measure, look))
    if wide:
        bar.ax.yaxis.set_major_formatter(PLAIN)
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    seeds = sweep.runs["seed"].nunique()
    kind = "geometric mean" if timed else "mean"
    caption(figure, sweep, f"{kind} and 95 % interval over {seeds} seeds" if seeds > 1 else "")


def matrix(
    table: pd.DataFrame,
    column: str,
    axes: dict[str, list[Any]],
    keys: list[str],
    dtype: Any = float,
) -> np.ndarray:
    """A column of a table as (values of the second key, values of the first key)."""
    shape = len(axes[keys[0]]), len(axes[keys[1]])
    return table[column].to_numpy(dtype=dtype).reshape(shape).T


def cells(values: np.ndarray) -> Iterator[tuple[int, int, float]]:
    """Row, column and value of each cell that has one."""
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            yield row, column, float(value)


def write(
    axis: Any,
    image: Any,
    row: int,
    column: int,
    value: float,
    bound: str,
    *,
    digits: int = 3,
    background: str | None = None,
    interval: str = "",
) -> None:
    """A cell's number and its interval, black on light colours and white on dark ones."""
    red, green, blue, _ = to_rgba(background or image.cmap(image.norm(value)))
    light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    colour = "black" if light else "white"
    place: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
    up = 0.16 if interval else 0
    axis.text(column, row + up, f"{bound}{short(value, digits)}", fontsize=7, **place)
    if interval:
        axis.text(column, row - 0.24, interval, fontsize=5, **place)


def short(value: float, digits: int = 3) -> str:
    """A number for a small place."""
    if abs(value) >= 1e6:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def ticks(axis: Any, axes: dict[str, list[Any]], keys: list[str], look: Look) -> None:
    """The swept values along both axes."""
    columns = axis.get_subplotspec().get_gridspec().ncols
    room = 0.7 * axis.get_figure().get_figwidth() / columns
    value_ticks(axis, [look.side(keys[0], shown(v)) for v in axes[keys[0]]], room)
    rows = [look.side(keys[1], shown(v)) for v in axes[keys[1]]]
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlabel(look.words(keys[0]))
    axis.set_ylabel(wrapped(look.words(keys[1]), 0.3 * len(rows) + 0.5))
    axis.grid(visible=False)


def shown(value: Any) -> str:
    """A value of a grid, as it was given."""
    return shown_value(label(value))


def caption(figure: Figure, sweep: Sweep, more: str = "") -> None:
    """The sweep's name, and what is shown."""
    seeds = sweep.runs["seed"].nunique()
    what = f"mean and 95 % interval over {seeds} seeds" if seeds > 1 else "one seed"
    title(figure, f"{sweep.name}: {more or what}")
