"""Equal budgets: what each side of a comparison has after as many messages, bytes or seconds.

A budget is the least that any run of any side has spent at its end, so that every run has spent it.
Sides that send nothing have no part in it; their models are the same at any budget.  Metrics are
step functions: a run has the value of its last sample not after the budget.

Runs with the same seed are paired: ``ratio`` is the geometric mean of a side's values over the
first side's, with a Student t interval on the logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from simulator.sweeps.plan import Plan, common_metrics
from simulator.sweeps.request import label, side_names, tabled
from simulator.sweeps.tables import Trace, geometric_mean, interval, last_values

#: What may be equal.
BUDGETS = ("communications", "bytes", "time")
_COLUMNS = ("equal", "budget", "side", "metric", "runs", "mean", "low", "high")
_RATIOS = ("ratio", "ratio_low", "ratio_high")


def equal_in_cell(
    plan: Plan, cell: Sequence[int], traces: Sequence[Sequence[Trace]]
) -> list[dict[str, Any]]:
    """One row a budget, side and metric that all sides of a cell have."""
    assert plan.request.compared is not None
    key, values = plan.request.compared
    firsts = [plan.first(number) for number in cell]
    swept = {k: tabled(v) for k, v in firsts[0].values.items() if k != key}
    sides = dict(zip(side_names(values).values(), traces, strict=True))
    every = [trace for own in traces for trace in own if trace is not None]
    kinds = common_metrics([run.scenario for run in firsts])
    metrics = [kind for kind in kinds if all(kind in trace for trace in every)]
    return [{**swept, **row} for row in equal_rows(sides, metrics)]


def equal_table(plan: Plan, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of all cells."""
    assert plan.request.compared is not None
    keys = [name for name in plan.axes if name != plan.request.compared[0]]
    return pd.DataFrame(rows, columns=[*keys, *_COLUMNS, *_RATIOS])


def equal_rows(sides: Mapping[Any, Sequence[Trace]], metrics: list[str]) -> list[dict[str, Any]]:
    """The rows of one combination; each side's traces are in the order of their seeds."""
    every = [trace for traces in sides.values() for trace in traces if trace is not None]
    ends = {axis: [float(trace[axis].iloc[-1]) for trace in every] for axis in BUDGETS}
    rows = []
    for axis in BUDGETS:
        spent = [end for end in ends[axis] if end > 0]
        if not spent:
            continue
        budget = min(spent)
        first: np.ndarray | None = None
        for side, traces in sides.items():
            found = np.array([_at(trace, axis, budget, metrics) for trace in traces])
            first = found if first is None else first
            for number, metric in enumerate(metrics):
                own, base = found[:, number], first[:, number]
                row = {"equal": axis, "budget": budget, "side": label(side), "metric": metric}
                rows.append(row | _mean(metric, own) | _ratio(own, base))
    return rows


def _at(trace: Trace, axis: str, budget: float, metrics: list[str]) -> np.ndarray:
    """The metrics of the last sample not after the budget."""
    if trace is None:
        return np.full(len(metrics), np.nan)
    return last_values(trace, axis, np.array([budget]), metrics)[0].astype(float)


def _mean(metric: str, values: np.ndarray) -> dict[str, Any]:
    done = values[~np.isnan(values)]
    mean, low, high = map(float, interval(done, [metric])) if len(done) else 3 * (np.nan,)
    return {"runs": len(done), "mean": mean, "low": low, "high": high}


def _ratio(values: np.ndarray, base: np.ndarray) -> dict[str, float]:
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = values / base
    return dict(zip(_RATIOS, geometric_mean(quotients[~np.isnan(quotients)]), strict=True))
