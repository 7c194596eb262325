"""How each claim of the paper is judged.

A judge reads the tables of the experiments and returns the number that decides.  Every claim is
judged in the same way: it holds where the whole 95 % interval is within the criterion's bounds,
does not where all of it is outside, and is undecided otherwise; a claim about several cases holds
where it does in all of them, and the case shown is the one that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from reproduction.experiment import Tables, geometric
from reproduction.mean_estimation import ROUNDS, SMALL

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
    if not np.isfinite(value):  # not measured, or not reached within the runs
        return Measured(*cell, "undecided")
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
        if not np.isfinite(found.value):
            return rank[found.holds], -np.inf
        low, high = (end if np.isfinite(end) else found.value for end in (found.low, found.high))
        return rank[found.holds], min(low - least, most - high)

    return min(every, key=margin)


def cell_of(row: Any, name: str) -> Cell:
    """A number of a table's row, and its interval."""
    return float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])


def cells_of(table: pd.DataFrame, name: str) -> list[Cell]:
    """The same of every row."""
    return [cell_of(row, name) for _, row in table.iterrows()]


def row_of(table: pd.DataFrame, column: str, value: Any) -> Any:
    """The row where a column has the value, or the number that is nearest to it."""
    if isinstance(value, str):
        return table[table[column] == value].iloc[0]
    return table.iloc[int((table[column] - value).abs().argmin())]


# --- section 5.1 --------------------------------------------------------------------------------
def small_width(tables: Tables) -> Measured:
    """The win ratio at a small ε."""
    row = row_of(tables["fig2-middle"], "width", SMALL)
    return judged(cell_of(row, "win_ratio"), 0.45, 0.55)


def similar_error(tables: Tables) -> Measured:
    """The gap between the errors without and with confidence values at a small ε."""
    return judged(cell_of(row_of(tables["fig2-left"], "width", SMALL), "gap"), -0.1, 0.1)


def full_width(tables: Tables) -> Measured:
    """The win ratio at ε = 1."""
    row = row_of(tables["fig2-middle"], "width", 1.0)
    return judged(cell_of(row, "win_ratio"), 0.8, 0.9)


def sharp(tables: Tables) -> Measured:
    """By how much the gap grows from a small ε to ε = 1."""
    return judged(cell_of(row_of(tables["fig2-left"], "width", 1.0), "gap_growth"), least=0.5)


def constant(tables: Tables) -> Measured:
    """How the error with confidence values changes from ε = 0 to any other ε."""
    table = tables["fig2-left"]
    return all_of(cells_of(table[table["width"] > 0], "change"), -0.1, 0.1)


def best_alpha(tables: Tables) -> Measured:
    """The error with another α minus that with 0.99, on held-out instances."""
    table = tables["tuning"]
    own = table[(table["choice"] == "mean_estimation.alpha") & (table["above_chosen"] != 0)]
    return all_of(cells_of(own, "above_chosen"), least=0)


def mean_trade_off(tables: Tables) -> Measured:
    """Asynchronous over synchronous error after some rounds, for the main reading."""
    rounds = tables["fig2-right-rounds"]
    own = rounds[(rounds["start"] == rounds["start"][0]) & rounds["round"].isin(ROUNDS[1:])]
    return all_of(cells_of(own, "ratio"), most=2)


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
    return all_of(cells_of(tables["fig3-left"], "consensus"), most=0.6)


def decrease_of(table: pd.DataFrame, method: str) -> Cell:
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
    return all_of([decrease_of(table, method) for method in methods], least=0)


def barely(tables: Tables) -> Measured:
    """Solitary accuracy in the highest dimension."""
    table = tables["fig3-left"]
    row = table.iloc[int(table["dimension"].argmax())]
    return judged(cell_of(row, "solitary"), 0.5, 0.6)


def above_solitary(tables: Tables) -> Measured:
    """MP, and CL, minus solitary, in every dimension."""
    table = tables["fig3-left"]
    gains = ("mp_minus_solitary", "cl_minus_solitary")
    return all_of([cell for name in gains for cell in cells_of(table, name)], least=0)


def cl_above_mp(figure: str) -> Callable[[Tables], Measured]:
    """CL minus MP, in every dimension or for every training size."""
    return lambda tables: all_of(cells_of(tables[figure], "cl_minus_mp"), least=0)


def _slope(tables: Tables, method: str) -> Cell:
    """The trend of an accuracy over 1 to 20 training points."""
    value, low, high = cell_of(row_of(tables["fig3-middle-trends"], "method", method), "slope")
    return 19 * value, 19 * low, 19 * high


def independent_of_size(tables: Tables) -> Measured:
    """The trend of CL's accuracy with the training size, beside that of solitary models."""
    most = 0.25 * abs(_slope(tables, "solitary")[0])
    return judged(_slope(tables, "cl"), -most, most)


def trend(method: str) -> Callable[[Tables], Measured]:
    """The trend of an accuracy with the training size."""
    return lambda tables: judged(_slope(tables, method), least=0)


def sent_to(tables: Tables, algorithm: str, share: int) -> pd.Series[float]:
    """Communications to a share of the own optimum's accuracy, by instance."""
    levels = tables["fig3-right-levels"]
    return levels[levels["algorithm"] == algorithm].set_index("seed")[f"to_{share}"]


def ratio_of(one: pd.Series[float], other: pd.Series[float]) -> Cell:
    """Geometric mean over instances, and its 95 % interval."""
    return cell_of(geometric("ratio", one / other), "ratio")


def admm_trade_off(tables: Tables) -> Measured:
    """Communications of asynchronous over synchronous ADMM."""
    ratios = [ratio_of(sent_to(tables, "cl", k), sent_to(tables, "sync", k)) for k in (95, 99)]
    return all_of(ratios, most=1.1)


def mp_faster(tables: Tables) -> Measured:
    """Communications of ADMM over those of MP: nearer to 10 than to 1 and to 100."""
    ratio = ratio_of(sent_to(tables, "cl", 95), sent_to(tables, "mp", 95))
    return judged(ratio, np.sqrt(10), 10 * np.sqrt(10))


def warm_ratio(tables: Tables, share: int) -> Cell:
    """Communications of MP and a warm start over those of a cold one."""
    whole = sent_to(tables, "warm", share) + sent_to(tables, "mp", share)
    return ratio_of(whole, sent_to(tables, "cl", share))


def warm(tables: Tables) -> Measured:
    """What a warm start saves, MP's own communications included."""
    return all_of([warm_ratio(tables, share) for share in (95, 99)], most=1)


# --- appendices D and E, and beyond -------------------------------------------------------------
def convex_rate(tables: Tables) -> Measured:
    """The exponent of t in the gap of synchronous ADMM with the hinge loss."""
    return judged(cell_of(row_of(tables["theory-rates"], "loss", "hinge"), "exponent"), most=-1)


def linear_rate(tables: Tables) -> Measured:
    """How straight the logarithm of the distance is for means, where it falls."""
    row = row_of(tables["theory-rates"], "loss", "means")
    falls = judged(cell_of(row, "factor"), most=1)
    straight = judged(cell_of(row, "straight_r2"), least=0.98)
    return straight if falls.holds == "yes" else falls


def growth(algorithm: str, measure: str) -> Callable[[Tables], Measured]:
    """The exponent of n in the communications, or the time, to 90 %."""
    expected = 1 if measure == "communications" else 0

    def judge(tables: Tables) -> Measured:
        cell = cell_of(fit_of(tables, algorithm, measure), "slope")
        return judged(cell, expected - 0.2, expected + 0.2)

    return judge


def fit_of(tables: Tables, algorithm: str, measure: str) -> Any:
    """How communications, or time, grow with n."""
    table = tables["fig5-slopes"]
    own = table[(table["algorithm"] == algorithm) & (table["measure"] == measure)]
    return own.iloc[0]


def case_of(tables: Tables, world: str, spread: float, drop: float = 0.0) -> Any:
    """A cell of model propagation with the fastest clock, or None at sizes that lack it."""
    table = tables["beyond"]
    table = table[(table["algorithm"] == "mp") & (table["rate"] == table["rate"].max())]
    table = table[(table["world"] == world) & (table["spread"] == spread)]
    table = table[table["drop"] == drop]
    return table.iloc[0] if len(table) else None


def in_time(world: str, spread: float, drop: float = 0.0) -> Callable[[Tables], Measured]:
    """The speed-up of gossip over rounds with the best timer."""

    def judge(tables: Tables) -> Measured:
        row = case_of(tables, world, spread, drop)
        if row is None:
            return judged((np.nan, np.nan, np.nan))
        return judged((float(row["speedup"]), float(row["low"]), float(row["high"])), least=2)

    return judge
