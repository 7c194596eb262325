"""Text files that a scenario names: tables with line numbers, numbers and times."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator

from agents.parameters import MOST
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.scenario.quantities import in_seconds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Parsed = TypeVar("Parsed")


def listing(names: Sequence[str], which: Ints | None = None, limit: int = 5) -> str:
    """A few of the names, or of those at the places ``which``, and how many more there are."""
    count = len(names) if which is None else len(which)
    shown = names[:limit] if which is None else [names[i] for i in which[:limit].tolist()]
    return ", ".join(shown) + (f" and {count - limit} more" if count > limit else "")


def held_by(read: Callable[[Path], Any]) -> AfterValidator:
    """The check that a file holds what ``read`` reads."""

    def check(path: Path) -> Path:
        try:
            read(path)
        except ScenarioError as error:
            raise ValueError(str(error)) from None
        return path

    return AfterValidator(check)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    try:
        # The text, its lines and cells, the numbers.
        require_memory(10 * path.stat().st_size, f"{path}: to read it")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from None


def parsed(parse: Callable[[Path, str], Parsed]) -> Callable[[Path], Parsed]:
    """What ``parse(path, text)`` makes of a file, as a function of its path; once for a text."""
    kept = lru_cache(maxsize=4)(parse)

    @wraps(parse)
    def read(path: Path) -> Parsed:
        return kept(path, read_text(path))

    return read


def without_comments(text: str) -> str:
    """The same lines without what follows a #."""
    return re.sub(r"[ \t]*(#.*)?$", "", text, flags=re.MULTILINE)


def read_cells(
    path: Path, text: str, header: list[str] | None = None, *, blanks: bool = False
) -> pd.DataFrame:
    """A table of stripped strings without its blank lines; the index is the line number.

    Cells are parted by commas, or by ``blanks``.  Without ``header`` the first line holds the
    column names, and all lines have as many cells; with it, cells that a line lacks are "".
    """
    rows: dict[int, list[str]] = {}
    lines = io.StringIO(text.replace("\t", " ")) if blanks else io.StringIO(text)
    how: Any = {"delimiter": " " if blanks else ",", "skipinitialspace": True, "strict": True}
    reader = csv.reader(map(str.strip, lines) if blanks else lines, **how)
    try:
        for cells in reader:
            stripped = [*map(str.strip, cells)]
            if any(stripped):
                rows[reader.line_num] = stripped
    except csv.Error as error:
        raise ScenarioError(f"{path}: malformed CSV: {error} (line {reader.line_num})") from None
    if header is None and 1 not in rows:
        raise ScenarioError(f"{path}: the first line is empty; it must name the columns")
    columns = rows.pop(1) if header is None else header
    for number, cells in rows.items():
        if len(cells) > len(columns) or (header is None and len(cells) < len(columns)):
            most = "at most " if len(cells) > len(columns) else ""
            what = f"{len(cells)} cells in a line; {most}{len(columns)} are expected"
            raise ScenarioError(f"{path}:{number}: {what}")
        cells += [""] * (len(columns) - len(cells))
    table = np.array([*rows.values()], dtype=object).reshape(len(rows), len(columns))
    return pd.DataFrame(table, index=[*rows], columns=columns)


def numbers(column: pd.Series[Any]) -> Floats:
    """The column as numbers; NaN for what is not one."""
    cells = column.tolist()
    try:
        return np.array([*map(float, cells)], dtype=float)
    except (TypeError, ValueError):
        return np.array([_number(cell, float) for cell in cells], dtype=float)


def times(cells: Sequence[str], place: Callable[[int], str]) -> Floats:
    """The cells as times in seconds, with units or without; ``place`` names the i-th of them."""
    try:
        values = np.array([*map(float, cells)], dtype=float)
    except ValueError:
        known = {text: _number(text, in_seconds) for text in set(cells)}
        values = np.array([known[text] for text in cells], dtype=float)
    wrong = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if len(wrong):
        what = "is not a time: a number from 0, in seconds or with a unit like '8 h'"
        raise ScenarioError(f"{place(wrong[0])}: {cells[wrong[0]]!r} {what}")
    return values


def _number(cell: Any, read: Callable[[Any], float]) -> float:
    try:
        return read(cell)
    except (TypeError, ValueError):
        return np.nan


# --- tables ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Table:
    """A CSV file as strings; ``cells.index`` holds line numbers."""

    path: Path
    agent: str
    cells: pd.DataFrame

    def require(self, column: str, key: str) -> None:
        """The column exists."""
        if column not in self.cells.columns:
            raise ScenarioError(
                f"{self.path}: no column {column!r} (task.{key}); "
                f"the columns are {listing(list(self.cells.columns), limit=12)}"
            )

    def refuse(self, column: str, wrong: NDArray[np.bool_], problem: str) -> None:
        """Raise for the first of the rows that are wrong, if any are."""
        if wrong.any():
            raise self.fail(int(np.argmax(wrong)), column, problem)

    def fail(self, row: int, column: str, problem: str) -> ScenarioError:
        """An error at a cell."""
        value = self.cells[column].iloc[row]
        return ScenarioError(f"{self.place(row, column)}: {value!r} {problem}")

    def place(self, row: int, column: str) -> str:
        """The name of a cell."""
        return f"{self.path}:{self.cells.index[row]}: column {column!r}"

    def numbers(self, column: str) -> Floats:
        """The column's finite numbers."""
        values = numbers(self.cells[column])
        self.refuse(column, ~np.isfinite(values), "is not a finite number")
        too_large = f"is too large; at most {MOST:g} is allowed"
        self.refuse(column, np.abs(values) > MOST, too_large)
        return values

    def agents(self, names: Sequence[str]) -> Ints:
        """The number of each row's agent."""
        found = pd.Index(names).get_indexer(pd.Index(self.cells[self.agent])).astype(np.int64)
        self.refuse(self.agent, found < 0, f"is not an agent; the agents are {listing(names)}")
        return found


def read_table(path: Path, agent: str) -> Table:
    """A CSV file with a column of agents, every row with a name."""
    table = Table(path, agent, read_cells(path, read_text(path)))
    repeated = table.cells.columns[table.cells.columns.duplicated()]
    if len(repeated):
        raise ScenarioError(f"{path}: two columns are called {repeated[0]!r}")
    table.require(agent, "agent")
    if table.cells.empty:
        raise ScenarioError(f"{path}: no rows below the line of column names")
    table.refuse(agent, (table.cells[agent] == "").to_numpy(), "is no name of an agent")
    return table
