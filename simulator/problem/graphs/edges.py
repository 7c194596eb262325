"""Graphs that are given by their edges: in the user's files, or by networkx."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
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
from simulator.problem.generators import generate
from simulator.problem.graphs.graph import Agents, checked
from simulator.scenario.kinds import Graph
from simulator.scenario.quantities import InputFile
from simulator.scenario.tables import listing, read_cells, read_text, without_comments


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
