"""What agents are coloured by: their models, their errors, the age of what they know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from simulator.engines.setup import first_models
from simulator.problem.problem import Floats, Problem
from simulator.report.packing import squeezed, typed
from simulator.runs.result import Result
from simulator.scenario.algorithm import NormalStart
from simulator.seeds import Streams
from simulator.theory.metrics import View

#: Share of values at either end that a colour scale leaves out, so that a few do not stretch it.
_TAIL = 0.1


def thinned(count: int, most: int) -> np.ndarray:
    """Positions of at most ``most`` of ``count`` things, evenly, the first and last among them."""
    return np.unique(np.linspace(0, count - 1, max(2, min(count, most))).round().astype(int))


def stages(result: Result, most: int) -> tuple[Floats, Floats]:
    """Times (k,) and models (k, n, p) to colour by: those recorded, or the first and the last."""
    if result.kept is not None:
        rows = thinned(len(result.kept.samples), most)
        times = result.trace["time"].to_numpy()[result.kept.samples[rows]]
        return times, result.kept.models[rows]
    end = float(result.summary["simulated_time"])
    first = first_of(result)
    if end == 0:
        return np.zeros(1), result.models[None]
    return np.array([0.0, end]), np.stack([first, result.models])


def first_of(result: Result) -> Floats:
    """The models at the start; the solitary ones where the start was drawn at random."""
    scenario, problem = result.scenario, result.problem
    if scenario.algorithm.rule is None or isinstance(scenario.algorithm.start, NormalStart):
        return problem.solitary
    return first_models(scenario, problem, Streams(scenario.seed).data)[0]


def colourings(
    result: Result, times: Floats, models: Floats, agents: np.ndarray
) -> Iterable[dict[str, Any]]:
    """Models and errors of the agents that are drawn, over time."""
    yield by_model(result.problem, times, models[:, agents])
    view = View(result.scenario, result.problem)
    for metric in view.metrics:
        if metric.by_agent:
            values = np.stack([view.each(metric, each)[agents] for each in models])
            text = metric.label.replace("mean ", "").replace("\n", " ")
            log = not metric.grows and bool((values[np.isfinite(values)] > 0).any())
            yield colouring(metric.kind, text or metric.kind, times, values, log=log)


def model_values(problem: Problem, models: Floats) -> tuple[Floats, str]:
    """A number for each model of (k, n, p), (k, n), and what it is.

    The model itself where it is a number, else its part along the direction that tells most of
    the last ones apart.
    """
    if problem.p == 1:
        return models[..., 0], "model"
    middle = models[-1].mean(axis=0)
    direction = np.linalg.svd(models[-1] - middle, full_matrices=False)[2][0]
    return (models - middle) @ direction, "model (principal component)"


def reach_of(values: Floats) -> float:
    """How far from 0 colours go: as far as most of the values (k, n) at any time."""
    return float(np.quantile(np.abs(values), 1 - _TAIL)) or 1.0


def by_model(problem: Problem, times: Floats, models: Floats) -> dict[str, Any]:
    """The models; where there are negative and positive ones, they part mid-scale."""
    values, text = model_values(problem, models)
    found = colouring("model", text, times, values, log=False)
    reach = reach_of(values)
    if values[-1].min() < 0 < values[-1].max():
        return {**found, "diverging": True, "low": -reach, "high": reach}
    return found


def colouring(kind: str, text: str, times: Floats, values: Floats, *, log: bool) -> dict[str, Any]:
    """Values (times, agents), and the range that the colours span."""
    known = values[np.isfinite(values)]
    if log:
        known = known[known > 0]
    low, high = np.quantile(known, [_TAIL, 1 - _TAIL]) if len(known) else (0.0, 1.0)
    return {
        "kind": kind,
        "label": text,
        "times": typed(times, "f8"),
        "values": squeezed(values, log=log),
        "low": float(low),
        "high": float(high) if high > low else float(low) + 1.0,
        "diverging": False,
    }
