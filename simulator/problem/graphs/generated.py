"""Graphs that networkx generates."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy.sparse import csr_array

from agents.parameters import report
from simulator.problem.generators import generate
from simulator.problem.graphs.graph import Agents, checked
from simulator.scenario.kinds import Graph


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
