"""``python -m simulator``: run the command line, and end every failure in plain words."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING

from simulator import require_own_agents
from simulator.errors import SimulatorError, StoreWarning

if TYPE_CHECKING:
    import click

_NOTHING = "nothing was written"
#: Of a message.
_MOST_LINES = 10


#: What a signal does to us, and the exit code.
_ENDINGS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}


#: The signals that have come.
_asked: list[int] = []
#: Seconds after which we look whether a signal was heeded.
_MOMENT = 0.02


class _Stopped(BaseException):
    """Ctrl-C or SIGTERM, raised where the program stands so that drafts are cleared away.

    Python's own exception for Ctrl-C would end the process by the signal, at a bad moment.
    """

    def __init__(self, number: int):
        self.what, self.code = _ENDINGS[signal.Signals(number)]


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: nothing has begun."""
    what, code = _ENDINGS[signal.Signals(number)]
    with suppress(OSError):
        os.write(2, f"{what}; {_NOTHING}\n".encode())
    os._exit(code)


def _stop(number: int, frame: FrameType | None) -> None:
    """Stop where we are, and look in a moment whether that was heeded; if not, stop again.

    A module that is half imported may change exceptions, and what Python calls when an object
    goes swallows them.  Who is clearing away is left in peace, also by a second signal.
    """
    if number != signal.SIGALRM:
        _asked.append(number)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, _MOMENT)
    if not (_importing(frame) or _stopping()):
        raise _Stopped(_asked[0])


@contextmanager
def _signals_come_first() -> Iterator[None]:
    """What is raised after a signal is its consequence: libraries may turn it into their own.

    One that is swallowed is raised again, so nobody need read of it; nor is it lost at the end.
    """
    usual = sys.unraisablehook
    sys.unraisablehook = lambda news: None if news.exc_type is _Stopped else usual(news)
    try:
        yield
        if _asked:
            stopped = _Stopped(_asked[0])
            stopped.add_note("the command had come to its end")
            raise stopped
    except Exception as error:
        if not _asked:
            raise
        stopped = _Stopped(_asked[0])
        for note in getattr(error, "__notes__", []):
            stopped.add_note(note)
        raise stopped from error
    finally:
        sys.unraisablehook = usual


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _stopping() -> bool:
    """Is a signal being heeded, by clearing away on the way out?"""
    error = sys.exception()
    while error is not None and not isinstance(error, _Stopped):
        error = error.__context__
    return error is not None


def main(load: Callable[[], click.Command] | None = None) -> None:
    """Exit codes: 0 done, 1 some runs failed, 2 wrong input, 130 Ctrl-C, 143 terminated.

    And 141 if nobody reads what is printed.  ``load`` imports another program's command.
    """
    _mend_streams()
    try:
        require_own_agents()
    except ImportError as error:
        sys.exit(_say(str(error), 2))
    _on_signals(_leave)
    command = (load or _our_commands)()  # takes a moment
    _show_warnings()
    try:
        _asked.clear()
        _on_signals(_stop)
        code = _run_command(command)
        _no_more_signals()
    except _Stopped as error:
        _no_more_signals()
        notes = "; ".join(getattr(error, "__notes__", [_NOTHING]))
        code = _say(f"{error.what}; {notes}", error.code)
    sys.exit(code)


def _mend_streams() -> None:
    """A stream that is closed goes nowhere, and what one cannot encode is shown with backslashes.

    Otherwise a file that is opened would get the number of a closed one, and what is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  as long as we
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _our_commands() -> click.Command:
    from simulator.cli.commands import commands
    from simulator.cli.options import name_commands

    commands.name = name_commands(commands, sys.argv[0])
    return commands


def _run_command(command: click.Command) -> int:
    """The exit code of what the command line asks for."""
    from simulator.cli import options
    from simulator.cli.commands import NobodyReadsError

    try:
        with _signals_come_first():
            code = command.main(prog_name=command.name, standalone_mode=False)
            sys.stdout.flush()
    except SimulatorError as error:
        if options.debugging:
            traceback.print_exc()
        return _say(_briefly(str(error)), 2)
    except MemoryError as error:
        return _say(f"not enough memory for this scenario: {error or 'make it smaller'}", 2)
    except (BrokenPipeError, NobodyReadsError):
        _forget_output()
        return 141
    except OSError as error:
        _forget_output()
        where = "standard output" if error.filename is None else error.filename
        return _say(f"{where}: {error.strerror or error}", 2)
    except Exception as error:
        return _click_error(error)
    return code if isinstance(code, int) else 0


def _on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in _ENDINGS:
        signal.signal(number, handler)


def _no_more_signals() -> None:
    """The end is near; a signal would only spoil the exit code."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    _on_signals(signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _show_warnings() -> None:
    """Say in one line what is computed again, and why."""
    import warnings

    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if issubclass(category, StoreWarning):
            _say(f"note: {message}", 0)
        else:
            usual(message, category, *place)  # type: ignore[arg-type]

    warnings.showwarning = show  # type: ignore[assignment]


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


def _click_error(error: Exception) -> int:
    """A wrong flag or argument; anything else is a defect of ours."""
    import click

    if isinstance(error, click.Abort) and error.__cause__ is not None:
        raise error.__cause__  # a file that ended too early: nobody is asked anything here
    if isinstance(error, click.ClickException):
        with suppress(OSError):
            error.show()
        return 2
    raise error


if __name__ == "__main__":
    main()
