"""Private learning: what hiding each agent's points costs (Bellet et al. 2018, figure 2c)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pandas as pd
from matplotlib.figure import Figure

from reproduction.experiment import (
    LOOKS,
    Experiment,
    Tables,
    in_parts,
    line,
    summary,
    with_interval,
)
from reproduction.problems import scenario
from simulator.scenario.schema import Scenario
from simulator.sweeps.work import Run

#: An agent has 10 to 100 points.  Its loss is theirs where μ = 2 μ_theirs / 100 and the ridge is 1:
#: c_i L_i of theirs, a confidence m_i / 100 times a mean over m_i points, is a sum over 100.
MOST_POINTS = 100
#: Of 0.3, 1, 3, …, 100 the best for the optimum without privacy, in the mean over p = 10 and 50 and
#: held-out seeds 1000 to 1002.
MU_THEIRS = 3.0
#: Updates of an agent: of 1, 2, 5, 10, 20 the best with ε̄ = 1 and 0.5 at p = 10, the same seeds.
UPDATES = 1
DELTA = math.exp(-5)


class Private(Experiment):
    """Accuracy against the dimension, with more and less privacy."""

    id = "private"
    title = "Beyond the paper: private coordinate descent, test accuracy against the dimension p"
    size = (5.2, 3.8)
    #: ε̄ of each line; None: nothing is hidden.
    budgets: ClassVar = {"cd": None, "eps1": 1.0, "eps05": 0.5, "eps01": 0.1}
    looks: ClassVar = {"cd": "cl", "eps1": "sync", "eps05": "mp", "eps01": "warm"}

    def tasks(self) -> list[Run]:
        """Every dimension, budget and instance."""
        return self.paper.runs(
            (
                _scenario(dimension, budget, seed)
                for dimension in self.sizes.private_dimensions
                for budget in self.budgets.values()
                for seed in range(self.sizes.private_instances)
            ),
            reads=(),
        )

    def tables(self) -> Tables:
        """Mean accuracies by dimension, and what privacy leaves of the gain over learning alone."""
        dimensions = self.sizes.private_dimensions
        parts = in_parts(self.tasks(), len(dimensions))
        rows = []
        for dimension, runs in zip(dimensions, parts, strict=True):
            groups = dict(zip(self.budgets, in_parts(runs, len(self.budgets)), strict=True))
            found = {
                name: [summary(run)["metrics"]["final"]["accuracy"] for run in own]
                for name, own in groups.items()
            }
            alone = [summary(run)["metrics"]["solitary"]["accuracy"] for run in groups["cd"]]
            row: dict[str, Any] = {"dimension": dimension, "instances": len(alone)}
            row |= with_interval("solitary", alone)
            for name, values in found.items():
                row |= with_interval(name, values)
                gains = [value - base for value, base in zip(values, alone, strict=True)]
                row |= with_interval(f"{name}_minus_solitary", gains)
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a budget, and solitary models."""
        axis = figure.subplots()
        for name, budget in self.budgets.items():
            text = "nothing hidden" if budget is None else f"ε̄ = {budget:g}"
            line(axis, tables[self.id], "dimension", name, self.looks[name], text)
        line(axis, tables[self.id], "dimension", "solitary", "solitary", "solitary models")
        axis.axhline(0.5, color=LOOKS["consensus"]["color"], linewidth=0.8)
        axis.set_xlabel("dimension p")
        axis.set_ylabel("mean test accuracy")
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        better = int((table["eps1_minus_solitary_low"] > 0).sum())
        return (
            "Linear classification with a logistic loss by coordinate descent (Bellet, Guerraoui, "
            "Taziki and Tommasi 2018, figure 2c): test accuracy when each agent's points are "
            "hidden, (ε̄, e⁻⁵)-differentially, by Laplace noise on its one update, beside the same "
            "rule without privacy and models learned alone; mean and 95 % interval over "
            f"{table['instances'][0]} random instances (100 agents with 10 to 100 points in the "
            f"unit ball, ridge 1, μ = {_mu():g}, which is {MU_THEIRS:g} in their scaling; the "
            "gradient of a point is clipped to an L1 norm of 1). All begin at zero: their private "
            "warm start is left out. The trade-off and the number of updates were chosen on "
            "held-out seeds: with more updates each has more noise, and accuracies are lower. 5 % "
            "of the labels are flipped, in test points too; 0.5 is chance. With ε̄ = 1 private "
            f"models are better than those learned alone at {better} of {len(table)} dimensions."
        )


def _mu() -> float:
    """The trade-off in this project's scaling."""
    return 2.0 * MU_THEIRS / MOST_POINTS


def _scenario(
    dimension: int,
    budget: float | None,
    seed: int,
    mu: float | None = None,
    updates: int = UPDATES,
) -> Scenario:
    """One instance; it ends when all agents have long spent their budgets."""
    mu = _mu() if mu is None else mu
    algorithm: dict[str, Any] = {"kind": "cd", "mu": mu, "ridge": 1.0, "start": "zero"}
    if budget is not None:
        hidden = {"epsilon": budget, "delta": DELTA, "updates": updates, "clip": 1.0}
        algorithm["privacy"] = hidden
    length = 30.0 if budget is None else 4.0 * updates + 20.0
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
