"""The models at the samples of a run, collected while it goes on, thinned where they are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from simulator.problem.problem import Floats

HISTORY = "history.npz"
#: Bytes of models that are kept at most.
MOST_BYTES = 256_000_000


@dataclass(frozen=True)
class History:
    """Models (k, n, p), and the rows of trace.csv (k) at which they were the agents'."""

    samples: NDArray[np.int64]
    models: Floats
    #: What was left out, in words; empty if nothing was.
    note: str = ""


class Keeper:
    """Collects the models of a run, sample by sample."""

    def __init__(self, most_bytes: int = MOST_BYTES):
        self._most = most_bytes
        #: By the number of the sample: every ``_step``-th, and the last one.
        self._kept: dict[int, Floats] = {}
        self._count, self._step = 0, 1

    def add(self, models: Floats) -> None:
        """The models of the next sample."""
        if (self._count - 1) % self._step:
            del self._kept[self._count - 1]
        self._kept[self._count] = models.copy()
        self._count += 1
        while len(self._kept) > 3 and len(self._kept) * models.nbytes > self._most:
            self._step *= 2
            last = self._count - 1
            self._kept = {k: m for k, m in self._kept.items() if k % self._step == 0 or k == last}

    def halve(self) -> None:
        """The run has forgotten every other sample, beginning with the second."""
        self._kept = {k // 2: m for k, m in self._kept.items() if k % 2 == 0}
        self._count, self._step = (self._count + 1) // 2, max(1, self._step // 2)

    def history(self) -> History:
        """All that was kept."""
        note = ""
        if self._step > 1:
            note = (
                f"record.models: the models of every {self._step}th sample are kept, and of the "
                f"last: those of all {self._count} would have more than {self._most / 1e6:g} MB"
            )
        return History(np.array([*self._kept]), np.stack([*self._kept.values()]), note)
