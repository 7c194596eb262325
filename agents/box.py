"""The proximal step of losses with kinks, a quadratic program in a box, and its linear algebra.

Plain functions on arrays that write their result into ``theta`` (p,), start from ``dual`` (m,),
leave the new dual there, and return False when the limit of passes was reached first.
"""

# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import entry, inlined, kernel

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Accuracy relative to the size of the terms that a stopping rule compares.
TOLERANCE = 1e-12
PASS_LIMIT = 10_000
#: Passes of coordinate descent before the first multiplier step and between two of them, and
#: these steps' penalties in turn, relative to a/‖z‖².
FIRST_PASSES = 100
PASSES = 5
PENALTIES = (1e1, 1e3, 1e5, 1e7, 1e9)
MULTIPLIER_LIMIT = 50


@inlined
def combine(Z: Floats, a: float, v: Floats, dual: Floats, theta: Floats) -> None:
    """θ = v + Zᵀ dual / a."""
    for j in range(len(v)):
        theta[j] = v[j]
    for k in range(len(dual)):
        if dual[k] != 0.0:
            weight = dual[k] / a
            for j in range(len(v)):
                theta[j] += weight * Z[k, j]


@inlined
def dot(x: Floats, y: Floats) -> float:
    """x·y."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@inlined
def dot_row(X: Floats, k: int, y: Floats) -> float:
    """X[k]·y, without making a view of the row, which takes time."""
    # Four sums side by side: one alone would wait for each addition to finish.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(y) - len(y) % 4
    for j in range(0, whole, 4):
        s0 += X[k, j] * y[j]
        s1 += X[k, j + 1] * y[j + 1]
        s2 += X[k, j + 2] * y[j + 2]
        s3 += X[k, j + 3] * y[j + 3]
    for j in range(whole, len(y)):
        s0 += X[k, j] * y[j]
    return (s0 + s1) + (s2 + s3)


@inlined
def prox_box(
    Z: Floats,
    lengths: Floats,
    gram: Floats,
    root: Floats,
    rooted: Indices,
    t: Floats,
    low: float,
    high: float,
    a: float,
    v: Floats,
    dual: Floats,
    theta: Floats,
) -> bool:
    """Losses with a kink: b·L(θ) = Σ_k max over d in [low, high] of −d (z_k·θ − t_k).

    The hinge loss has z = y x, t = 1 and the box [0, b], the absolute loss z = x, t = y and
    [−b, b].  The dual is a quadratic program in a box, with gradient z_k·θ − t_k at
    θ = v + Zᵀ dual / a.  Coordinate descent alone solves small agents' steps; where it is slow
    (more points than dimensions, near-duplicates, large b/a) multiplier steps come in between.
    Stopped on the projected gradient, which is in units of the margin.

    ``lengths`` are the ‖z_k‖.  ``gram`` is ZZᵀ, or (0, 0) where there are more points than
    dimensions: with it a change of one coordinate costs O(m), without it O(p).  ``root`` is the
    Cholesky factor of the part of it that was last inside the box, which seldom changes, and
    ``rooted`` that part's coordinates, counted from 1, up to a 0.
    """
    m = len(t)
    longest, offset = 0.0, 0.0
    for k in range(m):
        longest = max(longest, lengths[k])
        offset = max(offset, abs(t[k]))
        dual[k] = min(max(dual[k], low), high)
    reach, inverse = math.sqrt(dot(v, v)), 1.0 / a
    work = np.empty((2, len(gram)))
    gradients, step = work[0], work[1]
    for sweep in range(1, PASS_LIMIT + 1):
        if sweep % PASSES == 1:  # at the start, after a multiplier step, and against drift
            if len(gram):
                for k in range(m):
                    gradients[k] = dot_row(Z, k, v) - t[k] + dot_row(gram, k, dual) * inverse
            else:
                combine(Z, a, v, dual, theta)
        if len(gram):
            _free_step(gram, root, rooted, low, high, a, gradients, dual, step)
        worst, size = 0.0, 0.0
        for k in range(m):
            gradient = gradients[k] if len(gram) else dot_row(Z, k, theta) - t[k]
            if lengths[k] == 0.0:  # θ does not depend on this point
                dual[k] = low if gradient > 0.0 else high
                continue
            old = dual[k]
            new = min(max(old - gradient * (a / lengths[k] ** 2), low), high)
            if (gradient > 0.0 and old > low) or (gradient < 0.0 and old < high):
                worst = max(worst, abs(gradient))
            if new != old:
                dual[k] = new
                weight = (new - old) * inverse
                if len(gram):
                    for j in range(m):
                        gradients[j] += weight * gram[k, j]
                else:
                    for j in range(len(theta)):
                        theta[j] += weight * Z[k, j]
            size += abs(new) * lengths[k]
        if worst <= TOLERANCE * (offset + longest * (reach + size * inverse)):
            combine(Z, a, v, dual, theta)
            return True
        if sweep >= FIRST_PASSES and sweep % PASSES == 0:
            penalty = PENALTIES[sweep // PASSES % len(PENALTIES)] * a / longest**2
            combine(Z, a, v, dual, theta)
            _multiplier_step(Z, t, low, high, a, v, penalty, dual, theta)
    return False


@inlined
def _free_step(
    gram: Floats,
    root: Floats,
    rooted: Indices,
    low: float,
    high: float,
    a: float,
    gradients: Floats,
    dual: Floats,
    step: Floats,
) -> None:
    """Zero the gradient of all coordinates inside the box at once, if that keeps them inside.

    Coordinate descent soon finds which coordinates those are, but then only creeps; this Newton
    step, gram_FF δ = −a·gradient_F, arrives.
    """
    m, f, changed = len(dual), 0, False
    for k in range(m):
        if low < dual[k] < high:
            changed = changed or rooted[f] != k + 1
            rooted[f] = k + 1
            f += 1
    if f == 0:
        rooted[0] = 0
        return
    if f < m and rooted[f] != 0:
        changed, rooted[f] = True, 0
    if changed and not _factorise(gram, rooted[:f], root):
        root[0, 0] = 0.0
    if root[0, 0] == 0.0:
        return  # nearly dependent points: leave them to the other methods
    for i in range(f):  # forward and backward substitution
        total = -a * gradients[rooted[i] - 1]
        for j in range(i):
            total -= root[i, j] * step[j]
        step[i] = total * root[i, i]
    for i in range(f - 1, -1, -1):
        total = step[i]
        for j in range(i + 1, f):
            total -= root[j, i] * step[j]
        step[i] = total * root[i, i]
        if not low < dual[rooted[i] - 1] + step[i] < high:
            return
    for i in range(f):
        dual[rooted[i] - 1] += step[i]
        weight = step[i] / a
        for k in range(m):
            gradients[k] += weight * gram[rooted[i] - 1, k]


@kernel
def _factorise(gram: Floats, rooted: Indices, root: Floats) -> bool:
    """Cholesky's factor of these rows and columns; False if they are nearly dependent.

    On its diagonal are the reciprocals.
    """
    for j in range(len(rooted)):
        own = rooted[j] - 1
        for i in range(j, len(rooted)):
            entry = gram[rooted[i] - 1, own]
            for k in range(j):
                entry -= root[i, k] * root[j, k]
            root[i, j] = entry
        if root[j, j] <= 1e-10 * gram[own, own]:
            return False
        root[j, j] = 1.0 / math.sqrt(root[j, j])
        for i in range(j + 1, len(rooted)):
            root[i, j] *= root[j, j]
    return True


@kernel
def _multiplier_step(
    Z: Floats,
    t: Floats,
    low: float,
    high: float,
    a: float,
    v: Floats,
    penalty: float,
    dual: Floats,
    theta: Floats,
) -> None:
    """One step of the method of multipliers: minimise the dual + ‖dual − old‖² / (2 penalty).

    Solved in θ, where it is smooth: φ(θ) = (a/2)‖θ − v‖² + Σ_k ψ_k(z_k·θ − t_k), in which
    −ψ_k' = d_k = clip(old_k − penalty·(z_k·θ − t_k)).  Newton's method, with an inexact search
    for the zero of φ's monotone derivative along each direction.
    """
    m, p = Z.shape
    old, weights, residual, rates = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    free = np.empty(m, np.int64)
    gradient, direction = np.empty(p), np.empty(p)
    for k in range(m):
        old[k], weights[k] = dual[k], penalty
    for _ in range(MULTIPLIER_LIMIT):
        for j in range(p):
            gradient[j] = a * (theta[j] - v[j])
        size = a * (math.sqrt(dot(theta, theta)) + math.sqrt(dot(v, v)))
        f = 0
        for k in range(m):
            residual[k] = dot_row(Z, k, theta) - t[k]
            dual[k] = min(max(old[k] - penalty * residual[k], low), high)
            if low < dual[k] < high:
                free[f] = k
                f += 1
            for j in range(p):
                gradient[j] -= dual[k] * Z[k, j]
            size += abs(dual[k]) * math.sqrt(dot_row(Z, k, Z[k]))
        if math.sqrt(dot(gradient, gradient)) <= TOLERANCE * size:
            break
        newton_direction(Z, free[:f], weights, a, gradient, direction)
        for k in range(m):
            rates[k] = dot_row(Z, k, direction)
        descent = dot(gradient, direction)
        curve = a * dot(direction, direction)
        start = a * (dot(theta, direction) - dot(v, direction))
        lower, upper, step = 0.0, 1.0, 1.0
        for _ in range(60):
            derivative = start + step * curve
            for k in range(m):
                d = old[k] - penalty * (residual[k] + step * rates[k])
                derivative -= min(max(d, low), high) * rates[k]
            if derivative > -0.1 * descent:
                upper = step
            elif derivative < 0.5 * descent and step < 1.0:
                lower = step
            else:
                break
            step = 0.5 * (lower + upper)
        for j in range(p):
            theta[j] += step * direction[j]
    combine(Z, a, v, dual, theta)


@kernel
def newton_direction(
    Z: Floats, rows: Indices, weights: Floats, a: float, gradient: Floats, out: Floats
) -> None:
    """out ← −(a I + Σ_k w_k z_k z_kᵀ)⁻¹ gradient over the given rows, in the smaller space.

    Plain loops: an array expression takes half a second to compile.
    """
    f, p = len(rows), len(gradient)
    for j in range(p):
        out[j] = -gradient[j]
    if p <= f:
        matrix = np.zeros((p, p))
        for k in range(f):
            z = Z[rows[k]]
            for i in range(p):
                for j in range(p):
                    matrix[i, j] += weights[k] * z[i] * z[j]
        for i in range(p):
            matrix[i, i] += a
        _solve_positive(matrix, out)
        return
    # Woodbury's identity, scaled by the roots of the weights, which may be zero.
    matrix = np.empty((f, f))
    scaled = np.empty(f)
    for k in range(f):
        scaled[k] = math.sqrt(weights[k]) * dot_row(Z, rows[k], out)
        for other in range(k + 1):
            weight = math.sqrt(weights[k] * weights[other])
            matrix[k, other] = weight * dot_row(Z, rows[k], Z[rows[other]])
            matrix[other, k] = matrix[k, other]
        matrix[k, k] += a
    _solve_positive(matrix, scaled)
    for k in range(f):
        for j in range(p):
            out[j] -= math.sqrt(weights[k]) * scaled[k] * Z[rows[k], j]
    for j in range(p):
        out[j] /= a


@kernel
def _solve_positive(matrix: Floats, right: Floats) -> None:
    """matrix⁻¹ right in place, by Cholesky's factorisation of a positive definite matrix.

    Written out because LAPACK through Numba takes seconds to compile and is no faster at this size.
    """
    size = len(right)
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(total) if i == j else total / matrix[j, j]
    for i in range(size):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]


# --- solitary models of the absolute loss, all agents' points end to end --------------------------
@entry
def fit_absolute(
    Z: Floats, y: Floats, offsets: Indices, models: Floats, reached: NDArray[np.bool_]
) -> None:
    """A minimiser of the absolute loss itself, by proximal points from 0 until they stand still.

    The loss is polyhedral, so that happens after finitely many steps, the sooner the longer they
    are; its nonzero subgradients are not arbitrarily small, so a point that hardly moves has
    arrived.  With no more points than dimensions it is the shortest model that meets all of them.
    ``reached`` is left False for agents whose points are so nearly dependent that it fails.
    """
    p = Z.shape[1]
    no_gram, no_root = np.empty((0, 0)), np.empty(0, np.int64)
    for i in range(len(offsets) - 1):
        own = slice(offsets[i], offsets[i + 1])
        points, targets = Z[own], y[own]
        total, longest, offset = 0.0, 0.0, 0.0
        lengths = np.empty(len(targets))
        for k in range(len(targets)):
            lengths[k] = math.sqrt(dot(points[k], points[k]))
            total, longest = total + lengths[k], max(longest, lengths[k])
            offset = max(offset, abs(targets[k]))
        if longest == 0.0 or offset == 0.0:  # 0 is a minimiser
            reached[i] = True
            continue
        cautious = 0.1 * total * longest / offset  # a step goes up to 10 times the largest |y|/‖x‖
        a = cautious
        dual = np.zeros(len(targets))
        theta = np.zeros(p)
        last = math.inf
        for _ in range(200):
            one = (points, lengths, no_gram, no_gram, no_root, targets, -1.0, 1.0)
            solved = prox_box(*one, a, theta, dual, models[i])
            moved = math.sqrt(dot(models[i] - theta, models[i] - theta))
            for j in range(p):
                theta[j] = models[i, j]
            if solved and moved <= 1e-8 * (math.sqrt(dot(theta, theta)) + offset / longest):
                reached[i] = True
                break
            # Longer steps as long as it travels; back to short ones, which are more exact, after.
            a = 0.5 * a if moved > 0.5 * last else min(cautious, 16.0 * a)
            last = moved
