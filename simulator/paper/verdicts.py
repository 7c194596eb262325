"""How each claim of the paper is judged, and what one should know about the verdict.

A judge reads the tables of the experiments and returns the number that decides; a remark says in
words what else was measured.  Every claim is judged in the same way: it holds where the whole 95 %
interval is within the criterion's bounds, does not where all of it is outside, and is undecided
otherwise; a claim about several cases holds where it does in all of them, and the case shown is the
one that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from simulator.paper.experiment import Tables, geometric
from simulator.paper.mean_estimation import ROUNDS, SMALL

Verdict = Literal["yes", "no", "undecided"]
Cell = tuple[float, float, float]


@dataclass(frozen=True)
class Measured:
    """What a claim is measured by: the number that decides, its interval, and the verdict."""

    value: float
    low: float
    high: float
    holds: Verdict


# --- ways to judge ------------------------------------------------------------------------------
def judged(cell: Cell, least: float = -np.inf, most: float = np.inf) -> Measured:
    """Is the whole interval from ``least`` to ``most``?  Without an interval, the value is."""
    value, low, high = cell
    if not np.isfinite([low, high]).all():
        return Measured(*cell, "yes" if least <= value <= most else "no")
    if least <= low and high <= most:
        return Measured(*cell, "yes")
    return Measured(*cell, "no" if high < least or low > most else "undecided")


def all_of(cells: Iterable[Cell], least: float = -np.inf, most: float = np.inf) -> Measured:
    """Every case must hold; shown is the one that decides."""
    every = [judged(cell, least, most) for cell in cells]
    rank = {"no": 0, "undecided": 1, "yes": 2}

    def margin(found: Measured) -> tuple[int, float]:
        low, high = (end if np.isfinite(end) else found.value for end in (found.low, found.high))
        return rank[found.holds], min(low - least, most - high)

    return min(every, key=margin)


def _cell(row: Any, name: str) -> Cell:
    return float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])


def _cells(table: pd.DataFrame, name: str) -> list[Cell]:
    return [_cell(row, name) for _, row in table.iterrows()]


def _row(table: pd.DataFrame, column: str, value: Any) -> Any:
    """The row where a column has the value, or the number that is nearest to it."""
    if isinstance(value, str):
        return table[table[column] == value].iloc[0]
    return table.iloc[int((table[column] - value).abs().argmin())]


# --- section 5.1 --------------------------------------------------------------------------------
def small_width(tables: Tables) -> Measured:
    """The win ratio at a small ε."""
    row = _row(tables["fig2-middle"], "width", SMALL)
    return judged(_cell(row, "win_ratio"), 0.45, 0.55)


def similar_error(tables: Tables) -> Measured:
    """The gap between the errors without and with confidence values at a small ε."""
    return judged(_cell(_row(tables["fig2-left"], "width", SMALL), "gap"), -0.1, 0.1)


def full_width(tables: Tables) -> Measured:
    """The win ratio at ε = 1."""
    row = _row(tables["fig2-middle"], "width", 1.0)
    return judged(_cell(row, "win_ratio"), 0.8, 0.9)


def sharp(tables: Tables) -> Measured:
    """By how much the gap grows from a small ε to ε = 1."""
    return judged(_cell(_row(tables["fig2-left"], "width", 1.0), "gap_growth"), least=0.5)


def constant(tables: Tables) -> Measured:
    """How the error with confidence values changes from ε = 0 to any other ε."""
    table = tables["fig2-left"]
    return all_of(_cells(table[table["width"] > 0], "change"), -0.1, 0.1)


def best_alpha(tables: Tables) -> Measured:
    """The error with another α minus that with 0.99, on held-out instances."""
    table = tables["tuning"]
    own = table[(table["choice"] == "mean_estimation.alpha") & (table["above_chosen"] != 0)]
    return all_of(_cells(own, "above_chosen"), least=0)


def mean_trade_off(tables: Tables) -> Measured:
    """Asynchronous over synchronous error after some rounds, for the main reading."""
    rounds = tables["fig2-right-rounds"]
    own = rounds[(rounds["start"] == rounds["start"][0]) & rounds["round"].isin(ROUNDS[1:])]
    return all_of(_cells(own, "ratio"), most=2)


def theorem(clocks: str) -> Callable[[Tables], Measured]:
    """The distance of the mean of the longest runs to the closed form."""

    def judge(tables: Tables) -> Measured:
        table = tables["theorem1"]
        own = table[table["clocks"] == clocks]
        shares = (own["mean_of_runs"] / own["start"]).to_numpy()
        falls = bool(np.all(np.diff(shares) < 0) and shares[-1] < 1e-4)
        return Measured(float(shares[-1]), np.nan, np.nan, "yes" if falls else "no")

    return judge


def equivalent(tables: Tables) -> Measured:
    """The greatest difference between MP and CL on means: of objectives, and of optima."""
    table = tables["theory-equivalence"]
    worst = float(table[["objectives", "models"]].to_numpy().max())
    return judged((worst, np.nan, np.nan), most=1e-8)


# --- section 5.2 --------------------------------------------------------------------------------
def consensus(tables: Tables) -> Measured:
    """Consensus accuracy, in every dimension."""
    return all_of(_cells(tables["fig3-left"], "consensus"), most=0.6)


def _decrease(table: pd.DataFrame, method: str) -> Cell:
    """Accuracy in the lowest dimension minus that in the highest."""
    first, last = table.iloc[0], table.iloc[-1]
    # Independent instances: the interval's halves add in squares.
    one, other = (float(row[f"{method}_high"] - row[method]) for row in (first, last))
    value, half = float(first[method] - last[method]), float(np.hypot(one, other))
    return value, value - half, value + half


def decreasing(tables: Tables) -> Measured:
    """The loss of accuracy from the lowest to the highest dimension, of every model."""
    table = tables["fig3-left"].sort_values("dimension")
    methods = ("solitary", "consensus", "mp", "cl")
    return all_of([_decrease(table, method) for method in methods], least=0)


def barely(tables: Tables) -> Measured:
    """Solitary accuracy in the highest dimension."""
    table = tables["fig3-left"]
    row = table.iloc[int(table["dimension"].argmax())]
    return judged(_cell(row, "solitary"), 0.5, 0.6)


def above_solitary(tables: Tables) -> Measured:
    """MP, and CL, minus solitary, in every dimension."""
    table = tables["fig3-left"]
    gains = ("mp_minus_solitary", "cl_minus_solitary")
    return all_of([cell for name in gains for cell in _cells(table, name)], least=0)


def cl_above_mp(figure: str) -> Callable[[Tables], Measured]:
    """CL minus MP, in every dimension or for every training size."""
    return lambda tables: all_of(_cells(tables[figure], "cl_minus_mp"), least=0)


def _slope(tables: Tables, method: str) -> Cell:
    """The trend of an accuracy over 1 to 20 training points."""
    value, low, high = _cell(_row(tables["fig3-middle-trends"], "method", method), "slope")
    return 19 * value, 19 * low, 19 * high


def independent_of_size(tables: Tables) -> Measured:
    """The trend of CL's accuracy with the training size, beside that of solitary models."""
    most = 0.25 * abs(_slope(tables, "solitary")[0])
    return judged(_slope(tables, "cl"), -most, most)


def trend(method: str) -> Callable[[Tables], Measured]:
    """The trend of an accuracy with the training size."""
    return lambda tables: judged(_slope(tables, method), least=0)


def _to(tables: Tables, algorithm: str, share: int) -> pd.Series[float]:
    """Communications to a share of the own optimum's accuracy, by instance."""
    levels = tables["fig3-right-levels"]
    return levels[levels["algorithm"] == algorithm].set_index("seed")[f"to_{share}"]


def _ratio(one: pd.Series[float], other: pd.Series[float]) -> Cell:
    """Geometric mean over instances, and its 95 % interval."""
    return _cell(geometric("ratio", one / other), "ratio")


def admm_trade_off(tables: Tables) -> Measured:
    """Communications of asynchronous over synchronous ADMM."""
    ratios = [_ratio(_to(tables, "cl", k), _to(tables, "sync", k)) for k in (95, 99)]
    return all_of(ratios, most=1.1)


def mp_faster(tables: Tables) -> Measured:
    """Communications of ADMM over those of MP: nearer to 10 than to 1 and to 100."""
    ratio = _ratio(_to(tables, "cl", 95), _to(tables, "mp", 95))
    return judged(ratio, np.sqrt(10), 10 * np.sqrt(10))


def _warm(tables: Tables, share: int) -> Cell:
    """Communications of MP and a warm start over those of a cold one."""
    whole = _to(tables, "warm", share) + _to(tables, "mp", share)
    return _ratio(whole, _to(tables, "cl", share))


def warm(tables: Tables) -> Measured:
    """What a warm start saves, MP's own communications included."""
    return all_of([_warm(tables, share) for share in (95, 99)], most=1)


# --- appendices D and E, and beyond -------------------------------------------------------------
def convex_rate(tables: Tables) -> Measured:
    """The exponent of t in the gap of synchronous ADMM with the hinge loss."""
    return judged(_cell(_row(tables["theory-rates"], "loss", "hinge"), "exponent"), most=-1)


def linear_rate(tables: Tables) -> Measured:
    """How straight the logarithm of the distance is for means, where it falls."""
    row = _row(tables["theory-rates"], "loss", "means")
    falls = judged(_cell(row, "factor"), most=1)
    straight = judged(_cell(row, "straight_r2"), least=0.98)
    return straight if falls.holds == "yes" else falls


def growth(algorithm: str, measure: str) -> Callable[[Tables], Measured]:
    """The exponent of n in the communications, or the time, to 90 %."""
    expected = 1 if measure == "communications" else 0

    def judge(tables: Tables) -> Measured:
        cell = _cell(_fit(tables, algorithm, measure), "slope")
        return judged(cell, expected - 0.2, expected + 0.2)

    return judge


def _fit(tables: Tables, algorithm: str, measure: str) -> Any:
    table = tables["fig5-slopes"]
    own = table[(table["algorithm"] == algorithm) & (table["measure"] == measure)]
    return own.iloc[0]


def _beyond(tables: Tables, world: str, spread: float, drop: float = 0.0) -> Any:
    """A cell of model propagation with the fastest clock, nearest to the given one."""
    table = tables["beyond"]
    table = table[(table["algorithm"] == "mp") & (table["rate"] == table["rate"].max())]
    table = table[table["world"] == world]
    distance = (table["spread"] - spread).abs() + (table["drop"] - drop).abs()
    return table.iloc[int(distance.argmin())]


def in_time(world: str, spread: float, drop: float = 0.0) -> Callable[[Tables], Measured]:
    """The speed-up of gossip over rounds with the best timer."""

    def judge(tables: Tables) -> Measured:
        row = _beyond(tables, world, spread, drop)
        return judged((float(row["speedup"]), float(row["low"]), float(row["high"])), least=2)

    return judge


# --- remarks ------------------------------------------------------------------------------------
def about_label_propagation(tables: Tables) -> str:
    """Both readings of "without confidence"."""
    row = _row(tables["fig2-middle"], "width", 0.1)
    return (
        f'With C = I as "without confidence" the win ratio at ε = {row["width"]:g} would be '
        f"{row['win_ratio_one']:.2f}; with the mean of the confidences it is "
        f"{row['win_ratio_mean']:.2f}."
    )


def about_factor(tables: Tables) -> str:
    """Both readings of C."""
    table = tables["fig2-left"]
    first, last = table.iloc[0], table.iloc[-1]
    changes = {
        kind: last[f"error_{kind}"] / first[f"error_{kind}"] - 1 for kind in ("data", "share")
    }
    return (
        "With c_i = m_i / 100, the confidences that section 5.1 draws, the error changes by "
        f"{100 * changes['share']:+.1f} %; with c_i = m_i / max m_j, whose mean falls as ε grows, "
        f"so that models are smoothed more, by {100 * changes['data']:+.1f} %."
    )


def about_gaps(tables: Tables) -> str:
    """The gap at every ε."""
    table = tables["fig2-left"]
    gaps = ", ".join(f"{row['gap']:.2f} at {row['width']:g}" for _, row in table.iterrows())
    return f"The gap relative to the error with confidence values, by ε: {gaps}."


def about_alphas(tables: Tables) -> str:
    """The error with every α."""
    table = tables["tuning"]
    own = table[table["choice"] == "mean_estimation.alpha"]
    errors = ", ".join(f"{row['score']:.4f} with {row['value']:g}" for _, row in own.iterrows())
    return f"Mean error on {own['instances'].iloc[0]} held-out instances (ε = 1): {errors}."


def about_rounds(tables: Tables) -> str:
    """The course of the ratio, from every start."""
    parts = []
    for start, own in tables["fig2-right-rounds"].groupby("start", sort=False):
        ratios = ", ".join(
            f"{row['ratio']:.2f} after {row['round']:.0f}"
            for _, row in own[own["round"].isin(ROUNDS)].iterrows()
        )
        parts.append(f"`{start}`: {ratios}")
    return (
        f"The ratio by start and rounds: {'; '.join(parts)}. `known` gives gossip a round's "
        "messages free of charge; `hello` counts them."
    )


def about_decrease(tables: Tables) -> str:
    """The decrease of each model's accuracy."""
    table = tables["fig3-left"].sort_values("dimension")
    found = ", ".join(
        f"{name} {_decrease(table, name)[0]:+.3f} ({_decrease(table, name)[1]:+.3f} … "
        f"{_decrease(table, name)[2]:+.3f})"
        for name in ("solitary", "consensus", "mp", "cl")
    )
    return f"Lowest minus highest p: {found}; the consensus model is hardly above chance at any p."


def _list_failures(table: pd.DataFrame, column: str, text: str) -> str:
    wrong = table[table["cl_minus_mp_low"] <= 0]
    if not len(wrong):
        return ""
    found = ", ".join(
        f"{row[column]:g}: {row['cl_minus_mp']:+.4f} ({row['cl_minus_mp_low']:+.4f} … "
        f"{row['cl_minus_mp_high']:+.4f})"
        for _, row in wrong.iterrows()
    )
    return f"Not shown at {text} {found}; it is at the other {len(table) - len(wrong)}."


def about_dimensions(tables: Tables) -> str:
    """Where CL is not clearly above MP."""
    return _list_failures(tables["fig3-left"], "dimension", "p =")


def about_sizes(tables: Tables) -> str:
    """Where CL is not clearly above MP."""
    return _list_failures(tables["fig3-middle"], "points", "training size")


def _by_choice(tables: Tables, measure: str, choice: str) -> str:
    table = tables["choices"]
    own = table[(table["measure"] == measure) & (table["choice"] == choice)]
    return ", ".join(
        f"{row['mean']:,.0f} with {row['value']}"
        if row["mean"] >= 1000
        else f"{row['mean']:.3g} with {row['value']}"
        for _, row in own.iterrows()
    )


def about_ridge(tables: Tables) -> str:
    """What the ridge does at p = 2, and where CL is not clearly above MP."""
    by_ridge = _by_choice(tables, "CL minus MP, p = 2", "linear_classification.ridge")
    own = tables["choices"]
    chosen = own[(own["measure"] == "CL minus MP, p = 2") & (own["choice"] == "as chosen")]
    first = "" if chosen.empty else f"{chosen['mean'].iloc[0]:.3g} as chosen, "
    return (
        f"{about_dimensions(tables)} At p = 2 the difference depends on the ridge of the solitary "
        f"models, of which equation 1 has none: {first}{by_ridge} (choices.csv)."
    ).strip()


def about_start(tables: Tables) -> str:
    """What agents know at first, and other levels."""
    others = _by_choice(tables, "communications to 95 %, ADMM / MP", "linear_classification.start")
    at = ", ".join(
        f"{_ratio(_to(tables, 'cl', k), _to(tables, 'mp', k))[0]:.3g} at {k} %"
        for k in (90, 95, 99)
    )
    return (
        f"The ratio is {at}. It depends on what agents know at first; with other starts the mean "
        f"ratio at 95 % is {others}."
    )


def about_duals(tables: Tables) -> str:
    """Why a warm start gains so little."""
    at = "; ".join(
        f"{value:.3f} ({low:.3f} … {high:.3f}) at {k} %"
        for k in (95, 99)
        for value, low, high in [_warm(tables, k)]
    )
    warm, cold = (
        _by_choice(tables, f"communications of {name} to 95 %", "linear_classification.rho")
        for name in ("ADMM from MP's optimum", "ADMM")
    )
    return (
        f"{at}. The warm start gives models and copies but no dual variables, so that the first "
        "solve of each agent moves away from them again and much of the gain is lost at once "
        "(fig3-right). MP's part is what it needs to the same share of its own optimum. "
        f"With other ρ, mean communications to 95 % without MP's: warm {warm}; cold {cold}."
    )


def about_growth(algorithm: str, measure: str) -> Callable[[Tables], str]:
    """How straight the line is, its upper half, and what small networks have."""

    def remark(tables: Tables) -> str:
        row, table = _fit(tables, algorithm, measure), tables["fig5"]
        few, many = table.iloc[0], table.iloc[-1]
        column = algorithm if measure == "communications" else f"{algorithm}_time"
        return (
            f"From {few['agents']:.0f} to {many['agents']:.0f} agents it grows "
            f"{many[column] / few[column]:.3g}-fold; over the larger half of the sizes the "
            f"exponent is {row['upper_half']:.2f} ({row['upper_half_low']:.2f} … "
            f"{row['upper_half_high']:.2f}). A finite size tells: with as many neighbours in a "
            f"small network, 90 % of the optimum's accuracy is {100 * few[f'{algorithm}_way']:.0f} "
            f"% of the way from the solitary models' to it among {few['agents']:.0f} agents and "
            f"{100 * many[f'{algorithm}_way']:.0f} % among {many['agents']:.0f}."
        )

    return remark


def about_rate(loss: str) -> Callable[[Tables], str]:
    """The rate, as a factor a round."""

    def remark(tables: Tables) -> str:
        row = _row(tables["theory-rates"], "loss", loss)
        return (
            f"Over the later half of the rounds the exponent of t is {row['exponent']:.2f}, the "
            f"factor a round {row['factor']:.3f}, and a straight line explains "
            f"{100 * row['straight_r2']:.1f} % of the variance of the logarithm."
        )

    return remark


def about_cell(world: str, spread: float, drop: float = 0.0) -> Callable[[Tables], str]:
    """The timer that was taken, and the ratio of communications."""

    def remark(tables: Tables) -> str:
        row = _beyond(tables, world, spread, drop)
        timer = str(row["tuned_second"]).removeprefix("network.retransmit_after=")
        return (
            f"At σ = {row['spread']:g}, {100 * row['drop']:g} % lost, {row['rate']:g} ticks a "
            f"second. Rounds took the timer {timer}; their communications are "
            f"{row['communications_ratio']:.2f} "
            f"({row['communications_ratio_low']:.2f} … {row['communications_ratio_high']:.2f}) "
            "times those of gossip."
        )

    return remark


def about_cells(tables: Tables) -> str:
    """Where gossip is faster in time."""
    parts = [about_cell("passes", 2.0)(tables)]
    for (name, world), table in tables["beyond"].groupby(["algorithm", "world"], sort=False):
        faster, slower = int((table["low"] > 1).sum()), int((table["high"] < 1).sum())
        parts.append(
            f"{str(name).upper()}, slowness that {world}: gossip is faster in {faster} of "
            f"{len(table)} combinations of spread, loss and clock rate, slower in {slower}; the "
            f"speed-up goes from {table['speedup'].min():.2g} to {table['speedup'].max():.3g}."
        )
    return " ".join(parts)
