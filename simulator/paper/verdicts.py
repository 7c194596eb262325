"""How each claim of the paper is judged, and what one should know about the verdict.

A judge reads the tables of the experiments and returns the number that decides; a remark says in
words what else was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from simulator.paper.experiment import Tables, with_interval


@dataclass(frozen=True)
class Measured:
    """What a claim is measured by: the number that decides, its interval, and the verdict."""

    value: float
    low: float
    high: float
    holds: bool


# --- ways to judge ------------------------------------------------------------------------------
def _cell(row: Any, name: str) -> tuple[float, float, float]:
    return float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])


def within(value: float, low: float, high: float, least: float, most: float) -> Measured:
    """Holds if the interval meets the band from least to most."""
    holds = bool(low <= most and high >= least) if np.isfinite(low) else least <= value <= most
    return Measured(value, low, high, holds)


def _worst(table: pd.DataFrame, name: str, above: float = 0.0) -> Measured:
    """The row with the lowest lower end; holds if even that is above the bound."""
    row = table.iloc[int(table[f"{name}_low"].argmin())]
    value, low, high = _cell(row, name)
    return Measured(value, low, high, low > above)


def _row(table: pd.DataFrame, column: str, value: Any) -> Any:
    """The row where a column has the value, or the number that is nearest to it."""
    if isinstance(value, str):
        return table[table[column] == value].iloc[0]
    return table.iloc[int((table[column] - value).abs().argmin())]


# --- section 5.1 --------------------------------------------------------------------------------
def small_width(tables: Tables) -> Measured:
    """The win ratio at ε = 0.1."""
    row = _row(tables["fig2-middle"], "width", 0.1)
    return within(*_cell(row, "win_ratio"), 0.45, 0.55)


def full_width(tables: Tables) -> Measured:
    """The win ratio at ε = 1."""
    row = _row(tables["fig2-middle"], "width", 1.0)
    return within(*_cell(row, "win_ratio"), 0.8, 0.9)


def constant(tables: Tables) -> Measured:
    """How the error with confidence values changes from ε = 0 to ε = 1."""
    row = _row(tables["fig2-left"], "width", 1.0)
    value, low, high = _cell(row, "change")
    return Measured(value, low, high, bool(abs(value) <= 0.1))


def sharp(tables: Tables) -> Measured:
    """What confidence values gain at ε = 1."""
    row = _row(tables["fig2-left"], "width", 1.0)
    value, low, high = (part / float(row["with"]) for part in _cell(row, "gain"))
    return Measured(value, low, high, low > 0)


def mean_trade_off(tables: Tables) -> Measured:
    """Asynchronous over synchronous error after four rounds."""
    rounds = tables["fig2-right-rounds"]
    row = rounds.iloc[min(4, len(rounds)) - 1]
    value, low, high = _cell(row, "ratio")
    return Measured(value, low, high, high <= 2)


def theorem(tables: Tables) -> Measured:
    """The distance of the mean of the longest runs to the closed form."""
    table = tables["theorem1"]
    shares = (table["mean_of_runs"] / table["start"]).to_numpy()
    last = float(shares[-1])
    return Measured(last, np.nan, np.nan, bool(np.all(np.diff(shares) < 0) and last < 1e-4))


# --- section 5.2 --------------------------------------------------------------------------------
def consensus(tables: Tables) -> Measured:
    """The consensus accuracy that is farthest from chance."""
    table = tables["fig3-left"]
    row = table.iloc[int((table["consensus"] - 0.5).abs().argmax())]
    value, low, high = _cell(row, "consensus")
    return Measured(value, low, high, bool(abs(value - 0.5) <= 0.05))


def decreasing(tables: Tables) -> Measured:
    """The least loss of accuracy from the lowest to the highest dimension."""
    table = tables["fig3-left"].sort_values("dimension")
    first, last = table.iloc[0], table.iloc[-1]
    drops = {m: float(first[m] - last[m]) for m in ("solitary", "mp", "cl")}
    least = min(drops, key=lambda method: drops[method])
    # Independent instances: the interval's halves add in squares.
    one, other = (float(row[f"{least}_high"] - row[least]) for row in (first, last))
    half = float(np.hypot(one, other))
    value = drops[least]
    return Measured(value, value - half, value + half, bool(value > half))


def cl_above_mp(tables: Tables) -> Measured:
    """CL minus MP, where it is least sure."""
    return _worst(tables["fig3-left"], "cl_minus_mp")


def mp_above_solitary(tables: Tables) -> Measured:
    """MP minus solitary, where it is least sure."""
    return _worst(tables["fig3-left"], "mp_minus_solitary")


def barely(tables: Tables) -> Measured:
    """Solitary accuracy in the highest dimension."""
    table = tables["fig3-left"]
    row = table.iloc[int(table["dimension"].argmax())]
    return within(*_cell(row, "solitary"), 0.5, 0.6)


def cl_above_mp_by_size(tables: Tables) -> Measured:
    """CL minus MP by training size, where it is least sure."""
    return _worst(tables["fig3-middle"], "cl_minus_mp")


def independent_of_size(tables: Tables) -> Measured:
    """The trend of CL's accuracy with the training size, beside that of solitary models."""
    cl, solitary = (_row(tables["fig3-middle-trends"], "method", m) for m in ("cl", "solitary"))
    value, low, high = (19 * part for part in _cell(cl, "slope"))
    return Measured(value, low, high, bool(abs(value) <= 0.25 * 19 * abs(float(solitary["slope"]))))


def trend(method: str) -> Callable[[Tables], Measured]:
    """The trend of an accuracy with the training size, over 1 to 20 points."""

    def judge(tables: Tables) -> Measured:
        row = _row(tables["fig3-middle-trends"], "method", method)
        value, low, high = (19 * part for part in _cell(row, "slope"))
        return Measured(value, low, high, low > 0)

    return judge


def _to_95(tables: Tables, algorithm: str) -> pd.Series[float]:
    """Communications to 95 % of the own optimum's accuracy, by instance."""
    levels = tables["fig3-right-levels"]
    return levels[levels["algorithm"] == algorithm].set_index("seed")["to_95"]


def _ratio(one: pd.Series[float], other: pd.Series[float]) -> tuple[float, float, float]:
    """Geometric mean over instances, and its 95 % interval."""
    found = with_interval("log", np.log(one / other))
    value, low, high = (float(np.exp(part)) for part in found.values())
    return value, low, high


def admm_trade_off(tables: Tables) -> Measured:
    """Communications of asynchronous over synchronous ADMM."""
    value, low, high = _ratio(_to_95(tables, "cl"), _to_95(tables, "sync"))
    return Measured(value, low, high, high <= 1.5)


def mp_faster(tables: Tables) -> Measured:
    """Communications of ADMM over those of MP."""
    value, low, high = _ratio(_to_95(tables, "cl"), _to_95(tables, "mp"))
    return Measured(value, low, high, low >= 5)


def warm(tables: Tables) -> Measured:
    """Communications of MP and a warm start over those of a cold one."""
    warm = _to_95(tables, "warm") + _to_95(tables, "mp")
    value, low, high = _ratio(warm, _to_95(tables, "cl"))
    return Measured(value, low, high, high < 1)


# --- appendix E and beyond ----------------------------------------------------------------------
def linear(algorithm: str) -> Callable[[Tables], Measured]:
    """The exponent of n in the communications to 90 %."""

    def judge(tables: Tables) -> Measured:
        row = _row(tables["fig5-slopes"], "algorithm", algorithm)
        value, low, high = _cell(row, "slope")
        return Measured(value, low, high, bool(0.8 <= value <= 1.2))

    return judge


def in_time(heavy: bool) -> Callable[[Tables], Measured]:
    """The speed-up of gossip without loss, with the heaviest tail of delays or with none."""

    def judge(tables: Tables) -> Measured:
        table = tables["beyond"]
        table = table[(table["algorithm"] == "mp") & (table["network.drop"] == 0)]
        table = table[table["clock.rate"] == table["clock.rate"].max()]
        sigma = table["network.latency.sigma"]
        row = table[sigma == (sigma.max() if heavy else 0)].iloc[0]
        value, low, high = (float(row[name]) for name in ("speedup", "low", "high"))
        return Measured(value, low, high, low > 1)

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


def about_rounds(tables: Tables) -> str:
    """The course of the ratio."""
    rounds = tables["fig2-right-rounds"]
    at = [k for k in (1, 2, 8, 16) if k <= len(rounds)]
    ratios = ", ".join(f"{rounds['ratio'][k - 1]:.2f} after {k}" for k in at)
    return (
        f"The ratio is {ratios} rounds; during the first round, before synchronous agents have "
        "learned anything, gossip is far ahead."
    )


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


def about_start(tables: Tables) -> str:
    """What agents know at first."""
    measure = "communications to 95 %, ADMM / MP"
    others = _by_choice(tables, measure, "linear_classification.start")
    return (
        "It depends on what agents know at first, which the paper does not say. With solitary "
        "models of neighbours known free of charge MP needs one update an agent; the mean ratio "
        f"is {others}."
    )


def about_duals(tables: Tables) -> str:
    """Why a warm start gains so little."""
    warm, cold = (
        _by_choice(tables, f"communications of {name} to 95 %", "linear_classification.rho")
        for name in ("ADMM from MP's optimum", "ADMM")
    )
    return (
        "The warm start gives models and copies but no dual variables, so that the first solve of "
        "each agent moves away from them again and much of the gain is lost at once (fig3-right). "
        f"With other ρ, mean communications without MP's: warm {warm}; cold {cold}."
    )


def about_growth(algorithm: str) -> Callable[[Tables], str]:
    """How straight the line is, and its upper half."""

    def remark(tables: Tables) -> str:
        row = _row(tables["fig5-slopes"], "algorithm", algorithm)
        return (
            "A straight line, not through the origin, explains "
            f"{100 * row['straight_r2']:.1f} % of the variance; over the larger half of the sizes "
            f"the exponent is {row['upper_half']:.2f} ({row['upper_half_low']:.2f} … "
            f"{row['upper_half_high']:.2f}). Per agent, the smallest networks need the least."
        )

    return remark


def about_cells(tables: Tables) -> str:
    """Where gossip is faster in time."""
    parts = []
    for name, table in tables["beyond"].groupby("algorithm", sort=False):
        faster, slower = int((table["low"] > 1).sum()), int((table["high"] < 1).sum())
        parts.append(
            f"{str(name).upper()}: gossip is faster in {faster} of {len(table)} combinations of "
            f"tail, loss and clock rate, slower in {slower}; the speed-up goes from "
            f"{table['speedup'].min():.2g} to {table['speedup'].max():.3g}."
        )
    return " ".join(parts)
