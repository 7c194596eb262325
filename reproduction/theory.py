"""What the paper says without an experiment: of its objectives, of ADMM's rate, Theorem 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reproduction.classification import curve_runs
from reproduction.measuring import LOOKS, band, curve, intervals, summary, trace, with_interval
from reproduction.paper import Made, Paper
from reproduction.problems import moons
from simulator import Scenario
from simulator.runs.tasks import Run
from simulator.store.store import MODELS

#: Agents, their neighbours and rounds of ADMM on means, whose objective is strongly convex.
_AGENTS, _NEIGHBOURS, _ROUNDS = 100, 10, 150
#: The trade-off of these means.
_ALPHA = 0.9
#: Distances below this share of the start's are rounding.
_LEAST = 1e-18


def _means(paper: Paper) -> list[Run]:
    """ADMM by rounds on nearest neighbours: with a kernel's tiny weights the rate would be tiny."""
    # As model propagation with the same α, if the best-informed agent has 100 points.
    algorithm = {"kind": "admm", "mode": "sync", "mu": (1 - _ALPHA) / _ALPHA / 100, "rho": 1.0}
    graph = {"kind": "knn", "k": _NEIGHBOURS, "allow_disconnected": True}
    links = 2 * _NEIGHBOURS * _AGENTS
    return paper.runs(
        moons(
            paper.choices,
            agents=_AGENTS,
            graph=graph,
            name="theory",
            seed=seed,
            algorithm=algorithm,
            stop={"communications": _ROUNDS * links},
            record={"every_communications": links // 4},
        )
        for seed in range(paper.sizes.run_instances)
    )


def theory(paper: Paper, figure: Figure) -> Made:
    """What synchronous ADMM leaves by round, with both losses; how far MP and CL are apart."""
    instances, alphas = paper.sizes.run_instances, (paper.choices["mean_estimation.alpha"],)
    hinge = curve_runs(paper, paper.choices, ("sync",), instances)["sync"]  # figure 3, right
    problem, seeds = moons(paper.choices), range(instances)
    both = paper.table(paper.closed_forms("equivalence", problem, seeds, 1, alphas=alphas))
    found = paper.finished({("hinge", "gap"): hinge, ("means", "distance"): _means(paper)})
    curves, fits = list[pd.DataFrame](), list[dict[str, Any]]()
    for (loss, metric), runs in found.items():
        left = [_by_round(trace(run), metric) for run in runs]
        fits += [{"loss": loss, "seed": k} | _fit(own) for k, own in enumerate(left)]
        rounds = np.arange(1, min(map(len, left)))
        place = {"loss": loss, "metric": metric, "round": rounds, "instances": len(left)}
        curves.append(curve("left", [own[rounds] / own[0] for own in left], logs=True, **place))
    rates = [
        {"loss": kind, **intervals(own.drop(columns=["loss", "seed"]))}
        for kind, own in pd.DataFrame(fits).groupby("loss")
    ]
    _draw_rates(figure, *curves)
    tables = {"theory": pd.concat(curves, ignore_index=True), "theory-rates": pd.DataFrame(rates)}
    words = {"instances": len(both), **both[["objectives", "models"]].max()}
    return {**tables, "theory-equivalence": both}, words


def _draw_rates(figure: Figure, of_hinge: pd.DataFrame, of_means: pd.DataFrame) -> None:
    """The gap on logarithmic axes, the distance against plain rounds."""
    hinge, means = figure.subplots(1, 2)
    for axis, own, look in ((hinge, of_hinge, "sync"), (means, of_means, "cl")):
        style = {**LOOKS[look], "marker": None}
        axis.plot(own["round"], own["left"], label="synchronous ADMM", **style)
        band(axis, own["round"], own, "left", style["color"])
        axis.set(yscale="log", xlabel="round t")
    slow = of_hinge["left"].iloc[0] / of_hinge["round"]
    hinge.plot(of_hinge["round"], slow, label="1/t", **{**LOOKS["solitary"], "marker": None})
    hinge.set_xscale("log")
    ticks = [t for t in (1, 2, 5, 10, 20, 50) if t <= of_hinge["round"].max()]
    hinge.set_xticks(ticks, [f"{t}" for t in ticks])
    hinge.minorticks_off()
    hinge.set_title("hinge loss, p = 50", fontsize=9)
    hinge.set_ylabel("objective above its least, start = 1")
    hinge.legend(fontsize=8)
    means.set_title("means", fontsize=9)
    means.set_ylabel("squared distance to the optimum, start = 1")


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
#: Footnote 1: the analysis extends to clocks of different rates.
CLOCKS: dict[str, Any] = {
    "equal": 1.0,
    "unequal": {"kind": "lognormal", "mean": 1.0, "sigma": 1.0},
}


def _from_one_start(paper: Paper, clocks: str, length: int, seed: int) -> Scenario:
    """A run; all of them start from the same random models and copies."""
    alpha = paper.choices["mean_estimation.alpha"]
    return moons(
        paper.choices,
        agents=30,
        name="theorem1",
        seed=seed,
        problem_seed=0,
        algorithm={"kind": "mp", "alpha": alpha, "start": {"kind": "normal", "scale": 10}},
        clock={"rate": CLOCKS[clocks]},
        stop={"communications": length},
        record={"every_communications": length},
    )


def theorem1(paper: Paper, figure: Figure) -> Made:
    """Squared distance to Θ*: of the mean of the runs of each length, and of a single run."""
    seeds, lengths = range(paper.sizes.theorem_runs), paper.sizes.theorem_communications
    runs = {
        (clocks, length): paper.runs(
            (_from_one_start(paper, clocks, length, seed) for seed in seeds), reads=(MODELS,)
        )
        for clocks in CLOCKS
        for length in lengths
    }
    rows = []
    for (clocks, length), own in paper.finished(runs).items():
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
    table = pd.DataFrame(rows)
    looks = {
        ("equal", "single_run"): ("mp", "a single run, in the mean"),
        ("equal", "mean_of_runs"): ("cl", "the mean of all runs"),
        ("unequal", "single_run"): ("warm", "a single run, unequal clocks"),
        ("unequal", "mean_of_runs"): ("sync", "the mean of all, unequal clocks"),
    }
    axis = figure.subplots()
    for (clocks, name), (look, text) in looks.items():
        shown = table[table["clocks"] == clocks]
        x = shown["communications"] / 1000
        axis.plot(x, shown[name] / shown["start"], label=text, markersize=4, **LOOKS[look])
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(x, [f"{value:g}" for value in x])
    axis.minorticks_off()
    axis.set(xlabel="communications (thousands)", ylabel="squared distance to Θ*, start = 1")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8)
    return {"theorem1": table}, {}
