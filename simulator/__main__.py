"""``python -m simulator``: run the command line, and end every failure in plain words."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, Any

from simulator import require_own_agents
from simulator.errors import SimulatorError, StoreWarning

if TYPE_CHECKING:
    import click

#: What a signal is called; its exit code is 128 + its number.
_SIGNALS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
#: Lines of a message.
_MOST_LINES = 10

#: The signals that have come.
_came: list[int] = []


class SignalError(KeyboardInterrupt):
    """A signal has come.  After a bare KeyboardInterrupt in an ``exec`` Python dies of SIGINT."""


def main(load: Callable[[], click.Command] | None = None) -> None:
    """Exit codes: 0 done, 1 some runs failed, 2 wrong input, 130 Ctrl-C, 143 terminated.

    And 141 if nobody reads what is printed.  ``load`` imports another program's command.
    """
    _came.clear()
    for number in _SIGNALS:
        signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what it cannot encode is shown with backslashes
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(load or _our_commands)
        notes = ["the command had come to its end"]
    except BaseException as error:
        code = 0 if _came else _told(error)
        # What is raised after a signal is its consequence: a library may make its own of it.
        noted = [note for e in (error, error.__cause__) for note in getattr(e, "__notes__", ())]
        notes = noted or ["nothing is half written"]
    if _came:
        code = _say(f"{_SIGNALS[_came[0]]}; {'; '.join(notes)}", 128 + _came[0])
    for number in _SIGNALS:  # Python may still wait for somebody
        signal.signal(number, lambda *_: os._exit(code))
    sys.exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ctrl-C or SIGTERM: stop where we are, and clear drafts away; a second Ctrl-C ends at once."""
    if number == signal.SIGINT and _came:
        os._exit(128 + number)
    _came.append(number)
    raise SignalError


def _our_commands() -> click.Command:
    from simulator.cli.commands import commands
    from simulator.cli.options import name_commands

    commands.name = name_commands(commands, sys.argv[0])
    return commands


def _run(load: Callable[[], click.Command]) -> int:
    """The exit code of what the command line asks for."""
    try:
        require_own_agents()
    except ImportError as error:
        raise SimulatorError(str(error)) from None
    command = load()
    warnings.formatwarning = _in_a_line  # type: ignore[assignment]
    code = command.main(prog_name=command.name, standalone_mode=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _told(error: BaseException) -> int:
    """Say what went wrong, if it is not a defect of ours; the exit code."""
    import click

    from simulator.cli import options

    if isinstance(error, SimulatorError):
        if options.debugging:
            traceback.print_exception(error)
        return _say(_briefly(str(error)), 2)
    if isinstance(error, click.ClickException):  # a wrong flag or argument
        error.show()
        return 2
    if isinstance(error, MemoryError):
        return _say(f"not enough memory for this scenario: {error or 'make it smaller'}", 2)
    # Of a pipe that is closed, click and rich make exit code 1, which here means something else.
    if isinstance(error, BrokenPipeError) or (isinstance(error, SystemExit) and error.code == 1):
        _forget_output()
        return 141
    if isinstance(error, OSError):
        _forget_output()
        where = "standard output" if error.filename is None else error.filename
        return _say(f"{where}: {error.strerror or error}", 2)
    raise error


_usual_format = warnings.formatwarning


def _in_a_line(message: Warning | str, category: type[Warning], *place: Any) -> str:
    """What is computed again, and why, in one line; other warnings as Python has them."""
    if issubclass(category, StoreWarning):
        return f"note: {message}\n"
    return _usual_format(message, category, *place)


def _forget_output() -> None:
    """What is still to be printed would fail again when Python ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _say(text: str, code: int) -> int:
    with suppress(OSError):
        print(text, file=sys.stderr)
    return code


def _briefly(text: str) -> str:
    """At most ten lines: who has made more mistakes mends the first ones first."""
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return text
    left = len(lines) - _MOST_LINES + 1
    return "\n".join([*lines[:-left], f"… and {left} more; validate shows all that is in a file"])


if __name__ == "__main__":
    main()
