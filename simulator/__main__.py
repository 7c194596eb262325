"""``python -m simulator``: run the command line, and end every failure in plain words."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from simulator.errors import SimulatorError, StoreWarning

_NOTHING = "nothing was written"


class _Interrupted(BaseException):
    """Ctrl-C, raised where the program stands so that drafts are cleared away.

    Python's own exception for it would end the process by the signal if it came at a bad moment.
    """


class _Terminated(BaseException):
    """SIGTERM, likewise."""


_ENDINGS: dict[type[BaseException], tuple[str, int]] = {
    _Interrupted: ("interrupted", 130),
    _Terminated: ("terminated", 143),
}


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _Interrupted


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: nothing has begun, and a module that is half imported may swallow exceptions."""
    what, code = _ENDINGS[_Interrupted if number == signal.SIGINT else _Terminated]
    with suppress(OSError):
        os.write(2, f"{what}; {_NOTHING}\n".encode())
    os._exit(code)


def main() -> None:
    """Exit codes: 0 done, 1 some runs failed, 2 wrong input, 130 Ctrl-C, 143 terminated."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    from simulator.cli.commands import commands

    _show_warnings()
    try:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGTERM, _terminate)
        code = commands.main(prog_name="simulator", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except SimulatorError as error:
        code = _say(str(error), 2)
    except (_Interrupted, _Terminated) as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        what, code = _ENDINGS[type(error)]
        _say(f"{what}; {'; '.join(getattr(error, '__notes__', [_NOTHING]))}", code)
    except MemoryError as error:
        code = _say(f"not enough memory for this scenario: {error or 'make it smaller'}", 2)
    except BrokenPipeError:
        _forget_output()
        code = 141
    except OSError as error:
        _forget_output()
        where = "standard output" if error.filename is None else error.filename
        code = _say(f"{where}: {error.strerror or error}", 2)
    except Exception as error:
        code = _click_error(error)
    sys.exit(code if isinstance(code, int) else 0)


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
