"""Trade-offs tuned on held-out instances."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from reproduction.closed_forms import by_instance
from reproduction.mean_estimation import BLOCK
from reproduction.measuring import with_interval
from reproduction.paper import ClosedForm, Made, Paper
from reproduction.problems import moons, neighbours, separators
from simulator import Scenario
from simulator.figures.style import ORANGE
from simulator.problem.tasks.papers import LinearClassification

CLASSES, SCALED, MEANS = "linear_classification", "scalability", "mean_estimation.alpha"
NOISE = "mean_estimation.noise"


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
    """α and μ on held-out instances, by dimension; α on moons by their noise: scores, the best."""
    sizes, choices, reach = paper.sizes, paper.choices, paper.sizes.grid_reach
    seeds, alphas = paper.held_out(sizes.choice_means), grid(paper, MEANS, reach)
    problems = {(CLASSES, p): separators(choices, p) for p in sizes.tuned_dimensions}
    problems[SCALED, 50] = neighbours(choices, 100)
    tasks: dict[tuple[str, float], list[ClosedForm]] = {
        (block, p): tuning_tasks(paper, problem, sizes.held_out, reach, block)
        for (block, p), problem in problems.items()
    }
    for noise in sorted({choices[NOISE], *choices.all[NOISE].others}):
        moon = moons(choices.changed({NOISE: noise}))
        tasks[MEANS, noise] = paper.closed_forms("mean-errors", moon, seeds, BLOCK, alphas=alphas)
    kind = choices["mean_estimation.confidence"]
    scores = dict[tuple[str, float], pd.DataFrame]()
    for (block, case), found in paper.tables(tasks).items():
        if block == MEANS:
            scores[MEANS, case] = found.pivot_table(index="seed", columns="alpha", values=kind)
            continue
        for method, name in (("mp", "alpha"), ("cl", "mu")):
            scores[f"{block}.{name}", case] = by_trade_off(found, method)
    rows, best = [], []
    for (name, case), own in scores.items():
        sign = -1 if name == MEANS else 1  # an error, not an accuracy
        chosen, top = choices.at(name, int(case)), best_of(sign * own)
        for value in own.columns:
            row = {"choice": name, "case": case, "instances": len(own), "value": value}
            row |= with_interval("score", own[value])
            rows.append(row | with_interval("above_chosen", own[value] - own[chosen]))
        row = {"choice": name, "case": case, "chosen": chosen, "best": top}
        best.append(row | with_interval("lost", sign * (own[top] - own[chosen])))
    table, bests = pd.DataFrame(rows), pd.DataFrame(best)
    _draw(figure, table, bests)
    tuned = bests[bests["choice"] != MEANS]
    agree = "are" if (tuned["best"] == tuned["chosen"]).all() else "are NOT all"
    return {"tuning": table, "tuning-best": bests}, {"agree": agree}


def _looks(count: int) -> list[dict[str, Any]]:
    """Colours from dark to light, each with a line and a marker of its own."""
    colours = colormaps["viridis"](np.linspace(0, 0.9, count))
    lines, markers = itertools.cycle(["-", "--", ":", "-."]), itertools.cycle("os^vDPX*<>dh")
    return [
        {"color": c, "linestyle": style, "marker": m, "linewidth": 1.1, "markersize": 4}
        for c, style, m in zip(colours, lines, markers, strict=False)
    ]


#: The choices of each panel, and what is on its axes.
_PANELS = (
    ((f"{CLASSES}.alpha", f"{SCALED}.alpha"), "MP: μ = (1 − α)/α", "held-out accuracy"),
    ((f"{CLASSES}.mu", f"{SCALED}.mu"), "CL: μ", "held-out accuracy"),
    ((MEANS,), "MP on moons: μ = (1 − α)/α", "held-out L2 error"),
)


def _draw(figure: Figure, table: pd.DataFrame, bests: pd.DataFrame) -> None:
    """Scores against μ: a line a dimension, or a noise of the moons, each of its own look."""
    axes = figure.subplots(1, 3)
    for axis, (names, text, score) in zip(axes, _PANELS, strict=True):
        own = bests[bests["choice"].isin(names)].to_dict("records")
        for row, look in zip(own, _looks(len(own)), strict=True):
            same = (table["choice"] == row["choice"]) & (table["case"] == row["case"])
            curve, best = table[same], (table[same]["value"] == row["best"]).to_numpy()
            value = curve["value"]
            mu = value if text == "CL: μ" else (1 - value) / value
            label = f"{'' if MEANS in names else 'p = '}{row['case']:g}"
            label += "" if row["choice"] == names[0] else ", nearest\nneighbours"
            axis.plot(mu, curve["score"], label=label, **look)
            ring = {"markersize": 9, "fillstyle": "none", "color": ORANGE, "zorder": 3}
            axis.plot(mu[best], curve["score"][best], "o", **ring)
        axis.set(xscale="log", xlabel=text, ylabel=score)
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[2].set_yscale("log")
    axes[2].legend(fontsize=7, title="noise", title_fontsize=7)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
