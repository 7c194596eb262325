"""The claims in the paper's text, each measured: a value, its 95 % interval, and whether it holds.

``claims.md`` has the paper's words, criteria and bounds.  Here is how each is read off the tables
of the experiments: the number that decides, or several, what the claim's remark tells, and the same
numbers with other choices where the paper is silent.  Every claim is judged in the same way: it
holds where the whole 95 % interval is within the bounds, does not where all of it is outside, and
is undecided otherwise, and without an interval; a claim about several cases holds where it does in
all of them, and the case shown is the one that decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from reproduction.beyond import WORLDS
from reproduction.mean_estimation import ROUNDS, SMALL
from reproduction.measuring import geometric
from reproduction.paper import Tables, filled, listed, sections
from reproduction.tuning import MEANS

#: The experiments whose tables the claims are read from.
SOURCES = (
    *("fig2-left", "fig2-middle", "fig2-right", "fig3-left", "fig3-middle", "fig3-right", "fig5"),
    *("theorem1", "theory", "tuning", "choices", "beyond"),
)
Cell = tuple[float, float, float]
Verdict = Literal["yes", "in part", "undecided", "no"]


@dataclass(frozen=True)
class Measured:
    """What a claim is measured by: the number that decides, its interval, and the verdict."""

    value: float
    low: float
    high: float
    holds: Verdict


@dataclass(frozen=True)
class Found:
    """What decides, the numbers of the remark, and what would decide with other choices."""

    cells: list[Cell] | Measured
    words: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, list[Cell]] = field(default_factory=dict)


Reading = Callable[[Tables], Found]


def claims_table(tables: Tables) -> pd.DataFrame:
    """claims.csv: one row a claim; ``otherwise``: with which other choices the verdict differs."""
    rows, claims = [], dict[str, dict[str, str]]()
    for name, text in sections("claims.md").items():
        given = dict(re.findall(r"^- (\w+): (.*)$", text, flags=re.MULTILINE))
        remark = re.sub(r"^- .*$", "", text, flags=re.MULTILINE).strip()
        claim = claims[name] = {**claims.get(given.get("as", ""), {"remark": ""}), **given}
        claim["remark"] = remark or claim["remark"]
        found = READINGS[name](tables)
        unit = found.words.get("unit", 1.0)  # that bounds are multiples of
        bounds = {key: float(claim[key]) * unit for key in ("least", "most") if key in claim}
        ours = found.cells
        verdict = ours if isinstance(ours, Measured) else all_of(ours, **bounds)
        rest = {choice: all_of(cells, **bounds) for choice, cells in found.others.items()}
        otherwise = (
            f"`{choice}`: {other.holds} ({other.value:.3g})"
            for choice, other in rest.items()
            if {other.holds, verdict.holds} == {"yes", "no"}
        )
        rows.append(
            {
                "claim": name,
                **{key: claim[key] for key in ("where", "words", "criterion", "measure")},
                **asdict(verdict),
                "otherwise": ", ".join(otherwise),
                "chosen_for_it": given.get("chosen", ""),
                "remark": filled(claim["remark"], found.words),
            }
        )
    return pd.DataFrame(rows)


# --- ways to judge ------------------------------------------------------------------------------
def judged(cell: Cell, least: float = -np.inf, most: float = np.inf) -> Measured:
    """Is the whole interval from ``least`` to ``most``?"""
    _, low, high = cell
    if not np.isfinite(cell).all():  # not measured, not reached within the runs, or only once
        return Measured(*cell, "undecided")
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


def split(table: pd.DataFrame, column: str) -> dict[Any, pd.DataFrame]:
    """The rows by what they have in a column, in the order of the table."""
    return {value: where(table, **{column: value}) for value in table[column].unique()}


def text_of(found: Cell, form: str = ".3g") -> str:
    """A number with its interval."""
    value, low, high = (format(number, form) for number in found)
    return f"{value} ({low} … {high})"


def of(
    figure: str, column: str, *measures: str, other: tuple[str, str] = ("", ""), **values: Any
) -> Reading:
    """A number of the rows that have these values; the remark knows the first of these rows.

    With other choices: ``measures`` of choices.csv, and the ``other`` column of the same rows.
    """

    def reading(tables: Tables) -> Found:
        own, (choice, beside) = where(tables[figure], **values), other
        others = tried(tables, *measures) | ({choice: cells(own, beside)} if choice else {})
        return Found(cells(own, column), dict(own.iloc[0]), others)

    return reading


def tried(tables: Tables, *measures: str) -> dict[str, list[Cell]]:
    """Measures with the other choices of choices.csv, but for what the paper itself says."""
    table = tables["choices"]
    own = table[table["measure"].isin(measures) & ~table["choice"].isin(["as chosen", MEANS])]
    choices = own["choice"].str.split(".").str[-1] + ": " + own["value"].astype(str)
    return {name: cells(own[choices == name], "mean") for name in choices.unique()}


# --- section 5.1 --------------------------------------------------------------------------------
def best_alpha(tables: Tables) -> Found:
    """The error with another α minus that with 0.99, held out; others: with other noise."""
    table, bests = (where(tables[name], choice=MEANS) for name in ("tuning", "tuning-best"))
    noise = split(table, "case")
    best = listed("{best:g} at {case:g}", bests)
    found = {
        key: cells(own[own["above_chosen"] != 0], "above_chosen") for key, own in noise.items()
    }
    ours = tables["fig2-left"]["noise"].iloc[0]
    words = {"instances": table["instances"].iloc[0], "best": best}
    words["errors"] = listed("{score:.4f} with {value:g}", noise[ours])
    others = {f"noise: {key:g}": own for key, own in found.items() if key != ours}
    return Found(found[ours], words, others)


def constant(tables: Tables) -> Found:
    """How the error with confidence values changes from ε = 0 to any other ε."""
    table = tables["fig2-left"]
    first, last, wide = table.iloc[0], table.iloc[-1], table[table["width"] > 0]
    readings = ("data", "share")
    changes = {k: 100 * (last[f"error_{k}"] / first[f"error_{k}"] - 1) for k in readings}
    return Found(cells(wide, "change"), changes, {"confidence: data": cells(wide, "change_other")})


def mean_trade_off(tables: Tables) -> Found:
    """Asynchronous over synchronous error after some rounds, for the main reading."""
    table = tables["fig2-right-rounds"]
    later = table[table["round"].isin(ROUNDS[1:])]
    ratios = "; ".join(
        f"`{start}`: {listed('{ratio:.2f} after {round:.0f}', group)}"
        for start, group in split(table[table["round"].isin(ROUNDS)], "start").items()
    )
    (_, ours), *rest = split(later, "start").items()
    others = {f"start: {start}": cells(own, "ratio") for start, own in rest}
    return Found(cells(ours, "ratio"), {"ratios": ratios}, others)


def theorem(clocks: str) -> Reading:
    """The squared distance of the expected models to the closed form, computed exactly."""

    def judge(tables: Tables) -> Found:
        own = where(tables["theorem1"], clocks=clocks)
        last, run = own.iloc[-1], own[own["runs"].notna()].iloc[-1]
        words = {
            "last": f"{last['communications']:,}",
            "expected": listed("{expected:.1e} at {communications:,}", own),
            "runs": f"{run['runs']:.0f}",
            "run": f"{run['communications']:,}",
            "mean_of_runs": run["mean_of_runs"],
            "noise": run["noise"],
            "exact": run["expected_mean"],
        }
        falls = bool((own["expected"].diff().dropna() < 0).all())
        found: list[Cell] | Measured = [cell(last, "expected")]
        return Found(found if falls else Measured(*cell(last, "expected"), "no"), words)

    return judge


def equivalent(tables: Tables) -> Found:
    """The greatest difference between MP and CL on means: of objectives, and of optima."""
    worst = float(tables["theory-equivalence"][["objectives", "models"]].to_numpy().max())
    return Found([(worst, worst, worst)])  # computed exactly


# --- section 5.2 --------------------------------------------------------------------------------
def decreasing(tables: Tables) -> Found:
    """The loss of accuracy from each dimension to the next, of every model."""
    table = tables["fig3-left"].sort_values("dimension")
    rows, methods = table.to_dict("records"), ("solitary", "consensus", "mp", "cl")
    steps = list(pairwise(rows))
    falls = {m: [_fall(*step, m) for step in steps] for m in (*methods, "mp_ridged")}
    words: dict[str, Any] = {"steps": len(steps)}
    for method, own in falls.items():
        found = [judged(one, least=0).holds for one in own]
        up = [f"{a['dimension']}" for (a, _), one in zip(steps, found, strict=True) if one == "no"]
        words[method] = f"falls {found.count('yes')}, undecided {found.count('undecided')}"
        words[method] += f", rises from {' and '.join(up)}" if up else ""
    ends = (f"{name} {text_of(_fall(rows[0], rows[-1], name), '+.3f')}" for name in methods)
    words["ends"] = ", ".join(ends)
    others = {RIDGED: [one for m, own in falls.items() if m != "mp" for one in own]}
    return Found([one for m in methods for one in falls[m]], words, others)


def _fall(one: Any, other: Any, method: str) -> Cell:
    """The accuracy in one dimension minus that in another, whose instances are others."""
    value = float(one[method] - other[method])
    half = float(np.hypot(*(row[f"{method}_high"] - row[method] for row in (one, other))))
    return value, value - half, value + half


def barely(tables: Tables) -> Found:
    """Solitary accuracy in the highest dimension."""
    table = tables["fig3-left"]
    return Found([cell(table.iloc[int(table["dimension"].argmax())], "solitary")])


def above_solitary(tables: Tables) -> Found:
    """MP, and CL, minus solitary, in every dimension; and what share of the error that is."""
    table, gains = tables["fig3-left"], ("mp_minus_solitary", "cl_minus_solitary")
    words = dict[str, str]()
    for name in gains:
        own = table.assign(share=100 * table[name] / (0.95 - table["solitary"]))
        form = f"{{{name}:.3f}} at p = {{dimension:g}} ({{share:.0f}} %)"
        chosen = own.iloc[[0, len(own) // 2, -1]]
        words[name[:2]] = listed(form, chosen.drop_duplicates())
    return Found([c for name in gains for c in cells(table, name)], words)


#: How the second ridge of figure 3 is called as a choice.
RIDGED = "ridge: 0.01"


def cl_above_mp(tables: Tables) -> Found:
    """CL minus MP, in every dimension, with either ridge of the solitary models."""
    table = tables["fig3-left"]
    form = "{{{0}:+.4f}} ({{{0}_low:+.4f}} … {{{0}_high:+.4f}}) at p = {{dimension:g}}"
    names = ("cl_minus_mp", "cl_minus_mp_ridged")
    words = dict(
        zip(("ours", "ridged"), (listed(form.format(k), table) for k in names), strict=True)
    )
    others = tried(tables, "CL minus MP, p = 2", "CL minus MP, p = 50")
    others[RIDGED] = cells(table, "cl_minus_mp_ridged")
    return Found(cells(table, "cl_minus_mp"), words, others)


def _trend(tables: Tables, method: str) -> Cell:
    """How an accuracy grows from 1 to 20 training points."""
    row = where(tables["fig3-middle-trends"], method=method).iloc[0]
    value, low, high = cell(row, "slope")
    return 19 * value, 19 * low, 19 * high


def free_of_size(tables: Tables) -> Found:
    """The trend of CL's accuracy with the training size, beside that of solitary models."""
    return Found([_trend(tables, "cl")], {"unit": abs(_trend(tables, "solitary")[0])})


def _sent(tables: Tables, algorithm: str, share: int) -> pd.Series[float]:
    """Communications to a share of the own optimum's accuracy, by instance."""
    levels = where(tables["fig3-right-levels"], algorithm=algorithm)
    return levels.set_index("seed")[f"to_{share}"]


def _ratio(one: pd.Series[float], other: pd.Series[float]) -> Cell:
    """Geometric mean over instances, and its 95 % interval."""
    return cell(geometric("ratio", one / other), "ratio")


def admm_trade_off(tables: Tables) -> Found:
    """Communications of asynchronous over synchronous ADMM."""
    return Found([_ratio(_sent(tables, "cl", k), _sent(tables, "sync", k)) for k in (95, 99)])


def mp_faster(tables: Tables) -> Found:
    """Communications of ADMM over those of MP: nearer to 10 than to 1 and to 100."""
    ratios = {k: _ratio(_sent(tables, "cl", k), _sent(tables, "mp", k)) for k in (90, 95, 99)}
    others = tried(tables, "communications to 95 %, ADMM / MP")
    words = {
        "by_share": ", ".join(f"{value:.3g} at {k} %" for k, (value, _, _) in ratios.items()),
        "others": ", ".join(f"{own[0][0]:.3g} with `{name}`" for name, own in others.items()),
    }
    return Found([ratios[95]], words, others)


def warm_start(tables: Tables) -> Found:
    """What a warm start saves, MP's own communications included; and how far MP alone gets."""
    ratios = {
        k: _ratio(_sent(tables, "warm", k) + _sent(tables, "mp", k), _sent(tables, "cl", k))
        for k in (95, 99)
    }
    alone = _ratio(_sent(tables, "mp towards cl", 90), _sent(tables, "cl", 90))
    texts = (f"{text_of(own, '.3f')} at {k} %" for k, own in ratios.items())
    words = {"by_share": "; ".join(texts), "alone": text_of(alone, ".2f")}
    return Found(list(ratios.values()), words)


# --- appendices D and E, and beyond -------------------------------------------------------------
def rate(loss: str) -> Reading:
    """Of the hinge loss the exponent of t; of means how straight the logarithm falls."""

    def judge(tables: Tables) -> Found:
        row = where(tables["theory-rates"], loss=loss).iloc[0]
        found: Any = [cell(row, "exponent" if loss == "hinge" else "straight_r2")]
        falls = judged(cell(row, "factor"), most=1)
        if loss == "means" and falls.holds != "yes":
            found = falls
        return Found(found, {**row, "percent": 100 * row["straight_r2"]})

    return judge


def growth(algorithm: str, measure: str) -> Reading:
    """The exponent of n in the communications, or the time, to 90 %."""
    column = algorithm if measure == "communications" else f"{algorithm}_time"

    def judge(tables: Tables) -> Found:
        row = where(tables["fig5-slopes"], algorithm=algorithm, measure=measure).iloc[0]
        few, many = tables["fig5"].iloc[0], tables["fig5"].iloc[-1]
        words = {
            "few": few["agents"],
            "many": many["agents"],
            "times": many[column] / few[column],
            "larger": text_of(cell(row, "upper_half"), ".2f"),
            "few_percent": 100 * few[f"{algorithm}_way"],
            "many_percent": 100 * many[f"{algorithm}_way"],
        }
        return Found([cell(row, "slope")], words)

    return judge


def in_parallel(tables: Tables) -> Found:
    """The exponent of n in the iterations that are done in a unit of time."""
    return Found(cells(where(tables["fig5-slopes"], measure="parallel"), "slope"))


def in_time(tables: Tables) -> Found:
    """In how many worlds gossip is at least twice as fast as rounds with the best timer."""
    worlds = tables[WORLDS]
    worlds = worlds[worlds["rate"] == worlds["rate"].max()]
    sure, open_ = (worlds["low"] >= 2).mean(), (worlds["high"] >= 2).mean()
    holds: Verdict = "yes" if sure == 1 else "no" if open_ == 0 else "in part"
    counts = worlds["verdict"].value_counts()
    words = {
        **{text.replace(" ", "_"): counts.get(text, 0) for text in ("much faster", "faster")},
        "slower": counts.get("slower", 0) + counts.get("much slower", 0),
        "open": counts.get("undecided", 0),
        "worlds": len(worlds),
        "rate": worlds["rate"].max(),
        "least": worlds["speedup"].min(),
        "most": worlds["speedup"].max(),
    }
    value = (worlds["speedup"] >= 2).mean()
    return Found(Measured(float(value), float(sure), float(open_), holds), words)


WIN_RATIO = ("without: one", "win_ratio_other")
#: By the headings of claims.md.
READINGS: dict[str, Reading] = {
    "alpha": best_alpha,
    "win-ratio-small": of(
        "fig2-middle", "win_ratio", "win ratio, ε = 0.1", other=WIN_RATIO, width=SMALL
    ),
    "error-small": of("fig2-left", "gap", other=("without: one", "gap_other"), width=SMALL),
    "win-ratio-full": of(
        "fig2-middle", "win_ratio", "win ratio, ε = 1", other=WIN_RATIO, width=1.0
    ),
    "gap-grows": of("fig2-left", "gap_growth", width=1.0),
    "error-constant": constant,
    "mp-async-sync": mean_trade_off,
    "theorem-1": theorem("equal"),
    "clocks": theorem("unequal"),
    "equivalent": equivalent,
    "consensus": of(
        *("fig3-left", "consensus"),
        *(f"accuracy of consensus model, p = {p}" for p in (2, 50)),
    ),
    "decreasing": decreasing,
    "solitary-poor": barely,
    "above-solitary": above_solitary,
    "cl-above-mp": cl_above_mp,
    "solitary-size": lambda tables: Found([_trend(tables, "solitary")]),
    "cl-size-free": free_of_size,
    "cl-above-mp-size": of("fig3-middle", "cl_minus_mp"),
    "gap-size": lambda tables: Found([_trend(tables, "cl_minus_mp")]),
    "admm-async-sync": admm_trade_off,
    "mp-faster": mp_faster,
    "warm-start": warm_start,
    "admm-convex": rate("hinge"),
    "admm-linear": rate("means"),
    "linear-mp": growth("mp", "communications"),
    "linear-admm": growth("cl", "communications"),
    "parallel": in_parallel,
    "time-mp": growth("mp", "time"),
    "time-admm": growth("cl", "time"),
    "faster": in_time,
}
