"""What results depend on: tuned trade-offs, choices where the paper is silent, and the network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from simulator.comparison import comparison_request, pairs_table, speedup_table
from simulator.figures import BLUE, GREY, ORANGE
from simulator.paper.choices import Choices
from simulator.paper.classification import (
    NAMES,
    by_instance,
    curve_runs,
    level_rows,
    scaling_runs,
    scaling_table,
)
from simulator.paper.experiment import (
    LOOKS,
    ClosedForm,
    Experiment,
    Paper,
    Tables,
    stored_table,
    trace,
    with_interval,
)
from simulator.paper.mean_estimation import BLOCK, WITHOUT, MeanCommunications, wins
from simulator.paper.problems import moons, neighbours, separators
from simulator.scenario import Scenario
from simulator.scenario_problem import LinearClassification
from simulator.sweep_plan import Plan, make_plan
from simulator.sweep_tables import last_values, runs_table
from simulator.sweeps import requested
from simulator.work import Run, Task


def grid(paper: Paper, name: str, dimension: int = 1) -> list[float]:
    """The values of a choice that are considered, ascending: its own and others near it."""
    chosen = paper.choices.at(name, dimension)
    values = sorted({chosen, *paper.choices.all[name].others})
    at = values.index(chosen)
    return values[max(0, at - paper.sizes.grid_reach) : at + paper.sizes.grid_reach + 1]


def tuning_tasks(
    paper: Paper, scenario: Scenario, seeds: range, block: str = "linear_classification"
) -> list[ClosedForm]:
    """Every trade-off of the grid on the given instances."""
    assert isinstance(scenario.task, LinearClassification)
    p = scenario.task.dimension
    return paper.closed_forms(
        "accuracies",
        scenario,
        seeds,
        1,
        alphas=grid(paper, f"{block}.alpha", p),
        mus=grid(paper, f"{block}.mu", p),
    )


def by_trade_off(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """Mean accuracy over agents: a row an instance, a column a value of the trade-off."""
    own = table[table["method"] == method].assign(method=lambda rows: rows["trade_off"])
    return by_instance(own)


def _best_of(table: pd.DataFrame) -> float:
    """The column with the greatest mean."""
    return float(table.columns[int(np.argmax(table.mean().to_numpy()))])


# --- tuning -------------------------------------------------------------------------------------
class Tuning(Experiment):
    """α and μ on held-out instances."""

    id = "tuning"
    title = "Trade-offs on held-out instances"
    size = (9.4, 3.3)

    def _problems(self) -> dict[tuple[str, int], list[ClosedForm]]:
        held_out = self.paper.held_out(self.sizes.held_out)
        problems = {
            ("linear_classification", p): tuning_tasks(
                self.paper, separators(self.choices, p), held_out
            )
            for p in self.sizes.tuned_dimensions
        }
        scaled = neighbours(self.choices, 100)
        problems["scalability", 50] = tuning_tasks(self.paper, scaled, held_out, "scalability")
        return problems

    def _moons(self) -> list[ClosedForm]:
        return self.paper.closed_forms(
            "mean-errors",
            moons(self.choices),
            self.paper.held_out(self.sizes.choice_means),
            BLOCK,
            alphas=grid(self.paper, "mean_estimation.alpha"),
        )

    def tasks(self) -> list[ClosedForm]:
        """Every trade-off on every held-out instance."""
        every = [task for tasks in self._problems().values() for task in tasks]
        return [*every, *self._moons()]

    def tables(self) -> Tables:
        """Scores by trade-off, and which trade-off is best."""
        rows, best = [], []
        for (block, p), tasks in self._problems().items():
            table = stored_table(tasks)
            for method, name in (("mp", "alpha"), ("cl", "mu")):
                scores = by_trade_off(table, method)
                rows += self._scores(f"{block}.{name}", p, "accuracy", scores)
                best.append(self._best(f"{block}.{name}", p, scores))
        means = stored_table(self._moons())
        name = self.choices["mean_estimation.confidence"]
        errors = means.pivot_table(index="seed", columns="alpha", values=name)
        rows += self._scores("mean_estimation.alpha", 1, "l2_error", errors)
        best.append(self._best("mean_estimation.alpha", 1, -errors))
        return {self.id: pd.DataFrame(rows), f"{self.id}-best": pd.DataFrame(best)}

    def _scores(
        self, name: str, p: int, measure: str, scores: pd.DataFrame
    ) -> list[dict[str, Any]]:
        """Mean score of each value, over instances."""
        head = {"choice": name, "dimension": p, "instances": len(scores), "measure": measure}
        return [
            {**head, "value": value, **with_interval("score", scores[value])}
            for value in scores.columns
        ]

    def _best(self, name: str, p: int, scores: pd.DataFrame) -> dict[str, Any]:
        """The best value beside the chosen one, and what is lost by it, in pairs."""
        best, chosen = _best_of(scores), self.choices.at(name, p)
        row: dict[str, Any] = {"choice": name, "dimension": p, "chosen": chosen, "best": best}
        return row | with_interval("lost", scores[best] - scores[chosen])

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Accuracy against α and against μ, a line a dimension."""
        table = tables[self.id]
        axes = figure.subplots(1, 3)
        names = ("linear_classification.alpha", "linear_classification.mu", "mean_estimation.alpha")
        labels = ("MP: μ = (1 − α)/α", "CL: μ", "MP on moons: μ = (1 − α)/α")
        styles = ["-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2))]
        for axis, name, text in zip(axes, names, labels, strict=True):
            same = (name, name.replace("linear_classification", "scalability"))
            own = table[table["choice"].isin(same)]
            pairs = own[["choice", "dimension"]].drop_duplicates().itertuples(index=False)
            for k, (choice, p) in enumerate(pairs):
                curve = own[(own["choice"] == choice) & (own["dimension"] == p)]
                value = curve["value"]
                mu = value if name.endswith("mu") else (1 - value) / value
                colour = BLUE if choice == name else GREY
                style = {"color": colour, "linestyle": styles[k % len(styles)], "linewidth": 1.1}
                text_of = f"p = {p}" if choice == name else f"p = {p}, nearest neighbours"
                axis.plot(mu, curve["score"], label=text_of, **style)
                at = (value == self.choices.at(choice, p)).to_numpy()
                axis.plot(mu[at], curve["score"][at], "o", color=ORANGE, markersize=4)
            axis.set_xscale("log")
            axis.set_xlabel(text)
        axes[0].set_ylabel("held-out accuracy")
        axes[1].set_ylabel("held-out accuracy")
        axes[2].set_ylabel("held-out L2 error")
        handles, labels_of = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels_of, loc="outside right center", fontsize=7)

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        best = tables[f"{self.id}-best"]
        tuned = best[best["choice"] != "mean_estimation.alpha"]
        agree = "are" if (tuned["best"] == tuned["chosen"]).all() else "are NOT all"
        return (
            f"Trade-offs on {self.sizes.held_out} held-out instances for each dimension (moons: "
            f"{self.sizes.choice_means} with ε = 1), seeds from {self.choices['held_out.seed']}, "
            "which no other experiment uses. Dots: the values of choices.yaml. Those marked "
            f"tuned {agree} the best of the grid; the α of the moons is the paper's."
        )


# --- other choices ------------------------------------------------------------------------------
class OtherChoices(Experiment):
    """What would change with the other values of choices.yaml."""

    id = "choices"
    title = "How results depend on what the paper leaves open"
    size = (9.4, 7.2)

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

    def tasks(self) -> list[Task]:
        """Every variant's."""
        parts = (self._mean_tasks, self._start_tasks, self._problem_tasks, self._way_tasks)
        return [
            task for part in (*parts, self._scale_tasks) for _, _, tasks in part() for task in tasks
        ]

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
            with_c = changed["mean_estimation.confidence"]
            without = WITHOUT[with_c, changed["mean_estimation.without"]]
            half = len(tasks) // 2
            for width, own in ((0.1, tasks[:half]), (1.0, tasks[half:])):
                table = stored_table(own)
                measures = {
                    f"error with confidence, ε = {width:g}": table[with_c],
                    f"error without confidence, ε = {width:g}": table[without],
                    f"win ratio, ε = {width:g}": wins(table[with_c], table[without]),
                }
                for measure, values in measures.items():
                    yield _row(name, value, measure, values)

    # Section 5.1, asynchronous runs.
    def _start_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        for name, value, changed in self._variants(("start",), "mean_estimation"):
            experiment = MeanCommunications(Paper(changed, self.sizes, self.paper.store))
            yield name, value, experiment.tasks()[: 1 + self.sizes.choice_instances]

    def _start_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, runs in self._start_tasks():
            synchronous, *asynchronous = [trace(run) for run in runs]
            ends = synchronous["communications"].drop_duplicates(keep="last").to_numpy()
            for k in (2, 4, 8):
                at = ends[k : k + 1]
                sync = last_values(synchronous, "communications", at, ["l2_error"])[0, 0]
                errors = [
                    last_values(t, "communications", at, ["l2_error"])[0, 0] for t in asynchronous
                ]
                measure = f"async / sync error after {k} rounds"
                yield _row(name, value, measure, np.array(errors) / sync)

    # Section 5.2, optimal models; each variant has its own trade-offs, tuned on held-out instances.
    def _problem_tasks(self) -> Iterator[tuple[str, Any, list[ClosedForm]]]:
        held_out = self.paper.held_out(self.sizes.choice_held_out)
        reported = range(self.sizes.choice_instances)
        for name, value, changed in self._variants(self.problem, "linear_classification"):
            scenario = separators(changed)
            tuned = tuning_tasks(self.paper, scenario, held_out)
            yield name, value, [*tuned, *tuning_tasks(self.paper, scenario, reported)]

    def _problem_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, tasks in self._problem_tasks():
            held_out = stored_table(tasks[: self.sizes.choice_held_out])
            table = stored_table(tasks[self.sizes.choice_held_out :])
            for method in ("solitary", "consensus"):
                own = by_instance(table[table["method"] == method])[method]
                yield _row(name, value, f"accuracy of {NAMES[method]}", own)
            chosen = {}
            for method in ("mp", "cl"):
                best = _best_of(by_trade_off(held_out, method))
                chosen[method] = by_trade_off(table, method)[best]
                yield _row(name, value, f"accuracy of {NAMES[method]}", chosen[method])
                symbol = "α of MP" if method == "mp" else "μ of CL"
                yield _row(name, value, f"tuned {symbol}", [best])
            difference = chosen["cl"] - chosen["mp"]
            yield _row(name, value, "CL minus MP", difference)

    # Section 5.2, the way to the optimum.
    def _way_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        instances = min(self.sizes.run_instances, self.sizes.choice_instances)
        for name, value, changed in self._variants(self.way, "linear_classification"):
            yield name, value, curve_runs(self.paper, changed, ("mp", "cl", "warm"), instances)

    def _way_rows(self) -> Iterator[dict[str, Any]]:
        for name, value, runs in self._way_tasks():
            each = len(runs) // 3
            to: dict[str, np.ndarray] = {}
            for k, algo in enumerate(("mp", "cl", "warm")):
                own = runs[k * each : (k + 1) * each]
                levels = pd.DataFrame(level_rows(algo, own, [trace(run) for run in own]))
                to[algo] = levels["to_95"].to_numpy()
                text = {"mp": "MP", "cl": "ADMM", "warm": "ADMM from MP's optimum"}[algo]
                yield _row(name, value, f"communications of {text} to 95 %", to[algo])
            yield _row(name, value, "communications to 95 %, ADMM / MP", to["cl"] / to["mp"])

    # Appendix E.
    def _scale_tasks(self) -> Iterator[tuple[str, Any, list[Run]]]:
        instances = min(3, self.sizes.scale_instances)
        few, many = self.sizes.agents[0], self.sizes.agents[len(self.sizes.agents) // 2]
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
        shown = (
            "win ratio, ε = 0.1",
            "win ratio, ε = 1",
            "async / sync error after 4 rounds",
            "accuracy of model propagation",
            "accuracy of collaborative learning",
            "communications to 95 %, ADMM / MP",
        )
        axes = figure.subplots(3, 2).ravel()
        for axis, measure in zip(axes, shown, strict=True):
            own = table[table["measure"] == measure].reset_index(drop=True)
            places = np.arange(len(own))[::-1]
            spread = np.vstack([own["mean"] - own["mean_low"], own["mean_high"] - own["mean"]])
            axis.errorbar(own["mean"], places, xerr=spread, fmt="o", color=BLUE, markersize=4)
            axis.axvline(own["mean"][0], color=ORANGE, linestyle="--", linewidth=0.9)
            names = [_short(row) for row in own.itertuples()]
            axis.set_yticks(places, names, fontsize=7)
            axis.set_title(measure, fontsize=9)
            if own["mean"].max() > 4 * own["mean"].min() > 0:
                axis.set_xscale("log")

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        s = self.sizes
        return (
            "One choice changed at a time; the dashed line is the result as chosen. Win ratios "
            f"over {s.choice_means} instances; accuracies over {s.choice_instances} (p = 50), with "
            f"trade-offs tuned anew for each variant on {s.choice_held_out} held-out instances; "
            f"speeds over {min(s.run_instances, s.choice_instances)} instances. Means and 95 % "
            "intervals; choices.csv has all measures."
        )


def _row(name: str, value: Any, measure: str, values: Any) -> dict[str, Any]:
    return {"choice": name, "value": value, "measure": measure, **with_interval("mean", values)}


def _short(row: Any) -> str:
    return row.choice if row.choice == "as chosen" else f"{row.choice.split('.')[1]}: {row.value}"


# --- beyond the paper ---------------------------------------------------------------------------
class Beyond(Experiment):
    """Asynchronous against synchronous in time, over latency tail, loss and clock rate."""

    id = "beyond"
    title = "Beyond the paper: time to target, asynchronous against synchronous"
    size = (9.4, 6.0)
    #: Sweep files beside choices.yaml, by what they run.
    files: ClassVar = {"mp": "beyond.yaml", "admm": "beyond_admm.yaml"}

    @cached_property
    def _plans(self) -> dict[str, tuple[Plan, tuple[str, list[Any]]]]:
        """The runs of each file, and what is compared in it."""
        plans = {}
        for name, file in self.files.items():
            settings = (self.sizes.beyond_grid or {}).items()
            path, seeds = self.choices.file.parent / file, self.sizes.beyond_seeds
            request = comparison_request(requested(path, settings, seeds=seeds))
            assert request.vary is not None
            plans[name] = (make_plan(request), request.vary)
        return plans

    def tasks(self) -> list[Run]:
        """Both sides of every pair."""
        return [run for plan, _ in self._plans.values() for run in self._runs(plan)]

    def _runs(self, plan: Plan) -> list[Run]:
        return self.paper.runs(run.scenario for run in plan.runs)

    def tables(self) -> Tables:
        """Speed-ups by combination, and all pairs."""
        summed: list[pd.DataFrame] = []
        single: list[pd.DataFrame] = []
        for name, (plan, vary) in self._plans.items():
            folders = [run.place for run in self._runs(plan)]
            pairs = pairs_table(plan, runs_table(plan, self.paper.store, folders, {}), vary)
            keys = [key for key in plan.axes if key != vary[0]]
            for tables, table in ((summed, speedup_table(pairs, keys)), (single, pairs)):
                table.insert(0, "algorithm", name)
                tables.append(table)
        return {self.id: pd.concat(summed), f"{self.id}-pairs": pd.concat(single)}

    def draw(self, figure: Figure, tables: Tables) -> None:
        """Speed-up against the tail, a line a clock rate, a panel a loss rate and algorithm."""
        table = tables[self.id]
        drops = sorted(table["network.drop"].unique())
        grid = figure.subplots(len(self.files), len(drops), sharex=True, sharey=True, squeeze=False)
        titles = {"mp": "model propagation", "admm": "collaborative learning (ADMM)"}
        for axes, name in zip(grid, self.files, strict=True):
            for axis, drop in zip(axes, drops, strict=True):
                own = table[(table["algorithm"] == name) & (table["network.drop"] == drop)]
                self._panel(axis, own)
                axis.set_title(f"{titles[name]}, {100 * drop:g} % lost", fontsize=9)
            axes[0].set_ylabel("time of synchronous /\ntime of asynchronous")
        for axis in grid[-1]:
            axis.set_xlabel("tail of the delays, σ")
        grid[0, 0].legend(fontsize=8)

    def _panel(self, axis: Any, table: pd.DataFrame) -> None:
        axis.axhline(1, color=GREY, linewidth=1)
        looks = [LOOKS[name] for name in ("mp", "sync", "cl", "warm", "solitary")]
        for (rate, curve), look in zip(table.groupby("clock.rate"), looks, strict=False):
            mean = curve["speedup"]
            spread = np.vstack([mean - curve["low"], curve["high"] - mean])
            text = f"{rate:g} tick{'' if rate == 1 else 's'} a second"
            x = curve["network.latency.sigma"]
            axis.errorbar(x, mean, spread, markersize=4, capsize=2, label=text, **look)
        axis.set_yscale("log")

    def caption(self, tables: Tables) -> str:
        """What one sees."""
        table = tables[self.id]
        bounds = int((table["bound"] != "=").sum())
        censored = f"; {bounds} of {len(table)} points are bounds" if bounds else ""
        return (
            "Simulated time that synchronous rounds need to come within 1 % of the initial "
            "distance to the optimum, over the time of asynchronous gossip on the same problems "
            "and networks; above 1 gossip is faster. Model propagation on two moons (300 agents, "
            "10 nearest neighbours) and ADMM on linear classification (100 agents, p = 50). "
            "Delays are lognormal with mean 100 ms; a lost message is sent again after a second "
            "in rounds, and not at all in gossip. Geometric mean and 95 % interval over "
            f"{self.sizes.beyond_seeds} seeds{censored}."
        )
