"""The command that reproduces the paper."""

from __future__ import annotations

import time
from pathlib import Path

import click

from simulator.cli.options import hush, jobs_option, out_option


@click.command("reproduce")
@click.argument("experiments", nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="Small versions, in a minute or two.")
@jobs_option
@out_option
@click.option(
    "--choices",
    type=click.Path(path_type=Path),
    default=Path("scenarios/paper/choices.yaml"),
    show_default=True,
    help="What the paper leaves open.",
)
@click.option("--force", is_flag=True, help="Compute again even what is there.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def reproduce_command(
    experiments: tuple[str, ...],
    quick: bool,
    jobs: int | None,
    out: Path,
    choices: Path,
    force: bool,
    quiet: bool,
) -> None:
    """Reproduce experiments of the paper: tables, figures and the verdict on its claims.

    EXPERIMENTS are `all` or some of: fig1, fig2-left, fig2-middle, fig2-right, fig3-left,
    fig3-middle, fig3-right, fig4, fig5, theorem1, theory, tuning, choices, beyond, private,
    claims. Files go to paper/ below --out (paper/quick/ with --quick), with a README.md that shows
    them all. What is computed is stored, so that an interrupted reproduction goes on where it was.

    \b
    Examples:
      python -m simulator reproduce all --quick
      python -m simulator reproduce fig2-left fig2-middle
      python -m simulator reproduce claims --jobs 2
      python -m simulator reproduce all --choices my_choices.yaml --out my_results
    """
    from simulator.cli.sweep_terminal import show_claims, sweep_progress
    from simulator.paper.reproduction import reproduce
    from simulator.sweeps.work import RESUMED, noting

    hush(quiet)
    started = time.perf_counter()
    done = reproduce(
        experiments,
        choices=choices,
        out=out,
        quick=quick,
        jobs=jobs,
        force=force,
        showing=lambda name, total: sweep_progress(name, total, visible=not quiet),
    )
    with noting(RESUMED):
        for item in done:
            seconds, started = time.perf_counter() - started, time.perf_counter()
            if quiet:
                continue
            news = f"{item.computed} computed, {item.stored} already there"
            click.echo(f"{item.id:<12} {seconds:6.1f} s  {news:<36} {item.files[0]}")
            if item.id == "claims":
                show_claims(item.files[0])
