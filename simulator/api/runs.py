"""One run from Python: its problem, its result, and results that are stored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from simulator.api.progress import Wanted, run_progress
from simulator.api.showing import Shown, of
from simulator.errors import SimulatorError
from simulator.problem import build
from simulator.problem import problem as problems
from simulator.runs import result as base
from simulator.runs import run as running
from simulator.runs.listing import results_table
from simulator.runs.plugins import Given
from simulator.runs.results import load_result, open_result, save_result
from simulator.runs.run import Stopwatch
from simulator.runs.scenarios import ScenarioLike, load_scenario, path_of
from simulator.seeds import Streams
from simulator.store.store import Store
from simulator.sweeps.work import Run, unfinished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.figures.style import Look

# Figures are imported where they are wanted: Matplotlib takes a while.


class Problem(Shown, problems.Problem):
    """The learning problem of a run: who has which data, who knows whom, what would be right."""

    def title(self) -> str:
        """Its size."""
        points = f"{int(self.data.sizes.sum()):,} points"
        graph = f"{self.n:,} agents, {self.W.nnz // 2:,} edges"
        return f"Problem: {graph}, models in R^{self.p}, {self.loss.kind} loss, {points}"

    def table(self) -> pd.DataFrame:
        """One row an agent."""
        return pd.DataFrame(
            {
                "agent": self.names,
                "points": self.data.sizes,
                "confidence": self.confidence,
                "degree": self.D,
            }
        )

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """The graph, with the solitary models (and the true ones) on it."""
        from simulator.figures.run_figures import can_be_placed, model_panels

        if not can_be_placed(self):
            return
        panels = [("solitary models", self.solitary)]
        if self.targets is not None:
            panels.insert(0, ("true models", self.targets))
        figure = look.picture(0.8 + 0.5 * look.width / len(panels))
        model_panels(figure, self, panels)
        yield "agents", figure


class Result(Shown, base.Result):
    """All that came out of a run.

    ``trace`` has one row a sample, ``agents`` one an agent; ``summary`` has the final figures,
    ``models`` and ``optimum`` (n, p) the agents' models and the best ones, ``problem`` the data.
    """

    def title(self) -> str:
        """What was run, and what came of it."""
        s = self.summary
        final = s["metrics"]["final"]
        names = [name for name in base.TELLING if name in final]
        errors = ", ".join(f"{name} {final[name]:.4g}" for name in names[:2])
        sent = f"{s['simulated_time']:.4g} s, {s['communications']:,} communications"
        return f"Result {s['name']}: {base.what_ran(s)}; {s['agents']:,} agents; {sent}; {errors}"

    def table(self) -> pd.DataFrame:
        """The metrics of solitary, first, final and best models."""
        rows = [{"models": stage, **row} for stage, row in self.summary["metrics"].items()]
        return pd.DataFrame(rows)

    def pictures(self, look: Look) -> Iterator[tuple[str, Figure]]:
        """The error, and the agents."""
        from simulator.figures.run_figures import run_pictures

        return run_pictures(self, look)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, plugins: Given = None) -> Self:
        """A stored result; the problem is built again from its scenario."""
        return _shown(cls, open_result(path_of("folder", folder), plugins))


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
    loaded = load_scenario(scenario, overrides, plugins=plugins)
    kept = None if out is None else Run(loaded, Store(path_of("out", out)), reads=None)
    if kept is not None and not force and not unfinished([kept]):
        return _shown(Result, load_result(kept.store, loaded, kept.place))
    if kept is not None:
        kept.store.check_writable()
    with run_progress(loaded, progress) as show, Stopwatch() as watch:
        result = running.run(loaded, progress=show)
    if kept is not None:
        from simulator.figures.run_figures import draw_run

        save_result(
            kept.store,
            result,
            full_hash=kept.full_hash,
            wall_time=watch.seconds,
            draw=draw_run,
            force=force,
        )
    return _shown(Result, result)


def _shown(kind: type[Any], result: base.Result) -> Any:
    return of(kind, replace(result, problem=of(Problem, result.problem)))


def build_problem(
    scenario: ScenarioLike,
    overrides: Mapping[str, Any] | None = None,
    *,
    plugins: Given = None,
) -> Problem:
    """The learning problem of a scenario, without running it."""
    loaded = load_scenario(scenario, overrides, plugins=plugins)
    streams = Streams(loaded.seed, loaded.problem_seed)
    problem: Problem = of(Problem, build.build_problem(loaded, streams))
    return problem


def results(out: str | os.PathLike[str] = "results") -> pd.DataFrame:
    """What is stored below a folder: one row a run, a sweep or a comparison, newest first.

    ``Result.load(folder)`` reads a run again, ``Sweep.load``, ``Comparison.load`` and
    ``Frontier.load`` the others.
    """
    root = path_of("out", out)
    if root.exists() and not root.is_dir():
        raise SimulatorError(f"out: {root} is not a folder")
    return results_table(root)
