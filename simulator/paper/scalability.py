"""Appendix E: the target models and their links, and the growth with the number of agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from simulator.figures.run import GREY, targets_and_links
from simulator.paper.choices import Choices
from simulator.paper.classification import algorithm
from simulator.paper.experiment import (
    Experiment,
    Paper,
    Tables,
    in_parts,
    line,
    reached,
    summary,
    trace,
    with_interval,
)
from simulator.paper.problems import neighbours, separators
from simulator.problem.tasks import build_problem
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
    title = "Communications to reach 90 % of the optimum's accuracy, against the number of agents"
    size = (4.8, 3.5)

    def tasks(self) -> list[Run]:
        """Both algorithms on every instance of every size."""
        return [
            run
            for n in self.sizes.agents
            for run in scaling_runs(self.paper, self.choices, n, self.sizes.scale_instances)
        ]

    def tables(self) -> Tables:
        """Communications to 90 % by size, and the slopes of their logarithms."""
        rows, single = [], []
        parts = in_parts(self.tasks(), len(self.sizes.agents))
        for n, own in zip(self.sizes.agents, parts, strict=True):
            table = scaling_table(own)
            row: dict[str, Any] = {"agents": n, "instances": self.sizes.scale_instances}
            for algo, group in table.groupby("algorithm"):
                row |= with_interval(str(algo), group["communications"])
            rows.append(row)
            single.append(table)
        every = pd.concat(single, ignore_index=True)
        fits = [
            {"algorithm": algo, **self._growth(group)} for algo, group in every.groupby("algorithm")
        ]
        return {self.id: pd.DataFrame(rows), f"{self.id}-slopes": pd.DataFrame(fits)}

    def _growth(self, runs: pd.DataFrame) -> dict[str, float]:
        """The exponent of n, over all sizes and the larger half; how straight the line is."""
        larger = runs[runs["agents"] >= self.sizes.agents[len(self.sizes.agents) // 2]]
        upper = slope(np.log(larger["agents"]), np.log(larger["communications"]))
        straight = stats.linregress(runs["agents"], runs["communications"])
        return {
            **slope(np.log(runs["agents"]), np.log(runs["communications"])),
            **{name.replace("slope", "upper_half"): value for name, value in upper.items()},
            "straight_r2": float(straight.rvalue**2),
        }

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Both algorithms, and proportionality for comparison, on logarithmic axes."""
        table, axis = tables[self.id], figure.subplots()
        line(axis, table, "agents", "cl", "cl", "asynchronous ADMM")
        line(axis, table, "agents", "mp", "mp", "asynchronous MP")
        for name in ("cl", "mp"):
            text = "proportional to n" if name == "cl" else None
            through = table["agents"] * (table[name] / table["agents"]).mean()
            axis.plot(table["agents"], through, color=GREY, linestyle=":", lw=1, label=text)
        axis.set_xscale("log")
        axis.set_yscale("log")
        ticks = [n for n in (100, 200, 300, 500, 700, 1000) if n in set(table["agents"])]
        axis.set_xticks(ticks, [f"{n}" for n in ticks])
        axis.minorticks_off()
        axis.set_xlabel("agents n")
        axis.set_ylabel("communications to 90 %\nof the optimum's accuracy")
        axis.legend(fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        block = {n: self.choices[f"scalability.{n}"] for n in ("k", "alpha", "mu", "rho")}
        return (
            "Linear classification, p = 50, graph of "
            f"{block['k']} nearest neighbours by angle with weights 1: communications until the "
            "mean test accuracy is 90 % of that of the algorithm's optimum; mean and 95 % interval "
            f"over {self.sizes.scale_instances} random instances for each n. α = "
            f"{block['alpha']:g}, μ = {block['mu']:g}, ρ = {block['rho']:g}, start "
            f"`{self.choices['linear_classification.start']}`. Accuracy is looked at every n/20 "
            "communications for MP and every n/2 for ADMM."
        )


def scaling_runs(paper: Paper, choices: Choices, n: int, instances: int) -> list[Run]:
    """Model propagation and ADMM on graphs of nearest neighbours."""

    def scenario(algo: str, seed: int) -> Scenario:
        # MP is there after n or 2 n, and has told everybody (hello) after 13 n; ADMM after 30 n.
        every, length = (n // 20, 20 * n) if algo == "mp" else (n // 2, 150 * n)
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


def scaling_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Communications to 90 % of the optimum's accuracy, a row a run."""
    rows = []
    for run in runs:
        final = summary(run)
        level = 0.9 * final["metrics"]["optimum"]["accuracy"]
        kind = "mp" if run.scenario.algorithm.kind == "mp" else "cl"
        row: dict[str, Any] = {"algorithm": kind, "agents": final["agents"]}
        row |= {"seed": run.scenario.seed, "level": level}
        row["communications"] = reached(trace(run), "accuracy", level)
        rows.append(row)
    return pd.DataFrame(rows)


def slope(x: Any, y: Any) -> dict[str, float]:
    """Slope of a straight line, and its 95 % interval; unknown where all x are the same."""
    if len(set(x)) < 2:
        return dict.fromkeys(("slope", "slope_low", "slope_high"), float("nan"))
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr) if len(x) > 2 else float("nan")
    return {"slope": fit.slope, "slope_low": fit.slope - half, "slope_high": fit.slope + half}
