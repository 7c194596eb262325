"""The commands for many runs: ``sweep`` and ``compare``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import hush, jobs_option, out_option, plugin_option

if TYPE_CHECKING:
    from simulator.runs.plugins import Plugin
    from simulator.store.store import Store
    from simulator.sweeps.plan import Plan, Request
    from simulator.sweeps.sweep import Computed

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
    from simulator.sweeps.sweep import requested, write_sweep
    from simulator.sweeps.work import RESUMED, noting

    request = requested(file, _parsed(settings), seeds=seeds, target=target)
    computed, store = _compute(request, how)
    if computed is None:
        return 0
    with noting(RESUMED):
        result = write_sweep(computed, store, figures=how["figures"])
    if not how["quiet"]:
        from simulator.cli.sweep_terminal import show_sweep

        show_sweep(result, computed)
    return 1 if result.failed else 0


@click.command("compare")
@_options
@click.option(
    "--vary",
    metavar="KEY=A,B",
    help="The key to compare and its two values. [algorithm.mode=async,sync]",
)
@click.option(
    "--target",
    metavar="METRIC=LEVEL",
    help="What both sides are to reach, e.g. l2_error=0.05. [distance=1%, of the start's]",
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
    seeds: int | None,
    vary: str | None,
    target: str | None,
    limit_time: str | None,
    limit_communications: int | None,
    **how: Any,
) -> int:
    """Compare asynchronous with synchronous learning, or two values of any key, in simulated time.

    Both sides run on the same problems, networks and seeds until they reach the target, or a
    limit (by default the scenario's own). With --set over two keys the result is a phase diagram.

    \b
    Examples:
      python -m simulator compare scenarios/moons.yaml --seeds 10
      python -m simulator compare scenarios/phase_diagram.yaml
      python -m simulator compare scenarios/moons.yaml --set network.latency.sigma=0,1,2 --seeds 5
      python -m simulator compare my.yaml --vary algorithm.kind=mp,admm --target accuracy=0.85
    """
    from simulator.sweeps.comparison import comparison_request, write_comparison
    from simulator.sweeps.sweep import requested
    from simulator.sweeps.work import RESUMED, noting

    request = comparison_request(
        requested(file, _parsed(settings), seeds=seeds, target=target),
        vary=None if vary is None else _parsed((vary,), "--vary")[0],
        limit_time=None if limit_time is None else _limit_time(limit_time),
        limit_communications=limit_communications,
    )
    computed, store = _compute(request, how)
    if computed is None:
        return 0
    with noting(RESUMED):
        result = write_comparison(computed, request, store, figures=how["figures"])
    if not how["quiet"]:
        from simulator.cli.sweep_terminal import show_comparison

        show_comparison(result, computed)
    return 1 if result.failed else 0


def _parsed(settings: tuple[str, ...], option: str = "--set") -> list[tuple[str, list[Any]]]:
    from simulator.errors import ScenarioError
    from simulator.scenario.overrides import parse_override

    try:
        return [parse_override(setting) for setting in settings]
    except ScenarioError as error:
        raise ScenarioError(str(error).replace("--set", option, 1)) from None


def _limit_time(text: str) -> float | str:
    """A time as a scenario could give it; what is wrong with it otherwise is found there."""
    from simulator.errors import ScenarioError
    from simulator.scenario.yaml_positions import plain_value

    try:
        value: float | str | None = plain_value(text)
    except ValueError as error:
        raise ScenarioError(f"--limit-time {text[:40]}: {error}") from None
    if value is None or not text.strip():
        raise ScenarioError(f"--limit-time: must be a time like 1 h (got {text!r})")
    return value


def _compute(request: Request, how: dict[str, Any]) -> tuple[Computed | None, Store]:
    """Plan and run; None in place of runs when they were only to be listed."""
    from simulator.cli.sweep_terminal import list_runs, sweep_progress
    from simulator.store.store import Store
    from simulator.sweeps.plan import MOST_RUNS, make_plan, outline
    from simulator.sweeps.sweep import compute

    hush(how["quiet"])
    plugin: Plugin | None = None
    if how["plugin"] is not None:
        from simulator.runs.plugins import load_plugin

        plugin = load_plugin(how["plugin"])
    store = Store(how["out"])
    if how["max_runs"] is not None:
        request = replace(request, max_runs=how["max_runs"])
    if how["dry_run"] and request.runs > MOST_RUNS:
        click.echo("\n".join(outline(request, plugin)))
        return None, store
    plan: Plan = make_plan(request, plugin)
    if how["dry_run"]:
        list_runs(plan, store, plugin)
        return None, store
    with sweep_progress(plan.name, len(plan.runs), visible=not how["quiet"]) as progress:
        computed = compute(
            plan,
            store,
            plugin=plugin,
            jobs=how["jobs"],
            dask=how["dask"],
            force=how["force"],
            progress=progress,
        )
    return computed, store
