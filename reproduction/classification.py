"""Section 5.2, collaborative linear classification: figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reproduction.choices import Choices
from reproduction.drawing import LOOKS, band, method_lines
from reproduction.experiment import ClosedForm, Experiment, Groups, Paper, Tables
from reproduction.measuring import curve, intervals, reached, stored_table, summary, trace
from reproduction.problems import separators
from simulator import Scenario
from simulator.sweeps.tables import last_values
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
    size = (4.8, 3.5)

    def groups(self) -> Groups:
        """Every instance of every dimension."""
        seeds = range(self.sizes.instances)
        return {p: optima(self.paper, self.choices, p, seeds) for p in self.sizes.dimensions}

    def tables(self) -> Tables:
        """Mean accuracies and, in pairs, their differences, by dimension."""
        rows = []
        for p, own in self.groups().items():
            table = by_instance(stored_table(own))
            table = table[list(METHODS)].assign(
                cl_minus_mp=table["cl"] - table["mp"],
                mp_minus_solitary=table["mp"] - table["solitary"],
                cl_minus_solitary=table["cl"] - table["solitary"],
            )
            rows.append({"dimension": p, "instances": len(table), **intervals(table)})
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a method."""
        texts = {method: NAMES[method] for method in reversed(METHODS)}
        axis = method_lines(figure, tables[self.id], "dimension", texts)
        axis.set_xlabel("dimension p")


class AccuracyBySize(Experiment):
    """Figure 3, middle."""

    id = "fig3-middle"
    size = (4.8, 3.5)

    def groups(self) -> Groups:
        """More instances than on the left, so that each number of points has enough agents."""
        return {50: optima(self.paper, self.choices, 50, range(self.sizes.size_instances))}

    def tables(self) -> Tables:
        """Accuracies by number of points: mean over instances, each weighing as its agents."""
        table = stored_table(self.groups()[50])
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
        names = ["solitary", "mp", "cl", "cl_minus_mp"]
        slopes = [
            np.polyfit(group["points"], group[names], 1, w=np.sqrt(group["agents"]))[0]
            for _, group in wide.groupby("seed")
        ]
        return curve("slope", slopes, method=names)

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One line a method."""
        texts = {method: NAMES[method] for method in ("cl", "mp", "solitary")}
        axis = method_lines(figure, tables[self.id], "points", texts)
        axis.set(xlabel="training points of the agent", xticks=[1, 5, 10, 15, 20])

    def words(self, tables: Tables) -> dict[str, Any]:
        """How many agents have so many points."""
        agents = tables[self.id]["agents"]
        return {"fewest": agents.min(), "most": agents.max()}


def weighted_interval(
    name: str, values: pd.Series[float], agents: pd.Series[int]
) -> dict[str, Any]:
    """Mean over all agents, and a 95 % interval that takes instances as independent.

    A ratio estimate: Σ a_s v_s / Σ a_s over instances s with a_s agents, its variance from the
    residuals a_s (v_s − mean).
    """
    v, a = values.to_numpy(dtype=float), agents.to_numpy(dtype=float)
    mean, n = float(a @ v / a.sum()), len(v)
    with np.errstate(divide="ignore", invalid="ignore"):  # one value has no interval
        spread = np.sqrt(np.float64(n) / (n - 1) * np.sum((a * (v - mean)) ** 2)) / a.sum()
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
    size = (5.2, 3.5)
    curves: ClassVar = {
        "sync": "synchronous ADMM",
        "cl": "asynchronous ADMM",
        "warm": "asynchronous ADMM from MP's optimum",
        "mp": "asynchronous MP",
    }

    def groups(self) -> dict[str, list[Run]]:
        """Every algorithm on every instance."""
        return curve_runs(self.paper, self.choices, self.curves, self.sizes.run_instances)

    def tables(self) -> Tables:
        """Accuracy after so many communications; communications to shares of the optimum's."""
        x = shown_communications(self.sizes.run_communications)
        curves, levels = [], []
        for name, own in self.groups().items():
            traces = [samples(run, self.choices) for run in own]
            values = [last_values(t, "communications", x, ["accuracy"])[:, 0] for t in traces]
            place = {"algorithm": name, "communications": x, "instances": len(own)}
            curves.append(curve("accuracy", values, **place))
            levels += level_rows(name, own, traces)
        return {
            self.id: pd.concat(curves, ignore_index=True),
            f"{self.id}-levels": pd.DataFrame(levels),
        }

    def draw(self, figure: Figure, tables: Tables) -> None:
        """One step line an algorithm; communications begin at 0 and are logarithmic later."""
        axis = figure.subplots()
        for name, text in self.curves.items():
            own = tables[self.id][tables[self.id]["algorithm"] == name]
            style = {**LOOKS[name], "marker": None}
            x = own["communications"]
            axis.step(x, own["accuracy"], where="post", label=text, **style)
            band(axis, x, own, "accuracy", style["color"], step="post", alpha=0.15)
        axis.set_xscale("symlog", linthresh=LINEAR, linscale=1.2)
        axis.set(xlim=(0, self.sizes.run_communications), ylim=(0.5, 0.95))
        places = (0, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 50_000, 100_000)
        ticks = [n for n in places if n <= self.sizes.run_communications]
        axis.set_xticks(ticks, [f"{n / 1000:g}" for n in ticks])
        axis.minorticks_off()
        axis.set_xlabel("communications (thousands; linear up to 5, logarithmic beyond)")
        axis.set_ylabel("mean test accuracy")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)

    def words(self, tables: Tables) -> dict[str, Any]:
        """Who pays for the hello."""
        paid = ", a message on every link, which rounds pay for as well"
        return {"hello": paid if self.choices["linear_classification.start"] == "hello" else ""}


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


def curve_runs(
    paper: Paper, choices: Choices, which: Iterable[str], instances: int
) -> dict[str, list[Run]]:
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

    seeds = range(instances)
    return {algo: paper.runs(scenario(algo, seed) for seed in seeds) for algo in which}


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
