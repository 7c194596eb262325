"""What people see of a sweep in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from simulator.store.store import Store
from simulator.sweeps.comparison import Comparison, costs_text, speedup_text
from simulator.sweeps.frontier import Frontier
from simulator.sweeps.plan import Plan
from simulator.sweeps.request import label
from simulator.sweeps.sweep import Computed, Sweep
from simulator.sweeps.work import Progress

_HEADINGS = {
    "time_to_target": "time to target (s)",
    "communications_to_target": "communications to target",
    "communications": "communications",
    "bytes": "bytes",
    "l2_error": "final L2 error",
    "accuracy": "final accuracy",
    "test_error": "final test error",
    "distance": "final distance",
}
_MOST_ROWS = 40


@contextmanager
def sweep_progress(name: str, total: int, visible: bool) -> Iterator[Progress | None]:
    """A line with the runs done, running and failed and the time left; nothing off a terminal."""
    if not (visible and sys.stderr.isatty()):
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(name), total=total, news="starting workers …")

        def show(done: int, running: int, failed: int) -> None:
            news = f"{done} of {total} done, {running} running, {failed} failed"
            bar.update(task, completed=done + failed, news=news)

        yield show


def list_runs(plan: Plan, store: Store) -> None:
    """``--dry-run``: one line a run."""
    console = Console(highlight=False, soft_wrap=True)
    stored, folders = 0, dict[Path, None]()
    for run in plan.runs:
        folder = store.folder(run.scenario)
        there = store.has(folder)
        shared = folder in folders
        folders[folder] = None
        stored += there and not shared
        values = [f"{key}={label(value)}" for key, value in run.values.items()]
        text = "  ".join([*values, f"seed={run.scenario.seed}", str(folder)])
        news = "  (the same run)" if shared else "  (already computed)" if there else ""
        console.print(escape(text + news))
    console.print(f"{len(folders)} runs, {stored} of them already computed")


def show_sweep(sweep: Sweep, computed: Computed) -> None:
    """The closing summary of a sweep."""
    console = _console()
    console.print(_summary(sweep))
    _close(console, sweep, computed)


def show_comparison(comparison: Comparison, computed: Computed) -> None:
    """The closing summary of a comparison: both sides, and the paired speed-up."""
    console = _console()
    console.print(_summary(comparison))
    keys = [key for key in comparison.axes if key != comparison.vary[0]]
    for _, row in comparison.speedup.iterrows():
        where = ", ".join(f"{key}={row[key]}" for key in keys)
        text = speedup_text(row)
        if row["bound"] != "none":
            text += f"; {costs_text(row)}"
        left_out = [
            f"{row[name]} pair{'' if row[name] == 1 else 's'} left out: {why}"
            for name, why in (("censored", "neither reached the target"), ("failed", "failed"))
            if row[name]
        ]
        console.print(escape("; ".join([f"{where}: {text}" if where else text, *left_out])))
    if comparison.runs["target_checked"].eq("at samples").any():
        console.print("note: the target is checked at samples; times are no finer than those")
    for note in comparison.notes:
        console.print(escape(f"note: {note}"))
    _close(console, comparison, computed)


def show_frontier(frontier: Frontier, computed: Computed) -> None:
    """The closing summary of a frontier: what every value costs."""
    console = _console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    points = frontier.points
    keys = [name for name in frontier.axes if name != "knob"]
    for name in keys:
        table.add_column(escape(name))
    costs = ("time", "communications", "bytes")
    for heading in ("time to target (s)", "communications to target", "bytes to target", "runs"):
        table.add_column(heading, justify="right")
    for _, row in points.iterrows():
        cells = [escape(str(row[name])) for name in keys]
        cells += [_with_interval(row, name) for name in costs]
        bad = [f"{row[word]} {word}" for word in ("failed", "censored") if row[word]]
        table.add_row(*cells, ", ".join([str(row["runs"]), *bad]))
    console.print(table)
    console.print("geometric means and 95 % intervals over seeds; ≥: some did not get there")
    _close(console, frontier, computed)


def _with_interval(row: pd.Series[Any], name: str) -> str:
    """``≥ 1.23 (1.10 … 1.35)``."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = f" ({_number(low)} … {_number(high)})" if np.isfinite(low) else ""
    return f"{'≥ ' if row['censored'] else ''}{_number(row[name])}{interval}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.3g}"


def _console() -> Console:
    """Off a terminal there is no width to keep to."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


def _summary(sweep: Sweep) -> Table:
    """Mean and half the 95 % interval; ≥ where some runs did not reach their target."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    summary = sweep.summary
    keys = [*sweep.axes, *(["tuned"] if "tuned" in summary else [])]
    for key in keys:
        table.add_column(escape(key))
    timed = summary["time_to_target"].notna().any()
    names = [name for name in _HEADINGS if name in summary and summary[name].notna().any()]
    names = [name for name in names if not (timed and name == "communications")]
    for name in names:
        table.add_column(_HEADINGS[name], justify="right")
    table.add_column("runs", justify="right")
    for _, row in summary.head(_MOST_ROWS).iterrows():
        cells = ["" if pd.isna(row[key]) else escape(str(row[key])) for key in keys]
        cells += [_cell(row, name) for name in names]
        bad = [f"{row[word]:.0f} {word}" for word in ("failed", "censored") if row[word]]
        table.add_row(*cells, ", ".join([f"{row['runs']:.0f}", *bad]))
    if len(summary) > _MOST_ROWS:
        table.caption = f"… and {len(summary) - _MOST_ROWS} more in summary.csv"
    return table


def _cell(row: pd.Series[Any], name: str) -> str:
    if np.isposinf(row[name]):
        return "never"
    if not np.isfinite(row[name]):
        return ""
    bound = "≥ " if row["censored"] and name.endswith("_to_target") else ""
    value = f"{row[name]:,.0f}" if abs(row[name]) >= 1e3 else f"{row[name]:.4g}"
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    if not np.isfinite(half):
        return bound + value
    return f"{bound}{value} ± {f'{half:,.0f}' if half >= 100 else f'{half:.2g}'}"


def _close(console: Console, sweep: Sweep, computed: Computed) -> None:
    failed = sweep.runs[sweep.runs["status"] == "failed"]
    for _, row in failed.iterrows():
        values = ", ".join(f"{key}={row[key]}" for key in [*sweep.axes, "seed"])
        console.print(f"[red]failed:[/red] {escape(values)}: {escape(row['reason'])}")
    total, reused = computed.distinct, computed.reused
    lost = len({computed.folders[number] for number in computed.failures})
    news = f"{total - reused - lost} computed, {reused} already there, {lost} failed"
    console.print(f"runs:     {total} ({news})")
    console.print(f"files:    {escape(str(sweep.folder))}")
    for figure in sorted(Path(sweep.folder).glob("*.png")):
        console.print(f"          {escape(str(figure))}")


def show_claims(file: Path) -> None:
    """The verdicts on the paper's claims."""
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("holds", "measured", "95 % interval", "claim"):
        table.add_column(heading)
    for _, row in pd.read_csv(file).iterrows():
        known = np.isfinite(row["low"])
        interval = f"{row['low']:.3g} … {row['high']:.3g}" if known else ""
        table.add_row(row["holds"], f"{row['value']:.3g}", interval, escape(row["text"]))
    console.print(table)
