"""What the tests of sweeps share: a tiny scenario, its tables as bytes, a command line."""

from __future__ import annotations

import sys
from pathlib import Path

TINY = """\
name: tiny
task: {kind: mean_estimation, agents: 8}
graph: {kind: gaussian_kernel, sigma: 0.5}
algorithm: {kind: mp, alpha: 0.8}
network: {latency: {kind: exponential, mean: 50 ms}}
stop: {time: 20}
"""
GRID = {"network.latency.mean": ["10 ms", "1 s"], "network.drop": [0, 0.5]}


def write_tiny(folder: Path, text: str = TINY) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(text)
    return path


def table_bytes(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes() for name in ("runs.csv", "curves.csv", "summary.csv")
    }


def sweep_tables(out: Path) -> dict[str, bytes]:
    (folder,) = (out / "sweeps").iterdir()
    return table_bytes(folder)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "simulator", *map(str, words)]
