"""What is to be computed elsewhere, as text and bytes, and what comes back of it.

A ``Job`` comes back whole (``Done``) or as the reason why it did not finish (``Failed``), so that a
worker needs this package and nothing else: no shared disk, no shared store.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from simulator.errors import SimulatorError
from simulator.runs.plugins import Plugins, unpack
from simulator.runs.result import Result
from simulator.runs.run import Stopwatch, run
from simulator.runs.scenarios import load_scenario
from simulator.scenario.files import dump_scenario
from simulator.scenario.schema import Scenario
from simulator.store.store import input_names
from simulator.store.whole_files import scratch


class Job(Protocol):
    """Something that can be sent to a worker, by pickle."""

    def execute(self) -> Outcome:
        """What the worker does with it."""


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
                plugins = _unpack_plugins(self, folder)
                scenario = load_scenario(folder / "scenario.yaml", plugins=plugins)
                with Stopwatch() as watch:
                    result = run(scenario)
                # The caller has the scenario, whose class is made to measure and can't travel.
                return Done(_without_scenario(result), watch.seconds)
            except Exception as error:
                # The worker's folder has another name each time; the reason must not.
                return Failed(reason_for(error).replace(f"{folder}{os.sep}", ""))


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


def reason_for(error: Exception) -> str:
    """Why a job failed: our own errors speak for themselves, others have names."""
    known = isinstance(error, SimulatorError)
    return str(error) if known else f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class DirectJob:
    """A run in this process, of a scenario that can't travel: its plugin is a class or a module."""

    scenario: Scenario

    def execute(self) -> Outcome:
        """Run it."""
        try:
            with Stopwatch() as watch:
                result = run(self.scenario)
            return Done(result, watch.seconds)
        except Exception as error:
            return Failed(reason_for(error))


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


def pack(scenario: Scenario) -> RunJob | DirectJob:
    """Make a run ready to travel."""
    if tied_here(scenario):
        return DirectJob(scenario)
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


def _without_scenario(result: Result) -> Result:
    return replace(result, scenario=None)  # type: ignore[arg-type]


def execute(job: Job) -> Outcome:
    """Do a job, wherever this process is."""
    return job.execute()


def _unpack_plugins(job: RunJob, folder: Path) -> Plugins | None:
    if not job.references:
        return None
    plugins: Plugins = unpack(job.plugin_files, job.references, folder / "plugins")
    if plugins.sha256 != job.plugin_sha256:
        names = ", ".join(job.references)
        raise SimulatorError(f"--plugin {names}: the worker has another version of it")
    return plugins
