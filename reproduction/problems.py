"""The paper's problems as scenarios, with the choices filled in where the paper is silent."""

from __future__ import annotations

from typing import Any

from agents.machinery.compiling import JIT
from reproduction.choices import Choices
from simulator import Scenario, load_scenario

#: Event for event the same, and far sooner; nothing is compiled where Numba's JIT is off.
ENGINE = "compiled" if JIT else "simpy"
#: A problem without a network, for closed forms: the run that stands for it has no length.
_NO_RUN = {"stop": {"communications": 1}}


def moons(choices: Choices, width: float = 1.0, agents: int = 300, **rest: Any) -> Scenario:
    """Section 5.1; ``width`` is ε, the width of the confidences' distribution.

    ``rest``: other blocks of the scenario, among them a graph other than the paper's.
    """
    task = {
        "kind": "mean_estimation",
        "agents": agents,
        "noise": choices["mean_estimation.noise"],
        "variance": 40,
        "samples": {"kind": "confidence_width", "width": width, "max": 100},
    }
    kernel = {"kind": "gaussian_kernel", "sigma": 0.1, "min_weight": 0}
    return scenario(task, rest.pop("graph", kernel), rest)


def separators(choices: Choices, dimension: int = 50, **rest: Any) -> Scenario:
    """Section 5.2; ``dimension`` is p."""
    graph = {
        "kind": "angular_kernel",
        "sigma": 0.1,
        "min_weight": choices["linear_classification.min_weight"],
        "allow_disconnected": True,
    }
    return scenario(_classification(choices, 100, dimension), graph, rest)


def neighbours(choices: Choices, agents: int, **rest: Any) -> Scenario:
    """Appendix E, figure 5: ``agents`` separators in R^50 on a graph of nearest neighbours."""
    graph = {
        "kind": "knn",
        "k": choices["scalability.k"],
        "metric": "angular",
        "weights": "unit",
        "allow_disconnected": True,
    }
    return scenario(_classification(choices, agents, 50), graph, rest)


def _classification(choices: Choices, agents: int, dimension: int) -> dict[str, Any]:
    return {
        "kind": "linear_classification",
        "agents": agents,
        "dimension": dimension,
        "samples": {"kind": "uniform", "low": 1, "high": 20},
        "points": choices["linear_classification.points"],
        "flip": 0.05,
        "test_points": 100,
        "test_flip": choices["linear_classification.test_flip"],
        "loss": "hinge",
        "ridge": choices["linear_classification.ridge"],
    }


def scenario(task: dict[str, Any], graph: dict[str, Any], rest: dict[str, Any]) -> Scenario:
    """A problem; where nothing else is said it is not run."""
    values = {"name": "paper", "engine": ENGINE, **_NO_RUN, **rest}
    return load_scenario({**values, "task": task, "graph": graph})
