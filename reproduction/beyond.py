"""Beyond the paper: gossip against rounds in simulated time, the rounds at their best."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.drawing import LOOKS
from reproduction.experiment import Experiment, Tables
from simulator import Comparison, compare
from simulator.figures.style import GREY

HERE = Path(__file__).parent
#: The swept keys, and what they are called in the tables.
NAMES = {
    "world": "world",
    "$spread": "spread",
    "network.drop": "drop",
    "clock.rate": "rate",
}


class Beyond(Experiment):
    """Gossip against rounds in time, over the spread of delays, loss and clock rate."""

    id = "beyond"
    size = (9.8, 7.6)
    #: Sweep files, by what they run.
    files: ClassVar = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}
    algorithms: ClassVar = {"mp": "model propagation", "admm": "ADMM"}

    @cached_property
    def _asked(self) -> dict[str, dict[str, Any]]:
        """What each file says, in the size that is wanted."""
        asked = {}
        for name, file in self.files.items():
            asked[name] = yaml.safe_load((HERE / file).read_text(encoding="utf-8"))
            asked[name]["grid"] |= self.sizes.beyond_grid.get(name, {})
            key, timers = next(iter(asked[name]["tune"]["sync"].items()))
            asked[name]["tune"] = {"sync": {key: timers[: self.sizes.beyond_timers]}}
        return asked

    @cached_property
    def _found(self) -> dict[str, Comparison]:
        """Rounds choose their timers on held-out seeds, then both sides run."""
        return {
            name: compare(
                HERE / self.files[name],
                asked["grid"],
                tune=asked["tune"],
                seeds=self.sizes.beyond_seeds,
                jobs=self.paper.jobs,
                out=self.paper.store.root,
                force=self.paper.force,
                progress=self.paper.progress,
                figures=False,
            )
            for name, asked in self._asked.items()
        }

    def tables(self) -> Tables:
        """Speed-ups by combination, all pairs, and every timer on the held-out seeds."""
        parts: dict[str, list[pd.DataFrame]] = {"": [], "-pairs": [], "-timers": []}
        for name, found in self._found.items():
            assert found.tuning is not None
            own = {"": found.speedup, "-pairs": found.pairs, "-timers": found.tuning}
            for ending, table in own.items():
                parts[ending].append(self._named(name, table))
        return {f"{self.id}{end}": pd.concat(own) for end, own in parts.items()}

    def _named(self, name: str, table: pd.DataFrame) -> pd.DataFrame:
        """A table with the same columns for both: keys with one value have none yet."""
        grid = self._asked[name]["grid"]
        alone = {key: grid[key][0] for key in NAMES if key in grid and key not in table}
        table = table.assign(**alone).rename(columns=NAMES).assign(algorithm=name)
        first = ["algorithm", *NAMES.values()]
        return table[[*first, *(name for name in table if name not in first)]]

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Speed-up against the spread, a line a clock rate, a row an algorithm and loss rate."""
        table = tables[self.id]
        rows = table[["algorithm", "drop"]].drop_duplicates().to_numpy().tolist()
        worlds = list(table["world"].unique())
        grid = figure.subplots(len(rows), len(worlds), sharex=True, sharey=True, squeeze=False)
        for axes, (name, drop) in zip(grid, rows, strict=True):
            for axis, world in zip(axes, worlds, strict=True):
                own = table[(table["algorithm"] == name) & (table["drop"] == drop)]
                own = own[own["world"] == world]
                if len(own):
                    _panel(axis, own)
                    text = f"{self.algorithms[name]}, {100 * drop:g} % lost,\nslowness {world}"
                    axis.set_title(text, fontsize=9)
                    axis.set_xlabel("spread σ of the delays' logarithm")
                    axis.tick_params(labelbottom=True)
                else:
                    axis.set_axis_off()
            axes[0].set_ylabel("ratio, rounds / gossip")
        most, least = (max(4, table["speedup"].max()), min(0.25, table["speedup"].min()))
        grid[0, 0].set_ylim(least / 2.5, most * 2.5)  # intervals of few seeds are wide
        handles, texts = grid[0, 0].get_legend_handles_labels()
        hollow: Any = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
        handles.append(Line2D([], [], color=GREY, **hollow))
        texts = [*texts, "hollow: undecided"]
        figure.legend(handles, texts, loc="outside upper center", ncols=5, fontsize=8)

    def words(self, tables: Tables) -> dict[str, Any]:
        """Sizes, timers, and how many points are bounds."""
        table = tables[self.id]
        bounds = int((table["bound"] != "=").sum())
        timers = next(iter(self._asked["mp"]["tune"]["sync"].values()))
        return {
            **{name: self._task(name) for name in self.files},
            "timers": ", ".join(map(str, timers)),
            "censored": f"; {bounds} of {len(table)} points are bounds" if bounds else "",
        }

    def _task(self, name: str) -> dict[str, Any]:
        """How large its problems are."""
        asked = self._asked[name]
        task = yaml.safe_load((HERE / asked["base"]).read_text(encoding="utf-8"))["task"]
        swept = {key: values[0] for key, values in asked["grid"].items()}
        return {f"task.{key}": value for key, value in task.items()} | swept


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
