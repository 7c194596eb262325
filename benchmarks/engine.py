"""Messages a second, as ratios measured in one run.

    python benchmarks/engine.py            # two minutes or so
    python benchmarks/engine.py --quick    # a first look

Every contender runs several times, in turn, and its best time counts: that is the least disturbed.
Compiled contenders have compiled before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agents.rules import RULES
from benchmarks.baseline import deliveries
from benchmarks.ceiling import ceiling
from simulator.engines.setup import Setup, prepare
from simulator.problem.build import build_problem
from simulator.runs.plugins import schema_for
from simulator.runs.simulation import start_engine
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams

LATENCY = {"kind": "lognormal", "mean": 0.05, "sigma": 1.0}
DROP = 0.1
COMPLETE = {"kind": "gaussian_kernel", "sigma": 0.1}
Contender = Callable[[], tuple[int, float]]


def knn(k: int) -> dict:
    return {"kind": "knn", "k": k, "weights": "unit", "allow_disconnected": True}


def moons(graph: dict, seconds: float, engine: str = "simpy") -> Scenario:
    return schema_for().model_validate(
        {
            "name": "bench",
            "engine": engine,
            "task": {"kind": "mean_estimation", "agents": 300},
            "graph": graph,
            "algorithm": {"kind": "mp", "alpha": 0.99},
            "network": {"latency": LATENCY, "drop": DROP},
            "stop": {"time": seconds},
        }
    )


def separators(seconds: float, engine: str) -> Scenario:
    """admm with the hinge loss, p = 50."""
    return schema_for().model_validate(
        {
            "name": "bench",
            "engine": engine,
            "task": {"kind": "linear_classification", "agents": 100, "dimension": 50},
            "algorithm": {"kind": "admm", "mu": 0.1, "rho": 1.0},
            "network": {"latency": LATENCY, "drop": DROP},
            "stop": {"time": seconds},
        }
    )


def set_up(scenario: Scenario) -> Setup:
    streams = Streams(0)
    problem = build_problem(scenario, streams)
    return prepare(scenario, problem, streams, RULES[scenario.algorithm.kind])


def engine(scenario: Scenario) -> Contender:
    """A contender: learning included, building the problem not."""

    def contender() -> tuple[int, float]:
        run = start_engine(set_up(scenario), None)
        run.advance(1e-9, None)  # compiled, if it has to be
        started = time.perf_counter()
        run.advance(None, None)
        return run.counters()["delivered"], time.perf_counter() - started

    return contender


def bare_loop(scenario: Scenario) -> Contender:
    def contender() -> tuple[int, float]:
        advance = ceiling(set_up(scenario))
        advance(1e-9)
        started = time.perf_counter()
        assert scenario.stop.time is not None
        return advance(scenario.stop.time), time.perf_counter() - started

    return contender


def baseline(neighbours: list[list[int]], seconds: float) -> Contender:
    def contender() -> tuple[int, float]:
        started = time.perf_counter()
        count = deliveries(neighbours, LATENCY["mean"], LATENCY["sigma"], DROP, seconds)
        return count, time.perf_counter() - started

    return contender


def best(contenders: dict[str, Contender], repeats: int) -> dict[str, float]:
    """Deliveries a second of each, the best of several runs in turn."""
    speeds = dict.fromkeys(contenders, 0.0)
    for _ in range(repeats):
        for name, contender in contenders.items():
            count, seconds = contender()
            speeds[name] = max(speeds[name], count / seconds)
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    seconds, repeats = (60.0, 2) if quick else (60.0, 15)
    W = build_problem(moons(knn(10), 1.0), Streams(0)).W
    nearest = [row.tolist() for row in np.split(W.indices, W.indptr[1:-1])]
    everyone = [[j for j in range(300) if j != i] for i in range(300)]
    speeds = best(
        {
            "plain SimPy baseline, no learning": baseline(nearest, seconds),
            "plain SimPy baseline, degree 299": baseline(everyone, seconds),
            "SimPy engine": engine(moons(knn(10), seconds)),
            "SimPy engine, degree 299": engine(moons(COMPLETE, seconds)),
            "compiled engine": engine(moons(knn(10), 20 * seconds, "compiled")),
            "compiled engine, degree 299": engine(moons(COMPLETE, 20 * seconds, "compiled")),
            "bare Numba loop, no learning": bare_loop(moons(knn(10), 20 * seconds)),
        },
        repeats,
    )
    plain, plain_dense, reference, dense, fast, fast_dense, limit = speeds.values()
    print(
        "two moons, 300 agents, 10 nearest neighbours "
        f"(mean degree {W.nnz / 300:.1f}), mp,\nlognormal latency, 10 % loss; deliveries a second"
    )
    for name, speed in speeds.items():
        print(f"  {name:<36} {speed:>12,.0f}   {speed / plain:6.2f} x baseline")
    print(f"  SimPy engine / baseline, degree 299:     {dense / plain_dense:6.2f}")
    print(f"  compiled / SimPy engine:                 {fast / reference:6.1f}   (at least 20)")
    print(f"  compiled / bare loop:                    {fast / limit:6.2f}   (at least 0.5)")
    print(
        f"  cost per message, degree 299 over {W.nnz / 300:.1f}:   {reference / dense:6.2f} SimPy"
    )
    print(f"                                           {fast / fast_dense:6.2f} compiled")
    hinge = best(
        {
            "SimPy engine": engine(separators(seconds, "simpy")),
            "compiled engine": engine(separators(seconds, "compiled")),
        },
        repeats,
    )
    print("linear classification, 100 agents, p = 50, admm, hinge; deliveries a second")
    for name, speed in hinge.items():
        print(f"  {name:<36} {speed:>12,.0f}")
    slow, fast = hinge.values()
    print(f"  compiled / SimPy engine:                 {fast / slow:6.1f}   (at least 5)")


if __name__ == "__main__":
    main()
