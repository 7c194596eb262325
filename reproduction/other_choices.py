"""What results depend on: the other values of choices.yaml, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from reproduction.choices import Choices
from reproduction.classification import METHODS, NAMES, by_instance, curve_runs, level_rows
from reproduction.experiment import ClosedForm, Experiment, Groups, Tables
from reproduction.mean_estimation import BLOCK, ROUNDS, MeanCommunications, sides, wins
from reproduction.measuring import stored_table, trace, with_interval
from reproduction.problems import moons, separators
from reproduction.scalability import scaling_runs, scaling_table
from reproduction.tuning import best_of, by_trade_off, tuning_tasks
from simulator.figures.style import BLUE, GREY, ORANGE
from simulator.sweeps.work import Run

#: A choice and a value of it; first of all none: as chosen.
Variant = tuple[str, Any]
AS_CHOSEN: Variant = ("as chosen", "")
#: Methods in the names of measures.
CURVES = {"mp": "MP", "cl": "ADMM", "warm": "ADMM from MP's optimum"}


class OtherChoices(Experiment):
    """What would change with the other values of choices.yaml."""

    id = "choices"
    size = (9.4, 9.6)

    def _variants(self, block: str, *names: str) -> list[Variant]:
        """As chosen, then each other value of each of the choices."""
        most = self.sizes.choice_others
        every = [f"{block}.{name}" for name in names]
        others = [(name, value) for name in every for value in self.choices.all[name].others[:most]]
        return [AS_CHOSEN, *others]

    def _with(self, variant: Variant) -> Choices:
        return self.choices if variant == AS_CHOSEN else self.choices.changed(dict([variant]))

    # Two stages: trade-offs are chosen on held-out instances, then used on those reported.
    def stages(self) -> Iterator[Groups]:
        """All but the optimal models with the best trade-offs, then these."""
        ways = [run for groups in self._ways().values() for own in groups.values() for run in own]
        starts = [run for own in MeanCommunications(self.paper).groups().values() for run in own]
        held_out = {("held out", *key): self._candidates(*key) for key in self._problems()}
        yield {**self._means(), **held_out, **self._scales(), "ways": ways, "starts": starts}
        yield {key: self._reported(*key) for key in self._problems()}

    def tables(self) -> Tables:
        """Long form: choice, value, measure, mean and 95 % interval."""
        parts = (self._mean_rows, self._start_rows, self._problem_rows, self._way_rows)
        rows = [row for part in (*parts, self._scale_rows) for row in part()]
        columns = ["choice", "value", "measure", "mean", "mean_low", "mean_high"]
        return {self.id: pd.DataFrame(rows)[columns]}

    # Section 5.1, closed forms.
    def _means(self) -> dict[tuple[Variant, float], list[ClosedForm]]:
        seeds = range(self.sizes.choice_means)

        def tasks(choices: Choices, width: float) -> list[ClosedForm]:
            alphas = (choices["mean_estimation.alpha"],)
            problem = moons(choices, width)
            return self.paper.closed_forms("mean-errors", problem, seeds, BLOCK, alphas=alphas)

        names = ("noise", "alpha", "confidence", "without")
        return {
            (variant, width): tasks(self._with(variant), width)
            for variant in self._variants("mean_estimation", *names)
            for width in (0.1, 1.0)
        }

    def _mean_rows(self) -> Iterator[dict[str, Any]]:
        for (variant, width), tasks in self._means().items():
            with_c, without = sides(self._with(variant))
            table, at = stored_table(tasks), f"ε = {width:g}"
            yield _row(variant, f"error with confidence, {at}", table[with_c])
            yield _row(variant, f"error without confidence, {at}", table[without])
            yield _row(variant, f"win ratio, {at}", wins(table[with_c], table[without]))

    # Section 5.1, asynchronous runs: those of figure 2, right.
    def _start_rows(self) -> Iterator[dict[str, Any]]:
        experiment = MeanCommunications(self.paper)
        rounds = experiment.tables()[f"{experiment.id}-rounds"]
        for start, own in rounds[rounds["round"].isin(ROUNDS)].groupby("start", sort=False):
            chosen = start == experiment.starts[0]
            choice, value = AS_CHOSEN if chosen else ("mean_estimation.start", start)
            for _, row in own.iterrows():
                measure = f"async / sync error after {row['round']} rounds"
                found = {f"mean{end}": row[f"ratio{end}"] for end in ("", "_low", "_high")}
                yield {"choice": choice, "value": value, "measure": measure, **found}

    # Section 5.2, optimal models; each variant has its own trade-offs, tuned on held-out instances.
    def _problems(self) -> list[tuple[Variant, int]]:
        names = ("points", "test_flip", "min_weight", "ridge")
        variants = self._variants("linear_classification", *names)
        return [(variant, p) for variant in variants for p in self.sizes.choice_problems]

    def _candidates(self, variant: Variant, p: int) -> list[ClosedForm]:
        """Every trade-off on the held-out instances."""
        seeds = self.paper.held_out(self.sizes.choice_problems[p][1])
        problem = separators(self._with(variant), p)
        return tuning_tasks(self.paper, problem, seeds, self.sizes.choice_reach)

    def _best(self, variant: Variant, p: int) -> dict[str, float]:
        """The trade-offs of both methods that are best on the held-out instances."""
        table = stored_table(self._candidates(variant, p))
        return {method: best_of(by_trade_off(table, method)) for method in ("mp", "cl")}

    def _reported(self, variant: Variant, p: int) -> list[ClosedForm]:
        """The best trade-offs on the instances that are reported."""
        best, seeds = self._best(variant, p), range(self.sizes.choice_problems[p][0])
        problem, alphas, mus = separators(self._with(variant), p), (best["mp"],), (best["cl"],)
        return self.paper.closed_forms("accuracies", problem, seeds, 1, alphas=alphas, mus=mus)

    def _problem_rows(self) -> Iterator[dict[str, Any]]:
        for variant, p in self._problems():
            table = by_instance(stored_table(self._reported(variant, p)))
            best = self._best(variant, p)
            for method in METHODS:
                yield _row(variant, f"accuracy of {NAMES[method]}, p = {p}", table[method])
            yield _row(variant, f"tuned α of MP, p = {p}", [best["mp"]])
            yield _row(variant, f"tuned μ of CL, p = {p}", [best["cl"]])
            yield _row(variant, f"CL minus MP, p = {p}", table["cl"] - table["mp"])

    # Section 5.2, the way to the optimum.
    def _ways(self) -> dict[Variant, dict[str, list[Run]]]:
        instances = min(self.sizes.run_instances, self.sizes.choice_instances)
        return {
            variant: curve_runs(self.paper, self._with(variant), CURVES, instances)
            for variant in self._variants("linear_classification", "rho", "start")
        }

    def _way_rows(self) -> Iterator[dict[str, Any]]:
        for variant, groups in self._ways().items():
            to: dict[str, np.ndarray] = {}
            for algo, own in groups.items():
                levels = pd.DataFrame(level_rows(algo, own, [trace(run) for run in own]))
                to[algo] = levels["to_95"].to_numpy()
                text = f"communications of {CURVES[algo]} to"
                yield _row(variant, f"{text} 99 %", levels["to_99"])
                yield _row(variant, f"{text} 95 %", to[algo])
            yield _row(variant, "communications to 95 %, ADMM / MP", to["cl"] / to["mp"])

    # Appendix E.
    def _scales(self) -> dict[Variant, list[Run]]:
        instances = min(3, self.sizes.choice_instances)
        few, many = self.sizes.agents[0], self.sizes.agents[max(1, len(self.sizes.agents) // 3)]
        return {
            variant: [
                run
                for n in (few, many)
                for run in scaling_runs(self.paper, self._with(variant), n, instances)
            ]
            for variant in self._variants("scalability", "k", "rho")
        }

    def _scale_rows(self) -> Iterator[dict[str, Any]]:
        for variant, runs in self._scales().items():
            table = scaling_table(runs)
            for algo in ("mp", "cl"):
                for n, own in table[table["algorithm"] == algo].groupby("agents"):
                    measure = f"communications per agent of {CURVES[algo]} to 90 %, n = {n}"
                    yield _row(variant, measure, own["communications"] / own["agents"])

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

    def words(self, tables: Tables) -> dict[str, Any]:
        """How many instances there are of each kind."""
        s = self.sizes
        problems = (
            f"{reported} at p = {p} ({held_out} held-out ones)"
            for p, (reported, held_out) in s.choice_problems.items()
        )
        speeds, scales = min(s.run_instances, s.choice_instances), min(3, s.choice_instances)
        return {"problems": " and ".join(problems), "speeds": speeds, "scales": scales}


def _row(variant: Variant, measure: str, values: Any) -> dict[str, Any]:
    found = with_interval("mean", values)
    return {"choice": variant[0], "value": variant[1], "measure": measure, **found}


def _short(row: Any) -> str:
    return row.choice if row.choice == "as chosen" else f"{row.choice.split('.')[1]}: {row.value}"
