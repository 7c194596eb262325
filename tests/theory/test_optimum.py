"""The objectives against double loops, the optima against formulas and independent certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize
from scipy.sparse import csr_array

import simulator.theory.central
import simulator.theory.objectives
from agents.losses import LOSSES
from agents.losses.absolute import Absolute
from agents.losses.hinge import Hinge
from simulator.errors import NoOptimumError, SimulatorError
from simulator.problem.problem import DataSets, Problem
from simulator.runs.plugins import schema_for
from simulator.theory.central import LARGEST, MOST, remembered
from simulator.theory.metrics import View
from simulator.theory.objectives import (
    Collaboration,
    Propagation,
    cl_optimum,
    consensus_model,
    mp_optimum,
)
from tests.conftest import LINEAR, build, problem_of

NAMES = list(LOSSES)


def make_problem(rng, name="quadratic", n=6, p=2, sizes=None, density=1.0, X=None, W=None):
    """A random problem; ``sizes`` are the numbers of points, ``X`` replaces the points."""
    if W is None:
        upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
        W = upper + upper.T
    sizes = rng.integers(0, 5, n) if sizes is None else np.asarray(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.uniform(-1, 1, (offsets[-1], p)) if X is None else X
    labels = rng.choice([-1.0, 1.0], offsets[-1])
    y = labels if name in ("hinge", "logistic") else rng.normal(0, 2, offsets[-1])
    return Problem(
        W=csr_array(W),
        loss=LOSSES[name](),
        data=DataSets(X, y, offsets),
        confidence=sizes / max(sizes.max(), 1),
        solitary=rng.normal(size=(n, p)),
        targets=None,
        test=None,
        vectors=None,
        names=[str(i) for i in range(n)],
    )


def naive_smoothness(W, Theta):
    n = len(Theta)
    return sum(
        W[i, j] * np.sum((Theta[i] - Theta[j]) ** 2) for i in range(n) for j in range(i + 1, n)
    )


def naive_q_cl(problem, mu, Theta):
    losses = sum(
        problem.W.toarray()[i].sum() * problem.loss.total(Theta[i], *problem.data[i])
        for i in range(problem.n)
    )
    return naive_smoothness(problem.W.toarray(), Theta) + mu * losses


def certificate(problem, mu, Theta, kink=1e-7):
    """Least norm of a subgradient of Q_CL at Θ, relative to the largest pull of a data set.

    The points' slopes may take any value that their loss allows at Θ; bounded least squares
    chooses them.  0 if and only if Θ is a minimiser.
    """
    W, D, y = problem.W.toarray(), problem.D, problem.data.y
    owner = np.repeat(np.arange(problem.n), problem.data.sizes)
    X = np.ones((len(y), 1)) if problem.data.X is None else problem.data.X
    rows = np.zeros((len(y), problem.n, problem.p))
    rows[np.arange(len(y)), owner] = X * (mu * D[owner])[:, None]
    rows = rows.reshape(len(y), problem.n * problem.p)
    smooth = 2 * (np.diag(D) - W) @ Theta
    s = np.sum(X * Theta[owner], axis=1)
    scale = 1 + np.abs(s)
    if problem.loss.kind == "hinge":
        margin = y * s - 1
        low, high = (
            np.where(margin > kink * scale, 0.0, -1.0),
            np.where(margin < -kink * scale, -1, 0.0),
        )
        rows = rows * y[:, None]
    elif problem.loss.kind == "absolute":
        low = np.where(s - y > kink * scale, 1.0, -1.0)
        high = np.where(s - y < -kink * scale, -1.0, 1.0)
    else:
        low = high = problem.loss.slopes(s, y)
    fixed = low == high
    rest = smooth.ravel() + low[fixed] @ rows[fixed]
    if not fixed.all():
        bounds = (low[~fixed], high[~fixed])
        best = lsq_linear(rows[~fixed].T, -rest, bounds=bounds, method="bvls", tol=1e-15)
        rest = rest + best.x @ rows[~fixed]
    return np.abs(rest).max() / max(np.abs(rows).max(initial=0.0), 1e-12)


# --- objectives ----------------------------------------------------------------------------------
def test_objectives_equal_double_loops(rng, monkeypatch):
    monkeypatch.setattr(
        simulator.theory.objectives, "BLOCK", 8
    )  # several blocks, the last one not full
    problem = make_problem(rng, "hinge", n=7, p=3, density=0.7)
    Theta, W, mu = rng.normal(size=(7, 3)), problem.W.toarray(), 0.3
    attachment = sum(
        W[i].sum() * problem.confidence[i] * np.sum((Theta[i] - problem.solitary[i]) ** 2)
        for i in range(7)
    )
    q_mp = 0.5 * (naive_smoothness(W, Theta) + mu * attachment)
    assert Propagation(problem, mu)(Theta) == pytest.approx(q_mp, rel=1e-13)
    assert Collaboration(problem, mu)(Theta) == pytest.approx(
        naive_q_cl(problem, mu, Theta), rel=1e-13
    )


def test_objective_of_means(rng):
    problem = make_problem(rng, "quadratic", n=5, p=1)
    means = replace(problem, data=DataSets(None, problem.data.y, problem.data.offsets))
    Theta = rng.normal(size=(5, 1))
    assert Collaboration(means, 2.0)(Theta) == pytest.approx(
        naive_q_cl(means, 2.0, Theta), rel=1e-13
    )


def test_smoothness_does_not_cancel_near_consensus(rng):
    problem = make_problem(rng, n=5)
    Theta = 1e6 + 1e-6 * rng.integers(-9, 9, (5, 2))
    exact = naive_smoothness(problem.W.toarray(), Theta)
    assert 0 < Collaboration(problem, 1.0).smoothness(Theta) == pytest.approx(exact, rel=1e-12)


# --- model propagation ---------------------------------------------------------------------------
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_mp_optimum_is_proposition_1_and_the_fixed_point_of_equation_5(alpha, rng):
    problem = make_problem(rng, n=12, p=3)
    W, C, solitary = problem.W.toarray(), np.diag(problem.confidence), problem.solitary
    P, eye, rest = W / W.sum(axis=1, keepdims=True), np.eye(12), 1 - alpha
    literal = rest * np.linalg.inv(eye - rest * (eye - C) - alpha * P) @ C @ solitary
    Theta = mp_optimum(problem.W, problem.confidence, solitary, rest / alpha)
    np.testing.assert_allclose(Theta, literal, rtol=0, atol=1e-10)
    again = np.linalg.inv(alpha * eye + rest * C) @ (alpha * P @ Theta + rest * C @ solitary)
    np.testing.assert_allclose(again, Theta, rtol=0, atol=1e-12)


def test_mp_optimum_by_conjugate_gradients_agrees(rng, monkeypatch):
    n = 60
    ring = np.roll(np.eye(n), 1, axis=1)
    problem = make_problem(rng, n=n, p=2, W=ring + ring.T)
    solve = mp_optimum.__wrapped__  # which remembers nothing
    direct = solve(problem.W, problem.confidence, problem.solitary, 0.05)
    monkeypatch.setattr(simulator.theory.objectives, "DIRECT_AGENTS", 10)
    iterative = solve(problem.W, problem.confidence, problem.solitary, 0.05)
    assert np.abs(iterative - direct).max() > 0  # it was the other method
    np.testing.assert_allclose(iterative, direct, rtol=0, atol=1e-9)


def test_mp_optimum_of_separate_parts_and_an_isolated_agent(rng):
    W = np.zeros((6, 6))
    W[0, 1] = W[1, 0] = W[2, 3] = W[3, 2] = W[3, 4] = W[4, 3] = 0.5
    c, solitary = np.array([1.0, 0, 0, 0.5, 0.2, 0]), rng.normal(size=(6, 2))
    Theta = mp_optimum(csr_array(W), c, solitary, 0.2)
    np.testing.assert_array_equal(Theta[5], solitary[5])
    np.testing.assert_allclose(Theta[:2], [solitary[0]] * 2, atol=1e-12)
    part = mp_optimum(csr_array(W[2:5, 2:5]), c[2:5], solitary[2:5], 0.2)
    np.testing.assert_allclose(Theta[2:5], part, atol=1e-13)


def test_mp_optimum_without_data_in_a_part_is_an_error():
    """Which ``build_problem`` refuses."""
    W = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(NoOptimumError, match="cannot be computed"):
        mp_optimum(W, np.zeros(2), np.zeros((2, 1)), 1.0)


# --- collaborative learning ----------------------------------------------------------------------
@given(
    name=st.sampled_from(["quadratic", "absolute", "hinge"]),
    seed=st.integers(0, 10**6),
    n=st.integers(2, 7),
    p=st.integers(1, 4),
    most=st.sampled_from([2, 4, 12]),
    mu=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    duplicated=st.booleans(),
)
def test_cl_optimum_is_stationary(name, seed, n, p, most, mu, duplicated):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, most, n) * (rng.random(n) < 0.7)
    X = rng.uniform(-1, 1, (sizes.sum(), p))
    if duplicated and len(X):
        X = X[rng.integers(0, len(X) // 2 + 1, len(X))]
    problem = make_problem(rng, name, n, p, sizes, density=rng.choice([0.5, 1.0]), X=X)
    Theta = cl_optimum(problem, mu)
    alone = problem.D == 0
    np.testing.assert_array_equal(Theta[alone], problem.solitary[alone])
    assert certificate(problem, mu, Theta) < 1e-6


@pytest.mark.parametrize("mu", [1e-3, 0.1, 10.0])
def test_cl_optimum_of_the_logistic_loss_is_stationary(mu, rng):
    problem = make_problem(rng, "logistic", n=6, p=2, sizes=[20, 15, 0, 1, 0, 9])
    assert certificate(problem, mu, cl_optimum(problem, mu)) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_cl_optimum_agrees_with_a_general_optimiser(name, rng):
    sizes = [6, 0, 5, 3]
    problem, mu = make_problem(rng, name, n=4, p=2, sizes=sizes), 0.4
    Theta = cl_optimum(problem, mu)
    X, y, W, D = problem.data.X, problem.data.y, problem.W.toarray(), problem.D
    owner = np.repeat(np.arange(4), sizes)

    def value(x):
        return naive_smoothness(W, x[:8].reshape(4, 2))

    def predictions(x):
        return np.sum(X * x[:8].reshape(4, 2)[owner], axis=1)

    if name in ("hinge", "absolute"):  # epigraph: one variable u_k ≥ ℓ_k a point
        gaps = [
            lambda x: (
                x[8:] - (1 - y * predictions(x)) if name == "hinge" else x[8:] - predictions(x) + y
            ),
            lambda x: x[8:] if name == "hinge" else x[8:] + predictions(x) - y,
        ]
        best = minimize(
            lambda x: value(x) + mu * D[owner] @ x[8:],
            np.concatenate([np.zeros(8), np.full(len(y), 9.0)]),
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": gap} for gap in gaps],
            options={"ftol": 1e-13, "maxiter": 1000},
        )
    else:
        best = minimize(
            lambda x: naive_q_cl(problem, mu, x.reshape(4, 2)),
            np.zeros(8),
            method="BFGS",
            options={"gtol": 1e-7},
        )
    least = naive_q_cl(problem, mu, Theta)
    assert least == pytest.approx(best.fun, rel=1e-6)
    assert least <= best.fun + 1e-9
    np.testing.assert_allclose(Theta.ravel(), best.x[:8], atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_cl_optimum_is_the_same_with_blocks_instead_of_factors(name, rng, monkeypatch):
    problem = make_problem(rng, name, n=12, p=3, sizes=[20, 1, 0, 7, 9, 3, 0, 2, 15, 4, 4, 5])
    dense = cl_optimum(problem, 0.2)
    forgetful = simulator.theory.central.minimise.__wrapped__
    monkeypatch.setattr(simulator.theory.objectives, "minimise", forgetful)
    monkeypatch.setattr(simulator.theory.central, "DENSE_POINTS", 0)
    np.testing.assert_allclose(cl_optimum(problem, 0.2), dense, rtol=0, atol=1e-7)


def test_cl_optimum_of_means_is_the_solution_of_its_linear_system(rng):
    problem = make_problem(rng, "quadratic", n=8, p=1)
    data = DataSets(None, problem.data.y, problem.data.offsets)
    means = replace(problem, data=data)
    m, D, mu = data.sizes, np.diag(problem.D), 0.7
    sums = np.array([y.sum() for _, y in data])
    expected = np.linalg.solve(D - problem.W.toarray() + mu * D @ np.diag(m), mu * D @ sums)
    np.testing.assert_allclose(cl_optimum(means, mu)[:, 0], expected, rtol=2e-14)


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_cl_optimum_is_as_near_as_the_models_that_it_judges(name, rng):
    """What is left of the gradient is rounding: agents' models come as near."""
    problem, mu = make_problem(rng, name, n=40, p=3, sizes=rng.integers(2, 9, 40)), 0.3
    Theta = cl_optimum(problem, mu)
    gradient = 2 * (problem.D[:, None] * Theta - problem.W @ Theta)
    for i, (X, y) in enumerate(problem.data):
        gradient[i] += mu * problem.D[i] * problem.loss.gradient(Theta[i], X, y)
    assert np.abs(gradient).max() < 1e-14 * np.abs(problem.D[:, None] * Theta).max()


def test_cl_optimum_tends_to_the_consensus_weighted_by_degrees(rng):
    """μ → 0 on an irregular graph: the one model that minimises Σ D_ii L_i, and not Σ L_i."""
    problem = make_problem(rng, n=12, p=2, sizes=[5] * 12, density=0.5)
    D = np.repeat(problem.D, 5)
    X, y = problem.data.X, problem.data.y
    weighted = np.linalg.solve(X.T @ (D[:, None] * X), X.T @ (D * y))
    np.testing.assert_allclose(cl_optimum(problem, 1e-7), np.tile(weighted, (12, 1)), atol=1e-5)
    assert np.abs(weighted - consensus_model(problem, 0.0)).max() > 1e-3


def test_cl_optimum_where_one_model_satisfies_all(rng):
    """Q_CL = 0: the optimum is a consensus, though not a unique one."""
    truth = np.array([3.0, -2.0, 1.0])
    X = rng.uniform(-1, 1, (40, 3))
    X += np.sign(X @ truth)[:, None] * truth / 7
    problem = make_problem(rng, "hinge", n=10, p=3, sizes=[4] * 10, X=X)
    problem.data.y[:] = np.sign(X @ truth)
    Theta = cl_optimum(problem, 0.5)
    assert Collaboration(problem, 0.5)(Theta) < 1e-12
    with pytest.raises(SimulatorError, match="no minimiser"):
        cl_optimum(replace(problem, loss=LOSSES["logistic"]()), 0.5)


def test_cl_optimum_without_any_link_is_solitary(rng):
    problem = make_problem(rng, "hinge", n=3, W=np.zeros((3, 3)))
    np.testing.assert_array_equal(cl_optimum(problem, 1.0), problem.solitary)


# --- consensus -----------------------------------------------------------------------------------
@pytest.mark.parametrize("ridge", [1e-7, 1e-8, 1e-14, 0.0])
def test_the_pooled_logistic_fit_hardly_needs_a_ridge(ridge, rng):
    """Where labels are those of a noisy linear model it is strictly convex by itself."""
    X = rng.uniform(-1, 1, (800, 5))
    problem = make_problem(rng, "logistic", n=50, p=5, sizes=[16] * 50, X=X)
    problem.data.y[:] = np.sign(X @ rng.normal(size=5) + 0.5 * rng.normal(size=800))
    theta, y = consensus_model(problem, ridge), problem.data.y
    pull = -(y / (1 + np.exp(y * (X @ theta)))) @ X + ridge * theta
    assert np.abs(pull).max() < 1e-11


@pytest.mark.parametrize("name", NAMES)
def test_consensus_model_minimises_the_sum_of_all_losses(name, rng):
    problem = make_problem(rng, name, n=30, p=3, sizes=rng.integers(0, 20, 30))
    ridge = 0.01 if name in ("hinge", "logistic") else 0.0
    theta = consensus_model(problem, 0.01)

    def total(x):
        losses = problem.loss.values(problem.data.X @ x, problem.data.y).sum()
        return losses + ridge / 2 * np.sum(x**2)

    for _ in range(200):
        assert total(theta + rng.normal(0, 10.0 ** rng.uniform(-6, 0), 3)) >= total(theta) - 1e-9


def unbalanced(problem, theta, ridge):
    """How far θ is from ridge·θ = Σ_k d_k y_k x_k, d_k = 1 below the margin, 0 above, 0 … 1 at it.

    Relative to the force of the points below the margin; the d_k at it are found by least squares.
    """
    X, y = problem.data.X, problem.data.y
    margins = y * (X @ theta)
    at = np.abs(margins - 1) < 1e-7
    below = (margins < 1) & ~at
    force = ridge * theta - y[below] @ X[below]
    edges = (y[at, None] * X[at]).T
    d = np.linalg.lstsq(edges, force, rcond=None)[0]
    return np.linalg.norm(edges @ np.clip(d, 0, 1) - force) / np.linalg.norm(force)


def test_consensus_model_of_as_many_dimensions_as_points_that_conflict(rng):
    """100 agents who disagree, p = 100: coordinate descent on all points did not get there."""
    problem = make_problem(rng, "hinge", n=100, p=100, sizes=rng.integers(1, 21, 100))
    assert unbalanced(problem, consensus_model(problem, 0.01), 0.01) < 1e-6


def test_consensus_model_with_a_point_that_hardly_misses_its_margin():
    """Here 51 margins in 50 dimensions are 1 up to 1e-9; penalties up to 1e9 did not part them."""
    task = {"kind": "linear_classification", "agents": 100, "dimension": 50}
    problem = problem_of(schema_for().model_validate({**LINEAR, "seed": 50, "task": task}))
    assert unbalanced(problem, consensus_model(problem, 0.01), 0.01) < 1e-6


# --- solved once ---------------------------------------------------------------------------------
def test_the_same_question_is_solved_once_and_another_anew(rng):
    asked = []

    @remembered
    def solve(K, loss, y, definite=False):
        asked.append(definite)
        return y + K.data.sum()

    K, y = csr_array(np.eye(3)), rng.normal(size=3)
    first = solve(K, Hinge(), y)
    first[:] = 0.0  # what is handed out is the caller's
    np.testing.assert_array_equal(solve(K.copy(), Hinge(), y.copy()), y + 3.0)
    assert asked == [False]
    other = y.copy()
    other[2] = np.nextafter(other[2], np.inf)
    for question in ((K, Hinge(), other), (K, Absolute(), y), (2.0 * K, Hinge(), y)):
        solve(*question)
    solve(K, Hinge(), y, definite=True)
    assert asked == [False] * 4 + [True]


def test_only_the_last_solutions_are_kept_and_no_large_ones():
    asked = []

    @remembered
    def solve(x, size):
        asked.append(x)
        return np.zeros(size)

    for x in (*range(MOST + 1), 1, 0):
        solve(x, 1)
    assert asked == [*range(MOST + 1), 0]
    for _ in range(2):
        solve(-1, LARGEST + 1)
    assert asked[-2:] == [-1, -1]


def test_an_optimum_of_zero_is_said_not_to_be_the_only_one():
    """Two points that one separator has beyond its margin: twice that separator does as well."""
    samples = {"kind": "uniform", "low": 1, "high": 1}
    scenario = build(LINEAR, task__agents=2, task__samples=samples)
    view = View(scenario, problem_of(scenario))
    assert view.least is None
    (note,) = view.notes
    assert "there may be others" in note
    both = [np.tile(scale * view.optimum.mean(axis=0), (2, 1)) for scale in (1.1, 2.0)]
    assert [view.objective(models) for models in both] == [0.0, 0.0]
