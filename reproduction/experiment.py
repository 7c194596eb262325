"""What an experiment of the paper is: work to do, tables made of it, a figure and its caption."""

from __future__ import annotations

import io
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.closed_forms import FUNCTIONS
from reproduction.sizes import Sizes
from simulator.figures.run import BLUE, GREEN, GREY, ORANGE
from simulator.runs.plugins import schema_for
from simulator.scenario.files import dump_scenario, scenario_hash_payload
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import read_yaml
from simulator.store.checked import hash_of, read_checked, write_checked
from simulator.store.store import RESULTS_VERSION, TRACE, Store
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
class ClosedFormJob:
    """What a worker needs for a table of optimal models."""

    function: str
    scenario: str
    seeds: tuple[int, ...]
    arguments: tuple[tuple[str, tuple[float, ...]], ...]

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


@dataclass(frozen=True)
class ClosedForm:
    """A table of optimal models of some instances: a task, kept as a CSV file of its own."""

    function: str
    scenario: Scenario
    seeds: tuple[int, ...]
    arguments: tuple[tuple[str, tuple[float, ...]], ...]
    root: Path

    @cached_property
    def full_hash(self) -> str:
        """The hash of all that its numbers depend on."""
        content = [
            RESULTS_VERSION,
            self.function,
            scenario_hash_payload(self.scenario, {}),
            self.seeds,
            self.arguments,
        ]
        return hash_of(content)

    @property
    def key(self) -> str:
        """The name of its file."""
        return self.place.name

    @property
    def place(self) -> Path:
        """The table's file."""
        return self.root / "closed-forms" / f"{self.function}-{self.full_hash[:16]}.csv"

    def check(self) -> None:
        """Raise unless it is there and whole."""
        read_checked(self.place, self.full_hash)

    def job(self) -> ClosedFormJob:
        """The scenario as text: its class is made to measure and can't travel."""
        text = dump_scenario(self.scenario)
        return ClosedFormJob(self.function, text, self.seeds, self.arguments)

    def save(self, outcome: Done, force: bool = False) -> None:
        """Write it; a file takes the place of another in one step, so it may always."""
        text = outcome.result.to_csv(index=False, lineterminator="\n")
        write_checked(self.place, text, self.full_hash)

    def table(self) -> pd.DataFrame:
        """As it was stored, every number exactly, whatever the version of pandas."""
        text = read_checked(self.place, self.full_hash)
        cells = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        return pd.DataFrame({name: _exact(cells[name]) for name in cells})


def _exact(cells: pd.Series[str]) -> pd.Series[Any]:
    """A column of whole numbers, numbers (an empty cell is none) or words, as Python reads them."""
    try:
        return cells.astype("int64")
    except ValueError:
        pass
    try:
        return cells.replace("", "nan").astype("float64")
    except ValueError:
        return cells


@dataclass(frozen=True)
class Paper:
    """What all experiments share: the choices, the sizes and the store."""

    choices: Choices
    sizes: Sizes
    store: Store

    def closed_forms(
        self, function: str, scenario: Scenario, seeds: Iterable[int], block: int, **arguments: Any
    ) -> list[ClosedForm]:
        """Tables of so many instances, in blocks that workers share among them."""
        every = list(seeds)
        given = tuple((name, tuple(values)) for name, values in arguments.items())
        return [
            ClosedForm(function, scenario, tuple(every[k : k + block]), given, self.store.root)
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
Item = TypeVar("Item")


class Experiment(ABC):
    """One figure or table of the reproduction."""

    #: As the command line calls it, what it shows, and the figure's size in inches.
    id: ClassVar[str]
    title: ClassVar[str]
    size: ClassVar[tuple[float, float]]

    def __init__(self, paper: Paper):
        self.paper, self.choices, self.sizes = paper, paper.choices, paper.sizes

    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """What has to be computed."""

    def stages(self) -> Iterator[Sequence[Task]]:
        """The same in parts, each asked for when those before it are done."""
        yield self.tasks()

    @abstractmethod
    def tables(self) -> Tables:
        """CSV files by name, made of what was computed; the first one is behind the figure."""

    @abstractmethod
    def draw(self, figure: Figure, tables: Tables) -> None:
        """The figure."""

    @abstractmethod
    def caption(self, tables: Tables) -> str:
        """What one sees, with the sizes used."""


# --- what experiments have in common -------------------------------------------------------------
def stored_table(tasks: Iterable[ClosedForm]) -> pd.DataFrame:
    """The tables of finished tasks, one below the other."""
    return pd.concat([task.table() for task in tasks], ignore_index=True)


def in_parts(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """So many equal parts, in their order."""
    each = len(items) // count
    return [items[k * each : (k + 1) * each] for k in range(count)]


def summary(run: Run) -> dict[str, Any]:
    """The final figures of a finished run."""
    found: dict[str, Any] = run.store.manifest(run.place)["summary"]
    return found


def trace(run: Run) -> pd.DataFrame:
    """The samples of a finished run."""
    return run.store.trace(run.place)


def with_interval(name: str, values: Any) -> dict[str, float]:
    """Mean and 95 % interval of a column, under three names."""
    mean, low, high = (float(part) for part in mean_interval(np.asarray(values, dtype=float)))
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def geometric(name: str, values: Any) -> dict[str, float]:
    """Geometric mean of positive numbers and its 95 % interval, under three names."""
    with np.errstate(invalid="ignore"):
        found = with_interval(name, np.log(np.asarray(values, dtype=float)))
    return {key: float(np.exp(value)) for key, value in found.items()}


def line(axis: Any, table: pd.DataFrame, x: str, name: str, look: str, label: str) -> None:
    """A line through means, with bars for their 95 % intervals."""
    low, high = table[f"{name}_low"], table[f"{name}_high"]
    spread = np.vstack([table[name] - low, high - table[name]])
    axis.errorbar(
        table[x], table[name], spread, label=label, markersize=4, capsize=2, **LOOKS[look]
    )


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
    first = int(np.argmax(there))
    return float(samples[axis].iloc[first]) if there[first] else float("nan")
