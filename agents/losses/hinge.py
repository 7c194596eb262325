"""The hinge loss of section 5.2, max(0, 1 − y x·θ), for labels ±1."""

from __future__ import annotations

from typing import Literal

import numpy as np

from agents.losses.loss import Floats, Kinked, design

#: A margin this near to 1 lies on the kink, so that rounding does not decide between the slopes.
KINK = 1e-9


class Hinge(Kinked):
    """ℓ(s, y) = max(0, 1 − y s), labels y = ±1."""

    kind: Literal["hinge"] = "hinge"
    labels = True
    slow_on_many = True

    def value(self, s: float, y: float) -> float:
        """max(0, 1 − y s)."""
        return max(0.0, 1.0 - y * s)

    def slope(self, s: float, y: float) -> float:
        """−y where the margin y s is below 1, and 0 at the kink."""
        return -y if y * s < 1.0 - KINK else 0.0

    def boxed(self, X: Floats | None, y: Floats) -> tuple[Floats, Floats]:
        """z = y x, t = 1, 0 ≤ d ≤ b."""
        return design(X, y) * y[:, None], np.ones(len(y))
