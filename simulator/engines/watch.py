"""What happens to a new model in both engines: is it finite, and has a watched metric its level?

``distance`` and ``l2_error`` are means over agents, so a watched one is kept up to date at every
update by difference.  The rounding errors of the differences are bounded as they add up; within
that bound of the level the sum is made anew, so that success is declared at the first update
after which the sum itself, and not what was carried along, has reached the level.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.machinery.compiling import floats
from simulator.theory.metrics import Target

Floats = NDArray[np.float64]

#: The fields of a record that ``follow`` reads and writes.
FIELDS: list[tuple[str, Any]] = [
    ("n", np.int64),
    ("p", np.int64),
    #: All models (n, p).
    ("models", np.int64),
    #: The models (n, p) from which the distance is watched, each agent's part (n) of their squared
    #: distances' sum, the sum, a bound of its rounding error, and the level to reach.
    ("watched", np.bool_),
    ("reference", np.int64),
    ("parts", np.int64),
    ("total", np.float64),
    ("slack", np.float64),
    ("level", np.float64),
]
#: What a new model means for the run.
GO_ON, DIVERGED, REACHED = range(3)
EPSILON = 2.0**-52


def follow(run: Any, i: int) -> int:
    """Agent i has a new model.

    Each engine compiles this for its own record: shared, it would be taken from whichever was
    first, since Numba lets a longer record stand for a shorter one, and warns.
    """
    models = floats(run.models, (run.n, run.p))
    for x in range(run.p):
        if not math.isfinite(models[i, x]):
            return DIVERGED
    if not run.watched:
        return GO_ON
    reference, parts = floats(run.reference, (run.n, run.p)), floats(run.parts, run.n)
    part = 0.0
    for x in range(run.p):
        part += (models[i, x] - reference[i, x]) ** 2
    run.slack += EPSILON * (abs(run.total) + part + parts[i])
    run.total += part - parts[i]
    parts[i] = part
    if run.total > run.level + run.slack:
        return GO_ON
    # The sum of all parts, without the errors of past differences.
    total, carry = 0.0, 0.0
    for j in range(run.n):  # Kahan's summation: accurate to a few units in the last place
        term = parts[j] - carry
        new = total + term
        carry = (new - total) - term
        total = new
    run.total, run.slack = total, 4.0 * EPSILON * total
    return REACHED if total <= run.level else GO_ON


class Watch:
    """A mean squared distance that is followed at every update, and the level it is to reach."""

    def __init__(self, target: Target, reference: Floats, models: Floats):
        self.target = target
        self.reference = np.ascontiguousarray(reference)
        self.parts: Floats = np.sum((models - reference) ** 2, axis=1)
        self.level = target.level * len(self.parts)
        #: (time, communications) when the level was reached.
        self.reached: tuple[float, int] | None = None
        if float(self.parts.sum()) <= self.level:
            self.reached = (0.0, 0)

    def fill(self, record: NDArray[Any]) -> None:
        """Write it into an engine's record, which must not outlive it."""
        record["watched"], record["level"] = True, self.level
        record["reference"], record["parts"] = self.reference.ctypes.data, self.parts.ctypes.data
        record["total"] = self.parts.sum()
        record["slack"] = len(self.parts) * EPSILON * record["total"]
