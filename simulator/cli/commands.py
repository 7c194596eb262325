"""The command line.  Heavy imports happen inside the commands, so that help is quick."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator import __version__
from simulator.cli import options
from simulator.cli.event_commands import inspect_command, trace_command
from simulator.cli.options import (
    figure_options,
    hush,
    look_of,
    out_option,
    plugin_option,
    set_option,
)
from simulator.cli.result_commands import (
    animate_command,
    draw_command,
    list_command,
    report_command,
    show_command,
)
from simulator.cli.sweep import compare_command, sweep_command

if TYPE_CHECKING:
    from simulator.scenario.schema import Scenario

_COMMANDS = {"context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100}}


@click.group(**_COMMANDS)  # type: ignore[call-overload, untyped-decorator, unused-ignore]
@click.version_option(__version__, prog_name="murmuration")
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error as well.")
def commands(debug: bool) -> None:
    """Murmuration: simulate peers that learn personalized models from their neighbours.

    \b
    Examples:
      python -m simulator run scenarios/moons.yaml
      python -m simulator run scenarios/moons.yaml --set network.drop=0.3 --seed 7
      python -m simulator sweep scenarios/moons.yaml --set network.drop=0,0.2,0.5 --seeds 5
      python -m simulator compare scenarios/moons.yaml --seeds 10
      python -m simulator report results/moons-17fc246b --open
      python -m simulator validate scenarios/*.yaml
    """
    options.debugging = debug


for _command in (
    sweep_command,
    compare_command,
    list_command,
    show_command,
    draw_command,
    report_command,
    animate_command,
    inspect_command,
    trace_command,
):
    commands.add_command(_command)


@commands.command("run")
@click.argument("scenario_file", metavar="SCENARIO", type=click.Path(path_type=Path))
@set_option
@click.option("--seed", type=int, help="Override the scenario's seed.")
@out_option
@plugin_option
@click.option("--force", is_flag=True, help="Compute again even if the result is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--figures/--no-figures", default=True, help="Draw the figures (default) or not.")
@click.option("--report", is_flag=True, help="Make a page of the result too: report.html.")
@figure_options
def run_command(
    scenario_file: Path,
    settings: tuple[str, ...],
    seed: int | None,
    out: Path,
    plugins: tuple[str, ...],
    force: bool,
    as_json: bool,
    quiet: bool,
    figures: bool,
    report: bool,
    **wishes: Any,
) -> None:
    """Run one scenario and store its result below --out.

    \b
    Examples:
      python -m simulator run scenarios/moons.yaml
      python -m simulator run scenarios/moons.yaml --set algorithm.mode=sync
      python -m simulator run scenarios/moons.yaml --set network.latency.mean="1 s"
      python -m simulator run my.yaml --plugin my_rule.py --json
    """
    from simulator.runs.progress import run_progress
    from simulator.runs.result import Result, complete_figures, save_result
    from simulator.runs.simulation import Stopwatch, simulate
    from simulator.runs.tasks import Run, unfinished
    from simulator.store.store import Store
    from simulator.sweeps.workers import noting

    hush(quiet)
    if report:
        from simulator.report.page import plotly_script, write_page

        plotly_script()  # said before a long run, if it is missing
    draw = None
    if figures:
        look = look_of(**wishes)
        draw = partial(Result.draw, look=look)
    scenario = _load(scenario_file, settings, seed, plugins)
    store = Store(out)
    task = Run(scenario, store, reads=None)
    reused = not force and not unfinished([task])
    if reused:
        folder = task.place
        if draw is not None:
            complete_figures(store, scenario, folder, draw, again=look != look_of())
    else:
        store.check_writable()
        visible = not (quiet or as_json)
        with run_progress(scenario.name, visible) as progress, Stopwatch() as watch:
            result = simulate(scenario, progress=progress)
        folder = save_result(
            store,
            result,
            full_hash=task.full_hash,
            wall_time=watch.seconds,
            draw=draw,
            force=force,
        )
        if visible and watch.compiling > 5 and not os.environ.get("MURMURATION_QUIET"):
            click.echo(f"compiled: in {watch.compiling:.0f} s, which later runs save", err=True)
    with noting(f"the result is in {folder}"):
        manifest = store.manifest(folder)
        page = write_page([folder], plugins=scenario.plugins) if report else None
        if as_json:
            about = {"folder": str(folder), "reused": reused, **manifest["summary"]}
            click.echo(json.dumps(about))
        elif not quiet:
            from simulator.cli.terminal import show_run

            show_run(manifest, folder, reused, page)


@commands.command("validate")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@plugin_option
def validate_command(files: tuple[Path, ...], plugins: tuple[str, ...]) -> int:
    """Check scenarios and sweeps without running them; all errors of all are shown.

    \b
    Example:
      python -m simulator validate scenarios/*.yaml
    """
    from simulator.errors import ScenarioError
    from simulator.runs.plugins import load_plugins
    from simulator.shipped import expanded
    from simulator.sweeps.plan import make_plan
    from simulator.sweeps.sweep_file import read_request

    loaded = load_plugins(plugins)
    wrong = 0
    for file in expanded(files):
        try:
            plan = make_plan(read_request(file), loaded)  # a scenario is a sweep of one run
            _check_problem(file, plan.runs[0].scenario)
        except ScenarioError as error:
            click.echo(str(error), err=True)
            wrong += 1
        else:
            click.echo(f"{file}: valid")
    return 2 if wrong else 0


def _check_problem(file: Path, scenario: Scenario) -> None:
    from simulator.errors import ScenarioError
    from simulator.problem.build import check_problem

    try:
        check_problem(scenario)
    except ScenarioError as error:
        raise ScenarioError(f"{file}: with seed {scenario.seed}: {error}") from None


@commands.command("test")
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


@commands.command("schema")
@click.option(
    "--of",
    "kind",
    type=click.Choice(["scenario", "sweep"]),
    default="scenario",
    show_default=True,
    help="The kind of file.",
)
@plugin_option
def schema_command(kind: str, plugins: tuple[str, ...]) -> None:
    """Print the JSON Schema of scenario files, for editors; or of sweep files.

    \b
    Examples:
      python -m simulator schema > scenarios/scenario.schema.json
      python -m simulator schema --of sweep > scenarios/sweep.schema.json
    """
    from simulator.runs.plugins import load_plugins, schema_for
    from simulator.scenario.files import json_schema
    from simulator.sweeps.sweep_file import sweep_schema

    scenario = kind == "scenario"
    schema = json_schema(schema_for(load_plugins(plugins))) if scenario else sweep_schema()
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))


def _load(
    file: Path, settings: tuple[str, ...], seed: int | None, plugins: tuple[str, ...]
) -> Scenario:
    from simulator.errors import ScenarioError
    from simulator.runs.scenarios import load_scenario
    from simulator.scenario.overrides import parse_override

    overrides: dict[str, Any] = {}
    for setting in settings:
        key, values = parse_override(setting)
        if len(values) != 1:
            raise ScenarioError(f"--set {setting}: run takes exactly one value a key")
        if key in overrides:
            raise ScenarioError(f"--set {key}: given twice")
        overrides[key] = values[0]
    if seed is not None:
        if "seed" in overrides:
            raise ScenarioError("--seed and --set seed=… are the same; give one")
        overrides["seed"] = seed
    return load_scenario(file, overrides, plugins=plugins)


@commands.command("example")
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
