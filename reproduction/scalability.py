"""Appendix E: the target models and their links, and the growth with the number of agents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from scipy import stats
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.classification import algorithm
from reproduction.drawing import line
from reproduction.experiment import Experiment, Groups, Paper, Tables
from reproduction.measuring import geometric, reached, summary, trace
from reproduction.problems import neighbours, separators
from simulator import Scenario
from simulator.figures.run_figures import targets_and_links
from simulator.figures.style import GREY
from simulator.problem.build import build_problem
from simulator.seeds import Streams
from simulator.sweeps.work import Run


class Links(Experiment):
    """Figure 4."""

    id = "fig4"
    size = (4.4, 4.2)

    def tables(self) -> Tables:
        """The agents' targets, and the edges with their weights."""
        with threadpool_limits(limits=1, user_api="blas"):
            problem = build_problem(separators(self.choices), Streams(0))
        assert problem.targets is not None
        agents = pd.DataFrame(problem.targets[:, :2], columns=["x", "y"])
        agents.insert(0, "agent", np.arange(problem.n))
        edges = problem.W.tocoo()
        upper = edges.row < edges.col
        columns = {"i": edges.row[upper], "j": edges.col[upper], "weight": edges.data[upper]}
        return {self.id: agents, f"{self.id}-links": pd.DataFrame(columns)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Points in the plane, and lines between them."""
        agents, links = tables[self.id], tables[f"{self.id}-links"]
        n = len(agents)
        W = csr_array((links["weight"], (links["i"], links["j"])), shape=(n, n))
        targets_and_links(figure, agents[["x", "y"]].to_numpy(), W)

    def words(self, tables: Tables) -> dict[str, Any]:
        """How many links there are."""
        return {"links": len(tables[f"{self.id}-links"])}


class Scalability(Experiment):
    """Figure 5."""

    id = "fig5"
    size = (10.2, 3.5)
    names: ClassVar = {"cl": "asynchronous ADMM", "mp": "asynchronous MP"}

    def groups(self) -> Groups:
        """Both algorithms on every instance of every size."""
        instances = self.sizes.scale_instances
        return {n: scaling_runs(self.paper, self.choices, n, instances) for n in self.sizes.agents}

    def tables(self) -> Tables:
        """Communications and time to 90 % by size, and the slopes of their logarithms."""
        rows, single = [], []
        for n, own in self.groups().items():
            table = scaling_table(own)
            row: dict[str, Any] = {"agents": n, "instances": self.sizes.scale_instances}
            for algo, group in table.groupby("algorithm"):
                row |= geometric(str(algo), group["communications"])
                row |= geometric(f"{algo}_time", group["time"])
                row[f"{algo}_optimum"] = float(group["optimum"].mean())
                row[f"{algo}_way"] = float(group["way"].mean())
            rows.append(row)
            single.append(table)
        every = pd.concat(single, ignore_index=True)
        fits = [
            {"algorithm": algo, "measure": measure, **self._growth(group, measure)}
            for algo, group in every.groupby("algorithm")
            for measure in ("communications", "time")
        ]
        return {self.id: pd.DataFrame(rows), f"{self.id}-slopes": pd.DataFrame(fits)}

    def _growth(self, runs: pd.DataFrame, measure: str) -> dict[str, float]:
        """The exponent of n, over all sizes and the larger half; how straight the line is."""
        larger = runs[runs["agents"] >= self.sizes.agents[len(self.sizes.agents) // 2]]
        upper = slope(np.log(larger["agents"]), np.log(larger[measure]))
        straight = stats.linregress(runs["agents"], runs[measure])
        return {
            **slope(np.log(runs["agents"]), np.log(runs[measure])),
            **{name.replace("slope", "upper_half"): value for name, value in upper.items()},
            "straight_r2": float(straight.rvalue**2),
        }

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Communications on logarithmic and on linear axes, and time."""
        table = tables[self.id]
        log, linear, time = figure.subplots(1, 3)
        for name, text in self.names.items():
            through = table["agents"] * (table[name] / table["agents"]).mean()
            for axis in (log, linear):
                line(axis, table, "agents", name, name, text)
                axis.plot(table["agents"], through, color=GREY, linestyle=":", lw=1)
            line(time, table, "agents", f"{name}_time", name, text)
        log.plot([], [], color=GREY, linestyle=":", lw=1, label="proportional to n")
        for axis in (log, linear, time):
            axis.set_xlabel("agents n")
        log.set_xscale("log")
        ticks = [n for n in table["agents"] if n not in (400, 600, 800, 900)]  # too narrow for all
        log.set_xticks(ticks, [f"{n}" for n in ticks])
        log.xaxis.set_minor_locator(NullLocator())
        times = table[[f"{name}_time" for name in self.names]].to_numpy()
        for axis in (log, time):
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
        log.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        time.set_ylim(times.min() / 4, times.max() * 4)  # intervals of few instances are wide
        log.set_ylabel("communications to 90 %\nof the optimum's accuracy")
        linear.set_xlim(left=0)
        linear.set_ylim(bottom=0)
        linear.set_ylabel("communications")
        time.set_xlim(left=0)
        time.set_ylabel("time to 90 % (ticks of an agent's clock)")
        handles, texts = log.get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper center", ncols=3, fontsize=8)

    def words(self, tables: Tables) -> dict[str, Any]:
        """The smallest and the largest networks."""
        table = tables[self.id]
        percent = {f"{name}_percent": 100 * table[f"{name}_way"] for name in self.names}
        table = table.assign(**percent)
        return {"few": table.iloc[0], "many": table.iloc[-1]}


def scaling_runs(paper: Paper, choices: Choices, n: int, instances: int) -> list[Run]:
    """Model propagation and ADMM on graphs of nearest neighbours."""
    # Everybody has said hello after 1.3 k n messages; MP needs n or 2 n more, ADMM 45 n.
    hello = math.ceil(1.5 * choices["scalability.k"])

    def scenario(algo: str, seed: int) -> Scenario:
        every, length = (n // 10, (hello + 8) * n) if algo == "mp" else (n // 2, (hello + 130) * n)
        return neighbours(
            choices,
            n,
            name="fig5",
            seed=seed,
            algorithm=algorithm(choices, "scalability", algo),
            stop={"communications": length},
            record={"every_communications": every},
        )

    return paper.runs(scenario(algo, seed) for algo in ("mp", "cl") for seed in range(instances))


def scaling_table(runs: Iterable[Any]) -> pd.DataFrame:
    """Communications and time to 90 % of the optimum's accuracy, a row a run.

    ``way``: how much of the way from the start's accuracy to the optimum's that is.
    """
    rows = []
    for run in runs:
        final, found = summary(run), trace(run)
        best, start = (final["metrics"][name]["accuracy"] for name in ("optimum", "start"))
        level = 0.9 * best
        kind = "mp" if run.scenario.algorithm.kind == "mp" else "cl"
        row: dict[str, Any] = {"algorithm": kind, "agents": final["agents"]}
        row |= {"seed": run.scenario.seed, "optimum": best, "way": (level - start) / (best - start)}
        row["communications"] = reached(found, "accuracy", level)
        row["time"] = reached(found, "accuracy", level, axis="time")
        rows.append(row)
    return pd.DataFrame(rows)


def slope(x: Any, y: Any) -> dict[str, float]:
    """Slope of a straight line, and its 95 % interval; unknown where all x are the same."""
    if len(set(x)) < 2:
        return dict.fromkeys(("slope", "slope_low", "slope_high"), float("nan"))
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr) if len(x) > 2 else float("nan")
    return {"slope": fit.slope, "slope_low": fit.slope - half, "slope_high": fit.slope + half}
