"""Agents that come and go, and partitions, in the tests' own simulator.

Written from docs/churn.md alone, on top of ``tests.engines.oracle_network``.
"""

from __future__ import annotations

import csv
import heapq
import math
from types import SimpleNamespace

import numpy as np

from tests.engines.oracle_network import Simulation, draw


def draw_weighted(law, rng, n):
    """Stays that a random instant falls into, and their mean where the instants are of stays."""
    if law.kind == "constant":
        return np.full(n, float(law.value)), law.value
    if law.kind == "exponential":  # what has passed, and what is to come
        return rng.gamma(2.0, law.mean, n), law.mean
    raise NotImplementedError(law.kind)


class LivingSimulation(Simulation):
    """A run whose agents are switched on and off, and whose network may be cut."""

    def __init__(self, scenario, problem, streams, rule):
        super().__init__(scenario, problem, streams, rule)
        self.config, self.synchronous = scenario.availability, scenario.algorithm.mode == "sync"
        self.paused, self.returned, self.back = [None] * self.n, set(), set()
        self.cuts = [self._cut(cut, streams.sites) for cut in self.network.partitions or ()]
        if self.synchronous:
            for cut in self.cuts:
                self.early(cut.until, self.retry, self.links, rank=1)
        if self.config is not None:
            traced = self.config.kind == "trace"
            first = self._traced(problem.names) if traced else self._stationary()
            for i, time in enumerate(first):
                self.early(time, self._switch, i)
        self.new = [not on for on in self.on]

    def early(self, time, what, *args, rank=0):
        """A switch, before all others of its instant, or what follows on switches (rank 1).

        Never, if the time is infinite.
        """
        if time < math.inf:
            order = self.scheduled - (2 - rank) * 10**9
            heapq.heappush(self.queue, (time, order, what, args))
            self.scheduled += 1

    # --- partitions -------------------------------------------------------------------------------
    def _cut(self, cut, rng):
        """Random groups: a permutation in parts, whose sizes differ by one at most."""
        group, order = {}, rng.permutation(self.n).tolist()
        for k in range(cut.groups):
            size = self.n // cut.groups + (k < self.n % cut.groups)
            group |= dict.fromkeys(order[:size], k)
            order = order[size:]
        return SimpleNamespace(begin=cut.begin, until=cut.until, group=group)

    def parted(self, i, j):
        holding = [cut.group for cut in self.cuts if cut.begin <= self.now < cut.until]
        return any(group[i] != group[j] for group in holding)

    # --- when agents are switched -----------------------------------------------------------------
    def _stationary(self):
        """Who is on at first, and the rests of the stays that time 0 falls into."""
        rng, law = self.streams.availability, {True: self.config.on, False: self.config.off}
        states, share = rng.random(self.n), rng.random(self.n)
        (long, mean), (short, other) = (draw_weighted(law[on], rng, self.n) for on in (True, False))
        self.on = [bool(u < mean / (mean + other)) for u in states]
        stream = {True: self.streams.on, False: self.streams.off}
        self.next = lambda i: self.now + draw(law[self.on[i]], stream[self.on[i]])
        return [share[i] * (long if self.on[i] else short)[i] for i in range(self.n)]

    def _traced(self, names):
        """The same by a file, whose rows switch an agent in turn; some may say so at time 0."""
        times = {name: [] for name in names}
        with open(self.config.file) as file:
            for row in csv.DictReader(file):
                times[row["agent"]].append(float(row["time"]))
        self.on = [not times[name] or times[name][0] > 0 for name in names]
        later = [[*(time for time in times[name] if time > 0), math.inf] for name in names]
        self.next = lambda i: later[i].pop(0)
        return [self.next(i) for i in range(self.n)]

    # --- what that means --------------------------------------------------------------------------
    def _switch(self, i):
        self.on[i] = not self.on[i]
        self.early(self.next(i), self._switch, i)
        if not self.on[i]:
            self.paused[i], self.job[i] = self.job[i], None
            if self.paused[i] is not None:
                self.paused[i].left = self.paused[i].end - self.now
        else:
            first, self.new[i] = self.new[i], False
            (self._return_to_round if self.synchronous else self._return)(i, first)

    def _resume(self, i):
        job, self.paused[i] = self.paused[i], None
        if job is not None:
            self.after(i, job.left, job.done)

    def _return(self, i, first):
        if self.config.forget and not first:
            self.paused[i], self.busy[i], self.mailbox[i] = None, False, []
            self._forget(i)
            for j in self.N[i]:
                self.version[i, j] += 1
        self._resume(i)
        if first:
            self.say_hello(i)

    def _forget(self, i):
        self.rule.forget(i)
        self.copy_of |= {(i, j): self.now for j in self.N[i]}

    def _return_to_round(self, i, first):
        self._resume(i)
        if not first:
            self.returned.add(i)
        if i in self.waiting:
            self.waiting.remove(i)
            self.at(self.now, self._begin, i)
        if not self.back:
            self.early(self.now, self._retry_with_those_who_are_back, rank=1)
        self.back.add(i)

    def _retry_with_those_who_are_back(self):
        self.retry([link for link in self.links if self.back.intersection(link)])
        self.back.clear()

    def _open_barrier(self):
        if self.config is not None and self.config.forget:
            for i in self.returned:
                self._forget(i)
        self.returned.clear()
        super()._open_barrier()
