"""Random numbers for compiled code: blocks that NumPy draws and the loops use up, one by one.

Blocks equal single draws bit for bit, so this is what the SimPy engine sees.  The loops return to
Python when a block runs low.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from agents.machinery.compiling import floats, kernel
from simulator.engines.compiled.record import ADDRESS, Fields, view
from simulator.engines.setup import Setup
from simulator.scenario import laws
from simulator.scenario.tables import Floats

#: The streams, as rows of a matrix.
CLOCK, PEERS, LOSS, LATENCY, COMPUTE, ON, OFF = range(7)
STREAMS = 7
FIELDS: Fields = [
    ("draws", ADDRESS),
    ("block", np.int64),
    #: The next number of each stream, and the least that must be left for one event.
    ("cursors", ADDRESS),
    ("reserve", np.int64),
]


class Draws:
    """The blocks (7, block) of a run, and how far they are used up."""

    def __init__(self, setup: Setup, reserve: int):
        block = max(4096, 4 * reserve)
        config, streams, clock = setup.scenario, setup.streams, setup.streams.clock
        latency, compute = config.network.latency.drawn, config.compute.time.drawn
        self._sources: list[Callable[[int], Floats] | None] = [
            clock.random if config.clock.ticks == "regular" else clock.standard_exponential,
            streams.peers.random,
            streams.loss.random,
            _source(latency, streams.latency),
            _source(compute, streams.compute),
            None,
            None,
        ]
        self.blocks = np.zeros((STREAMS, block))
        self.blocks[LATENCY], self.blocks[COMPUTE] = latency.mean_value, compute.mean_value
        if setup.availability is not None and setup.availability.laws is not None:
            stays = zip((ON, OFF), setup.availability.laws, (streams.on, streams.off), strict=True)
            for row, law, rng in stays:
                self._sources[row] = _source(law, rng)
                self.blocks[row] = law.mean_value
        self.cursors = np.full(STREAMS, block)
        self.refill()

    def refill(self) -> None:
        """Fill the blocks up; what is left in them comes first."""
        block = self.blocks.shape[1]
        for values, used, draw in zip(
            self.blocks, self.cursors.tolist(), self._sources, strict=True
        ):
            if draw is not None:
                values[: block - used] = values[used:].copy()
                values[block - used :] = draw(used)
        self.cursors[:] = 0


def _source(law: laws.Law[Any], rng: np.random.Generator) -> Callable[[int], Floats] | None:
    """What draws a block; None for a constant, which is not drawn."""
    constant = isinstance(law, laws.Constant) or law.mean_value == 0
    return None if constant else law.source(rng)


@kernel
def draw(run: Any, stream: int) -> float:
    """The next number of a stream."""
    cursors = view(run.cursors, STREAMS, np.int64)
    place = cursors[stream]
    cursors[stream] = place + 1
    return floats(run.draws, (STREAMS, run.block))[stream, place]


@kernel
def upcoming(run: Any, stream: int) -> float:
    """The number of a stream that will be drawn next, or 0 at the end of its block."""
    place = view(run.cursors, STREAMS, np.int64)[stream]
    return floats(run.draws, (STREAMS, run.block))[stream, place] if place < run.block else 0.0


@kernel
def low(run: Any) -> bool:
    """Might one more event find a block empty?"""
    cursors = view(run.cursors, STREAMS, np.int64)
    most = 0
    for stream in range(STREAMS):
        most = max(most, cursors[stream])
    return most > run.block - run.reserve
