"""Beyond the paper: gossip against rounds in simulated time, the rounds at their best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.measuring import LOOKS
from reproduction.paper import Made, Paper
from simulator import compare
from simulator.figures.style import GREY

HERE = Path(__file__).parent
#: Sweep files, by what they run.
FILES = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}
ALGORITHMS = {"mp": "model propagation", "admm": "ADMM"}
#: The swept keys, and what they are called in the tables.
NAMES = {
    "world": "world",
    "$spread": "spread",
    "network.drop": "drop",
    "clock.rate": "rate",
}


def asked_for(paper: Paper, name: str) -> dict[str, Any]:
    """What a sweep file says, in the size that is wanted."""
    asked: dict[str, Any] = yaml.safe_load((HERE / FILES[name]).read_text(encoding="utf-8"))
    asked["grid"] |= paper.sizes.beyond_grid.get(name, {})
    key, timers = next(iter(asked["tune"]["sync"].items()))
    asked["tune"] = {"sync": {key: timers[: paper.sizes.beyond_timers]}}
    return asked


def beyond(paper: Paper, figure: Figure) -> Made:
    """Speed-ups by combination, all pairs, and every timer on the held-out seeds."""
    parts: dict[str, list[pd.DataFrame]] = {"beyond": [], "beyond-pairs": [], "beyond-timers": []}
    words: dict[str, Any] = {}
    for name, file in FILES.items():
        asked = asked_for(paper, name)
        # Rounds choose their timers on held-out seeds, then both sides run.
        found = compare(
            HERE / file,
            asked["grid"],
            tune=asked["tune"],
            seeds=paper.sizes.beyond_seeds,
            jobs=paper.jobs,
            out=paper.store.root,
            force=paper.force,
            progress=paper.progress,
            figures=False,
        )
        assert found.tuning is not None
        own = (found.speedup, found.pairs, found.tuning)
        for tables, table in zip(parts.values(), own, strict=True):
            # The same columns for both: keys with one value have none yet.
            alone = {k: v[0] for k, v in asked["grid"].items() if k in NAMES and k not in table}
            table = table.assign(**alone).rename(columns=NAMES).assign(algorithm=name)
            first = ["algorithm", *NAMES.values()]
            tables.append(table[[*first, *(column for column in table if column not in first)]])
        task = yaml.safe_load((HERE / asked["base"]).read_text(encoding="utf-8"))["task"]
        swept = {key: values[0] for key, values in asked["grid"].items()}
        words[name] = {f"task.{key}": value for key, value in task.items()} | swept
        timers = next(iter(asked["tune"]["sync"].values()))
        words.setdefault("timers", ", ".join(map(str, timers)))
    every = {name: pd.concat(own) for name, own in parts.items()}
    table = every["beyond"]
    _draw(figure, table)
    bounds = int((table["bound"] != "=").sum())
    words["censored"] = f"; {bounds} of {len(table)} points are bounds" if bounds else ""
    return every, words


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Speed-up against the spread, a line a clock rate, a row an algorithm and loss rate."""
    rows = table[["algorithm", "drop"]].drop_duplicates().to_numpy().tolist()
    worlds = list(table["world"].unique())
    grid = figure.subplots(len(rows), len(worlds), sharex=True, sharey=True, squeeze=False)
    for axes, (name, drop) in zip(grid, rows, strict=True):
        for axis, world in zip(axes, worlds, strict=True):
            own = table[(table["algorithm"] == name) & (table["drop"] == drop)]
            own = own[own["world"] == world]
            if len(own):
                _panel(axis, own)
                text = f"{ALGORITHMS[name]}, {100 * drop:g} % lost,\nslowness {world}"
                axis.set_title(text, fontsize=9)
                axis.set_xlabel("spread σ of the delays' logarithm")
                axis.tick_params(labelbottom=True)
            else:
                axis.set_axis_off()
        axes[0].set_ylabel("ratio, rounds / gossip")
    most, least = max(4, table["speedup"].max()), min(0.25, table["speedup"].min())
    grid[0, 0].set_ylim(least / 2.5, most * 2.5)  # intervals of few seeds are wide
    handles, texts = grid[0, 0].get_legend_handles_labels()
    hollow: Any = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
    handles.append(Line2D([], [], color=GREY, **hollow))
    texts = [*texts, "hollow: undecided"]
    figure.legend(handles, texts, loc="outside upper center", ncols=5, fontsize=8)


def _panel(axis: Any, table: pd.DataFrame) -> None:
    axis.axhline(1, color=GREY, linewidth=1)
    looks = [LOOKS[name] for name in ("mp", "sync", "cl", "warm")]
    rates = sorted(table["rate"].unique(), reverse=True)
    for rate, look in zip(rates, reversed(looks[:3]), strict=False):
        curve = table[table["rate"] == rate]
        mean = curve["speedup"]
        spread = np.vstack([mean - curve["low"], curve["high"] - mean])
        text = f"time, {rate:g} tick{'' if rate == 1 else 's'} a second"
        style = {**look, "marker": None}
        axis.errorbar(curve["spread"], mean, spread, capsize=2, label=text, **style)
        decided = (curve["low"] > 1) | (curve["high"] < 1)
        for which, face in ((decided, look["color"]), (~decided, "white")):
            own = curve[which]
            dots = {"color": look["color"], "markerfacecolor": face, "markersize": 5, "zorder": 3}
            axis.plot(own["spread"], own["speedup"], look["marker"], **dots)
    curve = table[table["rate"] == rates[0]]
    text = "communications, fastest clock"
    style = {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.2}
    axis.plot(curve["spread"], curve["communications_ratio"], label=text, **style)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
