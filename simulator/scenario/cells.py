"""Text files that a scenario names: cells with line numbers, numbers and times."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, TypeAdapter, ValidationError

from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.scenario.quantities import Seconds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds)


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


def without_comments(text: str) -> str:
    """The same lines without what follows a #."""
    return re.sub(r"[ \t]*(#.*)?$", "", text, flags=re.MULTILINE)


def read_cells(
    path: Path, text: str, separator: str = ",", header: list[str] | None = None
) -> pd.DataFrame:
    """A table of stripped strings without its blank lines; the index is the line number.

    Without ``header`` the first line holds the column names, and all lines have as many cells;
    with it, cells that a line lacks are "".
    """
    given, shift = text, 0 if header is None else 1
    if header is not None:
        text = (" " if separator == r"\s+" else separator).join(header) + "\n" + text
    try:
        cells = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
        )
    except pd.errors.EmptyDataError:
        raise ScenarioError(f"{path}: the first line is empty; it must name the columns") from None
    except pd.errors.ParserError as error:
        match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if match is None:
            raise ScenarioError(f"{path}: malformed CSV: {error}") from None
        expected, line, found = map(int, match.groups())
        raise ScenarioError(
            f"{path}:{line - shift}: {found} cells in a line; at most {expected} are expected"
        ) from None
    cells = cells.apply(lambda column: column.str.strip())
    cells.index += 1 - shift
    columns = cells.iloc[0].tolist()
    rows: pd.DataFrame = cells.iloc[1:].set_axis(columns, axis=1)
    rows = rows[(rows != "").any(axis=1)]
    if header is None and (rows.iloc[:, -1] == "").any():
        _require_all_cells(path, given, len(columns))
    return rows


def _require_all_cells(path: Path, text: str, count: int) -> None:
    """No line ends too early; pandas does not tell an empty cell from one that is not there."""
    for number, cells in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
        if len(cells) < count and any(cell.strip() for cell in cells):
            what = f"{len(cells)} cells in a line; {count} are expected"
            raise ScenarioError(f"{path}:{number}: {what}")


def numbers(column: pd.Series[Any]) -> Floats:
    """The column as numbers; NaN for what is not one."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan).copy()
    # Older versions of pandas are off by a bit now and then; Python never is.
    known = np.isfinite(values)
    values[known] = [float(text) for text in column[known].tolist()]
    return values


def times(cells: Sequence[str], place: Callable[[int], str]) -> Floats:
    """The cells as times in seconds, with units or without; ``place`` names the i-th of them."""
    values: Floats = np.empty(len(cells))
    try:
        values[:] = list(map(float, cells))
    except ValueError:
        known = {text: _seconds(text) for text in set(cells)}
        values[:] = [known[text] for text in cells]
    wrong = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if len(wrong):
        what = "is not a time: a number from 0, in seconds or with a unit like '8 h'"
        raise ScenarioError(f"{place(wrong[0])}: {cells[wrong[0]]!r} {what}")
    return values


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return _SECONDS.validate_python(text)
    except ValidationError:
        return np.nan
