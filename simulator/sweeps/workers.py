"""Runs on other processes: a pool of local ones, or the workers of a Dask cluster.

What is to be computed travels as a ``Job`` and comes back whole (``Done``) or as the reason why it
did not finish (``Failed``), so that a worker needs this package and nothing else: no shared disk,
no shared store.  A run travels as text and bytes.  What comes back is saved by the caller alone.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.context import BaseContext
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from simulator.errors import SimulatorError
from simulator.runs.plugins import Plugins, unpack
from simulator.runs.result import Result
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.runs.stopwatch import Stopwatch
from simulator.scenario.files import dump_scenario
from simulator.scenario.schema import Scenario
from simulator.store.drafts import scratch, sweep_up_scratch
from simulator.store.store import input_names

#: Each worker computes on one core; a numerical library that takes them all slows the others down.
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
_DIED = "its worker process died twice while it ran"


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


def _execute(job: Job) -> Outcome:
    return job.execute()


def _unpack_plugins(job: RunJob, folder: Path) -> Plugins | None:
    if not job.references:
        return None
    plugins: Plugins = unpack(job.plugin_files, job.references, folder / "plugins")
    if plugins.sha256 != job.plugin_sha256:
        names = ", ".join(job.references)
        raise SimulatorError(f"--plugin {names}: the worker has another version of it")
    return plugins


# --- who works ----------------------------------------------------------------------------------
class Crew(Protocol):
    """Workers that take jobs."""

    @property
    def slots(self) -> int:
        """How many jobs may be out at a time."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job out."""

    def rebuild(self) -> None:
        """Replace workers that broke down."""


class Here:
    """One job after the other in this very process; a context manager like the other crews."""

    slots = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


#: New ones, with nothing of this process but what they are given.
_PROCESSES: BaseContext = multiprocessing.get_context("spawn")


class LocalCrew:
    """A pool of processes on this machine; a context manager."""

    def __init__(self, processes: int):
        self.slots = processes
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=self.slots,
            mp_context=_PROCESSES,
            initializer=_prepare_worker,
        )

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job out; a worker process is started where there are fewer than allowed."""
        with _environment(_ONE_THREAD), _no_interrupts():
            try:
                return self._pool.submit(_execute, job)
            except BrokenProcessPool:  # a worker died while it had nothing to do
                self.rebuild()
                return self._pool.submit(_execute, job)

    def rebuild(self) -> None:
        """The pool is broken: start a new one."""
        self._kill()
        self._pool = self._new_pool()

    def _kill(self) -> None:
        # The pool has no public way to stop a worker that is computing before Python 3.14.
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        sweep_up_scratch()  # what they were working in

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._pool.shutdown(wait=True)
        else:
            self._kill()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C waits, also in processes that are started meanwhile, until they are prepared."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker() -> None:
    """Leave Ctrl-C to the caller, and never outlive it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class DaskCrew:
    """The workers of a Dask cluster that runs already; a context manager.

    When one of them dies, the scheduler gives its run to another.
    """

    def __init__(self, address: str):
        try:
            from distributed import Client
        except ImportError:
            raise SimulatorError(
                "--dask needs the package distributed: pip install 'murmuration[dask]'"
            ) from None
        _reach(address)
        try:
            self._client: Any = Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SimulatorError(f"--dask {address}: no scheduler answers: {error}") from None
        self._executor = self._client.get_executor(pure=False)

    @property
    def slots(self) -> int:
        """Two jobs a thread, so that the next one is there when one ends."""
        threads: int = sum(self._client.nthreads().values())
        return max(2, 2 * threads)

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job out."""
        future: Future[Outcome] = self._executor.submit(_execute, job)
        return future

    def rebuild(self) -> None:
        """Dask replaces its workers by itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=kind is None)
        self._client.close(timeout=5)


def _reach(address: str) -> None:
    """Connect once before a client is made: one that fails half-way hangs when Python ends."""
    from distributed.comm import connect
    from distributed.security import Security

    async def try_it() -> None:
        arguments = Security().get_connection_args("client")
        comm = await connect(address, timeout=5, **arguments)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own
            thread.submit(asyncio.run, try_it()).result()
    except OSError as error:
        raise SimulatorError(f"--dask {address}: no scheduler answers: {error}") from None
    except Exception as error:  # a protocol that needs more than an address, or none at all
        raise SimulatorError(
            f"--dask {address}: cannot be used: {reason_for(error)[:300]}; allowed: the address of "
            "a scheduler, like tcp://10.0.0.1:8786"
        ) from None


# --- all jobs of a sweep ------------------------------------------------------------------------
def run_all(
    makers: Sequence[Callable[[], Job]], crew: Crew | Here
) -> Iterator[tuple[int, Outcome | None]]:
    """Yield (number, outcome) of every job in order of completion, (number, None) when it starts.

    Each is made just before it goes out.

    When a worker dies, a pool of processes breaks as a whole and cannot say which run was its
    last.  All that were out then go out again, one at a time: a run that loses its worker alone
    has lost it twice, and has failed.
    """
    if isinstance(crew, Here):
        for number, make in enumerate(makers):
            yield number, None
            yield number, make().execute()
        return
    waiting, suspects = deque(range(len(makers))), deque[int]()
    out: dict[Future[Outcome], int] = {}
    finished: list[tuple[int, Outcome]] = []
    while waiting or suspects or out:
        alone = bool(suspects)
        queue, room = (suspects, 1) if alone else (waiting, crew.slots)
        while queue and len(out) < room:
            number = queue.popleft()
            out[crew.submit(makers[number]())] = number
            if not alone:
                yield number, None
        # Only now, with the workers busy again, is it time to save what came back.
        yield from finished
        finished = []
        ready, _ = wait(out, return_when=FIRST_COMPLETED)
        if any(_broken(future) for future in ready):
            ready, _ = wait(out)
            crew.rebuild()
        for future in sorted(ready, key=out.__getitem__):
            number = out.pop(future)
            if not _broken(future):
                finished.append((number, _outcome(future)))
            elif alone:
                finished.append((number, Failed(_DIED)))
            else:
                suspects.append(number)
    yield from finished


def _broken(future: Future[Outcome]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


def _outcome(future: Future[Outcome]) -> Outcome:
    """What came back, or why nothing did."""
    try:
        return future.result()
    except CancelledError:
        raise SimulatorError(
            "the connection to the Dask scheduler was lost; finished runs are stored: "
            "start the same command again"
        ) from None
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            return Failed("its worker process died again and again while it ran")
        return Failed(f"{type(error).__name__}: {error}")


def crew_for(jobs: int, dask: str | None) -> LocalCrew | DaskCrew | Here:
    """The workers that the user asked for."""
    if dask is not None:
        return DaskCrew(dask)
    return Here() if jobs == 1 else LocalCrew(jobs)
