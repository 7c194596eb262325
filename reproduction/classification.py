"""Section 5.2, collaborative linear classification: figure 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.choices import Choices
from reproduction.closed_forms import by_instance
from reproduction.measuring import (
    LOOKS,
    band,
    curve,
    intervals,
    method_lines,
    reached,
    summary,
    trace,
)
from reproduction.paper import ClosedForm, Made, Paper
from reproduction.problems import separators
from reproduction.tuning import best_of, by_trade_off, grid
from simulator import Scenario
from simulator.runs.tasks import Run
from simulator.sweeps.tables import last_values

NAMES = {
    "solitary": "solitary models",
    "consensus": "consensus model",
    "mp": "model propagation",
    "cl": "collaborative learning",
}
#: A ridge of the solitary models that is beside the chosen one, with which they are the shortest.
RIDGE = 0.01


def optima(paper: Paper, dimension: int, seeds: Iterable[int]) -> list[ClosedForm]:
    """All methods' models with the chosen trade-offs, an instance a task."""
    choices = paper.choices
    trade_offs = (choices.at(f"linear_classification.{k}", dimension) for k in ("alpha", "mu"))
    alphas, mus = ((value,) for value in trade_offs)
    problem = separators(choices, dimension)
    return paper.closed_forms("accuracies", problem, seeds, 1, alphas=alphas, mus=mus)


# --- figure 3, left and middle ------------------------------------------------------------------
def fig3_left(paper: Paper, figure: Figure) -> Made:
    """Mean accuracies and, in pairs, their differences, by dimension."""
    seeds, rows = range(paper.sizes.instances), []
    ridged = _ridged(paper, paper.sizes.dimensions, seeds)
    tasks = {p: optima(paper, p, seeds) for p in paper.sizes.dimensions}
    for p, found in paper.tables(tasks).items():
        accuracy = by_instance(found)
        accuracy = accuracy[list(NAMES)].join(ridged[p][["solitary", "mp"]].add_suffix("_ridged"))
        accuracy = accuracy.assign(
            cl_minus_mp=accuracy["cl"] - accuracy["mp"],
            cl_minus_mp_ridged=accuracy["cl"] - accuracy["mp_ridged"],
            mp_minus_solitary=accuracy["mp"] - accuracy["solitary"],
            cl_minus_solitary=accuracy["cl"] - accuracy["solitary"],
        )
        rows.append({"dimension": p, "instances": len(accuracy), **intervals(accuracy)})
    table = pd.DataFrame(rows)
    texts = {method: NAMES[method] for method in reversed(NAMES)}
    axis = method_lines(figure, table, "dimension", texts)
    for method in ("mp", "solitary"):
        look = {**LOOKS[method], "linewidth": 0.8, "markersize": 3, "alpha": 0.7}
        axis.plot(table["dimension"], table[f"{method}_ridged"], **look)
    axis.set_xlabel("dimension p")
    return {"fig3-left": table}, {"ridge": RIDGE}


def _ridged(paper: Paper, dimensions: Sequence[int], seeds: range) -> dict[int, pd.DataFrame]:
    """Solitary models and MP by instance with a ridge of 0.01 in equation 1, α tuned for it."""
    choices = paper.choices.changed({"linear_classification.ridge": RIDGE})
    problems = {p: separators(choices, p) for p in dimensions}
    name, reach = "linear_classification.alpha", paper.sizes.choice_reach

    def tasks(p: int, instances: range, tried: Sequence[float]) -> list[ClosedForm]:
        return paper.closed_forms("accuracies", problems[p], instances, 1, alphas=tried, mus=())

    held_out = paper.held_out(paper.sizes.held_out)
    tuned = paper.tables({p: tasks(p, held_out, grid(paper, name, reach, p)) for p in dimensions})
    best = {p: best_of(by_trade_off(table, "mp")) for p, table in tuned.items()}
    found = paper.tables({p: tasks(p, seeds, (best[p],)) for p in dimensions})
    return {p: by_instance(table) for p, table in found.items()}


def fig3_middle(paper: Paper, figure: Figure) -> Made:
    """Accuracies by number of points: means over the instances that have such agents."""
    # More instances than on the left, so that each number of points has enough agents.
    found = paper.table(optima(paper, 50, range(paper.sizes.size_instances)))
    wide = found.pivot_table(index=["points", "seed"], columns="method", values="accuracy")
    wide["agents"] = found[found["method"] == "cl"].set_index(["points", "seed"])["agents"]
    wide["cl_minus_mp"] = wide["cl"] - wide["mp"]
    names, rows = ["solitary", "mp", "cl", "cl_minus_mp"], []
    for points, group in wide.groupby("points"):
        row = {"points": points, "agents": int(group["agents"].sum())}
        rows.append(row | intervals(group[names]))
    # Slopes in accuracy per training point: one an instance, then mean and 95 % interval.
    slopes = [
        np.polyfit(group["points"], group[names], 1, w=np.sqrt(group["agents"]))[0]
        for _, group in wide.reset_index().groupby("seed")
    ]
    table, agents = pd.DataFrame(rows), pd.DataFrame(rows)["agents"]
    texts = {method: NAMES[method] for method in ("cl", "mp", "solitary")}
    axis = method_lines(figure, table, "points", texts)
    axis.set(xlabel="training points of the agent", xticks=[1, 5, 10, 15, 20])
    tables = {"fig3-middle": table, "fig3-middle-trends": curve("slope", slopes, method=names)}
    return tables, {"fewest": agents.min(), "most": agents.max()}


# --- figure 3, right ----------------------------------------------------------------------------
CURVES = {
    "sync": "synchronous ADMM",
    "cl": "asynchronous ADMM",
    "warm": "asynchronous ADMM from MP's optimum",
    "mp": "asynchronous MP",
}
#: Shares of the optimum's accuracy whose reaching is reported.
SHARES = (0.9, 0.95, 0.99)
#: Up to so many communications the axis is linear.
LINEAR = 5000


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


def samples(run: Run, choices: Choices) -> pd.DataFrame:
    """The samples of a run; where agents begin with a hello, so do rounds, and it is counted."""
    found = trace(run)
    if run.scenario.algorithm.mode != "sync" or choices["linear_classification.start"] != "hello":
        return found
    return with_hello(found)


def with_hello(found: pd.DataFrame) -> pd.DataFrame:
    """The samples of rounds after as many more communications as the first round has."""
    sent = found["communications"]
    later = found.assign(communications=sent + int(sent[sent > 0].iloc[0]))
    return pd.concat([found.iloc[:1], later], ignore_index=True)


def level_rows(
    name: str, runs: Sequence[Run], traces: Sequence[pd.DataFrame]
) -> list[dict[str, Any]]:
    """Communications to shares of the accuracy of the runs' optimum, a row an instance.

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


def fig3_right(paper: Paper, figure: Figure) -> Made:
    """Accuracy after so many communications, and those to shares of the optimum's accuracy."""
    choices, most = paper.choices, paper.sizes.run_communications
    # Curves are drawn at even steps first, then at even ratios.
    later = np.geomspace(LINEAR, most, 100).astype(int)
    x, axis = np.unique([*range(0, LINEAR, 50), *later]), figure.subplots()
    curves, levels = [], []
    runs = paper.finished(curve_runs(paper, choices, CURVES, paper.sizes.run_instances))
    for name, own in runs.items():
        traces = [samples(run, choices) for run in own]
        values = [last_values(t, "communications", x, ["accuracy"])[:, 0] for t in traces]
        place: Any = {"algorithm": name, "communications": x, "instances": len(own)}
        curves.append(curve("accuracy", values, **place))
        levels += level_rows(name, own, traces)
        if name == "mp":  # on its way to the optimum of collaborative learning
            levels += level_rows("mp towards cl", runs["cl"], traces)
        style = {**LOOKS[name], "marker": None}
        axis.step(x, curves[-1]["accuracy"], where="post", label=CURVES[name], **style)
        band(axis, x, curves[-1], "accuracy", style["color"], step="post", alpha=0.15)
    axis.set_xscale("symlog", linthresh=LINEAR, linscale=1.2)
    axis.set(xlim=(0, most), ylim=(0.5, 0.95))
    places = (0, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 50_000, 100_000)
    axis.set_xticks(ticks := [n for n in places if n <= most], [f"{n / 1000:g}" for n in ticks])
    axis.minorticks_off()
    axis.set_xlabel("communications (thousands; linear up to 5, logarithmic beyond)")
    axis.set_ylabel("mean test accuracy")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8)
    paid = ", a message on every link, which rounds pay for as well"
    hello = paid if choices["linear_classification.start"] == "hello" else ""
    tables = {"fig3-right": pd.concat(curves, ignore_index=True)}
    return {**tables, "fig3-right-levels": pd.DataFrame(levels)}, {"hello": hello}
