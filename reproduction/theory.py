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
    hinge.set(xscale="log", title="hinge loss, p = 50")
    hinge.set_ylabel("objective above its least, start = 1")
    hinge.legend(fontsize=8)
    means.set(title="means", ylabel="squared distance to the optimum, start = 1")


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

#: The exact expectation is followed through so many doublings more than there are runs.
_LONGER = 2


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
    """Squared distance to Θ*: of the expected models, of the mean of runs, and of a single run."""
    seeds, lengths = range(paper.sizes.theorem_runs), paper.sizes.theorem_communications
    longer = (*lengths, *(lengths[-1] * 2 ** (k + 1) for k in range(_LONGER)))
    runs = {
        (clocks, length): paper.runs(
            (_from_one_start(paper, clocks, length, seed) for seed in seeds), reads=(MODELS,)
        )
        for clocks in CLOCKS
        for length in lengths
    }
    exact = {
        # Equal clocks are the same in every run.
        clocks: paper.closed_forms(
            "expected-models",
            _from_one_start(paper, clocks, 2, 0),
            seeds[:1] if clocks == "equal" else seeds,
            1,
            lengths=longer,
        )
        for clocks in CLOCKS
    }
    paper.finished({**runs, **exact})
    rows = []
    for clocks, tasks in exact.items():
        first = runs[clocks, lengths[0]][0]
        start = summary(first)["metrics"]["start"]["distance"]
        every = paper.table(tasks)
        for length in longer:
            own = every[every["communications"] == length]
            expected = own.pivot(index="seed", columns="agent", values="expected").to_numpy()
            optimum = own["optimum"].to_numpy()[: expected.shape[1]]
            row: dict[str, Any] = {"clocks": clocks, "communications": length, "start": start}
            # Given the clocks, whose draws are all that the interval is about; and in the mean.
            row |= with_interval("expected", np.mean((expected - optimum) ** 2, axis=1) / start)
            if clocks == "equal":
                row |= dict.fromkeys(("expected_low", "expected_high"), row["expected"])
            row["expected_mean"] = np.mean((expected.mean(axis=0) - optimum) ** 2) / start
            rows.append(row | _measured(runs.get((clocks, length), []), start))
    table = pd.DataFrame(rows)
    _draw_theorem(figure, table)
    return {"theorem1": table}, {}


def _measured(runs: list[Run], start: float) -> dict[str, Any]:
    """What the runs of one length, if there are any, leave of the distance at the start."""
    if not runs:
        return {}
    arrays = [run.store.arrays(run.place) for run in runs]
    models, optimum = np.stack([found["models"] for found in arrays]), arrays[0]["optimum"]
    return {
        "runs": len(runs),
        "mean_of_runs": np.mean((models.mean(axis=0) - optimum) ** 2) / start,
        # What the mean of so many runs would be off by if its expectation were Θ*.
        "noise": np.mean(models.var(axis=0, ddof=1)) / len(runs) / start,
        **with_interval("single_run", np.mean((models - optimum) ** 2, axis=(1, 2)) / start),
    }


def _draw_theorem(figure: Figure, table: pd.DataFrame) -> None:
    """Distances on logarithmic axes, down to where single numbers end."""
    looks = {
        "single_run": ("mp", "a single run"),
        "mean_of_runs": ("cl", "the mean of all runs"),
        "expected_mean": ("sync", "expected, computed exactly"),
    }
    panels = figure.subplots(1, 2, sharey=True)
    for axis, (clocks, own) in zip(panels, table.groupby("clocks", sort=False), strict=True):
        x = own["communications"] / 1000
        for name, (look, text) in looks.items():
            axis.plot(x, own[name], label=text, markersize=4, **LOOKS[look])
        axis.set(xscale="log", yscale="log", ylim=(1e-10, 1))
        axis.set_xticks(x[::2], [f"{value:,g}" for value in x[::2]])
        axis.minorticks_off()
        axis.set_xlabel("communications (thousands)")
        axis.set_title(f"{clocks} clocks", fontsize=9)
    panels[0].set_ylabel("squared distance to Θ*, start = 1")
    figure.legend(
        *axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8
    )
