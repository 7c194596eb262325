"""Appendix E: the target models and their links, and the growth with the number of agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from scipy import stats

from reproduction.choices import Choices
from reproduction.classification import algorithm
from reproduction.measuring import geometric, line, reached, slope, summary, trace
from reproduction.paper import Made, Paper
from reproduction.problems import neighbours, separators
from simulator import Scenario
from simulator.figures.run_figures import targets_and_links
from simulator.figures.style import GREY
from simulator.problem.build import build_problem
from simulator.runs.tasks import Run
from simulator.seeds import Streams


def fig4(paper: Paper, figure: Figure) -> Made:
    """The agents' targets in their plane, and the edges with their weights."""
    problem = build_problem(separators(paper.choices), Streams(0))
    assert problem.targets is not None
    plane, edges = problem.targets[:, :2], problem.W.tocoo()
    agents = pd.DataFrame(plane, columns=["x", "y"])
    agents.insert(0, "agent", np.arange(problem.n))
    upper = edges.row < edges.col
    columns = {"i": edges.row[upper], "j": edges.col[upper], "weight": edges.data[upper]}
    links = pd.DataFrame(columns)
    targets_and_links(figure, plane, problem.W)
    return {"fig4": agents, "fig4-links": links}, {"links": len(links)}


# --- figure 5 -----------------------------------------------------------------------------------
NAMES = {"cl": "asynchronous ADMM", "mp": "asynchronous MP"}


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


def scaling_table(runs: Sequence[Run]) -> pd.DataFrame:
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
        later = found[["communications", "time"]].iloc[[len(found) // 2, -1]].diff().iloc[-1]
        row["parallel"] = later["communications"] / later["time"]  # without the hellos
        rows.append(row)
    return pd.DataFrame(rows)


def fig5(paper: Paper, figure: Figure) -> Made:
    """Communications and time to 90 % by size, and the slopes of their logarithms."""
    sizes, choices, rows, single = paper.sizes, paper.choices, [], []
    instances = sizes.scale_instances
    runs = {n: scaling_runs(paper, choices, n, instances) for n in sizes.agents}
    for n, own in paper.finished(runs).items():
        found = scaling_table(own)
        row: dict[str, Any] = {"agents": n, "instances": instances}
        for algo, group in found.groupby("algorithm"):
            row |= geometric(str(algo), group["communications"])
            row |= geometric(f"{algo}_time", group["time"])
            row[f"{algo}_optimum"] = float(group["optimum"].mean())
            row[f"{algo}_way"] = float(group["way"].mean())
        rows.append(row)
        single.append(found)
    half = sizes.agents[len(sizes.agents) // 2]
    fits = [
        {"algorithm": algo, "measure": measure, **_growth(group, measure, half)}
        for algo, group in pd.concat(single, ignore_index=True).groupby("algorithm")
        for measure in ("communications", "time", "parallel")
    ]
    table = pd.DataFrame(rows)
    _draw(figure, table)
    shown = table.assign(**{f"{name}_percent": 100 * table[f"{name}_way"] for name in NAMES})
    return (
        {"fig5": table, "fig5-slopes": pd.DataFrame(fits)},
        {"few": shown.iloc[0], "many": shown.iloc[-1]},
    )


def _growth(runs: pd.DataFrame, measure: str, half: int) -> dict[str, float]:
    """The exponent of n, over all sizes and from ``half`` on; how straight the line is."""
    larger = runs[runs["agents"] >= half]
    upper = slope(np.log(larger["agents"]), np.log(larger[measure]))
    straight = stats.linregress(runs["agents"], runs[measure])
    return {
        **slope(np.log(runs["agents"]), np.log(runs[measure])),
        **{name.replace("slope", "upper_half"): value for name, value in upper.items()},
        "straight_r2": float(straight.rvalue**2),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Communications, beside what is proportional to n, and time."""
    sent, time = figure.subplots(1, 2)
    for name, text in NAMES.items():
        through = table["agents"] * (table[name] / table["agents"]).mean()
        line(sent, table, "agents", name, name, text)
        sent.plot(table["agents"], through, color=GREY, linestyle=":", lw=1)
        line(time, table, "agents", f"{name}_time", name, text)
    sent.plot([], [], color=GREY, linestyle=":", lw=1, label="proportional to n")
    sent.set(xlim=(0, None), ylim=(0, None), xlabel="agents n")
    sent.set_ylabel("communications to 90 %\nof the optimum's accuracy")
    times = table[[f"{name}_time" for name in NAMES]].to_numpy()
    # Intervals of few instances are wide.
    time.set(xlim=(0, None), ylim=(times.min() / 4, times.max() * 4), yscale="log")
    time.set(xlabel="agents n", ylabel="time to 90 % (ticks of an agent's clock)")
    time.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    figure.legend(
        *sent.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8
    )
