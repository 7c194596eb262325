"""What the paper says without an experiment: of its objectives, of ADMM's rate, Theorem 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reproduction.classification import curve_runs
from reproduction.drawing import LOOKS, band
from reproduction.experiment import ClosedForm, Experiment, Groups, Tables
from reproduction.measuring import curve, intervals, stored_table, summary, trace, with_interval
from reproduction.problems import moons
from simulator import Scenario
from simulator.store.store import MODELS
from simulator.sweeps.work import Run

#: Agents, their neighbours and rounds of ADMM on means, whose objective is strongly convex.
_AGENTS, _NEIGHBOURS, _ROUNDS = 100, 10, 150
#: The trade-off of these means.
_ALPHA = 0.9
#: Distances below this share of the start's are rounding.
_LEAST = 1e-18


class Theory(Experiment):
    """MP and CL on means, and the rate of synchronous ADMM."""

    id = "theory"
    size = (8.8, 3.3)

    def groups(self) -> Groups:
        """Optima of both objectives on means; ADMM by rounds with both losses."""
        return {"both": self._equivalence(), "hinge": self._hinge(), "means": self._means()}

    def _equivalence(self) -> list[ClosedForm]:
        alphas = (self.choices["mean_estimation.alpha"],)
        seeds = range(self.sizes.run_instances)
        return self.paper.closed_forms("equivalence", moons(self.choices), seeds, 1, alphas=alphas)

    def _hinge(self) -> list[Run]:
        """Those of figure 3, right."""
        return curve_runs(self.paper, self.choices, ("sync",), self.sizes.run_instances)["sync"]

    def _means(self) -> list[Run]:
        """On nearest neighbours: with a kernel's tiny weights the rate would be tiny too."""
        alpha = _ALPHA
        # As model propagation with the same α, if the best-informed agent has 100 points.
        algorithm = {"kind": "admm", "mode": "sync", "mu": (1 - alpha) / alpha / 100, "rho": 1.0}
        graph = {"kind": "knn", "k": _NEIGHBOURS, "allow_disconnected": True}
        links = 2 * _NEIGHBOURS * _AGENTS
        return self.paper.runs(
            moons(
                self.choices,
                agents=_AGENTS,
                graph=graph,
                name=self.id,
                seed=seed,
                algorithm=algorithm,
                stop={"communications": _ROUNDS * links},
                record={"every_communications": links // 4},
            )
            for seed in range(self.sizes.run_instances)
        )

    def tables(self) -> Tables:
        """What is left by round; the fits of each instance; how far MP and CL are apart."""
        curves, fits = list[pd.DataFrame](), list[dict[str, Any]]()
        for loss, metric, runs in (
            ("hinge", "gap", self._hinge()),
            ("means", "distance", self._means()),
        ):
            left = [_by_round(trace(run), metric) for run in runs]
            fits += [{"loss": loss, "seed": k} | _fit(own) for k, own in enumerate(left)]
            rounds = np.arange(1, min(map(len, left)))
            place = {"loss": loss, "metric": metric, "round": rounds, "instances": len(left)}
            values = [own[rounds] / own[0] for own in left]
            curves.append(curve("left", values, logs=True, **place))
        rates = [
            {"loss": kind, **intervals(own.drop(columns=["loss", "seed"]))}
            for kind, own in pd.DataFrame(fits).groupby("loss")
        ]
        return {
            self.id: pd.concat(curves, ignore_index=True),
            f"{self.id}-rates": pd.DataFrame(rates),
            f"{self.id}-equivalence": stored_table(self._equivalence()),
        }

    def draw(self, figure: Figure, tables: Tables) -> None:
        """The gap on logarithmic axes, the distance against plain rounds."""
        table = tables[self.id]
        hinge, means = figure.subplots(1, 2)
        for axis, loss, look in ((hinge, "hinge", "sync"), (means, "means", "cl")):
            own = table[table["loss"] == loss]
            style = {**LOOKS[look], "marker": None}
            axis.plot(own["round"], own["left"], label="synchronous ADMM", **style)
            band(axis, own["round"], own, "left", style["color"])
            axis.set(yscale="log", xlabel="round t")
        own = table[table["loss"] == "hinge"]
        slow = own["left"].iloc[0] / own["round"]
        hinge.plot(own["round"], slow, label="1/t", **{**LOOKS["solitary"], "marker": None})
        hinge.set_xscale("log")
        ticks = [t for t in (1, 2, 5, 10, 20, 50) if t <= own["round"].max()]
        hinge.set_xticks(ticks, [f"{t}" for t in ticks])
        hinge.minorticks_off()
        hinge.set_title("hinge loss, p = 50", fontsize=9)
        hinge.set_ylabel("objective above its least, start = 1")
        hinge.legend(fontsize=8)
        means.set_title("means", fontsize=9)
        means.set_ylabel("squared distance to the optimum, start = 1")

    def words(self, tables: Tables) -> dict[str, Any]:
        """How far MP and CL are apart on means."""
        own = tables[f"{self.id}-equivalence"]
        return {"instances": len(own), **own[["objectives", "models"]].max()}


def _by_round(found: pd.DataFrame, metric: str) -> Any:
    """A metric at the start and after each round, down to rounding."""
    left = found.drop_duplicates("communications", keep="last")[metric].to_numpy()
    small = np.flatnonzero(left <= _LEAST * left[0])
    return left[: small[0]] if len(small) else left


def _fit(left: Any) -> dict[str, float]:
    """The exponent of t over the later half of the rounds, and the straight line in t."""
    t = np.arange(1, len(left))
    late = t > len(t) // 2
    line = stats.linregress(t[late], np.log(left[1:][late]))
    power = stats.linregress(np.log(t[late]), np.log(left[1:][late]))
    return {
        "exponent": float(power.slope),
        "factor": float(np.exp(line.slope)),
        "straight_r2": float(line.rvalue**2),
    }


# --- Theorem 1 ----------------------------------------------------------------------------------
class TheoremOne(Experiment):
    """The mean of many runs from an arbitrary start tends to the closed form."""

    id = "theorem1"
    size = (5.0, 3.6)
    #: Footnote 1: the analysis extends to clocks of different rates.
    clocks: ClassVar = {
        "equal": 1.0,
        "unequal": {"kind": "lognormal", "mean": 1.0, "sigma": 1.0},
    }

    def groups(self) -> dict[tuple[str, int], list[Run]]:
        """Runs of each length; all start from the same random models and copies."""

        def scenario(rate: Any, length: int, seed: int) -> Scenario:
            return moons(
                self.choices,
                agents=30,
                name=self.id,
                seed=seed,
                problem_seed=0,
                algorithm={
                    "kind": "mp",
                    "alpha": self.choices["mean_estimation.alpha"],
                    "start": {"kind": "normal", "scale": 10},
                },
                clock={"rate": rate},
                stop={"communications": length},
                record={"every_communications": length},
            )

        seeds = range(self.sizes.theorem_runs)
        return {
            (clocks, length): self.paper.runs(
                (scenario(rate, length, seed) for seed in seeds), reads=(MODELS,)
            )
            for clocks, rate in self.clocks.items()
            for length in self.sizes.theorem_communications
        }

    def tables(self) -> Tables:
        """Squared distance to Θ*: of the mean of the runs, and of a single run."""
        rows = []
        for (clocks, length), own in self.groups().items():
            arrays = [run.store.arrays(run.place) for run in own]
            models, optimum = np.stack([found["models"] for found in arrays]), arrays[0]["optimum"]
            start = summary(own[0])["metrics"]["start"]["distance"]
            row: dict[str, Any] = {"clocks": clocks, "communications": length, "runs": len(own)}
            row["start"] = start
            row["mean_of_runs"] = float(np.mean((models.mean(axis=0) - optimum) ** 2))
            # What the mean of so many runs would be off by if its expectation were Θ*.
            row["noise"] = float(np.mean(models.var(axis=0, ddof=1)) / len(own))
            row |= with_interval("single_run", np.mean((models - optimum) ** 2, axis=(1, 2)))
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Both distances, relative to that of the start."""
        axis = figure.subplots()
        looks = {
            ("equal", "single_run"): ("mp", "a single run, in the mean"),
            ("equal", "mean_of_runs"): ("cl", "the mean of all runs"),
            ("unequal", "single_run"): ("warm", "a single run, unequal clocks"),
            ("unequal", "mean_of_runs"): ("sync", "the mean of all, unequal clocks"),
        }
        for (clocks, name), (look, text) in looks.items():
            own = tables[self.id][tables[self.id]["clocks"] == clocks]
            x = own["communications"] / 1000
            axis.plot(x, own[name] / own["start"], label=text, markersize=4, **LOOKS[look])
        axis.set(xscale="log", yscale="log")
        axis.set_xticks(x, [f"{value:g}" for value in x])
        axis.minorticks_off()
        axis.set(xlabel="communications (thousands)", ylabel="squared distance to Θ*, start = 1")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)
