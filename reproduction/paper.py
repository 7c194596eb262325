"""What all experiments share: choices and sizes, work that is done once, texts to be filled in."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from reproduction.choices import Choices
from reproduction.closed_forms import FUNCTIONS
from reproduction.sizes import Sizes
from simulator import Scenario, load_scenario
from simulator.errors import MissingError, SimulatorError
from simulator.runs.progress import sweep_progress
from simulator.runs.tasks import Done, Failed, Outcome, Run, Task, reason_for, unfinished
from simulator.scenario.files import scenario_values
from simulator.store.store import RESULTS_VERSION, TRACE, Store
from simulator.store.whole_files import hash_of, replacing_file
from simulator.sweeps.workers import Crew, complete

Tables = dict[str, pd.DataFrame]
#: CSV files by name, the first of them behind the figure, and what the caption says besides.
Made = tuple[Tables, dict[str, Any]]
#: Computes an experiment's tables, and draws its figure.
Experiment = Callable[["Paper", Figure], Made]
Key = TypeVar("Key")
AnyTask = TypeVar("AnyTask", bound=Task)


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


@dataclass
class Paper:
    """The choices, the sizes and the store; what an experiment asks for is computed, once."""

    choices: Choices
    sizes: Sizes
    store: Store
    crew: Crew | None = None
    jobs: int | None = None
    force: bool = False
    progress: bool = False
    #: The experiment at work; the tasks that it has asked for, and how many of them were computed.
    id: str = ""
    asked: set[str] = field(default_factory=set)
    computed: int = 0
    #: What is known to be there; ``force`` does not compute it again.
    done: set[str] = field(default_factory=set)

    def begin(self, name: str) -> None:
        """Count anew."""
        self.id, self.asked, self.computed = name, set(), 0

    def finished(self, groups: Mapping[Key, Sequence[AnyTask]]) -> Mapping[Key, Sequence[AnyTask]]:
        """The same tasks when all of them are done; those of one call share the workers."""
        tasks = {task.key: task for own in groups.values() for task in own}
        self.asked |= tasks.keys()
        new = [task for key, task in tasks.items() if key not in self.done]
        missing = new if self.force else [new[number] for number in unfinished(new)]
        if missing:
            with sweep_progress(self.id, len(missing), self.progress) as show:
                every = range(len(missing))
                failures = complete(missing, every, self.crew, force=self.force, progress=show)
            for number, reason in failures.items():
                raise SimulatorError(
                    f"{self.id}: {len(failures)} of {len(tasks)} computations failed; the first: "
                    f"{missing[number].key}: {reason}"
                )
        self.done |= tasks.keys()
        self.computed += len(missing)
        return groups

    def table(self, tasks: Sequence[ClosedForm]) -> pd.DataFrame:
        """Closed forms, one below the other."""
        return self.tables({"": tasks})[""]

    def tables(self, groups: Mapping[Key, Sequence[ClosedForm]]) -> dict[Key, pd.DataFrame]:
        """The same of several groups at once."""
        return {
            key: pd.concat([task.table() for task in own], ignore_index=True)
            for key, own in self.finished(groups).items()
        }

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


# --- texts: the Markdown beside this file, written by hand --------------------------------------
def sections(name: str) -> dict[str, str]:
    """What stands below each heading of the second level."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {heading: body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def filled(template: str, numbers: Mapping[Any, Any]) -> str:
    """On one line, with numbers in the place of their names."""
    return " ".join(template.format_map(numbers).split())


def listed(template: str, rows: pd.DataFrame) -> str:
    """The same of every row of a table, with commas."""
    return ", ".join(filled(template, row) for row in rows.to_dict("records"))


#: Titles and captions, by the experiment's name.
CAPTIONS = {
    heading.split(": ")[0]: (heading.split(": ", 1)[1], text)
    for heading, text in sections("captions.md").items()
}
