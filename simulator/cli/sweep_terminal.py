"""What people see of a sweep in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from simulator.cli.terminal import Column, fitted, number, terminal
from simulator.runs.result import TELLING
from simulator.store.store import Store
from simulator.sweeps.comparison import result_text
from simulator.sweeps.plan import Plan
from simulator.sweeps.request import label, side_names, tabled
from simulator.sweeps.sweep import Comparison, Frontier, Sweep
from simulator.sweeps.tables import FEWEST, Computed
from simulator.theory.metrics import METRICS

_HEADINGS = {
    "time_to_target": "time to target (s)",
    "communications_to_target": "communications to target",
    "bytes_to_target": "bytes to target",
    "communications": "communications",
    "bytes": "bytes",
    "l2_error": "final L2 error",
    "accuracy": "final accuracy",
    "test_error": "final test error",
    "distance": "final distance",
}
#: What may be equal, in words.
_EQUAL = {"communications": "messages", "bytes": "bytes", "time": "seconds"}
#: What a table leaves out where it has all of the above to show.
_LESS = ("objective", "gap", "staleness")
_MOST_ROWS = 40


def list_runs(plan: Plan, store: Store) -> None:
    """``--dry-run``: one line a run."""
    console = Console(highlight=False, soft_wrap=True)
    stored, folders = 0, dict[Path, None]()
    for run, full_hash in zip(plan.runs, plan.hashes, strict=True):
        folder = store.place(run.scenario.name, full_hash)
        there = store.has(folder)
        shared = folder in folders
        folders[folder] = None
        stored += there and not shared
        values = [f"{key}={label(value)}" for key, value in run.values.items()]
        text = "  ".join([*values, f"seed={run.scenario.seed}", str(folder)])
        news = "  (the same run)" if shared else "  (already computed)" if there else ""
        console.print(escape(text + news))
    console.print(f"{len(folders)} runs, {stored} of them already computed")


def show_any(found: Sweep, computed: Sequence[Computed] = ()) -> None:
    """The closing summary of whatever it is, just computed or read from its folder."""
    console = terminal()
    if isinstance(found, Frontier):
        _print_frontier(console, found)
    else:
        _print_summary(console, found)
    if isinstance(found, Comparison):
        _print_comparison(console, found)
    _close(console, found, computed)


def _print_comparison(console: Console, comparison: Comparison) -> None:
    """The paired speed-ups, and what sides have at equal budgets."""
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    for _, row in comparison.speedup.iterrows():
        where = ", ".join(f"{key}={_as_given(comparison, key, row[key])}" for key in keys)
        text = result_text(row)
        left_out = [
            f"{row[name]} pair{'' if row[name] == 1 else 's'} left out: {why}"
            for name, why in (("censored", "neither reached the target"), ("failed", "failed"))
            if row[name]
        ]
        console.print(escape("; ".join([f"{where}: {text}" if where else text, *left_out])))
    _print_at_equal(console, comparison, keys)
    if comparison.runs["target_checked"].eq("at samples").any():
        console.print("note: the target is checked at samples; times are no finer than those")


def _print_at_equal(console: Console, comparison: Comparison, keys: list[str]) -> None:
    """What sides have at equal budgets; where modes are compared, the ratios say enough."""
    table = comparison.at_equal
    if table.empty or comparison.vary[0] == "algorithm.mode":
        return
    target = comparison.runs["target"].dropna()
    wanted = [*target.unique(), *TELLING, *table["metric"]]
    metric = next(name for name in wanted if (table["metric"] == name).any())
    shown = table[table["metric"] == metric]
    first = shown[shown["equal"] == shown["equal"].iloc[0]]
    columns = [
        Column(key, [_as_given(comparison, key, value) for value in first[key]]) for key in keys
    ]
    columns.append(Column("side", [str(side) for side in first["side"]]))
    for what, own in shown.groupby("equal", sort=False):
        budgets = [number(budget, 3) for budget in own["budget"]]
        same = len(set(budgets)) == 1
        cells = [
            _interval(row["mean"], row["low"], row["high"]) + ("" if same else f" at {budget}")
            for budget, (_, row) in zip(budgets, own.iterrows(), strict=True)
        ]
        heading = f"after {budgets[0]} {_EQUAL[str(what)]}" if same else _EQUAL[str(what)]
        columns.append(Column(heading, cells))
    console.print(f"{metric.replace('_', ' ')} at equal budgets (the least that any run spent):")
    for part in fitted(columns, console.width):
        console.print(part)


def _print_frontier(console: Console, frontier: Frontier) -> None:
    """What every value costs, and what sides need with as many messages."""
    points = frontier.points
    keys = [name for name in frontier.axes if name not in ("knob", "value")] + ["given"]
    rows = [row for _, row in points.iterrows()]
    columns = [
        Column(
            "value" if name == "given" else name,
            [_as_given(frontier, name, row[name]) for row in rows],
        )
        for name in keys
    ]
    columns += [
        Column(
            f"{name} to target{' (s)' if name == 'time' else ''}",
            [_with_interval(row, name) for row in rows],
        )
        for name in ("time", "communications", "bytes")
    ]
    columns.append(Column("runs", [_runs(row) for row in rows]))
    for table in fitted(columns, console.width):
        console.print(table)
    means = "geometric means (95 % intervals) over seeds; ≥: some did not get there"
    _print_means(console, points, means)
    _print_equal_messages(console, frontier)


def _print_equal_messages(console: Console, frontier: Frontier) -> None:
    """What each side needs with the messages that the dearest of them needs at its cheapest."""
    table = frontier.equal_messages
    if table.empty:
        return
    keys = [name for name in frontier.axes if name in table and name not in ("knob", "value")]
    rows = []
    for _, own in table.groupby(keys, sort=False) if keys else [("", table)]:
        rows += [row for _, row in own[own["budget"] == own["budget"].max()].iterrows()]
    columns = [Column(key, [_as_given(frontier, key, row[key]) for row in rows]) for key in keys]
    columns += [
        Column("messages", [number(row["budget"], 3) for row in rows]),
        Column("side", [str(row["side"]) for row in rows]),
        Column("time (s)", [_interval(row["time"], row["low"], row["high"]) for row in rows]),
        Column(
            "ratio to the first side",
            [_interval(row["ratio"], row["ratio_low"], row["ratio_high"]) for row in rows],
        ),
    ]
    console.print("at equal messages, as few as all sides can do with, along their frontiers:")
    for part in fitted(columns, console.width):
        console.print(part)


def _with_interval(row: pd.Series[Any], name: str) -> str:
    """``1.23 (1.10 … 1.35)``; a bound has no interval."""
    if row["censored"]:
        return f"≥ {number(row[name], 3)}"
    return _interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _print_summary(console: Console, sweep: Sweep) -> None:
    """Means and their 95 % intervals; ≥ where some runs did not reach their target."""
    summary = sweep.summary
    keys = [*sweep.axes, *(["tuned"] if "tuned" in summary else [])]
    rows = [row for _, row in summary.head(_MOST_ROWS).iterrows()]
    columns = [Column(key, [_as_given(sweep, key, row[key]) for row in rows]) for key in keys]
    timed = summary["time_to_target"].notna().any()
    # Distances and objectives say less than errors, where there are any.
    more = [name for name in sweep.metrics if name not in (*_HEADINGS, *_LESS)]
    costs = [name for name in _HEADINGS if name not in METRICS]
    known = [*costs, *(name for name in _HEADINGS if name in sweep.metrics), *more]
    names = [name for name in known if name in summary and summary[name].notna().any()]
    names = [name for name in names if not (timed and name in ("communications", "bytes"))]
    columns += [
        Column(_HEADINGS.get(name, f"final {name}"), [_cell(row, name) for row in rows])
        for name in names
    ]
    columns.append(Column("runs", [_runs(row) for row in rows]))
    for table in fitted(columns, console.width):
        console.print(table)
    costs_too = "; of costs to target geometric ones" if timed else ""
    _print_means(console, summary, f"means (95 % intervals) over seeds{costs_too}")
    if len(summary) > _MOST_ROWS:
        console.print(f"… and {len(summary) - _MOST_ROWS} more in summary.csv")


def _print_means(console: Console, table: pd.DataFrame, text: str) -> None:
    """What the table shows, if runs are enough for intervals."""
    enough = (table["runs"] - table["failed"]).max() >= FEWEST
    lacking = f"no intervals: they need {FEWEST} runs each at least (--seeds)"
    console.print(text if enough else lacking)


def _runs(row: pd.Series[Any]) -> str:
    bad = [f"{row[word]:.0f} {word}" for word in ("failed", "censored") if row[word]]
    return ", ".join([f"{row['runs']:.0f}", *bad])


def _as_given(sweep: Sweep, key: str, value: Any) -> str:
    """A value of a table as the user gave it: ``10 ms`` for 0.01."""
    if pd.isna(value):
        return ""
    values = sweep.axes.get(key, [])
    given = {tabled(each): label(each) for each in values}
    if isinstance(sweep, Comparison) and key == sweep.vary[0]:
        given |= {text: name for text, name in side_names(values).items() if text != name}
    return str(given.get(value, value))


def _cell(row: pd.Series[Any], name: str) -> str:
    if np.isposinf(row[name]):
        return "never"
    if not np.isfinite(row[name]):
        return ""
    if row["censored"] and name.endswith("_to_target"):
        return f"≥ {number(row[name], 3)}"
    return _interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _interval(value: float, low: float, high: float) -> str:
    """``8.84 (2.1 … 37)``, where there is an interval; narrow ones need the mean's digits."""
    if not np.isfinite(high - low):
        return number(value)
    narrow = high - low < abs(value) / 5
    ends = (number(end, 3 if narrow or abs(end) >= 100 else 2) for end in (low, high))
    return f"{number(value, 3)} ({' … '.join(ends)})"


def _close(console: Console, sweep: Sweep, computed: Sequence[Computed]) -> None:
    for note in sweep.notes:
        console.print(escape(f"note: {note}"))
    failed = sweep.runs[sweep.runs["status"] == "failed"]
    for _, row in failed.iterrows():
        values = ", ".join(f"{key}={row[key]}" for key in [*sweep.axes, "seed"])
        console.print(f"[red]failed:[/red] {escape(values)}: {escape(row['reason'])}")
    if not computed:
        console.print(f"runs:     {sweep.runs['folder'].nunique()}")
    else:
        total = sum(part.plan.distinct for part in computed)
        reused, lost = (
            sum(getattr(part, name) for part in computed) for name in ("reused", "lost")
        )
        news = f"{total - reused - lost} computed, {reused} already there, {lost} failed"
        tuned = f", {computed[1].plan.distinct} of them for tuning" if len(computed) > 1 else ""
        console.print(f"runs:     {total}{tuned} ({news})")
    console.print(f"files:    {escape(str(sweep.folder))}")
    for figure in sorted(Path(sweep.folder).iterdir()):
        if figure.suffix in (".png", ".pdf", ".svg"):
            console.print(f"          {escape(str(figure))}")
