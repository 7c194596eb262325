"""Processes of their own without the seconds that Python takes to import everything.

They are forked from a server that has imported the simulator: as good as new for whoever kills,
interrupts or limits one.  What starting from nothing does is tested in test_cli.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.warm"])


class Command:
    """``python -m simulator`` with these words, leader of a group of processes of its own."""

    def __init__(
        self,
        *words: object,
        cwd: Path,
        first: Callable[[], None] | None = None,
        module: str = "simulator",
    ):
        self._output = cwd / ".output"
        arguments = ([module, *map(str, words)], cwd, self._output, first)
        self._process = FORKED.Process(target=_main, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def running(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def ended(self, timeout: float = 60) -> tuple[int, str]:
        """The exit code and everything that was printed."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, "it does not end"
        output = self._output.read_text()
        self._output.unlink()
        return self._process.exitcode, output


def _main(words: list[str], cwd: Path, output: Path, first: Callable[[], None] | None) -> None:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.chdir(cwd)
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = words
    if first is not None:
        first()
    import_module(f"{words[0]}.__main__").main()


def nobody_reads() -> None:
    """For a command's ``first``: standard output is a pipe that is closed at its other end."""
    read, write = os.pipe()
    os.dup2(write, 1)
    os.close(read)
    sys.stdout = os.fdopen(1, "w", closefd=False)
