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
from simulator.runs.run import Progress as OnSample
from simulator.scenario.mistakes import shown
from simulator.scenario.schema import Scenario
from simulator.sweeps.work import Progress as OnChange

#: A notebook's line is written anew at most so often.
_SECONDS = 0.2


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


#: True: a line where somebody can see it; False: nothing; or a function that is told.
Wanted = bool | Callable[[Progress], None]


@contextmanager
def run_progress(scenario: Scenario, wanted: Wanted) -> Iterator[OnSample | None]:
    """The function that a run calls after each sample."""
    _check(wanted)
    if callable(wanted):
        told = wanted
    elif wanted and _in_notebook():
        told = _Line()
    else:
        from simulator.cli.terminal import run_progress as on_terminal

        with on_terminal(scenario, visible=wanted) as show:
            yield show
        return

    def tell(row: Row, share: float) -> None:
        done = int(share >= 1)
        told(Progress(scenario.name, share, done, 1 - done, 0, 1, row))

    yield tell


@contextmanager
def sweep_progress(name: str, total: int, wanted: Wanted) -> Iterator[OnChange | None]:
    """The function that a sweep calls whenever a run begins or ends."""
    _check(wanted)
    if callable(wanted):
        told = wanted
    elif wanted and _in_notebook():
        told = _Line()
    else:
        from simulator.cli.sweep_terminal import sweep_progress as on_terminal

        with on_terminal(name, total, visible=wanted) as show:
            yield show
        return

    def tell(done: int, running: int, failed: int) -> None:
        share = (done + failed) / max(total, 1)
        told(Progress(name, share, done, running, failed, total))

    yield tell


def _check(wanted: Wanted) -> None:
    if not (isinstance(wanted, bool) or callable(wanted)):
        raise SimulatorError(f"progress: must be True, False or a function (got {shown(wanted)})")


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
    if progress.row is None:
        text = f"{progress.done} of {progress.total} runs done"
        text += f", {progress.running} running" if progress.running else ""
        text += f", {progress.failed} failed" if progress.failed else ""
    else:
        row = progress.row
        text = f"{progress.share:.0%}, {row['time']:.4g} s simulated, "
        text += f"{row['communications']:,} messages"
    return f"{progress.name}: {text}"
