"""Work that is done once, in this process, in a pool of local ones or on a Dask cluster.

What is stored already is not computed again.  Only the process that asks for the work writes, one
finished task at a time, so that a kill loses at most the tasks in progress.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import tempfile
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
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, Protocol, Self

from simulator.errors import SimulatorError
from simulator.runs.tasks import Failed, Job, Outcome, Task, reason_for
from simulator.shipped import install
from simulator.store.whole_files import scratch

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
#: What to tell somebody who interrupts.
RESUMED = "what is finished is stored; the same command goes on from there"
#: Called at every change with the numbers of tasks that are finished, running and failed.
OnChange = Callable[[int, int, int], None]
_DIED = "its worker process died twice while it ran"


def execute(job: Job) -> Outcome:
    """Do a job, wherever this process is."""
    return job.execute()


class Crew(Protocol):
    """Workers that take jobs."""

    @property
    def slots(self) -> int:
        """How many jobs may be out at a time."""

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job out."""

    def rebuild(self) -> None:
        """Replace workers that broke down."""


#: New ones, with nothing of this process but what they are given.
_PROCESSES: BaseContext = multiprocessing.get_context("spawn")


class LocalCrew:
    """A pool of processes on this machine; a context manager."""

    def __init__(self, processes: int):
        self.slots = processes
        #: Where workers work, which goes with them, also if they are killed.
        self._scratch = ExitStack()
        self._folder = str(self._scratch.enter_context(scratch()))
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=self.slots,
            mp_context=_PROCESSES,
            initializer=_prepare_worker,
            initargs=(self._folder,),
        )

    def submit(self, job: Job) -> Future[Outcome]:
        """Send a job out; a worker process is started where there are fewer than allowed."""
        with _environment(_ONE_THREAD), _no_interrupts():
            try:
                return self._pool.submit(execute, job)
            except BrokenProcessPool:  # a worker died while it had nothing to do
                self.rebuild()
                return self._pool.submit(execute, job)

    def rebuild(self) -> None:
        """The pool is broken: start a new one."""
        self._kill()
        self._pool = self._new_pool()

    def _kill(self) -> None:
        # The pool has no public way to stop a worker that is computing before Python 3.14.
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._scratch:
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


def _prepare_worker(folder: str) -> None:
    """Leave Ctrl-C to the caller, and never outlive it, even if it is killed; work in a folder."""
    tempfile.tempdir = folder
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
                f"--dask needs the package distributed: {install('dask')}"
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
        future: Future[Outcome] = self._executor.submit(execute, job)
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


# --- all tasks of a sweep -----------------------------------------------------------------------
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
    crew: Crew | None,
    *,
    force: bool = False,
    progress: OnChange | None = None,
) -> dict[int, str]:
    """Do those of the tasks that are missing; the failed ones, and why."""
    report = progress or (lambda done, running, failed: None)
    done, running = len(tasks) - len(missing), 0
    failures: dict[int, str] = {}
    report(done, running, 0)
    wanted = [tasks[number] for number in missing]
    with noting(RESUMED):
        for position, outcome in (
            _one_by_one(wanted) if crew is None else run_all([task.job for task in wanted], crew)
        ):
            if outcome is None:
                running += 1
            elif isinstance(outcome, Failed):
                running -= 1
                failures[missing[position]] = outcome.reason
            else:
                running -= 1
                wanted[position].save(outcome, force)
                done += 1
            report(done, running, len(failures))
    return failures


def _one_by_one(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome | None]]:
    """As ``run_all``, here, without a way through text and files."""
    for number, task in enumerate(tasks):
        yield number, None
        yield number, task.execute()


def run_all(
    makers: Sequence[Callable[[], Job]], crew: Crew
) -> Iterator[tuple[int, Outcome | None]]:
    """Yield (number, outcome) of every job in order of completion, (number, None) when it starts.

    Each is made just before it goes out.

    When a worker dies, a pool of processes breaks as a whole and cannot say which run was its
    last.  All that were out then go out again, one at a time: a run that loses its worker alone
    has lost it twice, and has failed.
    """
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


def crew_for(jobs: int, dask: str | None) -> AbstractContextManager[Crew | None]:
    """The workers that the user asked for; None: this very process."""
    if dask is not None:
        return DaskCrew(dask)
    return nullcontext() if jobs == 1 else LocalCrew(jobs)
