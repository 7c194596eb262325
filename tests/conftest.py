from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from simulator.__main__ import main
from simulator.problem.build import build_problem
from simulator.runs.plugins import Plugins, schema_for
from simulator.scenario.schema import Scenario
from simulator.seeds import Streams
from simulator.sweeps import workers
from tests.processes import FORKED

os.environ["MURMURATION_QUIET"] = "1"  # whether something is compiled is no test's business
settings.register_profile("murmuration", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("murmuration")

ROOT = Path(__file__).parent.parent
MEANS = {
    "name": "test",
    "task": {"kind": "mean_estimation", "agents": 12},
    "graph": {"kind": "gaussian_kernel", "sigma": 0.5},
    "algorithm": {"kind": "mp", "alpha": 0.8},
    "stop": {"time": 50},
}
LINEAR = {
    "name": "test",
    "task": {
        "kind": "linear_classification",
        "agents": 8,
        "dimension": 3,
        "samples": {"kind": "uniform", "low": 0, "high": 3},
    },
    "graph": {"kind": "angular_kernel", "sigma": 1.0, "min_weight": 0.0},
    "algorithm": {"kind": "admm", "mu": 0.1},
    "stop": {"time": 20},
}


def build(base: dict, *, plugins: Plugins | None = None, **overrides) -> Scenario:
    """A scenario from a dictionary; ``network__drop=0.1`` sets a nested key."""
    values = copy.deepcopy(base)
    for key, value in overrides.items():
        *parents, last = key.split("__")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return schema_for(plugins).model_validate(values)


#: Files that take longest, which go first: nobody should wait for them at the end.  What runs the
#: compiled engine comes later: the first of all compiles it, and two would do so side by side.
LONGEST = (
    *("test_reproduction", "test_report", "test_sweep", "test_dask", "test_graphs", "test_compare"),
    *("test_compiled", "test_plugins", "test_gossip", "test_builds", "test_readme"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The same order in all of xdist's processes."""
    places = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONGEST)))


def problem_of(scenario: Scenario):
    return build_problem(scenario, Streams(scenario.seed))


@pytest.fixture(scope="session", autouse=True)
def quick_workers():
    """Workers of sweeps that need not import everything first."""
    workers._PROCESSES = FORKED


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170101)


@pytest.fixture
def here(monkeypatch, capsys):
    """The command line, without the second that a process takes to import everything."""
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]

    def call(*arguments, cwd=ROOT):
        words = ["simulator", *map(str, arguments)]
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ending:
            main()
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(words, ending.value.code, shown.out, shown.err)

    yield call
    for number, handler in handlers:
        signal.signal(number, handler)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a file, by default a scenario's."""

    def write(content: str | bytes, name: str = "x.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
