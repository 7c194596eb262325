"""Section 5.1, collaborative mean estimation: figures 1 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.choices import Choices
from reproduction.closed_forms import confidences, propagated
from reproduction.measuring import (
    LOOKS,
    band,
    curve,
    geometric,
    line,
    summary,
    trace,
    with_interval,
)
from reproduction.paper import ClosedForm, Made, Paper
from reproduction.problems import moons
from simulator.figures.run_figures import moon_panels
from simulator.figures.style import GREY
from simulator.problem.build import build_problem
from simulator.seeds import Streams
from simulator.sweeps.tables import last_values

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


def width_tasks(paper: Paper, width: float) -> list[ClosedForm]:
    """Closed forms of the instances with confidences of one width."""
    sizes = paper.sizes
    seeds = range(sizes.small_instances if width == SMALL else sizes.mean_instances)
    alphas = (paper.choices["mean_estimation.alpha"],)
    problem = moons(paper.choices, width)
    return paper.closed_forms("mean-errors", problem, seeds, BLOCK, alphas=alphas)


def _widths(paper: Paper) -> dict[float, pd.DataFrame]:
    return paper.tables({width: width_tasks(paper, width) for width in paper.sizes.widths})


def fig1(paper: Paper, figure: Figure) -> Made:
    """The instance of figure 2 whose gain from confidence values is the median of all."""
    found, alpha = paper.table(width_tasks(paper, 1.0)), paper.choices["mean_estimation.alpha"]
    with_c, without = sides(paper.choices)
    order = (found[with_c] / found[without]).sort_values(kind="stable").index
    seed = int(found["seed"][order[(len(order) - 1) // 2]])
    problem = build_problem(moons(paper.choices), Streams(seed))
    kinds = confidences(problem, 100)
    models = propagated(problem, np.array([kinds[without], kinds[with_c]]), (1 - alpha) / alpha)
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
    titles = {
        "truth": "(a) true means",
        "solitary": "(b) solitary models",
        "without": "(c) MP without confidence",
        "with": "(d) MP with confidence",
    }
    panels = [(title, table[name].to_numpy()) for name, title in titles.items()]
    moon_panels(figure, problem.vectors, panels)
    names = ("solitary", "without", "with")
    return {"fig1": table}, {k: np.mean((table[k] - table["truth"]) ** 2) for k in names}


# --- figure 2, left and middle ------------------------------------------------------------------
def fig2_left(paper: Paper, figure: Figure) -> Made:
    """Mean errors with and without confidence, by ε, and those of the other readings of it."""
    with_c, without = sides(paper.choices)
    other, other_c = _others(with_c, without)
    tables = _widths(paper)
    first, rows = next(iter(tables.values())), []
    for width, table in tables.items():
        row: dict[str, Any] = {"width": width, "instances": len(table)}
        row["noise"] = paper.choices["mean_estimation.noise"]
        row |= with_interval("with", table[with_c]) | with_interval("without", table[without])
        # The same seeds have the same places and noise at every ε: compare in pairs.
        change = (table[with_c] - first[with_c]).dropna()
        row |= with_interval("change", change / first[with_c].mean())
        # The gap in favour of confidence values, and what it is more than at a small ε.
        gap = (table[without] - table[with_c]) / table[with_c].mean()
        if width <= SMALL:
            small = gap
        row |= with_interval("gap", gap) | with_interval("gap_growth", (gap - small).dropna())
        # The same with the other reading of "without", and of the confidences.
        row |= with_interval("gap_other", (table[other] - table[with_c]) / table[with_c].mean())
        shift = (table[other_c] - first[other_c]).dropna()
        row |= with_interval("change_other", shift / first[other_c].mean())
        for kind in ("data", "share", "mean", "mean_share", "one", "solitary"):
            row[f"error_{kind}"] = float(table[kind].mean())
        rows.append(row)
    means = pd.DataFrame(rows)
    axis = figure.subplots()
    line(axis, means, "width", "without", "mp", "without confidence")
    line(axis, means, "width", "with", "cl", "with confidence")
    texts = {"data": "c = m / max m", "share": "c = m / 100", "mean": "mean c", "one": "C = I"}
    for kind, style in ((other_c, (0, (3, 3))), (other.removesuffix("_share"), (0, (1, 2)))):
        look: Any = {"color": GREY, "linestyle": style, "linewidth": 1}
        axis.plot(means["width"], means[f"error_{kind}"], label=f"{texts[kind]} instead", **look)
    axis.set(xlabel=WIDTH, ylabel="mean squared error to the true means", ylim=(0, None))
    axis.legend(fontsize=8)
    return {"fig2-left": means}, {}


def _others(with_c: str, without: str) -> tuple[str, str]:
    """The other reading of "without confidence", and the other confidences."""
    (other,) = {WITHOUT[with_c, kind] for kind in ("mean", "one")} - {without}
    return other, "data" if with_c == "share" else "share"


def fig2_middle(paper: Paper, figure: Figure) -> Made:
    """The share of instances in which confidence values give the smaller error."""
    with_c, without = sides(paper.choices)
    other, rows = _others(with_c, without)[0], []
    for width, found in _widths(paper).items():
        row: dict[str, Any] = {"width": width, "instances": len(found)}
        row |= with_interval("win_ratio", wins(found[with_c], found[without]))
        row["ties"] = int((found[with_c] == found[without]).sum())
        row |= with_interval("win_ratio_other", wins(found[with_c], found[other]))
        rows.append(row)
    table, axis = pd.DataFrame(rows), figure.subplots()
    axis.axhline(0.5, color=GREY, linewidth=0.8)
    line(axis, table, "width", "win_ratio", "cl", "as chosen (choices.yaml)")
    text = 'if "without" is ' + ("C = I" if other == "one" else "the mean confidence")
    style: Any = {"color": GREY, "linestyle": (0, (1, 2)), "label": text}
    axis.plot(table["width"], table["win_ratio_other"], **style)
    axis.set(xlabel=WIDTH, ylabel="win ratio", ylim=(0, 1))
    axis.legend(fontsize=8, loc="lower right")
    return {"fig2-middle": table}, {}


def wins(ours: pd.Series[float], theirs: pd.Series[float]) -> pd.Series[float]:
    """1 where our error is smaller, ½ where both are the same."""
    # Equal confidences give equal systems; what rounding makes of them is no win.
    tie = (ours - theirs).abs() <= 1e-12 * theirs
    return (ours < theirs).where(~tie, 0.5).astype(float)


# --- figure 2, right ----------------------------------------------------------------------------
#: Synchronous rounds after which errors are compared.
ROUNDS = (2, 4, 8, 16)
_LOOKS = {"sync": "sync", "hello": "cl", "known": "warm", "own": "mp"}
_TEXTS = {
    "sync": "synchronous rounds",
    "hello": "asynchronous, everybody says hello",
    "known": "neighbours known free of charge",
    "own": "neighbours unknown at first",
}


def ratio_by_round(synchronous: pd.DataFrame, asynchronous: pd.DataFrame) -> Any:
    """Asynchronous over synchronous error after the communications of each round."""
    ends = synchronous.drop_duplicates("communications", keep="last").iloc[1:]
    x = ends["communications"].to_numpy()
    errors = last_values(asynchronous, "communications", x, ["l2_error"])[:, 0]
    return errors / ends["l2_error"].to_numpy()


def fig2_right(paper: Paper, figure: Figure) -> Made:
    """Error after so many communications, of rounds and from each start; ratios by round."""
    length, alpha = paper.sizes.mean_communications, paper.choices["mean_estimation.alpha"]

    def scenario(which: str, seed: int) -> Any:
        # In rounds nobody says hello: the first round tells everybody the same.
        mode, start = ("sync", "own") if which == "sync" else ("async", which)
        return moons(
            paper.choices,
            name="fig2-right",
            seed=seed,
            algorithm={"kind": "mp", "mode": mode, "alpha": alpha, "start": start},
            stop={"communications": length},
            record={"every_communications": length // 200},
        )

    choice, seeds = paper.choices.all["mean_estimation.start"], range(paper.sizes.mean_runs)
    starts = (choice.value, *choice.others)  # the main reading first
    runs = {k: paper.runs(scenario(k, seed) for seed in seeds) for k in ("sync", *starts)}
    traces = {name: [trace(run) for run in own] for name, own in paper.finished(runs).items()}
    optima = [summary(run)["metrics"]["optimum"]["l2_error"] for run in runs["sync"]]
    optimum, axis = geometric("optimum", optima)["optimum"], figure.subplots()
    x, curves, ratios = np.linspace(0, length, 201), [], []
    for name, found in traces.items():
        errors = [last_values(t, "communications", x, ["l2_error"])[:, 0] for t in found]
        place: Any = {"algorithm": name, "communications": x.astype(int), "instances": len(found)}
        own = curve("error", errors, logs=True, **place, optimum=optimum)
        curves.append(own)
        main, thousands = name in ("sync", choice.value), x.astype(int) / 1000
        style = {**LOOKS[_LOOKS[name]], "marker": None, "linewidth": 1.8 if main else 1.0}
        axis.step(thousands, own["error"], where="post", label=_TEXTS[name], **style)
        if main:
            band(axis, thousands, own, "error", style["color"], step="post")
        if name != "sync":
            each = list(map(ratio_by_round, traces["sync"], found))
            place = {"start": name, "round": np.arange(1, len(each[0]) + 1), "instances": len(each)}
            ratios.append(curve("ratio", each, logs=True, **place))
    table = pd.concat(curves, ignore_index=True)
    axis.axhline(optimum, color=GREY, linestyle=":", linewidth=1, label="optimum")
    axis.set_yscale("log")
    axis.set_ylim(0.5 * optimum, 2 * table["error"].max())  # bands of few instances are wide
    axis.set(xlabel="communications (thousands)", ylabel="mean squared error to the true means")
    figure.legend(loc="outside upper center", ncols=2, fontsize=8)
    return {"fig2-right": table, "fig2-right-rounds": pd.concat(ratios, ignore_index=True)}, {}
