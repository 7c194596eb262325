"""``test``: what a plugin brings, held to what the built-in kinds are held to."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.options import plugin_option


@click.command("test")
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1, type=click.Path(path_type=Path))
@plugin_option
def test_command(scenarios: tuple[Path, ...], plugins: tuple[str, ...]) -> int:
    """Check what plugins bring, in small runs and by itself: one verdict a line.

    Each kind is tried where the first of the SCENARIOs names it, cut short, with the parameters
    that it has there; otherwise with its defaults in a small scenario.  The exit code is 1 if a
    check fails.

    \b
    Examples:
      python -m simulator test --plugin docs/examples/averaging.py
      python -m simulator test docs/examples/own_kinds.yaml --plugin docs/examples/own_kinds.py
    """
    from simulator.conformance import FAILED, examine, subjects_of
    from simulator.runs.plugins import load_plugins
    from simulator.runs.scenarios import load_scenario

    loaded = load_plugins(plugins)
    if loaded is None:
        raise click.UsageError("Missing option '--plugin': the file with what is to be tested.")
    given = [load_scenario(path, plugins=loaded) for path in scenarios]
    counts: dict[str, int] = {}
    last = ""
    for verdict in examine(subjects_of(loaded.kinds, loaded, given)):
        if verdict.name != last:
            click.echo(verdict.name)
        last = verdict.name
        detail = f": {verdict.detail}".replace("\n", "; ") if verdict.detail else ""
        click.echo(f"  {verdict.outcome:16}{verdict.check}{detail}")
        counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
    click.echo(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if FAILED in counts else 0
