"""Collaborative learning by decentralized ADMM (section 4 and appendix D of the paper)."""

from __future__ import annotations

import numpy as np

from agents.losses import GradientSteps, Proximal
from agents.rule import Floats, Payload, Rule, Situation


class CollaborativeADMM(Rule):
    """Agent i's part of ADMM for Q_CL, with one link e = (i, j) for each neighbour j.

    The agent keeps Z_ei^i, Z_ei^j, Λ_ei^i, Λ_ei^j for each of its links.  Its primal problem
    (step 1) has a closed elimination: with κ_j = W_ij ρ / (W_ij + ρ),

        u_j = Z_ei^j − Λ_ei^j / ρ,    w_j = Z_ei^i − Λ_ei^i / ρ,

    the copies are Θ̃_i^j = (W_ij θ_i + ρ u_j) / (W_ij + ρ), and the model is the proximal point

        θ_i = argmin (a/2)‖θ − v‖² + μ D_ii L_i(θ),
        a = Σ_j κ_j + ρ |N_i|,    v = (Σ_j κ_j u_j + ρ Σ_j w_j) / a.

    The sum in v is kept up to date by difference, so an exchange costs O(p) and one proximal
    step, whatever the degree.
    """

    SOLVES = "before"
    OBJECTIVE = "cl"
    VECTORS = 4

    def __init__(self, situation: Situation):
        super().__init__(situation)
        rho, weights = situation.rho, situation.weights
        links, p = situation.copies.shape
        self.rho = rho
        self.kappa: list[float] = (weights * rho / (weights + rho)).tolist()
        self.share: list[float] = (weights / (weights + rho)).tolist()  # W_ij / (W_ij + ρ)
        self.a = float(np.sum(weights * rho / (weights + rho)) + rho * links)
        # (Z_ei^i, Z_ei^j, Λ_ei^i, Λ_ei^j) of each link.
        self.links = [
            (situation.model, copy, np.zeros(p), np.zeros(p)) for copy in situation.copies
        ]
        self.pulls = [self._pull(k) for k in range(links)]
        self.pull_sum = np.sum(self.pulls, axis=0) if links else np.zeros(p)
        self.proximal: Proximal | None = None
        if links:
            b = situation.mu * situation.degree
            self.proximal = (
                GradientSteps(
                    situation.loss, situation.X, situation.y, self.a, b, situation.gradient_steps
                )
                if situation.gradient_steps
                else situation.loss.proximal(situation.X, situation.y, self.a, b)
            )
            self.proximal.theta = situation.model

    def _pull(self, k: int) -> Floats:
        """Link k's part of a·v: κ_j u_j + ρ w_j."""
        z_own, z_other, dual_own, dual_other = self.links[k]
        rho = self.rho
        return self.kappa[k] * (z_other - dual_other / rho) + rho * (z_own - dual_own / rho)

    def _set_link(self, k: int, link: tuple[Floats, Floats, Floats, Floats]) -> None:
        self.links[k] = link
        pull = self._pull(k)
        self.pull_sum += pull - self.pulls[k]
        self.pulls[k] = pull

    def solve(self) -> None:
        """Step 1: the primal problem."""
        if self.proximal is not None:
            self.model = self.proximal.step(self.pull_sum / self.a)
            self.exhausted = self.proximal.exhausted

    def payload(self, k: int) -> Payload:
        """Θ̃_i^i, Θ̃_i^j, Λ_ei^i, Λ_ei^j, right after a solve."""
        _, z_other, dual_own, dual_other = self.links[k]
        share = self.share[k]
        copy = share * self.model + (1.0 - share) * (z_other - dual_other / self.rho)
        return (self.model, copy, dual_own, dual_other)

    def absorb(self, k: int, received: Payload, sent: Payload) -> None:
        """Steps 2 and 3: the secondary and dual variables of link e = (i, j), from both payloads.

        In the other end's payload "own" is j and "other" is i, so they cross over here.
        """
        own, other, dual_own, dual_other = sent
        their_own, their_other, their_dual_own, their_dual_other = received
        rho = self.rho
        z_own = 0.5 * ((dual_own + their_dual_other) / rho + own + their_other)
        z_other = 0.5 * ((their_dual_own + dual_other) / rho + their_own + other)
        dual_own = dual_own + rho * (own - z_own)
        dual_other = dual_other + rho * (other - z_other)
        self._set_link(k, (z_own, z_other, dual_own, dual_other))

    def introduce(self, k: int, model: Floats) -> None:
        """The warm start of section 4.2: Z_ei^j is the neighbour's solitary model."""
        z_own, _, dual_own, dual_other = self.links[k]
        self._set_link(k, (z_own, model, dual_own, dual_other))
