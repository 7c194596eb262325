"""What figures have in common: how each method looks, lines with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simulator.figures.style import BLUE, GREEN, GREY, ORANGE

#: How each method looks in every figure: colour, line, marker; apart also in black and white.
LOOKS: dict[str, dict[str, Any]] = {
    "solitary": {"color": GREY, "linestyle": ":", "marker": "v"},
    "consensus": {"color": "#999999", "linestyle": (0, (1, 1, 4, 1)), "marker": "x"},
    "mp": {"color": ORANGE, "linestyle": "--", "marker": "s"},
    "cl": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "sync": {"color": GREEN, "linestyle": (0, (5, 1, 1, 1)), "marker": "^"},
    "warm": {"color": "#8E6BBF", "linestyle": (0, (1, 1)), "marker": "D"},
}


def line(axis: Any, table: pd.DataFrame, x: str, name: str, look: str, label: str) -> None:
    """A line through means, with bars for their 95 % intervals."""
    low, high = table[f"{name}_low"], table[f"{name}_high"]
    spread = np.vstack([table[name] - low, high - table[name]])
    axis.errorbar(
        table[x], table[name], spread, label=label, markersize=4, capsize=2, **LOOKS[look]
    )


def method_lines(figure: Figure, table: pd.DataFrame, x: str, texts: Mapping[str, str]) -> Any:
    """A panel with the accuracy of each method, and the legend above it."""
    axis = figure.subplots()
    for name, text in texts.items():
        line(axis, table, x, name, name, text)
    axis.set_ylabel("mean test accuracy")
    figure.legend(loc="outside upper center", ncols=3 if len(texts) == 3 else 2, fontsize=8)
    return axis


def band(axis: Any, x: Any, table: pd.DataFrame, name: str, colour: str, **style: Any) -> None:
    """The 95 % intervals of a line without bars."""
    low, high = table[f"{name}_low"], table[f"{name}_high"]
    axis.fill_between(x, low, high, color=colour, **{"alpha": 0.2, "linewidth": 0, **style})
