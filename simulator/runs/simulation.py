"""One run: build the problem, advance the engine from sample to sample, measure, sum up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from agents.machinery.compiling import JIT
from agents.running import changed_by
from simulator.engines.event_rows import Sink
from simulator.engines.reference.simpy_engine import SimpyEngine
from simulator.engines.setup import Setup, prepare
from simulator.engines.watch import Watch
from simulator.errors import DivergenceError, ScenarioError, SimulatorError
from simulator.problem.build import build_problem
from simulator.problem.problem import Floats, Problem
from simulator.runs.limits import check_run, too_many_samples
from simulator.runs.result import COUNTS, Result, Row, finish
from simulator.scenario.kinds import blaming
from simulator.scenario.quantities import percentage
from simulator.scenario.schema import Scenario
from simulator.scenario.stopping import MOST_SAMPLES
from simulator.scenario.tables import listing
from simulator.seeds import Streams
from simulator.shipped import install
from simulator.store.recording import EventsFile, EventsWriter, Keeper, require_pyarrow
from simulator.theory.metrics import Distance, Followed, Target, View
from simulator.theory.objectives import consensus_model

if TYPE_CHECKING:
    from simulator.engines.compiled.compiled_engine import CompiledEngine


import time
from typing import Any, Self

from numba.core import event as _event

Engine: TypeAlias = "SimpyEngine | CompiledEngine"
#: Called after each sample with the row and the share of the run that is done, 0 … 1.
OnSample = Callable[[Row, float], None]


def simulate(scenario: Scenario, progress: OnSample | None = None) -> Result:
    """Compute a run; nothing is written."""
    # The number of BLAS threads changes the last bits of sums; results must not depend on cores.
    # Overflow shows in the models, which every update checks, so NumPy need not warn of it.
    with _blas().limit(limits=1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
        try:
            with blaming(scenario.plugins):
                return _run(scenario, progress)
        except DivergenceError as error:
            assert scenario.algorithm.rule is not None
            raise DivergenceError(f"{error}; {changed_by(scenario.algorithm.rule)}") from error


@cache
def _blas() -> ThreadpoolController:
    """The linear algebra's threads; to find its libraries takes longer than a small run."""
    return ThreadpoolController()


def _run(scenario: Scenario, progress: OnSample | None) -> Result:
    if scenario.record.events:
        require_pyarrow()
    _require_accountant(scenario)
    rule = scenario.algorithm.rule
    streams = Streams(scenario.seed, scenario.problem_seed)
    problem = build_problem(scenario, streams)
    metrics = View(scenario, problem)
    consensus = consensus_models(scenario, problem)
    if rule is not None and problem.W.nnz == 0:
        metrics.notes += ("the graph has no links, so nobody sends anything",)
    if rule is not None and scenario.stream is not None and problem.W.nnz == 0:
        raise ScenarioError("stream: the graph has no links, so nobody talks about what arrives")
    if rule is None or problem.W.nnz == 0:
        alone = consensus if scenario.algorithm.kind == "consensus" else problem.solitary
        return _silent_run(scenario, problem, metrics, consensus, alone)

    setup = prepare(scenario, problem, streams, rule)
    check_run(setup)
    if setup.arrivals is not None:
        assert setup.first_problem is not None
        metrics.move(setup.first_problem)
    target = _target(scenario, metrics, setup.models)
    watch = None
    metric = None if target is None else metrics.metric(target.metric)
    moves = setup.arrivals is not None and isinstance(metric, Distance)
    if moves:
        metrics.notes += ("the optimum moves, so that distance is checked at samples only",)
    if target is not None and isinstance(metric, Followed) and not moves:
        reference = metric.reference(metrics)
        assert reference is not None
        watch = Watch(target, reference, setup.models)
    keeper = Keeper() if scenario.record.models else None
    with _recording(scenario) as (events, sink):
        engine = start_engine(setup, watch, sink)
        rows = _advance(setup, engine, metrics, target, watch, keeper, progress)
        engine.flush()
    engine.check()
    if engine.is_stuck:
        absent = [problem.names[i] for i in engine.absent()]
        who = f"{listing(absent)} did not come back" if absent else "nobody can go on"
        metrics.notes += (f"the last round could not end: agent {who}",)
    reached = watch.reached if watch is not None else _reached_at_sample(rows, target)
    if setup.arrivals is not None:
        consensus = consensus_models(scenario, metrics.problem)
    return finish(
        scenario,
        problem,
        metrics,
        consensus,
        rows,
        engine.models,
        target=target,
        reached=reached,
        exact=watch is not None,
        exhausted=engine.exhausted,
        columns=engine.rule.columns(),
        events=events,
        keeper=keeper,
    )


def _require_accountant(scenario: Scenario) -> None:
    """Raise unless what the agents of a private run spend can be known here."""
    privacy = getattr(scenario.algorithm, "privacy", None)
    if privacy is not None and privacy.is_exact and find_spec("dp_accounting") is None:
        raise SimulatorError(
            "algorithm.privacy.accountant: exact needs dp-accounting, which is not installed: "
            f"{install('privacy')}"
        )


@contextmanager
def _recording(scenario: Scenario) -> Iterator[tuple[EventsFile | None, Sink | None]]:
    """A file for what happens, and what writes to it, if that is asked for."""
    if not scenario.record.events:
        yield None, None
        return
    file = EventsFile()
    writer = EventsWriter(file.path)
    try:
        yield file, writer
    finally:
        writer.close()


def _silent_run(
    scenario: Scenario, problem: Problem, metrics: View, consensus: Floats, models: Floats
) -> Result:
    """A run in which nobody sends: one sample, which meets the target or never does."""
    target = _target(scenario, metrics, models)
    counts = dict.fromkeys(COUNTS, 0)
    rows: list[Row] = [{"time": 0.0, **counts, **metrics.measure(models), "staleness": 0.0}]
    reached = _reached_at_sample(rows, target)
    keeper = Keeper() if scenario.record.models else None
    if keeper is not None:
        keeper.add(models)
    with _recording(scenario) as (events, _):
        pass
    return finish(
        scenario,
        problem,
        metrics,
        consensus,
        rows,
        models,
        target=target,
        reached=reached,
        events=events,
        keeper=keeper,
    )


def start_engine(setup: Setup, watch: Watch | None, events: Sink | None = None) -> Engine:
    """The engine that the scenario asks for, before its first event; ``events`` gets what happens.

    At the end it must be flushed.
    """
    if setup.scenario.engine == "simpy":
        return SimpyEngine(setup, watch, events)
    if not JIT:
        raise SimulatorError(
            "engine: compiled is not possible with NUMBA_DISABLE_JIT=1, under which nothing is "
            "compiled; use engine: simpy, or unset the variable"
        )
    from simulator.engines.compiled.compiled_engine import CompiledEngine

    return CompiledEngine(setup, watch, events)


def consensus_models(scenario: Scenario, problem: Problem) -> Floats:
    """The baseline of equation 2: one global model for all, (n, p)."""
    ridge = getattr(scenario.task, "ridge", 0.0)
    return np.tile(consensus_model(problem, ridge), (problem.n, 1))


def _advance(
    setup: Setup,
    engine: Engine,
    metrics: View,
    target: Target | None,
    watch: Watch | None,
    keeper: Keeper | None,
    progress: OnSample | None,
) -> list[Row]:
    """Sample 0 before any event, sample k at k·every, and the end once.

    Where ``record.samples`` says how many, the interval is doubled, and every other sample
    forgotten, whenever there are twice as many.
    """
    scenario = setup.scenario
    every, every_communications = scenario.sampling
    most = 2 * scenario.record.samples if scenario.record.samples is not None else None
    rows: list[Row] = []
    k = 0

    def take_sample() -> None:
        rows.append(sample(engine, metrics, setup))
        if keeper is not None:
            keeper.add(engine.models)

    take_sample()
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
        take_sample()
        if watch is None and _met(target, rows[-1]):
            engine.stop()
        if most is not None and len(rows) > most and not engine.finished:
            del rows[1::2]
            k //= 2
            if keeper is not None:
                keeper.halve()
            every = None if every is None else 2 * every
            every_communications *= 2
        if progress is not None:
            progress(rows[-1], _share_done(scenario, rows[-1]))
    return rows


def sample(engine: Engine, metrics: View, setup: Setup) -> Row:
    """One row of trace.csv; where points arrive, all is against the problem of the moment."""
    row = {"time": engine.now, **engine.counters()}
    moved: Row = {}
    if setup.arrivals is not None:
        counts, arrays = engine.rule.counts, engine.rule.arrays
        assert counts is not None
        if not np.array_equal(counts, metrics.problem.data.sizes):
            metrics.move(
                setup.problem.at(counts.copy(), arrays["c"].copy(), arrays["solitary"].copy())
            )
        row["points"] = int(counts.sum())
        baselines = {"solitary": metrics.problem.solitary}
        baselines["consensus"] = consensus_models(setup.scenario, metrics.problem)
        if metrics.optimum is not None:
            baselines["optimum"] = metrics.optimum
        for name, models in baselines.items():
            for kind, value in metrics.measure(models).items():
                metric = metrics.metric(kind)
                if metric is not None and metric.of_baselines:
                    moved[f"{kind}_{name}"] = value
    staleness = engine.now - float(engine.sent_at.mean())
    measured = metrics.measure(engine.models)
    return {**row, **measured, "staleness": staleness, **engine.progress(), **moved}


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


event: Any = _event  # untyped
#: Numba holds this lock while it compiles, and while it reads compiled code from its cache.
_COMPILING = "numba:compiler_lock"


class Stopwatch:
    """A context manager: ``seconds`` without compiling, and ``compiling``."""

    seconds = compiling = 0.0

    def __enter__(self) -> Self:
        self._lock = event.TimingListener()
        event.register(_COMPILING, self._lock)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        event.unregister(_COMPILING, self._lock)
        self.compiling = self._lock.duration if self._lock.done else 0.0
        self.seconds = time.perf_counter() - self._started - self.compiling
