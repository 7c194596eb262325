"""Theorem 1: the limit of the expected models."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproduction.experiment import (
    LOOKS,
    Experiment,
    Tables,
    in_parts,
    summary,
    with_interval,
)
from reproduction.problems import moons
from simulator.store.store import MODELS
from simulator.sweeps.work import Run


class TheoremOne(Experiment):
    """The mean of many runs from an arbitrary start tends to the closed form."""

    id = "theorem1"
    title = "Theorem 1: the mean of many runs from one arbitrary start tends to the closed form"
    size = (5.0, 3.6)
    #: Footnote 1: the analysis extends to clocks of different rates.
    clocks: ClassVar = {
        "equal": 1.0,
        "unequal": {"kind": "lognormal", "mean": 1.0, "sigma": 1.0},
    }

    def tasks(self) -> list[Run]:
        """Runs of each length; all start from the same random models and copies."""
        scenarios = (
            moons(
                self.choices,
                agents=30,
                name=self.id,
                seed=seed,
                problem_seed=0,
                algorithm={
                    "kind": "mp",
                    "alpha": self.choices["mean_estimation.alpha"],
                    "start": {"kind": "normal", "scale": 10},
                },
                clock={"rate": rate},
                stop={"communications": length},
                record={"every_communications": length},
            )
            for rate in self.clocks.values()
            for length in self.sizes.theorem_communications
            for seed in range(self.sizes.theorem_runs)
        )
        return self.paper.runs(scenarios, reads=(MODELS,))

    def tables(self) -> Tables:
        """Squared distance to Θ*: of the mean of the runs, and of a single run."""
        lengths = self.sizes.theorem_communications
        parts = in_parts(self.tasks(), len(self.clocks) * len(lengths))
        rows = []
        cases = [(clocks, length) for clocks in self.clocks for length in lengths]
        for (clocks, length), own in zip(cases, parts, strict=True):
            arrays = [run.store.arrays(run.place) for run in own]
            models, optimum = np.stack([found["models"] for found in arrays]), arrays[0]["optimum"]
            start = summary(own[0])["metrics"]["start"]["distance"]
            row: dict[str, Any] = {"clocks": clocks, "communications": length, "runs": len(own)}
            row["start"] = start
            row["mean_of_runs"] = float(np.mean((models.mean(axis=0) - optimum) ** 2))
            # What the mean of so many runs would be off by if its expectation were Θ*.
            row["noise"] = float(np.mean(models.var(axis=0, ddof=1)) / len(own))
            row |= with_interval("single_run", np.mean((models - optimum) ** 2, axis=(1, 2)))
            rows.append(row)
        return {self.id: pd.DataFrame(rows)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Both distances, relative to that of the start."""
        axis = figure.subplots()
        looks = {
            ("equal", "single_run"): ("mp", "a single run, in the mean"),
            ("equal", "mean_of_runs"): ("cl", "the mean of all runs"),
            ("unequal", "single_run"): ("warm", "a single run, unequal clocks"),
            ("unequal", "mean_of_runs"): ("sync", "the mean of all, unequal clocks"),
        }
        for (clocks, name), (look, text) in looks.items():
            own = tables[self.id][tables[self.id]["clocks"] == clocks]
            x = own["communications"] / 1000
            axis.plot(x, own[name] / own["start"], label=text, markersize=4, **LOOKS[look])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(x, [f"{value:g}" for value in x])
        axis.minorticks_off()
        axis.set_xlabel("communications (thousands)")
        axis.set_ylabel("squared distance to Θ*, start = 1")
        figure.legend(loc="outside upper center", ncols=2, fontsize=8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        return (
            f"Theorem 1: {table['runs'][0]} asynchronous runs of each length on one instance of 30 "
            "agents (seed 0), all from the same arbitrary start, every model and every copy "
            f"N(0, 10²), α = {self.choices['mean_estimation.alpha']:g}. Squared distance to the "
            "closed form Θ* of the runs' mean, and of single runs, relative to the start's; with "
            "clocks of one rate, and (footnote 1) of rates that are lognormal with σ = 1, drawn "
            "anew in every run."
        )
