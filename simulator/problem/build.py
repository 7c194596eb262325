"""The learning problem of a scenario: the agents' data, their solitary models and their graph."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from agents.machinery.code_errors import failed
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.problem.graphs.graph import Agents, check_weights, connected_parts
from simulator.problem.problem import Material, Problem
from simulator.scenario.kinds import blaming
from simulator.scenario.schema import Scenario
from simulator.scenario.tables import Floats, Ints, listing
from simulator.seeds import Streams

#: Data and graph of such a size are made in a second or two.
_QUICK_BYTES, _QUICK_AGENTS = 1e8, 2000


def build_problem(scenario: Scenario, streams: Streams) -> Problem:
    """The problem that the scenario describes; the same seed gives the same problem.

    Data come from the stream ``data`` alone and the graph from ``graph`` alone.
    """
    with blaming(scenario.plugins):
        return _built(scenario, streams)


def check_problem(scenario: Scenario) -> None:
    """Raise ScenarioError for data or a graph that a run would refuse, if both are made at once."""
    needed, count = scenario.task.bytes_needed, scenario.task.count or 0
    if needed is None or needed > _QUICK_BYTES or count > _QUICK_AGENTS:
        return
    streams = Streams(scenario.seed, scenario.problem_seed)
    with blaming(scenario.plugins):
        material = _material(scenario, streams)
        if len(material.names) <= _QUICK_AGENTS:
            _graph(scenario, material, streams)


def _material(scenario: Scenario, streams: Streams) -> Material:
    task = scenario.task
    what = "task: the agents and their points, of so many dimensions,"
    require_memory(task.bytes_needed or 0, what)
    stream = scenario.stream
    if stream is None or stream.column is None:
        material = task.build(streams.data)
    else:
        material = task.with_times(stream.column)  # type: ignore[attr-defined]
    if not isinstance(material, Material):
        what = "it must give a Material (simulator/problem/problem.py)"
        what = f"{what}, got {type(material).__name__}"
        raise ScenarioError(failed(f"task {task.kind}", task.build, what))
    return material


def _graph(
    scenario: Scenario, material: Material, streams: Streams
) -> tuple[csr_array, str | None]:
    """The weights, and a remark if they fall into several parts."""
    task, graph, names = scenario.task, scenario.graph, material.names
    vectors = material.targets if material.vectors is None else material.vectors
    W = graph.build(Agents(names, vectors, task.angular), streams.graph)
    if not type(graph).__module__.startswith("simulator."):
        check_weights(W, len(names), graph)
    part, remark = connected_parts(W, names, graph.allow_disconnected)
    without = np.bincount(part, weights=material.data.sizes) == 0
    if without.any():  # its models would be anything at all
        agents = np.flatnonzero(part == np.flatnonzero(without)[0])
        raise ScenarioError(
            f"a connected part of the graph in which no agent has data: agent "
            f"{listing(names, agents)}; at least one needs a training point"
        )
    return W, remark


def _built(scenario: Scenario, streams: Streams) -> Problem:
    task, material = scenario.task, _material(scenario, streams)
    W, remark = _graph(scenario, material, streams)
    loss, ridge = task.loss, getattr(task, "ridge", 0.0)  # type: ignore[attr-defined]
    names, data = material.names, material.data
    try:
        solitary = loss.fit_all(data.X, data.y, data.offsets, ridge)
    except ValueError as error:
        raise ScenarioError(f"task: {error}") from None
    wrong = np.flatnonzero(~np.isfinite(solitary).all(axis=1))
    if len(wrong):
        raise ScenarioError(
            f"task: the solitary model of agent {listing(names, wrong)} is not finite; "
            "the numbers of its training points are too large"
        )
    return Problem(
        W=W,
        loss=loss,
        data=data,
        confidence=confidence(
            data.sizes, getattr(scenario.algorithm, "confidence", "data") == "data"
        ),
        solitary=solitary,
        targets=material.targets,
        test=material.test,
        vectors=material.vectors,
        names=names,
        notes=() if remark is None else (remark,),
        about=material.about,
        times=material.times,
    )


def confidence(sizes: Ints, by_data: bool, most: int | None = None) -> Floats:
    """c_i = m_i / max_j m_j, or C = I (label propagation); 0 for an agent without data.

    ``most`` is the largest number that any agent will ever have, where they grow.
    """
    if not by_data:
        return (sizes > 0).astype(float)
    return np.asarray(sizes / (sizes.max() if most is None else most))
