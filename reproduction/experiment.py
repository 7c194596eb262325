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

import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.closed_forms import FUNCTIONS
from reproduction.sizes import Sizes
from reproduction.texts import filled, sections
from simulator import Scenario, load_scenario
from simulator.errors import MissingError
from simulator.scenario.files import scenario_values
from simulator.store.store import RESULTS_VERSION, TRACE, Store
from simulator.store.whole_files import hash_of, replacing_file
from simulator.sweeps.jobs import Done, Failed, Outcome, reason_for
from simulator.sweeps.work import Run, Task


@dataclass(frozen=True)
class ClosedForm:
    """A table of optimal models of some instances: a task that is its own job, kept as JSON."""

    function: str
    #: As plain values: its class is made to measure and can't travel to a worker.
    scenario: dict[str, Any]
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
            scenario = load_scenario(self.scenario)
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
        every, values = list(seeds), scenario_values(scenario)
        given = tuple((name, tuple(numbers)) for name, numbers in arguments.items())
        folder = self.store.root / "closed-forms"
        return [
            ClosedForm(function, values, tuple(every[k : k + block]), given, folder)
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
