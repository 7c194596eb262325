"""``python -m reproduction``: the command that reproduces the paper."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from simulator.cli.options import hush, jobs_option, out_option

CHOICES = Path(__file__).parent / "choices.yaml"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("experiments", nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="Small versions, in a minute or two.")
@jobs_option
@out_option
@click.option(
    "--choices",
    type=click.Path(path_type=Path),
    default=CHOICES,
    show_default="reproduction/choices.yaml",
    help="What the paper leaves open.",
)
@click.option("--force", is_flag=True, help="Compute again even what is there.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def commands(experiments: tuple[str, ...], choices: Path, quiet: bool, **how: Any) -> None:
    """Reproduce experiments of the paper: tables, figures and the verdict on its claims.

    EXPERIMENTS are `all` or some of: fig1, fig2-left, fig2-middle, fig2-right, fig3-left,
    fig3-middle, fig3-right, fig4, fig5, theorem1, theory, tuning, choices, beyond, private,
    claims (with all that they are read from). Files go to paper/ below --out (paper/quick/ with
    --quick), with a README.md that shows them all. What is computed is stored in paper/.work/, so
    that an interrupted reproduction goes on where it was.

    `validate` only checks the choices, `schema` prints their JSON Schema, for editors.

    \b
    Examples:
      python -m reproduction all --quick
      python -m reproduction fig2-left fig2-middle
      python -m reproduction claims --jobs 2
      python -m reproduction all --choices my_choices.yaml --out my_results
      python -m reproduction validate --choices my_choices.yaml
    """
    from reproduction.choices import ChoicesFile, load_choices
    from reproduction.reproduce import reproduce
    from simulator.sweeps.workers import RESUMED, noting

    hush(quiet)
    if experiments == ("validate",):
        load_choices(choices)
        click.echo(f"{choices}: valid")
        return
    if experiments == ("schema",):
        click.echo(json.dumps(ChoicesFile.model_json_schema(), indent=2, ensure_ascii=False))
        return
    started = time.perf_counter()
    done = reproduce(experiments, choices=choices, progress=not quiet, **how)
    with noting(RESUMED):
        for item in done:
            seconds, started = time.perf_counter() - started, time.perf_counter()
            if not quiet:
                news = f"{item.computed} computed, {item.stored} already there"
                click.echo(f"{item.id:<12} {seconds:6.1f} s  {news:<36} {item.files[0]}")
                if item.id == "claims":
                    _show_claims(item.files[0])


def _show_claims(file: Path) -> None:
    """The verdicts on the paper's claims, a line each."""
    import pandas as pd

    for row in pd.read_csv(file).to_dict("records"):
        interval = "" if pd.isna(row["low"]) else f"{row['low']:.3g} … {row['high']:.3g}"
        click.echo(f"{row['holds']:<10} {row['value']:>9.3g}  {interval:<19}  {row['claim']}")


def main() -> None:
    """Run the command, and end as ``python -m simulator`` does."""
    from simulator.__main__ import main as run

    run(lambda: commands)


if __name__ == "__main__":
    main()
