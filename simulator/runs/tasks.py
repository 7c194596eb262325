"""A run as a task: is it stored, how is it computed here, what does a worker elsewhere need?

A worker needs this package and nothing else: no shared disk, no shared store.  What it computes
comes back whole (``Done``) or as the reason why it did not finish (``Failed``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from simulator.errors import DamagedError, MissingError, SimulatorError, StoreWarning
from simulator.runs.plugins import Plugins, unpack
from simulator.runs.result import save_result
from simulator.runs.scenarios import load_scenario
from simulator.runs.simulation import Stopwatch, simulate
from simulator.scenario.files import dump_scenario
from simulator.scenario.schema import Scenario
from simulator.store.store import TRACE, Store, digest, input_names
from simulator.store.whole_files import scratch


@dataclass(frozen=True)
class Done:
    """A finished job: a ``Result`` for a run."""

    result: Any
    wall_time: float


@dataclass(frozen=True)
class Failed:
    """A job that did not finish, and why."""

    reason: str


Outcome = Done | Failed


class Job(Protocol):
    """Something that can be sent to a worker, by pickle."""

    def execute(self) -> Outcome:
        """What the worker does with it."""


class Task(Protocol):
    """Something to compute and store."""

    @property
    def key(self) -> str:
        """What tells it from every other task."""

    def check(self) -> None:
        """Raise MissingError unless the result is stored, DamagedError unless it is whole."""

    def execute(self) -> Outcome:
        """Compute it in this process."""

    def job(self) -> Job:
        """What a worker needs to compute it elsewhere."""

    def save(self, outcome: Done, force: bool = False) -> None:
        """Store what came back; ``force``: even if a whole result is there by now."""


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
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        warnings.warn(f"{damaged[0]}{more}: computed again", StoreWarning, stacklevel=2)
    return missing


@dataclass(frozen=True)
class Run:
    """One run of a scenario, an ordinary result of the store."""

    scenario: Scenario
    store: Store
    #: The files that will be read, besides the manifest; all of them for None.
    reads: tuple[str, ...] | None = (TRACE,)
    #: Its hash, where that has been taken already.
    known: str | None = None

    @cached_property
    def full_hash(self) -> str:
        """The hash of all that its numbers depend on, as it was when the work began."""
        return self.known or digest(self.scenario)

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

    def execute(self) -> Outcome:
        """Run the scenario as it is."""
        try:
            return _simulated(self.scenario)
        except Exception as error:
            reason = reason_for(error)
            for path, name in input_names(self.scenario).items():
                reason = reason.replace(str(path), name)  # as a worker elsewhere would say
            return Failed(reason)

    def job(self) -> RunJob:
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


def _simulated(scenario: Scenario) -> Done:
    with Stopwatch() as watch:
        result = simulate(scenario)
    return Done(result, watch.seconds)


def reason_for(error: Exception) -> str:
    """Why a job failed: our own errors speak for themselves, others have names."""
    known = isinstance(error, SimulatorError)
    return str(error) if known else f"{type(error).__name__}: {error}"


# --- elsewhere ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RunJob:
    """A run that can be sent anywhere: the scenario's YAML, the files it names, the plugins."""

    files: dict[str, bytes]
    #: The plugins as they were given, their files, and the hash of these.
    references: tuple[str, ...] = ()
    plugin_files: tuple[tuple[str, bytes], ...] = ()
    plugin_sha256: str | None = None

    def execute(self) -> Outcome:
        """Unpack the scenario and run it."""
        with scratch() as folder:
            try:
                for name, content in self.files.items():
                    path = folder / name
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                plugins = self._unpack_plugins(folder)
                done = _simulated(load_scenario(folder / "scenario.yaml", plugins=plugins))
                # The caller has the scenario, whose class is made to measure and can't travel.
                return replace(done, result=replace(done.result, scenario=None))
            except Exception as error:
                # The worker's folder has another name each time; the reason must not.
                return Failed(reason_for(error).replace(f"{folder}{os.sep}", ""))

    def _unpack_plugins(self, folder: Path) -> Plugins | None:
        if not self.references:
            return None
        plugins: Plugins = unpack(self.plugin_files, self.references, folder / "plugins")
        if plugins.sha256 != self.plugin_sha256:
            names = ", ".join(self.references)
            raise SimulatorError(f"--plugin {names}: the worker has another version of it")
        return plugins


def tied_here(scenario: Scenario) -> bool:
    """Is its plugin a class or a module that only this process knows?"""
    plugins: Plugins | None = scenario.plugins
    return plugins is not None and plugins.files is None


def require_travel(scenario: Scenario) -> None:
    """Refuse to send a scenario away whose plugin is known to this process only."""
    if tied_here(scenario):
        names = ", ".join(scenario.plugins.references)
        raise SimulatorError(
            f"{names}: classes and modules that are given from Python run "
            "in this process only: use jobs=1, or put them into a file and give its path"
        )


def pack(scenario: Scenario) -> RunJob:
    """Make a run ready to travel."""
    require_travel(scenario)
    names = input_names(scenario)
    files = {name: _content(path) for path, name in names.items()}
    files["scenario.yaml"] = dump_scenario(scenario, names).encode()
    plugins: Plugins | None = scenario.plugins
    if plugins is None:
        return RunJob(files)
    return RunJob(files, plugins.references, plugins.files or (), plugins.sha256)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SimulatorError(f"{path}: cannot be read: {error.strerror}") from None
