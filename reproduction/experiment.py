"""What an experiment of the paper is: work to do, tables made of it, a figure and its caption."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.closed_forms import FUNCTIONS
from reproduction.sizes import Sizes
from reproduction.texts import filled, sections
from simulator.errors import MissingError
from simulator.figures.style import BLUE, GREEN, GREY, ORANGE
from simulator.runs.plugins import schema_for
from simulator.scenario.files import dump_scenario
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import read_yaml
from simulator.store.store import RESULTS_VERSION, TRACE, Store
from simulator.store.whole_files import hash_of, replacing_file
from simulator.sweeps.jobs import Done, Failed, Outcome, reason_for
from simulator.sweeps.tables import mean_interval
from simulator.sweeps.work import Run, Task

#: How each method looks in every figure: colour, line, marker; apart also in black and white.
LOOKS: dict[str, dict[str, Any]] = {
    "solitary": {"color": GREY, "linestyle": ":", "marker": "v"},
    "consensus": {"color": "#999999", "linestyle": (0, (1, 1, 4, 1)), "marker": "x"},
    "mp": {"color": ORANGE, "linestyle": "--", "marker": "s"},
    "cl": {"color": BLUE, "linestyle": "-", "marker": "o"},
    "sync": {"color": GREEN, "linestyle": (0, (5, 1, 1, 1)), "marker": "^"},
    "warm": {"color": "#8E6BBF", "linestyle": (0, (1, 1)), "marker": "D"},
}


@dataclass(frozen=True)
class ClosedForm:
    """A table of optimal models of some instances: a task that is its own job, kept as JSON."""

    function: str
    #: As YAML: its class is made to measure and can't travel to a worker.
    scenario: str
    seeds: tuple[int, ...]
    arguments: tuple[tuple[str, tuple[float, ...]], ...]
    folder: Path

    @cached_property
    def key(self) -> str:
        """The name of its file: a hash of all that its numbers depend on."""
        content = [RESULTS_VERSION, self.function, self.scenario, self.seeds, self.arguments]
        return f"{self.function}-{hash_of(content)[:16]}.json"

    @property
    def place(self) -> Path:
        """The table's file."""
        return self.folder / self.key

    def check(self) -> None:
        """Raise unless it is there; it was moved into place as a whole."""
        if not self.place.is_file():
            raise MissingError(f"{self.place}: no such file")

    def job(self) -> ClosedForm:
        """What a worker needs."""
        return self

    def execute(self) -> Outcome:
        """Compute it, on one thread: with more, sums have other last bits."""
        started = time.perf_counter()
        try:
            scenario = schema_for().model_validate(read_yaml(self.scenario).value)
            with threadpool_limits(limits=1, user_api="blas"):
                table = FUNCTIONS[self.function](scenario, self.seeds, **dict(self.arguments))
        except Exception as error:
            return Failed(reason_for(error))
        return Done(table, time.perf_counter() - started)

    def save(self, outcome: Done, force: bool = False) -> None:
        """Write it; a file takes the place of another in one step, so it may always."""
        with replacing_file(self.place) as draft:
            draft.write_text(json.dumps(outcome.result.to_dict("list")), encoding="utf-8")

    def table(self) -> pd.DataFrame:
        """As it was computed, every number exactly."""
        return pd.DataFrame(json.loads(self.place.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Paper:
    """What all experiments share: the choices, the sizes, the store, and how to work."""

    choices: Choices
    sizes: Sizes
    store: Store
    jobs: int | None = None
    force: bool = False
    progress: bool = False

    def closed_forms(
        self, function: str, scenario: Scenario, seeds: Iterable[int], block: int, **arguments: Any
    ) -> list[ClosedForm]:
        """Tables of so many instances, in blocks that workers share among them."""
        every, text = list(seeds), dump_scenario(scenario)
        given = tuple((name, tuple(values)) for name, values in arguments.items())
        folder = self.store.root / "closed-forms"
        return [
            ClosedForm(function, text, tuple(every[k : k + block]), given, folder)
            for k in range(0, len(every), block)
        ]

    def runs(self, scenarios: Iterable[Scenario], reads: tuple[str, ...] = (TRACE,)) -> list[Run]:
        """Simulations, kept as ordinary results; ``reads``: the files that will be read."""
        return [Run(scenario, self.store, reads=reads) for scenario in scenarios]

    def held_out(self, count: int) -> range:
        """Seeds of instances that are never reported."""
        first = self.choices["held_out.seed"]
        return range(first, first + count)


Tables = dict[str, pd.DataFrame]
#: What has to be computed, by case.
Groups = Mapping[Any, Sequence[Task]]
#: Titles and captions, by the experiment's name.
CAPTIONS = {
    heading.split(": ")[0]: (heading.split(": ", 1)[1], text)
    for heading, text in sections("captions.md").items()
}


class Experiment(ABC):
    """One figure or table of the reproduction; ``captions.md`` has its title and its caption."""

    #: As the command line calls it, and the figure's size in inches.
    id: ClassVar[str]
    size: ClassVar[tuple[float, float]]

    def __init__(self, paper: Paper):
        self.paper, self.choices, self.sizes = paper, paper.choices, paper.sizes

    def groups(self) -> Groups:
        """What has to be computed; the tables are made of the same."""
        return {}

    def stages(self) -> Iterator[Groups]:
        """The same in parts, each asked for when those before it are done."""
        yield self.groups()

    @abstractmethod
    def tables(self) -> Tables:
        """CSV files by name, made of what was computed; the first one is behind the figure."""

    @abstractmethod
    def draw(self, figure: Figure, tables: Tables) -> None:
        """The figure."""

    def words(self, tables: Tables) -> dict[str, Any]:
        """What the caption says besides choices, sizes and the first table."""
        return {}

    def caption(self, tables: Tables) -> str:
        """What one sees, with the sizes used."""
        table = tables[self.id]
        known = {"choices": self.choices, "sizes": self.sizes, "table": table, "rows": len(table)}
        return filled(CAPTIONS[self.id][1], known | self.words(tables))


# --- what experiments have in common -------------------------------------------------------------
def stored_table(tasks: Iterable[Any]) -> pd.DataFrame:
    """The tables of finished closed forms, one below the other."""
    return pd.concat([task.table() for task in tasks], ignore_index=True)


def summary(run: Any) -> dict[str, Any]:
    """The final figures of a finished run."""
    found: dict[str, Any] = run.store.manifest(run.place)["summary"]
    return found


def trace(run: Any) -> pd.DataFrame:
    """The samples of a finished run."""
    found: pd.DataFrame = run.store.trace(run.place)
    return found


def _named(name: Any, found: Iterable[Any]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(float, found), strict=True))


def with_interval(name: Any, values: Any) -> dict[str, float]:
    """Mean and 95 % interval of a column, under three names."""
    return _named(name, mean_interval(values))


def intervals(table: pd.DataFrame) -> dict[str, float]:
    """The same of all columns of a table."""
    return {key: value for name in table for key, value in with_interval(name, table[name]).items()}


def curve(name: str, values: Any, *, logs: bool = False, **columns: Any) -> pd.DataFrame:
    """Means (of logarithms: geometric) and intervals of several curves, a row a point."""
    stack = np.stack(values)
    found: Any = mean_interval(np.log(stack) if logs else stack)
    mean, low, high = np.exp(found) if logs else found
    return pd.DataFrame({**columns, name: mean, f"{name}_low": low, f"{name}_high": high})


def geometric(name: str, values: Any) -> dict[str, float]:
    """Geometric mean of positive numbers and its 95 % interval, under three names."""
    with np.errstate(invalid="ignore"):
        return _named(name, np.exp(mean_interval(np.log(values))))


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


def reached(
    samples: pd.DataFrame,
    metric: str,
    level: float,
    for_good: bool = False,
    axis: str = "communications",
) -> float:
    """Communications (or time) at the first sample whose metric is at least the level, or NaN.

    ``for_good``: the first from which on all samples are.
    """
    there = (samples[metric] >= level).to_numpy()
    if for_good:
        there = np.logical_and.accumulate(there[::-1])[::-1]
    return float(samples[axis].iloc[there.argmax()]) if there.any() else float("nan")
