"""Trade-offs tuned on held-out instances."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reproduction.classification import by_instance
from reproduction.mean_estimation import BLOCK
from reproduction.measuring import with_interval
from reproduction.paper import ClosedForm, Made, Paper
from reproduction.problems import moons, neighbours, separators
from simulator import Scenario
from simulator.figures.style import GREY, ORANGE
from simulator.problem.tasks.papers import LinearClassification

CLASSES, SCALED, MEANS = "linear_classification", "scalability", "mean_estimation.alpha"


def grid(paper: Paper, name: str, reach: int, dimension: int = 1) -> list[float]:
    """The values of a choice that are considered, ascending: its own and others near it."""
    chosen = paper.choices.at(name, dimension)
    values = sorted({chosen, *paper.choices.all[name].others})
    at = values.index(chosen)
    return values[max(0, at - reach) : at + reach + 1]


def tuning_tasks(
    paper: Paper, scenario: Scenario, held_out: int, reach: int, block: str = CLASSES
) -> list[ClosedForm]:
    """The trade-offs of the grid, so many on either side of the chosen ones, on instances."""
    assert isinstance(scenario.task, LinearClassification)
    alphas, mus = (
        grid(paper, f"{block}.{name}", reach, scenario.task.dimension) for name in ("alpha", "mu")
    )
    seeds = paper.held_out(held_out)
    return paper.closed_forms("accuracies", scenario, seeds, 1, alphas=alphas, mus=mus)


def by_trade_off(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """Mean accuracy over agents: a row an instance, a column a value of the trade-off."""
    own = table[table["method"] == method].assign(method=lambda rows: rows["trade_off"])
    return by_instance(own)


def best_of(table: pd.DataFrame) -> float:
    """The column with the greatest mean."""
    return float(table.columns[int(np.argmax(table.mean().to_numpy()))])


def tuning(paper: Paper, figure: Figure) -> Made:
    """α and μ on held-out instances: scores by trade-off, and which trade-off is best."""
    sizes, choices, reach = paper.sizes, paper.choices, paper.sizes.grid_reach
    problems = {(CLASSES, p): separators(choices, p) for p in sizes.tuned_dimensions}
    problems[SCALED, 50] = neighbours(choices, 100)
    tasks = {
        (block, p): tuning_tasks(paper, problem, sizes.held_out, reach, block)
        for (block, p), problem in problems.items()
    }
    seeds, alphas = paper.held_out(sizes.choice_means), grid(paper, MEANS, reach)
    tasks[MEANS, 1] = paper.closed_forms("mean-errors", moons(choices), seeds, BLOCK, alphas=alphas)
    tables = paper.tables(tasks)
    means = tables.pop((MEANS, 1))
    scores = {
        (f"{block}.{name}", p): by_trade_off(table, method)
        for (block, p), table in tables.items()
        for method, name in (("mp", "alpha"), ("cl", "mu"))
    }
    kind = choices["mean_estimation.confidence"]
    scores[MEANS, 1] = means.pivot_table(index="seed", columns="alpha", values=kind)
    rows, best = [], []
    for (name, p), own in scores.items():
        measure, sign = ("l2_error", -1) if name == MEANS else ("accuracy", 1)
        chosen, top = own[choices.at(name, p)], best_of(sign * own)
        for value in own.columns:
            row = {"choice": name, "dimension": p, "instances": len(own), "measure": measure}
            row |= {"value": value, **with_interval("score", own[value])}
            rows.append(row | with_interval("above_chosen", own[value] - chosen))
        row = {"choice": name, "dimension": p, "chosen": choices.at(name, p), "best": top}
        best.append(row | with_interval("lost", sign * (own[top] - chosen)))
    table, bests = pd.DataFrame(rows), pd.DataFrame(best)
    _draw(figure, table, bests)
    tuned = bests[bests["choice"] != MEANS]
    agree = "are" if (tuned["best"] == tuned["chosen"]).all() else "are NOT all"
    return {"tuning": table, "tuning-best": bests}, {"agree": agree}


def _looks(dimensions: int) -> list[dict[str, Any]]:
    """A colour from dark to light, a line and a marker for each dimension; then one in grey."""
    colours = colormaps["viridis"](np.linspace(0, 0.9, dimensions))
    lines = itertools.cycle(["-", "--", ":", "-."])
    markers = "os^vDPX*<>dh"
    looks: list[dict[str, Any]] = [
        {"color": colour, "linestyle": style, "marker": marker}
        for colour, style, marker in zip(colours, lines, itertools.cycle(markers), strict=False)
    ]
    looks.append({"color": GREY, "linestyle": "-", "marker": "p"})
    return [{**look, "linewidth": 1.1, "markersize": 4} for look in looks]


def _draw(figure: Figure, table: pd.DataFrame, bests: pd.DataFrame) -> None:
    """Accuracy against α and against μ, a line a dimension, each of its own look."""
    axes = figure.subplots(1, 3)
    names = (f"{CLASSES}.alpha", f"{CLASSES}.mu", MEANS)
    labels = ("MP: μ = (1 − α)/α", "CL: μ", "MP on moons: μ = (1 − α)/α")
    for axis, name, text in zip(axes, names, labels, strict=True):
        same = (name, name.replace(CLASSES, SCALED))
        pairs = bests[bests["choice"].isin(same)]
        looks = _looks(len(table[table["choice"] == names[0]]["dimension"].unique()))
        for (choice, p, chosen), look in zip(
            pairs[["choice", "dimension", "chosen"]].to_numpy(), looks, strict=False
        ):
            curve = table[(table["choice"] == choice) & (table["dimension"] == p)]
            value = curve["value"]
            mu = value if name.endswith("mu") else (1 - value) / value
            text_of = f"p = {p}" if choice == name else f"p = {p}, nearest\nneighbours"
            axis.plot(mu, curve["score"], label=text_of, **look)
            at = (value == chosen).to_numpy()
            ring = {"markersize": 9, "fillstyle": "none", "color": ORANGE, "zorder": 3}
            axis.plot(mu[at], curve["score"][at], "o", **ring)
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set(xlabel=text, ylabel=f"held-out {'L2 error' if name == MEANS else 'accuracy'}")
    handles, labels_of = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels_of, loc="outside right center", fontsize=7)
