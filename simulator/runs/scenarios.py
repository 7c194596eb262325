"""Reading scenarios with all kinds that there are, built in or of plugins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from simulator.runs.plugins import Given, load_plugins, schema_for
from simulator.scenario.files import read_scenario
from simulator.scenario.schema import Scenario


def load_scenario(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    plugins: Given = None,
) -> Scenario:
    """Read, override and validate a scenario file.

    ``overrides`` maps dotted keys to values: ``{"seed": 3, "network.latency.mean": "80 ms"}``.
    ``plugins`` are files, modules or classes with kinds of their own; the scenario knows them from
    then on.  Files that the scenario names are found relative to its own folder, also those that
    come by an override.

    Raises ScenarioError with one line a mistake.
    """
    return read_scenario(path, overrides, schema_for(load_plugins(plugins)))
