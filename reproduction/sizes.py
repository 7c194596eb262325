"""How large the experiments are: the paper's sizes, and a small version for a first look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """Every number that decides how long the reproduction takes, and how precise it is."""

    name: str = "full"
    #: Figure 2, left and middle: ε, instances of each, and of a small ε, where the two sides are
    #: hardly apart.
    widths: tuple[float, ...] = tuple(k / 10 for k in range(11))
    mean_instances: int = 1000
    small_instances: int = 3000
    #: Figure 2, right: instances, and the length of their runs in communications.
    mean_runs: int = 20
    mean_communications: int = 2_000_000
    #: Figure 3, left: p, and instances of each; middle: instances.
    dimensions: tuple[int, ...] = (2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    instances: int = 30
    size_instances: int = 100
    #: Figure 3, right: instances, and the length of their runs in communications.
    run_instances: int = 10
    run_communications: int = 100_000
    #: Figure 5: n, and instances of each.
    agents: tuple[int, ...] = tuple(range(100, 1001, 100))
    scale_instances: int = 5
    #: Theorem 1: runs from one start, and their lengths in communications.
    theorem_runs: int = 30
    theorem_communications: tuple[int, ...] = tuple(50_000 * 2**k for k in range(6))
    #: Tuning: held-out instances, and the dimensions that they have.
    held_out: int = 10
    tuned_dimensions: tuple[int, ...] = (2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    #: How many other values of a trade-off are considered on either side of the chosen one; and
    #: where another choice is made, which may need quite another trade-off.
    grid_reach: int = 2
    choice_reach: int = 100
    #: Dependence on choices: at most so many others of each; instances with means; instances
    #: with separators and held-out ones for each, by p; instances of runs.
    choice_others: int = 100
    choice_means: int = 200
    choice_problems: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {2: (60, 10), 50: (10, 3)}
    )
    choice_instances: int = 5
    #: Beyond the paper: seeds that are reported, timers that rounds choose from, and the keys
    #: whose values are others than in the sweep files, by algorithm.
    beyond_seeds: int = 30
    beyond_timers: int = 100
    beyond_grid: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    #: Private learning: p, ε, and instances of each.
    private_dimensions: tuple[int, ...] = (2, 5, 10, 20, 50)
    private_epsilons: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    private_instances: int = 30


FULL = Sizes()
QUICK = Sizes(
    name="quick",
    widths=(0.0, 0.1, 1.0),
    mean_instances=20,
    small_instances=30,
    mean_runs=2,
    mean_communications=380_000,
    dimensions=(2, 50),
    instances=2,
    size_instances=2,
    run_instances=2,
    run_communications=12_000,
    agents=(40, 60),
    scale_instances=2,
    theorem_runs=5,
    theorem_communications=(40_000, 80_000, 160_000),
    held_out=2,
    tuned_dimensions=(2,),
    grid_reach=1,
    choice_reach=1,
    choice_others=1,
    choice_means=10,
    choice_problems={2: (2, 1)},
    choice_instances=1,
    beyond_seeds=3,
    beyond_timers=2,
    beyond_grid={
        "mp": {
            "task.agents": [30],
            "clock.rate": [25],
            "$spread": [0, 2],
            "network.drop": [0],
        },
        "admm": {"task.agents": [20], "task.dimension": [5], "$spread": [2]},
    },
    private_dimensions=(2, 20),
    private_epsilons=(0.1, 1.0),
    private_instances=2,
)
