"""Collaborative learning by decentralized ADMM (section 4 and appendix D of the paper)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from agents.parameters import LEAST, Positive, Strict, report
from agents.rule import (
    SOLVE_THEN_ANSWER,
    Collaborative,
    Floats,
    Rule,
    Start,
    per_agent,
    per_link,
    prox,
    scratch,
    summed,
    weigh,
)

#: What an agent keeps of a link e = (i, j): Z_ei^i, Z_ei^j, Λ_ei^i and Λ_ei^j.
Z_I, Z_J, DUAL_I, DUAL_J = range(4)
#: ρ_ij / W_ij where the scenario says no ρ: measured, see docs/choosing_rho.md.
SHARE = 0.5


class GradientSteps(Strict):
    """A few (sub)gradient steps instead of the exact proximal step."""

    gradient_steps: Annotated[int, Field(ge=1, le=1_000_000)]
    """How many."""


def _tag(value: Any) -> str:
    return "steps" if isinstance(value, dict | GradientSteps) else "name"


# The tags send a value to one branch, so that a mistake in it gives one message and not two.
Primal = Annotated[
    Annotated[Literal["exact"], Tag("name")] | Annotated[GradientSteps, Tag("steps")],
    Discriminator(_tag),
]
Penalty = Annotated[
    Annotated[Literal["auto"], Tag("name")] | Annotated[Positive, Tag("number")],
    Discriminator(lambda value: "name" if isinstance(value, str) else "number"),
]


class CollaborativeADMM(Rule):
    """Agent i's part of ADMM for Q_CL.  Its primal problem (step 1) has a closed elimination:

        u_j = Z_ei^j − Λ_ei^j / ρ,    w_j = Z_ei^i − Λ_ei^i / ρ,    κ_j = W_ij ρ / (W_ij + ρ);

    the copies are Θ̃_i^j = (W_ij θ_i + ρ u_j) / (W_ij + ρ), and the model is the proximal point

        θ_i = argmin (a/2)‖θ − v‖² + μ D_ii L_i(θ),
        a = Σ_j κ_j + ρ |N_i|,    v = (Σ_j κ_j u_j + ρ Σ_j w_j) / a.

    The sum in v is kept up to date by difference, so an exchange costs O(p) and one proximal
    step, whatever the degree.  A ridge r adds 2 μ r D_ii to a, and changes nothing else.

    ρ is a number, or ρ_ij = W_ij / 2 of each link, which both its ends know.
    """

    kind, protocol, objective = "admm", SOLVE_THEN_ANSWER, "cl"
    vectors, same_for_all, starts = 4, False, (*Rule.starts, "mp")

    class Parameters(Collaborative):
        """Keys of ``algorithm`` for collaborative learning."""

        rho: Penalty = "auto"
        """The penalty ρ > 0; auto: half the weight of each link."""
        primal: Primal = "exact"
        """The primal problem's solution: exact, or a few gradient steps."""
        confidence: Literal["data", "none"] = "data"
        """As for mp; it only matters to the start mp."""

        @model_validator(mode="after")
        def _no_confidence(self) -> Self:
            if self.confidence == "none" and not getattr(self, "starts_from_mp", True):
                what = "admm knows no confidences, but for start: mp, which this run does not have"
                report([("confidence", what)])
            return self

    link: Floats = per_link(4, "p", given=("model", "copy"))
    penalty: Floats = per_link()
    #: The ρ of the scenario; 0 where each link has its own.
    fixed: Floats = per_agent(given="prepare")
    #: a·v and a of each agent; v while solving.
    pull: Floats = per_agent("p")
    a: Floats = per_agent()
    v: Floats = scratch("p")

    def prepare(s: Any, start: Start) -> None:
        """ρ, and the proximal step; Z are the first models and copies, Λ = 0."""
        parameters = start.parameters
        if parameters.rho != "auto":
            s.fixed = np.full(len(start.D), parameters.rho)
        start.proximal(gradient_steps=getattr(parameters.primal, "gradient_steps", 0))

    def refresh(s: Any, i: int) -> None:
        """ρ of the links, a, and a·v anew."""
        first, last, rho = s.first[i], s.first[i + 1], s.fixed[i]
        terms = np.empty(last - first)
        for k in range(first, last):
            s.penalty[k] = rho if rho > 0.0 else max(SHARE * s.W[k], LEAST)
            terms[k - first] = s.W[k] * s.penalty[k] / (s.W[k] + s.penalty[k])
        total = rho * len(terms) if rho > 0.0 else summed(s.penalty[first:last])
        s.a[i] = summed(terms) + total + 2.0 * s.mu * s.ridge * s.D[i]
        weigh(s, i, s.a[i], s.mu * s.D[i])
        for x in range(s.p):
            for k in range(first, last):
                rho = s.penalty[k]
                u = s.link[k, Z_J, x] - s.link[k, DUAL_J, x] / rho
                w = s.link[k, Z_I, x] - s.link[k, DUAL_I, x] / rho
                terms[k - first] = s.W[k] * rho / (s.W[k] + rho) * u + rho * w
            s.pull[i, x] = summed(terms)

    def solve(s: Any, i: int) -> None:
        """Step 1: the primal problem."""
        inverse = 1.0 / s.a[i]
        for x in range(s.p):
            s.v[x] = s.pull[i, x] * inverse
        if not prox(s, i, s.v, s.models[i]):
            s.exhausted[i] += 1

    def tell(s: Any, i: int, k: int, out: Floats) -> None:
        """Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j, right after a solve."""
        rho = s.penalty[k]
        share, inverse = s.W[k] / (s.W[k] + rho), 1.0 / rho
        for x in range(s.p):
            u = s.link[k, Z_J, x] - s.link[k, DUAL_J, x] * inverse
            out[0, x] = s.models[i, x]
            out[1, x] = share * s.models[i, x] + (1.0 - share) * u
            out[2, x] = s.link[k, DUAL_I, x]
            out[3, x] = s.link[k, DUAL_J, x]

    def absorb(s: Any, i: int, k: int, received: Floats, sent: Floats) -> None:
        """Steps 2 and 3: Z and Λ of link e = (i, j), from both ends' Θ̃ and Λ.

        In the other end's message the first of each pair is j and the second i, so they cross here.
        """
        rho = s.penalty[k]
        share, inverse = s.W[k] / (s.W[k] + rho), 1.0 / rho
        for x in range(s.p):
            z_i = 0.5 * ((sent[2, x] + received[3, x]) * inverse + sent[0, x] + received[1, x])
            z_j = 0.5 * ((received[2, x] + sent[3, x]) * inverse + received[0, x] + sent[1, x])
            dual_i = sent[2, x] + rho * (sent[0, x] - z_i)
            dual_j = sent[3, x] + rho * (sent[1, x] - z_j)
            # κ_j u_j + ρ w_j, with κ_j = share·ρ, as it was and as it is.
            old = share * (rho * s.link[k, Z_J, x] - s.link[k, DUAL_J, x])
            old += rho * s.link[k, Z_I, x] - s.link[k, DUAL_I, x]
            new = share * (rho * z_j - dual_j) + (rho * z_i - dual_i)
            s.pull[i, x] += new - old
            s.link[k, Z_I, x], s.link[k, Z_J, x] = z_i, z_j
            s.link[k, DUAL_I, x], s.link[k, DUAL_J, x] = dual_i, dual_j

    def introduce(s: Any, i: int, k: int, model: Floats) -> None:
        """The warm start of section 4.2: Z_ei^j is the neighbour's solitary model."""
        kappa = s.W[k] * s.penalty[k] / (s.W[k] + s.penalty[k])
        for x in range(s.p):
            s.pull[i, x] += kappa * (model[x] - s.link[k, Z_J, x])
            s.link[k, Z_J, x] = model[x]
