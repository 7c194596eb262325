"""The commands for many runs: ``sweep`` and ``compare``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import (
    figure_options,
    hush,
    jobs_option,
    look_of,
    out_option,
    plugin_option,
)

if TYPE_CHECKING:
    from simulator.sweeps.plan import Plan
    from simulator.sweeps.request import Request
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
    from simulator.sweeps.plan import make_plan
    from simulator.sweeps.sweep import requested, write_sweep
    from simulator.sweeps.work import RESUMED, noting

    work = _Work(how)
    request = work.limited(requested(file, _parsed(settings), seeds=seeds, target=target))
    if work.only_outline(request):
        return 0
    plan = make_plan(request, work.plugins)
    if how["dry_run"]:
        work.list(plan)
        return 0
    computed = work(plan)
    with noting(RESUMED):
        draw: Any = None
        if work.look is not None:
            from simulator.figures.sweep_figures import draw_sweep  # Matplotlib

            draw = partial(draw_sweep, look=work.look)
        result = write_sweep(computed, work.store, draw)
    if not how["quiet"]:
        from simulator.cli.sweep_terminal import show_sweep

        show_sweep(result, computed)
    return 1 if result.failed else 0


@click.command("compare")
@_options
@click.option(
    "--vary",
    metavar="KEY=A,B",
    help="The key to compare and its values; speed-ups are of the first. "
    "[algorithm.mode=async,sync]",
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
    type=float,
    help="How many times the least communications of its values a choice may cost. [1.25]",
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
    seeds: int | None,
    vary: str | None,
    tunes: tuple[str, ...],
    tune_budget: float | None,
    frontier: bool,
    knobs: tuple[str, ...],
    target: str | None,
    limit_time: str | None,
    limit_communications: int | None,
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
    """
    from simulator.sweeps.comparison import comparison_request
    from simulator.sweeps.sweep import requested

    asked = requested(file, _parsed(settings), seeds=seeds, target=target)
    drawn = frontier or asked.frontier is not None
    if knobs and not drawn:
        raise click.UsageError("--knob: give --frontier as well")
    if tunes and drawn:
        raise click.UsageError("--tune: a frontier shows all values, and takes none")
    work = _Work(how)
    request = work.limited(
        comparison_request(
            asked,
            vary=None if vary is None else _parsed((vary,), "--vary")[0],
            tune=_knobs(tunes, "--tune") if tunes else None,
            tune_budget=tune_budget,
            limit_time=None if limit_time is None else _limit_time(limit_time),
            limit_communications=limit_communications,
            curves=not drawn,
        )
    )
    if drawn:
        return _frontier(work, request, _knobs(knobs, "--knob"))
    return _compare(work, request)


def _compare(work: _Work, request: Request) -> int:
    """Tune, compute and show a comparison."""
    from simulator.sweeps.comparison import compute_comparison, write_comparison
    from simulator.sweeps.knobs import plan_knobs
    from simulator.sweeps.plan import make_plan
    from simulator.sweeps.work import RESUMED, noting

    if work.only_outline(request):
        return 0
    if work.how["dry_run"]:
        plan = make_plan(request, work.plugins)
        if request.tune:
            work.list(plan_knobs(request, request.tune, work.plugins, held_out=True).plan)
            click.echo("then, with the values taken in place of the scenario's own:")
        work.list(plan)
        return 0
    computed, request, tuning = compute_comparison(request, work.plugins, work.store, work)
    with noting(RESUMED):
        draw: Any = None
        if work.look is not None:
            from simulator.figures.comparison_figures import draw_comparison  # Matplotlib

            draw = partial(draw_comparison, look=work.look)
        result = write_comparison(computed, request, work.store, tuning, draw)
    if not work.how["quiet"]:
        from simulator.cli.sweep_terminal import show_comparison

        show_comparison(result, computed, None if tuning is None else tuning.computed)
    return 1 if result.failed else 0


def _frontier(work: _Work, request: Request, knobs: dict[str, dict[str, list[Any]]]) -> int:
    """Compute and show both sides' frontiers."""
    from simulator.sweeps.frontier import frontier_request, plan_frontier, write_frontier
    from simulator.sweeps.work import RESUMED, noting

    request = frontier_request(request, knobs)
    planned = plan_frontier(request, work.plugins)
    if work.how["dry_run"]:
        work.list(planned.plan)
        return 0
    computed = work(planned.plan)
    with noting(RESUMED):
        draw: Any = None
        if work.look is not None:
            from simulator.figures.frontier_figures import draw_frontier  # Matplotlib

            draw = partial(draw_frontier, look=work.look)
        result = write_frontier(computed, planned, request, work.store, draw)
    if not work.how["quiet"]:
        from simulator.cli.sweep_terminal import show_frontier

        show_frontier(result, computed)
    return 1 if result.failed else 0


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


class _Work:
    """What the options say about how runs are made; called with a plan, it computes it."""

    def __init__(self, how: dict[str, Any]):
        from simulator.runs.plugins import load_plugins
        from simulator.store.store import Store

        hush(how["quiet"])
        self.how, self.told = how, False
        asked = {name: how.pop(name) for name in ("formats", "metric", "labels", "width")}
        self.look = look_of(**asked) if how["figures"] else None
        self.plugins, self.store = load_plugins(how["plugins"]), Store(how["out"])

    def limited(self, request: Request) -> Request:
        """The request with the limit that was given."""
        limit = self.how["max_runs"]
        return request if limit is None else replace(request, max_runs=limit)

    def only_outline(self, request: Request) -> bool:
        """Show an outline where a list of the runs was asked for that would be too long."""
        from simulator.sweeps.plan import MOST_RUNS, outline

        if self.how["dry_run"] and request.runs > MOST_RUNS:
            click.echo("\n".join(outline(request, self.plugins)))
            return True
        return False

    def list(self, plan: Plan) -> None:
        """One line a run."""
        from simulator.cli.sweep_terminal import list_runs

        list_runs(plan, self.store)

    def __call__(self, plan: Plan) -> Computed:
        from simulator.cli.sweep_terminal import sweep_progress
        from simulator.sweeps.sweep import compute

        visible = not self.how["quiet"]
        if visible and "engine" in plan.request.defaults and not self.told:
            self.told = True
            click.echo("engine:   compiled, event for event as the other (--set engine=simpy)")
        with sweep_progress(plan.name, plan.distinct, visible) as progress:
            return compute(
                plan,
                self.store,
                jobs=self.how["jobs"],
                dask=self.how["dask"],
                force=self.how["force"],
                progress=progress,
            )
