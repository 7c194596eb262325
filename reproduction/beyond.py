"""Beyond the paper: gossip against rounds in simulated time, the rounds at their best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.experiment import LOOKS, Experiment, Tables
from reproduction.problems import ENGINE
from simulator.figures.run import GREY
from simulator.sweeps.comparison import comparison_request, pairs_table, speedup_table
from simulator.sweeps.knobs import HELD_OUT_SEEDS, Tuning, plan_knobs, tune
from simulator.sweeps.plan import Plan, make_plan
from simulator.sweeps.request import Request
from simulator.sweeps.sweep import Computed, requested
from simulator.sweeps.tables import runs_table
from simulator.sweeps.work import Run

#: The swept keys, and what they are called in the tables.
NAMES = {
    "world": "world",
    "$spread": "spread",
    "network.drop": "drop",
    "clock.rate": "rate",
}


class Beyond(Experiment):
    """Gossip against rounds in time, over the spread of delays, loss and clock rate."""

    id = "beyond"
    title = "Beyond the paper: time to target, gossip against rounds whose timer is tuned"
    size = (9.8, 7.6)
    #: Sweep files, by what they run.
    files: ClassVar = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}
    algorithms: ClassVar = {"mp": "model propagation", "admm": "ADMM"}

    @cached_property
    def _requests(self) -> dict[str, Request]:
        """What each file asks for, in the size that is wanted."""
        return {name: self._request(name) for name in self.files}

    def _request(self, name: str) -> Request:
        path = Path(__file__).parent / self.files[name]
        asked = requested(path, (), seeds=self.sizes.beyond_seeds)
        own = self.sizes.beyond_grid.get(name, {})
        asked = replace(asked, grid={**asked.grid, "engine": [ENGINE], **own})
        most = self.sizes.beyond_timers
        tuned = {side: (key, values[:most]) for side, (key, values) in asked.tune.items()}
        return comparison_request(replace(asked, tune=tuned), curves=False)

    # Two stages: rounds choose their timers on held-out seeds, then both sides run.
    def stages(self) -> Iterator[list[Run]]:
        """The held-out runs, then those that are reported, which depend on them."""
        for stage in (self._held_out, self._reported):
            yield [run for name in self.files for run in self._runs(stage(name))]

    def tasks(self) -> list[Run]:
        """All runs of both stages, of which the first must be done."""
        return [run for stage in self.stages() for run in stage]

    def _runs(self, plan: Plan) -> list[Run]:
        return self.paper.runs((run.scenario for run in plan.runs), reads=())

    def _held_out(self, name: str) -> Plan:
        request = self._requests[name]
        return plan_knobs(request, request.tune, None, held_out=True).plan

    def _tuned(self, name: str) -> tuple[Request, Tuning]:
        request, found = tune(self._requests[name], None, self.paper.store, self._there)
        assert found is not None
        return request, found

    def _there(self, plan: Plan) -> Computed:
        """The finished runs of a plan."""
        runs = self._runs(plan)
        return Computed(plan, [run.place for run in runs], [run.full_hash for run in runs])

    def _reported(self, name: str) -> Plan:
        return make_plan(self._tuned(name)[0])

    def tables(self) -> Tables:
        """Speed-ups by combination, all pairs, and every timer on the held-out seeds."""
        parts: dict[str, list[pd.DataFrame]] = {"": [], "-pairs": [], "-timers": []}
        for name in self.files:
            request, tuning = self._tuned(name)
            plan = make_plan(request)
            assert request.vary is not None
            runs = runs_table(plan, self.paper.store, self._there(plan).folders, {})
            pairs = pairs_table(plan, runs, request.vary)
            keys = [key for key in plan.axes if key != request.vary[0]]
            found = {"": speedup_table(pairs, keys), "-pairs": pairs, "-timers": tuning.table}
            for ending, table in found.items():
                parts[ending].append(_named(name, table, request))
        return {f"{self.id}{end}": pd.concat(own) for end, own in parts.items()}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Speed-up against the spread, a line a clock rate, a row an algorithm and loss rate."""
        table = tables[self.id]
        rows = table[["algorithm", "drop"]].drop_duplicates().to_numpy().tolist()
        worlds = list(table["world"].unique())
        grid = figure.subplots(len(rows), len(worlds), sharex=True, sharey=True, squeeze=False)
        for axes, (name, drop) in zip(grid, rows, strict=True):
            for axis, world in zip(axes, worlds, strict=True):
                own = table[(table["algorithm"] == name) & (table["drop"] == drop)]
                own = own[own["world"] == world]
                if len(own):
                    _panel(axis, own)
                    text = f"{self.algorithms[name]}, {100 * drop:g} % lost,\nslowness {world}"
                    axis.set_title(text, fontsize=9)
                    axis.set_xlabel("spread σ of the delays' logarithm")
                    axis.tick_params(labelbottom=True)
                else:
                    axis.set_axis_off()
            axes[0].set_ylabel("ratio, rounds / gossip")
        most, least = (max(4, table["speedup"].max()), min(0.25, table["speedup"].min()))
        grid[0, 0].set_ylim(least / 2.5, most * 2.5)  # intervals of few seeds are wide
        handles, texts = grid[0, 0].get_legend_handles_labels()
        hollow: dict[str, Any] = {
            "color": GREY,
            "marker": "o",
            "markerfacecolor": "white",
            "linestyle": "none",
        }
        handles.append(Line2D([], [], **hollow))
        texts = [*texts, "hollow: undecided"]
        figure.legend(handles, texts, loc="outside upper center", ncols=5, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        bounds = int((table["bound"] != "=").sum())
        censored = f"; {bounds} of {len(table)} points are bounds" if bounds else ""
        tasks = {name: self._held_out(name).runs[0].scenario.task for name in self._requests}
        request = self._requests["mp"]
        timers = ", ".join(str(value) for value in request.tune["sync"][1])
        return (
            "Simulated time that synchronous rounds need to come within 1 % of the initial "
            "distance to the optimum, over the time of asynchronous gossip on the same problems "
            "and networks: above 1 gossip is faster, and where the interval contains 1 (hollow) "
            "it is undecided. Model propagation on two moons "
            f"({tasks['mp'].count} agents, 10 nearest neighbours) and ADMM on linear "
            f"classification ({tasks['admm'].count} agents, p = {tasks['admm'].numbers}). Delays "
            "are 100 ms in the mean; their spread "
            "passes (each message draws anew) or stays with the link or the sending agent. What "
            "has not arrived when the timer rings is sent again in rounds: in each case they have "
            f"the fastest timer ({timers}) on {HELD_OUT_SEEDS} held-out seeds among those that "
            f"send at most {request.budget:g} times the least. Gossip sends nothing again. Grey: "
            "the ratio of communications, for the fastest clock. Geometric mean and 95 % interval "
            f"over {self.sizes.beyond_seeds} seeds{censored}; beyond-timers.csv has every timer."
        )


def _named(algorithm: str, table: pd.DataFrame, request: Request) -> pd.DataFrame:
    """A table with the same columns for all algorithms: keys with one value have none yet."""
    alone = {key: values[0] for key, values in request.grid.items() if key in NAMES}
    table = table.assign(**{key: value for key, value in alone.items() if key not in table})
    table = table.rename(columns=NAMES).assign(algorithm=algorithm)
    first = ["algorithm", *NAMES.values()]
    return table[[*first, *(name for name in table if name not in first)]]


def _panel(axis: Any, table: pd.DataFrame) -> None:
    axis.axhline(1, color=GREY, linewidth=1)
    looks = [LOOKS[name] for name in ("mp", "sync", "cl", "warm")]
    rates = sorted(table["rate"].unique(), reverse=True)
    for rate, look in zip(rates, reversed(looks[:3]), strict=False):
        curve = table[table["rate"] == rate]
        mean = curve["speedup"]
        spread = np.vstack([mean - curve["low"], curve["high"] - mean])
        text = f"time, {rate:g} tick{'' if rate == 1 else 's'} a second"
        style = {**look, "marker": None}
        axis.errorbar(curve["spread"], mean, spread, capsize=2, label=text, **style)
        decided = (curve["low"] > 1) | (curve["high"] < 1)
        for which, face in ((decided, look["color"]), (~decided, "white")):
            own = curve[which]
            dots = {"color": look["color"], "markerfacecolor": face, "markersize": 5, "zorder": 3}
            axis.plot(own["spread"], own["speedup"], look["marker"], **dots)
    curve = table[table["rate"] == rates[0]]
    text = "communications, fastest clock"
    style = {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.2}
    axis.plot(curve["spread"], curve["communications_ratio"], label=text, **style)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
