"""Compare: the same problems on the same networks in two or more ways, in simulated time.

The sides of a pair have the same seed, hence the same data, graph, clocks and partners, and stop
where they reach the same level of the same metric.  The speed-up of a pair is

    time of the second side / time of the first side,

above 1 where the first (by default the asynchronous) side is faster; the ratios of communications
and of bytes are taken in the same way.  Over seeds they are summed up by their geometric means,
with Student t intervals on their logarithms.  More than two sides are each paired with the first.

A run that does not reach the target within its limit is *censored*: its time is at least the time
at which it ended.  A pair with one such run enters at that time and makes the ratios bounds; a
pair with two says nothing about them and is counted and left out, as is one with a failed run.
Where nobody sends (``solitary``, ``consensus``), the target is met at time 0 or never.

With the target ``none`` all runs go on to their limits, and there are no speed-ups: sides are then
compared at equal budgets (``equal``), which is possible whatever they minimise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from simulator.errors import ScenarioError
from simulator.scenario.mistakes import shown
from simulator.sweeps.frontier import COSTS
from simulator.sweeps.plan import Plan
from simulator.sweeps.request import NO_TARGET, Request, label, plain_values, side_names, tabled
from simulator.sweeps.tables import censored, geometric_mean, never, to_target, tuned_text

DEFAULT_VARY: tuple[str, list[Any]] = ("algorithm.mode", ["async", "sync"])
DEFAULT_TARGET = "distance=1%"
#: The three ratios of a pair, by what they are ratios of.
RATIOS = {
    "time": "speedup",
    "communications": "communications_ratio",
    "bytes": "bytes_ratio",
}
#: What the speed-up of several pairs is, by the bounds that occur among them.
_BOUNDS = {
    frozenset[str](): "=",
    frozenset({"≥"}): "≥",
    frozenset({"≤"}): "≤",
    frozenset({"≥", "≤"}): "?",
}


def comparison_request(
    request: Request, vary: tuple[str, Sequence[Any]] | None = None, *, curves: bool = True
) -> Request:
    """Fill in what a comparison needs, and refuse what would compare different things.

    Runs have samples enough for ``curves``, and for what sides have at equal budgets.
    """
    sides = {} if vary is not None else request.sides
    if not sides:
        request = replace(request, vary=_sides_of_a_key(vary or request.vary or DEFAULT_VARY))
    aims = (request.target or DEFAULT_TARGET) != NO_TARGET
    request = replace(request, sides=sides, target=request.target or DEFAULT_TARGET)
    request = replace(request, to_target=aims and not request.names("stop"))
    if aims and request.target_is_exact and not curves:
        others = {key: value for key, value in request.defaults.items() if key != "record.samples"}
        return replace(request, defaults=others)
    return request


def _sides_of_a_key(vary: Any) -> tuple[str, list[Any]]:
    try:
        key, values = vary
        if isinstance(values, str):
            raise TypeError
        values = list(values)
    except (TypeError, ValueError):
        raise ScenarioError(
            "vary: must be a key and its values, like ('algorithm.mode', ['async', 'sync']) "
            f"(got {shown(vary)})"
        ) from None
    if len(values) < 2:
        raise ScenarioError(f"--vary {key}: two or more values are compared (got {len(values)})")
    if key == "seed":
        raise ScenarioError("--vary seed: both sides of a pair have the same seed; use --seeds")
    return key, plain_values(key, values)


# --- pairs --------------------------------------------------------------------------------------
def pairs_table(plan: Plan, runs: pd.DataFrame) -> pd.DataFrame:
    """One row a pair: both costs, their quotients, and whether they are exact or bounds.

    ``bound``: ``=`` exact, ``≥`` the second side is censored, ``≤`` the first one is,
    ``censored`` both are, ``failed`` one of the runs failed; the last two have no quotients.
    """
    assert plan.request.compared is not None
    key, values = plan.request.compared
    entering = to_target(runs)
    late, done = censored(runs).to_numpy(), (runs["status"] == "done").to_numpy()
    hopeless = never(runs).to_numpy()
    rows, names = [], side_names(values)
    for first, second in _pairs(plan):
        run, other = plan.runs[first], plan.runs[second]
        row: dict[str, Any] = {k: tabled(v) for k, v in run.values.items() if k != key}
        row["first"], row["second"] = (names[label(each.values[key])] for each in (run, other))
        if run.tuned or other.tuned:
            row |= {"tuned_first": tuned_text(run.tuned), "tuned_second": tuned_text(other.tuned)}
        row["seed"] = run.scenario.seed
        bound = _bound(bool(late[first]), bool(late[second]))
        if bound != "censored" and (hopeless[first] or hopeless[second]):
            bound = "="
        bound = bound if done[first] and done[second] else "failed"
        for cost in COSTS:
            one, two = (
                float(entering[f"{cost}_to_target"].iloc[which]) for which in (first, second)
            )
            quotient = _quotient(two, one) if bound in ("=", "≥", "≤") else np.nan
            row |= {f"{cost}_first": one, f"{cost}_second": two, RATIOS[cost]: quotient}
        rows.append({**row, "bound": bound})
    return pd.DataFrame(rows)


def _pairs(plan: Plan) -> list[tuple[int, int]]:
    """Positions of the two runs of each pair: the first side's and another's, the same seed."""
    return [
        pair
        for first, *others in plan.cells
        for other in others
        for pair in zip(plan.numbers(first), plan.numbers(other), strict=True)
    ]


def _bound(first_censored: bool, second_censored: bool) -> str:
    if first_censored and second_censored:
        return "censored"
    return "≤" if first_censored else "≥" if second_censored else "="


def _quotient(second: float, first: float) -> float:
    """Two costs of zero are equal; one of zero is infinitely smaller."""
    if first == 0:
        return 1.0 if second == 0 else np.inf
    return second / first


def speedup_table(pairs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Geometric means of the ratios over seeds with 95 % intervals, a row a combination.

    ``bound`` as for a pair; ``?`` where bounds in both directions were averaged, ``none`` where
    no pair has a speed-up.
    """
    names = [*keys, "first", "second", "tuned_first", "tuned_second"]
    rows = []
    for _, here in pairs.groupby([*keys, "first", "second"], sort=False):
        usable = here[here["speedup"].notna()]
        row: dict[str, Any] = {name: here[name].iloc[0] for name in names if name in here}
        for ratio in RATIOS.values():
            before = "" if ratio == "speedup" else f"{ratio}_"
            mean, low, high = geometric_mean(usable[ratio].to_numpy())
            row |= {ratio: mean, f"{before}low": low, f"{before}high": high}
        bounds = frozenset(usable["bound"]) - {"="}
        row["bound"] = _BOUNDS[bounds] if len(usable) else "none"
        row |= {"pairs": len(here), "used": len(usable)}
        row["censored"] = int((here["bound"] == "censored").sum())
        row["failed"] = int((here["bound"] == "failed").sum())
        rows.append(row)
    return pd.DataFrame(rows)


def ratio_text(row: pd.Series[Any], ratio: str) -> str:
    """``≥ 12.3 (95 %: 10.1 … 15.0)``."""
    before = "" if ratio == "speedup" else f"{ratio}_"
    low, high = row[f"{before}low"], row[f"{before}high"]
    if row["bound"] != "=":  # an interval of bounds says nothing
        return f"{row['bound']} {row[ratio]:.3g}"
    interval = f" (95 %: {low:.3g} … {high:.3g})" if np.isfinite(low) else ""
    return f"{row[ratio]:.3g}{interval}"


def speedup_text(row: pd.Series[Any]) -> str:
    """``speed-up of async over sync: ≥ 12.3 (95 %: 10.1 … 15.0), 10 pairs``."""
    first, second = row["first"], row["second"]
    if row["bound"] == "none":
        return f"no pair of {first} and {second} reached the target"
    used = f"{row['used']} pair{'' if row['used'] == 1 else 's'}"
    return f"speed-up of {first} over {second}: {ratio_text(row, 'speedup')}, {used}"


def result_text(row: pd.Series[Any], between: str = "; ") -> str:
    """The speed-up, and what it costs where there is one."""
    text = speedup_text(row)
    return text if row["bound"] == "none" else f"{text}{between}{_costs_text(row)}"


def _costs_text(row: pd.Series[Any]) -> str:
    """What the second side sends for the first one's message, and for its byte."""
    first, second = row["first"], row["second"]
    parts = [
        f"{name} of {second} / {first}: {ratio_text(row, RATIOS[name])}"
        for name in ("communications", "bytes")
    ]
    # The same where all messages have one size: said once.
    same = np.isclose(row["communications_ratio"], row["bytes_ratio"], rtol=1e-9)
    return (
        parts[0].replace("communications", "communications and bytes") if same else "; ".join(parts)
    )
