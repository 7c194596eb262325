"""What one should know about the verdicts on the claims: in words, what else was measured."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from reproduction.experiment import Tables
from reproduction.mean_estimation import ROUNDS, SMALL
from reproduction.verdicts import (
    case_of,
    decrease_of,
    fit_of,
    ratio_of,
    row_of,
    sent_to,
    warm_ratio,
)


def about_label_propagation(tables: Tables) -> str:
    """Both readings of "without confidence"."""
    row = row_of(tables["fig2-middle"], "width", SMALL)
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
        f"{name} {decrease_of(table, name)[0]:+.3f} ({decrease_of(table, name)[1]:+.3f} … "
        f"{decrease_of(table, name)[2]:+.3f})"
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
    table = tables["choices"]
    table = table[table["measure"] == "CL minus MP, p = 2"]
    own = table[table["choice"].isin(["as chosen", "linear_classification.ridge"])]
    by_ridge = ", ".join(
        f"{row['mean']:+.4f} ({row['mean_low']:+.4f} … {row['mean_high']:+.4f}) "
        + (f"with {row['value']}" if row["value"] else "as chosen")
        for _, row in own.iterrows()
    )
    return (
        f"{about_dimensions(tables)} At p = 2 the difference depends on the ridge of the solitary "
        f"models, of which equation 1 has none: {by_ridge} (choices.csv)."
    ).strip()


def about_start(tables: Tables) -> str:
    """What agents know at first, and other levels."""
    others = _by_choice(tables, "communications to 95 %, ADMM / MP", "linear_classification.start")
    at = ", ".join(
        f"{ratio_of(sent_to(tables, 'cl', k), sent_to(tables, 'mp', k))[0]:.3g} at {k} %"
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
        for value, low, high in [warm_ratio(tables, k)]
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
        row, table = fit_of(tables, algorithm, measure), tables["fig5"]
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
        row = row_of(tables["theory-rates"], "loss", loss)
        return (
            f"Over the later half of the rounds the exponent of t is {row['exponent']:.2f}, the "
            f"factor a round {row['factor']:.3f}, and a straight line explains "
            f"{100 * row['straight_r2']:.1f} % of the variance of the logarithm."
        )

    return remark


def about_cell(world: str, spread: float, drop: float = 0.0) -> Callable[[Tables], str]:
    """The timer that was taken, and the ratio of communications."""

    def remark(tables: Tables) -> str:
        row = case_of(tables, world, spread, drop)
        if row is None:
            return "Not computed at this size."
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
