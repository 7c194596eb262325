"""Section 5.1, collaborative mean estimation: figures 1 and 2."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.closed_forms import confidences, propagated
from reproduction.drawing import LOOKS, band, line
from reproduction.experiment import ClosedForm, Experiment, Groups, Paper, Tables
from reproduction.measuring import curve, geometric, stored_table, summary, trace, with_interval
from reproduction.problems import moons
from simulator.figures.run_figures import moon_panels
from simulator.figures.style import GREY
from simulator.problem.build import build_problem
from simulator.seeds import Streams
from simulator.sweeps.tables import last_values
from simulator.sweeps.work import Run

#: Which column of ``mean_errors`` "without confidence" is, by the choices confidence and without.
WITHOUT = {
    ("data", "mean"): "mean",
    ("share", "mean"): "mean_share",
    ("data", "one"): "one",
    ("share", "one"): "one",
}
WIDTH = "width ε of the confidences"
#: A small ε.
SMALL = 0.1
#: Instances in one task of a worker.
BLOCK = 50


def sides(choices: Choices) -> tuple[str, str]:
    """The columns of ``mean_errors`` that stand for "with" and "without" confidence."""
    with_c = choices["mean_estimation.confidence"]
    return with_c, WITHOUT[with_c, choices["mean_estimation.without"]]


class Moons(Experiment):
    """Figure 1."""

    id = "fig1"
    size = (9.4, 2.0)

    def groups(self) -> Groups:
        """The instances of figure 2 at ε = 1, of which one is shown."""
        return {1.0: width_tasks(self.paper, 1.0)}

    def _typical(self) -> int:
        """The instance whose gain from confidence values is the median of all instances'."""
        table = stored_table(self.groups()[1.0])
        with_c, without = sides(self.choices)
        order = (table[with_c] / table[without]).sort_values(kind="stable").index
        return int(table["seed"][order[(len(order) - 1) // 2]])

    def tables(self) -> Tables:
        """One row an agent."""
        scenario, seed = moons(self.choices), self._typical()
        mu = (1 - self.choices["mean_estimation.alpha"]) / self.choices["mean_estimation.alpha"]
        with_c, without = sides(self.choices)
        with threadpool_limits(limits=1, user_api="blas"):
            problem = build_problem(scenario, Streams(seed))
            kinds = confidences(problem, 100)
            models = propagated(problem, np.array([kinds[without], kinds[with_c]]), mu)
        assert problem.vectors is not None
        assert problem.targets is not None
        table = pd.DataFrame(
            {
                "seed": seed,
                "agent": np.arange(problem.n),
                "x": problem.vectors[:, 0],
                "y": problem.vectors[:, 1],
                "points": problem.data.sizes,
                "truth": problem.targets[:, 0],
                "solitary": problem.solitary[:, 0],
                "without": models[0],
                "with": models[1],
            }
        )
        return {self.id: table}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Four panels."""
        table = tables[self.id]
        titles = {
            "truth": "(a) true means",
            "solitary": "(b) solitary models",
            "without": "(c) MP without confidence",
            "with": "(d) MP with confidence",
        }
        panels = [(title, table[name].to_numpy()) for name, title in titles.items()]
        moon_panels(figure, table[["x", "y"]].to_numpy(), panels)

    def words(self, tables: Tables) -> dict[str, Any]:
        """The errors of the three panels with models."""
        table = tables[self.id]
        names = ("solitary", "without", "with")
        return {name: np.mean((table[name] - table["truth"]) ** 2) for name in names}


def width_tasks(paper: Paper, width: float) -> list[ClosedForm]:
    """Closed forms of the instances with confidences of one width."""
    sizes = paper.sizes
    return paper.closed_forms(
        "mean-errors",
        moons(paper.choices, width),
        range(sizes.small_instances if width == SMALL else sizes.mean_instances),
        BLOCK,
        alphas=(paper.choices["mean_estimation.alpha"],),
    )


# --- figure 2, left and middle ------------------------------------------------------------------
class _Confidence(Experiment):
    """With and without confidence values against ε."""

    size = (4.6, 3.3)

    def groups(self) -> Groups:
        """Closed forms of many instances for each ε; both figures use the same."""
        return {width: width_tasks(self.paper, width) for width in self.sizes.widths}


class ErrorByWidth(_Confidence):
    """Figure 2, left."""

    id = "fig2-left"

    def tables(self) -> Tables:
        """Mean errors with and without, by ε, and those of the other readings of the paper."""
        with_c, without = sides(self.choices)
        rows = []
        first: Any = None
        for width, tasks in self.groups().items():
            table = stored_table(tasks)
            row: dict[str, Any] = {"width": width, "instances": len(table)}
            row |= with_interval("with", table[with_c]) | with_interval("without", table[without])
            # The same seeds have the same places and noise at every ε: compare in pairs.
            first = table if first is None else first
            change = (table[with_c] - first[with_c]).dropna()
            row |= with_interval("change", change / first[with_c].mean())
            # The gap in favour of confidence values, and what it is more than at a small ε.
            gap = (table[without] - table[with_c]) / table[with_c].mean()
            row |= with_interval("gap", gap)
            if width <= SMALL:
                small = gap
            row |= with_interval("gap_growth", (gap - small).dropna())
            for kind in ("data", "share", "mean", "mean_share", "one", "solitary"):
                row[f"error_{kind}"] = float(table[kind].mean())
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Errors with bars; thin lines for the other readings."""
        table, axis = tables[self.id], figure.subplots()
        line(axis, table, "width", "without", "mp", "without confidence")
        line(axis, table, "width", "with", "cl", "with confidence")
        with_c, without = sides(self.choices)
        others = {"data": "c = m / max m", "share": "c = m / 100", "mean": "mean c", "one": "C = I"}
        shown = {"data", "share"} - {with_c} | {"mean", "one"} - {without.removesuffix("_share")}
        for kind, style in zip(sorted(shown), ((0, (1, 2)), (0, (3, 3))), strict=True):
            side = "with" if kind in ("data", "share") else "without"
            values = table[f"error_{kind}"]
            text = f"{side}, {others[kind]} instead"
            axis.plot(table["width"], values, color=GREY, linestyle=style, lw=1, label=text)
        axis.set(xlabel=WIDTH, ylabel="mean squared error to the true means")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8)


class WinRatio(_Confidence):
    """Figure 2, middle."""

    id = "fig2-middle"

    def tables(self) -> Tables:
        """The share of instances in which confidence values give the smaller error."""
        with_c, without = sides(self.choices)
        rows = []
        for width, tasks in self.groups().items():
            table = stored_table(tasks)
            row: dict[str, Any] = {"width": width, "instances": len(table)}
            row |= with_interval("win_ratio", wins(table[with_c], table[without]))
            row["ties"] = int((table[with_c] == table[without]).sum())
            for kind in ("mean", "one"):
                other = table[WITHOUT[with_c, kind]]
                row[f"win_ratio_{kind}"] = float(wins(table[with_c], other).mean())
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """The ratio, and that with the other reading of "without"."""
        table, axis = tables[self.id], figure.subplots()
        axis.axhline(0.5, color=GREY, linewidth=0.8)
        line(axis, table, "width", "win_ratio", "cl", "as chosen (choices.yaml)")
        other = "one" if sides(self.choices)[1] != "one" else "mean"
        text = 'if "without" is ' + ("C = I" if other == "one" else "the mean confidence")
        values = table[f"win_ratio_{other}"]
        axis.plot(table["width"], values, color=GREY, linestyle=(0, (1, 2)), label=text)
        axis.set(xlabel=WIDTH, ylabel="win ratio", ylim=(0, 1))
        axis.legend(fontsize=8, loc="lower right")


def wins(ours: pd.Series[float], theirs: pd.Series[float]) -> pd.Series[float]:
    """1 where our error is smaller, ½ where both are the same."""
    # Equal confidences give equal systems; what rounding makes of them is no win.
    tie = (ours - theirs).abs() <= 1e-12 * theirs
    return (ours < theirs).where(~tie, 0.5).astype(float)


# --- figure 2, right ----------------------------------------------------------------------------
#: Synchronous rounds after which errors are compared.
ROUNDS = (2, 4, 8, 16)


class MeanCommunications(Experiment):
    """Figure 2, right."""

    id = "fig2-right"
    size = (5.2, 3.8)
    looks: ClassVar = {"sync": "sync", "hello": "cl", "known": "warm", "own": "mp"}
    texts: ClassVar = {
        "sync": "synchronous rounds",
        "hello": "asynchronous, everybody says hello",
        "known": "neighbours known free of charge",
        "own": "neighbours unknown at first",
    }

    @property
    def starts(self) -> tuple[str, ...]:
        """What agents know at first: the main reading, then the others."""
        choice = self.choices.all["mean_estimation.start"]
        return (choice.value, *choice.others)

    def groups(self) -> dict[str, list[Run]]:
        """Every instance by rounds, and by gossip from each start."""
        seeds = range(self.sizes.mean_runs)
        return {
            which: self.paper.runs(self._scenario(which, seed) for seed in seeds)
            for which in ("sync", *self.starts)
        }

    def _scenario(self, which: str, seed: int) -> Any:
        length = self.sizes.mean_communications
        # In rounds nobody says hello: the first round tells everybody the same.
        mode, start = ("sync", "own") if which == "sync" else ("async", which)
        alpha = self.choices["mean_estimation.alpha"]
        return moons(
            self.choices,
            name=self.id,
            seed=seed,
            algorithm={"kind": "mp", "mode": mode, "alpha": alpha, "start": start},
            stop={"communications": length},
            record={"every_communications": length // 200},
        )

    def tables(self) -> Tables:
        """Error after so many communications, geometric means over instances."""
        groups = self.groups()
        traces = {name: [trace(run) for run in own] for name, own in groups.items()}
        x = np.linspace(0, self.sizes.mean_communications, 201)
        final = [summary(run)["metrics"]["optimum"] for run in groups["sync"]]
        optimum = geometric("optimum", [found["l2_error"] for found in final])["optimum"]
        curves = []
        for name, own in traces.items():
            errors = [last_values(t, "communications", x, ["l2_error"])[:, 0] for t in own]
            place = {"algorithm": name, "communications": x.astype(int), "instances": len(own)}
            curves.append(curve("error", errors, logs=True, **place, optimum=optimum))
        table = pd.concat(curves, ignore_index=True)
        return {self.id: table, f"{self.id}-rounds": self._rounds(traces)}

    def _rounds(self, traces: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
        """Asynchronous over synchronous error after each synchronous round, by start."""
        curves = []
        for start in self.starts:
            ratios = list(map(ratio_by_round, traces["sync"], traces[start]))
            rounds = np.arange(1, len(ratios[0]) + 1)
            place = {"start": start, "round": rounds, "instances": len(ratios)}
            curves.append(curve("ratio", ratios, logs=True, **place))
        return pd.concat(curves, ignore_index=True)

    def draw(self, figure: Figure, tables: Tables) -> None:
        """A step line for rounds and for each start, on a logarithmic scale."""
        table, axis = tables[self.id], figure.subplots()
        for name in ("sync", *self.starts):
            own = table[table["algorithm"] == name]
            x = own["communications"] / 1000
            main = name in ("sync", self.starts[0])
            style = {**LOOKS[self.looks[name]], "marker": None, "linewidth": 1.8 if main else 1.0}
            axis.step(x, own["error"], where="post", label=self.texts[name], **style)
            if main:
                band(axis, x, own, "error", style["color"], step="post")
        best = table["optimum"][0]
        axis.axhline(best, color=GREY, linestyle=":", linewidth=1, label="optimum")
        axis.set_yscale("log")
        axis.set_ylim(0.5 * best, 2 * table["error"].max())  # bands of few instances are wide
        axis.set(xlabel="communications (thousands)", ylabel="mean squared error to the true means")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)


def ratio_by_round(synchronous: pd.DataFrame, asynchronous: pd.DataFrame) -> Any:
    """Asynchronous over synchronous error after the communications of each round."""
    ends = synchronous.drop_duplicates("communications", keep="last").iloc[1:]
    x = ends["communications"].to_numpy()
    errors = last_values(asynchronous, "communications", x, ["l2_error"])[:, 0]
    return errors / ends["l2_error"].to_numpy()
