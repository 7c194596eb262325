"""What a process reads and loads before its first run, for those that are forked from it."""

from __future__ import annotations

import simulator.cli.commands
import simulator.cli.sweep
import simulator.figures.run_figures
import simulator.sweeps.study  # noqa: F401
from simulator.runs.plugins import schema_for
from simulator.runs.run import run

for engine in ("simpy", "compiled"):
    values = {
        "name": "warm",
        "engine": engine,
        "task": {"kind": "mean_estimation", "agents": 3},
        "algorithm": {"kind": "mp", "alpha": 0.8},
        "stop": {"time": 2},
    }
    run(schema_for().model_validate(values))
