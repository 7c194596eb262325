"""Private learning: what hiding each agent's points costs (Bellet et al. 2018, figure 2c)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.drawing import LOOKS, line
from reproduction.experiment import Experiment, Tables
from reproduction.measuring import intervals, summary
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


class Private(Experiment):
    """Accuracy against the dimension, with more and less privacy."""

    id = "private"
    size = (5.2, 3.8)
    #: ε̄ of each line; None: nothing is hidden.
    budgets: ClassVar = {"cd": None, "eps1": 1.0, "eps05": 0.5, "eps01": 0.1}
    looks: ClassVar = {"cd": "cl", "eps1": "sync", "eps05": "mp", "eps01": "warm"}

    def groups(self) -> dict[tuple[int, str], list[Run]]:
        """Every dimension, budget and instance."""
        seeds = range(self.sizes.private_instances)
        return {
            (p, name): self.paper.runs((_scenario(p, budget, seed) for seed in seeds), reads=())
            for p in self.sizes.private_dimensions
            for name, budget in self.budgets.items()
        }

    def tables(self) -> Tables:
        """Mean accuracies by dimension, and what privacy leaves of the gain over learning alone."""
        rows, groups = [], self.groups()
        for dimension in self.sizes.private_dimensions:
            found = {name: _accuracies(groups[dimension, name]) for name in self.budgets}
            alone = _accuracies(groups[dimension, "cd"], "solitary")
            table = pd.DataFrame({"solitary": alone})
            for name, values in found.items():
                table[name], table[f"{name}_minus_solitary"] = values, values - alone
            rows.append({"dimension": dimension, "instances": len(alone), **intervals(table)})
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a budget, and solitary models."""
        axis = figure.subplots()
        for name, budget in self.budgets.items():
            text = "nothing hidden" if budget is None else f"ε̄ = {budget:g}"
            line(axis, tables[self.id], "dimension", name, self.looks[name], text)
        line(axis, tables[self.id], "dimension", "solitary", "solitary", "solitary models")
        axis.axhline(0.5, color=LOOKS["consensus"]["color"], linewidth=0.8)
        axis.set(xlabel="dimension p", ylabel="mean test accuracy")
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)

    def words(self, tables: Tables) -> dict[str, Any]:
        """The trade-off, and at how many dimensions private models are the better ones."""
        better = int((tables[self.id]["eps1_minus_solitary_low"] > 0).sum())
        return {"mu": MU, "mu_theirs": MU_THEIRS, "better": better}


def _accuracies(runs: list[Run], models: str = "final") -> Any:
    return np.array([summary(run)["metrics"][models]["accuracy"] for run in runs])


def _scenario(dimension: int, budget: float | None, seed: int) -> Scenario:
    """One instance; it ends when all agents have long spent their budgets."""
    algorithm: dict[str, Any] = {"kind": "cd", "mu": MU, "ridge": 1.0, "start": "zero"}
    if budget is not None:
        hidden = {"epsilon": budget, "delta": DELTA, "updates": UPDATES, "clip": 1.0}
        algorithm["privacy"] = hidden
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
