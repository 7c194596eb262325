"""The claims in the paper's text, each measured: a value, its 95 % interval, and whether it holds.

``claims.md`` has the claims, their criteria and bounds.  Here is how each is read off the tables of
the experiments: the number that decides, or several, and what the claim's remark tells.  Every
claim is judged in the same way: it holds where the whole 95 % interval is within the bounds, does
not where all of it is outside, and is undecided otherwise; a claim about several cases holds where
it does in all of them, and the case shown is the one that decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from reproduction.mean_estimation import ROUNDS, SMALL
from reproduction.measuring import geometric
from reproduction.paper import Tables, filled, listed, sections

#: The experiments whose tables the claims are read from.
SOURCES = (
    *("fig2-left", "fig2-middle", "fig2-right", "fig3-left", "fig3-middle", "fig3-right", "fig5"),
    *("theorem1", "theory", "tuning", "choices", "beyond"),
)
Cell = tuple[float, float, float]


@dataclass(frozen=True)
class Measured:
    """What a claim is measured by: the number that decides, its interval, and the verdict."""

    value: float
    low: float
    high: float
    holds: Literal["yes", "no", "undecided"]


#: What decides, and the numbers of the remark: none at sizes that lack them.
Found = tuple[list[Cell] | Measured, dict[str, Any] | None]
Reading = Callable[[Tables], Found]


def claims_table(tables: Tables) -> pd.DataFrame:
    """claims.csv: one row a claim."""
    rows, claims = [], dict[str, dict[str, str]]()
    for name, text in sections("claims.md").items():
        given = dict(re.findall(r"^- (\w+): (.*)$", text, flags=re.MULTILINE))
        remark = re.sub(r"^- .*$", "", text, flags=re.MULTILINE).strip()
        claim = claims[name] = {**claims.get(given.get("as", ""), {"remark": ""}), **given}
        claim["remark"] = remark or claim["remark"]
        found, numbers = READINGS[name](tables)
        unit = (numbers or {}).get("unit", 1.0)  # that bounds are multiples of
        bounds = {key: float(claim[key]) * unit for key in ("least", "most") if key in claim}
        verdict = found if isinstance(found, Measured) else all_of(found, **bounds)
        what = claim["remark"] if numbers is not None else "Not computed at this size."
        rows.append(
            {
                "claim": name,
                **{key: claim[key] for key in ("where", "text", "measure")},
                **asdict(verdict),
                "criterion": claim["criterion"],
                "chosen_for_it": given.get("chosen", ""),
                "remark": filled(what, numbers or {}),
            }
        )
    columns = ["claim", "where", "text", "measure", "value", "low", "high", "criterion", "holds"]
    return pd.DataFrame(rows)[[*columns, "chosen_for_it", "remark"]]


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
    rank = {"no": 0, "undecided": 1, "yes": 2}

    def margin(found: Measured) -> tuple[int, float]:
        if not np.isfinite(found.value):
            return rank[found.holds], -np.inf
        low, high = (end if np.isfinite(end) else found.value for end in (found.low, found.high))
        return rank[found.holds], min(low - least, most - high)

    return min((judged(cell, least, most) for cell in cells), key=margin)


def cell(row: Any, name: str) -> Cell:
    """A number of a table's row, and its interval."""
    return float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"])


def cells(table: pd.DataFrame, name: str) -> list[Cell]:
    """The same of every row."""
    return [cell(row, name) for _, row in table.iterrows()]


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows that have these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def of(figure: str, name: str, **values: Any) -> Reading:
    """A number of the rows that have these values; the remark knows the first of these rows."""

    def reading(tables: Tables) -> Found:
        own = where(tables[figure], **values)
        return cells(own, name), dict(own.iloc[0])

    return reading


# --- section 5.1 --------------------------------------------------------------------------------
def best_alpha(tables: Tables) -> Found:
    """The error with another α minus that with 0.99, on held-out instances."""
    own = where(tables["tuning"], choice="mean_estimation.alpha")
    errors = listed("{score:.4f} with {value:g}", own)
    found = cells(own[own["above_chosen"] != 0], "above_chosen")
    return found, {"instances": own["instances"].iloc[0], "errors": errors}


def sharp(tables: Tables) -> Found:
    """By how much the gap grows from a small ε to ε = 1."""
    table = tables["fig2-left"]
    gaps = listed("{gap:.2f} at {width:g}", table)
    return cells(where(table, width=1.0), "gap_growth"), {"gaps": gaps}


def constant(tables: Tables) -> Found:
    """How the error with confidence values changes from ε = 0 to any other ε."""
    table = tables["fig2-left"]
    first, last = table.iloc[0], table.iloc[-1]
    readings = ("data", "share")
    changes = {k: 100 * (last[f"error_{k}"] / first[f"error_{k}"] - 1) for k in readings}
    return cells(table[table["width"] > 0], "change"), changes


def mean_trade_off(tables: Tables) -> Found:
    """Asynchronous over synchronous error after some rounds, for the main reading."""
    table = tables["fig2-right-rounds"]
    own = where(table[table["round"].isin(ROUNDS[1:])], start=table["start"][0])
    ratios = "; ".join(
        f"`{start}`: {listed('{ratio:.2f} after {round:.0f}', group)}"
        for start, group in table[table["round"].isin(ROUNDS)].groupby("start", sort=False)
    )
    return cells(own, "ratio"), {"ratios": ratios}


def theorem(clocks: str) -> Reading:
    """The distance of the mean of the longest runs to the closed form."""

    def judge(tables: Tables) -> Found:
        own = where(tables["theorem1"], clocks=clocks)
        shares = (own["mean_of_runs"] / own["start"]).to_numpy()
        falls = bool(np.all(np.diff(shares) < 0) and shares[-1] < 1e-4)
        return Measured(float(shares[-1]), np.nan, np.nan, "yes" if falls else "no"), {}

    return judge


def equivalent(tables: Tables) -> Found:
    """The greatest difference between MP and CL on means: of objectives, and of optima."""
    worst = float(tables["theory-equivalence"][["objectives", "models"]].to_numpy().max())
    return [(worst, np.nan, np.nan)], {}


# --- section 5.2 --------------------------------------------------------------------------------
def decreasing(tables: Tables) -> Found:
    """The loss of accuracy from the lowest to the highest dimension, of every model."""
    table = tables["fig3-left"].sort_values("dimension")
    first, last = table.iloc[0], table.iloc[-1]
    found = dict[str, Cell]()
    for method in ("solitary", "consensus", "mp", "cl"):
        # Independent instances: the interval's halves add in squares.
        one, other = (float(row[f"{method}_high"] - row[method]) for row in (first, last))
        value, half = float(first[method] - last[method]), float(np.hypot(one, other))
        found[method] = value, value - half, value + half
    texts = (f"{name} {v:+.3f} ({a:+.3f} … {b:+.3f})" for name, (v, a, b) in found.items())
    return list(found.values()), {"decreases": ", ".join(texts)}


def barely(tables: Tables) -> Found:
    """Solitary accuracy in the highest dimension."""
    table = tables["fig3-left"]
    return [cell(table.iloc[int(table["dimension"].argmax())], "solitary")], {}


def above_solitary(tables: Tables) -> Found:
    """MP, and CL, minus solitary, in every dimension."""
    gains = ("mp_minus_solitary", "cl_minus_solitary")
    return [c for name in gains for c in cells(tables["fig3-left"], name)], {}


def cl_above_mp(figure: str, column: str, text: str) -> Reading:
    """CL minus MP, in every dimension or for every training size; where that is not sure."""

    def judge(tables: Tables) -> Found:
        table = tables[figure]
        wrong = table[table["cl_minus_mp_low"] <= 0]
        each = "{cl_minus_mp:+.4f} ({cl_minus_mp_low:+.4f} … {cl_minus_mp_high:+.4f})"
        found = listed(f"{{{column}:g}}: {each}", wrong)
        rest = f"it is at the other {len(table) - len(wrong)}."
        numbers = {"failures": f"Not shown at {text} {found}; {rest}" if len(wrong) else ""}
        if figure == "fig3-left":
            other = where(tables["choices"], measure="CL minus MP, p = 2")
            own = other[other["choice"].isin(["as chosen", "linear_classification.ridge"])]
            how = [f"with {value}" if value else "as chosen" for value in own["value"]]
            each = "{mean:+.4f} ({mean_low:+.4f} … {mean_high:+.4f}) {how}"
            numbers["by_ridge"] = listed(each, own.assign(how=how))
        return cells(table, "cl_minus_mp"), numbers

    return judge


def _trend(tables: Tables, method: str) -> Cell:
    """How an accuracy grows from 1 to 20 training points."""
    row = where(tables["fig3-middle-trends"], method=method).iloc[0]
    value, low, high = cell(row, "slope")
    return 19 * value, 19 * low, 19 * high


def free_of_size(tables: Tables) -> Found:
    """The trend of CL's accuracy with the training size, beside that of solitary models."""
    return [_trend(tables, "cl")], {"unit": abs(_trend(tables, "solitary")[0])}


def _sent(tables: Tables, algorithm: str, share: int) -> pd.Series[float]:
    """Communications to a share of the own optimum's accuracy, by instance."""
    levels = where(tables["fig3-right-levels"], algorithm=algorithm)
    return levels.set_index("seed")[f"to_{share}"]


def _ratio(one: pd.Series[float], other: pd.Series[float]) -> Cell:
    """Geometric mean over instances, and its 95 % interval."""
    return cell(geometric("ratio", one / other), "ratio")


def _by_choice(tables: Tables, measure: str, choice: str) -> str:
    own = where(tables["choices"], measure=measure, choice=choice)
    means = [f"{mean:,.0f}" if mean >= 1000 else f"{mean:.3g}" for mean in own["mean"]]
    return listed("{found} with {value}", own.assign(found=means))


def admm_trade_off(tables: Tables) -> Found:
    """Communications of asynchronous over synchronous ADMM."""
    ratios = [_ratio(_sent(tables, "cl", k), _sent(tables, "sync", k)) for k in (95, 99)]
    return ratios, {}


def mp_faster(tables: Tables) -> Found:
    """Communications of ADMM over those of MP: nearer to 10 than to 1 and to 100."""
    ratios = {k: _ratio(_sent(tables, "cl", k), _sent(tables, "mp", k)) for k in (90, 95, 99)}
    start = "linear_classification.start"
    numbers = {
        "by_share": ", ".join(f"{value:.3g} at {k} %" for k, (value, _, _) in ratios.items()),
        "others": _by_choice(tables, "communications to 95 %, ADMM / MP", start),
    }
    return [ratios[95]], numbers


def warm_start(tables: Tables) -> Found:
    """What a warm start saves, MP's own communications included."""
    ratios = {
        k: _ratio(_sent(tables, "warm", k) + _sent(tables, "mp", k), _sent(tables, "cl", k))
        for k in (95, 99)
    }
    warm, cold = (
        _by_choice(tables, f"communications of {name} to 95 %", "linear_classification.rho")
        for name in ("ADMM from MP's optimum", "ADMM")
    )
    texts = (f"{v:.3f} ({low:.3f} … {high:.3f}) at {k} %" for k, (v, low, high) in ratios.items())
    return list(ratios.values()), {
        "by_share": "; ".join(texts),
        "warm": warm,
        "cold": cold,
    }


# --- appendices D and E, and beyond -------------------------------------------------------------
def rate(loss: str) -> Reading:
    """Of the hinge loss the exponent of t; of means how straight the logarithm falls."""

    def judge(tables: Tables) -> Found:
        row = where(tables["theory-rates"], loss=loss).iloc[0]
        found: Any = [cell(row, "exponent" if loss == "hinge" else "straight_r2")]
        falls = judged(cell(row, "factor"), most=1)
        if loss == "means" and falls.holds != "yes":
            found = falls
        return found, {**row, "percent": 100 * row["straight_r2"]}

    return judge


def growth(algorithm: str, measure: str) -> Reading:
    """The exponent of n in the communications, or the time, to 90 %."""
    column = algorithm if measure == "communications" else f"{algorithm}_time"

    def judge(tables: Tables) -> Found:
        row = where(tables["fig5-slopes"], algorithm=algorithm, measure=measure).iloc[0]
        few, many = tables["fig5"].iloc[0], tables["fig5"].iloc[-1]
        return [cell(row, "slope")], {
            **row,
            "few": few["agents"],
            "many": many["agents"],
            "times": many[column] / few[column],
            "few_percent": 100 * few[f"{algorithm}_way"],
            "many_percent": 100 * many[f"{algorithm}_way"],
        }

    return judge


def in_time(world: str, spread: float, drop: float = 0.0, all_cells: bool = False) -> Reading:
    """The speed-up of gossip over rounds with the best timer, with the fastest clock."""

    def judge(tables: Tables) -> Found:
        table = where(tables["beyond"], algorithm="mp", world=world, spread=spread, drop=drop)
        table = table[table["rate"] == table["rate"].max()]
        if table.empty:
            return [(np.nan, np.nan, np.nan)], None
        row = dict(table.iloc[0])
        timer = str(row["tuned_second"]).removeprefix("network.retransmit_after=")
        own = {"timer": timer, "percent": 100 * row["drop"]}
        own["cells"] = _cells(tables["beyond"]) if all_cells else ""
        return [(row["speedup"], row["low"], row["high"])], {**row, **own}

    return judge


def _cells(beyond: pd.DataFrame) -> str:
    """Where gossip is faster in time."""
    return " ".join(
        f"{str(name).upper()}, slowness that {world}: gossip is faster in "
        f"{(table['low'] > 1).sum()} of {len(table)} combinations of spread, loss and clock rate, "
        f"slower in {(table['high'] < 1).sum()}; the speed-up goes from "
        f"{table['speedup'].min():.2g} to {table['speedup'].max():.3g}."
        for (name, world), table in beyond.groupby(["algorithm", "world"], sort=False)
    )


#: By the headings of claims.md.
READINGS: dict[str, Reading] = {
    "alpha": best_alpha,
    "win-ratio-small": of("fig2-middle", "win_ratio", width=SMALL),
    "error-small": of("fig2-left", "gap", width=SMALL),
    "win-ratio-full": of("fig2-middle", "win_ratio", width=1.0),
    "gap-grows": sharp,
    "error-constant": constant,
    "mp-async-sync": mean_trade_off,
    "theorem-1": theorem("equal"),
    "clocks": theorem("unequal"),
    "equivalent": equivalent,
    "consensus": of("fig3-left", "consensus"),
    "decreasing": decreasing,
    "solitary-poor": barely,
    "above-solitary": above_solitary,
    "cl-above-mp": cl_above_mp("fig3-left", "dimension", "p ="),
    "solitary-size": lambda tables: ([_trend(tables, "solitary")], {}),
    "cl-size-free": free_of_size,
    "cl-above-mp-size": cl_above_mp("fig3-middle", "points", "training size"),
    "gap-size": lambda tables: ([_trend(tables, "cl_minus_mp")], {}),
    "admm-async-sync": admm_trade_off,
    "mp-faster": mp_faster,
    "warm-start": warm_start,
    "admm-convex": rate("hinge"),
    "admm-linear": rate("means"),
    "linear-mp": growth("mp", "communications"),
    "linear-admm": growth("cl", "communications"),
    "time-mp": growth("mp", "time"),
    "time-admm": growth("cl", "time"),
    "faster-equal": in_time("passes", 0.0),
    "faster-loss": in_time("passes", 0.0, 0.1),
    "faster-passing": in_time("passes", 2.0, all_cells=True),
    "faster-link": in_time("stays with the link", 2.0),
    "faster-agent": in_time("stays with the agent", 2.0),
}
