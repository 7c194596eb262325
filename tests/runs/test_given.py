"""What Python gives in the place of files: the same as in files, or refused as they are."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from simulator.errors import ScenarioError
from simulator.problem.build import build_problem
from simulator.runs.scenarios import load_scenario
from simulator.seeds import Streams

ROWS = pd.DataFrame({"agent": ["a", "b", "c"], "y": [1.0, 2.0, 3.0]})


def built(graph=None, **task):
    path = {"kind": "networkx", "generator": "path_graph"}
    task = {"kind": "files", "train": ROWS, **task}
    stop = {"time": 1}
    scenario = load_scenario(
        {"task": task, "graph": path if graph is None else graph, "stop": stop}
    )
    return build_problem(scenario, Streams(0))


def linked(weight) -> nx.Graph:
    graph = nx.path_graph(["a", "b", "c"])
    graph.edges["a", "b"]["weight"] = weight
    return graph


@pytest.mark.parametrize(
    "weight", [float("nan"), None, pd.NA, pd.NaT, float("inf"), 0, -1, True, "x", "", [1], 10**400]
)
def test_a_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(ScenarioError, match=r"^graph: edge a – b: weight .*finite number > 0"):
        built(linked(weight))


@pytest.mark.parametrize("weight", [3, 0.1, np.float32(0.1), np.int64(3), "0.25"])
def test_a_weight_is_kept_exactly(weight):
    assert built(linked(weight)).W[0, 1] == float(weight)
    alone = linked(weight)
    alone.remove_edge("b", "c")
    scenario = load_scenario(
        {"task": {"kind": "files", "train": ROWS}, "graph": alone, "stop": {"time": 1}},
        {"graph.allow_disconnected": True},
    )
    W = build_problem(scenario, Streams(0)).W
    assert (W.nnz, W[0, 1]) == (2, float(weight))


def test_a_node_that_is_no_agent_is_refused():
    graph = linked(1)
    graph.add_node("zed")
    with pytest.raises(ScenarioError, match=r"node 'zed': unknown agent; the agents are a, b, c"):
        built(graph)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": ROWS.assign(agent=["a", "a ", "b"])}, ("task.train: column 'agent'", "'a '")),
        ({"train": ROWS.assign(agent=["1", 1, "b"])}, ("task.train: column 'agent'", "'1' and 1")),
        ({"agents": ["a", "a ", "b", "c"]}, ("task.agents", "'a '")),
        ({"agents": ["a", "b", "c", "#d"]}, ("task.agents", "'#d'")),
        ({"agents": ["a", "b", "c\nd"]}, ("task.agents", "line break")),
        ({"graph": nx.path_graph(["a", "b", "b ", "c"])}, ("graph", "'b' and 'b '")),
        ({"graph": nx.path_graph(["1", 1])}, ("graph", "'1' and 1")),
        ({"agents": ["a", "b", "c", None]}, ("task.agents", "None is no name")),
        ({"train": ROWS.set_axis(["agent", "agent"], axis=1)}, ("task.train", "two", "'agent'")),
        ({"train": ROWS.set_index(pd.Index([1, 2, 3], name="y"))}, ("task.train", "index", "'y'")),
    ],
)
def test_names_that_a_file_would_merge_are_refused(change, words):
    with pytest.raises(ScenarioError) as error:
        built(**change)
    for word in words:
        assert word in str(error.value)


def endless() -> dict:
    values: dict = {}
    values["task"] = values
    return values


@pytest.mark.parametrize("given", [3, "seed=1", [("seed", 1)], {"seed"}])
def test_overrides_that_are_no_dictionary_are_refused(given):
    with pytest.raises(ScenarioError, match=r"^overrides: must be a dictionary.* \(got .*\)$"):
        load_scenario({"task": {"kind": "mean_estimation"}, "stop": {"time": 1}}, given)


def test_a_dictionary_that_holds_itself_is_refused():
    small = {"task": {"kind": "mean_estimation"}, "stop": {"time": 1}}
    for given, overrides in ((endless(), None), (small, endless())):
        with pytest.raises(ScenarioError, match="task: must not be nested in more than 50 levels"):
            load_scenario(given, overrides)
    with pytest.raises(ScenarioError, match="3: a key must be text"):
        load_scenario({3: 4, **small})
