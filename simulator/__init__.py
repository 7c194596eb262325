"""Murmuration: a discrete-event network simulator for peers that learn personalized models.

>>> from simulator import run
>>> result = run("scenarios/moons.yaml", {"seed": 3})  # doctest: +SKIP
>>> result.plot()  # doctest: +SKIP
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; see below
    from simulator.api.progress import Progress as Progress
    from simulator.api.runs import Problem as Problem
    from simulator.api.runs import Result as Result
    from simulator.api.runs import build_problem as build_problem
    from simulator.api.runs import results as results
    from simulator.api.runs import run as run
    from simulator.api.sweeps import Comparison as Comparison
    from simulator.api.sweeps import Frontier as Frontier
    from simulator.api.sweeps import Sweep as Sweep
    from simulator.api.sweeps import compare as compare
    from simulator.api.sweeps import frontier as frontier
    from simulator.api.sweeps import sweep as sweep
    from simulator.errors import SimulatorError as SimulatorError
    from simulator.runs.scenarios import load_scenario as load_scenario
    from simulator.scenario.schema import Scenario as Scenario

__version__ = "0.1.0"

# Loaded at first use: the command line's help must not wait for the numerical libraries.
_HOMES = {
    "Comparison": "simulator.api.sweeps",
    "Frontier": "simulator.api.sweeps",
    "Problem": "simulator.api.runs",
    "Progress": "simulator.api.progress",
    "Result": "simulator.api.runs",
    "Scenario": "simulator.scenario.schema",
    "SimulatorError": "simulator.errors",
    "Sweep": "simulator.api.sweeps",
    "build_problem": "simulator.api.runs",
    "compare": "simulator.api.sweeps",
    "frontier": "simulator.api.sweeps",
    "load_scenario": "simulator.runs.scenarios",
    "results": "simulator.api.runs",
    "run": "simulator.api.runs",
    "sweep": "simulator.api.sweeps",
}
__all__ = sorted(_HOMES)


def require_own_agents() -> None:
    """Say in one line that another package has the name of ours, before Python says it in many."""
    spec = find_spec("agents")
    home = None if spec is None or spec.origin is None else Path(spec.origin).parent
    if home is None or not (home / "rule.py").exists():
        raise ImportError(
            f"another package called 'agents', in {home}, hides the one of murmuration: "
            "install murmuration into an environment of its own"
        )


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        require_own_agents()
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
