"""One run: build the problem, advance the engine from sample to sample, measure, sum up."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from agents.running import RuleError
from simulator.engines.reference.engine import SimpyEngine
from simulator.engines.setup import Setup, prepare
from simulator.engines.watch import Watch
from simulator.errors import ScenarioError, SimulatorError
from simulator.problem.build import build_problem
from simulator.problem.problem import Floats, Problem
from simulator.runs.limits import check_run, too_many_samples
from simulator.runs.plugins import Given
from simulator.runs.scenarios import load_scenario
from simulator.scenario.schema import MOST_SAMPLES, Scenario, percentage
from simulator.seeds import Streams
from simulator.theory.metrics import Followed, Target, View
from simulator.theory.objectives import consensus_model

if TYPE_CHECKING:
    from simulator.engines.compiled.engine import CompiledEngine

Row = dict[str, float]
Engine: TypeAlias = "SimpyEngine | CompiledEngine"
#: Called after each sample with the row and the share of the run that is done, 0 … 1.
Progress = Callable[[Row, float], None]


@dataclass(frozen=True)
class Result:
    """All that came out of a run."""

    #: None only while it travels from a worker.
    scenario: Scenario
    problem: Problem
    #: One row a sample: time, counts and metrics.
    trace: pd.DataFrame
    #: One row an agent.
    agents: pd.DataFrame
    #: Final figures, comparable between runs of the same scenario: no wall-clock times.
    summary: dict[str, Any]
    #: Final models, and the minimiser of the rule's objective if it has one; (n, p).
    models: Floats
    optimum: Floats | None


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    plugins: Given = None,
    progress: Progress | None = None,
) -> Result:
    """Run a scenario, or a scenario file with its plugins, and return the result; writes nothing.

    >>> from simulator import load_scenario, run
    >>> result = run(load_scenario("scenarios/moons.yaml"))     # doctest: +SKIP
    >>> result.trace[["time", "l2_error"]].tail(1)              # doctest: +SKIP
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, plugins=plugins)
    elif plugins is not None:
        raise SimulatorError("plugins belong to a file: give them to load_scenario")
    # The number of BLAS threads changes the last bits of sums; results must not depend on cores.
    # Overflow shows in the models, which every update checks, so NumPy need not warn of it.
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
        try:
            return _run(scenario, progress)
        except RuleError as error:
            raise SimulatorError(str(error)) from error


def _run(scenario: Scenario, progress: Progress | None) -> Result:
    rule = scenario.algorithm.rule
    streams = Streams(scenario.seed, scenario.problem_seed)
    problem = build_problem(scenario, streams)
    metrics = View(scenario, problem)
    consensus = consensus_models(scenario, problem)
    if rule is not None and problem.W.nnz == 0:
        metrics.notes += ("the graph has no links, so nobody sends anything",)
    if rule is None or problem.W.nnz == 0:
        alone = consensus if scenario.algorithm.kind == "consensus" else problem.solitary
        return _silent_run(scenario, problem, metrics, consensus, alone)

    setup = prepare(scenario, problem, streams, rule)
    check_run(setup)
    target = _target(scenario, metrics, setup.models)
    watch = None
    metric = None if target is None else metrics.metric(target.metric)
    if target is not None and isinstance(metric, Followed):
        reference = metric.reference(metrics)
        assert reference is not None
        watch = Watch(target, reference, setup.models)
    engine = start_engine(setup, watch)
    rows = _advance(scenario, engine, metrics, target, watch, progress)
    engine.check()
    reached = watch.reached if watch is not None else _reached_at_sample(rows, target)
    return _finish(
        scenario,
        problem,
        metrics,
        consensus,
        rows,
        engine.models,
        target=target,
        reached=reached,
        exhausted=engine.exhausted,
    )


def _silent_run(
    scenario: Scenario, problem: Problem, metrics: View, consensus: Floats, models: Floats
) -> Result:
    """A run in which nobody sends: one sample, which meets the target or never does."""
    target = _target(scenario, metrics, models)
    names = ("communications", "delivered", "dropped", "in_flight", "stale", "skipped", "bytes")
    counts = dict.fromkeys(names, 0)
    rows: list[Row] = [{"time": 0.0, **counts, **metrics.measure(models), "staleness": 0.0}]
    reached = _reached_at_sample(rows, target)
    return _finish(scenario, problem, metrics, consensus, rows, models, target, reached)


def start_engine(setup: Setup, watch: Watch | None) -> Engine:
    """The engine that the scenario asks for, before its first event."""
    if setup.scenario.engine == "simpy":
        return SimpyEngine(setup, watch)
    from simulator.engines.compiled.engine import CompiledEngine  # imports Numba

    return CompiledEngine(setup, watch)


def consensus_models(scenario: Scenario, problem: Problem) -> Floats:
    """The baseline of equation 2: one global model for all, (n, p)."""
    ridge = getattr(scenario.task, "ridge", 0.0)
    return np.tile(consensus_model(problem, ridge), (problem.n, 1))


def _advance(
    scenario: Scenario,
    engine: Engine,
    metrics: View,
    target: Target | None,
    watch: Watch | None,
    progress: Progress | None,
) -> list[Row]:
    """Sample 0 before any event, sample k at k·every, and the end once.

    Where ``record.samples`` says how many, the interval is doubled, and every other sample
    forgotten, whenever there are twice as many.
    """
    every, every_communications = scenario.sampling
    most = 2 * scenario.record.samples if scenario.record.samples is not None else None
    rows = [sample(engine, metrics)]
    k = 0
    if (watch is not None and watch.reached) or _met(target, rows[0]):
        engine.stop()
    while not engine.finished:
        if len(rows) > MOST_SAMPLES:
            raise too_many_samples(scenario, f"more than {MOST_SAMPLES:,}")
        if every is not None:
            k += 1
            engine.advance(time=k * every, communications=None)
        else:
            # An event or a round may pass several multiples: the next one is ahead.
            k = int(rows[-1]["communications"]) // every_communications + 1
            engine.advance(time=None, communications=k * every_communications)
        rows.append(sample(engine, metrics))
        if watch is None and _met(target, rows[-1]):
            engine.stop()
        if most is not None and len(rows) > most and not engine.finished:
            rows, k = rows[::2], k // 2
            every = None if every is None else 2 * every
            every_communications *= 2
        if progress is not None:
            progress(rows[-1], _share_done(scenario, rows[-1]))
    return rows


def sample(engine: Engine, metrics: View) -> Row:
    """One row of trace.csv."""
    staleness = engine.now - float(engine.sent_at.mean())
    return {
        "time": engine.now,
        **engine.counters(),
        **metrics.measure(engine.models),
        "staleness": staleness,
    }


def _share_done(scenario: Scenario, row: Row) -> float:
    time, communications = scenario.stop.time, scenario.stop.communications
    shares = [row["time"] / time] if time is not None else []
    shares += [row["communications"] / communications] if communications is not None else []
    return min(1.0, max(shares))


def _target(scenario: Scenario, metrics: View, first: Floats) -> Target | None:
    """What the run is to reach; a percentage is one of the first models' value, as in sample 0."""
    stop = scenario.stop
    if stop.metric is None:
        return None
    if stop.metric not in metrics.available():
        allowed = ", ".join(metrics.available())
        raise ScenarioError(
            f"stop.metric: {stop.metric} cannot be measured in this scenario; allowed: {allowed}"
        )
    if stop.above is not None:
        return Target(stop.metric, stop.above, stop.above, above=True)
    assert stop.below is not None
    if isinstance(stop.below, float):
        return Target(stop.metric, stop.below, stop.below)
    start, share = metrics.measure(first)[stop.metric], percentage(stop.below)
    if not math.isfinite(start):
        raise ScenarioError(f"stop.below: {stop.metric} is not a finite number at the start")
    return Target(stop.metric, share * start, stop.below)


def _met(target: Target | None, row: Row) -> bool:
    """Is the target met at this sample?  Staleness is 0 at the start, which means nothing."""
    if target is None or (target.metric == "staleness" and row["communications"] == 0):
        return False
    return target.met_by(row[target.metric])


def _reached_at_sample(rows: list[Row], target: Target | None) -> tuple[float, int] | None:
    met = [row for row in rows if _met(target, row)]
    return (met[0]["time"], int(met[0]["communications"])) if met else None


def _finish(
    scenario: Scenario,
    problem: Problem,
    metrics: View,
    consensus: Floats,
    rows: list[Row],
    models: Floats,
    target: Target | None = None,
    reached: tuple[float, int] | None = None,
    exhausted: int = 0,
) -> Result:
    """Sum up a run."""
    last = rows[-1]
    measured = {"solitary": metrics.measure(problem.solitary), "start": rows[0], "final": last}
    if metrics.optimum is not None:
        measured["optimum"] = metrics.measure(metrics.optimum)
    measured["consensus"] = metrics.measure(consensus)
    table = {stage: _metrics_of(metrics, row) for stage, row in measured.items()}
    overflowed = [
        f"{name} ({stage})"
        for stage, row in measured.items()
        for name in row
        if name in metrics.available() and name not in table[stage]
    ]
    if overflowed:
        metrics.notes += (f"too large to be numbers, and left out: {', '.join(overflowed)}",)
    counts = ("communications", "delivered", "dropped", "in_flight", "stale", "skipped", "bytes")
    summary: dict[str, Any] = {
        "name": scenario.name,
        "algorithm": scenario.algorithm.kind,
        "mode": scenario.algorithm.mode,
        "seed": scenario.seed,
        "agents": problem.n,
        "dimension": problem.p,
        "edges": problem.W.nnz // 2,
        "simulated_time": last["time"],
        **{name: int(last[name]) for name in counts},
        "unfinished_solves": exhausted,
        "metrics": table,
        "target": None,
        "notes": [*problem.notes, *metrics.notes],
    }
    if target is not None:
        summary["target"] = {
            "metric": target.metric,
            "asked": target.asked,
            "level": target.level,
            "direction": "above" if target.above else "below",
            "time": None if reached is None else reached[0],
            "communications": None if reached is None else reached[1],
            "exact": isinstance(metrics.metric(target.metric), Followed),
        }
    return Result(
        scenario=scenario,
        problem=problem,
        trace=pd.DataFrame(rows),
        agents=_agents_table(problem, metrics, models),
        summary=summary,
        models=models,
        optimum=metrics.optimum,
    )


def _metrics_of(metrics: View, row: Row) -> Row:
    names = [name for name in metrics.available() if name in row]
    return {name: row[name] for name in names if math.isfinite(row[name])}


def _agents_table(problem: Problem, metrics: View, models: Floats) -> pd.DataFrame:
    """agents.csv: who had what, and how near each came."""
    columns: dict[str, Any] = {
        "agent": problem.names,
        "points": problem.data.sizes,
        "confidence": problem.confidence,
        "neighbours": np.diff(problem.W.indptr),
        "degree": problem.D,
    }
    stages = {"solitary": problem.solitary, "final": models}
    if metrics.optimum is not None:
        stages["optimum"] = metrics.optimum
    by_agent = [metric for metric in metrics.metrics if metric.by_agent]
    for metric in by_agent:
        if not metric.of_baselines:  # solitary models are not meant to be near the optimum
            columns[metric.kind] = metric.each(metrics, models)
    for stage, theta in stages.items():
        for metric in by_agent:
            if metric.of_baselines:
                columns[f"{metric.kind}_{stage}"] = metric.each(metrics, theta)
    return pd.DataFrame(columns)
