"""Work that is done once: what is stored already is not computed again.

A task knows whether its result is stored, how to send it to a worker and where to save what comes
back.  Only the process that asks for the work writes, one finished task at a time, so that a kill
loses at most the tasks in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from simulator.plugins import Plugin
from simulator.scenario import Scenario
from simulator.store import Store
from simulator.workers import Crew, Done, Failed, Job, pack, run_all

#: What to tell somebody who interrupts.
RESUMED = "what is finished is stored; the same command goes on from there"
#: Called at every change with the numbers of tasks that are finished, running and failed.
Progress = Callable[[int, int, int], None]


class Task(Protocol):
    """Something to compute and store."""

    @property
    def place(self) -> Path:
        """Where the result is stored."""

    def is_stored(self) -> bool:
        """Is the result there?"""

    def job(self) -> Job:
        """What a worker needs."""

    def save(self, outcome: Done) -> None:
        """Store what a worker sent back."""


@dataclass(frozen=True)
class Run:
    """One run of a scenario, an ordinary result of the store."""

    scenario: Scenario
    store: Store
    plugin: Plugin | None = None

    @cached_property
    def place(self) -> Path:
        """The result's folder."""
        return self.store.folder(self.scenario, self.plugin)

    def is_stored(self) -> bool:
        """Is the result there?"""
        return self.store.has(self.place)

    def job(self) -> Job:
        """The scenario with its files and the plugin."""
        return pack(self.scenario, self.plugin)

    def save(self, outcome: Done) -> None:
        """Store the result under the scenario as it was asked for."""
        result = replace(outcome.result, scenario=self.scenario)
        self.store.save(result, outcome.wall_time, self.plugin, figures=False)


def complete(
    tasks: Sequence[Task],
    crew: Crew,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[int, str]:
    """Do all tasks that are not stored, or all with ``force``; the failed ones, and why."""
    missing = [n for n, task in enumerate(tasks) if force or not task.is_stored()]
    report = progress or (lambda done, running, failed: None)
    done, running = len(tasks) - len(missing), 0
    failures: dict[int, str] = {}
    report(done, running, 0)
    try:
        for position, outcome in run_all([tasks[n].job for n in missing], crew):
            number = missing[position]
            if outcome is None:
                running += 1
            elif isinstance(outcome, Failed):
                running -= 1
                failures[number] = outcome.reason
            else:
                running -= 1
                tasks[number].save(outcome)
                done += 1
            report(done, running, len(failures))
    except BaseException as error:
        error.add_note(RESUMED)
        raise
    return failures
