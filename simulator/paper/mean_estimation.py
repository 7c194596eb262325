"""Section 5.1, collaborative mean estimation: figures 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from simulator.figures.run import GREY, moon_panels
from simulator.paper.choices import Choices
from simulator.paper.closed_forms import confidences, propagated
from simulator.paper.experiment import (
    LOOKS,
    ClosedForm,
    Experiment,
    Tables,
    in_parts,
    line,
    stored_table,
    summary,
    trace,
    with_interval,
)
from simulator.paper.problems import moons
from simulator.problem.tasks import build_problem
from simulator.seeds import Streams
from simulator.sweeps.tables import last_values, mean_interval
from simulator.sweeps.work import Run, Task

#: Which column of ``mean_errors`` "without confidence" is, by the choices confidence and without.
WITHOUT = {
    ("data", "mean"): "mean",
    ("share", "mean"): "mean_share",
    ("data", "one"): "one",
    ("share", "one"): "one",
}
#: Instances in one task of a worker.
BLOCK = 50


def sides(choices: Choices) -> tuple[str, str]:
    """The columns of ``mean_errors`` that stand for "with" and "without" confidence."""
    with_c = choices["mean_estimation.confidence"]
    return with_c, WITHOUT[with_c, choices["mean_estimation.without"]]


class Moons(Experiment):
    """Figure 1."""

    id = "fig1"
    title = "The two moons: truth, solitary models, model propagation without and with confidence"
    size = (9.4, 2.0)

    def tasks(self) -> Sequence[Task]:
        """Nothing that takes time."""
        return []

    def tables(self) -> Tables:
        """One row an agent."""
        scenario = moons(self.choices)
        mu = (1 - self.choices["mean_estimation.alpha"]) / self.choices["mean_estimation.alpha"]
        with_c, without = sides(self.choices)
        with threadpool_limits(limits=1, user_api="blas"):
            problem = build_problem(scenario, Streams(0))
            kinds = confidences(problem, 100)
            models = propagated(problem, np.array([kinds[without], kinds[with_c]]), mu)
        assert problem.vectors is not None
        assert problem.targets is not None
        table = pd.DataFrame(
            {
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

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        errors = {
            name: float(np.mean((table[name] - table["truth"]) ** 2))
            for name in ("solitary", "without", "with")
        }
        return (
            "Collaborative mean estimation, one instance (seed 0, 300 agents, ε = 1): each point "
            "is an agent at its auxiliary vector, coloured by its estimated mean, cut off at ±1.5; "
            "triangles point down where it is negative. Mean squared error: solitary "
            f"{errors['solitary']:.3g}, model propagation without confidence "
            f"{errors['without']:.3g}, with confidence {errors['with']:.3g}."
            + (self._unlucky if errors["with"] > errors["without"] else "")
        )

    _unlucky = (
        " In this instance confidence values happen to do harm; fig2-middle shows how often they "
        "help."
    )


# --- figure 2, left and middle ------------------------------------------------------------------
class _Confidence(Experiment):
    """With and without confidence values against ε."""

    size = (4.6, 3.3)

    def tasks(self) -> list[ClosedForm]:
        """Closed forms of many instances for each ε; both figures use the same."""
        seeds = range(self.sizes.mean_instances)
        alphas = (self.choices["mean_estimation.alpha"],)
        return [
            task
            for width in self.sizes.widths
            for task in self.paper.closed_forms(
                "mean-errors", moons(self.choices, width), seeds, BLOCK, alphas=alphas
            )
        ]

    def by_width(self) -> list[tuple[float, pd.DataFrame]]:
        """The instances of each ε."""
        parts = in_parts(self.tasks(), len(self.sizes.widths))
        return list(zip(self.sizes.widths, map(stored_table, parts), strict=True))


class ErrorByWidth(_Confidence):
    """Figure 2, left."""

    id = "fig2-left"
    title = "L2 error of model propagation with and without confidence values against ε"

    def tables(self) -> Tables:
        """Mean errors with and without, by ε, and those of the other readings of the paper."""
        with_c, without = sides(self.choices)
        rows = []
        first: Any = None
        for width, table in self.by_width():
            row: dict[str, Any] = {"width": width, "instances": len(table)}
            row |= with_interval("with", table[with_c]) | with_interval("without", table[without])
            # The same seeds have the same places and noise at every ε: compare in pairs.
            first = table if first is None else first
            change = table[with_c] - first[with_c]
            row |= with_interval("change", change / first[with_c].mean())
            row |= with_interval("gain", table[without] - table[with_c])
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
        axis.set_xlabel("width ε of the confidences")
        axis.set_ylabel("mean squared error to the true means")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            "Mean estimation: error of the optimal models of model propagation (closed form) with "
            f"and without confidence values; mean and 95 % interval over {table['instances'][0]} "
            "random instances (300 agents, α = "
            f"{self.choices['mean_estimation.alpha']:g}) for each of {len(table)} values of ε. "
            "Thin lines: the other readings of C (choices.yaml)."
        )


class WinRatio(_Confidence):
    """Figure 2, middle."""

    id = "fig2-middle"
    title = "Win ratio of using confidence values against ε"

    def tables(self) -> Tables:
        """The share of instances in which confidence values give the smaller error."""
        with_c, without = sides(self.choices)
        rows = []
        for width, table in self.by_width():
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
        axis.set_xlabel("width ε of the confidences")
        axis.set_ylabel("win ratio")
        axis.set_ylim(0, 1)
        axis.legend(fontsize=8, loc="lower right")

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            "Mean estimation: share of random instances in which model propagation with confidence "
            "values has the smaller error than without (ties, which are all instances at ε = 0, "
            f"count one half); 95 % interval over {table['instances'][0]} instances for each ε. "
            'Dotted: with the other reading of "without confidence".'
        )


def wins(ours: pd.Series[float], theirs: pd.Series[float]) -> pd.Series[float]:
    """1 where our error is smaller, ½ where both are the same."""
    # Equal confidences give equal systems; what rounding makes of them is no win.
    tie = (ours - theirs).abs() <= 1e-12 * theirs
    return (ours < theirs).where(~tie, 0.5).astype(float)


# --- figure 2, right ----------------------------------------------------------------------------
class MeanCommunications(Experiment):
    """Figure 2, right."""

    id = "fig2-right"
    title = "L2 error against communications, synchronous and asynchronous model propagation"
    size = (4.8, 3.4)

    def tasks(self) -> list[Run]:
        """One synchronous run (nothing in it is random), then the asynchronous ones."""
        return self.paper.runs([self._scenario("sync", 0), *self._asynchronous()])

    def _asynchronous(self) -> list[Any]:
        return [self._scenario("async", seed) for seed in range(self.sizes.mean_runs)]

    def _scenario(self, mode: str, seed: int) -> Any:
        alpha, start = (self.choices[f"mean_estimation.{name}"] for name in ("alpha", "start"))
        length = self.sizes.mean_communications
        return moons(
            self.choices,
            name=self.id,
            seed=seed,
            problem_seed=0,
            algorithm={"kind": "mp", "mode": mode, "alpha": alpha, "start": start},
            stop={"communications": length},
            record={"every_communications": length // 400},
        )

    def tables(self) -> Tables:
        """Error after so many communications: synchronous, mean and spread of asynchronous."""
        synchronous, *asynchronous = [trace(run) for run in self.tasks()]
        x = np.linspace(0, self.sizes.mean_communications, 201)
        values = np.stack([last_values(t, "communications", x, ["l2_error"]) for t in asynchronous])
        mean, low, high = mean_interval(values[:, :, 0])
        table = pd.DataFrame(
            {
                "communications": x.astype(int),
                "runs": len(asynchronous),
                "sync": last_values(synchronous, "communications", x, ["l2_error"])[:, 0],
                "async": mean,
                "async_low": low,
                "async_high": high,
                "async_q05": np.quantile(values[:, :, 0], 0.05, axis=0),
                "async_q95": np.quantile(values[:, :, 0], 0.95, axis=0),
                "optimum": summary(self.tasks()[0])["metrics"]["optimum"]["l2_error"],
            }
        )
        return {self.id: table, f"{self.id}-rounds": self._rounds(synchronous, asynchronous)}

    def _rounds(self, synchronous: pd.DataFrame, asynchronous: list[pd.DataFrame]) -> pd.DataFrame:
        """Error of both after each synchronous round, and asynchronous over synchronous."""
        ends = synchronous.drop_duplicates("communications", keep="last").iloc[1:]
        x = ends["communications"].to_numpy()
        values = np.stack([last_values(t, "communications", x, ["l2_error"]) for t in asynchronous])
        rows = []
        for k, sync in enumerate(ends["l2_error"]):
            row: dict[str, Any] = {"round": k + 1, "communications": int(x[k]), "sync": sync}
            row |= with_interval("async", values[:, k, 0])
            row |= with_interval("ratio", values[:, k, 0] / sync)
            rows.append(row)
        return pd.DataFrame(rows)

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Both curves, on a logarithmic scale."""
        table, axis = tables[self.id], figure.subplots()
        thousands = table["communications"] / 1000
        style = {**LOOKS["sync"], "marker": None}
        axis.step(thousands, table["sync"], where="post", label="synchronous", **style)
        style = {**LOOKS["cl"], "marker": None}
        axis.step(thousands, table["async"], where="post", label="asynchronous, mean", **style)
        axis.fill_between(
            thousands,
            table["async_q05"],
            table["async_q95"],
            step="post",
            color=style["color"],
            alpha=0.25,
            linewidth=0,
            label="asynchronous, 5 to 95 % of runs",
        )
        text = "optimum"
        axis.axhline(table["optimum"][0], color=GREY, linestyle=":", linewidth=1, label=text)
        axis.set_yscale("log")
        axis.set_xlabel("communications (thousands)")
        axis.set_ylabel("mean squared error to the true means")
        axis.legend(fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            "Mean estimation: error against the number of pairwise communications on one instance "
            "(seed 0, 300 agents, complete graph, ε = 1, α = "
            f"{self.choices['mean_estimation.alpha']:g}), without delay or loss. Asynchronous: "
            f"mean and band of {table['runs'][0]} random runs, start "
            f"`{self.choices['mean_estimation.start']}`. A synchronous round is 89,700 "
            "communications, an exchange is 2."
        )
