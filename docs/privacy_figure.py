"""The tables and the picture of docs/privacy.md: ``python docs/privacy_figure.py``.

Its two sweeps take a quarter of an hour; what is in the store already is not computed again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from simulator import sweep
from simulator.figures.style import Look
from simulator.sweeps.tables import mean_interval

FILE = "docs/examples/privacy.yaml"
IMAGE = Path(__file__).parent / "images" / "privacy.png"
#: What is on the axis, in which sweep.
SWEEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "dimension p, with ε = 1": ("task.dimension", {}),
    "ε, with p = 20": (
        "algorithm.privacy.epsilon",
        {"task.dimension": 20, "algorithm.privacy.epsilon": [0.1, 0.3, 1, 3, 10]},
    ),
}
#: Beside the ways to hide; of every run, as they have nothing to do with noise.
REFERENCES = {"accuracy_solitary": "solitary models", "accuracy_optimum": "optimum, nothing hidden"}


def main() -> None:
    """Print the tables in Markdown, and draw the picture."""
    figure = Figure(figsize=(6.8, 3.6), layout="constrained")
    with rc_context(Look().style):
        for axis, (label, (key, grid)) in zip(
            figure.subplots(1, 2, sharey=True), SWEEPS.items(), strict=True
        ):
            runs = sweep(FILE, grid, figures=False).runs
            print(_table(runs, key))
            for name, values in _lines(runs, key).items():
                known = name in REFERENCES.values()
                looks = {"color": "0.4", "linestyle": "--" if "opt" in name else ":"}
                mean, low, high = mean_interval(values.to_numpy())
                axis.plot(values.columns, mean, label=name, **(looks if known else {"marker": "o"}))
                axis.fill_between(
                    values.columns, low, high, alpha=0.2, **({"color": "0.4"} if known else {})
                )
            axis.set(xscale="log", xlabel=label, xticks=values.columns)
            axis.set_xticklabels([f"{value:g}" for value in values.columns])
            axis.minorticks_off()
    figure.axes[0].set_ylabel("mean test accuracy")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(IMAGE, dpi=150)


def _lines(runs: pd.DataFrame, key: str) -> dict[str, pd.DataFrame]:
    """Accuracies of each world and reference: a row a seed, a column a value of the key."""
    lines = {
        str(world): here.pivot(index="seed", columns=key, values="accuracy")
        for world, here in runs.groupby("world", sort=False)
    }
    one = runs[runs["world"] == next(iter(lines))]
    for column, name in REFERENCES.items():
        lines[name] = one.pivot(index="seed", columns=key, values=column)
    return lines


def _table(runs: pd.DataFrame, key: str) -> str:
    """Means, half 95 % intervals; bold where it is above solitary models of the same seeds."""
    lines = _lines(runs, key)
    alone = lines[REFERENCES["accuracy_solitary"]]
    rows = [f"| {key.split('.')[-1]} | " + " | ".join(f"{value:g}" for value in alone) + " |"]
    rows.append("|---" * (alone.shape[1] + 1) + "|")
    for name, values in lines.items():
        mean, _, high = mean_interval(values.to_numpy())
        better = mean_interval((values - alone).to_numpy())[1] > 0
        cells = [
            f"{'**' * b}{m:.3f}{'**' * b} ± {h - m:.3f}"
            for m, h, b in zip(mean, high, better, strict=True)
        ]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
