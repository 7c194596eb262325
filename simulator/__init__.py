"""Murmuration: a discrete-event network simulator for peers that learn personalized models.

>>> from simulator import load_scenario, run
>>> result = run(load_scenario("scenarios/moons.yaml", overrides={"seed": 3}))  # doctest: +SKIP
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Loaded at first use: the command line's help must not wait for the numerical libraries.
_HOMES = {
    "Comparison": "simulator.sweeps.comparison",
    "Frontier": "simulator.sweeps.frontier",
    "Result": "simulator.runs.result",
    "Scenario": "simulator.scenario.schema",
    "SimulatorError": "simulator.errors",
    "Sweep": "simulator.sweeps.sweep",
    "compare": "simulator.api",
    "frontier": "simulator.api",
    "load_scenario": "simulator.runs.scenarios",
    "run": "simulator.runs.run",
    "sweep": "simulator.api",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
