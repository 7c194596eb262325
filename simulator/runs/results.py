"""Results of runs in the store: what is kept of them, their figures, and reading them back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from simulator.errors import SimulatorError, StoreWarning
from simulator.problem.build import build_problem
from simulator.runs.plugins import Given, load_plugins
from simulator.runs.result import Result
from simulator.runs.scenarios import load_scenario
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.store.store import RESULTS_VERSION, Store, Stored


def save_result(
    store: Store,
    result: Result,
    *,
    full_hash: str,
    wall_time: float,
    draw: Callable[[Result, Path], None] | None = None,
    force: bool = False,
) -> Path:
    """Store a result, with the figures that ``draw`` makes of it; its folder."""
    arrays = {"models": result.models, "solitary": result.problem.solitary}
    if result.optimum is not None:
        arrays["optimum"] = result.optimum
    if result.problem.targets is not None:
        arrays["targets"] = result.problem.targets
    return store.save(
        result.scenario,
        Stored(
            result.trace, result.agents, result.summary, arrays, result.events_file, result.kept
        ),
        full_hash=full_hash,
        wall_time=wall_time,
        draw=None if draw is None else partial(draw, result),
        force=force,
    )


def load_result(store: Store, scenario: Scenario, folder: Path) -> Result:
    """A stored result; the problem is built again from the scenario."""
    stored = store.load(folder)
    problem = build_problem(scenario, Streams(scenario.seed, scenario.problem_seed))
    was = stored.arrays["solitary"]
    if was.shape != problem.solitary.shape or not np.allclose(was, problem.solitary):
        version = store.manifest(folder)["results_version"]
        warnings.warn(
            f"{folder}: data and graph are built again, and are not those of the run, whose "
            f"results are of version {version}: this program has version {RESULTS_VERSION}",
            StoreWarning,
            stacklevel=2,
        )
    return Result(
        scenario=scenario,
        problem=problem,
        trace=stored.trace,
        agents=stored.agents,
        summary=stored.summary,
        models=stored.arrays["models"],
        optimum=stored.arrays.get("optimum"),
        events_file=stored.events,
        kept=stored.history,
    )


def open_result(folder: Path, plugins: Given = None) -> Result:
    """A stored result by its folder alone: its own scenario, with the plugins of then."""
    store = Store(folder.parent)
    file = store.scenario_file(folder)
    made_with = store.manifest(folder)["plugins"]
    loaded = load_plugins(plugins) if made_with else None
    if made_with and (loaded is None or loaded.sha256 != made_with["sha256"]):
        names = " ".join(f"--plugin {name}" for name in made_with["references"])
        what = "made with a plugin" if loaded is None else "made with another plugin, or before"
        raise SimulatorError(f"{folder}: {what}: give {names}, as it was then")
    return load_result(store, load_scenario(file, plugins=loaded), folder)


def complete_figures(
    store: Store,
    scenario: Scenario,
    folder: Path,
    draw: Callable[[Result, Path], None],
    *,
    again: bool = False,
) -> None:
    """Draw the figures of a stored result, unless they are there; ``again`` even then."""
    if again or not store.has_figures(folder):
        store.add_figures(folder, partial(draw, load_result(store, scenario, folder)))
