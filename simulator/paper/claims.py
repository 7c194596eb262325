"""The claims in the paper's text, each measured: a value, its 95 % interval, and whether it holds.

What would count as holding is said beside each claim and does not depend on the outcome.  Where a
claim does not hold, its remark says what was looked into.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from simulator.paper import verdicts
from simulator.paper.experiment import Tables

#: The experiments whose tables the claims are read from.
SOURCES = (
    "fig2-left",
    "fig2-middle",
    "fig2-right",
    "fig3-left",
    "fig3-middle",
    "fig3-right",
    "fig5",
    "theorem1",
    "choices",
    "beyond",
)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper."""

    id: str
    where: str
    #: The claim, what is measured, and when it holds.
    text: str
    measure: str
    criterion: str
    judge: Callable[[Tables], verdicts.Measured]
    #: What one should know about it, with what we looked into where it does not hold.
    remark: Callable[[Tables], str] = lambda tables: ""


def claims_table(tables: Tables) -> pd.DataFrame:
    """claims.csv: one row a claim."""
    rows = []
    for claim in CLAIMS:
        found = claim.judge(tables)
        rows.append(
            {
                "claim": claim.id,
                "where": claim.where,
                "text": claim.text,
                "measure": claim.measure,
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "criterion": claim.criterion,
                "holds": "yes" if found.holds else "no",
                "remark": claim.remark(tables),
            }
        )
    return pd.DataFrame(rows)


CLAIMS = (
    Claim(
        "win-ratio-small",
        "5.1, fig. 2 middle",
        "With small ε, the win ratio is about 0.5",
        "win ratio at ε = 0.1",
        "interval meets 0.45 … 0.55",
        verdicts.small_width,
        verdicts.about_label_propagation,
    ),
    Claim(
        "win-ratio-full",
        "5.1, fig. 2 middle",
        "For ε = 1, the win ratio is about 0.85",
        "win ratio at ε = 1",
        "interval meets 0.80 … 0.90",
        verdicts.full_width,
    ),
    Claim(
        "gap-grows",
        "5.1, fig. 2 left",
        "The performance gap in favour of confidence values increases sharply with ε",
        "(error without − error with) / error with, at ε = 1",
        "interval above 0",
        verdicts.sharp,
    ),
    Claim(
        "error-constant",
        "5.1, fig. 2 left",
        "The error with confidence values remains constant as ε increases",
        "change of the error from ε = 0 to ε = 1, relative to ε = 0",
        "at most ±10 %",
        verdicts.constant,
        verdicts.about_factor,
    ),
    Claim(
        "mp-async-sync",
        "5.1, fig. 2 right",
        "Asynchronous MP's trade-off is almost as good as synchronous MP's",
        "asynchronous / synchronous error after 4 synchronous rounds' communications",
        "interval at most 2",
        verdicts.mean_trade_off,
        verdicts.about_rounds,
    ),
    Claim(
        "theorem-1",
        "Theorem 1",
        "From an arbitrary start, the expected models tend to the closed form",
        "squared distance of the mean of all runs to Θ*, longest runs, relative to the start",
        "falls with every length and ends below 1e-4",
        verdicts.theorem,
    ),
    Claim(
        "consensus",
        "5.2, fig. 3 left",
        "The consensus model achieves very poor performance",
        "consensus accuracy, at the p where it is farthest from one half",
        "within 0.05 of 0.5",
        verdicts.consensus,
    ),
    Claim(
        "decreasing",
        "5.2, fig. 3 left",
        "The accuracy of all models decreases with the dimension",
        "accuracy at the lowest p minus that at the highest, least of solitary, MP and CL",
        "interval above 0",
        verdicts.decreasing,
    ),
    Claim(
        "solitary-poor",
        "5.2, fig. 3 left",
        "In high dimension solitary models barely outperform a random guess",
        "solitary accuracy at the highest p",
        "interval meets 0.5 … 0.6",
        verdicts.barely,
    ),
    Claim(
        "mp-above-solitary",
        "5.2, fig. 3 left",
        "MP (and CL) improve very significantly over solitary models, also in high dimension",
        "MP minus solitary accuracy, at the p where it is least sure",
        "interval above 0 at every p",
        verdicts.mp_above_solitary,
    ),
    Claim(
        "cl-above-mp",
        "5.2, fig. 3 left",
        "CL always outperforms MP (every p)",
        "CL minus MP accuracy, at the p where it is least sure",
        "interval above 0 at every p",
        verdicts.cl_above_mp,
        verdicts.about_dimensions,
    ),
    Claim(
        "solitary-size",
        "5.2, fig. 3 middle",
        "Solitary models are more accurate with larger training sets",
        "slope of solitary accuracy, from 1 to 20 points",
        "interval above 0",
        verdicts.trend("solitary"),
    ),
    Claim(
        "cl-size-free",
        "5.2, fig. 3 middle",
        "CL's accuracy is similar regardless of the training size",
        "slope of CL accuracy, from 1 to 20 points",
        "at most a quarter of the solitary slope",
        verdicts.independent_of_size,
    ),
    Claim(
        "cl-above-mp-size",
        "5.2, fig. 3 middle",
        "CL consistently outperforms MP on all training sizes",
        "CL minus MP accuracy, at the size where it is least sure",
        "interval above 0 at every size",
        verdicts.cl_above_mp_by_size,
        verdicts.about_sizes,
    ),
    Claim(
        "gap-size",
        "5.2, fig. 3 middle",
        "The gap between CL and MP is larger for agents with more training data",
        "slope of CL minus MP accuracy, from 1 to 20 points",
        "interval above 0",
        verdicts.trend("cl_minus_mp"),
    ),
    Claim(
        "admm-async-sync",
        "5.2, fig. 3 right",
        "Asynchronous ADMM performs as well as synchronous ADMM per communication",
        "communications to 95 % of the optimum's accuracy, asynchronous / synchronous",
        "interval at most 1.5",
        verdicts.admm_trade_off,
    ),
    Claim(
        "mp-faster",
        "5.2, fig. 3 right",
        "Asynchronous MP converges an order of magnitude faster than CL",
        "communications to 95 % of the own optimum's accuracy, ADMM / MP",
        "interval at least 5",
        verdicts.mp_faster,
        verdicts.about_start,
    ),
    Claim(
        "warm-start",
        "5.2, fig. 3 right",
        "MP can provide a valuable warm start for CL",
        "communications to 95 % of the optimum's accuracy, MP's own included, warm / cold start",
        "interval below 1",
        verdicts.warm,
        verdicts.about_duals,
    ),
    Claim(
        "linear-mp",
        "E, fig. 5",
        "MP: the number of iterations scales linearly with n",
        "slope of log communications to 90 % against log n",
        "between 0.8 and 1.2",
        verdicts.linear("mp"),
        verdicts.about_growth("mp"),
    ),
    Claim(
        "linear-admm",
        "E, fig. 5",
        "CL: the number of iterations scales linearly with n",
        "slope of log communications to 90 % against log n",
        "between 0.8 and 1.2",
        verdicts.linear("cl"),
        verdicts.about_growth("cl"),
    ),
    Claim(
        "faster-heavy-tail",
        "3.2, 5.1",
        "Asynchronous MP is expected to be much faster on networks with delays: heavy tail",
        "time of synchronous / asynchronous; greatest σ, fastest clock, no loss",
        "interval above 1",
        verdicts.in_time(heavy=True),
        verdicts.about_cells,
    ),
    Claim(
        "faster-no-tail",
        "3.2, 5.1",
        "Asynchronous MP is expected to be much faster on networks with delays: equal delays",
        "time of synchronous / asynchronous; σ = 0, fastest clock, no loss",
        "interval above 1",
        verdicts.in_time(heavy=False),
    ),
)
