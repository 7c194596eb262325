"""Results of runs in the store: what is kept of them, their figures, and reading them back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from simulator.problem.tasks import build_problem
from simulator.runs.plugins import Plugin
from simulator.runs.run import Result
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.store.store import Draw, Store, Stored


def save_result(
    store: Store,
    result: Result,
    *,
    full_hash: str,
    wall_time: float,
    plugin: Plugin | None = None,
    figures: bool = False,
    force: bool = False,
) -> Path:
    """Store a result, with figures if wanted; its folder."""
    arrays = {"models": result.models, "solitary": result.problem.solitary}
    if result.optimum is not None:
        arrays["optimum"] = result.optimum
    if result.problem.targets is not None:
        arrays["targets"] = result.problem.targets
    return store.save(
        result.scenario,
        Stored(result.trace, result.agents, result.summary, arrays),
        full_hash=full_hash,
        wall_time=wall_time,
        plugin=plugin,
        draw=_drawing(result) if figures else None,
        force=force,
    )


def load_result(store: Store, scenario: Scenario, folder: Path) -> Result:
    """A stored result; the problem is built again from the scenario."""
    stored = store.load(folder)
    problem = build_problem(scenario, Streams(scenario.seed, scenario.problem_seed))
    return Result(
        scenario=scenario,
        problem=problem,
        trace=stored.trace,
        agents=stored.agents,
        summary=stored.summary,
        models=stored.arrays["models"],
        optimum=stored.arrays.get("optimum"),
    )


def complete_figures(store: Store, scenario: Scenario, folder: Path) -> None:
    """Draw the figures of a stored result, unless they are there."""
    if not store.has_figures(folder):
        store.add_figures(folder, _drawing(load_result(store, scenario, folder)))


def _drawing(result: Result) -> Draw:
    from simulator.figures.run import draw_run

    return partial(draw_run, result)
