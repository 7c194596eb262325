"""The commands for many runs: ``sweep`` and ``compare``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from simulator.cli.options import (
    figure_options,
    hush,
    jobs_option,
    look_of,
    out_option,
    plugin_option,
)

_OPTIONS = (
    click.argument("file", metavar="SCENARIO_OR_SWEEP_FILE", type=click.Path(path_type=Path)),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUES",
        help="Values of a key, with commas between them; several --set make a grid.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1),
        help="So many runs of each combination: the scenario's seed and those after it. [1]",
    ),
    click.option(
        "--max-runs",
        type=click.IntRange(min=1),
        help="Refuse to make more runs than this. [10000]",
    ),
    jobs_option,
    click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    out_option,
    plugin_option,
    click.option("--force", is_flag=True, help="Compute again even what is there."),
    click.option("--dry-run", is_flag=True, help="List the runs and do nothing."),
    click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--figures/--no-figures", default=True, help="Draw the figures (default) or not."),
    figure_options,
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What both commands take."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("sweep")
@_options
@click.option(
    "--target",
    metavar="METRIC=LEVEL",
    help="Stop each run where it reaches this, e.g. l2_error=0.05, or distance=1% of the start's.",
)
def sweep_command(
    file: Path, settings: tuple[str, ...], seeds: int | None, target: str | None, **how: Any
) -> int:
    """Run every combination of values with several seeds.

    Each run is an ordinary result below --out: what is there is not computed again, so that a
    sweep which was interrupted goes on where it was. Tables (runs.csv, summary.csv, curves.csv)
    and figures are written below --out in sweeps/.

    \b
    Examples:
      python -m simulator sweep scenarios/moons.yaml --set network.drop=0,0.2,0.5 --seeds 5
      python -m simulator sweep scenarios/moons.yaml --set network.latency.mean="10 ms,1 s" --jobs 2
      python -m simulator sweep my_sweep.yaml --dry-run
      python -m simulator sweep my_sweep.yaml --dask tcp://10.0.0.1:8786
    """
    return _study(file, settings, "sweep", {"seeds": seeds, "target": target}, how)


@click.command("compare")
@_options
@click.option(
    "--vary",
    metavar="KEY=A,B",
    help="The key to compare and its values; speed-ups are of the first. "
    "[algorithm.mode=async,sync]",
)
@click.option(
    "--side",
    "sides",
    multiple=True,
    metavar="NAME[:KEY=VALUE]",
    help="Compare sides of several keys, each repeated with its name, in place of --vary.",
)
@click.option(
    "--tune",
    "tunes",
    multiple=True,
    metavar="SIDE:KEY=VALUES",
    help="Let a side choose among these values, on ten held-out seeds, e.g. "
    'sync:network.retransmit_after="100 ms,1 s,never".',
)
@click.option(
    "--tune-budget",
    metavar="NUMBER",
    help="How many times the least communications of its values a choice may cost, or of another "
    'side\'s choice: "1.1 of async". [1.25]',
)
@click.option(
    "--frontier",
    is_flag=True,
    help="Draw time against communications to target over all values of a knob of each side.",
)
@click.option(
    "--knob",
    "knobs",
    multiple=True,
    metavar="SIDE:KEY=VALUES",
    help="Another knob for --frontier. [async:clock.rate, sync:network.retransmit_after]",
)
@click.option(
    "--target",
    metavar="METRIC=LEVEL",
    help="What all sides are to reach, e.g. l2_error=0.05; none: each run goes on to its limit. "
    "[distance=1%, of the start's]",
)
@click.option("--limit-time", metavar="TIME", help="Give up after this simulated time, e.g. 1 h.")
@click.option(
    "--limit-communications",
    type=click.IntRange(min=1),
    help="Give up after so many communications.",
)
def compare_command(
    file: Path,
    settings: tuple[str, ...],
    vary: str | None,
    sides: tuple[str, ...],
    tunes: tuple[str, ...],
    frontier: bool,
    knobs: tuple[str, ...],
    limit_time: str | None,
    tune_budget: str | None,
    **how: Any,
) -> int:
    """Compare asynchronous with synchronous learning, or values of any key, in simulated time.

    Both sides run on the same problems, networks and seeds until they reach the target, or a
    limit: by default 20,000 messages an agent. With --set over two keys the result is a phase
    diagram.

    \b
    Examples:
      python -m simulator compare scenarios/moons_knn.yaml --set clock.rate=50 --seeds 5
      python -m simulator compare scenarios/phase_diagram.yaml
      python -m simulator compare scenarios/moons.yaml --set network.latency.sigma=0,1,2 --seeds 5
      python -m simulator compare my.yaml --vary algorithm.kind=mp,admm --target accuracy=0.75
      python -m simulator compare my.yaml --vary "algorithm={kind: mp},{kind: djam}" --target none
      python -m simulator compare my.yaml --tune sync:network.retransmit_after="100 ms,1 s,never"
      python -m simulator compare my.yaml --frontier --seeds 10
      python -m simulator compare my.yaml --side gossip --side rounds:algorithm.mode=sync \\
          --side rounds:rounds.barrier=neighbours
    """
    if vary is not None and sides:
        raise click.UsageError("--side: give --vary or sides, not both")
    asked = {
        **{name: how.pop(name) for name in ("seeds", "target", "limit_communications")},
        "vary": None if vary is None else _parsed((vary,), "--vary")[0],
        "sides": _sides(sides) if sides else None,
        "tune": _knobs(tunes, "--tune") if tunes else None,
        "tune_budget": None if tune_budget is None else _plain("--tune-budget", tune_budget),
        "knobs": _knobs(knobs, "--knob") if knobs else None,
        "limit_time": None if limit_time is None else _plain("--limit-time", limit_time),
    }
    return _study(file, settings, "frontier" if frontier else None, asked, how)


def _study(
    file: Path, settings: tuple[str, ...], what: Any, asked: dict[str, Any], how: dict[str, Any]
) -> int:
    """Ask for it, list it or compute it, and show what came out."""
    from simulator.cli.sweep_terminal import list_runs, show_any
    from simulator.runs.plugins import load_plugins
    from simulator.store.store import Store
    from simulator.sweeps.plan import outline
    from simulator.sweeps.request import MOST_RUNS
    from simulator.sweeps.study import Work, plans, requested, study
    from simulator.sweeps.sweep import Sweep

    quiet, dry_run, limit = how["quiet"], how["dry_run"], how["max_runs"]
    hush(quiet)
    look = look_of(**{name: how[name] for name in ("formats", "metric", "labels", "width")})
    what, request = requested(file, _parsed(settings), what, max_runs=limit or MOST_RUNS, **asked)
    if asked.get("knobs") and what != "frontier":
        raise click.UsageError("--knob: give --frontier as well")
    if asked.get("tune") and what == "frontier":
        raise click.UsageError("--tune: a frontier shows all values, and takes none")
    plugins, store = load_plugins(how["plugins"]), Store(how["out"])
    if dry_run and request.runs > MOST_RUNS and what != "frontier":
        click.echo("\n".join(outline(request, plugins)))
        return 0
    if dry_run:
        for number, plan in enumerate(plans(what, request, plugins)):
            if number:
                click.echo("then, with the values taken in place of the scenario's own:")
            list_runs(plan, store)
        return 0
    if not quiet and "engine" in request.defaults:
        click.echo("engine:   compiled, event for event as the other (--set engine=simpy)")
    compute = {name: how[name] for name in ("jobs", "dask", "force")}
    work = Work(store, plugins, **compute, progress=not quiet)

    def draw(found: Sweep, folder: Path) -> None:
        found.draw(folder, look)

    result, computed = study(what, request, work, draw if how["figures"] else None)
    if not quiet:
        show_any(result, computed)
    return 1 if result.failed else 0


def _sides(texts: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """``NAME:KEY=VALUE`` as ``{name: {key: value}}``; a name alone is a side as the scenario is."""
    from simulator.errors import ScenarioError

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        side, _, setting = text.partition(":")
        own = found.setdefault(side.strip(), {})
        for key, values in _parsed((setting,), f"--side {side}:") if setting else ():
            if len(values) > 1 or key in own:
                raise ScenarioError(f"--side {side}: {key}: give one value")
            own[key] = values[0]
    return found


def _knobs(texts: tuple[str, ...], option: str) -> dict[str, dict[str, list[Any]]]:
    """``SIDE:KEY=VALUES`` as ``{side: {key: values}}``."""
    from simulator.errors import ScenarioError

    found: dict[str, dict[str, list[Any]]] = {}
    for text in texts:
        side, colon, setting = text.partition(":")
        if not colon or "=" in side:
            raise ScenarioError(
                f"{option} {text[:60]}: expected SIDE:KEY=VALUES, like sync:KEY=1,2"
            )
        if side in found:
            raise ScenarioError(f"{option} {side}: given twice")
        key, values = _parsed((setting,), f"{option} {side}:")[0]
        found[side] = {key: values}
    return found


def _parsed(settings: tuple[str, ...], option: str = "--set") -> list[tuple[str, list[Any]]]:
    from simulator.errors import ScenarioError
    from simulator.scenario.overrides import parse_override

    try:
        return [parse_override(setting) for setting in settings]
    except ScenarioError as error:
        raise ScenarioError(str(error).replace("--set", option, 1)) from None


def _plain(option: str, text: str) -> Any:
    """A value as a file could give it; what is wrong with it otherwise is found there."""
    from simulator.errors import ScenarioError
    from simulator.scenario.yaml_positions import plain_value

    try:
        value = plain_value(text)
    except ValueError as error:
        raise ScenarioError(f"{option} {text[:40]}: {error}") from None
    if value is None or not text.strip():
        raise ScenarioError(f"{option}: must be a value like 1 h or 1.25 (got {text!r})")
    return value
