"""Where agents are: their sites, the fixed part of geographic latencies, columns of their file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ScenarioError
from simulator.problem.problem import Floats, Problem
from simulator.scenario.geography import ByDistance, BySite, great_circle
from simulator.scenario.laws import pick
from simulator.scenario.schema import Scenario
from simulator.scenario.tables import Table, listing
from simulator.seeds import Streams

Ints = NDArray[np.int64]


def sites_of(scenario: Scenario, problem: Problem, streams: Streams) -> Ints | None:
    """The number of each agent's site; random ones are the first draws of the stream "sites".

    By name, the numbers are those of the latency's matrix, or in the order of the names.
    """
    config, latency = scenario.sites, scenario.network.latency
    names = latency.matrix()[0] if isinstance(latency, BySite) else None
    if config is None:
        return None
    if config.random is not None:
        if names is not None and config.random > len(names):
            raise ScenarioError(
                f"sites.random: {config.random} sites, and the matrix has {len(names)}"
            )
        return pick(streams.sites.random(problem.n), config.random)
    assert config.column is not None
    table = _table(problem, config.column, "sites.column")
    given = table.cells[config.column].tolist()
    known = sorted(set(given)) if names is None else names
    number = {name: k for k, name in enumerate(known)}
    for row, name in enumerate(given):
        if not name:
            raise table.fail(row, config.column, "is no name of a site")
        if name not in number:
            raise table.fail(row, config.column, f"is no site of the matrix: {listing(known)}")
    return np.array([number[name] for name in given], dtype=np.int64)


def fixed_latency(
    scenario: Scenario, problem: Problem, sites: Ints | None, ends: tuple[Ints, Ints]
) -> Floats | None:
    """The fixed part of a geographic latency on each directed edge; None for other laws."""
    latency, (one, other) = scenario.network.latency, ends
    if isinstance(latency, BySite):
        if sites is None:
            raise ScenarioError("network.latency: needs sites, e.g. sites: {column: region}")
        times: Floats = latency.matrix()[1][sites[one], sites[other]]
        return times
    if isinstance(latency, ByDistance):
        north = column_of(problem, latency.latitude, "network.latency.latitude", least=-90)
        east = column_of(problem, latency.longitude, "network.latency.longitude", least=-360)
        over: Floats = latency.over(great_circle(north, east, one, other))
        return over
    return None


def column_of(problem: Problem, column: str, key: str, least: float | None = None) -> Floats:
    """Each agent's number in a column of the agents' file, above 0 or from ``least`` to −least."""
    table = _table(problem, column, key)
    values = table.numbers(column)
    wrong = values <= 0 if least is None else np.abs(values) > -least
    if wrong.any():
        what = "must be above 0" if least is None else f"must lie between {least:g} and {-least:g}"
        raise table.fail(int(np.argmax(wrong)), column, what)
    return values


def _table(problem: Problem, column: str, key: str) -> Table:
    about: Any = problem.about
    if about is None:
        raise ScenarioError(
            f"{key}: there is no agents' file with columns: task.agents must be a CSV file"
        )
    if column not in about.cells.columns:
        columns = listing(list(about.cells.columns), limit=12)
        raise ScenarioError(f"{key}: {about.path} has no column {column!r}, but {columns}")
    table: Table = about
    return table
