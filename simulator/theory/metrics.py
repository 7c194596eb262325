"""Metrics: what is measured of a run, from outside and from the global view (section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agents.rule import Rule
from simulator.errors import NoOptimumError, ScenarioError
from simulator.problem.problem import DataSets, Floats, Problem
from simulator.scenario.schema import Scenario
from simulator.theory.objectives import Objective, cl_optimum, mp_optimum

#: Kept up to date at every update when a stop asks for them, so that their times are exact.
EXACT = ("distance", "l2_error")


class Metrics:
    """All metrics that a scenario's problem and rule allow.

    ``optimum`` (n, p) minimises the rule's objective, and is None if the rule has none.
    """

    def __init__(self, scenario: Scenario, problem: Problem, rule: type[Rule] | None):
        self.problem = problem
        self.objective: Objective | None = None
        self.optimum: Floats | None = None
        #: Q*, where the gap Q/Q* − 1 means something.
        self.least: float | None = None
        #: Remarks for the user.
        self.notes: tuple[str, ...] = ()
        mu = scenario.algorithm.trade_off
        kind: Literal["mp", "cl"] | None = rule.objective if rule is not None else None
        if kind is not None and problem.W.nnz:
            self.objective = Objective(problem, mu, kind)
            try:
                self.optimum = (
                    mp_optimum(problem.W, problem.confidence, problem.solitary, mu)
                    if kind == "mp"
                    else cl_optimum(problem, mu)
                )
            except NoOptimumError as error:
                self.notes += (str(error),)
            else:
                self._compare_with(self.objective(self.optimum))
        self._test_owner = _test_owners(problem)

    def _compare_with(self, least: float) -> None:
        """Take Q* as the measure of gaps, unless it is 0 up to rounding."""
        assert self.objective is not None
        if least > 1e-12 * self.objective(self.problem.solitary):
            self.least = least
        else:
            self.notes += ("the optimum of the objective is 0, so that gaps are left out",)

    def available(self) -> list[str]:
        """The metrics of a sample row, in their order."""
        names = ["objective"] if self.objective is not None else []
        names += ["gap"] if self.least is not None else []
        names += ["distance"] if self.optimum is not None else []
        names += ["l2_error"] if self.problem.targets is not None else []
        names += ["accuracy"] if self._test_owner is not None else []
        return names

    def measure(self, models: Floats) -> dict[str, float]:
        """All metrics of models (n, p), but for staleness, which belongs to the network."""
        row: dict[str, float] = {}
        if self.objective is not None:
            row["objective"] = self.objective(models)
        if self.least is not None:
            row["gap"] = row["objective"] / self.least - 1.0
        if self.optimum is not None:
            row["distance"] = mean_squared_distance(models, self.optimum)
        if self.problem.targets is not None:
            row["l2_error"] = mean_squared_distance(models, self.problem.targets)
        if self._test_owner is not None:
            row["accuracy"] = float(np.nanmean(self.accuracies(models)))
        return row

    def accuracies(self, models: Floats) -> Floats:
        """Each agent's share of right predictions on its own test points; xᵀθ = 0 is wrong.

        NaN for an agent without test points.
        """
        test, owner = self.problem.test, self._test_owner
        assert test is not None
        assert test.X is not None
        assert owner is not None
        margins = _predictions(test, owner, models) * test.y
        right = np.bincount(owner[margins > 0], minlength=self.problem.n)
        return np.where(test.sizes > 0, right / np.maximum(test.sizes, 1), np.nan)

    def reference(self, metric: str) -> Floats:
        """The models (n, p) that ``distance`` or ``l2_error`` measures from."""
        reference = self.optimum if metric == "distance" else self.problem.targets
        if reference is None:
            raise ScenarioError(f"stop.metric: {metric} cannot be measured in this scenario")
        return reference


def _predictions(test: DataSets, owner: NDArray[np.int64], models: Floats) -> Floats:
    """x_t·θ of each test point's agent, (T,)."""
    assert test.X is not None
    n, p = models.shape
    if np.all(test.sizes == test.sizes[0]):
        # As many points for everybody: no need to copy a model for each point.
        products: Floats = np.matmul(test.X.reshape(n, -1, p), models[:, :, None]).ravel()
        return products
    return np.einsum("tp,tp->t", test.X, models[owner])


def _test_owners(problem: Problem) -> NDArray[np.int64] | None:
    """The agent of each test point; None where accuracy has no meaning."""
    test = problem.test
    if test is None or test.X is None or not len(test.y) or not np.all(np.abs(test.y) == 1.0):
        return None
    return np.repeat(np.arange(problem.n), test.sizes)


def mean_squared_distance(models: Floats, reference: Floats) -> float:
    """(1/n) Σ_i ‖θ_i − r_i‖²."""
    return float(np.mean(np.sum((models - reference) ** 2, axis=1)))


@dataclass
class Target:
    """A level that a metric is to reach."""

    metric: str
    level: float
    #: The level as the scenario has it: a number, or a percentage of the start's value, "1%".
    asked: float | str
    above: bool = False

    def met_by(self, value: float) -> bool:
        """Is the level reached?"""
        return value >= self.level if self.above else value <= self.level
