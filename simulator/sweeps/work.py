"""Work that is done once: what is stored already is not computed again.

A task knows whether its result is stored, how to send it to a worker and where to save what comes
back.  Only the process that asks for the work writes, one finished task at a time, so that a kill
loses at most the tasks in progress.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from simulator.errors import DamagedError, MissingError, StoreWarning
from simulator.runs.results import save_result
from simulator.scenario.schema import Scenario
from simulator.store.store import TRACE, Store, digest
from simulator.sweeps.jobs import Done, Failed, Job, pack
from simulator.sweeps.workers import Crew, Here, run_all

#: What to tell somebody who interrupts.
RESUMED = "what is finished is stored; the same command goes on from there"
#: Called at every change with the numbers of tasks that are finished, running and failed.
Progress = Callable[[int, int, int], None]


class Task(Protocol):
    """Something to compute and store."""

    @property
    def key(self) -> str:
        """What tells it from every other task."""

    def check(self) -> None:
        """Raise MissingError unless the result is stored, DamagedError unless it is whole."""

    def job(self) -> Job:
        """What a worker needs."""

    def save(self, outcome: Done, force: bool = False) -> None:
        """Store what a worker sent back; ``force``: even if a whole result is there by now."""


@dataclass(frozen=True)
class Run:
    """One run of a scenario, an ordinary result of the store."""

    scenario: Scenario
    store: Store
    #: The files that will be read, besides the manifest; all of them for None.
    reads: tuple[str, ...] | None = (TRACE,)

    @cached_property
    def full_hash(self) -> str:
        """The hash of all that its numbers depend on, as it was when the work began."""
        return digest(self.scenario)

    @property
    def key(self) -> str:
        """Its name and hash."""
        return f"{self.scenario.name}-{self.full_hash}"

    @property
    def place(self) -> Path:
        """The result's folder; saving another one may change where this one goes."""
        return self.store.place(self.scenario.name, self.full_hash)

    def check(self) -> None:
        """Raise unless the result is there and whole."""
        self.store.check(self.place, self.reads)

    def job(self) -> Job:
        """The scenario with its files and its plugins."""
        return pack(self.scenario)

    def save(self, outcome: Done, force: bool = False) -> None:
        """Store the result under the scenario as it was asked for."""
        save_result(
            self.store,
            replace(outcome.result, scenario=self.scenario),
            full_hash=self.full_hash,
            wall_time=outcome.wall_time,
            force=force,
        )


def unfinished(tasks: Sequence[Task]) -> list[int]:
    """Which tasks are not stored; a warning tells of those that are there but of no use."""
    missing, damaged = list[int](), list[str]()
    for number, task in enumerate(tasks):
        try:
            task.check()
        except MissingError:
            missing.append(number)
        except DamagedError as error:
            missing.append(number)
            damaged.append(str(error))
    if damaged:
        warn_of_damage(damaged)
    return missing


def warn_of_damage(reasons: Sequence[str]) -> None:
    """Say what cannot be used and is computed again."""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    warnings.warn(f"{reasons[0]}{more}: computed again", StoreWarning, stacklevel=3)


@contextmanager
def noting(note: str) -> Iterator[None]:
    """Tell somebody who interrupts what remains."""
    try:
        yield
    except BaseException as error:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def complete(
    tasks: Sequence[Task],
    missing: Sequence[int],
    crew: Crew | Here,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[int, str]:
    """Do those of the tasks that are missing; the failed ones, and why."""
    report = progress or (lambda done, running, failed: None)
    done, running = len(tasks) - len(missing), 0
    failures: dict[int, str] = {}
    report(done, running, 0)
    with noting(RESUMED):
        for position, outcome in run_all([tasks[n].job for n in missing], crew):
            number = missing[position]
            if outcome is None:
                running += 1
            elif isinstance(outcome, Failed):
                running -= 1
                failures[number] = outcome.reason
            else:
                running -= 1
                tasks[number].save(outcome, force)
                done += 1
            report(done, running, len(failures))
    return failures
