"""Slowness that lasts, in compiled code (``simulator.engines.slowness``).

A draw follows a uniform of the same generator where that says so, so there are no blocks: NumPy's
own functions draw, by their addresses; a law that is not NumPy's is asked in Python.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.random import _generator
from numpy.typing import NDArray

from agents.machinery.compiling import kernel
from agents.machinery.intrinsics import draw_double, next_double
from simulator.engines.compiled.record import ADDRESS, Fields, attach, view
from simulator.engines.setup import Setup
from simulator.engines.slowness import Lasting
from simulator.scenario.laws import Exponential, Lognormal, Pareto, Uniform

#: The factors that may last: of agents on latency, of links, of agents on computing.
AGENTS, LINKS, COMPUTING = range(3)
#: A factor, and when it was used last.
FACTOR = np.dtype([("value", np.float64), ("used", np.float64)], align=True)
#: For how long the factors last, 0: for ever; their law, (function(generator, a, b) + shift)·scale.
SLOW = np.dtype(
    [
        ("lasts", np.float64),
        ("function", ADDRESS),
        ("a", np.float64),
        ("b", np.float64),
        ("shift", np.float64),
        ("scale", np.float64),
        ("count", np.int64),
        ("factors", ADDRESS),
    ],
    align=True,
)
FIELDS: Fields = [
    ("slow", ADDRESS),
    ("slow_agents", np.bool_),
    ("slow_links", np.bool_),
    ("slow_computing", np.bool_),
    #: The undirected link of each edge.
    ("pairs", ADDRESS),
    #: The generator, for functions that draw, and the one of uniforms with its state.
    ("slow_generator", ADDRESS),
    ("slow_uniform", ADDRESS),
    ("slow_state", ADDRESS),
]
_ASK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_double, ctypes.c_double)


class Slowness:
    """The factors of a run that last for a while, as its record has them."""

    def __init__(self, run: NDArray[Any], setup: Setup):
        self._run, self._rng = run, setup.streams.slowness
        #: What went wrong in a law that was asked.
        self.failure: BaseException | None = None
        edges = np.minimum(setup.back, np.arange(len(setup.back)))
        firsts, pairs = np.unique(edges, return_inverse=True)
        self._kept: list[Any] = [pairs.astype(np.int32)]
        attach(run, "pairs", self._kept[0], np.int32, pairs.shape)
        self._table = np.zeros(3, SLOW)
        attach(run, "slow", self._table, SLOW, (3,))
        if setup.lasting_latency is not None:
            run["slow_agents"] = True
            self._fill(AGENTS, setup.lasting_latency, setup.lasting_latency.first)
        if setup.lasting_links is not None:
            run["slow_links"] = True
            self._fill(LINKS, setup.lasting_links, setup.lasting_links.first[firsts])
        if setup.lasting_computing is not None:
            run["slow_computing"] = True
            self._fill(COMPUTING, setup.lasting_computing, setup.lasting_computing.first)
        interface = self._rng.bit_generator.ctypes
        run["slow_generator"] = interface.bit_generator.value
        run["slow_uniform"] = ctypes.cast(interface.next_double, ctypes.c_void_p).value
        run["slow_state"] = interface.state_address

    def _fill(self, which: int, lasting: Lasting, first: NDArray[np.float64]) -> None:
        row, factors = self._table[which], np.zeros(len(first), FACTOR)
        factors["value"] = first
        row["lasts"], row["count"] = lasting.lasts, len(first)
        name, row["a"], row["b"], row["shift"], row["scale"] = _of_numpy(lasting.law)
        function = getattr(ctypes.CDLL(_generator.__file__), name, None) if name else None
        if function is None:
            row["shift"], row["scale"] = 0.0, 1.0
            function = _ASK(lambda *_: self._ask(lasting))
        row["function"] = ctypes.cast(function, ctypes.c_void_p).value
        row["factors"] = factors.ctypes.data
        self._kept += [factors, function]

    def _ask(self, lasting: Lasting) -> float:
        try:
            return lasting.anew(self._rng)
        except BaseException as error:  # no way through compiled code: the loop halts
            self.failure = error
            self._run["halt"] = True
            return 1.0


def _of_numpy(law: Any) -> tuple[str, float, float, float, float]:
    """NumPy's function that draws a law, a and b, and what is added and multiplied; or no name."""
    own = {kind.draw: kind for kind in (Uniform, Exponential, Lognormal, Pareto)}
    kind = own.get(type(law).draw)
    if kind is Exponential:
        return "random_exponential", law.mean_value, 0.0, 0.0, 1.0
    if kind is None:
        return "", 0.0, 0.0, 0.0, 1.0
    a, b = law.parameters()
    if kind is Pareto:
        return "random_pareto", a, 0.0, 1.0, b
    if kind is Uniform:
        return "random_uniform", a, b - a, 0.0, 1.0
    return "random_lognormal", a, b, 0.0, 1.0


@kernel
def factor_now(run: Any, which: int, k: int) -> float:
    """Factor k, which is used now: kept, or drawn anew."""
    slow = view(run.slow, 3, SLOW)[which]
    factor = view(slow.factors, slow.count, FACTOR)[k]
    chance = math.exp(-(run.now - factor.used) / slow.lasts)
    factor.used = run.now
    if next_double(run.slow_uniform, run.slow_state) >= chance:
        drawn = draw_double(slow.function, run.slow_generator, slow.a, slow.b)
        factor.value = (drawn + slow.shift) * slow.scale
    return factor.value


@kernel
def pair_of(run: Any, edge: int) -> int:
    """The undirected link of an edge: its two directions are slow together."""
    return view(run.pairs, run.edge_count, np.int32)[edge]
