"""Messages a second, as ratios measured in one run.

    python benchmarks/engine.py            # a minute or so
    python benchmarks/engine.py --quick    # a first look

Every contender runs several times, in turn, and its best time counts: that is the least disturbed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.baseline import deliveries
from simulator.engine import SimpyEngine
from simulator.scenario import Scenario
from simulator.seeds import Streams
from simulator.setup import RULES, prepare
from simulator.tasks import build_problem

LATENCY = {"kind": "lognormal", "mean": 0.05, "sigma": 1.0}
DROP = 0.1
COMPLETE = {"kind": "gaussian_kernel", "sigma": 0.1}


def knn(k: int) -> dict:
    return {"kind": "knn", "k": k, "weights": "unit", "allow_disconnected": True}


def moons(graph: dict, seconds: float) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "bench",
            "task": {"kind": "mean_estimation", "agents": 300},
            "graph": graph,
            "algorithm": {"kind": "mp", "alpha": 0.99},
            "network": {"latency": LATENCY, "drop": DROP},
            "stop": {"time": seconds},
        }
    )


def engine(scenario: Scenario) -> Callable[[], tuple[int, float]]:
    """A contender: learning included, building the problem not."""

    def contender() -> tuple[int, float]:
        streams = Streams(0)
        problem = build_problem(scenario, streams)
        run = SimpyEngine(prepare(scenario, problem, streams, RULES["mp"]), None)
        started = time.perf_counter()
        run.advance(None, None)
        return run.links.delivered, time.perf_counter() - started

    return contender


def baseline(neighbours: list[list[int]], seconds: float) -> Callable[[], tuple[int, float]]:
    def contender() -> tuple[int, float]:
        started = time.perf_counter()
        count = deliveries(neighbours, LATENCY["mean"], LATENCY["sigma"], DROP, seconds)
        return count, time.perf_counter() - started

    return contender


def best(contenders: dict[str, Callable[[], tuple[int, float]]], repeats: int) -> dict[str, float]:
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
    seconds, repeats = (60.0, 2) if quick else (200.0, 5)
    everyone = [[j for j in range(300) if j != i] for i in range(300)]
    speeds = best(
        {
            "plain SimPy baseline, no learning": baseline(everyone, seconds),
            "SimPy engine, mp, degree 299": engine(moons(COMPLETE, seconds)),
            "SimPy engine, mp, degree 10": engine(moons(knn(8), seconds)),
        },
        repeats,
    )
    degree = np.diff(build_problem(moons(knn(8), 1.0), Streams(0)).W.indptr).mean()
    plain, dense, sparse = speeds.values()
    print("two moons, 300 agents, lognormal latency, 10 % loss; deliveries a second")
    for name, speed in speeds.items():
        print(f"  {name:<36} {speed:>12,.0f}   {speed / plain:6.2f} x baseline")
    print(f"  cost per message, degree 299 over degree {degree:.1f}: {sparse / dense:.2f}")


if __name__ == "__main__":
    main()
