"""The commands for what is stored: ``list``, ``show``, ``draw``, ``report`` and ``animate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import (
    RESULT,
    SECONDS,
    figure_options,
    look_of,
    out_option,
    plugin_option,
)

if TYPE_CHECKING:
    pass

_result = click.argument("folder", metavar="RESULT", type=RESULT)


@click.command("list")
@out_option
def list_command(out: Path) -> None:
    """List what is stored below --out: runs, sweeps and comparisons, the newest first.

    \b
    Example:
      python -m simulator list
    """
    from simulator.cli.terminal import Column, number, show_table
    from simulator.runs.result import TELLING, results_table

    table = results_table(out)
    if table.empty:
        click.echo(f"{out}: nothing is stored there")
        return
    errors = [name for name in TELLING if name in table]
    rows = [row for _, row in table.astype(object).where(table.notna(), None).iterrows()]

    def shown(name: str) -> list[str]:
        found = [row[name] for row in rows]
        return ["" if v is None else v if isinstance(v, str) else number(float(v)) for v in found]

    columns = [
        Column("result", [str(Path(row["folder"]).relative_to(out)) for row in rows]),
        Column("what", [_what(row) for row in rows]),
        *(Column(name, shown(name)) for name in ("seed", "agents", "runs")),
        *(Column(name.replace("_", " "), shown(name)) for name in ("communications", *errors)),
    ]
    show_table(columns)


def _what(row: Any) -> str:
    return str(row["what"]) if row["algorithm"] is None else f"{row['algorithm']}, {row['mode']}"


@click.command("show")
@_result
def show_command(folder: Path) -> None:
    """Show the summary of a stored run, sweep or comparison again.

    \b
    Example:
      python -m simulator show results/moons-17fc246b
    """
    from simulator.store.store import RESULTS_VERSION, check_files, read_manifest

    manifest = read_manifest(folder)
    check_files(folder, manifest, figures=True)
    if "summary" in manifest:
        from simulator.cli.terminal import show_run

        show_run(manifest, folder, reused=False)
    else:
        from simulator.cli.sweep_terminal import show_any
        from simulator.sweeps.sweep import load_sweep

        show_any(load_sweep(folder))
    if manifest["results_version"] != RESULTS_VERSION:
        click.echo(
            f"version:  {manifest['results_version']}; this program computes results of version "
            f"{RESULTS_VERSION}, and does not reuse it"
        )


@click.command("draw")
@_result
@figure_options
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the figures into this folder. [the result's own]",
)
@plugin_option
def draw_command(folder: Path, to: Path | None, plugins: tuple[str, ...], **figures: Any) -> None:
    """Draw the figures of a stored run, sweep or comparison again, without computing.

    \b
    Examples:
      python -m simulator draw results/moons-17fc246b --format pdf --width 3.3 --to figures
      python -m simulator draw results/sweeps/moons-0123abcd --metric l2_error
    """
    from simulator.store.store import read_manifest

    look = look_of(**figures)
    target = folder if to is None else to
    target.mkdir(parents=True, exist_ok=True)
    if "summary" not in read_manifest(folder):
        from simulator.sweeps.sweep import load_sweep

        load_sweep(folder).draw(target, look)
    else:
        from simulator.runs.result import Result
        from simulator.store.store import Store

        result = Result.load(folder, plugins=plugins or None)
        if target == folder:
            Store(folder.parent).add_figures(folder, lambda draft: result.draw(draft, look))
        else:
            result.draw(target, look)
    for path in sorted(target.iterdir()):
        if path.suffix.removeprefix(".") in look.formats:
            click.echo(path)


@click.command("report")
@click.argument("results", metavar="RESULT…", nargs=-1, required=True, type=RESULT)
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
@_result
@click.option(
    "-o",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The picture to write, .gif or .png (animated).  [RESULT/models.gif]",
)
@plugin_option
def animate_command(folder: Path, out: Path | None, plugins: tuple[str, ...]) -> None:
    """Make a moving picture of the agents' models; the run needs record: {models: true}.

    \b
    Example:
      python -m simulator animate results/moons-17fc246b -o moons.gif
    """
    from simulator.report.animation import write_animation

    click.echo(str(write_animation(folder, out, plugins=plugins or None)))
