"""A sweep, a comparison or a frontier on a page: its tables, and what the charts need of them."""

from __future__ import annotations

import io
import os
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from simulator.figures.style import Look
from simulator.report import words
from simulator.report.network_view import thinned
from simulator.report.parts import Html, Source, column, definitions, fill, items, safe, typed
from simulator.report.run_page import Item
from simulator.store.store import read_file
from simulator.store.whole_files import damaged
from simulator.sweeps.comparison import costs_text, speedup_text
from simulator.sweeps.request import tabled
from simulator.theory.metrics import METRICS

#: The tables that there may be, and what each is.
_TABLES = {
    "speedup": "Ratios, one row a combination",
    "at_equal": "At equal budgets, one row a side and metric",
    "frontier": "The frontiers, one row a value",
    "summary": "Means over seeds, one row a combination",
    "tuning": "What was tried on held-out seeds",
    "pairs": "Pairs, one row each",
    "runs": "Runs, one row each",
}
#: Rows of a table, and numbers of all curves, at most.
_ROWS, _CURVES = 5_000, 500_000
_RATIOS = {
    "speedup": "ratio of times to target",
    "communications_ratio": "ratio of communications to target",
    "bytes_ratio": "ratio of bytes to target",
}


def sweep_item(source: Source, *, key: str, page: Path, share: int) -> Item:
    """The part of a sweep, of which ``share`` items fill a page that will be at ``page``."""
    frames = _read_tables(source)
    axes = _axes(source, frames)
    kind, vary = _kind(frames, axes)
    runs = frames["runs"]
    notes = []
    tables = {}
    for name, text in _TABLES.items():
        if len(frames.get(name, ())):
            rows = frames[name].head(_ROWS // share)
            if len(rows) < len(frames[name]):
                notes.append(f"{name}: {len(rows):,} of {len(frames[name]):,} rows are shown.")
            columns = {
                str(title): [str(axes[title][code]) for code in _codes(values, axes[title])]
                if title in axes
                else column(values)
                for title, values in rows.items()
            }
            tables[name] = {"title": text, "columns": columns, "rows": len(rows)}
    pages, first = _pages(source, runs, page)
    if first is not None:
        notes.append(f"A run's own page: python -m simulator report {shlex.quote(first)}")
    data: dict[str, Any] = {
        "type": "sweep",
        "key": key,
        "kind": kind,
        "vary": vary,
        "axes": [
            {"key": name, "label": Look().words(name), "values": [str(v) for v in values]}
            for name, values in axes.items()
        ],
        "tables": tables,
        "codes": {
            name: {key: typed(_codes(frames[name][key], axes[key]), "u2") for key in axes
                   if key in frames[name]}
            for name in ("summary", "speedup", "frontier") if name in frames
        },
        "pages": pages,
        "measures": _measures(frames),
    }  # fmt: skip
    data["curves"], thin = _curves(frames.get("curves"), axes, runs, share)
    name = source.folder.name.rsplit("-", 1)[0]
    title = f"{name}: {kind}"
    html = fill(
        "sweep.html",
        key=key,
        title=title,
        words=Html(f"<p>{_words(axes, runs, kind, vary)}</p>"),
        speedups=items(_speedups(frames, {k: v for k, v in axes.items() if k != vary})),
        notes=items([*notes, *thin]),
        failed=items([f"{run}: failed: {why}" for run, why in source.manifest["failed"].items()]),
        map_title="Over the grid" if set(axes) - {vary} else "Side by side",
        provenance=definitions(_provenance(source)),
        command=_command(source, runs, vary),
    )
    return Item(html, data, title)


# --- reading --------------------------------------------------------------------------------------
def _read_tables(source: Source) -> dict[str, pd.DataFrame]:
    found = {}
    for name in (*_TABLES, "curves"):
        path = source.folder / f"{name}.csv"
        if path.name not in source.manifest["files"] and name not in ("runs", "summary"):
            continue
        content = read_file(source.folder, source.manifest, path.name)
        axes = dict.fromkeys([*source.manifest["axes"], "world"], str)
        try:
            found[name] = pd.read_csv(io.BytesIO(content), dtype=axes)
        except ValueError as error:
            raise damaged(path, f"no table: {error}") from None
        missing = {"runs": {"seed", "status", "folder"}, "curves": {"axis", "x"}}
        if not missing.get(name, set()) <= set(found[name]):
            raise damaged(path, "columns are missing")
    return found


def _axes(source: Source, frames: dict[str, pd.DataFrame]) -> dict[str, list[Any]]:
    """Swept keys and their values; a frontier's are in its table, and its knobs are no axes."""
    given: dict[str, list[Any]] = source.manifest["axes"]
    points = frames.get("frontier")
    if points is None:
        return given
    keys = [key for key in given if key not in ("knob", "value")]
    return {key: list(dict.fromkeys(points[key])) for key in keys}


def _kind(frames: dict[str, pd.DataFrame], axes: dict[str, list[Any]]) -> tuple[str, str | None]:
    """What it is, and which key was compared: the one that tells the sides of a pair apart."""
    if "pairs" in frames:
        return "comparison", next(key for key in axes if key not in frames["pairs"])
    if "frontier" in frames:
        names = list(frames["frontier"])
        before = names[: names.index("knob")] if "knob" in names else names
        return "frontier", next((key for key in reversed(before) if key in axes), None)
    return "sweep", None


def _plain(value: Any) -> str:
    """A value in one spelling, whether it was read as 1, 1.0 or "1"."""
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        return str(value)


def _codes(values: pd.Series[Any], among: list[Any]) -> np.ndarray:
    """The position of each value among those that were swept."""
    places = {_plain(tabled(value)): number for number, value in enumerate(among)}
    return np.array([places.get(_plain(value), 0) for value in values])


# --- data -----------------------------------------------------------------------------------------
def _measures(frames: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """What the map can show, by table: a mean with its interval each."""
    summary = frames["summary"]
    named = [
        str(name) for name in summary if f"{name}_low" in summary and summary[name].notna().any()
    ]
    order = ["time_to_target", "communications_to_target", *words.MAIN]
    named.sort(key=lambda name: order.index(name) if name in order else len(order))
    means = [("summary", name, _label(name), f"{name}_") for name in named]
    ratios = [
        ("speedup", name, text, "" if name == "speedup" else f"{name}_")
        for name, text in (_RATIOS.items() if len(frames.get("speedup", ())) else ())
    ]
    return [
        {
            "table": table,
            "name": name,
            "label": text,
            "low": f"{before}low",
            "high": f"{before}high",
            "ratio": table == "speedup",
        }
        for table, name, text, before in (*ratios, *means)
    ]


def _label(name: str) -> str:
    if name in METRICS:
        return METRICS[name].label.replace("\n", " ")
    return {"time_to_target": "time to target (s)", "simulated_time": "simulated time (s)"}.get(
        name, name.replace("_", " ")
    )


def _curves(
    table: pd.DataFrame | None, axes: dict[str, list[Any]], runs: pd.DataFrame, share: int
) -> tuple[dict[str, Any] | None, list[str]]:
    """A curve for each combination and axis: the mean of each metric and its interval."""
    if table is None or table.empty:
        return None, []
    table = table[table["axis"] != "bytes"]  # the page's charts are of time and communications
    metrics = [str(name) for name in table if f"{name}_low" in table]
    wanted = [*runs["target"].dropna().unique(), *words.MAIN] if "target" in runs else words.MAIN
    order = {name: number for number, name in reversed(list(enumerate(wanted)))}
    metrics.sort(key=lambda name: order.get(name, len(order)))
    groups = table.groupby([*axes, "axis"], sort=False)
    longest = int(groups.size().max())
    # Points in between go first, metrics never.
    room = max(10, _CURVES // share // (3 * len(metrics) * max(1, groups.ngroups)))
    found = []
    for name, own in groups:
        rows = thinned(len(own), room)
        *values, axis = name
        places = [
            int(_codes(pd.Series([value]), axes[key])[0])
            for key, value in zip(axes, values, strict=True)
        ]
        shown = {
            metric: [typed(own[f"{metric}{end}"].iloc[rows], "f4") for end in ("", "_low", "_high")]
            for metric in metrics
        }
        x = typed(own["x"].iloc[rows], "f4")
        found.append({"axis": axis, "codes": places, "x": x, "metrics": shown})
    note = [f"Curves show {room:,} of {longest:,} points."] if room < longest else []
    labels = [
        {"kind": name, "label": _label(name), "log": _log(name, table[name])} for name in metrics
    ]
    return {"metrics": labels, "groups": found}, note


def _log(name: str, values: pd.Series[Any]) -> bool:
    grows = name in METRICS and METRICS[name].grows
    return not grows and name != "staleness" and bool((values > 0).all())


def _pages(source: Source, runs: pd.DataFrame, page: Path) -> tuple[list[str | None], str | None]:
    """Addresses of the runs' own pages, relative to this one, and the first run without one."""
    root = source.folder.parent.parent
    found: list[str | None] = []
    without = None
    for name in runs["folder"]:
        own = root / str(name) / "report.html"
        if isinstance(name, str) and own.is_file():
            relative = os.path.relpath(own.absolute(), page.absolute().parent)
            found.append(quote(Path(relative).as_posix()))
        else:
            found.append(None)
            if isinstance(name, str) and without is None:
                without = str(root / name)
    return found, without


# --- words ----------------------------------------------------------------------------------------
def _words(axes: dict[str, list[Any]], runs: pd.DataFrame, kind: str, vary: str | None) -> Html:
    seeds = words.count(int(runs["seed"].nunique()), "seed")
    text = f"A {kind} of {words.count(len(runs), 'run')}, with {seeds} each."
    keys = [key for key in axes if key != vary]
    if keys:
        listed = [f"{Look().words(key)} ({', '.join(map(str, axes[key]))})" for key in keys]
        text += f" Swept are {'; '.join(listed)}."
    if vary is not None:
        text += f" Compared are values of {vary}: {', '.join(map(str, axes[vary]))}."
    if "target" in runs and runs["target"].notna().any():
        metric = str(runs["target"].dropna().iloc[0])
        reached = int(runs["time_to_target"].notna().sum())
        text += f" A run ends where {words.label(metric)} reaches its target; {reached:,} did."
    return safe(text)


def _speedups(frames: dict[str, pd.DataFrame], axes: dict[str, list[Any]]) -> list[str]:
    """Ratios in words, where there are few, and where in the grid each one is."""
    table = frames.get("speedup")
    if table is None or len(table) > 4:
        return []
    given = {
        key: [among[code] for code in _codes(table[key], among)] for key, among in axes.items()
    }
    found = []
    for number, (_, row) in enumerate(table.iterrows()):
        where = ", ".join(f"{Look().words(key)} {values[number]}" for key, values in given.items())
        text = f"{speedup_text(row)}; {costs_text(row)}."
        found.append(f"{where}: {text}" if where else text)
    return found


def _provenance(source: Source) -> list[tuple[str, str]]:
    return [
        ("folder", str(source.folder)),
        ("hash", source.manifest["hash"]),
        ("software", source.software),
    ]


def _command(source: Source, runs: pd.DataFrame, vary: str | None) -> str:
    """The command that repeats it; of what no file can ask for, that of its first run."""
    request = source.folder / "request.yaml"
    if request.is_file():
        plugins = [f" --plugin {shlex.quote(each)}" for each in source.manifest.get("plugins", ())]
        command = f"{'compare' if vary else 'sweep'} {shlex.quote(str(request))}{''.join(plugins)}"
        return f"python -m simulator {command}"
    named = runs["folder"].dropna()
    if not len(named):
        return "every run failed, and there is no scenario to begin from"
    scenario = source.folder.parent.parent / str(named.iloc[0]) / "scenario.yaml"
    return f"python -m simulator run {shlex.quote(str(scenario))}    # its first run"
