"""The pictures of sweeps: curves with bands and heat maps; and what those of comparisons share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from simulator.errors import ScenarioError
from simulator.figures.run_figures import curve_axes
from simulator.figures.style import (
    GREY,
    PLAIN,
    Look,
    legend_below,
    line_looks,
    log_scale,
    title,
    value_ticks,
    wrapped,
)
from simulator.runs.result import TELLING
from simulator.sweeps.request import label, side_names, tabled
from simulator.sweeps.sweep import Sweep
from simulator.sweeps.tables import STAGES

#: More lines than this in one picture cannot be told apart.
_MOST_LINES = 8
_COSTS = {
    "time_to_target": "time to target (s)",
    "communications_to_target": "communications to target",
    "bytes_to_target": "bytes to target",
}
#: A cell of a map that is not decided.
UNDECIDED = "#E6E6E6"


def sweep_pictures(sweep: Sweep, look: Look) -> Iterator[tuple[str, Figure]]:
    """Curves of every combination, and a heat map where two keys were swept."""
    keys = list(sweep.axes)
    metric = shown_metric(sweep, look)
    if metric is None:
        return
    lines = len(sweep.axes[keys[0]]) if keys else 1
    if len(keys) <= 2 and lines <= _MOST_LINES and metric in sweep.curves:
        by, beside = [*keys, None, None][:2]
        figure, _ = curves(sweep, metric, look, by, beside, ("time", "communications"))
        caption(figure, sweep)
        yield "curves", figure
    if len(keys) == 2:
        measure = look.metric or telling(sweep) or metric
        figure = look.picture(1.1 + 0.42 * len(sweep.axes[keys[1]]))
        _heat_map(figure, sweep, measure, keys, look)
        yield "heat_map", figure


def shown_metric(sweep: Sweep, look: Look) -> str | None:
    """The metric to show: the one asked for, the target's, or the first that the runs have."""
    if look.metric is not None:
        if look.metric not in sweep.summary:
            known = [*sweep.metrics, *_COSTS, "communications", "bytes", "simulated_time"]
            allowed = ", ".join(name for name in known if name in sweep.summary)
            raise ScenarioError(f"--metric {look.metric}: not in these runs; allowed: {allowed}")
        return look.metric
    wanted = [*sweep.runs["target"].dropna().unique(), *TELLING, *sweep.metrics]
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
    for name in [name for name in TELLING if name in summary] or sweep.metrics:
        if name not in summary or not np.isfinite(summary[f"{name}_low"]).all():
            continue
        middle = summary[name].to_numpy()
        noise = float(np.mean((summary[f"{name}_high"].to_numpy() - middle) ** 2))
        if noise > 0:
            found[name] = float(np.var(middle)) / noise
    return max(found, key=lambda name: found[name]) if found else None


# --- curves ---------------------------------------------------------------------------------------
def curves(
    sweep: Sweep,
    metric: str,
    look: Look,
    by: str | None,
    beside: str | None,
    columns: Sequence[str],
    spare: int = 0,
) -> tuple[Figure, Any]:
    """A line for each value of the key ``by``, a row of panels for each of the key ``beside``.

    There is a panel for each of the columns (of ``run_figures.AXES``), and spare ones, which stay
    empty; narrow figures have all of them one below the other.
    """
    rows: list[dict[str, Any]] = [{}]
    if beside is not None:
        rows = [{beside: value} for value in sweep.axes[beside]]
    stacked = len(rows) * (len(columns) + spare if look.narrow else 1)
    figure = look.picture(1.0 + (1.5 if look.narrow or beside else 2.0) * stacked)
    scales = {x: _x_scale(sweep.curves, x, by, beside) for x in columns}
    grid = curve_axes(figure, len(rows), look, scales, alike=True, spare=spare)
    for row, axes in zip(rows, grid, strict=True):
        chosen, runs = select(sweep.curves, row), select(sweep.runs, row)
        for axis, x in zip(axes, columns, strict=False):
            table = select(chosen, {"axis": x})
            _log_errors(axis, sweep, metric)
            _lines(axis, sweep, metric, table, by, look)
            _levels(axis, runs, metric)
            if scales[x] == "log":
                axis.set_xlim(left=table[table["x"] > 0].groupby(by)["x"].max().min() / 20)
            if look.narrow or axis is axes[0]:
                axis.set_ylabel(metric_words(sweep, metric, look))
        axes[0].set_title(place_words(row, look), loc="left")
    legend_below(figure, grid[0, 0], look.words(by) if by else None)
    return figure, grid


def place_words(values: dict[str, Any], look: Look) -> str:
    """Where in a grid a panel is: ``delay: 10 ms``; worlds have names."""
    return ", ".join(
        str(value) if key == "world" else f"{look.words(key)}: {look.side(key, label(value))}"
        for key, value in values.items()
    )


def _x_scale(table: pd.DataFrame, x: str, by: str | None, beside: str | None) -> str:
    """Logarithmic where lines of a panel end ten times apart, so that one would be a needle."""
    if by is None:
        return "linear"
    own = table[(table["axis"] == x) & (table["x"] > 0)]
    ends = own.pivot_table("x", beside or "axis", by, "max")
    return "log" if (ends.max(axis=1) > 10 * ends.min(axis=1)).any() else "linear"


def _log_errors(axis: Any, sweep: Sweep, metric: str) -> None:
    """A logarithmic axis for errors, unless they span so little that it would have one number."""
    values = sweep.curves[metric].to_numpy(dtype=float)
    grows = sweep.metrics.get(metric, ("", False))[1]
    if not grows and np.nanmin(values) > 0 and np.nanmax(values) > 2 * np.nanmin(values):
        log_scale(axis)


def _lines(
    axis: Any, sweep: Sweep, metric: str, table: pd.DataFrame, by: str | None, look: Look
) -> None:
    """A mean each as a step function, with its interval.

    On a logarithmic axis, which has no room for what ends below 0, the lower half mirrors the
    upper one: the same factor below the mean as above it.
    """
    values: list[Any] = sweep.axes[by] if by else [None]
    names = side_names(values)
    for value, (colour, style) in zip(values, line_looks(values), strict=True):
        curve = select(table, {by: value}) if by else table
        if curve.empty:
            continue
        text = look.side(by, names[label(value)]) if by else None
        x, middle = curve["x"].to_numpy(), curve[metric].to_numpy()
        axis.step(x, middle, where="post", color=colour, linestyle=style, label=text)
        low, high = curve[f"{metric}_low"].to_numpy(), curve[f"{metric}_high"].to_numpy()
        if not np.isfinite(low).all():
            continue
        if axis.get_yscale() == "log":
            low = middle**2 / high
        if metric == "accuracy":  # a share, however wide the interval of few seeds
            low, high = low.clip(0, 1), high.clip(0, 1)
        axis.fill_between(x, low, high, step="post", color=colour, alpha=0.18, linewidth=0)


def _levels(axis: Any, runs: pd.DataFrame, metric: str) -> None:
    """What solitary models and the optimum have, where all runs of a seed agree; the target."""
    for stage, style in zip(STAGES, (":", "--"), strict=True):
        name = f"{metric}_{stage}"
        if name not in runs or runs[name].isna().any():
            continue
        spread = runs.groupby("seed")[name].agg(np.ptp)
        level = float(runs[name].mean())
        if level > 0 and (spread <= 1e-9 * level).all():
            axis.axhline(level, color=GREY, linestyle=style, linewidth=1, label=stage)
    targets = runs.loc[runs["target"] == metric, "level"].dropna().unique()
    if len(targets):
        what = "target" if len(targets) == 1 else "target (mean over seeds)"
        axis.axhline(float(np.mean(targets)), color="black", linewidth=0.8, label=what, zorder=1)


def metric_words(sweep: Sweep, metric: str, look: Look) -> str:
    """A metric, or a cost, for an axis."""
    known = {kind: text for kind, (text, _) in sweep.metrics.items()}
    return look.metric_label(metric, {**_COSTS, **known})


def select(table: pd.DataFrame, values: dict[str, Any]) -> pd.DataFrame:
    """The rows with these values."""
    for key, value in values.items():
        table = table[table[key] == tabled(value)]
    return table


# --- maps -----------------------------------------------------------------------------------------
def _heat_map(figure: Figure, sweep: Sweep, measure: str, keys: list[str], look: Look) -> None:
    """The mean over seeds with its interval, the first key along x and the second along y."""
    table, timed = sweep.summary, measure in _COSTS
    values = table[measure].to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    wide = len(finite) and finite.min() > 0 and finite.max() > 10 * finite.min()
    cells, below = [], []
    for _, row in table.iterrows():
        value, low, high = (row[f"{measure}{end}"] for end in ("", "_low", "_high"))
        cells.append(f"{'≥ ' if timed and row['censored'] else ''}{short(value)}")
        interval = f"{short(low, 2)} … {short(high, 2)}"
        below.append(interval if np.isfinite([low, high]).all() else "")
    axis = figure.subplots()
    norm = LogNorm() if wide else Normalize()
    colours = {"cmap": "cividis", "norm": norm}
    image = value_map(axis, sweep.axes, keys, look, values, cells, below=below, **colours)
    bar = figure.colorbar(image, ax=axis)
    bar.set_label(metric_words(sweep, measure, look))
    if wide:
        bar.ax.yaxis.set_major_formatter(PLAIN)
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    caption(figure, sweep, geometric=timed)


def value_map(
    axis: Any,
    axes: dict[str, list[Any]],
    keys: list[str],
    look: Look,
    values: Any,
    texts: Sequence[str],
    *,
    grey: Any = False,
    below: Sequence[str] | None = None,
    **colours: Any,
) -> Any:
    """A cell for each row of a table: two keys by their values, coloured, with its text.

    Texts are black on light colours and white on dark ones; small ones may stand below them.
    """
    shape = len(axes[keys[0]]), len(axes[keys[1]])
    shown = np.ma.masked_array(values, np.broadcast_to(grey, len(values))).reshape(shape).T
    image = axis.imshow(shown, origin="lower", aspect="auto", **colours)
    for number, value in enumerate(values):
        if not np.isfinite(value):
            continue
        column, row = divmod(number, shape[1])
        hidden = np.ma.getmaskarray(shown)[row, column]
        red, green, blue = to_rgb(UNDECIDED if hidden else image.cmap(image.norm(value)))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
        place = {"ha": "center", "va": "center", "color": "black" if light else "white"}
        small = below[number] if below else ""
        axis.text(column, row + (0.16 if small else 0), texts[number], fontsize=7, **place)
        axis.text(column, row - 0.24, small, fontsize=5, **place)
    words = [[look.side(key, label(value)) for value in axes[key]] for key in keys]
    value_ticks(axis, words[0], 0.9 * look.room(axis.get_gridspec().ncols))
    axis.set_yticks(range(shape[1]), words[1])
    axis.set_xlabel(look.words(keys[0]))
    axis.set_ylabel(wrapped(look.words(keys[1]), 0.3 * shape[1] + 0.5))
    axis.grid(visible=False)
    return image


def short(value: float, digits: int = 3) -> str:
    """A number for a small place."""
    if abs(value) >= 1e6:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def caption(figure: Figure, sweep: Sweep, text: str = "", *, geometric: bool = False) -> None:
    """The sweep's name, and what is shown: the text, or what of how many seeds."""
    seeds = sweep.runs["seed"].nunique()
    mean = "geometric mean" if geometric else "mean"
    what = f"{mean} and 95 % interval over {seeds} seeds" if seeds > 1 else "one seed"
    title(figure, f"{sweep.name}: {text or what}")
