"""Beyond the paper: asynchronous against synchronous in simulated time."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simulator.errors import ScenarioError
from simulator.figures.run import GREY
from simulator.paper.choices import DEFAULT_FILE
from simulator.paper.experiment import LOOKS, Experiment, Paper, Tables
from simulator.sweeps.comparison import comparison_request, pairs_table, speedup_table
from simulator.sweeps.plan import Plan, make_plan
from simulator.sweeps.sweep import requested
from simulator.sweeps.tables import runs_table
from simulator.sweeps.work import Run


class Beyond(Experiment):
    """Asynchronous against synchronous in time, over latency tail, loss and clock rate."""

    id = "beyond"
    title = "Beyond the paper: time to target, asynchronous against synchronous"
    size = (9.4, 6.0)
    #: Sweep files, by what they run: beside the choices, or the project's own.
    files: ClassVar = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}

    def __init__(self, paper: Paper):
        """Find the files now, not after the work of all other experiments."""
        super().__init__(paper)
        folders = (self.choices.file.parent, DEFAULT_FILE.parent)
        self._paths = {
            name: next((f / file for f in folders if (f / file).exists()), folders[0] / file)
            for name, file in self.files.items()
        }
        for path in self._paths.values():
            if not path.exists():
                raise ScenarioError(
                    f"{path}: no such file; it belongs beside {self.choices.file.name}"
                )

    @cached_property
    def _plans(self) -> dict[str, tuple[Plan, tuple[str, list[Any]]]]:
        """The runs of each file, and what is compared in it."""
        plans = {}
        for name, path in self._paths.items():
            settings = (self.sizes.beyond_grid or {}).items()
            request = comparison_request(requested(path, settings, seeds=self.sizes.beyond_seeds))
            assert request.vary is not None
            plans[name] = (make_plan(request), request.vary)
        return plans

    def tasks(self) -> list[Run]:
        """Both sides of every pair."""
        return [run for plan, _ in self._plans.values() for run in self._runs(plan)]

    def _runs(self, plan: Plan) -> list[Run]:
        return self.paper.runs(run.scenario for run in plan.runs)

    def tables(self) -> Tables:
        """Speed-ups by combination, and all pairs."""
        summed: list[pd.DataFrame] = []
        single: list[pd.DataFrame] = []
        for name, (plan, vary) in self._plans.items():
            folders = [run.place for run in self._runs(plan)]
            pairs = pairs_table(plan, runs_table(plan, self.paper.store, folders, {}), vary)
            keys = [key for key in plan.axes if key != vary[0]]
            for tables, table in ((summed, speedup_table(pairs, keys)), (single, pairs)):
                table.insert(0, "algorithm", name)
                tables.append(table)
        return {self.id: pd.concat(summed), f"{self.id}-pairs": pd.concat(single)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Speed-up against the tail, a line a clock rate, a panel a loss rate and algorithm."""
        table = tables[self.id]
        drops = sorted(table["network.drop"].unique())
        grid = figure.subplots(len(self.files), len(drops), sharex=True, sharey=True, squeeze=False)
        titles = {"mp": "model propagation", "admm": "collaborative learning (ADMM)"}
        for axes, name in zip(grid, self.files, strict=True):
            for axis, drop in zip(axes, drops, strict=True):
                own = table[(table["algorithm"] == name) & (table["network.drop"] == drop)]
                self._panel(axis, own)
                axis.set_title(f"{titles[name]}, {100 * drop:g} % lost", fontsize=9)
            axes[0].set_ylabel("time of synchronous /\ntime of asynchronous")
        for axis in grid[-1]:
            axis.set_xlabel("tail of the delays, σ")
        grid[0, 0].legend(fontsize=8)

    def _panel(self, axis: Any, table: pd.DataFrame) -> None:
        axis.axhline(1, color=GREY, linewidth=1)
        looks = [LOOKS[name] for name in ("mp", "sync", "cl", "warm", "solitary")]
        for (rate, curve), look in zip(table.groupby("clock.rate"), looks, strict=False):
            mean = curve["speedup"]
            spread = np.vstack([mean - curve["low"], curve["high"] - mean])
            text = f"{rate:g} tick{'' if rate == 1 else 's'} a second"
            x = curve["network.latency.sigma"]
            axis.errorbar(x, mean, spread, markersize=4, capsize=2, label=text, **look)
        axis.set_yscale("log")

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        bounds = int((table["bound"] != "=").sum())
        censored = f"; {bounds} of {len(table)} points are bounds" if bounds else ""
        agents = {name: plan.runs[0].scenario.task.count for name, (plan, _) in self._plans.items()}
        return (
            "Simulated time that synchronous rounds need to come within 1 % of the initial "
            "distance to the optimum, over the time of asynchronous gossip on the same problems "
            "and networks; above 1 gossip is faster. Model propagation on two moons "
            f"({agents['mp']} agents, 10 nearest neighbours) and ADMM on linear classification "
            f"({agents['admm']} agents, p = 50). "
            "Delays are lognormal with mean 100 ms; a lost message is sent again after a second "
            "in rounds, and not at all in gossip. Geometric mean and 95 % interval over "
            f"{self.sizes.beyond_seeds} seeds{censored}."
        )
