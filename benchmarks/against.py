"""Speed and start-up against another checkout, as ratios measured in turn in one run.

    git worktree add /tmp/before COMMIT
    python benchmarks/against.py /tmp/before            # some minutes
    python benchmarks/against.py /tmp/before --cold     # the first compiled run, with empty caches

Each measurement is a process of its own that runs a scenario at two lengths: the difference of
times over the difference of deliveries is the speed, without imports, compilation and set-up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CASES = {
    "compiled mp": ("scenarios/moons_knn.yaml", "compiled", (2_000, 20_000)),
    "compiled admm": ("scenarios/linear_classification.yaml", "compiled", (50, 8_000)),
    "SimPy mp": ("scenarios/moons_knn.yaml", "simpy", (20, 220)),
    "SimPy admm": ("scenarios/linear_classification.yaml", "simpy", (20, 420)),
}
CHILD = """
import json, sys, time
from simulator import load_scenario, run
file, engine, lengths = json.loads(sys.argv[1])
out = []
for seconds in [min(lengths), *lengths]:
    overrides = {"engine": engine, "stop": {"time": seconds}, "record": {"every": seconds}}
    scenario = load_scenario(file, overrides)
    started = time.perf_counter()
    result = run(scenario)
    out.append((result.summary["delivered"], time.perf_counter() - started))
print(json.dumps(out))
"""


def measure(checkout: Path, case: tuple, cache: str | None = None) -> list:
    """(deliveries, seconds) of a first run, and of both lengths after it."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NUMBA_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-c", CHILD, json.dumps(case)]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def speed(checkout: Path, case: tuple) -> float:
    """Deliveries a second."""
    _, (few, short), (many, long) = measure(checkout, case)
    return (many - few) / (long - short)


def cold(checkout: Path, case: tuple) -> float:
    """Seconds of the first run with an empty cache, over what the same run takes once compiled."""
    with tempfile.TemporaryDirectory() as cache:
        (_, first), (_, again), _ = measure(checkout, case, cache)
    return first - again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    other = options.other.resolve()
    for name, case in CASES.items():
        if options.cold:
            if "SimPy" in name:
                continue
            before, now = cold(other, case), cold(HERE, case)
            print(
                f"{name:<16} compiles in {now:6.1f} s, before {before:6.1f} s: {now / before:.2f}"
            )
            continue
        speeds = [(speed(other, case), speed(HERE, case)) for _ in range(options.repeats)]
        before, now = (max(column) for column in zip(*speeds, strict=True))
        print(f"{name:<16} {now:>12,.0f} a second, before {before:>12,.0f}: {now / before:.2f}")


if __name__ == "__main__":
    main()
