"""What changes in ``oracle_simulation``: the problem of the moment, in which points arrive.

Written from docs/changing.md; solitary models are fitted anew from all points that are there.
"""

from __future__ import annotations

import numpy as np

from tests import oracles
from tests.engines.oracle_devices import draw


class Changing:
    """The problem as it is now; ``arrivals`` are the points to come, (time, agent) each."""

    def __init__(self, scenario, problem, streams):
        self.final, self.stream = problem, scenario.stream
        self.by_data = getattr(scenario.algorithm, "confidence", "data") == "data"
        self.ridge = getattr(scenario.task, "ridge", 0.0)
        self.refits = scenario.algorithm.start != "zero"
        self.refits &= getattr(scenario.algorithm.start, "kind", None) != "normal"
        self.most = max(len(y) for _, y in problem.data)
        self.data, self.arrivals = [], []
        for i, (X, y) in enumerate(problem.data):
            first, time = len(y), 0.0
            if self.stream is not None:
                first = min(self.stream.at_first, len(y))
            for _ in range(first, len(y)):
                time += draw(self.stream.gaps, streams.arrivals)
                self.arrivals.append((time, i))
            self.data.append((None if X is None else X[:first], y[:first]))
        self.arrivals.sort(key=lambda arrival: arrival[0])  # stable: ties by agent
        self.confidence, self.solitary = problem.confidence.copy(), problem.solitary.copy()
        if self.arrivals:
            for i in range(problem.n):
                self._fit(i)

    def __getattr__(self, name):
        return getattr(self.final, name)

    def arrive(self, i):
        """One more point."""
        (X, y), m = self.final.data[i], len(self.data[i][1]) + 1
        self.data[i] = None if X is None else X[:m], y[:m]
        self.solitary = self.solitary.copy()  # others look at the old one
        self._fit(i)

    def _fit(self, i):
        X, y = self.data[i]
        self.confidence[i] = len(y) / self.most if self.by_data else len(y) > 0
        if not len(y):
            self.solitary[i] = 0
        elif X is None:
            self.solitary[i] = sum(y) / len(y)
        elif self.loss.kind == "quadratic":
            self.solitary[i] = np.linalg.lstsq(X, y, rcond=None)[0]
        else:
            H, g = self.ridge * np.eye(self.p), np.zeros(self.p)
            self.solitary[i] = oracles.SOLVERS[self.loss.kind](H, g, X, y, 1.0)
