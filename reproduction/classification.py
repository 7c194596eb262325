"""Section 5.2, collaborative linear classification: figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reproduction.choices import Choices
from reproduction.experiment import (
    LOOKS,
    ClosedForm,
    Experiment,
    Paper,
    Tables,
    in_parts,
    line,
    reached,
    stored_table,
    summary,
    trace,
    with_interval,
)
from reproduction.problems import separators
from simulator.scenario.schema import Scenario
from simulator.sweeps.tables import last_values, mean_interval
from simulator.sweeps.work import Run

METHODS = ("solitary", "consensus", "mp", "cl")
NAMES = {
    "solitary": "solitary models",
    "consensus": "consensus model",
    "mp": "model propagation",
    "cl": "collaborative learning",
}


def optima(
    paper: Paper, choices: Choices, dimension: int, seeds: Iterable[int]
) -> list[ClosedForm]:
    """All methods' models with the chosen trade-offs, an instance a task."""
    return paper.closed_forms(
        "accuracies",
        separators(choices, dimension),
        seeds,
        1,
        alphas=(choices.at("linear_classification.alpha", dimension),),
        mus=(choices.at("linear_classification.mu", dimension),),
    )


def by_instance(table: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over agents: a row an instance, a column a method."""
    weighted = table.assign(right=table["accuracy"] * table["agents"])
    sums = weighted.groupby(["seed", "method"])[["right", "agents"]].sum()
    return (sums["right"] / sums["agents"]).unstack("method")


# --- figure 3, left and middle ------------------------------------------------------------------
class AccuracyByDimension(Experiment):
    """Figure 3, left."""

    id = "fig3-left"
    title = "Test accuracy against the dimension p"
    size = (4.8, 3.5)

    def tasks(self) -> list[ClosedForm]:
        """Every instance of every dimension."""
        seeds = range(self.sizes.instances)
        return [
            task
            for p in self.sizes.dimensions
            for task in optima(self.paper, self.choices, p, seeds)
        ]

    def tables(self) -> Tables:
        """Mean accuracies and, in pairs, their differences, by dimension."""
        rows = []
        parts = in_parts(self.tasks(), len(self.sizes.dimensions))
        for p, own in zip(self.sizes.dimensions, parts, strict=True):
            table = by_instance(stored_table(own))
            row: dict[str, Any] = {"dimension": p, "instances": len(table)}
            for method in METHODS:
                row |= with_interval(method, table[method])
            row |= with_interval("cl_minus_mp", table["cl"] - table["mp"])
            for method in ("mp", "cl"):
                gain = table[method] - table["solitary"]
                row |= with_interval(f"{method}_minus_solitary", gain)
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a method."""
        axis = figure.subplots()
        for method in reversed(METHODS):
            line(axis, tables[self.id], "dimension", method, method, NAMES[method])
        axis.set_xlabel("dimension p")
        axis.set_ylabel("mean test accuracy")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            "Linear classification: test accuracy of optimal models, mean and 95 % interval over "
            f"{table['instances'][0]} random instances for each of {len(table)} dimensions "
            "(100 agents, 1 to 20 training and 100 test points each), with trade-offs tuned on "
            "held-out instances of the same dimension. "
            "5 % of the test labels are flipped, so that 0.95 is the most that can be reached."
        )


def trade_offs(choices: Choices) -> str:
    """The trade-offs at p = 50, for a caption."""
    alpha, mu = (choices.at(f"linear_classification.{name}", 50) for name in ("alpha", "mu"))
    return f"model propagation with α = {alpha:g}, collaborative learning with μ = {mu:g}"


class AccuracyBySize(Experiment):
    """Figure 3, middle."""

    id = "fig3-middle"
    title = "Test accuracy against the number of training points (p = 50)"
    size = (4.8, 3.5)

    def tasks(self) -> list[ClosedForm]:
        """More instances than on the left, so that each number of points has enough agents."""
        return optima(self.paper, self.choices, 50, range(self.sizes.size_instances))

    def tables(self) -> Tables:
        """Accuracies by number of points: mean over instances, each weighing as its agents."""
        table = stored_table(self.tasks())
        wide = table.pivot_table(
            index=["points", "seed"], columns="method", values="accuracy", sort=True
        )
        wide["agents"] = table[table["method"] == "cl"].set_index(["points", "seed"])["agents"]
        rows = []
        for points, group in wide.groupby("points"):
            row: dict[str, Any] = {"points": points, "agents": int(group["agents"].sum())}
            for method in ("solitary", "mp", "cl"):
                row |= weighted_interval(method, group[method], group["agents"])
            gap = group["cl"] - group["mp"]
            row |= weighted_interval("cl_minus_mp", gap, group["agents"])
            rows.append(row)
        sizes = pd.DataFrame(rows)
        return {self.id: sizes, f"{self.id}-trends": self._trends(wide.reset_index())}

    def _trends(self, wide: pd.DataFrame) -> pd.DataFrame:
        """Slopes in accuracy per training point: one a instance, then mean and 95 % interval."""
        wide["cl_minus_mp"] = wide["cl"] - wide["mp"]
        slopes: dict[str, list[float]] = {m: [] for m in ("solitary", "mp", "cl", "cl_minus_mp")}
        for _, group in wide.groupby("seed"):
            for name, values in slopes.items():
                fit = np.polyfit(group["points"], group[name], 1, w=np.sqrt(group["agents"]))
                values.append(float(fit[0]))
        rows = [{"method": m, **with_interval("slope", v)} for m, v in slopes.items()]
        return pd.DataFrame(rows)

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a method."""
        axis = figure.subplots()
        for method in ("cl", "mp", "solitary"):
            line(axis, tables[self.id], "points", method, method, NAMES[method])
        axis.set_xlabel("training points of the agent")
        axis.set_ylabel("mean test accuracy")
        axis.set_xticks([1, 5, 10, 15, 20])
        figure.legend(loc="outside upper center", ncols=3, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            "Linear classification, p = 50: mean test accuracy, with 95 % interval, of agents by "
            f"the number of their training points, over {self.sizes.size_instances} random "
            f"instances of 100 agents ({table['agents'].min()} to {table['agents'].max()} agents "
            f"a number; {trade_offs(self.choices)})."
        )


def weighted_interval(
    name: str, values: pd.Series[float], agents: pd.Series[int]
) -> dict[str, Any]:
    """Mean over all agents, and a 95 % interval that takes instances as independent.

    A ratio estimate: Σ a_s v_s / Σ a_s over instances s with a_s agents, its variance from the
    residuals a_s (v_s − mean).
    """
    v, a = values.to_numpy(dtype=float), agents.to_numpy(dtype=float)
    mean, n = float(a @ v / a.sum()), len(v)
    if n < 2:
        return {name: mean, f"{name}_low": np.nan, f"{name}_high": np.nan}
    spread = np.sqrt(n / (n - 1) * np.sum((a * (v - mean)) ** 2)) / a.sum()
    half = float(stats.t.ppf(0.975, n - 1) * spread)
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}


# --- figure 3, right ----------------------------------------------------------------------------
def algorithm(choices: Choices, block: str, which: str) -> dict[str, Any]:
    """The algorithm of a curve of figures 3 (right) and 5."""
    start = choices["linear_classification.start"]
    alpha, mu, rho = (choices.at(f"{block}.{name}", 50) for name in ("alpha", "mu", "rho"))
    if which == "mp":
        return {"kind": "mp", "alpha": alpha, "start": start}
    trade_off = {"kind": "admm", "mu": mu, "rho": rho}
    if which == "warm":
        return {**trade_off, "start": {"kind": "mp", "alpha": alpha}}
    if which == "sync":  # the hellos of rounds are counted by ``samples``
        return {**trade_off, "start": "known" if start == "hello" else start, "mode": "sync"}
    return {**trade_off, "start": start, "mode": "async"}


class AccuracyByCommunications(Experiment):
    """Figure 3, right."""

    id = "fig3-right"
    title = "Test accuracy against communications (p = 50)"
    size = (5.2, 3.5)
    curves: ClassVar = {
        "sync": "synchronous ADMM",
        "cl": "asynchronous ADMM",
        "warm": "asynchronous ADMM from MP's optimum",
        "mp": "asynchronous MP",
    }

    def tasks(self) -> list[Run]:
        """Every algorithm on every instance."""
        return curve_runs(self.paper, self.choices, self.curves, self.sizes.run_instances)

    def tables(self) -> Tables:
        """Accuracy after so many communications; communications to shares of the optimum's."""
        x = shown_communications(self.sizes.run_communications)
        curves, levels = [], []
        for name, own in zip(self.curves, in_parts(self.tasks(), len(self.curves)), strict=True):
            traces = [samples(run, self.choices) for run in own]
            values = [last_values(t, "communications", x, ["accuracy"])[:, 0] for t in traces]
            mean, low, high = mean_interval(np.stack(values))
            curves.append(
                pd.DataFrame(
                    {
                        "algorithm": name,
                        "communications": x,
                        "instances": len(own),
                        "accuracy": mean,
                        "accuracy_low": low,
                        "accuracy_high": high,
                    }
                )
            )
            levels += level_rows(name, own, traces)
        return {
            self.id: pd.concat(curves, ignore_index=True),
            f"{self.id}-levels": pd.DataFrame(levels),
        }

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One step line an algorithm; communications begin at 0 and are logarithmic later."""
        axis = figure.subplots()
        for name, text in self.curves.items():
            curve = tables[self.id][tables[self.id]["algorithm"] == name]
            style = {**LOOKS[name], "marker": None}
            x = curve["communications"]
            axis.step(x, curve["accuracy"], where="post", label=text, **style)
            low, high = curve["accuracy_low"], curve["accuracy_high"]
            colour = style["color"]
            axis.fill_between(x, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
        axis.set_xscale("symlog", linthresh=LINEAR, linscale=1.2)
        axis.set_xlim(0, self.sizes.run_communications)
        axis.set_ylim(0.5, 0.95)
        places = (0, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 50_000, 100_000)
        ticks = [n for n in places if n <= self.sizes.run_communications]
        axis.set_xticks(ticks, [f"{n / 1000:g}" for n in ticks])
        axis.minorticks_off()
        axis.set_xlabel("communications (thousands; linear up to 5, logarithmic beyond)")
        axis.set_ylabel("mean test accuracy")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        start = self.choices["linear_classification.start"]
        hello = (
            ", a message on every link, which rounds pay for as well" if start == "hello" else ""
        )
        return (
            "Linear classification, p = 50: test accuracy against the number of pairwise "
            "communications, without delay or loss; mean and 95 % interval over "
            f"{self.sizes.run_instances} random instances of 100 agents; "
            f"{trade_offs(self.choices)}, ρ = {self.choices['linear_classification.rho']:g}; start "
            f"`{start}`{hello}. The warm start is the optimum of "
            "model propagation, free of charge, with dual variables of zero."
        )


#: Up to so many communications the axis is linear.
LINEAR = 5000


def shown_communications(most: int) -> Any:
    """Where curves are drawn: even steps at first, then even ratios."""
    later = np.geomspace(LINEAR, most, 100).astype(int)
    return np.unique([*range(0, LINEAR, 50), *later])


def samples(run: Run, choices: Choices) -> pd.DataFrame:
    """The samples of a run; where agents begin with a hello, so do rounds, and it is counted."""
    rounds = run.scenario.algorithm.mode == "sync"
    hello = rounds and choices["linear_classification.start"] == "hello"
    return with_hello(trace(run)) if hello else trace(run)


def with_hello(found: pd.DataFrame) -> pd.DataFrame:
    """The samples of rounds after as many more communications as the first round has."""
    sent = found["communications"]
    later = found.assign(communications=sent + int(sent[sent > 0].iloc[0]))
    return pd.concat([found.iloc[:1], later], ignore_index=True)


def curve_runs(paper: Paper, choices: Choices, which: Iterable[str], instances: int) -> list[Run]:
    """Runs of the given algorithms on the problems of figure 3, instance by instance."""

    def scenario(algo: str, seed: int) -> Scenario:
        length = paper.sizes.run_communications
        # Model propagation needs far fewer communications, rounds come one at a time.
        length = length // 5 if algo == "mp" else length
        every = {"mp": 50, "sync": 1000}.get(algo, 100)
        return separators(
            choices,
            name="fig3-right",
            seed=seed,
            algorithm=algorithm(choices, "linear_classification", algo),
            stop={"communications": length},
            record={"every_communications": every},
        )

    return paper.runs(scenario(algo, seed) for algo in which for seed in range(instances))


#: Shares of the optimum's accuracy whose reaching is reported.
SHARES = (0.9, 0.95, 0.99)


def level_rows(
    name: str, runs: Sequence[Run], traces: Sequence[pd.DataFrame]
) -> list[dict[str, Any]]:
    """Communications to shares of the accuracy of the run's own optimum, a row an instance.

    To reach them for good: a warm start may begin above them, and fall.
    """
    rows = []
    for run, found in zip(runs, traces, strict=True):
        best = summary(run)["metrics"]["optimum"]["accuracy"]
        row: dict[str, Any] = {"algorithm": name, "seed": run.scenario.seed, "optimum": best}
        for share in SHARES:
            row[f"to_{share * 100:g}"] = reached(found, "accuracy", share * best, for_good=True)
        rows.append(row)
    return rows
