"""Reading scenarios with all kinds that there are, from files or from Python.

A scenario names files, and a result keeps copies of them.  Data frames and networkx graphs become
such files, in a folder that lasts as long as this process, each named by the key that it stands
for; ``inputs/`` of a stored result has them for good.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
from pandas.api.types import is_scalar

from simulator.errors import ScenarioError
from simulator.runs.plugins import Given, Plugins, load_plugins, schema_for
from simulator.scenario.files import read_scenario, scenario_values
from simulator.scenario.mistakes import dotted, shown
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import MAX_DEPTH, KeyPath


def load_scenario(
    scenario: ScenarioLike,
    overrides: Mapping[str, Any] | None = None,
    *,
    plugins: Given = None,
) -> Scenario:
    """Read, override and validate a scenario: a file, a dictionary of the same keys, or another.

    ``overrides`` maps dotted keys to values: ``{"seed": 3, "network.latency.mean": "80 ms"}``.
    ``plugins`` are files, modules or classes with kinds of their own; the scenario knows them from
    then on.  Files that a scenario file names are found relative to its own folder, also those that
    come by an override.  In a dictionary, and in overrides, a table may be a pandas DataFrame, and
    a graph one of networkx.

    Raises ScenarioError with one line a mistake.

    >>> load_scenario({"task": {"kind": "mean_estimation"}, "stop": {"time": 10}}).task.agents
    300
    """
    if overrides is not None and not isinstance(overrides, Mapping):
        what = "must be a dictionary of dotted keys and their values, like {'network.drop': 0.2}"
        raise ScenarioError(f"overrides: {what} (got {overrides!r:.60})")
    source, loaded = source_of(scenario, plugins)
    return read_scenario(source, with_files(overrides or {}), schema_for(loaded))


#: A scenario as Python may give it: a file, its content, or one that was read before.
ScenarioLike = str | os.PathLike[str] | Mapping[str, Any] | Scenario


def path_of(name: str, given: str | os.PathLike[str]) -> Path:
    """A path that was given as the argument of this name."""
    if not isinstance(given, str | os.PathLike):
        raise ScenarioError(f"{name}: must be a path (got {shown(given)})")
    return Path(given)


def source_of(
    scenario: ScenarioLike, plugins: Given = None
) -> tuple[Path | dict[str, Any], Plugins | None]:
    """A scenario's file or values, and its plugins."""
    if isinstance(scenario, Scenario):
        if plugins is not None:
            raise ScenarioError("plugins: the scenario was read with its own; give them then")
        return scenario_values(scenario), scenario.plugins
    if isinstance(scenario, Mapping):
        return with_files(scenario), load_plugins(plugins)
    if isinstance(scenario, str | os.PathLike):
        return Path(scenario), load_plugins(plugins)
    raise ScenarioError(
        "scenario: must be the path of a file, a dictionary or a Scenario "
        f"(got a {type(scenario).__name__})"
    )


def with_files(values: Mapping[str, Any], at: KeyPath = ()) -> dict[str, Any]:
    """The same values, with files for all tables and graphs; keys may be dotted."""
    return {key: _given(value, (*at, *str(key).split("."))) for key, value in values.items()}


def _given(value: Any, key: KeyPath) -> Any:
    if isinstance(value, Mapping) and len(key) <= MAX_DEPTH:  # deeper ones are refused when read
        return with_files(value, key)
    if isinstance(value, pd.DataFrame):
        return _kept(f"{key[-1]}.csv", _table(value, key))
    if isinstance(value, nx.Graph):
        path = _kept(*_graph(value, key))
        return path if key[-1] == "file" else {"kind": "file", "file": path}
    if key == ("task", "agents") and isinstance(value, list | tuple | pd.Index | pd.Series):
        _check_names(value, key)
        return _kept("agents.txt", "".join(f"{name}\n" for name in value))
    if isinstance(value, list | tuple) and any(map(_is_table, value)):
        return [_given(item, key) for item in value]  # values of a sweep
    return value


def _is_table(value: Any) -> bool:
    return isinstance(value, pd.DataFrame | nx.Graph)


def _table(table: pd.DataFrame, key: KeyPath) -> str:
    """CSV with every number exact; an index with a name is a column too."""
    named = [name for name in table.index.names if name is not None]
    columns = pd.Index([*named, *table.columns], dtype=object)
    if not columns.is_unique:
        what = "columns (an index with a name is one) are called"
        double = columns[columns.duplicated()][0]
        raise ScenarioError(f"{dotted(key)}: two {what} {double!r}; rename one of them")
    if named:
        table = table.reset_index()
    kinds = {name: kind.kind for name, kind in table.dtypes.items()}
    for name in [name for name, kind in kinds.items() if kind == "O"]:
        _check_apart(table[name].dropna(), f"{dotted(key)}: column {name!r}")
    # A narrow float's shortest text is another number when it is read as a wide one.
    wide: dict[Any, Any] = {name: "float64" for name, kind in kinds.items() if kind == "f"}
    wide |= {name: "int64" for name, kind in kinds.items() if kind == "b"}
    return table.astype(wide).to_csv(index=False, lineterminator="\n")


def _check_apart(values: Iterable[Any], where: str) -> None:
    """Different values are different texts in a file, which keeps no blanks around them."""
    seen: dict[str, Any] = {}
    for value in values:
        other = seen.setdefault(str(value).strip(), value)
        if value != other:
            raise ScenarioError(f"{where}: {other!r} and {value!r} would be the same in a file")


def _check_names(names: Iterable[Any], key: KeyPath) -> None:
    strange = [name for name in names if set("#\r\n") & set(str(name))]
    if strange:
        raise ScenarioError(
            f"{dotted(key)}: the agent {strange[0]!r} has a # or a line break in its name"
        )
    missing = [name for name in names if is_scalar(name) and pd.isna(name)]
    if missing:
        raise ScenarioError(f"{dotted(key)}: {missing[0]!r} is no name of an agent")
    _check_apart(names, dotted(key))


def _graph(graph: nx.Graph[Any], key: KeyPath) -> tuple[str, str]:
    """A file's name and text: one ``agent,agent,weight`` a line; an edge without a weight has 1.

    GraphML if there are nodes without edges, which a list of edges would not show.
    """
    if graph.is_directed() or graph.is_multigraph():
        what = "directed" if graph.is_directed() else "a multigraph"
        raise ScenarioError(f"{dotted(key)}: the graph is {what}; give an nx.Graph")
    _check_names(graph, key)
    edges = list(graph.edges(data="weight", default=1.0))
    for a, b, weight in edges:
        if not _is_weight(weight):
            what = f"weight {weight!r}; a weight is a finite number > 0"
            raise ScenarioError(f"{dotted(key)}: edge {a} – {b}: {what}")
    if any(degree == 0 for _, degree in graph.degree()):
        plain: nx.Graph[str] = nx.Graph()
        plain.add_nodes_from(map(str, graph))
        plain.add_weighted_edges_from((str(a), str(b), float(weight)) for a, b, weight in edges)
        return "graph.graphml", "\n".join(nx.generate_graphml(plain))
    table = pd.DataFrame(edges, columns=["a", "b", "weight"])
    return "edges.csv", table.to_csv(index=False, header=False, lineterminator="\n")


def _is_weight(weight: Any) -> bool:
    try:
        return not isinstance(weight, bool) and 0 < float(weight) < math.inf
    except (TypeError, ValueError, OverflowError):
        return False


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Removed when Python ends."""
    return tempfile.TemporaryDirectory(prefix="murmuration-given-")


def _kept(name: str, text: str) -> str:
    """The path of a file with this content; the same content is the same file."""
    content = text.encode()
    path = Path(_folder().name) / hashlib.sha256(content).hexdigest()[:16] / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return str(path)
