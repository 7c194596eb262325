"""Private learning: when does it pay to collaborate? (Bellet et al. 2018, and beyond)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from reproduction.measuring import intervals, line, summary
from reproduction.paper import Made, Paper
from reproduction.problems import ENGINE
from simulator import Scenario, load_scenario
from simulator.figures.style import GREY
from simulator.runs.tasks import Run

FILE = Path(__file__).parent.parent / "scenarios" / "private.yaml"
#: Ways to hide: keys of ``algorithm.privacy``, and the look and the text of those that are drawn.
WAYS: dict[str, tuple[dict[str, Any], str, str]] = {
    "laplace_keep": ({"noise": "laplace", "after": "keep"}, "warm", "Laplace, kept"),
    "laplace": ({"noise": "laplace"}, "mp", "Laplace, smoothed"),
    "laplace_10": ({"noise": "laplace", "updates": 10}, "", ""),
    "laplace_10_exact": ({"noise": "laplace", "updates": 10, "accountant": "exact"}, "", ""),
    "gaussian_keep": ({"after": "keep"}, "", ""),
    "gaussian": ({}, "cl", "Gaussian, smoothed"),
    "gaussian_warm": ({"accountant": "exact", "updates": 2}, "sync", "Gaussian, exact, warm start"),
}
#: ε against the dimension, and the dimension where ε changes.
EPSILON, DIMENSION = 1.0, 20


def private(paper: Paper, figure: Figure) -> Made:
    """Mean accuracies by dimension and by ε, beside models learned alone; differences in pairs."""
    seeds = range(paper.sizes.private_instances)
    places = [(p, EPSILON) for p in paper.sizes.private_dimensions]
    places += [(DIMENSION, epsilon) for epsilon in paper.sizes.private_epsilons]
    # Seed by seed: what all ways of an instance are compared with is solved once.
    runs = paper.finished(
        {
            (place, seed): paper.runs((_scenario(*place, way, seed) for way in WAYS), reads=())
            for place in places
            for seed in seeds
        }
    )
    rows = []
    for place in dict.fromkeys(places):
        found = pd.DataFrame([_accuracies(runs[place, seed]) for seed in seeds])
        gains = {f"{way}_minus_solitary": found[way] - found["solitary"] for way in WAYS}
        row = {"dimension": place[0], "epsilon": place[1], "instances": len(seeds)}
        rows.append(row | intervals(found.assign(**gains)))
    table = pd.DataFrame(rows)
    by_dimension = table[table["epsilon"] == EPSILON].sort_values("dimension")
    by_epsilon = table[table["dimension"] == DIMENSION].sort_values("epsilon")
    axes = figure.subplots(1, 2, sharey=True)
    _draw(axes[0], by_dimension, "dimension", f"dimension p, with ε = {EPSILON:g}")
    _draw(axes[1], by_epsilon, "epsilon", f"ε, with p = {DIMENSION}")
    axes[0].set_ylabel("mean test accuracy")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8
    )
    algorithm: Any = load_scenario(FILE).algorithm
    better = {way: int((by_dimension[f"{way}_minus_solitary_low"] > 0).sum()) for way in WAYS}
    words = {"algorithm": algorithm, "better": better, "dimensions": len(by_dimension)}
    return {"private": table}, words


def _accuracies(runs: Sequence[Run]) -> dict[str, float]:
    """Of one instance: without noise, learned alone, and each way."""
    found = [summary(run)["metrics"] for run in runs]
    own = {"solitary": found[0]["solitary"], "optimum": found[0]["optimum"]}
    own |= {way: metrics["final"] for way, metrics in zip(WAYS, found, strict=True)}
    return {name: values["accuracy"] for name, values in own.items()}


def _draw(axis: Any, table: pd.DataFrame, x: str, text: str) -> None:
    looks = {way: (look, label) for way, (_, look, label) in WAYS.items() if look}
    looks |= {"solitary": ("solitary", "solitary models")}
    looks |= {"optimum": ("consensus", "optimum, nothing hidden")}
    for name, (look, label) in looks.items():
        line(axis, table, x, name, look, label)
    axis.axhline(0.5, color=GREY, linewidth=0.8)
    axis.set(xscale="log", xlabel=text)
    axis.set_xticks(table[x], [f"{value:g}" for value in table[x]])
    axis.minorticks_off()


def _scenario(dimension: int, epsilon: float, way: str, seed: int) -> Scenario:
    """One instance; it ends when all agents have long spent their budgets."""
    keys = {f"algorithm.privacy.{key}": value for key, value in WAYS[way][0].items()}
    start = "private" if way == "gaussian_warm" else "zero"
    keys |= {"task.dimension": dimension, "algorithm.start": start, "record.every": 30}
    keys |= {"algorithm.privacy.epsilon": epsilon, "engine": ENGINE, "seed": seed}
    return load_scenario(FILE, keys)
