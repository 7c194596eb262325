"""Graphs that are given by their edges: in the user's files, or by networkx.

A generator of networkx may be asked for anything; one that takes more memory or more time than a
graph of so many agents can need is stopped.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self
from xml.etree.ElementTree import ParseError  # the exception only: see _graphml

import networkx as nx
import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy.sparse import csr_array

from agents.parameters import report
from simulator.errors import ScenarioError
from simulator.machine import gigabytes, memory, within
from simulator.problem.graphs.graph import Agents, checked
from simulator.scenario.kinds import Graph
from simulator.scenario.quantities import InputFile
from simulator.scenario.tables import Ints, listing, read_cells, read_text, without_comments

#: Generators whose n is a side or an exponent, not a number of agents: the user has to say it.
_N_IS_NO_COUNT = {
    *("binomial_tree", "dorogovtsev_goltsev_mendes_graph", "hypercube_graph", "kneser_graph"),
    *("margulis_gabber_galil_graph", "mycielski_graph", "navigable_small_world_graph"),
    *("random_cograph", "sudoku_graph"),
}


# --- files ----------------------------------------------------------------------------------------
class GraphFile(Graph):
    """GraphML (.graphml), or a list of edges, one ``agent agent [weight]`` a line."""

    kind: Literal["file"] = "file"
    file: InputFile
    """The file."""

    def build(self, agents: Agents, rng: np.random.Generator) -> csr_array:
        """The weights."""
        return _read_graph(self.file, agents.names)


def _read_graph(path: Path, names: Sequence[str]) -> csr_array:
    """A GraphML file, or an edge list; agents are named as in the task."""
    graphml = path.suffix.lower() == ".graphml"
    edges = _graphml(path, names) if graphml else _edge_list(path)

    def where(row: int) -> str:
        if graphml:
            return f"{path}: edge {edges['a'].iloc[row]} – {edges['b'].iloc[row]}"
        return f"{path}:{edges.index[row]}"

    index = pd.Index(names)
    i, j = (index.get_indexer(pd.Index(edges[end])).astype(np.int64) for end in ("a", "b"))
    for end, number in (("a", i), ("b", j)):
        unknown = np.flatnonzero(number < 0)
        if len(unknown):
            name = edges[end].iloc[unknown[0]]
            raise ScenarioError(
                f"{where(unknown[0])}: unknown agent {name!r}; the agents are {listing(names)}"
            )
    return checked(len(names), i, j, edges["weight"], where)


def _graphml(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """The edges of a GraphML file: columns a, b and weight (1 where it has none)."""
    text = read_text(path)
    # Entities are the one way in which XML can explode or fetch other files.  The parser is given
    # the decoded text, so no other encoding can hide a declaration from this check.
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ScenarioError(f"{path}: a GraphML file must not have a DOCTYPE or ENTITY declaration")
    try:
        made = nx.parse_graphml(text)
    except (ParseError, nx.NetworkXException, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"{path}: not a GraphML file that networkx can read: {error}") from None
    if made.is_directed():
        raise ScenarioError(f"{path}: the graph is directed; edgedefault must be undirected")
    known = set(names)
    for name in made:
        if name not in known:
            what = f"unknown agent; the agents are {listing(names)}"
            raise ScenarioError(f"{path}: node {name!r}: {what}")
    return pd.DataFrame(made.edges(data="weight", default=1.0), columns=["a", "b", "weight"])


def _edge_list(path: Path) -> pd.DataFrame:
    """The edges of a text file: columns a, b and weight; the index is the line number."""
    text = without_comments(read_text(path))
    edges = read_cells(path, text, ["a", "b", "weight"], blanks="," not in text)
    short = np.flatnonzero((edges["a"] == "") | (edges["b"] == ""))
    if len(short):
        raise ScenarioError(
            f"{path}:{edges.index[short[0]]}: expected `agent agent [weight]`, "
            f"got {' '.join(edges.iloc[short[0]]).strip()!r}"
        )
    edges["weight"] = edges["weight"].where(edges["weight"] != "", "1")
    return edges


# --- networkx -------------------------------------------------------------------------------------
class NetworkxGraph(Graph):
    """A graph of networkx by its generator's name; n and seed are filled in where it takes them."""

    kind: Literal["networkx"] = "networkx"
    generator: str
    """The name of a function of networkx.generators."""
    arguments: dict[str, Any] = Field(default={})
    """Its arguments."""

    @model_validator(mode="after")
    def _reproducible(self) -> Self:
        # networkx takes null for its global random numbers, which differ from run to run.
        seed = self.arguments.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
            what = "must be a whole number from 0, below 2³²; left out, it follows the scenario's"
            report([("arguments.seed", f"{what} (got {json.dumps(seed, default=str)[:40]})")])
        return self

    def build(self, agents: Agents, rng: np.random.Generator) -> csr_array:
        """Agent i is node i, or the i-th one."""
        n, seed = len(agents.names), int(rng.integers(2**32))
        where, (i, j, weights) = generate(self.generator, self.arguments, n, seed)
        return checked(n, i, j, pd.Series(weights, dtype=object), lambda _: where)


def generate(
    name: str, given: Mapping[str, Any], n: int, seed: int
) -> tuple[str, tuple[Ints, Ints, list[Any]]]:
    """How to call a generator, and its edges and their weights; agent i is node i, or the i-th one.

    ``n`` and ``seed`` are filled in where the generator takes them and ``given`` lacks them.
    """
    generator = getattr(nx, name, None)
    module = str(getattr(generator, "__module__", ""))
    if not (callable(generator) and module.startswith("networkx.generators.")):
        raise ScenarioError(
            f"graph.generator: {name!r} is no graph generator of networkx; allowed are "
            "those of networkx.generators, such as erdos_renyi_graph or watts_strogatz_graph"
        )
    # The undecorated one: it lacks `backend`, with which networkx would import more code.
    signature = inspect.signature(inspect.unwrap(generator))
    filled = {"seed": seed} if name in _N_IS_NO_COUNT else {"seed": seed, "n": n}
    arguments = {k: v for k, v in filled.items() if k in signature.parameters} | dict(given)
    where, nodes = f"graph: {name}{signature}", arguments.get("n", 0)
    if isinstance(nodes, int | float) and nodes > n and name not in _N_IS_NO_COUNT:
        raise ScenarioError(f"{where} gives {nodes:.15g} nodes or more for {n} agents")
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    got = f"got {text[:300]}" + "…" * (len(text) > 300) if text else "got no arguments"
    room, seconds = min(memory(), _room(n)), _seconds(n)
    try:
        signature.bind(**arguments)
        with within(room, seconds):
            made = generator(**arguments)
    except (MemoryError, TimeoutError) as error:
        why = f"needs more than {gigabytes(room)}"
        if isinstance(error, TimeoutError):
            why = f"was still at work after {seconds:g} s"
        raise ScenarioError(
            f"{where} {why} for {n} agents and was stopped; {got}; "
            "ask for less, or write the graph to a file and use graph.kind: file"
        ) from None
    except Exception as error:  # whatever networkx makes of the user's arguments
        reason = str(error) or type(error).__name__
        raise ScenarioError(f"{where}: {reason[:300]}; {got}") from None
    return where, _edges(made, n, where)


def _edges(made: Any, n: int, where: str) -> tuple[Ints, Ints, list[Any]]:
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


def _room(n: int) -> float:
    """Bytes for any graph of n agents: all pairs of a few thousand, or ten links for each of many.

    networkx needs some 500 an edge; and whatever it does, it may use 300 MB.
    """
    return 3e8 + max(1e4 * n, min(2e9, 500 * n**2))


def _seconds(n: int) -> float:
    """Some seconds on a busy machine, and 3 ms an agent; a minute at most."""
    return min(60.0, 5 + 3e-3 * n)
