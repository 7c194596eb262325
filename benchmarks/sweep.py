"""What a sweep costs beside its runs: the share of its workers' time that is spent outside them.

    python benchmarks/sweep.py             # 200 runs of about one second: two minutes on two cores
    python benchmarks/sweep.py --quick     # 20 runs, where the start of the pool weighs more

The start of the pool, shipping, saving and the tables are included; figures are off.  The limit
for 200 runs is 15 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from simulator import load_scenario, run, sweep

SCENARIO = """\
name: bench
task: {kind: mean_estimation, agents: 100}
graph: {kind: knn, k: 10, allow_disconnected: true}
network: {latency: {kind: lognormal, mean: 50 ms, sigma: 1.0}, drop: 0.1}
stop: {time: 100}
"""


def seconds_of_one_second(path: Path) -> float:
    """How much simulated time takes one second of real time here."""
    run(load_scenario(path, {"stop.time": 1.0}))  # whatever is loaded or compiled at first use
    started = time.perf_counter()
    run(load_scenario(path))
    return 100.0 / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    runs, jobs = 20 if arguments.quick else 200, arguments.jobs
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "bench.yaml", Path(folder) / "results"
        path.write_text(SCENARIO)
        grid = {"stop.time": [round(seconds_of_one_second(path), 1)]}
        started = time.perf_counter()
        sweep(path, grid, seeds=runs, jobs=jobs, out=out, figures=False)
        wall = time.perf_counter() - started
        manifests = [json.loads(file.read_text()) for file in out.glob("bench-*/manifest.json")]
    inside = sum(manifest["wall_time"] for manifest in manifests)
    assert len(manifests) == runs
    share = 1 - inside / (wall * jobs)
    print(f"{runs} runs of {inside / runs:.2f} s on {jobs} processes: {wall:.1f} s")
    print(f"outside the runs: {share:.1%} of the workers' time")


if __name__ == "__main__":
    main()
