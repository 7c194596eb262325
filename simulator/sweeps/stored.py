"""Sweeps, comparisons and frontiers that are stored, read again to be shown or drawn."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import DamagedError
from simulator.store.store import check_files, read_file, read_manifest
from simulator.store.whole_files import damaged
from simulator.sweeps.comparison import Comparison
from simulator.sweeps.frontier import Frontier
from simulator.sweeps.sweep import Sweep


def load_sweep(folder: Path) -> Sweep:
    """What ``sweep`` or ``compare`` left in a folder, as it returned it."""
    manifest = read_manifest(folder)
    what = manifest.get("what")
    if what not in ("sweep", "compare", "frontier"):
        raise DamagedError(f"{folder}: not a sweep, a comparison or a frontier of this version")
    check_files(folder, manifest, ())
    axes: dict[str, list[Any]] = manifest.get("axes", {})
    names = [*axes, "value", "given", "first", "second", "side"]

    def table(name: str) -> pd.DataFrame:
        content = read_file(folder, manifest, f"{name}.csv")
        try:
            return _table(content, names)
        except ValueError as error:
            raise damaged(folder / f"{name}.csv", f"no table: {error}") from None

    base: dict[str, Any] = {
        "folder": folder,
        "axes": axes,
        "runs": table("runs"),
        "summary": table("summary"),
        "metrics": {kind: tuple(about) for kind, about in manifest.get("metrics", {}).items()},
        "notes": tuple(manifest.get("notes", ())),
    }
    if what == "sweep":
        return Sweep(**base, curves=table("curves"))
    key, values = manifest.get("vary", ("", []))
    if what == "compare":
        there = manifest["files"]
        return Comparison(
            **base,
            curves=table("curves"),
            vary=(key, values),
            pairs=table("pairs"),
            speedup=table("speedup"),
            at_equal=table("at_equal") if "at_equal.csv" in there else pd.DataFrame(),
            tuning=table("tuning") if "tuning.csv" in there else None,
        )
    return Frontier(**base, curves=pd.DataFrame(), vary=(key, values), points=table("frontier"))


def _table(content: bytes, keys: list[str]) -> pd.DataFrame:
    """A table with the swept values as they were: a number in a column of words is one again."""
    header = pd.read_csv(io.BytesIO(content), nrows=0).columns
    as_text = dict.fromkeys((key for key in keys if key in header), str)
    table = pd.read_csv(io.BytesIO(content), converters=as_text)
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
