"""What results depend on: the other values of choices.yaml, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.choices import Choices
from reproduction.classification import NAMES, curve_runs, level_rows
from reproduction.closed_forms import by_instance
from reproduction.mean_estimation import BLOCK, sides, wins
from reproduction.measuring import trace, with_interval
from reproduction.paper import Made, Paper
from reproduction.problems import moons, separators
from reproduction.scalability import scaling_runs, scaling_table
from reproduction.tuning import best_of, by_trade_off, tuning_tasks
from simulator.figures.style import BLUE, GREY, ORANGE

#: A choice and a value of it; first of all none: as chosen.
Variant = tuple[str, Any]
Rows = Iterator[dict[str, Any]]
AS_CHOSEN: Variant = ("as chosen", "")
#: Methods in the names of measures.
CURVES = {"mp": "MP", "cl": "ADMM", "warm": "ADMM from MP's optimum"}


def other_choices(paper: Paper, figure: Figure) -> Made:
    """Long form: choice, value, measure, mean and 95 % interval."""
    parts = (_means(paper), _problems(paper), _ways(paper), _scales(paper))
    table = pd.DataFrame(row for part in parts for row in part)
    _draw(figure, table, list(paper.sizes.choice_problems))
    s = paper.sizes
    problems = " and ".join(
        f"{reported} at p = {p} ({held_out} held-out ones)"
        for p, (reported, held_out) in s.choice_problems.items()
    )
    speeds, scales = min(s.run_instances, s.choice_instances), min(3, s.choice_instances)
    return {"choices": table}, {"problems": problems, "speeds": speeds, "scales": scales}


def _variants(paper: Paper, block: str, *names: str) -> dict[Variant, Choices]:
    """As chosen, then each other value of each of the choices."""
    most = paper.sizes.choice_others
    every = [f"{block}.{name}" for name in names]
    others = [(k, value) for k in every for value in paper.choices.all[k].others[:most]]
    return {
        AS_CHOSEN: paper.choices,
        **{variant: paper.choices.changed(dict([variant])) for variant in others},
    }


def _row(variant: Variant, measure: str, values: Any) -> dict[str, Any]:
    found = with_interval("mean", values)
    return {"choice": variant[0], "value": variant[1], "measure": measure, **found}


def _means(paper: Paper) -> Rows:
    """Section 5.1, closed forms."""
    seeds = range(paper.sizes.choice_means)
    names = ("noise", "alpha", "confidence", "without")
    variants = _variants(paper, "mean_estimation", *names)
    tasks = {}
    for variant, choices in variants.items():
        alphas = (choices["mean_estimation.alpha"],)
        for width in (0.1, 1.0):
            problem = moons(choices, width)
            own = paper.closed_forms("mean-errors", problem, seeds, BLOCK, alphas=alphas)
            tasks[variant, width] = own
    for (variant, width), table in paper.tables(tasks).items():
        (with_c, without), at = sides(variants[variant]), f"ε = {width:g}"
        yield _row(variant, f"error with confidence, {at}", table[with_c])
        yield _row(variant, f"error without confidence, {at}", table[without])
        yield _row(variant, f"win ratio, {at}", wins(table[with_c], table[without]))


def _problems(paper: Paper) -> Rows:
    """Section 5.2, optimal models; each variant has its own trade-offs, tuned on held-out ones."""
    reach, sizes = paper.sizes.choice_reach, paper.sizes.choice_problems
    names = ("points", "test_flip", "min_weight", "ridge")
    problems = {
        (variant, p): separators(choices, p)
        for variant, choices in _variants(paper, "linear_classification", *names).items()
        for p in sizes
    }
    held_out = {
        key: tuning_tasks(paper, problem, sizes[key[1]][1], reach)
        for key, problem in problems.items()
    }
    best = {
        key: {method: best_of(by_trade_off(table, method)) for method in ("mp", "cl")}
        for key, table in paper.tables(held_out).items()
    }
    reported = {
        (variant, p): paper.closed_forms(
            "accuracies",
            problem,
            range(sizes[p][0]),
            1,
            alphas=(best[variant, p]["mp"],),
            mus=(best[variant, p]["cl"],),
        )
        for (variant, p), problem in problems.items()
    }
    for (variant, p), found in paper.tables(reported).items():
        table = by_instance(found)
        for method, name in NAMES.items():
            yield _row(variant, f"accuracy of {name}, p = {p}", table[method])
        yield _row(variant, f"tuned α of MP, p = {p}", [best[variant, p]["mp"]])
        yield _row(variant, f"tuned μ of CL, p = {p}", [best[variant, p]["cl"]])
        yield _row(variant, f"CL minus MP, p = {p}", table["cl"] - table["mp"])


def _ways(paper: Paper) -> Rows:
    """Section 5.2, the way to the optimum."""
    instances = min(paper.sizes.run_instances, paper.sizes.choice_instances)
    runs = {
        (variant, algo): own
        for variant, choices in _variants(paper, "linear_classification", "rho", "start").items()
        for algo, own in curve_runs(paper, choices, CURVES, instances).items()
    }
    to: dict[str, Any] = {}
    for (variant, algo), own in paper.finished(runs).items():
        levels = pd.DataFrame(level_rows(algo, own, [trace(run) for run in own]))
        to[algo] = levels["to_95"].to_numpy()
        text = f"communications of {CURVES[algo]} to"
        yield _row(variant, f"{text} 99 %", levels["to_99"])
        yield _row(variant, f"{text} 95 %", to[algo])
        if algo == list(CURVES)[-1]:
            yield _row(variant, "communications to 95 %, ADMM / MP", to["cl"] / to["mp"])


def _scales(paper: Paper) -> Rows:
    """Appendix E, for few agents and for more."""
    instances, agents = min(3, paper.sizes.choice_instances), paper.sizes.agents
    runs = {
        variant: [
            run
            for n in (agents[0], agents[max(1, len(agents) // 3)])
            for run in scaling_runs(paper, choices, n, instances)
        ]
        for variant, choices in _variants(paper, "scalability", "k", "rho").items()
    }
    for variant, found in paper.finished(runs).items():
        table = scaling_table(found)
        for algo in ("mp", "cl"):
            for n, own in table[table["algorithm"] == algo].groupby("agents"):
                measure = f"communications per agent of {CURVES[algo]} to 90 %, n = {n}"
                yield _row(variant, measure, own["communications"] / own["agents"])


def _draw(figure: Figure, table: pd.DataFrame, dimensions: list[int]) -> None:
    """A few measures of every variant, side by side."""
    few, many = min(dimensions), max(dimensions)
    scaled = [m for m in table["measure"].unique() if "per agent of ADMM" in m]
    shown = (
        "win ratio, ε = 0.1",
        "win ratio, ε = 1",
        "communications to 95 %, ADMM / MP",
        f"accuracy of model propagation, p = {few}",
        f"accuracy of model propagation, p = {many}",
        f"accuracy of collaborative learning, p = {many}",
        f"CL minus MP, p = {few}",
        scaled[-1],
    )
    for axis, measure in zip(figure.subplots(4, 2).ravel(), shown, strict=True):
        own = table[table["measure"] == measure].reset_index(drop=True)
        places = np.arange(len(own))[::-1]
        spread = np.vstack([own["mean"] - own["mean_low"], own["mean_high"] - own["mean"]])
        axis.errorbar(own["mean"], places, xerr=spread, fmt="o", color=BLUE, markersize=4)
        axis.axvline(own["mean"][0], color=ORANGE, linestyle="--", linewidth=0.9)
        names = [f"{row.choice.split('.')[-1]}: {row.value}" for row in own.itertuples()]
        axis.set_yticks(places, ["as chosen", *names[1:]], fontsize=7)
        axis.set_title(measure, fontsize=9)
        if measure.startswith("CL minus"):
            axis.axvline(0, color=GREY, linewidth=0.8)
        elif own["mean"].max() > 4 * own["mean"].min() > 0:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
