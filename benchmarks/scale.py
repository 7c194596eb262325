"""How the compiled engine scales: 10³ to 10⁶ agents, 10 nearest neighbours, p = 10, mp.

    python benchmarks/scale.py                    # three minutes or so, and 6 GB
    python benchmarks/scale.py --largest 100000   # without the million

Each size runs in a process of its own, so that its peak of memory is its own.  Prints a table and
draws results/scale.png.  "State" is what the rule cannot do without: models and copies.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DIMENSION = 10
SIZES = (10**3, 10**4, 10**5, 10**6)
DELIVERIES = 4e6  # the same work at every size, about


def measure(n: int) -> dict[str, float]:
    """Set up a run of n agents, let it run, take a sample."""
    from agents.rules import RULES
    from simulator.engines.setup import prepare
    from simulator.problem.build import build_problem
    from simulator.runs.plugins import schema_for
    from simulator.runs.simulation import sample, start_engine
    from simulator.seeds import Streams
    from simulator.theory.metrics import View

    seconds = DELIVERIES / (1.71 * n)
    scenario = schema_for().model_validate(
        {
            "name": "scale",
            "engine": "compiled",
            "task": {"kind": "mean_estimation", "agents": n},
            "graph": {"kind": "knn", "k": 10, "allow_disconnected": True},
            "network": {"latency": {"kind": "lognormal", "mean": 0.05, "sigma": 1}, "drop": 0.1},
            "stop": {"time": 1.25 * seconds},
        }
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    started = time.perf_counter()
    streams = Streams(0)
    problem = build_problem(scenario, streams)
    # The moons' models are numbers; ten of them make a vector.
    models = problem.solitary + np.zeros(DIMENSION)
    problem = dataclasses.replace(problem, solitary=models, targets=models)
    setup = prepare(scenario, problem, streams, RULES["mp"])
    engine = start_engine(setup, None)
    seconds_to_set_up = time.perf_counter() - started
    engine.advance(0.25 * seconds, None)  # compile, and let the first messages arrive
    delivered, started = engine.counters()["delivered"], time.perf_counter()
    engine.advance(None, None)
    running = time.perf_counter() - started
    delivered = engine.counters()["delivered"] - delivered
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    metrics = View(scenario, problem)
    started = time.perf_counter()
    sample(engine, metrics, setup)
    edges = problem.W.nnz
    return {
        "agents": n,
        "edges": edges,
        "set_up": seconds_to_set_up,
        "delivery": running / delivered,
        "peak": peak,
        "state": 8 * DIMENSION * (n + edges),
        "edge_bytes": (peak - before) / edges,
        "sample": time.perf_counter() - started,
    }


def draw(rows: list[dict[str, float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots(1, 2)
    n = [row["agents"] for row in rows]
    for axis, key, label, scale in (
        (axes[0], "delivery", "µs a delivery", 1e6),
        (axes[1], "peak", "peak memory (GB)", 1e-9),
    ):
        axis.loglog(n, [row[key] * scale for row in rows], "o-", label="measured")
        axis.set_xlabel("agents")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[1].loglog(n, [row["state"] * 1e-9 for row in rows], "--", label="models and copies")
    axes[1].legend(frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    print("  agents  directed edges  set-up s  µs/delivery  sample s  peak GB  / state  B/edge")
    rows = []
    for n in (n for n in SIZES if n <= arguments.largest):
        command = [sys.executable, __file__, "--one", str(n)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        row = json.loads(answer.stdout)
        rows.append(row)
        print(
            f"{n:>8}  {row['edges']:>14,}  {row['set_up']:>8.1f}  {row['delivery'] * 1e6:>11.2f}  "
            f"{row['sample']:>8.2f}  {row['peak'] / 1e9:>7.2f}  "
            f"{row['peak'] / row['state']:>7.1f}  {row['edge_bytes']:>6.0f}",
            flush=True,
        )
    ratio = rows[-1]["delivery"] / rows[0]["delivery"]
    print(f"time per delivery, largest over smallest: {ratio:.1f}   (at most 8 at 10⁶)")
    draw(rows, ROOT / "results" / "scale.png")
    print("drawn: results/scale.png")


if __name__ == "__main__":
    main()
