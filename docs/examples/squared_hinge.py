"""The squared hinge loss: docs/extending.md derives it, step by step.

python -m simulator run docs/examples/squared_hinge.yaml --plugin docs/examples/squared_hinge.py
"""

from typing import Literal

from agents.losses import Smooth


class SquaredHinge(Smooth):
    """ℓ(s, y) = max(0, 1 − y s)², labels y = ±1."""

    kind: Literal["squared_hinge"] = "squared_hinge"
    labels = True
    curvature = 2.0

    def value(self, s, y):
        """r², with r = max(0, 1 − y s)."""
        r = max(0.0, 1.0 - y * s)
        return r * r

    def slope(self, s, y):
        """−2 y r."""
        return -2.0 * y * max(0.0, 1.0 - y * s)

    def bend(self, s, y):
        """2 below the margin, 0 beyond it."""
        return 2.0 if y * s < 1.0 else 0.0
