"""Beyond the paper: gossip against rounds in simulated time, the rounds at their best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.measuring import LOOKS
from reproduction.paper import Made, Paper
from simulator import compare
from simulator.figures.style import GREY

HERE = Path(__file__).parent
#: Sweep files, by what they run.
FILES = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}
#: The table that answers "much faster".
WORLDS = "beyond-worlds"
ALGORITHMS = {"mp": "MP", "admm": "ADMM"}
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
    every[WORLDS] = worlds_of(table).reset_index(drop=True)
    _draw(figure, every[WORLDS])
    bounds = int((table["bound"] != "=").sum())
    words["censored"] = f"; {bounds} of {len(table)} points are bounds" if bounds else ""
    return every, words


def worlds_of(table: pd.DataFrame) -> pd.DataFrame:
    """Each world once: without a spread it does not matter what the slowness does."""
    same = table["world"].where(table["spread"] > 0, "no slowness")
    own = table.assign(world=same).drop_duplicates(["algorithm", *NAMES.values()])
    verdicts = {
        "much faster": own["low"] >= 2,
        "faster": own["low"] > 1,
        "much slower": own["high"] <= 0.5,
        "slower": own["high"] < 1,
    }
    verdict = np.select(list(verdicts.values()), list(verdicts), "undecided")
    names = ["algorithm", *NAMES.values(), "tuned_second", "speedup", "low", "high"]
    return own[[*names, "communications_ratio"]].assign(verdict=verdict)


def _draw(figure: Figure, worlds: pd.DataFrame) -> None:
    """A row a world, a look a clock rate; hollow where the interval contains 1."""
    axis = figure.subplots()
    slow = worlds["world"].where(worlds["spread"] == 0, "slowness " + worlds["world"])
    names = worlds["algorithm"].map(ALGORITHMS) + ", " + slow
    names += worlds["spread"].map(lambda spread: f", σ = {spread:g}" if spread else "")
    names += worlds["drop"].map(lambda drop: f", {100 * drop:g} % lost" if drop else "")
    places = {name: -k for k, name in enumerate(names.unique())}
    rates = sorted(worlds["rate"].unique())
    for k, (look, rate) in enumerate(zip(("mp", "sync", "cl"), rates, strict=False)):
        own = worlds[worlds["rate"] == rate]
        y = names[own.index].map(places) + 0.2 * (k - (len(rates) - 1) / 2)
        style = {**LOOKS[look], "linestyle": "none"}
        spread = np.vstack([own["speedup"] - own["low"], own["high"] - own["speedup"]])
        text = f"{rate:g} tick{'' if rate == 1 else 's'} a second"
        axis.errorbar(own["speedup"], y, xerr=spread, label=text, markersize=5, **style)
        open_ = ((own["low"] <= 1) & (own["high"] >= 1)).to_numpy()
        style |= {"markerfacecolor": "white", "markersize": 5, "zorder": 4}
        axis.plot(own["speedup"][open_], y[open_], **style)
    axis.axvline(1, color=GREY, linewidth=1)
    axis.axvline(2, color=GREY, linewidth=1, linestyle=":")
    axis.set_yticks(list(places.values()), list(places), fontsize=8)
    least, most = worlds["speedup"].min(), worlds["speedup"].max()
    axis.set(xscale="log", xlim=(least / 2, most * 2), xlabel="time of rounds / time of gossip")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
