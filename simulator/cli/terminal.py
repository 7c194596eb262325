"""What people see in a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.runs.result import what_ran

_HEADINGS = {
    "l2_error": "L2 error",
    "accuracy": "accuracy",
    "test_error": "test error",
    "distance": "distance to optimum",
    "objective": "objective",
    "gap": "gap",
}


def show_run(
    manifest: dict[str, Any], folder: Path, reused: bool, page: Path | None = None
) -> None:
    """The closing summary of a run, and where its files are."""
    console = Console(highlight=False, soft_wrap=True)
    summary = manifest["summary"]
    title = f"{summary['name']}: {what_ran(summary)}"
    agents = _count(summary["agents"], "agent")
    console.print(
        f"[bold]{escape(title)}[/bold]  ({agents}, {_count(summary['edges'], 'edge')}, "
        f"models in R^{summary['dimension']}, seed {summary['seed']})"
    )
    for table in _metrics_tables(summary["metrics"], console.width):
        console.print(table)
    missed = f"{summary['missed']:,} missed + " if summary.get("missed") else ""
    console.print(
        f"messages: {summary['communications']:,} sent = {summary['delivered']:,} delivered "
        f"+ {summary['dropped']:,} dropped + {missed}{summary['in_flight']:,} in flight"
    )
    console.print(
        f"          {summary['bytes']:,} bytes; {summary['stale']:,} stale, "
        f"{summary['skipped']:,} ticks skipped"
    )
    console.print(
        f"time:     {summary['simulated_time']:.6g} s simulated, {manifest['wall_time']:.2f} s real"
    )
    if summary["target"] is not None:
        console.print(f"target:   {_target(summary['target'])}")
    if summary["unfinished_solves"]:
        console.print(
            f"[yellow]note:     {summary['unfinished_solves']} solves hit their limit[/yellow]"
        )
    for note in summary["notes"]:
        console.print(f"note:     {escape(note)}")
    console.print(f"files:    {escape(str(folder))}{' (already computed)' if reused else ''}")
    pictures = [folder / name for name in sorted(manifest["figures"])]
    for path in pictures if page is None else [*pictures, page]:
        console.print(f"          {escape(str(path))}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _metrics_tables(metrics: dict[str, dict[str, float]], width: int) -> list[Table]:
    """What solitary, first, final and best models measure; the network's own metrics are left."""
    measured = list(dict.fromkeys(name for row in metrics.values() for name in row))
    known = [name for name in _HEADINGS if name in measured]
    names = known + [name for name in measured if name not in known and name != "staleness"]
    columns = [Column("models", list(metrics))]
    for name in names:
        cells = [f"{row[name]:.6g}" if name in row else "" for row in metrics.values()]
        columns.append(Column(_HEADINGS.get(name, name.replace("_", " ")), cells))
    return fitted(columns, width, bold=list(metrics).index("final"))


def _target(target: dict[str, Any]) -> str:
    goal = f"{target['metric']} {target['direction']} {target['level']:g}"
    if isinstance(target["asked"], str):
        goal += f" ({target['asked']} of the start's)"
    if target["time"] is None:
        return f"{goal}: not reached"
    how = "exact" if target["exact"] else "to the sample"
    return (
        f"{goal} reached at {target['time']:.6g} s, "
        f"after {target['communications']:,} communications ({how})"
    )


#: Between two columns.
_GAP = 2
#: ``12,345``, ``≥ 2.3e36 ± 1``, ``10 ms``, ``3, 1 failed``; and what stands where a number may.
_NUMBER = re.compile(r"(≥ )?[-+]?(\d[\d,.]*(e-?\d+)?|inf|nan)%?,?( .*)?|never|")


@dataclass(frozen=True)
class Column:
    """A heading and the cells below it."""

    heading: str
    cells: Sequence[str]

    @property
    def right(self) -> bool:
        """Numbers stand below each other at the right, words at the left."""
        return any(self.cells) and all(map(_NUMBER.fullmatch, self.cells))

    def width(self, folded: bool) -> int:
        """In characters."""
        lines = _fold(self.heading) if folded else [self.heading]
        return max(map(len, (*lines, *self.cells)), default=0)


def is_terminal(stream: TextIO | None) -> bool:
    """Does somebody look?  Python has no stream where one was closed when it began."""
    return stream is not None and stream.isatty()


def terminal() -> Console:
    """Standard output; off a terminal there is no width to keep to."""
    width = None if is_terminal(sys.stdout) else 200
    return Console(highlight=False, soft_wrap=True, width=width)


def show_table(columns: Iterable[Column]) -> None:
    """Print a table, in parts where it is too wide."""
    console = terminal()
    for part in fitted(list(columns), console.width):
        console.print(part)


def fitted(columns: Sequence[Column], width: int, *, bold: int | None = None) -> list[Table]:
    """One table or, where that is too wide, several, each beginning with the first column.

    Headings are written in several lines, broken at spaces and dots, before a table is split.
    ``bold`` is a row to stress.
    """
    folded = _total(columns, folded=False) > width
    parts: list[list[Column]] = [[columns[0]]]
    for column in columns[1:]:
        if len(parts[-1]) > 1 and _total([*parts[-1], column], folded) > width:
            parts.append([columns[0]])
        parts[-1].append(column)
    return [_table(part, folded, bold) for part in parts]


def _total(columns: Sequence[Column], folded: bool) -> int:
    return sum(column.width(folded) + _GAP for column in columns)


def _fold(heading: str) -> list[str]:
    """A heading in short lines: after each dot, and where words are many."""
    pieces = [piece for piece in re.split(r"(?<=\.)| ", heading) if piece]
    lines = [""]
    for piece in pieces:
        joint = "" if not lines[-1] or lines[-1].endswith(".") else " "
        if lines[-1] and len(lines[-1] + joint + piece) > 14:
            lines.append(piece)
        else:
            lines[-1] += joint + piece
    return lines


def _table(columns: Sequence[Column], folded: bool, bold: int | None) -> Table:
    width = _total(columns, folded) - _GAP
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), width=width)
    filled: list[list[str]] = []
    for column in columns:
        # Filled up here: rich does not justify what it must not cut.
        width = column.width(folded)
        fill = str.rjust if column.right else str.ljust
        lines = _fold(column.heading) if folded else [column.heading]
        heading = "\n".join(fill(line, width) for line in lines)
        table.add_column(escape(heading), no_wrap=True, overflow="ignore")
        filled.append([escape(fill(cell, width)) for cell in column.cells])
    for row, cells in enumerate(zip(*filled, strict=True)):
        table.add_row(*cells, style="bold" if row == bold else None)
    return table


def number(value: float, digits: int = 4) -> str:
    """``12,345``, ``0.01234`` and ``2.3e36`` rather than 37 digits."""
    size = abs(value)
    if size >= 1e9:
        return re.sub(r"e\+?(-?)0*(\d)", r"e\1\2", f"{value:.3g}")
    return f"{value:,.0f}" if size >= 1e3 else f"{value:.{digits}g}"
