"""How far work has come: a line on a terminal or in a notebook, or a function of the caller's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from simulator.errors import SimulatorError
from simulator.runs.result import Row
from simulator.scenario.mistakes import shown

#: A notebook's line is written anew at most so often.
_SECONDS = 0.2
#: The error that a line shows: the first of these that a run measures.
_ERRORS = ("l2_error", "accuracy", "test_error", "distance", "objective")


@dataclass(frozen=True)
class Progress:
    """What a callback is told, of one run and of many: ``run(…, progress=print)`` shows it."""

    #: The scenario's or the sweep's name, and the share that is done, 0 to 1.
    name: str
    share: float
    #: Runs that are finished, running and failed, of so many.
    done: int
    running: int
    failed: int
    total: int
    #: Of a single run the last sample, a row of its trace.
    row: Row | None = None


Told = Callable[[Progress], None]
#: True: a line where somebody can see it; False: nothing; or a function that is told.
Wanted = bool | Told


@contextmanager
def run_progress(name: str, wanted: Wanted) -> Iterator[Callable[[Row, float], None]]:
    """The function that a run calls after each sample."""
    with _told(name, "building the problem …", wanted) as tell:

        def on_sample(row: Row, share: float) -> None:
            done = int(share >= 1)
            tell(Progress(name, share, done, 1 - done, 0, 1, row))

        yield on_sample


@contextmanager
def sweep_progress(
    name: str, total: int, wanted: Wanted
) -> Iterator[Callable[[int, int, int], None]]:
    """The function that a sweep calls whenever a run begins or ends: finished, running, failed."""
    with _told(name, "starting workers …", wanted) as tell:

        def on_change(done: int, running: int, failed: int) -> None:
            share = (done + failed) / max(total, 1)
            tell(Progress(name, share, done, running, failed, total))

        yield on_change


@contextmanager
def _told(name: str, first: str, wanted: Wanted) -> Iterator[Told]:
    """Who is told: the caller's function, a notebook, a terminal or nobody."""
    if callable(wanted):
        yield wanted
    elif not isinstance(wanted, bool):
        raise SimulatorError(f"progress: must be True, False or a function (got {shown(wanted)})")
    elif wanted and _in_notebook():
        yield _Line()
    elif wanted and sys.stderr is not None and sys.stderr.isatty():
        with _bar(name, first) as tell:
            yield tell
    else:
        yield _nobody


def _nobody(progress: Progress) -> None:
    pass


@contextmanager
def _bar(name: str, first: str) -> Iterator[Told]:
    """A bar on standard error, which goes when the work is done."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task, started = bar.add_task(escape(name), total=1.0, news=first), time.perf_counter()

        def tell(progress: Progress) -> None:
            text, row = news(progress), progress.row
            if row is not None:
                seconds = max(time.perf_counter() - started, 1e-9)
                error = next((f"{name} {row[name]:.4g}" for name in _ERRORS if name in row), "")
                text += f", {row['communications'] / seconds:,.0f} a second, {error}"
            bar.update(task, completed=progress.share, news=text)

        yield tell


def _in_notebook() -> bool:
    """Does a notebook's kernel run this?"""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython and ipython.get_ipython()
    return bool(shell) and hasattr(shell, "kernel")


class _Line:
    """A line below a notebook's cell."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        """Write it anew, if the last time was a while ago or it is the end."""
        now = time.monotonic()
        if now - self._last < _SECONDS and progress.share < 1:
            return
        self._last = now
        content = {"text/plain": line(progress)}
        if self._handle is None:
            display: Any = sys.modules["IPython"].display.display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def line(progress: Progress) -> str:
    """Progress in words."""
    share = "" if progress.row is None else f"{progress.share:.0%}, "
    return f"{progress.name}: {share}{news(progress)}"


def news(progress: Progress) -> str:
    """What has been done."""
    row = progress.row
    if row is not None:
        return f"{row['time']:.4g} s simulated, {row['communications']:,} messages"
    text = f"{progress.done} of {progress.total} runs done"
    text += f", {progress.running} running" if progress.running else ""
    return text + (f", {progress.failed} failed" if progress.failed else "")
