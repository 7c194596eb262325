"""The commands ``report`` and ``animate``: results to look at."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.options import SECONDS, plugin_option

_RESULTS = click.argument(
    "results", metavar="RESULT…", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.command("report")
@_RESULTS
@click.option(
    "-o",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write.  [RESULT/report.html, or report.html for several]",
)
@click.option("--open", "show", is_flag=True, help="Open it in a browser.")
@click.option(
    "--from",
    "window",
    type=SECONDS,
    default=0.0,
    metavar="T",
    help="Show messages from this simulated time on, in seconds.  [0]",
)
@plugin_option
def report_command(
    results: tuple[Path, ...],
    out: Path | None,
    show: bool,
    window: float,
    plugins: tuple[str, ...],
) -> None:
    """Make a page of results, sweeps or comparisons: one HTML file, everything inside.

    \b
    Examples:
      python -m simulator report results/moons-17fc246b --open
      python -m simulator report results/moons-* -o both.html
      python -m simulator report results/sweeps/phase_diagram-0a1b2c3d
    """
    from simulator.report.page import write_page

    place = write_page(results, out, plugins=plugins or None, window=window)
    click.echo(str(place))
    if show:
        click.launch(place.absolute().as_uri())


@click.command("animate")
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The picture to write, .gif or .png (animated).  [RESULT/models.gif]",
)
@plugin_option
def animate_command(result: Path, out: Path | None, plugins: tuple[str, ...]) -> None:
    """Make a moving picture of the agents' models; the run needs record: {models: true}.

    \b
    Example:
      python -m simulator animate results/moons-17fc246b -o moons.gif
    """
    from simulator.report.animation import write_animation

    click.echo(str(write_animation(result, out, plugins=plugins or None)))
