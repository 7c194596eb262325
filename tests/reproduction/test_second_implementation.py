"""The paper's numbers once more, by a second implementation: ``make verify``.

Nothing here comes from the package: instances are drawn by other code from other random numbers,
models are found by other methods, and what the paper leaves open is read from choices.yaml as plain
YAML.  The means must agree with those in results/paper/ within their sampling errors.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.optimize import minimize, nnls

pytestmark = pytest.mark.verify

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "results" / "paper"
#: The greatest difference of two means that is put down to chance, in standard errors.
LIMIT = 4.0


@pytest.fixture(scope="module")
def chosen():
    blocks = yaml.safe_load((ROOT / "reproduction" / "choices.yaml").read_text())
    return {b: {k: v["value"] for k, v in block.items()} for b, block in blocks.items()}


def agrees(values, row, name, instances) -> bool:
    """Is the mean of our values that of a published row, given the spread of both?"""
    values = np.asarray(values)
    published = (row[f"{name}_high"] - row[f"{name}_low"]) / 2 / 2.0  # half a 95 % interval
    error = np.hypot(values.std(ddof=1) / np.sqrt(instances), published)
    return abs(values.mean() - row[name]) <= LIMIT * error


def test_figure_2_at_full_width(chosen):
    rng, choices, n, instances = np.random.default_rng(77), chosen["mean_estimation"], 300, 500
    assert (choices["confidence"], choices["without"]) == ("share", "mean")
    alpha, errors = choices["alpha"], []
    for _ in range(instances):
        t, mean = rng.uniform(0, np.pi, n), np.where(np.arange(n) % 2, -1.0, 1.0)
        upper = np.stack([np.cos(t), np.sin(t)], axis=1)
        lower = np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=1)
        v = np.where(mean[:, None] > 0, upper, lower) + rng.normal(0, choices["noise"], (n, 2))
        W = np.exp(-((v[:, None] - v[None]) ** 2).sum(axis=2) / (2 * 0.1**2))
        np.fill_diagonal(W, 0)
        P = W / W.sum(axis=1, keepdims=True)
        m = np.ceil(100 * rng.uniform(0, 1, n))
        solitary = rng.normal(mean, np.sqrt(40 / m))
        c = m / 100
        row = []
        for C in (np.diag(c), c.mean() * np.eye(n)):
            A = np.eye(n) - (1 - alpha) * (np.eye(n) - C) - alpha * P
            models = (1 - alpha) * np.linalg.solve(A, C @ solitary)
            row.append(np.mean((models - mean) ** 2))
        errors.append(row)
    with_c, without = np.array(errors).T
    left = pd.read_csv(PAPER / "fig2-left.csv").set_index("width").loc[1.0]
    middle = pd.read_csv(PAPER / "fig2-middle.csv").set_index("width").loc[1.0]
    assert agrees(with_c, left, "with", instances)
    assert agrees(without, left, "without", instances)
    assert agrees((with_c < without).astype(float), middle, "win_ratio", instances)


def descend(value_and_gradient, size):
    found = minimize(
        value_and_gradient,
        np.zeros(size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-13, "gtol": 1e-7},
    )
    return found.x


def rounded_hinge(margins, width=1e-3):
    """The hinge with its corner replaced by an arc: values and slopes."""
    gap = 1 - margins
    inside = (gap > 0) & (gap < width)
    value = np.where(gap <= 0, 0.0, np.where(inside, gap**2 / (2 * width), gap - width / 2))
    return value, -np.clip(gap / width, 0, 1)


def ridge_fit(Z, ridge):
    """Minimises Σ hinge(z·θ) + (ridge/2)‖θ‖², z = y x."""

    def cost(theta):
        value, slope = rounded_hinge(Z @ theta)
        return value.sum() + ridge / 2 * theta @ theta, slope @ Z + ridge * theta

    return descend(cost, Z.shape[1])


def shortest(Z):
    """The shortest θ with z·θ ≥ 1 for all points, by Lawson and Hanson's nonnegative squares.

    Fewer points than dimensions are always separable, so it is the shortest of all minimisers of
    the hinge loss, which a tiny ridge picks.
    """
    E = np.vstack([Z.T, np.ones(len(Z))])
    f = np.append(np.zeros(Z.shape[1]), 1.0)
    residual = E @ nnls(E, f)[0] - f
    return -residual[:-1] / residual[-1]


def test_figure_3_in_50_dimensions(chosen):
    rng, choices = np.random.default_rng(78), chosen["linear_classification"]
    n, p, instances, ridge = 100, 50, 12, choices["ridge"]
    assert (choices["points"], choices["test_flip"]) == ("cube", True)
    assert ridge <= 1e-6
    alpha, mu = choices["alpha"]["p50"], choices["mu"]["p50"]
    rows = []
    for _ in range(instances):
        targets = np.zeros((n, p))
        targets[:, :2] = rng.normal(size=(n, 2))
        unit = targets / np.linalg.norm(targets, axis=1, keepdims=True)
        W = np.exp((unit @ unit.T - 1) / 0.1)
        np.fill_diagonal(W, 0)
        W = np.where(choices["min_weight"] < W, W, 0.0)
        D, m = W.sum(axis=1), rng.integers(1, 21, n)
        owner = np.repeat(np.arange(n), m)

        def labelled(owner, targets=targets):
            X = rng.uniform(-1, 1, (len(owner), p))
            flips = np.where(rng.random(len(owner)) < 0.05, -1, 1)
            return X * (np.sign((X * targets[owner]).sum(axis=1)) * flips)[:, None]

        Z, test = labelled(owner), labelled(np.repeat(np.arange(n), 100)).reshape(n, 100, p)
        solitary = np.array([shortest(Z[owner == i]) for i in range(n)])
        C, P = np.diag(m / m.max()), W / D[:, None]
        A = np.eye(n) - (1 - alpha) * (np.eye(n) - C) - alpha * P

        def cost(flat, D=D, W=W, Z=Z, owner=owner):
            theta = flat.reshape(n, p)
            smooth = D[:, None] * theta - W @ theta
            value, slope = rounded_hinge((Z * theta[owner]).sum(axis=1))
            gradient = 2 * smooth
            np.add.at(gradient, owner, (mu * D[owner] * slope)[:, None] * Z)
            return np.sum(theta * smooth) + mu * D[owner] @ value, gradient.ravel()

        models = {
            "solitary": solitary,
            "consensus": np.tile(ridge_fit(Z, ridge), (n, 1)),
            "mp": (1 - alpha) * np.linalg.solve(A, C @ solitary),
            "cl": descend(cost, n * p).reshape(n, p),
        }
        rows.append({k: np.mean(np.einsum("itp,ip->it", test, v) > 0) for k, v in models.items()})
    ours = pd.DataFrame(rows)
    row = pd.read_csv(PAPER / "fig3-left.csv").set_index("dimension").loc[50]
    for name in ours:
        assert agrees(ours[name], row, name, instances), (name, ours[name].mean(), row[name])
