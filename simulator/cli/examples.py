"""The command that shows what is shipped."""

from __future__ import annotations

import click


@click.command("example")
@click.argument("name", required=False)
def example_command(name: str | None) -> None:
    """List the scenarios that come with the program, or print one of them.

    \b
    Examples:
      python -m simulator example
      python -m simulator example moons > moons.yaml
    """
    from simulator.errors import SimulatorError
    from simulator.scenario.mistakes import did_you_mean
    from simulator.shipped import example, examples, story

    known = examples()
    if name is None:
        wide = max(map(len, known)) + 2
        for each, path in known.items():
            click.echo(_folded(each, story(path), wide))
        return
    wanted = known.get(name.removeprefix("scenarios/").removesuffix(".yaml"))
    if wanted is None:
        hint = did_you_mean(name, known)
        raise SimulatorError(f"example {name}: not shipped;{hint} allowed: {', '.join(known)}")
    click.echo(example(wanted), nl=False)


def _folded(name: str, text: str, wide: int) -> str:
    """A name and a text beside it, in lines of 80 columns."""
    lines = click.wrap_text(text, 80 - wide).splitlines() or [""]
    return "\n".join(f"{name if k == 0 else '':<{wide}}{line}" for k, line in enumerate(lines))
