"""The figure of docs/synchrony.md: time over gossip's against how long slowness lasts.

    python -m simulator compare scenarios/synchrony.yaml
    python docs/synchrony_figure.py results/sweeps/synchrony-… docs/images/synchrony.png ROUNDS

ROUNDS is how many rounds the target takes, whatever the network does: the time with a constant
delay, over that delay.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot, rc_context
from numpy.typing import NDArray
from scipy.stats import norm

from simulator import Frontier
from simulator.figures.style import GREY, LOOKS, Look, legend_below

Floats = NDArray[np.float64]
#: Of the scenario: the mean delay and the spread of the factor, and who has one.
MEAN, SIGMA = 0.1, 2.0
FACTORS = {"links": 1760, "devices": 300}
#: Of the numerical solution: its step and its end.
STEP, END = 0.002, 400.0
KEY = "$slowness lasts"
SIDES = ("tell", "neighbours", "global")


def round_length(factors: int, timer: float, lasts: float) -> float:
    """T(r, τ) of docs/synchrony.md, from u(t) on a grid of times."""
    times = np.arange(0.0, END, STEP)
    with np.errstate(divide="ignore"):
        late = norm.sf((np.log(times / MEAN) + SIGMA**2 / 2) / SIGMA)
    missing, expected = late.copy(), np.ones_like(late)  # u(t), and E[u(t - J r)]
    attempt, kept = round(timer / STEP), math.exp(-timer / lasts)
    for begin in range(attempt, len(times), attempt):
        here = slice(begin, min(begin + attempt, len(times)))
        before = slice(begin - attempt, begin - attempt + here.stop - here.start)
        expected[here] = (1 - kept) * missing[before] + kept * expected[before]
        missing[here] = late[here] * expected[here]
    return float((1 - (1 - missing) ** factors).sum() * STEP)


def main(folder: str, image: str, rounds: str) -> None:
    """Draw it."""
    found = Frontier.load(folder)
    table, points = found.equal_messages, found.points
    table = table.assign(lasts=_seconds(table[KEY]))
    points = points.assign(lasts=_seconds(points[KEY]))
    ends = np.sort(table["lasts"].unique())
    places = {lasts: (lasts if math.isfinite(lasts) else 10 * ends[-2]) for lasts in ends}
    look = Look()
    with rc_context(look.style):
        figure = look.picture(3.0)
        worlds = [name for name in FACTORS if (table["world"] == name).any()]
        axes = look.panels(figure, 1, len(worlds), sharey=True)[0]
        for axis, world in zip(axes, worlds, strict=True):
            here = table[table["world"] == world]
            # At the least budget with which all sides get there.
            here = here[here["budget"] == here.groupby("lasts")["budget"].transform("max")]
            for side, (colour, style) in zip(SIDES, LOOKS, strict=False):
                own = here[here["side"] == side].sort_values("lasts")
                x = [places[lasts] for lasts in own["lasts"]]
                marks = {"marker": "o", "markersize": 4, "linestyle": style, "color": colour}
                axis.plot(x, own["ratio"], **marks, label=side)
                axis.fill_between(x, own["ratio_low"], own["ratio_high"], color=colour, alpha=0.2)
            gossip = here[here["side"] == "gossip"].sort_values("lasts")
            theory = [
                float(rounds) * round_length(FACTORS[world], 0.1, lasts) / time
                for lasts, time in zip(gossip["lasts"], gossip["time"], strict=True)
            ]
            x = [places[lasts] for lasts in gossip["lasts"]]
            axis.plot(x, theory, color=GREY, linestyle=":", label="T(100 ms, τ), theory for global")
            axis.axhline(1.0, color=GREY, linewidth=0.8)
            axis.set(xscale="log", yscale="log", title=f"slowness of {world}")
            axis.set_xlabel("how long slowness lasts, τ (s); rightmost: for ever")
        axes[0].set_ylabel("time / gossip's,\nat equal messages")
        legend_below(figure, axes[0])
        figure.savefig(Path(image))
        pyplot.close(figure)


def _seconds(values: pd.Series[str]) -> Floats:
    """What lasts for ever has no number."""
    return np.array([math.inf if str(each) in ("null", "nan") else float(each) for each in values])


if __name__ == "__main__":
    main(*sys.argv[1:])
