"""Private learning: what hiding each agent's points costs (Bellet et al. 2018, figure 2c)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.measuring import LOOKS, intervals, line, summary
from reproduction.paper import Made, Paper
from reproduction.problems import scenario
from simulator import Scenario
from simulator.sweeps.work import Run

#: An agent has 10 to 100 points.  Its loss is theirs where μ = 2 μ_theirs / 100 and the ridge is 1:
#: c_i L_i of theirs, a confidence m_i / 100 times a mean over m_i points, is a sum over 100.
MOST_POINTS = 100
#: Of 0.3, 1, 3, …, 100 the best for the optimum without privacy, in the mean over p = 10 and 50 and
#: held-out seeds 1000 to 1002.
MU_THEIRS = 3.0
#: In this project's scaling.
MU = 2.0 * MU_THEIRS / MOST_POINTS
#: Updates of an agent: of 1, 2, 5, 10, 20 the best with ε̄ = 1 and 0.5 at p = 10, the same seeds.
UPDATES = 1
DELTA = math.exp(-5)


#: ε̄ of each line, None where nothing is hidden, and its look.
LINES = {"cd": (None, "cl"), "eps1": (1.0, "sync"), "eps05": (0.5, "mp"), "eps01": (0.1, "warm")}


def private(paper: Paper, figure: Figure) -> Made:
    """Mean accuracies by dimension, and what privacy leaves of the gain over learning alone."""
    seeds, axis, rows = range(paper.sizes.private_instances), figure.subplots(), []
    runs = {
        (p, name): paper.runs((_scenario(p, budget, seed) for seed in seeds), reads=())
        for p in paper.sizes.private_dimensions
        for name, (budget, _) in LINES.items()
    }
    paper.finished(runs)
    for p in paper.sizes.private_dimensions:
        alone = _accuracies(runs[p, "cd"], "solitary")
        found = pd.DataFrame({"solitary": alone})
        for name in LINES:
            found[name] = _accuracies(runs[p, name])
            found[f"{name}_minus_solitary"] = found[name] - alone
        rows.append({"dimension": p, "instances": len(alone), **intervals(found)})
    table = pd.DataFrame(rows)
    for name, (budget, look) in LINES.items():
        text = "nothing hidden" if budget is None else f"ε̄ = {budget:g}"
        line(axis, table, "dimension", name, look, text)
    line(axis, table, "dimension", "solitary", "solitary", "solitary models")
    axis.axhline(0.5, color=LOOKS["consensus"]["color"], linewidth=0.8)
    axis.set(xlabel="dimension p", ylabel="mean test accuracy")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    better = int((table["eps1_minus_solitary_low"] > 0).sum())
    return {"private": table}, {"mu": MU, "mu_theirs": MU_THEIRS, "better": better}


def _accuracies(runs: list[Run], models: str = "final") -> Any:
    return np.array([summary(run)["metrics"][models]["accuracy"] for run in runs])


def _scenario(dimension: int, budget: float | None, seed: int) -> Scenario:
    """One instance; it ends when all agents have long spent their budgets."""
    algorithm: dict[str, Any] = {"kind": "cd", "mu": MU, "ridge": 1.0, "start": "zero"}
    if budget is not None:
        hidden = {"epsilon": budget, "delta": DELTA, "updates": UPDATES, "clip": 1.0}
        algorithm["privacy"] = {**hidden, "after": "keep"}  # theirs: who has spent all stays put
    length = 30.0 if budget is None else 4.0 * UPDATES + 20.0
    task = {
        "kind": "linear_classification",
        "agents": 100,
        "dimension": dimension,
        "samples": {"kind": "uniform", "low": 10, "high": MOST_POINTS},
        "points": "ball",
        "loss": "logistic",
        "ridge": 2.0,
    }
    return scenario(
        task,
        {"kind": "angular_kernel", "sigma": 0.1, "min_weight": 0.01},
        {
            "name": "private",
            "seed": seed,
            "algorithm": algorithm,
            "stop": {"time": length},
            "record": {"every": length},
        },
    )
