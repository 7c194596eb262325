"""All the randomness of a run, from one seed: a generator for each purpose.

The streams are independent of one another, so that a change of the latency, say, leaves the data,
the graph, the ticks and the partners as they were.
"""

from __future__ import annotations

import numpy as np

#: What ``problem_seed`` governs, where a scenario has one.
PROBLEM = ("data", "graph")


class Streams:
    """The named generators of a run: ``Streams(seed).data``, ``.graph``, …

    The place of a name is its spawn key: append, never reorder.
    """

    data: np.random.Generator
    graph: np.random.Generator
    clock: np.random.Generator
    peers: np.random.Generator
    latency: np.random.Generator
    loss: np.random.Generator
    compute: np.random.Generator
    rates: np.random.Generator
    rule: np.random.Generator
    availability: np.random.Generator
    on: np.random.Generator
    off: np.random.Generator
    sites: np.random.Generator
    slowness: np.random.Generator
    arrivals: np.random.Generator

    def __init__(self, seed: int, problem_seed: int | None = None):
        for key, name in enumerate(NAMES):
            other = problem_seed is not None and name in PROBLEM
            entropy = problem_seed if other else seed
            sequence = np.random.SeedSequence(entropy=entropy, spawn_key=(key,))
            setattr(self, name, np.random.default_rng(sequence))


NAMES = tuple(Streams.__annotations__)
