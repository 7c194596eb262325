"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="The results root.",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the scenario; may be repeated. Example: --set network.drop=0.2",
)
plugin_option = click.option(
    "--plugin",
    metavar="FILE_OR_MODULE",
    help="Python code with rules of your own (RULES = {...}); it is imported, so it runs.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Local processes. [as many as there are cores]",
)
