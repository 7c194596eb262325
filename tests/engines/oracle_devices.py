"""What ``oracle_simulation`` knows before the first event: laws, factors, places, first stays.

Written from section 4 of docs/design.md and from docs/churn.md; which generator draws what, and in
which order, is what they say under *Randomness* and *Streams*.
"""

from __future__ import annotations

import csv
import math
from types import SimpleNamespace

import numpy as np


# --- laws -----------------------------------------------------------------------------------------
def draw(law, rng):
    """One number of a scenario's law."""
    if law.kind == "constant":
        return float(law.value)
    if law.kind == "uniform":
        return rng.uniform(law.low, law.high)
    if law.kind == "exponential":
        return rng.exponential(law.mean)
    if law.kind == "lognormal":
        return rng.lognormal(math.log(law.mean) - law.sigma**2 / 2, law.sigma) if law.mean else 0.0
    if law.kind == "pareto":
        return (1 + rng.pareto(law.shape)) * (law.mean * (law.shape - 1) / law.shape)
    if law.kind == "empirical":
        values = numbers(law)
        return values[int(rng.random() * len(values))]
    if law.kind in ("sites", "distance"):
        return draw(law.jitter, rng)
    raise NotImplementedError(law.kind)


def numbers(law):
    """The lines of an empirical law's file."""
    with open(law.file) as file:
        return [float(line.split("#")[0]) for line in file if line.split("#")[0].strip()]


def mean(law):
    """The expectation of a law of stays."""
    if law.kind == "constant":
        return law.value
    if law.kind == "uniform":
        return (law.low + law.high) / 2
    return float(np.mean(numbers(law))) if law.kind == "empirical" else law.mean


def draw_weighted(law, rng, n):
    """Stays that a random instant falls into: with chances in proportion to their lengths."""
    if law.kind == "constant":
        return np.full(n, float(law.value))
    if law.kind == "uniform":  # the square is uniform
        return np.sqrt(rng.uniform(law.low * law.low, law.high * law.high, n))
    if law.kind == "exponential":  # what has passed, and what is to come
        return rng.gamma(2.0, law.mean, n)
    if law.kind == "lognormal":
        return rng.lognormal(math.log(law.mean) + law.sigma**2 / 2, law.sigma, n)
    if law.kind == "pareto":
        return (1 + rng.pareto(law.shape - 1, n)) * (law.mean * (law.shape - 1) / law.shape)
    raise NotImplementedError(law.kind)


class Factor:
    """A factor of an agent or a link: for ever, or drawn anew at the instants of a Poisson process.

    How it is now follows from how it was at its last use, and from the time since.
    """

    def __init__(self, law, streams):
        self.law, self.rng, self.then = law, streams.slowness, 0.0
        self.value = 1.0 if law is None else draw(law, streams.rates)

    def at(self, now):
        """Its value at a use of it."""
        lasts = getattr(self.law, "lasts", None)
        if lasts is not None:
            if self.rng.random() >= math.exp(-(now - self.then) / lasts):
                self.value = draw(self.law, self.rng)
            self.then = now
        return self.value


# --- devices --------------------------------------------------------------------------------------
class Devices:
    """Rates and factors of agents and links, partitions, and when agents are switched."""

    def __init__(self, scenario, problem, streams, links):
        self.n, self.streams = problem.n, streams
        latency, compute = scenario.network.latency, scenario.compute.time
        self.rate = [factor.value for factor in self._of_agents(scenario.clock.rate)]
        self.latency_of_agent = self._of_agents(latency.per_agent)
        self.compute_of_agent = self._of_agents(compute.per_agent)
        self.latency_of_link, self.distance = {}, dict.fromkeys(links, 1.0)
        for i, j in links:
            if i < j:
                factor = Factor(latency.per_link, streams)
                self.latency_of_link[i, j] = self.latency_of_link[j, i] = factor
        if scenario.sites is not None:
            places = streams.sites.random(self.n) * scenario.sites.random
            self.site = [int(place) for place in places]
        if latency.kind == "sites":
            matrix = self._matrix(latency)
            for i, j in links:
                self.distance[i, j] = matrix[self.site[i]][self.site[j]]
        self.cuts = [self._cut(cut, problem.names) for cut in scenario.network.partitions]
        self._plan_switches(scenario.availability, problem.names)

    def _of_agents(self, law):
        return [Factor(law, self.streams) for _ in range(self.n)]

    # --- factors ----------------------------------------------------------------------------------
    def slow(self, i, j, now):
        """The two factors on what agent i sends to agent j now."""
        own = self.latency_of_agent[i].at(now)
        return own, self.distance[i, j] * self.latency_of_link[i, j].at(now)

    # --- places -----------------------------------------------------------------------------------
    def _matrix(self, latency):
        with open(latency.file) as file:
            rows = [row[1:] for row in csv.reader(file)][1:]
        return [[float(cell) / (2 if latency.round_trip else 1) for cell in row] for row in rows]

    def _cut(self, cut, names):
        """A partition: from when until when, and each agent's group."""
        if cut.groups == "by site":
            group = dict(enumerate(self.site))
        elif isinstance(cut.groups, int):  # a permutation in parts, whose sizes differ by at most 1
            group, order = {}, self.streams.sites.permutation(self.n).tolist()
            for k in range(cut.groups):
                size = self.n // cut.groups + (k < self.n % cut.groups)
                group |= dict.fromkeys(order[:size], k)
                order = order[size:]
        else:  # who is in no list is in one more group
            listed = {name: k for k, members in enumerate(cut.groups) for name in members}
            group = {i: listed.get(name, -1) for i, name in enumerate(names)}
        return SimpleNamespace(begin=cut.begin, until=cut.until, group=group)

    # --- comings and goings -----------------------------------------------------------------------
    def _plan_switches(self, config, names):
        if config is None:
            self.on_at_first, self.first_switch = [True] * self.n, [math.inf] * self.n
        elif config.kind == "trace":
            self._by_trace(config, names)
        else:
            self._stationary(config)

    def _stationary(self, config):
        """Who is on at first, and the rest of the stay that time 0 falls into."""
        rng, law = self.streams.availability, {True: config.on, False: config.off}
        stream = {True: self.streams.on, False: self.streams.off}
        states, shares = rng.random(self.n), rng.random(self.n)
        stays = {on: draw_weighted(law[on], rng, self.n) for on in (True, False)}
        share_on = mean(config.on) / (mean(config.on) + mean(config.off))
        self.on_at_first = [bool(u < share_on) for u in states]
        self.first_switch = [shares[i] * stays[on][i] for i, on in enumerate(self.on_at_first)]
        self.next_switch = lambda i, now, on: now + draw(law[on], stream[on])

    def _by_trace(self, config, names):
        """An agent is on until its first row; rows that change nothing are none."""
        last, times = dict.fromkeys(names, "on"), {name: [] for name in names}
        self.on_at_first = [True] * self.n
        with open(config.file) as file:
            for row in csv.DictReader(file):
                name, time = row["agent"], float(row["time"])
                if row["state"] == last[name]:
                    continue
                last[name] = row["state"]
                if time > 0:
                    times[name].append(time)
                else:
                    self.on_at_first[names.index(name)] = False
        later = [iter([*times[name], math.inf]) for name in names]
        self.first_switch = [next(own) for own in later]
        self.next_switch = lambda i, now, on: next(later[i])
