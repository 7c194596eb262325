"""What the paper says of its objectives and of ADMM without an experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reproduction.classification import curve_runs
from reproduction.experiment import (
    LOOKS,
    ClosedForm,
    Experiment,
    Tables,
    geometric,
    stored_table,
    trace,
    with_interval,
)
from reproduction.problems import moons
from simulator.sweeps.work import Run, Task

#: Agents, their neighbours and rounds of ADMM on means, whose objective is strongly convex.
_AGENTS, _NEIGHBOURS, _ROUNDS = 100, 10, 150
#: The trade-off of these means.
_ALPHA = 0.9
#: Distances below this share of the start's are rounding.
_LEAST = 1e-18


class Theory(Experiment):
    """MP and CL on means, and the rate of synchronous ADMM."""

    id = "theory"
    title = "Synchronous ADMM's rate: hinge loss (convex) and means (strongly convex)"
    size = (8.8, 3.3)

    def tasks(self) -> list[Task]:
        """Optima of both objectives on means; ADMM by rounds with both losses."""
        return [*self._equivalence(), *self._hinge(), *self._means()]

    def _equivalence(self) -> list[ClosedForm]:
        alphas = (self.choices["mean_estimation.alpha"],)
        seeds = range(self.sizes.run_instances)
        return self.paper.closed_forms("equivalence", moons(self.choices), seeds, 1, alphas=alphas)

    def _hinge(self) -> list[Run]:
        """Those of figure 3, right."""
        return curve_runs(self.paper, self.choices, ("sync",), self.sizes.run_instances)

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
        curves: list[dict[str, Any]] = []
        fits: list[dict[str, Any]] = []
        for loss, metric, runs in (
            ("hinge", "gap", self._hinge()),
            ("means", "distance", self._means()),
        ):
            left = [_by_round(trace(run), metric) for run in runs]
            fits += [{"loss": loss, "seed": k} | _fit(own) for k, own in enumerate(left)]
            for k in range(min(map(len, left)) - 1):
                row = {"loss": loss, "metric": metric, "round": k + 1, "instances": len(left)}
                curves.append(row | geometric("left", [own[k + 1] / own[0] for own in left]))
        means = []
        for kind, own in pd.DataFrame(fits).groupby("loss"):
            row = {"loss": kind}
            for name in ("exponent", "factor", "straight_r2"):
                row |= with_interval(name, own[name])
            means.append(row)
        return {
            self.id: pd.DataFrame(curves),
            f"{self.id}-rates": pd.DataFrame(means),
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
            band = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
            axis.fill_between(own["round"], own["left_low"], own["left_high"], **band)
            axis.set_yscale("log")
            axis.set_xlabel("round t")
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

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        own = tables[f"{self.id}-equivalence"]
        return (
            "Appendix D: synchronous ADMM by rounds; left Q/Q* − 1 for the hinge loss (figure 3), "
            f"right the squared distance to the optimum on means ({_AGENTS} agents, {_NEIGHBOURS} "
            f"nearest neighbours, α = {_ALPHA:g}, ρ = 1), whose "
            "objective is strongly convex; geometric mean and 95 % interval over "
            f"{len(own)} instances. In theory-equivalence.csv, section 5.2's remark that CL is "
            "essentially MP on means: with μ_CL m_i = μ_MP c_i, Q_CL is 2 Q_MP plus a constant "
            f"(to {own['objectives'].max():.1e} of its size at random models), and the optima "
            f"are the same (to {own['models'].max():.1e})."
        )


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
