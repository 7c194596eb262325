"""Tables for terminals: no wider than there is room, and without names that are cut."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
