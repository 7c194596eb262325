"""The claims in the paper's text, each measured: a value, its 95 % interval, and whether it holds.

What would count as holding is said beside each claim and does not depend on the outcome; a claim
holds where the whole interval does (``verdicts.py``).  Where a claim does not hold, its remark says
what was looked into; where a choice was made because it gives the paper's number, the row says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from reproduction import remarks, verdicts
from reproduction.experiment import Tables

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
    "theory",
    "tuning",
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
    #: The choice that was made because it gives the paper's number, if one was.
    chosen: str = ""


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
                "holds": found.holds,
                "chosen_for_it": claim.chosen,
                "remark": claim.remark(tables),
            }
        )
    return pd.DataFrame(rows)


CLAIMS = (
    Claim(
        "alpha",
        "5.1",
        "α = 0.99 gave the best results on held-out instances",
        "error with another α minus that with 0.99, held-out instances, at the α where it is least",
        "above 0 for every other α of the grid",
        verdicts.best_alpha,
        remarks.about_alphas,
    ),
    Claim(
        "win-ratio-small",
        "5.1, fig. 2 middle",
        "With small ε, the win ratio is about 0.5",
        "win ratio at ε = 0.1",
        "0.45 … 0.55",
        verdicts.small_width,
        remarks.about_label_propagation,
        chosen="`without: mean`; C = I would not give the paper's number",
    ),
    Claim(
        "error-small",
        "5.1, fig. 2 left",
        "With small ε, both have similar L2 error",
        "(error without − error with) / error with, at ε = 0.1",
        "within ±0.1",
        verdicts.similar_error,
        chosen="`without: mean`, as above",
    ),
    Claim(
        "win-ratio-full",
        "5.1, fig. 2 middle",
        "For ε = 1, the win ratio is about 0.85",
        "win ratio at ε = 1",
        "0.80 … 0.90",
        verdicts.full_width,
    ),
    Claim(
        "gap-grows",
        "5.1, fig. 2 left",
        "The performance gap in favour of confidence values increases sharply with ε",
        "(error without − error with) / error with, at ε = 1 minus at ε = 0.1",
        "at least 0.5: half of the error",
        verdicts.sharp,
        remarks.about_gaps,
    ),
    Claim(
        "error-constant",
        "5.1, fig. 2 left",
        "The error with confidence values remains constant as ε increases",
        "change of the error since ε = 0, relative to it, at the ε where it is greatest",
        "within ±10 % at every ε",
        verdicts.constant,
        remarks.about_factor,
        chosen="`confidence: share`, section 5.1's own c_i; m_i / max m_j would not give it",
    ),
    Claim(
        "mp-async-sync",
        "5.1, fig. 2 right",
        "Asynchronous MP's trade-off is almost as good as synchronous MP's",
        "asynchronous / synchronous error after 4, 8 and 16 synchronous rounds' communications, "
        "the greatest",
        "at most 2",
        verdicts.mean_trade_off,
        remarks.about_rounds,
    ),
    Claim(
        "theorem-1",
        "Theorem 1",
        "From an arbitrary start, the expected models tend to the closed form",
        "squared distance of the mean of all runs to Θ*, longest runs, relative to the start",
        "falls with every length and ends below 1e-4",
        verdicts.theorem("equal"),
    ),
    Claim(
        "clocks",
        "3.2, footnote 1",
        "The same with clocks that tick at different rates",
        "the same, rates lognormal with σ = 1",
        "falls with every length and ends below 1e-4",
        verdicts.theorem("unequal"),
    ),
    Claim(
        "equivalent",
        "5.2",
        "For means, CL is essentially equivalent to MP",
        "greatest relative difference of Q_CL and 2 Q_MP + constant at random models, and of the "
        "optima, with μ_CL m_i = μ_MP c_i",
        "at most 1e-8: exact but for rounding",
        verdicts.equivalent,
    ),
    Claim(
        "consensus",
        "5.2, fig. 3 left",
        "The consensus model achieves very poor performance",
        "consensus accuracy, at the p where it is greatest",
        "at most 0.6 at every p",
        verdicts.consensus,
    ),
    Claim(
        "decreasing",
        "5.2, fig. 3 left",
        "The accuracy of all models decreases with the dimension",
        "accuracy at the lowest p minus that at the highest, least of solitary, consensus, MP, CL",
        "above 0 for each model",
        verdicts.decreasing,
        remarks.about_decrease,
    ),
    Claim(
        "solitary-poor",
        "5.2, fig. 3 left",
        "In high dimension solitary models barely outperform a random guess",
        "solitary accuracy at the highest p",
        "0.5 … 0.6",
        verdicts.barely,
    ),
    Claim(
        "above-solitary",
        "5.2, fig. 3 left",
        "MP and CL improve very significantly over solitary models, also in high dimension",
        "MP, and CL, minus solitary accuracy, where it is least sure",
        "above 0 at every p, for both",
        verdicts.above_solitary,
    ),
    Claim(
        "cl-above-mp",
        "5.2, fig. 3 left",
        "CL always outperforms MP (every p)",
        "CL minus MP accuracy, at the p where it is least sure",
        "above 0 at every p",
        verdicts.cl_above_mp("fig3-left"),
        remarks.about_ridge,
    ),
    Claim(
        "solitary-size",
        "5.2, fig. 3 middle",
        "Solitary models are more accurate with larger training sets",
        "slope of solitary accuracy, from 1 to 20 points",
        "above 0",
        verdicts.trend("solitary"),
    ),
    Claim(
        "cl-size-free",
        "5.2, fig. 3 middle",
        "CL's accuracy is similar regardless of the training size",
        "slope of CL accuracy, from 1 to 20 points",
        "within a quarter of the solitary slope",
        verdicts.independent_of_size,
    ),
    Claim(
        "cl-above-mp-size",
        "5.2, fig. 3 middle",
        "CL consistently outperforms MP on all training sizes",
        "CL minus MP accuracy, at the size where it is least sure",
        "above 0 at every size",
        verdicts.cl_above_mp("fig3-middle"),
        remarks.about_sizes,
    ),
    Claim(
        "gap-size",
        "5.2, fig. 3 middle",
        "The gap between CL and MP is larger for agents with more training data",
        "slope of CL minus MP accuracy, from 1 to 20 points",
        "above 0",
        verdicts.trend("cl_minus_mp"),
    ),
    Claim(
        "admm-async-sync",
        "5.2, fig. 3 right",
        "Asynchronous ADMM performs as well as synchronous ADMM per communication",
        "communications to 95 % and to 99 % of the optimum's accuracy, asynchronous / "
        "synchronous, the greater",
        "at most 1.1 at both",
        verdicts.admm_trade_off,
    ),
    Claim(
        "mp-faster",
        "5.2, fig. 3 right",
        "Asynchronous MP converges an order of magnitude faster than CL",
        "communications to 95 % of the own optimum's accuracy, ADMM / MP",
        "3.16 … 31.6: nearer to 10 than to 1 or 100",
        verdicts.mp_faster,
        remarks.about_start,
    ),
    Claim(
        "warm-start",
        "5.2, fig. 3 right",
        "MP can provide a valuable warm start for CL",
        "communications to 95 % and to 99 % of the optimum's accuracy, MP's own included, "
        "warm / cold start, the greater",
        "below 1 at both: it pays for itself",
        verdicts.warm,
        remarks.about_duals,
    ),
    Claim(
        "admm-convex",
        "D",
        "Synchronous ADMM converges at rate O(1/t) where the objective is convex",
        "exponent of t in Q/Q* − 1, later half of the rounds, hinge loss",
        "at most −1",
        verdicts.convex_rate,
        remarks.about_rate("hinge"),
    ),
    Claim(
        "admm-linear",
        "D",
        "Synchronous ADMM converges at a linear rate where it is strongly convex",
        "share of the variance of the distance's logarithm that a falling straight line explains, "
        "means",
        "at least 0.98",
        verdicts.linear_rate,
        remarks.about_rate("means"),
    ),
    Claim(
        "linear-mp",
        "E, fig. 5",
        "MP: the number of iterations scales linearly with n",
        "slope of log communications to 90 % against log n",
        "0.8 … 1.2",
        verdicts.growth("mp", "communications"),
        remarks.about_growth("mp", "communications"),
    ),
    Claim(
        "linear-admm",
        "E, fig. 5",
        "CL: the number of iterations scales linearly with n",
        "slope of log communications to 90 % against log n",
        "0.8 … 1.2",
        verdicts.growth("cl", "communications"),
        remarks.about_growth("cl", "communications"),
    ),
    Claim(
        "time-mp",
        "E",
        "MP: as iterations run in parallel, the time stays constant as n grows",
        "slope of log time to 90 % against log n",
        "−0.2 … 0.2",
        verdicts.growth("mp", "time"),
        remarks.about_growth("mp", "time"),
    ),
    Claim(
        "time-admm",
        "E",
        "CL: as iterations run in parallel, the time stays constant as n grows",
        "slope of log time to 90 % against log n",
        "−0.2 … 0.2",
        verdicts.growth("cl", "time"),
        remarks.about_growth("cl", "time"),
    ),
    *(
        Claim(
            f"faster-{name}",
            "3.2, 5.1",
            f"Asynchronous MP is expected to be much faster on networks with delays: {text}",
            "time of rounds with the best timer / time of gossip; fastest clock",
            "at least 2",
            verdicts.in_time(*cell),
            remarks.about_cells if name == "passing" else remarks.about_cell(*cell),
        )
        for name, text, cell in (
            ("equal", "equal delays", ("passes", 0.0)),
            ("loss", "equal delays, 10 % lost", ("passes", 0.0, 0.1)),
            ("passing", "a heavy tail that passes", ("passes", 2.0)),
            ("link", "slow links that stay slow", ("stays with the link", 2.0)),
            ("agent", "slow agents that stay slow", ("stays with the agent", 2.0)),
        )
    ),
)
