"""What tables are made of: finished work, means and their intervals, when levels are reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from simulator.sweeps.tables import mean_interval


def stored_table(tasks: Iterable[Any]) -> pd.DataFrame:
    """The tables of finished closed forms, one below the other."""
    return pd.concat([task.table() for task in tasks], ignore_index=True)


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
