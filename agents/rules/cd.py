"""Coordinate descent by gradient steps on Q_CL (Bellet, Guerraoui, Taziki and Tommasi 2018)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.privacy import Private
from agents.rule import (
    TELL,
    Floats,
    Rule,
    Start,
    curvature,
    gradient,
    per_agent,
    per_link,
    scratch,
    summed,
    uniform,
)


class CoordinateDescent(Rule):
    """θ_i ← (1 − a_i) θ_i + a_i (v_i − (μ/2)(∇L_i(θ_i) + η)),   a_i = 1 / (1 + (μ/2) ℓ_i).

    v_i = Σ_j (W_ij / D_ii) Θ̃_i^j; ℓ_i is the Lipschitz constant of ∇L_i; η is 0, or the noise that
    hides any one point (docs/design.md).  A ridge r is a part of L_i.  Once the budget of an agent
    is spent, it goes on by model propagation on its last private model, or keeps that.
    """

    kind, protocol, objective, smooth_only = "cd", TELL, "cl", True
    starts = (*Rule.starts, "private")

    class Parameters(Private):
        """Keys of ``algorithm``."""

    #: v_i, Θ̃_i^j, a_i, the gradient.
    v, copies, a = per_agent("p"), per_link("p", given="copy"), per_agent()
    slope = scratch("p")
    #: The scales of the noise (0: none), ℓ_i where it must not depend on the points (0: it does),
    #: and the updates left (−1: any).
    laplace, normal = per_agent(given="prepare"), per_agent(given="prepare")
    bound, left = per_agent(given="prepare"), per_agent(dtype=int, given="prepare")
    #: The last private model, and v_i's share in what comes after it.
    last, share = per_agent("p", given="prepare"), per_agent(given="prepare")

    def prepare(s: Any, start: Start) -> None:
        """Noise and budget."""
        start.parameters.hide(s, start)

    def refresh(s: Any, i: int) -> None:
        """The step, and v anew."""
        first, last = s.first[i], s.first[i + 1]
        ell = s.bound[i] if s.bound[i] > 0.0 else curvature(s, i)
        s.a[i] = 1.0 / (1.0 + s.mu / 2.0 * (ell + 2.0 * s.ridge))
        terms = np.empty(last - first)
        for x in range(s.p):
            for k in range(first, last):
                terms[k - first] = s.W[k] / s.D[i] * s.copies[k, x]
            s.v[i, x] = summed(terms)

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.v[i, x] += s.W[k] / s.D[i] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s: Any, i: int) -> None:
        """A step; or, if the budget is spent, what needs neither noise nor data."""
        if s.left[i] == 0:
            for x in range(s.p):
                s.models[i, x] = s.last[i, x] + s.share[i] * (s.v[i, x] - s.last[i, x])
            return
        gradient(s, i, s.models[i], s.slope)
        for x in range(s.p):
            if s.laplace[i] > 0.0:  # log(0) has a chance of 2⁻⁵³
                u = uniform(s) - 0.5
                size = -math.log(max(1.0 - 2.0 * abs(u), 1e-16))
                s.slope[x] += s.laplace[i] * math.copysign(size, u)
            if s.normal[i] > 0.0:  # two uniforms, by Box and Muller
                size = math.sqrt(-2.0 * math.log(1.0 - uniform(s)))
                s.slope[x] += s.normal[i] * size * math.cos(2.0 * math.pi * uniform(s))
            step = s.v[i, x] - s.mu / 2.0 * (s.slope[x] + 2.0 * s.ridge * s.models[i, x])
            s.models[i, x] += s.a[i] * (step - s.models[i, x])
        if s.left[i] > 0:
            s.left[i] -= 1
            s.last[i] = s.models[i]

    def columns(s: Any, parameters: Private) -> dict[str, Any]:
        """What each agent has spent."""
        return parameters.spent(s.left)
