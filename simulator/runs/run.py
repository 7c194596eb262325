"""One run: what Python calls for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pandas as pd

from simulator.errors import SimulatorError
from simulator.problem import build
from simulator.problem.problem import Problem
from simulator.runs.plugins import Given
from simulator.runs.progress import Wanted, run_progress
from simulator.runs.result import Result, load_result, results_table, save_result
from simulator.runs.scenarios import ScenarioLike, load_scenario, path_of
from simulator.runs.simulation import Stopwatch, simulate
from simulator.runs.tasks import Run, unfinished
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.store.store import Store


def run(
    scenario: ScenarioLike,
    overrides: Mapping[str, Any] | None = None,
    *,
    plugins: Given = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Wanted = True,
) -> Result:
    """Run a scenario: a file, a dictionary of the same keys, or one that was loaded before.

    Without ``out`` nothing is written.  With it the result is kept below that folder, as the
    command line does, and one that is there is read instead of computed, unless ``force``.
    ``progress`` is shown on a terminal and in a notebook; False silences it, and a function is
    called with a ``Progress`` after each sample.

    >>> from simulator import run
    >>> tiny = {"task": {"kind": "mean_estimation", "agents": 20}, "stop": {"time": 5}}
    >>> result = run(tiny, {"network.drop": 0.1}, progress=False)
    >>> result.trace["l2_error"].iloc[-1] < result.trace["l2_error"].iloc[0]
    True
    """
    as_it_is = isinstance(scenario, Scenario) and not overrides and plugins is None
    loaded = scenario if as_it_is else load_scenario(scenario, overrides, plugins=plugins)
    assert isinstance(loaded, Scenario)
    kept = None if out is None else Run(loaded, Store(path_of("out", out)), reads=None)
    if kept is not None and not force and not unfinished([kept]):
        return load_result(kept.store, loaded, kept.place)
    if kept is not None:
        kept.store.check_writable()
    with run_progress(loaded.name, progress) as show, Stopwatch() as watch:
        result = simulate(loaded, progress=show)
    if kept is not None:
        save_result(
            kept.store,
            result,
            full_hash=kept.full_hash,
            wall_time=watch.seconds,
            draw=Result.draw,
            force=force,
        )
    return result


def build_problem(
    scenario: ScenarioLike,
    overrides: Mapping[str, Any] | None = None,
    *,
    plugins: Given = None,
) -> Problem:
    """The learning problem of a scenario, without running it."""
    loaded = load_scenario(scenario, overrides, plugins=plugins)
    return build.build_problem(loaded, Streams(loaded.seed, loaded.problem_seed))


def results(out: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """What is stored below a folder: one row a run, a sweep or a comparison, newest first.

    ``Result.load(folder)`` reads a run again, ``Sweep.load``, ``Comparison.load`` and
    ``Frontier.load`` the others.
    """
    root = path_of("out", out)
    if root.exists() and not root.is_dir():
        raise SimulatorError(f"out: {root} is not a folder")
    return results_table(root)
