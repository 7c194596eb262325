"""A sweep, a comparison or a frontier on a page: its tables, and what the charts need of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from simulator.figures.style import Look, shown_value
from simulator.report.parts import (
    MAIN,
    Item,
    Source,
    by_importance,
    column,
    count,
    definitions,
    fill,
    label_of,
    metric_data,
    notes,
    paragraphs,
    thinned,
    typed,
)
from simulator.sweeps.comparison import result_text
from simulator.sweeps.request import tabled
from simulator.sweeps.sweep import Comparison, Frontier, Sweep, load_sweep

#: The tables that there may be, and what each is.
_TABLES = {
    "speedup": "Ratios, one row a combination",
    "at_equal": "At equal budgets, one row a side and metric",
    "frontier": "The frontiers, one row a value",
    "equal_messages": "Times at equal messages, one row a budget and side",
    "summary": "Means over seeds, one row a combination",
    "tuning": "What was tried on held-out seeds",
    "pairs": "Pairs, one row each",
    "runs": "Runs, one row each",
}
#: Swept keys and their values.
Axes = dict[str, list[Any]]
#: Rows of a table, and numbers of all curves, at most.
_ROWS, _CURVES = 5_000, 500_000
_RATIOS = {
    "speedup": "ratio of times to target",
    "communications_ratio": "ratio of communications to target",
    "bytes_ratio": "ratio of bytes to target",
}


def sweep_item(source: Source, *, key: str, page: Path, share: int) -> Item:
    """The part of a sweep, of which ``share`` items fill a page that will be at ``page``."""
    sweep = load_sweep(source.folder)
    kind = {Comparison: "comparison", Frontier: "frontier"}.get(type(sweep), "sweep")
    vary = sweep.vary[0] if isinstance(sweep, Comparison | Frontier) else None
    axes, runs = sweep.axes, sweep.runs
    frames = {name: getattr(sweep, name, None) for name in _TABLES}
    if isinstance(sweep, Frontier):  # knobs are no axes, and values are in the table
        keys = [key for key in axes if key not in ("knob", "value")]
        axes = {key: list(dict.fromkeys(sweep.points[key])) for key in keys}
        frames["frontier"] = sweep.points
    there = {name: frame for name, frame in frames.items() if frame is not None and len(frame)}
    texts = {key: [shown_value(value) for value in values] for key, values in axes.items()}
    tables, left_out = _tables(there, axes, texts, share)
    pages, first = _pages(source, runs, page)
    curves, thin = _curves(sweep, axes, share)
    if first is not None:
        left_out.append(f"A run's own page: python -m simulator report {shlex.quote(first)}")
    data = {
        "type": "sweep",
        "key": key,
        "kind": kind,
        "vary": vary,
        "axes": [
            {"key": name, "label": Look().words(name), "values": texts[name]}
            for name, values in axes.items()
        ],
        "tables": tables,
        "codes": _all_codes(there, axes),
        "pages": pages,
        "measures": _measures(there),
        "curves": curves,
    }
    failed = source.manifest["failed"].items()
    swept = [key for key in axes if key != vary]
    html = fill(
        "sweep.html",
        key=key,
        title=f"{sweep.name}: {kind}",
        words=paragraphs([_words(sweep, texts, kind, vary)]),
        speedups=notes([*_speedups(there.get("speedup"), swept), *sweep.notes]),
        notes=notes([*left_out, *thin]),
        failed=notes(f"{run}: failed: {why}" for run, why in failed),
        map_title="Over the grid" if set(axes) - {vary} else "Side by side",
        provenance=definitions(
            [
                ("folder", str(source.folder)),
                ("hash", source.manifest["hash"]),
                ("software", source.software),
            ]
        ),
        command=_command(source, runs, vary),
    )
    return Item(html, data, f"{sweep.name}: {kind}")


# --- data -----------------------------------------------------------------------------------------
def _codes(values: Iterable[Any], among: list[Any]) -> list[int]:
    """The position of each value among those that were swept."""
    places = {tabled(value): number for number, value in enumerate(among)}
    return [places[value] for value in values]


def _all_codes(frames: dict[str, pd.DataFrame], axes: Axes) -> dict[str, Any]:
    """Where each row of the tables that charts are made of lies along each axis."""
    return {
        name: {
            key: typed(_codes(frames[name][key], values), "u2")
            for key, values in axes.items()
            if key in frames[name]
        }
        for name in ("summary", "speedup", "frontier")
        if name in frames
    }


def _tables(
    frames: dict[str, pd.DataFrame], axes: Axes, texts: dict[str, list[str]], share: int
) -> tuple[dict[str, Any], list[str]]:
    """The first rows of all tables, with swept values as they were given; what is left out."""
    found, left_out = {}, []
    for name, text in _TABLES.items():
        if name not in frames:
            continue
        rows = frames[name].head(_ROWS // share)
        if len(rows) < len(frames[name]):
            left_out.append(f"{name}: {len(rows):,} of {len(frames[name]):,} rows are shown.")
        columns = {
            str(title): [texts[title][code] for code in _codes(values, axes[title])]
            if title in axes
            else column(values)
            for title, values in rows.items()
        }
        found[name] = {"title": text, "columns": columns, "rows": len(rows)}
    return found, left_out


def _measures(frames: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """What the map can show, by table: a mean with its interval each."""
    summary = frames["summary"]
    named = [name for name in map(str, summary) if f"{name}_low" in summary]
    named = [name for name in named if summary[name].notna().any()]
    costs = ("time_to_target", "communications_to_target", "bytes_to_target")
    found = [("summary", name, label_of(name)) for name in by_importance(named, costs)]
    if "speedup" in frames:
        found = [("speedup", name, text) for name, text in _RATIOS.items()] + found
    return [
        {
            "table": table,
            "name": name,
            "label": text,
            "low": "low" if name == "speedup" else f"{name}_low",
            "high": "high" if name == "speedup" else f"{name}_high",
            "ratio": table == "speedup",
        }
        for table, name, text in found
    ]


def _curves(sweep: Sweep, axes: Axes, share: int) -> tuple[dict[str, Any] | None, list[str]]:
    """A curve for each combination and axis: the mean of each metric and its interval."""
    table, runs = sweep.curves, sweep.runs
    if table.empty:
        return None, []
    table = table[table["axis"] != "bytes"]  # the page's charts are of time and communications
    targets = runs["target"].dropna().unique() if "target" in runs else ()
    named = (name for name in map(str, table) if f"{name}_low" in table)
    metrics = by_importance(named, targets)
    groups = table.groupby([*axes, "axis"], sort=False)
    longest = int(groups.size().max())
    # Points in between go first, metrics never.
    room = max(10, _CURVES // share // (3 * len(metrics) * max(1, groups.ngroups)))
    found = []
    for name, own in groups:
        rows = thinned(len(own), room)
        *values, axis = name
        places = [_codes([v], axes[key])[0] for key, v in zip(axes, values, strict=True)]
        shown = {
            metric: [typed(own[f"{metric}{end}"].iloc[rows], "f4") for end in ("", "_low", "_high")]
            for metric in metrics
        }
        x = typed(own["x"].iloc[rows], "f4")
        found.append({"axis": axis, "codes": places, "x": x, "metrics": shown})
    note = [f"Curves show {room:,} of {longest:,} points."] if room < longest else []
    labels = [metric_data(name, table[name]) for name in metrics]
    return {"metrics": labels, "groups": found}, note


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
def _words(sweep: Sweep, texts: dict[str, list[str]], kind: str, vary: str | None) -> str:
    runs = sweep.runs
    seeds = count(int(runs["seed"].nunique()), "seed")
    combinations = count(len(sweep.summary), "combination")
    text = f"A {kind} of {count(len(runs), 'run')}: {combinations}, {seeds} each."
    keys = [key for key in texts if key != vary]
    if keys:
        listed = [f"{Look().words(key)} ({', '.join(texts[key])})" for key in keys]
        text += f" Swept are {'; '.join(listed)}."
    if vary is not None:
        text += f" Compared are values of {vary}: {', '.join(texts[vary])}."
    if "target" in runs and runs["target"].notna().any():
        metric = str(runs["target"].dropna().iloc[0])
        reached = int(runs["time_to_target"].notna().sum())
        text += f" A run ends where {MAIN.get(metric, metric)} reaches its target; {reached:,} did."
    return text


def _speedups(table: pd.DataFrame | None, keys: list[str]) -> list[str]:
    """Ratios in words, where there are few, and where in the grid each one is."""
    if table is None or len(table) > 4:
        return []
    found = []
    for _, row in table.iterrows():
        where = ", ".join(f"{Look().words(key)} {shown_value(row[key])}" for key in keys)
        text = f"{result_text(row)}."
        found.append(f"{where}: {text}" if where else text)
    return found


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
