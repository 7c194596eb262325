"""What the tests of scenario files share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator.errors import ScenarioError
from simulator.runs.scenarios import load_scenario
from tests.conftest import ROOT

VALID = sorted((ROOT / "tests/scenario/valid").glob("*.yaml"))
INVALID = sorted((ROOT / "tests/scenario/invalid").glob("*.yaml"))
SMALL = "task: {kind: mean_estimation, agents: 20}\nstop: {time: 10}\n"


def errors(path: Path, overrides: dict[Any, Any] | None = None, **more: Any) -> list[str]:
    """The lines of the error, without the file's name."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, overrides, **more)
    return [line.removeprefix(f"{path}:").lstrip() for line in str(caught.value).splitlines()]
