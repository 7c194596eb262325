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
from reproduction.experiment import ClosedForm, Experiment, Groups, Paper, Tables
from reproduction.mean_estimation import BLOCK
from reproduction.measuring import stored_table, with_interval
from reproduction.problems import moons, neighbours, separators
from simulator import Scenario
from simulator.figures.style import GREY, ORANGE
from simulator.problem.tasks.papers import LinearClassification


def grid(paper: Paper, name: str, reach: int, dimension: int = 1) -> list[float]:
    """The values of a choice that are considered, ascending: its own and others near it."""
    chosen = paper.choices.at(name, dimension)
    values = sorted({chosen, *paper.choices.all[name].others})
    at = values.index(chosen)
    return values[max(0, at - reach) : at + reach + 1]


def tuning_tasks(
    paper: Paper, scenario: Scenario, seeds: range, reach: int, block: str = "linear_classification"
) -> list[ClosedForm]:
    """The trade-offs of the grid, so many on either side of the chosen ones, on instances."""
    assert isinstance(scenario.task, LinearClassification)
    p = scenario.task.dimension
    return paper.closed_forms(
        "accuracies",
        scenario,
        seeds,
        1,
        alphas=grid(paper, f"{block}.alpha", reach, p),
        mus=grid(paper, f"{block}.mu", reach, p),
    )


def by_trade_off(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """Mean accuracy over agents: a row an instance, a column a value of the trade-off."""
    own = table[table["method"] == method].assign(method=lambda rows: rows["trade_off"])
    return by_instance(own)


def best_of(table: pd.DataFrame) -> float:
    """The column with the greatest mean."""
    return float(table.columns[int(np.argmax(table.mean().to_numpy()))])


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


class Tuning(Experiment):
    """α and μ on held-out instances."""

    id = "tuning"
    size = (10.4, 4.2)

    def _problems(self) -> dict[tuple[str, int], list[ClosedForm]]:
        held_out, reach = self.paper.held_out(self.sizes.held_out), self.sizes.grid_reach
        problems = {
            ("linear_classification", p): tuning_tasks(
                self.paper, separators(self.choices, p), held_out, reach
            )
            for p in self.sizes.tuned_dimensions
        }
        scaled = neighbours(self.choices, 100)
        problems["scalability", 50] = tuning_tasks(
            self.paper, scaled, held_out, reach, "scalability"
        )
        return problems

    def _moons(self) -> list[ClosedForm]:
        return self.paper.closed_forms(
            "mean-errors",
            moons(self.choices),
            self.paper.held_out(self.sizes.choice_means),
            BLOCK,
            alphas=grid(self.paper, "mean_estimation.alpha", self.sizes.grid_reach),
        )

    def groups(self) -> Groups:
        """Every trade-off on every held-out instance."""
        return {**self._problems(), "moons": self._moons()}

    def tables(self) -> Tables:
        """Scores by trade-off, and which trade-off is best."""
        rows, best = [], []
        for (block, p), tasks in self._problems().items():
            table = stored_table(tasks)
            for method, name in (("mp", "alpha"), ("cl", "mu")):
                scores = by_trade_off(table, method)
                rows += self._scores(f"{block}.{name}", p, "accuracy", scores)
                best.append(self._best(f"{block}.{name}", p, scores))
        means = stored_table(self._moons())
        name = self.choices["mean_estimation.confidence"]
        errors = means.pivot_table(index="seed", columns="alpha", values=name)
        rows += self._scores("mean_estimation.alpha", 1, "l2_error", errors)
        best.append(self._best("mean_estimation.alpha", 1, -errors))
        return {self.id: pd.DataFrame(rows), f"{self.id}-best": pd.DataFrame(best)}

    def _scores(
        self, name: str, p: int, measure: str, scores: pd.DataFrame
    ) -> list[dict[str, Any]]:
        """Mean score of each value over instances, and what it is more than the chosen one's."""
        head = {"choice": name, "dimension": p, "instances": len(scores), "measure": measure}
        chosen = scores[self.choices.at(name, p)]
        return [
            {
                **head,
                "value": value,
                **with_interval("score", scores[value]),
                **with_interval("above_chosen", scores[value] - chosen),
            }
            for value in scores.columns
        ]

    def _best(self, name: str, p: int, scores: pd.DataFrame) -> dict[str, Any]:
        """The best value beside the chosen one, and what is lost by it, in pairs."""
        best, chosen = best_of(scores), self.choices.at(name, p)
        row: dict[str, Any] = {"choice": name, "dimension": p, "chosen": chosen, "best": best}
        return row | with_interval("lost", scores[best] - scores[chosen])

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Accuracy against α and against μ, a line a dimension, each of its own look."""
        table = tables[self.id]
        axes = figure.subplots(1, 3)
        names = ("linear_classification.alpha", "linear_classification.mu", "mean_estimation.alpha")
        labels = ("MP: μ = (1 − α)/α", "CL: μ", "MP on moons: μ = (1 − α)/α")
        for axis, name, text in zip(axes, names, labels, strict=True):
            same = (name, name.replace("linear_classification", "scalability"))
            own = table[table["choice"].isin(same)]
            pairs = own[["choice", "dimension"]].drop_duplicates().itertuples(index=False)
            looks = _looks(len(self.sizes.tuned_dimensions))
            for (choice, p), look in zip(pairs, looks, strict=False):
                curve = own[(own["choice"] == choice) & (own["dimension"] == p)]
                value = curve["value"]
                mu = value if name.endswith("mu") else (1 - value) / value
                text_of = f"p = {p}" if choice == name else f"p = {p}, nearest\nneighbours"
                axis.plot(mu, curve["score"], label=text_of, **look)
                at = (value == self.choices.at(choice, p)).to_numpy()
                ring = {"markersize": 9, "fillstyle": "none", "color": ORANGE, "zorder": 3}
                axis.plot(mu[at], curve["score"][at], "o", **ring)
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel(text)
        axes[0].set_ylabel("held-out accuracy")
        axes[1].set_ylabel("held-out accuracy")
        axes[2].set_ylabel("held-out L2 error")
        handles, labels_of = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels_of, loc="outside right center", fontsize=7)

    def words(self, tables: Tables) -> dict[str, Any]:
        """Whether what was chosen is best."""
        best = tables[f"{self.id}-best"]
        tuned = best[best["choice"] != "mean_estimation.alpha"]
        return {"agree": "are" if (tuned["best"] == tuned["chosen"]).all() else "are NOT all"}
