"""Coordinate descent by gradient steps on Q_CL (Bellet, Guerraoui, Taziki and Tommasi 2018)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agents.privacy import Private
from agents.rule import TELL, Floats, Rule, Start, gradient, per_agent, per_link, scratch, uniform


class CoordinateDescent(Rule):
    """θ_i ← (1 − a_i) θ_i + a_i (v_i − (μ/2)(∇L_i(θ_i) + η)),   a_i = 1 / (1 + (μ/2) ℓ_i).

    v_i = Σ_j (W_ij / D_ii) Θ̃_i^j; ℓ_i is the Lipschitz constant of ∇L_i; η is 0, or the noise that
    hides any one point (docs/design.md).  A ridge r is a part of L_i.
    """

    kind, protocol, objective, smooth_only = "cd", TELL, "cl", True

    class Parameters(Private):
        """Keys of ``algorithm``."""

    #: v_i, Θ̃_i^j, a_i, the gradient; the scale of the noise (0: none), updates left (−1: any).
    v, copies, a, slope = per_agent("p"), per_link("p"), per_agent(), scratch("p")
    noise, left = per_agent(), per_agent(dtype=int)

    def prepare(s: Any, start: Start) -> None:
        """v of the first copies, steps, noise and budget."""
        s.copies, s.left = start.copies, np.full(len(start.D), -1)
        ell = start.parameters.curvatures(start, s.noise, s.left)
        s.a = 1.0 / (1.0 + start.mu / 2.0 * (ell + 2.0 * start.parameters.ridge))
        degrees = np.repeat(start.D, np.diff(start.first))
        s.v = start.sum_over_links((start.W / degrees)[:, None] * s.copies)
        start.gradients(start.parameters.clip)

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Replace the copy of that neighbour's model."""
        for x in range(s.p):
            s.v[i, x] += s.W[k] / s.D[i] * (received[x] - s.copies[k, x])
            s.copies[k, x] = received[x]

    def solve(s: Any, i: int) -> None:
        """A step, unless the budget is spent: then neither noise is drawn nor data looked at."""
        if s.left[i] != 0:
            s.left[i] -= s.left[i] > 0
            gradient(s, i, s.models[i], s.slope)
            for x in range(s.p):
                if s.noise[i] > 0.0:  # Laplace; log(0) has a chance of 2⁻⁵³
                    u = uniform(s) - 0.5
                    size = -math.log(max(1.0 - 2.0 * abs(u), 1e-16))
                    s.slope[x] += s.noise[i] * math.copysign(size, u)
                step = s.v[i, x] - s.mu / 2.0 * (s.slope[x] + 2.0 * s.ridge * s.models[i, x])
                s.models[i, x] += s.a[i] * (step - s.models[i, x])

    def columns(s: Any, parameters: Private) -> dict[str, Any]:
        """What each agent has spent."""
        return parameters.spent(s.left)
