"""Sweeps: all runs of a grid of values and seeds, computed once, kept in the common store.

Each run is an ordinary result (``results/<name>-<hash8>/``), so that a sweep which was killed goes
on where it was.  Its tables and figures live in ``results/sweeps/<name>-<hash8>/``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.errors import SimulatorError
from simulator.scenario.kinds import kind_of
from simulator.scenario.mistakes import shown
from simulator.store.store import (
    RESULTS_VERSION,
    SCHEMA_VERSION,
    Store,
    place_in,
    software,
    write_manifest,
)
from simulator.store.whole_files import describe, hash_of, replacing
from simulator.sweeps.jobs import require_travel, tied_here
from simulator.sweeps.plan import Plan, common_metrics
from simulator.sweeps.request import Request, as_file, from_one, label, read_request
from simulator.sweeps.tables import curves_table, metric_kinds, runs_table, summary_table
from simulator.sweeps.work import Progress, Run, complete, unfinished
from simulator.sweeps.workers import crew_for


@dataclass(frozen=True)
class Sweep:
    """The tables of a sweep (``tables`` describes their columns) and where they are."""

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


@dataclass(frozen=True)
class Computed:
    """The runs of a plan: where each one is, its hash, and the reasons of those that failed."""

    plan: Plan
    folders: list[Path]
    hashes: list[str]
    failures: dict[int, str] = field(default_factory=dict)
    #: How many different runs these are, and how many of them were there.
    distinct: int = 0
    reused: int = 0

    @property
    def lost(self) -> int:
        """How many different runs failed."""
        return len({self.folders[number] for number in self.failures})


def requested(
    file: Path | Mapping[str, Any],
    settings: Iterable[tuple[str, Sequence[Any]]],
    *,
    seeds: int | None = None,
    target: str | None = None,
) -> Request:
    """What a file, or a scenario as a dictionary, and the settings beside it ask for.

    A setting goes before the file's own.
    """
    request = read_request(file).with_settings(settings).with_defaults()
    if seeds is not None:
        request = replace(request, seeds=from_one("seeds", seeds))
    if target is not None and not isinstance(target, str):
        raise SimulatorError(
            f"target: must be text like 'distance=1%', or 'none' (got {shown(target)})"
        )
    return request if target is None else replace(request, target=target)


def compute(
    plan: Plan,
    store: Store,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Computed:
    """Compute the runs that the store does not have; this process alone writes to the store.

    Combinations that differ only in keys without effect share a run (``plan.effective``).
    """
    jobs = None if jobs is None else from_one("jobs", jobs)
    if tied_here(
        plan.runs[0].scenario
    ):  # what the code of such a plugin refers to is in no hash: nothing is reused
        jobs, force = 1 if jobs is None else jobs, True
    if jobs != 1 or dask is not None:
        require_travel(plan.runs[0].scenario)
    planned = [Run(run.scenario, store) for run in plan.runs]
    runs = list({run.key: run for run in planned}.values())
    missing = list(range(len(runs))) if force else unfinished(runs)
    failed: dict[int, str] = {}
    if missing:
        store.check_writable()
        with crew_for(min(jobs or os.cpu_count() or 1, len(missing)), dask) as crew:
            failed = complete(runs, missing, crew, force=force, progress=progress)
    reasons = {runs[number].key: why for number, why in failed.items()}
    return Computed(
        plan,
        [run.place for run in planned],
        [run.full_hash for run in planned],
        {n: reasons[run.key] for n, run in enumerate(planned) if run.key in reasons},
        distinct=len(runs),
        reused=len(runs) - len(missing),
    )


def write_sweep(
    computed: Computed, store: Store, draw: Callable[[Sweep, Path], None] | None = None
) -> Sweep:
    """The tables of a sweep, and the figures that ``draw`` makes of it, in its own folder."""
    result = tables(computed, store, "sweep")
    with replacing(result.folder) as draft:
        write_tables(computed, result, draft, "sweep", curves=result.curves)
        if draw is not None:
            draw(result, draft)
    return result


def tables(computed: Computed, store: Store, what: str) -> Sweep:
    """The tables of a sweep, read from the store."""
    plan, folders, failures = computed.plan, computed.folders, computed.failures
    runs = runs_table(plan, store, folders, failures)
    kinds = metric_kinds(plan)
    if what == "compare":  # those that mean the same for all sides
        firsts = [next(group).scenario for _, group in plan.groups()]
        assert plan.request.vary is not None
        sides = len(plan.request.vary[1])
        cells = [firsts[start : start + sides] for start in range(0, len(firsts), sides)]
        kinds = [kind for kind in kinds if all(kind in common_metrics(cell) for cell in cells)]
    return Sweep(
        folder=place_in(store.root / "sweeps", plan.name, _digest(computed, what)),
        axes=plan.axes,
        runs=runs,
        summary=summary_table(plan, runs),
        curves=curves_table(plan, store, folders, failures),
        metrics={
            kind_of(metric): (metric.label, metric.grows)
            for metric in plan.runs[0].scenario.kinds.metrics
            if kind_of(metric) in kinds
        },
        notes=(),
    )


def write_tables(
    computed: Computed,
    result: Sweep,
    folder: Path,
    what: str,
    more: dict[str, Any] | None = None,
    **frames: pd.DataFrame,
) -> None:
    """Every table as CSV, and what made them; with ``more`` for those who read them again.

    ``request.yaml`` is a sweep file that asks for all of it again.
    """
    frames = {"runs": result.runs, "summary": result.summary, **frames}
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    plan = computed.plan
    plugins = plan.runs[0].scenario.plugins
    asked = as_file(plan.request, plan.name, result.folder)
    if asked is not None:
        (folder / "request.yaml").write_text(asked, encoding="utf-8")
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "results_version": RESULTS_VERSION,
        "hash": _digest(computed, what),
        "what": what,
        **(more or {}),
        "metrics": result.metrics,
        "notes": result.notes,
        "plugins": list(plugins.references) if plugins else [],
        "axes": {key: [label(value) for value in values] for key, values in plan.axes.items()},
        "runs": [place.name for place in computed.folders],
        "failed": {computed.folders[n].name: why for n, why in computed.failures.items()},
        "software": software(),
        "files": describe(folder),
    }
    write_manifest(folder, manifest)


def _digest(computed: Computed, what: str) -> str:
    """A sweep is its runs, the keys by which they are told apart, and what was asked of them."""
    plan = computed.plan
    values = [[label(value) for value in run.values.values()] for run in plan.runs]
    return hash_of([what, list(plan.axes), computed.hashes, values, plan.request.asked])
