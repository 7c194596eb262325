"""Optimal models of many random instances, without a network: what the paper solves directly.

Each function takes a scenario and the seeds of its instances and returns a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from agents.rules.model_propagation import ModelPropagation
from simulator import Scenario
from simulator.engines.setup import Setup, prepare
from simulator.problem.build import build_problem
from simulator.problem.problem import Floats, Problem
from simulator.problem.tasks.papers import ConfidenceWidth, LinearClassification, MeanEstimation
from simulator.seeds import Streams
from simulator.theory.metrics import Accuracy, View
from simulator.theory.objectives import (
    Collaboration,
    Propagation,
    cl_optimum,
    consensus_model,
    mp_optimum,
)


def confidences(problem: Problem, largest: int) -> dict[str, Floats]:
    """The ways of taking confidences into account, or not: C of each."""
    c = problem.confidence
    return {
        "data": c,
        "share": problem.data.sizes / largest,
        "mean": np.full(problem.n, c.mean()),
        "mean_share": np.full(problem.n, problem.data.sizes.mean() / largest),
        "one": np.ones(problem.n),
    }


def propagated(problem: Problem, C: Floats, mu: float) -> Floats:
    """Proposition 1 for a stack of confidences (k, n) at once, models in R: (k, n).

    The same system as ``mp_optimum`` solves, (I − D^−½ W D^−½ + μ C) D^½ Θ = μ C D^½ Θ^sol, dense.
    """
    root = np.sqrt(problem.D)
    similarity = problem.W.toarray() / root / root[:, None]
    systems = np.tile(-similarity, (len(C), 1, 1))
    diagonal = np.arange(problem.n)
    systems[:, diagonal, diagonal] += 1.0 + mu * C
    right = mu * C * root * problem.solitary[:, 0]
    return np.asarray(np.linalg.solve(systems, right[:, :, None])[:, :, 0] / root)


def mean_errors(scenario: Scenario, seeds: Sequence[int], alphas: Sequence[float]) -> pd.DataFrame:
    """Section 5.1: the L2 error of model propagation with each kind of confidences.

    Columns: seed, alpha, the errors by kind, and that of the solitary models.
    """
    assert isinstance(scenario.task, MeanEstimation)
    assert isinstance(scenario.task.samples, ConfidenceWidth)
    largest = scenario.task.samples.max
    rows = []
    for seed in seeds:
        problem = build_problem(scenario, Streams(seed))
        assert problem.targets is not None
        kinds = confidences(problem, largest)
        for alpha in alphas:
            models = propagated(problem, np.array(list(kinds.values())), (1 - alpha) / alpha)
            errors = np.mean((models - problem.targets[:, 0]) ** 2, axis=1)
            row: dict[str, Any] = {"seed": seed, "alpha": alpha}
            row |= dict(zip(kinds, errors.tolist(), strict=True))
            row["solitary"] = float(np.mean((problem.solitary - problem.targets) ** 2))
            rows.append(row)
    return pd.DataFrame(rows)


def accuracies(
    scenario: Scenario, seeds: Sequence[int], alphas: Sequence[float], mus: Sequence[float]
) -> pd.DataFrame:
    """Section 5.2: test accuracy by method, trade-off and number of training points.

    One row for each seed, method, trade-off and number of points that occurs: the mean accuracy
    of the agents with so many points, and how many they are.
    """
    rows = []
    for seed in seeds:
        problem = build_problem(scenario, Streams(seed))
        view = View(scenario, problem)
        assert isinstance(scenario.task, LinearClassification)
        consensus = consensus_model(problem, scenario.task.ridge)
        models = {
            ("solitary", np.nan): problem.solitary,
            ("consensus", np.nan): np.tile(consensus, (problem.n, 1)),
        }
        for alpha in alphas:
            models["mp", alpha] = mp_optimum(
                problem.W, problem.confidence, problem.solitary, (1 - alpha) / alpha
            )
        for mu in mus:
            models["cl", mu] = cl_optimum(problem, mu)
        for (method, trade_off), theta in models.items():
            table = pd.DataFrame(
                {"points": problem.data.sizes, "accuracy": Accuracy().each(view, theta)}
            )
            groups = table.groupby("points")["accuracy"].agg(["size", "mean"]).reset_index()
            groups.columns = pd.Index(["points", "agents", "accuracy"])
            groups.insert(0, "trade_off", trade_off)
            groups.insert(0, "method", method)
            groups.insert(0, "seed", seed)
            rows.append(groups)
    return pd.concat(rows, ignore_index=True)


def by_instance(table: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy over agents: a row an instance, a column a method."""
    weighted = table.assign(right=table["accuracy"] * table["agents"])
    sums = weighted.groupby(["seed", "method"])[["right", "agents"]].sum()
    return (sums["right"] / sums["agents"]).unstack("method")


def equivalence(scenario: Scenario, seeds: Sequence[int], alphas: Sequence[float]) -> pd.DataFrame:
    """Section 5.2: on means, Q_CL = 2 Q_MP + constant where μ_CL m_i = μ_MP c_i.

    Columns: seed, alpha, by how much Q_CL − 2 Q_MP varies over random models, relative to Q_CL, and
    how far apart the two optima are, relative to the largest model.
    """
    rows = []
    for seed in seeds:
        problem = build_problem(scenario, Streams(seed))
        rng = np.random.default_rng(seed)
        models = [problem.solitary, *rng.normal(size=(20, problem.n, problem.p))]
        for alpha in alphas:
            mu = (1 - alpha) / alpha
            mp = Propagation(problem, mu)
            cl = Collaboration(problem, mu / float(problem.data.sizes.max()))
            values = np.array([cl(theta) for theta in models])
            rest = values - np.array([2 * mp(theta) for theta in models])
            ours, theirs = mp.minimiser(), cl.minimiser()
            row: dict[str, Any] = {"seed": seed, "alpha": alpha}
            row["objectives"] = float(np.ptp(rest) / np.abs(values).max())
            row["models"] = float(np.abs(ours - theirs).max() / np.abs(ours).max())
            rows.append(row)
    return pd.DataFrame(rows)


def mean_update(setup: Setup, mu: float) -> Floats:
    """Appendix C's mean update of model propagation, for models in R: E x(t + 1) = Ā E x(t).

    x is all models, all copies and a one, for what is added.  An exchange of i and j, whose chance
    s_ij follows from how often they tick, overwrites their copies of each other, then their models.
    """
    problem, n, i, j = setup.problem, setup.problem.n, setup.owners, setup.neighbour
    asks = (setup.rates / setup.rates.sum() / np.diff(setup.first))[i]
    s = asks + asks[setup.back]
    agents, copies = np.arange(n), n + np.arange(len(i))
    meets, anchor = np.bincount(i, s, n), mu * problem.confidence
    gain = problem.W.data / (problem.D * (1.0 + anchor))[i]
    A = np.zeros((n + len(i) + 1,) * 2)
    A[-1, -1] = 1.0
    A[copies, copies], A[copies, j] = 1.0 - s, s
    A[agents, agents] = 1.0 - meets
    A[i, copies], A[i, j] = gain * (meets[i] - s), gain * s
    A[agents, -1] = meets * anchor / (1.0 + anchor) * problem.solitary[:, 0]
    return A


def expected_models(
    scenario: Scenario, seeds: Sequence[int], lengths: Sequence[float]
) -> pd.DataFrame:
    """Theorem 1's E[Θ(t)], exactly, given the clocks that each seed draws.

    Each length (in communications, two an exchange) is twice the one before.  Columns: seed,
    communications, agent, expected, optimum.
    """
    rows = []
    for seed in seeds:
        streams = Streams(seed, scenario.problem_seed)
        problem = build_problem(scenario, streams)
        setup = prepare(scenario, problem, streams, ModelPropagation)
        mu = scenario.algorithm.trade_off  # type: ignore[attr-defined]
        optimum = Propagation(problem, mu).minimiser()[:, 0]
        first = np.concatenate([setup.models[:, 0], setup.copies[:, 0], [1.0]])
        power = np.linalg.matrix_power(mean_update(setup, mu), round(lengths[0] / 2))
        for length in lengths:
            row = {"seed": seed, "communications": int(length), "agent": np.arange(problem.n)}
            row |= {"expected": (power @ first)[: problem.n], "optimum": optimum}
            rows.append(pd.DataFrame(row))
            power = power @ power
    return pd.concat(rows, ignore_index=True)


#: By the names under which tables are stored.
FUNCTIONS: dict[str, Callable[..., pd.DataFrame]] = {
    "equivalence": equivalence,
    "expected-models": expected_models,
    "mean-errors": mean_errors,
    "accuracies": accuracies,
}
