"""Metrics: what is measured of a run, from outside and from the global view (docs/design.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from agents.machinery.code_errors import failed, read_only
from agents.parameters import Collaborative
from simulator.errors import NoOptimumError, SimulatorError
from simulator.problem.problem import DataSets, Floats, Problem
from simulator.scenario.kinds import Metric, Problems, Task, kind_of
from simulator.scenario.schema import Scenario
from simulator.scenario.tables import Ints
from simulator.theory.objectives import OBJECTIVES, Objective, consensus_model


class View:
    """The global view of a scenario's problem, from which metrics are taken.

    ``optimum`` (n, p) minimises the objective of the rule, and is None if it has none.  Arrays are
    read-only: what a metric changed by mistake would be the run's own.
    """

    def __init__(self, scenario: Scenario, problem: Problem):
        self._scenario, self.problem = scenario, problem.read_only()
        self.objective: Objective | None = None
        self.optimum: Floats | None = None
        #: Q*, where the gap Q/Q* − 1 means something.
        self.least: float | None = None
        #: Q of the models that are being measured, for all metrics that need it.
        self._value: float | None = None
        #: Remarks for the user.
        self.notes: tuple[str, ...] = ()
        test = problem.test
        #: The agent of each test point, where there are any.
        self.test_owner = None if test is None or not len(test.y) else test.owner
        only: Any = scenario.record.only
        known = scenario.kinds.metrics
        asked_for = [m for m in known if only is None or kind_of(m) in only]
        self._seeks = any(metric.needs_optimum for metric in asked_for)
        self._find_optimum(None)
        asked = [*getattr(scenario.record, "metrics", ())]  # a key where plugins bring some
        if scenario.stop.metric is not None and scenario.stop.metric not in _kinds(asked):
            asked.append(_default(scenario.stop.known[scenario.stop.metric]))
        always = [_default(metric) for metric in scenario.kinds.metrics if metric.always]
        every = always + [metric for metric in asked if not type(metric).always]
        #: What is measured, in order.
        self.metrics = [
            metric
            for metric in every
            if metric.available(self) and (only is None or metric.kind in only)
        ]

    def move(self, problem: Problem) -> None:
        """From now on all is measured against this problem, of the moment."""
        last, self.problem = self.optimum, problem.read_only()
        self.objective = self.optimum = self.least = None
        if self._seeks and self.problem.undetermined:
            self._remark(
                "while a connected part of the graph has no data its models are undetermined, "
                "and gap and distance are empty"
            )
        self._find_optimum(last)

    def _remark(self, note: str) -> None:
        self.notes += () if note in self.notes else (note,)

    def _find_optimum(self, near: Floats | None) -> None:
        """The objective and its optimum, sought from near a known one."""
        rule = self._scenario.algorithm.rule
        if not self._seeks or rule is None or rule.objective is None or not self.problem.W.nnz:
            return
        self._seek(near)
        if self.optimum is not None:
            self.optimum = read_only(self.optimum)

    def _seek(self, near: Floats | None) -> None:
        scenario, algorithm = self._scenario, cast("Any", self._scenario.algorithm)
        if algorithm.rule.objective == "consensus":
            ridge = getattr(scenario.task, "ridge", 0.0)
            self.optimum = np.tile(consensus_model(self.problem, ridge), (self.problem.n, 1))
            return
        ridge = algorithm.ridge if isinstance(algorithm, Collaborative) else 0.0
        objective = OBJECTIVES[algorithm.rule.objective]
        self._minimise(objective(self.problem, algorithm.trade_off, ridge), near)

    def _minimise(self, objective: Objective, near: Floats | None) -> None:
        self.objective = objective
        if self.problem.undetermined:
            return
        try:
            self.optimum = objective.minimiser(near)
        except NoOptimumError as error:
            self._remark(str(error))
            return
        least = objective(self.optimum)
        if not math.isfinite(least):
            self._remark("the objective is not finite at its optimum, so that gaps are left out")
        elif least > 1e-12 * objective(self.problem.solitary):
            self.least = least
        else:
            note = "the optimum of the objective is 0, so that gaps are left out"
            if not objective.unique_at_zero:
                note += "; there may be others, and distances are from one of them"
            self._remark(note)

    def available(self) -> list[str]:
        """The kinds of what is measured, in order."""
        return _kinds(self.metrics)

    def metric(self, kind: str) -> Metric | None:
        """The metric of a kind, if it is measured."""
        return next((metric for metric in self.metrics if metric.kind == kind), None)

    def measure(self, models: Floats) -> dict[str, float]:
        """All metrics of models (n, p), but for staleness, which belongs to the network."""
        self._value, models = None, read_only(models)
        return {
            metric.kind: _number(metric, metric.measure(self, models))
            for metric in self.metrics
            if not isinstance(metric, Staleness)
        }

    def each(self, metric: Metric, models: Floats) -> Floats:
        """A metric of each agent (n,)."""
        values: Any = metric.each(self, read_only(models))
        if np.shape(values) != (self.problem.n,):
            what = f"it must give a number for each of {self.problem.n} agents"
            raise _fault(metric, metric.each, f"{what}, got {_kind(values)}")
        return np.asarray(values)

    def value(self, models: Floats) -> float:
        """Q(Θ) of the models that are being measured, computed once."""
        assert self.objective is not None
        if self._value is None:
            self._value = self.objective(models)
        return self._value


def _default(metric: type[Metric]) -> Metric:
    """A metric with its default parameters."""
    return metric.model_validate({})


def _number(metric: Metric, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        what = f"it must give a number, got {_kind(value)}"
        raise _fault(metric, metric.measure, what) from None


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {getattr(value, 'shape', '')}".strip()


def _fault(metric: Metric, function: Callable[..., Any], what: str) -> SimulatorError:
    return SimulatorError(failed(f"metric {metric.kind}", function, what))


def _kinds(metrics: Sequence[Metric]) -> list[str]:
    return [metric.kind for metric in metrics]


# --- the metrics that are built in ----------------------------------------------------------------
class ObjectiveValue(Metric):
    """Q_MP or Q_CL, whichever the rule minimises."""

    kind: Literal["objective"] = "objective"
    label, always, of_baselines = "objective", True, False

    def available(self, view: View) -> bool:
        """Rules without an objective have none."""
        return view.objective is not None

    def measure(self, view: View, models: Floats) -> float:
        """Q(Θ)."""
        return view.value(models)


class Gap(Metric):
    """Q/Q* − 1."""

    kind: Literal["gap"] = "gap"
    label, always, of_baselines = "objective above its least value", True, False

    def available(self, view: View) -> bool:
        """Only where Q* is not 0."""
        return view.least is not None

    def measure(self, view: View, models: Floats) -> float:
        """Q(Θ)/Q* − 1."""
        if view.least is None:
            return math.nan
        return view.value(models) / view.least - 1.0


class Followed(Metric):
    """A mean squared distance from given models; its time to a level is exact to the event."""

    always, by_agent = True, True

    def reference(self, view: View) -> Floats | None:
        """The models (n, p) from which it is measured."""
        raise NotImplementedError

    def available(self, view: View) -> bool:
        """Where there is a reference."""
        return self.reference(view) is not None

    def measure(self, view: View, models: Floats) -> float:
        """(1/n) Σ_i ‖θ_i − r_i‖²."""
        return float(np.mean(self.each(view, models)))

    def each(self, view: View, models: Floats) -> Floats:
        """‖θ_i − r_i‖² of each agent."""
        reference = self.reference(view)
        if reference is None:  # not now
            return np.full(len(models), math.nan)
        return np.asarray(np.sum((models - reference) ** 2, axis=1))


class Distance(Followed):
    """The mean squared distance to the optimum."""

    kind: Literal["distance"] = "distance"
    label, of_baselines = "mean squared distance\nto the optimum", False

    def reference(self, view: View) -> Floats | None:
        """The optimum."""
        return view.optimum


class L2Error(Followed):
    """The mean squared distance to the true models."""

    kind: Literal["l2_error"] = "l2_error"
    needs_optimum = False
    label = "mean squared error\nto the true models"

    def problems(self, task: Task) -> Problems:
        """The true models must be known."""
        if task.has_targets:
            return []
        return [("", "l2_error needs the true models: give task.targets")]

    def reference(self, view: View) -> Floats | None:
        """The true models."""
        return view.problem.targets


class _OnTestPoints(Metric):
    """A mean over an agent's own test points, and then over the agents that have any."""

    always, by_agent, needs_optimum = True, True, False

    def problems(self, task: Task) -> Problems:
        """There must be test points, with labels or of a regression."""
        labelled = isinstance(self, Accuracy)
        loss = task.loss  # type: ignore[attr-defined]
        if not task.has_test:
            hint = f", and {task.kind} has none" if task.count is not None else ": give task.test"
            return [("", f"{self.kind} needs test points{hint}")]
        if loss.labels == labelled or (labelled and task.count is not None):
            return []
        better = "test_error" if labelled else "accuracy"
        return [("", f"{self.kind} is not for the {loss.kind} loss; {better} is")]

    def measure(self, view: View, models: Floats) -> float:
        """The mean over agents that have test points."""
        return float(np.nanmean(self.each(view, models)))

    def each(self, view: View, models: Floats) -> Floats:
        """Of each agent; NaN for an agent without test points."""
        test, owner = view.problem.test, view.test_owner
        assert test is not None
        assert owner is not None
        scores = self.scores(_predictions(test, owner, models), test.y)
        total = np.bincount(owner, weights=scores, minlength=view.problem.n)
        return np.where(test.sizes > 0, total / np.maximum(test.sizes, 1), np.nan)

    def scores(self, predictions: Floats, y: Floats) -> Floats:
        """Of each test point."""
        raise NotImplementedError


class Accuracy(_OnTestPoints):
    """The share of right predictions on an agent's own test points, mean over agents."""

    kind: Literal["accuracy"] = "accuracy"
    label, grows = "mean test accuracy", True

    def available(self, view: View) -> bool:
        """Where there are test points with labels."""
        test = view.problem.test
        if view.test_owner is None or test is None or test.X is None:
            return False
        return bool(np.all(np.abs(test.y) == 1.0))

    def scores(self, predictions: Floats, y: Floats) -> Floats:
        """1 where the sign is right; xᵀθ = 0 is wrong."""
        return (predictions * y > 0).astype(float)


class TestError(_OnTestPoints):
    """The mean squared error on an agent's own test points, mean over agents."""

    __test__ = False  # pytest: no test in spite of its name
    kind: Literal["test_error"] = "test_error"
    label = "mean squared error\non test points"

    def available(self, view: View) -> bool:
        """Where there are test points, and the loss is one of regression."""
        return view.test_owner is not None and not view.problem.loss.labels

    def scores(self, predictions: Floats, y: Floats) -> Floats:
        """(xᵀθ − y)²."""
        return (predictions - y) ** 2


class Staleness(Metric):
    """Now minus the send time of the copy held, mean over links; measured by the recorder."""

    kind: Literal["staleness"] = "staleness"
    label, always, relative, of_baselines = "mean age of copies in seconds", True, False, False
    needs_optimum = False


#: The metrics by kind, in the order in which they are measured.
METRICS: dict[str, type[Metric]] = {
    str(metric.model_fields["kind"].default): metric
    for metric in (ObjectiveValue, Gap, Distance, L2Error, Accuracy, TestError, Staleness)
}


def _predictions(test: DataSets, owner: Ints, models: Floats) -> Floats:
    """x_t·θ of each test point's agent, (T,); without features its mean."""
    if test.X is None:
        return models[owner, 0]
    n, p = models.shape
    if np.all(test.sizes == test.sizes[0]):
        # As many points for everybody: no need to copy a model for each point.
        products: Floats = np.matmul(test.X.reshape(n, -1, p), models[:, :, None]).ravel()
        return products
    return np.einsum("tp,tp->t", test.X, models[owner])


@dataclass
class Target:
    """A level that a metric is to reach."""

    metric: str
    level: float
    #: As the scenario has it: a number, or a percentage of the value at the start.
    asked: Any
    above: bool = False

    def met_by(self, value: float) -> bool:
        """Is the level reached?"""
        return value >= self.level if self.above else value <= self.level
