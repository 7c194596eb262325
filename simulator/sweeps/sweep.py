"""What comes out of many runs: the tables of a sweep, of a comparison and of frontiers.

They live in ``results/sweeps/<name>-<hash8>/``, and are read again as they were returned.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd

from simulator.errors import DamagedError, SimulatorError
from simulator.runs.scenarios import path_of
from simulator.showing import Shown
from simulator.store.store import check_files, read_file, read_manifest
from simulator.store.whole_files import damaged
from simulator.sweeps.comparison import speedup_text


@dataclass(frozen=True, repr=False)
class Sweep(Shown):
    """The tables of a sweep: ``runs``, ``summary`` (means over seeds) and ``curves``.

    ``tables`` describes their columns.
    """

    folder: Path
    #: Swept keys and their values.
    axes: dict[str, list[Any]]
    #: One row a run; mean and 95 % interval a combination; the same along time and what is sent.
    runs: pd.DataFrame
    summary: pd.DataFrame
    curves: pd.DataFrame
    #: What is measured: its label in words, and whether it grows as agents learn.
    metrics: dict[str, tuple[str, bool]]
    #: What a reader should know.
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the sweep is called."""
        return self.folder.name.rsplit("-", 1)[0]

    @property
    def failed(self) -> int:
        """How many runs failed; ``runs.reason`` says why."""
        return int((self.runs["status"] == "failed").sum())

    def title(self) -> str:
        """What was swept."""
        swept = " × ".join(f"{key} ({len(values)})" for key, values in self.axes.items())
        failed = f", {self.failed} failed" if self.failed else ""
        return f"Sweep {self.name}: {swept or 'seeds'}, {len(self.runs)} runs{failed}"

    def table(self) -> pd.DataFrame:
        """The means."""
        return _without_ends(self.summary)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """One that is stored, as it was returned."""
        found = load_sweep(path_of("folder", folder))
        if type(found) is not cls:
            raise SimulatorError(f"{folder}: holds a {type(found).__name__}, not a {cls.__name__}")
        return found


@dataclass(frozen=True, repr=False)
class Comparison(Sweep):
    """The tables of a sweep, and ``pairs`` and ``speedup`` of its sides."""

    #: The key compared, and its values: the speed-ups are those of the first over each other.
    vary: tuple[str, list[Any]]
    #: One row a pair of runs, and one row a combination of the grid (and other side).
    pairs: pd.DataFrame
    speedup: pd.DataFrame
    #: What sides have at equal budgets: one row a combination, budget, side and metric.
    at_equal: pd.DataFrame = field(default_factory=pd.DataFrame)
    #: Every value that was tried on held-out seeds, and which was taken; None: nothing was tuned.
    tuning: pd.DataFrame | None = None

    def title(self) -> str:
        """What was compared, and what came of it."""
        first = speedup_text(self.speedup.iloc[0]) if len(self.speedup) == 1 else ""
        what = first or f"{len(self.vary[1])} values of {self.vary[0]}"
        return f"Comparison {self.name}: {what}"

    def table(self) -> pd.DataFrame:
        """The speed-ups with their intervals."""
        return self.speedup


@dataclass(frozen=True, repr=False)
class Frontier(Sweep):
    """The tables of a sweep over knobs, and ``points``: what each of their values costs."""

    vary: tuple[str, list[Any]]
    #: One row a world, combination, side and value: time, communications and bytes to target.
    points: pd.DataFrame
    #: One row a world, budget of messages and side: the time that it needs with so many.
    equal_messages: pd.DataFrame = field(default_factory=pd.DataFrame)

    def title(self) -> str:
        """What was compared."""
        return f"Frontier {self.name}: {len(self.points)} points, {len(self.runs)} runs"

    def table(self) -> pd.DataFrame:
        """What every value costs."""
        return _without_ends(self.points)


KINDS: dict[str, type[Sweep]] = {"sweep": Sweep, "compare": Comparison, "frontier": Frontier}
#: A table's file is called as it is, but for this one.
_FILES = {"points": "frontier"}


def files_of(sweep: Sweep) -> dict[str, pd.DataFrame]:
    """Its tables, by the name of their files."""
    tables = {name: value for name, value in vars(sweep).items() if isinstance(value, pd.DataFrame)}
    return {_FILES.get(name, name): table for name, table in tables.items() if len(table.columns)}


def _without_ends(table: pd.DataFrame) -> pd.DataFrame:
    return table[[name for name in table if not str(name).endswith(("_low", "_high"))]]


def load_sweep(folder: Path) -> Sweep:
    """What ``sweep`` or ``compare`` left in a folder, as it returned it."""
    manifest = read_manifest(folder)
    what = manifest.get("what")
    if what not in KINDS:
        raise DamagedError(f"{folder}: not a sweep, a comparison or a frontier of this version")
    check_files(folder, manifest, ())
    axes: dict[str, list[Any]] = manifest.get("axes", {})
    key, values = manifest.get("vary", ("", []))
    names = [*axes, key, "value", "given", "first", "second", "side"]
    given: dict[str, Any] = {"curves": pd.DataFrame()}
    fields = {file: name for name, file in _FILES.items()}
    for file in manifest["files"]:
        name = file.removesuffix(".csv")
        if name != file:
            given[fields.get(name, name)] = _table(folder, manifest, file, names)
    if what != "sweep":
        given["vary"] = (key, values)
    return KINDS[what](
        folder=folder,
        axes=axes,
        metrics={kind: tuple(about) for kind, about in manifest.get("metrics", {}).items()},
        notes=tuple(manifest.get("notes", ())),
        **given,
    )


def _table(folder: Path, manifest: dict[str, Any], name: str, keys: list[str]) -> pd.DataFrame:
    """A table with the swept values as they were: a number in a column of words is one again."""
    content = read_file(folder, manifest, name)
    try:
        header = pd.read_csv(io.BytesIO(content), nrows=0).columns
        as_text = dict.fromkeys((key for key in keys if key in header), str)
        table = pd.read_csv(io.BytesIO(content), converters=as_text)
    except ValueError as error:
        raise damaged(folder / name, f"no table: {error}") from None
    for key in as_text:
        table[key] = [_value(text) for text in table[key]]
    return table


def _value(text: str) -> Any:
    """A cell: a number where it looks like one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
