"""What tables are made of, means with intervals and levels reached, and how their lines look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from simulator.figures.style import BLUE, GREEN, GREY, ORANGE
from simulator.sweeps.tables import mean_interval


def summary(run: Any) -> dict[str, Any]:
    """The final figures of a finished run."""
    found: dict[str, Any] = run.store.manifest(run.place)["summary"]
    return found


def trace(run: Any) -> pd.DataFrame:
    """The samples of a finished run."""
    found: pd.DataFrame = run.store.trace(run.place)
    return found


def _named(name: Any, found: Iterable[Any]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(float, found), strict=True))


def with_interval(name: Any, values: Any) -> dict[str, float]:
    """Mean and 95 % interval of a column, under three names."""
    return _named(name, mean_interval(values))


def intervals(table: pd.DataFrame) -> dict[str, float]:
    """The same of all columns of a table."""
    return {key: value for name in table for key, value in with_interval(name, table[name]).items()}


def curve(name: str, values: Any, *, logs: bool = False, **columns: Any) -> pd.DataFrame:
    """Means (of logarithms: geometric) and intervals of several curves, a row a point."""
    stack = np.stack(values)
    found: Any = mean_interval(np.log(stack) if logs else stack)
    mean, low, high = np.exp(found) if logs else found
    return pd.DataFrame({**columns, name: mean, f"{name}_low": low, f"{name}_high": high})


def geometric(name: str, values: Any) -> dict[str, float]:
    """Geometric mean of positive numbers and its 95 % interval, under three names."""
    with np.errstate(invalid="ignore"):
        return _named(name, np.exp(mean_interval(np.log(values))))


def reached(
    samples: pd.DataFrame,
    metric: str,
    level: float,
    for_good: bool = False,
    axis: str = "communications",
) -> float:
    """Communications (or time) at the first sample whose metric is at least the level, or NaN.

    ``for_good``: the first from which on all samples are.
    """
    there = (samples[metric] >= level).to_numpy()
    if for_good:
        there = np.logical_and.accumulate(there[::-1])[::-1]
    return float(samples[axis].iloc[there.argmax()]) if there.any() else float("nan")


def slope(x: Any, y: Any) -> dict[str, float]:
    """Slope of a straight line, and its 95 % interval; unknown where all x are the same."""
    if len(set(x)) < 2:
        return dict.fromkeys(("slope", "slope_low", "slope_high"), float("nan"))
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr) if len(x) > 2 else float("nan")
    return {"slope": fit.slope, "slope_low": fit.slope - half, "slope_high": fit.slope + half}


# --- figures ------------------------------------------------------------------------------------
#: How each method looks in every figure: colour, line, marker; apart also in black and white.
LOOKS: dict[str, dict[str, Any]] = {
    "solitary": {"color": GREY, "linestyle": ":", "marker": "v"},
    "consensus": {"color": "#999999", "linestyle": (0, (1, 1, 4, 1)), "marker": "x"},
    "mp": {"color": ORANGE, "linestyle": "--", "marker": "s"},
    "cl": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "sync": {"color": GREEN, "linestyle": (0, (5, 1, 1, 1)), "marker": "^"},
    "warm": {"color": "#8E6BBF", "linestyle": (0, (1, 1)), "marker": "D"},
}


def line(axis: Any, table: pd.DataFrame, x: str, name: str, look: str, label: str) -> None:
    """A line through means, with bars for their 95 % intervals."""
    low, high = table[f"{name}_low"], table[f"{name}_high"]
    spread = np.vstack([table[name] - low, high - table[name]])
    axis.errorbar(
        table[x], table[name], spread, label=label, markersize=4, capsize=2, **LOOKS[look]
    )


def method_lines(figure: Figure, table: pd.DataFrame, x: str, texts: Mapping[str, str]) -> Any:
    """A panel with the accuracy of each method, and the legend above it."""
    axis = figure.subplots()
    for name, text in texts.items():
        line(axis, table, x, name, name, text)
    axis.set_ylabel("mean test accuracy")
    figure.legend(loc="outside upper center", ncols=3 if len(texts) == 3 else 2, fontsize=8)
    return axis


def band(axis: Any, x: Any, table: pd.DataFrame, name: str, colour: str, **style: Any) -> None:
    """The 95 % intervals of a line without bars."""
    low, high = table[f"{name}_low"], table[f"{name}_high"]
    axis.fill_between(x, low, high, color=colour, **{"alpha": 0.2, "linewidth": 0, **style})
