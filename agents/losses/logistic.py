"""The logistic loss, log(1 + exp(−y x·θ)), for labels ±1."""

from __future__ import annotations

import math
from typing import Literal

from agents.losses.loss import Smooth


class Logistic(Smooth):
    """ℓ(s, y) = log(1 + exp(−y s)), labels y = ±1."""

    kind: Literal["logistic"] = "logistic"
    curvature = 0.25
    labels = True
    runs_away = True

    def value(self, s: float, y: float) -> float:
        """log(1 + exp(−y s)), without overflow."""
        return max(0.0, -y * s) + math.log1p(math.exp(-abs(y * s)))

    def slope(self, s: float, y: float) -> float:
        """−y / (1 + exp(y s)), without overflow."""
        e = math.exp(-abs(y * s))
        return -y / (1.0 + e) * (e if y * s > 0.0 else 1.0)

    def bend(self, s: float, y: float) -> float:
        """q (1 − q), where q = 1 / (1 + exp(y s))."""
        e = math.exp(-abs(y * s))
        return e / ((1.0 + e) * (1.0 + e))
