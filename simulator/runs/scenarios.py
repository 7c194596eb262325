"""Reading scenarios with all kinds that there are, built in or of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.errors import ScenarioError
from simulator.runs.given import ScenarioLike, source_of, with_files
from simulator.runs.plugins import Given, schema_for
from simulator.scenario.files import read_scenario
from simulator.scenario.schema import Scenario


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
