"""The names of ``simulator`` itself: what Python users call, and what they get."""

from simulator.errors import SimulatorError
from simulator.problem.problem import Problem
from simulator.runs.progress import Progress
from simulator.runs.result import Result
from simulator.runs.run import build_problem, results, run
from simulator.runs.scenarios import load_scenario
from simulator.scenario.schema import Scenario
from simulator.sweeps.study import compare, frontier, sweep
from simulator.sweeps.sweep import Comparison, Frontier, Sweep

__all__ = [
    "Comparison",
    "Frontier",
    "Problem",
    "Progress",
    "Result",
    "Scenario",
    "SimulatorError",
    "Sweep",
    "build_problem",
    "compare",
    "frontier",
    "load_scenario",
    "results",
    "run",
    "sweep",
]
