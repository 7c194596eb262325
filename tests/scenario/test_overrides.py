"""Values that are set from outside: on the command line, from Python, by sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.errors import ScenarioError
from simulator.runs.scenarios import load_scenario
from simulator.scenario.files import (
    dump_scenario,
)
from simulator.scenario.overrides import parse_override
from tests.conftest import ROOT
from tests.scenario.scenario_files import SMALL, errors

BLOCKS = SMALL + (
    "algorithm: {alpha: 0.5}\n"
    "network:\n"
    "  latency: {kind: lognormal, mean: 50 ms, sigma: 1}\n"
    "  drop: 0.1\n"
    "record: {every: 1}\n"
)


def test_overrides_reach_every_level(write: Any) -> None:
    scenario = load_scenario(
        write(BLOCKS),
        {
            "seed": np.int64(3),
            "algorithm.kind": "admm",
            "network.latency.mean": "80 ms",
            "network.latency.per_agent": {"kind": "uniform", "low": 1, "high": 2},
            "network.drop": np.float64(0.3),
            "graph.kind": "knn",
            "graph.k": 5,
            "clock.rate": {"kind": "exponential", "mean": 2},
            "stop.metric": "distance",
            "stop.below": 1e-3,
        },
    )
    assert scenario.seed == 3
    assert scenario.algorithm.kind == "admm"
    assert scenario.network.latency.mean_value == 0.08
    assert scenario.network.drop.rate == 0.3  # type: ignore[union-attr]
    assert scenario.graph.k == 5  # type: ignore[union-attr]
    assert scenario.clock.rate.kind == "exponential"
    assert (scenario.stop.time, scenario.stop.below) == (10, 1e-3)


def test_whole_blocks_come_before_their_keys(write: Any) -> None:
    for overrides in (
        {"network": {"header": 8}, "network.drop": 0.5},
        {"network.drop": 0.5, "network": {"header": 8}},
    ):
        network = load_scenario(write(BLOCKS), overrides).network
        assert (network.header, network.drop.rate) == (8, 0.5)  # type: ignore[union-attr]
        assert network.latency.mean_value == 0


def test_an_override_takes_the_excluded_key_of_the_file_away(write: Any) -> None:
    path = write(BLOCKS)
    algorithm = load_scenario(path, {"algorithm.mu": 3}).algorithm
    assert (algorithm.alpha, algorithm.mu) == (None, 3)
    assert load_scenario(path, {"algorithm.mu": None}).algorithm.alpha == 0.5
    record = load_scenario(path, {"record.every_communications": 7}).record
    assert (record.every, record.every_communications) == (None, 7)
    both = errors(path, {"algorithm.mu": 3, "algorithm.alpha": 0.1})
    assert both == ["--set algorithm.mu: give alpha or mu, not both: mu = (1 − alpha)/alpha"]
    levels = SMALL.replace("10}", "10, metric: distance, below: 1}")
    overrides = {"task.kind": "linear_classification", "stop.metric": "accuracy", "stop.above": 0.9}
    stop = load_scenario(write(levels), overrides).stop
    assert (stop.below, stop.above) == (None, 0.9)


def test_another_kind_takes_the_keys_of_the_files_kind_away(write: Any) -> None:
    path = write(SMALL + "algorithm: {kind: admm, mu: 0.5, rho: 0.1, mode: sync}\n")
    path.write_text(path.read_text().replace("10}", "10, communications: 99}"))
    algorithm = load_scenario(path, {"algorithm.kind": "mp"}).algorithm
    assert (algorithm.kind, algorithm.mu, algorithm.mode) == ("mp", 0.5, "sync")
    assert load_scenario(path, {"algorithm.kind": "consensus"}).algorithm.kind == "consensus"
    # What was not the file's kind's, or is asked for beside the kind, is still a mistake.
    (line,) = errors(path, {"algorithm.kind": "mp", "algorithm.rho": 1})
    assert line.startswith("--set algorithm.rho: unknown key for kind 'mp'; allowed: kind, mode,")
    wrong = write(SMALL + "algorithm: {kind: mp, rho: 0.1}\n")
    assert len(errors(wrong, {"algorithm.kind": "mp"})) == 1


@pytest.mark.parametrize(
    ("text", "level"),
    [("1%", "1%"), ("'1.0 %'", "1%"), ("0.25%", "0.25%"), ("1e-2 %", "0.01%"), ("1e-2", 0.01)],
)
def test_levels(write: Any, text: str, level: float | str) -> None:
    path = write(SMALL.replace("10}", f"10, metric: distance, below: {text}}}"))
    scenario = load_scenario(path)
    assert scenario.stop.below == level
    assert load_scenario(write(dump_scenario(scenario))) == scenario


@pytest.mark.parametrize(
    ("overrides", "messages"),
    [
        ({"network.drop": 1.5}, ["--set network.drop: must be at most 1 (got 1.5)"]),
        (
            {"network.drp": 1},
            [
                "--set network.drp: unknown key; did you mean 'drop'? "
                "allowed: latency, drop, bandwidth, header, fifo, retransmit_after, partitions"
            ],
        ),
        (
            {"network.latency": {"kind": "pareto", "mean": 1, "shape": 0.5}},
            ["--set network.latency: network.latency.shape: must be greater than 1 (got 0.5)"],
        ),
        (
            {"network.latency.kind": "pareto"},
            [
                "5:12: network.latency.shape: missing key for kind 'pareto', "
                "which --set network.latency.kind asks for; expected a number",
                "5:43: network.latency.sigma: unknown key for kind 'pareto', "
                "which --set network.latency.kind asks for; allowed: kind, mean, shape, per_agent, "
                "per_link",
            ],
        ),
        (
            {"network.drop.rate": 0.5},
            [
                "--set network.drop.rate: network.drop is a plain value (0.1), not a block; "
                "set network.drop as a whole"
            ],
        ),
        (
            {"clock.rate.kind": "exponential"},
            [
                "--set clock.rate.kind: clock.rate.mean: missing key for kind 'exponential', "
                "which --set clock.rate.kind asks for; expected a number"
            ],
        ),
        (
            {"compute.time.mean": 1},
            [
                "--set compute.time.mean: compute.time.kind: missing key; "
                "expected constant, uniform, exponential, lognormal, pareto, empirical or column"
            ],
        ),
        ({"seed": float("nan")}, ["--set seed: must be a finite number (got nan)"]),
        ({"seed": 10**5000}, ["--set seed: must be a number of at most 4300 digits"]),
        ({"seed": object()}, ["--set seed: cannot be of Python's type object"]),
        (
            {"name": "a\x1bb"},
            ["--set name: must not contain the control character U+001B"],
        ),
        ({"a..b": 1}, ["--set a..b: not a key; expected one like network.drop"]),
        ({7: 1}, ["--set 7: not a key; expected one like network.drop"]),
        (
            {"algorithm.parameters": {1: 2}},
            ["--set algorithm.parameters: the keys of a block must be text"],
        ),
        (
            {"stop": {}},
            ["--set stop: a run needs a limit: time, communications, or both"],
        ),
    ],
)
def test_errors_of_overrides(overrides: dict[Any, Any], messages: list[str], write: Any) -> None:
    assert errors(write(BLOCKS), overrides) == messages


def test_an_endless_value(write: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    message = "must not be nested in more than 50 levels"
    assert errors(write(SMALL), {"description": endless}) == [f"--set description: {message}"]


def test_rules_of_a_plugin(write: Any) -> None:
    path = write(SMALL + "algorithm: {kind: averagin, step: 0.1}\n")
    averaging = ROOT / "docs/examples/averaging.py"
    kind = {"algorithm.kind": "averaging"}
    assert load_scenario(path, kind, plugins=averaging).algorithm.step == 0.1
    (line,) = errors(path, plugins=averaging)
    assert line == (
        "3:19: algorithm.kind: unknown kind (got 'averagin'); did you mean 'averaging'? "
        "allowed: admm, adpsgd, cd, djam, dpsgd, mp, averaging, solitary, consensus, "
        "and what a plugin adds (--plugin FILE_OR_MODULE)"
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("network.drop=0,0.2", [0, 0.2]),
        ("network.latency.mean=10 ms, 100 ms,1 s", ["10 ms", "100 ms", "1 s"]),
        (
            "network.latency={kind: pareto, mean: 80 ms, shape: 2.5}",
            [{"kind": "pareto", "mean": "80 ms", "shape": 2.5}],
        ),
        ("network.bandwidth=null", [None]),
        ("description=''", [""]),
        ("description='a,b'", ["a,b"]),
        ("description=a=b", ["a=b"]),
        ("task.features=[a, b],[]", [["a", "b"], []]),
        ("algorithm.parameters=true,1", [True, 1]),
    ],
)
def test_parse_override(text: str, values: list[Any]) -> None:
    assert parse_override(text) == (text.split("=")[0], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("seed=", "the value is missing"),
        ("seed=#3", "the value is missing"),
        ("seed=1,", "the value after the last comma is missing"),
        ("seed=,1", "not valid YAML"),
        ("seed=1,,2", "not valid YAML"),
        ("seed=1]", "not valid YAML"),
        ("seed={a: 1", "not valid YAML"),
        ("seed=]\n---\n[", "must be a single YAML document"),
        ("seed=1, 2, 1", "the value 1 is given twice"),
        ("seed=1,1.0", "the value 1.0 is given twice"),
        ("seed=.inf", "must be a finite number (got .inf)"),
        ("seed=&a 1", "anchors and aliases are not allowed"),
        ("seed=!!python/none x", "tags are not allowed"),
        ("seed={a: 1, a: 2}", "duplicate key"),
    ],
)
def test_wrong_override(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_override(text)
    assert str(caught.value).startswith("--set " + text.replace("\n", "\\n"))
    assert message in str(caught.value)
