"""Options that several commands share."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.errors import MissingError

if TYPE_CHECKING:
    from simulator.figures.style import Look


def _named(context: click.Context, option: click.Parameter, value: Path | str) -> Path:
    """An empty name would mean the folder that one is in."""
    if not str(value).strip():
        raise click.BadParameter("must name a folder (got '')", context, option)
    return Path(value)


def hush(quiet: bool) -> None:
    """``--quiet``: nothing is said of compiling either; of damage it is."""
    if quiet:
        os.environ["MURMURATION_QUIET"] = "1"  # worker processes have it too


def name_commands(commands: click.Group, called: str) -> str:
    """The name by which the program was called, which its help texts show from then on."""
    name = "murmuration" if Path(called).stem == "murmuration" else "python -m simulator"
    for command in (commands, *commands.commands.values()):
        if command.help is not None:
            command.help = re.sub(
                r"^( +)(python -m simulator|murmuration) ",
                rf"\1{name} ",
                command.help,
                flags=re.MULTILINE,
            )
    return name


class _Result(click.Path):
    """A result's folder, also by its name below results/ or results/sweeps/ alone."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        """The folder that holds a manifest."""
        given = Path(value)
        given = given.parent if given.name == "manifest.json" else given
        for place in (given, Path("results") / given, Path("results/sweeps") / given):
            if (place / "manifest.json").is_file():
                return place
        raise MissingError(f"{given}: no result is stored there; `list` shows what is")


RESULT = _Result()
out_option = click.option(
    "--out",
    type=click.Path(file_okay=False),
    callback=_named,
    default="results",
    show_default=True,
    help="The results root.",
)
#: Was the traceback of an error asked for (--debug)?
debugging = False

set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the scenario; may be repeated. Example: --set network.drop=0.2",
)


class _Seconds(click.FloatRange):
    """A time within a run."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """A number; not NaN, nor infinite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"must be a number of seconds (got {value})", param, ctx)
        return number


SECONDS = _Seconds(min=0)
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE_OR_MODULE",
    help="Python code with rules, losses, tasks, graphs, laws or metrics of your own; it is "
    "imported, so it runs.  May be repeated.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Local processes. [as many as there are cores]",
)


#: How figures are drawn.
_FIGURES = (
    click.option(
        "--format",
        "formats",
        default="png",
        show_default=True,
        metavar="FORMATS",
        help="png, pdf or svg, or several: png,pdf",
    ),
    click.option("--metric", help="Draw this metric. [what the task is judged by]"),
    click.option(
        "--labels",
        multiple=True,
        metavar="KEY=WORDS",
        help='Words for a key or a metric, e.g. "network.latency.mean=mean delay".',
    ),
    click.option(
        "--width",
        type=float,
        help="Inches: 3.3 for a column of a paper. [6.8, a page]",
    ),
)


def figure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all commands take that draw."""
    for option in reversed(_FIGURES):
        command = option(command)
    return command


def look_of(
    formats: str = "png",
    metric: str | None = None,
    labels: tuple[str, ...] = (),
    width: float | None = None,
) -> Look:
    """What these options ask for."""
    from simulator.figures.style import PAGE, Look, read_labels

    names = tuple(name.strip() for name in formats.split(",") if name.strip())
    return Look(names, metric, read_labels(labels), PAGE if width is None else width)
