"""Graphs by networkx's generators, which may be asked for anything.

A generator that is known to be quick for its arguments runs here.  Any other runs in a process of
its own, which can be stopped: when it takes more memory or more time than a graph of so many agents
can need.  The graph is the same either way.
"""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from simulator.errors import ScenarioError
from simulator.machine import gigabytes, memory

#: The ends of each edge as numbers of agents, and the weights.
Edges = tuple[NDArray[np.int64], NDArray[np.int64], list[Any]]

#: Their work is at most some n² times their other numbers, and n is at most their nodes' number.
_QUICK = {
    *("barabasi_albert_graph", "barbell_graph", "circular_ladder_graph", "complete_graph"),
    *("connected_watts_strogatz_graph", "cycle_graph", "empty_graph", "erdos_renyi_graph"),
    *("fast_gnp_random_graph", "gnm_random_graph", "gnp_random_graph", "grid_2d_graph"),
    *("ladder_graph", "lollipop_graph", "newman_watts_strogatz_graph", "path_graph"),
    *("powerlaw_cluster_graph", "random_geometric_graph", "random_regular_graph", "star_graph"),
    *("watts_strogatz_graph", "wheel_graph"),
}
_QUICK_WORK = 1e7
#: Generators whose n is a side or an exponent, not a number of agents: the user has to say it.
_N_IS_NO_COUNT = {
    *("binomial_tree", "dorogovtsev_goltsev_mendes_graph", "hypercube_graph", "kneser_graph"),
    *("margulis_gabber_galil_graph", "mycielski_graph", "navigable_small_world_graph"),
    *("random_cograph", "sudoku_graph"),
}


def generate(name: str, given: Mapping[str, Any], n: int, seed: int) -> tuple[str, Edges]:
    """How to call the graph, and its edges; agent i is node i, or the i-th one.

    ``n`` and ``seed`` are filled in where the generator takes them and ``given`` lacks them.
    """
    signature = inspect.signature(inspect.unwrap(_find(name)))
    filled: dict[str, Any] = {"seed": seed, "n": n}
    if name in _N_IS_NO_COUNT:
        del filled["n"]
    arguments = {k: v for k, v in filled.items() if k in signature.parameters} | dict(given)
    where = f"graph: {name}{signature}"
    nodes = arguments.get("n", 0)
    if name in _QUICK and isinstance(nodes, int | float) and nodes > n:  # no need to make it
        raise ScenarioError(f"{where} gives {nodes:.15g} nodes or more for {n} agents")
    make = _edges if _is_quick(name, arguments) else _edges_elsewhere
    return where, make(name, arguments, n, where)


def _find(name: str) -> Callable[..., Any]:
    generator = getattr(nx, name, None)
    module = str(getattr(generator, "__module__", ""))
    if not (callable(generator) and module.startswith("networkx.generators.")):
        raise ScenarioError(
            f"graph.generator: {name!r} is no graph generator of networkx; allowed are "
            "those of networkx.generators, such as erdos_renyi_graph or watts_strogatz_graph"
        )
    return generator


def _is_quick(name: str, arguments: Mapping[str, Any]) -> bool:
    if not arguments:
        return True  # one of a fixed size
    numbers = {key: value for key, value in arguments.items() if key != "seed"}
    if name not in _QUICK or not all(isinstance(v, int | float) for v in numbers.values()):
        return False
    work = numbers.get("n", 1)
    for value in numbers.values():
        work *= max(1, abs(value))
    return bool(work <= _QUICK_WORK)


def _edges(name: str, arguments: Mapping[str, Any], n: int, where: str) -> Edges:
    generator = _find(name)
    try:
        # The undecorated signature: it lacks `backend`, with which networkx would import more code.
        inspect.signature(inspect.unwrap(generator)).bind(**arguments)
        made = generator(**arguments)
    except MemoryError:
        raise
    except Exception as error:  # whatever networkx makes of the user's arguments
        reason = str(error) or type(error).__name__
        raise ScenarioError(f"{where}: {reason[:300]}; got {_shown(arguments)}") from None
    if not isinstance(made, nx.Graph):
        raise ScenarioError(f"{where} gives a {type(made).__name__}, not a graph")
    if made.is_directed():
        raise ScenarioError(f"{where} gives a directed graph; it must be undirected")
    if len(made) != n:
        raise ScenarioError(f"{where} gives {len(made)} nodes for {n} agents")
    simple: nx.Graph[Any] = nx.Graph(made) if made.is_multigraph() else made
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    order = range(n) if all(i in simple for i in range(n)) else list(simple)
    number = {node: i for i, node in enumerate(order)}
    ends = np.fromiter((number[node] for edge in simple.edges for node in edge), dtype=np.int64)
    weights = [weight for _, _, weight in simple.edges(data="weight", default=1.0)]
    return ends[0::2], ends[1::2], weights


def _shown(arguments: Mapping[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return (given if len(given) <= 300 else given[:300] + "…") or "no arguments"


# --- in a process of its own --------------------------------------------------------------------
def _edges_elsewhere(name: str, arguments: Mapping[str, Any], n: int, where: str) -> Edges:
    room, seconds = min(memory(), _room(n)), _seconds(n)

    def stopped(why: str) -> ScenarioError:
        return ScenarioError(
            f"{where} {why} for {n} agents and was stopped; got {_shown(arguments)}; "
            "ask for less, or write the graph to a file and use graph.kind: file"
        )

    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", __name__],
            input=pickle.dumps((room, (name, dict(arguments), n, where))),
            capture_output=True,
            timeout=seconds,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        )
    except subprocess.TimeoutExpired:
        raise stopped(f"was still at work after {seconds:g} s") from None
    if done.returncode > 0:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    made = pickle.loads(done.stdout) if done.returncode == 0 else MemoryError()  # noqa: S301
    if isinstance(made, MemoryError):  # or a signal: the system's own limits
        raise stopped(f"needs more than {gigabytes(room)}")
    if isinstance(made, ScenarioError):
        raise made
    return made


def _room(n: int) -> float:
    """Bytes for any graph of n agents: all pairs of a few thousand, or ten links for each of many.

    networkx needs some 500 an edge; and whatever it does, it may use 300 MB.
    """
    return 3e8 + max(1e4 * n, min(2e9, 500 * n**2))


def _seconds(n: int) -> float:
    """For Python to start on a busy machine, and 3 ms an agent; a minute at most."""
    return min(60.0, 8 + 3e-3 * n)


def _serve() -> None:
    """Make the graph that standard input asks for, and write its edges to standard output."""
    room, asked = pickle.load(sys.stdin.buffer)  # noqa: S301
    _restrict(room)
    made: Any
    try:
        made = _edges(*asked)
    except (ScenarioError, MemoryError) as error:
        made = error
    pickle.dump(made, sys.stdout.buffer)


def _restrict(room: float) -> None:
    """Take no more than ``room`` bytes beside what starting has taken."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (int(used + room),) * 2)
    except (ImportError, OSError, ValueError):  # not Linux
        pass


if __name__ == "__main__":
    _serve()
