"""``python -m simulator``: run the command line, and end every failure in plain words."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from simulator.errors import SimulatorError


class _Terminated(BaseException):
    """SIGTERM, raised where the program stands so that drafts are cleared away."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def main() -> None:
    """Exit codes: 0 done, 1 some runs failed, 2 wrong input, 130 Ctrl-C, 143 terminated."""
    from simulator.cli import commands

    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = commands.main(prog_name="simulator", standalone_mode=False)
    except SimulatorError as error:
        code = _say(str(error), 2)
    except KeyboardInterrupt as error:
        code = _say(_ending("interrupted", error), 130)
    except _Terminated as error:
        code = _say(_ending("terminated", error), 143)
    except MemoryError as error:
        code = _say(f"not enough memory for this scenario: {error or 'make it smaller'}", 2)
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except Exception as error:
        code = _click_error(error)
    sys.exit(code if isinstance(code, int) else 0)


def _ending(what: str, error: BaseException | None) -> str:
    """A sweep notes on the exception that its finished runs remain."""
    return f"{what}; {'; '.join(getattr(error, '__notes__', ['nothing was written']))}"


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _click_error(error: Exception) -> int:
    """A wrong flag or argument, Ctrl-C at a prompt; anything else is a defect of ours."""
    import click

    if isinstance(error, click.Abort):
        return _say(_ending("interrupted", error.__cause__ or error.__context__), 130)
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    raise error


if __name__ == "__main__":
    main()
