"""What results depend on: the other values of choices.yaml, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.choices import Choices
from reproduction.classification import (
    METHODS,
    NAMES,
    by_instance,
    curve_runs,
    level_rows,
)
from reproduction.experiment import (
    ClosedForm,
    Experiment,
    Tables,
    in_parts,
    stored_table,
    trace,
    with_interval,
)
from reproduction.mean_estimation import BLOCK, ROUNDS, MeanCommunications, sides, wins
from reproduction.problems import moons, separators
from reproduction.scalability import scaling_runs, scaling_table
from reproduction.tuning import best_of, by_trade_off, tuning_tasks
from simulator.figures.run import BLUE, GREY, ORANGE
from simulator.sweeps.work import Run, Task


class OtherChoices(Experiment):
    """What would change with the other values of choices.yaml."""

    id = "choices"
    title = "How results depend on what the paper leaves open"
    size = (9.4, 9.6)

    #: Choices that the problem of section 5.2 depends on, and those that only matter on the way.
    problem = ("points", "test_flip", "min_weight", "ridge")
    way = ("rho", "start")

    def _variants(self, names: tuple[str, ...], block: str) -> Iterator[tuple[str, Any, Choices]]:
        """(choice, value, choices): first as chosen, then each other value."""
        yield "as chosen", "", self.choices
        for name in names:
            for value in self.choices.all[f"{block}.{name}"].others[: self.sizes.choice_others]:
                changed = self.choices.changed({f"{block}.{name}": value})
                yield f"{block}.{name}", value, changed

    # Two stages: trade-offs are chosen on held-out instances, then used on those reported.
    def stages(self) -> Iterator[list[Task]]:
        """All but the optimal models with the best trade-offs, then these."""
        parts = (self._mean_tasks, self._start_tasks, self._held_out, self._way_tasks)
        yield [
            task for part in (*parts, self._scale_tasks) for _, _, tasks in part() for task in tasks
        ]
        yield [task for _, _, tasks in self._problem_tasks() for task in tasks]

    def tasks(self) -> list[Task]:
        """All of both stages, of which the first must be done."""
        return [task for stage in self.stages() for task in stage]

    def tables(self) -> Tables:
        """Long form: choice, value, measure, mean and 95 % interval."""
        rows = [
            *self._mean_rows(),
            *self._start_rows(),
            *self._problem_rows(),
            *self._way_rows(),
            *self._scale_rows(),
        ]
        columns = ["choice", "value", "measure", "mean", "mean_low", "mean_high"]
        return {self.id: pd.DataFrame(rows)[columns]}

    # Section 5.1, closed forms.
    def _mean_tasks(self) -> Iterator[tuple[str, Any, list[ClosedForm]]]:
        seeds = range(self.sizes.choice_means)
        for name, value, changed in self._variants(
            ("noise", "alpha", "confidence", "without"), "mean_estimation"
        ):
            tasks = [
                task
                for width in (0.1, 1.0)
                for task in self.paper.closed_forms(
                    "mean-errors",
                    moons(changed, width),
                    seeds,
                    BLOCK,
                    alphas=(changed["mean_estimation.alpha"],),
                )
            ]
            yield name, value, tasks

    def _mean_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, tasks in self._mean_tasks():
            changed = self.choices if name == "as chosen" else self.choices.changed({name: value})
            with_c, without = sides(changed)
            for width, own in zip((0.1, 1.0), in_parts(tasks, 2), strict=True):
                table = stored_table(own)
                measures = {
                    f"error with confidence, ε = {width:g}": table[with_c],
                    f"error without confidence, ε = {width:g}": table[without],
                    f"win ratio, ε = {width:g}": wins(table[with_c], table[without]),
                }
                for measure, values in measures.items():
                    yield _row(name, value, measure, values)

    # Section 5.1, asynchronous runs: those of figure 2, right.
    def _start_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        yield "", "", MeanCommunications(self.paper).tasks()

    def _start_rows(self) -> Iterator[dict[str, Any]]:
        experiment = MeanCommunications(self.paper)
        rounds = experiment.tables()[f"{experiment.id}-rounds"]
        for start in experiment.starts:
            chosen = start == experiment.starts[0]
            name = ("as chosen", "") if chosen else ("mean_estimation.start", start)
            for k in ROUNDS:
                own = rounds[(rounds["start"] == start) & (rounds["round"] == k)]
                for _, row in own.iterrows():
                    found = {f"mean{end}": row[f"ratio{end}"] for end in ("", "_low", "_high")}
                    measure = f"async / sync error after {k} rounds"
                    yield {"choice": name[0], "value": name[1], "measure": measure, **found}

    # Section 5.2, optimal models; each variant has its own trade-offs, tuned on held-out instances.
    def _held_out(self) -> Iterator[tuple[str, Any, list[ClosedForm]]]:
        for name, value, changed in self._variants(self.problem, "linear_classification"):
            for p in self.sizes.choice_problems:
                yield name, value, self._candidates(changed, p)

    def _candidates(self, choices: Choices, p: int) -> list[ClosedForm]:
        """Every trade-off on the held-out instances."""
        seeds = self.paper.held_out(self.sizes.choice_problems[p][1])
        return tuning_tasks(self.paper, separators(choices, p), seeds, self.sizes.choice_reach)

    def _best(self, choices: Choices, p: int) -> dict[str, float]:
        """The trade-offs of both methods that are best on the held-out instances."""
        table = stored_table(self._candidates(choices, p))
        return {method: best_of(by_trade_off(table, method)) for method in ("mp", "cl")}

    def _problem_tasks(self) -> Iterator[tuple[str, Any, list[ClosedForm]]]:
        for name, value, changed in self._variants(self.problem, "linear_classification"):
            for p in self.sizes.choice_problems:
                yield name, value, self._reported(changed, p)

    def _reported(self, choices: Choices, p: int) -> list[ClosedForm]:
        """The best trade-offs on the instances that are reported."""
        best, seeds = self._best(choices, p), range(self.sizes.choice_problems[p][0])
        scenario, alphas, mus = separators(choices, p), (best["mp"],), (best["cl"],)
        return self.paper.closed_forms("accuracies", scenario, seeds, 1, alphas=alphas, mus=mus)

    def _problem_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, changed in self._variants(self.problem, "linear_classification"):
            for p in self.sizes.choice_problems:
                table = by_instance(stored_table(self._reported(changed, p)))
                yield from _accuracies(name, value, p, self._best(changed, p), table)

    # Section 5.2, the way to the optimum.
    def _way_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        instances = min(self.sizes.run_instances, self.sizes.choice_instances)
        for name, value, changed in self._variants(self.way, "linear_classification"):
            yield name, value, curve_runs(self.paper, changed, ("mp", "cl", "warm"), instances)

    def _way_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, runs in self._way_tasks():
            to: dict[str, np.ndarray] = {}
            for algo, own in zip(("mp", "cl", "warm"), in_parts(runs, 3), strict=True):
                levels = pd.DataFrame(level_rows(algo, own, [trace(run) for run in own]))
                text = {"mp": "MP", "cl": "ADMM", "warm": "ADMM from MP's optimum"}[algo]
                late = levels["to_99"].to_numpy()
                yield _row(name, value, f"communications of {text} to 99 %", late)
                to[algo] = levels["to_95"].to_numpy()
                yield _row(name, value, f"communications of {text} to 95 %", to[algo])
            yield _row(name, value, "communications to 95 %, ADMM / MP", to["cl"] / to["mp"])

    # Appendix E.
    def _scale_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        instances = min(3, self.sizes.choice_instances)
        few, many = self.sizes.agents[0], self.sizes.agents[max(1, len(self.sizes.agents) // 3)]
        for name, value, changed in self._variants(("k", "rho"), "scalability"):
            runs = [r for n in (few, many) for r in scaling_runs(self.paper, changed, n, instances)]
            yield name, value, runs

    def _scale_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, runs in self._scale_tasks():
            table = scaling_table(runs)
            for algo, text in (("mp", "MP"), ("cl", "ADMM")):
                for n in table["agents"].unique():
                    own = table[(table["algorithm"] == algo) & (table["agents"] == n)]
                    measure = f"communications per agent of {text} to 90 %, n = {n}"
                    yield _row(name, value, measure, own["communications"] / n)

    def draw(self, figure: Figure, tables: Tables) -> None:
        """A few measures of every variant, side by side."""
        table = tables[self.id]
        few, many = min(self.sizes.choice_problems), max(self.sizes.choice_problems)
        sizes = sorted({int(m.rsplit("= ")[1]) for m in table["measure"] if "per agent" in m})
        shown = (
            "win ratio, ε = 0.1",
            "win ratio, ε = 1",
            "async / sync error after 4 rounds",
            "communications to 95 %, ADMM / MP",
            f"accuracy of model propagation, p = {many}",
            f"accuracy of collaborative learning, p = {many}",
            f"CL minus MP, p = {few}",
            f"communications per agent of ADMM to 90 %, n = {sizes[-1]}",
        )
        axes = figure.subplots(4, 2).ravel()
        for axis, measure in zip(axes, shown, strict=True):
            own = table[table["measure"] == measure].reset_index(drop=True)
            places = np.arange(len(own))[::-1]
            spread = np.vstack([own["mean"] - own["mean_low"], own["mean_high"] - own["mean"]])
            axis.errorbar(own["mean"], places, xerr=spread, fmt="o", color=BLUE, markersize=4)
            axis.axvline(own["mean"][0], color=ORANGE, linestyle="--", linewidth=0.9)
            names = [_short(row) for row in own.itertuples()]
            axis.set_yticks(places, names, fontsize=7)
            axis.set_title(measure, fontsize=9)
            signed = measure.startswith("CL minus")
            if not signed and own["mean"].max() > 4 * own["mean"].min() > 0:
                axis.set_xscale("log")
                axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
                axis.xaxis.set_minor_formatter(NullFormatter())
            if signed:
                axis.axvline(0, color=GREY, linewidth=0.8)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        s = self.sizes
        problems = " and ".join(
            f"{reported} at p = {p} ({held_out} held-out ones)"
            for p, (reported, held_out) in s.choice_problems.items()
        )
        return (
            "One choice changed at a time; the dashed line is the result as chosen. Win ratios "
            f"over {s.choice_means} instances; accuracies over {problems}, on which trade-offs are "
            "tuned anew for each variant; the start of gossip on means over "
            f"{s.mean_runs} instances, other speeds over "
            f"{min(s.run_instances, s.choice_instances)}, and by k over "
            f"{min(3, s.choice_instances)}. Means (ratios of errors: geometric) and 95 % "
            "intervals; choices.csv has all measures."
        )


def _accuracies(
    name: str, value: Any, p: int, best: dict[str, float], table: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Accuracies of all methods, a column each, with the best trade-offs on held-out instances."""
    for method in METHODS:
        yield _row(name, value, f"accuracy of {NAMES[method]}, p = {p}", table[method])
    for method, symbol in (("mp", "α of MP"), ("cl", "μ of CL")):
        yield _row(name, value, f"tuned {symbol}, p = {p}", [best[method]])
    yield _row(name, value, f"CL minus MP, p = {p}", table["cl"] - table["mp"])


def _row(name: str, value: Any, measure: str, values: Any) -> dict[str, Any]:
    return {"choice": name, "value": value, "measure": measure, **with_interval("mean", values)}


def _short(row: Any) -> str:
    return row.choice if row.choice == "as chosen" else f"{row.choice.split('.')[1]}: {row.value}"
