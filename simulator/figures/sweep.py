"""The pictures of sweeps: curves with bands and heat maps; and what those of comparisons share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps, rc_context
from matplotlib.colors import LogNorm, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from simulator.figures.run import LABELS, STYLE, saved
from simulator.sweeps.request import label
from simulator.sweeps.sweep import Sweep

#: More lines than this in one picture cannot be told apart.
_MOST_LINES = 8
AXES = {"time": "simulated time (s)", "communications": "communications (messages sent)"}
#: 0.01 and 1e-05 rather than mathematics, which the style leaves unparsed.
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
#: Keys in words and units.
_WORDS = {
    "clock.rate": "ticks of an agent per second",
    "network.drop": "share of messages lost",
    "network.latency.mean": "mean delay",
    "network.latency.sigma": "tail of the delays, σ of their logarithm",
    "network.latency.per_link.sigma": "spread of the links' delays, σ of their logarithm",
    "network.retransmit_after": "sent again after",
}


def in_words(key: str) -> str:
    """A swept key for an axis; a sweep file's own ``$name`` is in words already."""
    return _WORDS.get(key, key.removeprefix("$"))


def draw_sweep(sweep: Sweep, folder: Path) -> None:
    """Curves of every combination, and a heat map where two keys were swept."""
    keys = list(sweep.axes)
    metric = shown_metric(sweep)
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
            with saved(folder / "heat_map.png", map_size(sweep.axes, keys)) as figure:
                _heat_map(figure, sweep, "time_to_target" if timed else metric, keys)


def shown_metric(sweep: Sweep) -> str | None:
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
                curve = select(sweep.curves, chosen | {"axis": x})
                band(axis, curve, metric, colour, "-", str(label(value)) if keys else "")
            scale(axis, sweep.curves, metric)
        left.set_ylabel(LABELS.get(metric, metric))
        if len(keys) == 2:
            left.set_title(f"{in_words(keys[1])}: {label(row)}", fontsize=8, loc="left")
    for axis, text in zip(axes[-1], AXES.values(), strict=True):
        axis.set_xlabel(text)
    if keys:
        axes[0, 1].legend(title=in_words(keys[0]), fontsize=7.5, title_fontsize=7.5)
    caption(figure, sweep)


def band(axis: Any, curve: pd.DataFrame, metric: str, colour: Any, style: str, text: str) -> None:
    """A mean as a step function, with its interval."""
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


def scale(axis: Any, curves: pd.DataFrame, metric: str) -> None:
    """A logarithmic axis for errors, as far down as the means go: some bands end below 0."""
    values = curves[metric].to_numpy()
    if metric != "accuracy" and _positive(values):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(PLAIN)
        axis.set_ylim(bottom=0.5 * np.nanmin(values))


def select(table: pd.DataFrame, values: dict[str, Any]) -> pd.DataFrame:
    """The rows with these values."""
    for key, value in values.items():
        table = table[table[key] == label(value)]
    return table


# --- maps ---------------------------------------------------------------------------------------
def map_size(axes: dict[str, list[Any]], keys: list[str]) -> tuple[float, float]:
    """Width and height of a picture of a map."""
    return 2.8 + 0.75 * len(axes[keys[0]]), 1.6 + 0.55 * len(axes[keys[1]])


def _heat_map(figure: Figure, sweep: Sweep, measure: str, keys: list[str]) -> None:
    """The mean over seeds, the first key along x and the second along y."""
    values = matrix(sweep.summary, measure, sweep.axes, keys)
    late = matrix(sweep.summary, "censored", sweep.axes, keys)
    finite = values[np.isfinite(values)]
    wide = len(finite) and finite.min() > 0 and finite.max() > 10 * finite.min()
    norm = LogNorm() if wide else Normalize()
    axis = figure.subplots()
    image = axis.imshow(values, origin="lower", aspect="auto", cmap="cividis", norm=norm)
    ticks(axis, sweep.axes, keys)
    for row, column, value in cells(values):
        bound = "≥ " if measure == "time_to_target" and late[row, column] else ""
        write(axis, image, row, column, value, bound)
    text = "time to target (s)" if measure == "time_to_target" else LABELS.get(measure, measure)
    figure.colorbar(image, ax=axis).set_label(text)
    caption(figure, sweep, f"mean over {sweep.runs['seed'].nunique()} seeds")


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
    background: str | None = None,
) -> None:
    """A cell's number, black on light colours and white on dark ones."""
    red, green, blue, _ = to_rgba(background or image.cmap(image.norm(value)))
    light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    text = f"{bound}{value:,.0f}" if abs(value) >= 100 else f"{bound}{value:.3g}"
    axis.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=7.5,
        color="black" if light else "white",
    )


def ticks(axis: Any, axes: dict[str, list[Any]], keys: list[str]) -> None:
    """The swept values along both axes."""
    axis.set_xticks(range(len(axes[keys[0]])), [str(label(v)) for v in axes[keys[0]]])
    axis.set_yticks(range(len(axes[keys[1]])), [str(label(v)) for v in axes[keys[1]]])
    axis.set_xlabel(in_words(keys[0]))
    axis.set_ylabel(in_words(keys[1]))
    axis.grid(visible=False)


def caption(figure: Figure, sweep: Sweep, more: str = "") -> None:
    """The sweep's name, and what is shown."""
    seeds = sweep.runs["seed"].nunique()
    name = sweep.folder.name.rsplit("-", 1)[0]
    shown = f"mean and 95 % interval over {seeds} seeds" if seeds > 1 else "one seed"
    figure.suptitle(f"{name}: {more or shown}", fontsize=9)
