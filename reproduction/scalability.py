"""Appendix E: the target models and their links, and the growth with the number of agents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
from reproduction.experiment import (
    Experiment,
    Paper,
    Tables,
    geometric,
    in_parts,
    line,
    reached,
    summary,
    trace,
)
from reproduction.problems import neighbours, separators
from simulator.figures.run import GREY, targets_and_links
from simulator.problem.build import build_problem
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.sweeps.work import Run, Task


class Links(Experiment):
    """Figure 4."""

    id = "fig4"
    title = "Target models and the links between them"
    size = (4.4, 4.2)

    def tasks(self) -> Sequence[Task]:
        """Nothing that takes time."""
        return []

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

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        links = tables[f"{self.id}-links"]
        return (
            "Linear classification, one instance (seed 0): target models of 100 agents in their "
            f"plane and the {len(links)} links of weight above "
            f"{self.choices['linear_classification.min_weight']:g}, darker where stronger."
        )


class Scalability(Experiment):
    """Figure 5."""

    id = "fig5"
    title = "Communications and time to 90 % of the optimum's accuracy, against the network's size"
    size = (10.2, 3.5)
    names: ClassVar = {"cl": "asynchronous ADMM", "mp": "asynchronous MP"}

    def tasks(self) -> list[Run]:
        """Both algorithms on every instance of every size."""
        return [
            run
            for n in self.sizes.agents
            for run in scaling_runs(self.paper, self.choices, n, self.sizes.scale_instances)
        ]

    def tables(self) -> Tables:
        """Communications and time to 90 % by size, and the slopes of their logarithms."""
        rows, single = [], []
        parts = in_parts(self.tasks(), len(self.sizes.agents))
        for n, own in zip(self.sizes.agents, parts, strict=True):
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

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        block = {n: self.choices[f"scalability.{n}"] for n in ("k", "alpha", "mu", "rho")}
        table = tables[self.id]
        few, many = table.iloc[0], table.iloc[-1]
        return (
            "Linear classification, p = 50, graph of "
            f"{block['k']} nearest neighbours by angle with weights 1: communications (left on "
            "logarithmic, middle on linear axes) and simulated time (right) until the mean test "
            "accuracy is 90 % of that of the algorithm's optimum; geometric mean and 95 % interval "
            f"over {self.sizes.scale_instances} random instances for each n. α = "
            f"{block['alpha']:g}, μ = {block['mu']:g}, ρ = {block['rho']:g}, start "
            f"`{self.choices['linear_classification.start']}`, no delay, one tick a second. "
            "Accuracy is looked at every n/10 communications for MP and every n/2 for ADMM. "
            f"With {block['k']} neighbours among {few['agents']:.0f} agents the optimum is less "
            f"accurate than among {many['agents']:.0f} (MP {few['mp_optimum']:.3f} and "
            f"{many['mp_optimum']:.3f}, ADMM {few['cl_optimum']:.3f} and "
            f"{many['cl_optimum']:.3f}), and 90 % of it is less of the way from the solitary "
            f"models' accuracy to it (MP {100 * few['mp_way']:.0f} and "
            f"{100 * many['mp_way']:.0f} %, ADMM {100 * few['cl_way']:.0f} and "
            f"{100 * many['cl_way']:.0f} %): small networks are given an easier task."
        )


def scaling_runs(
    paper: Paper,
    choices: Choices,
    n: int,
    instances: int,
    algorithms: Sequence[str] = ("mp", "cl"),
) -> list[Run]:
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

    return paper.runs(scenario(algo, seed) for algo in algorithms for seed in range(instances))


def scaling_table(runs: Iterable[Run]) -> pd.DataFrame:
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
