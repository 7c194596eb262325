"""Scenarios as they are written, and the schema for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.runs.plugins import schema_for
from simulator.runs.scenarios import load_scenario
from simulator.scenario.files import (
    dump_scenario,
    json_schema,
    scenario_files,
    scenario_hash_payload,
)
from simulator.scenario.overrides import parse_override
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import read_yaml
from simulator.sweeps.sweep_file import sweep_schema
from tests.conftest import ROOT
from tests.scenario.scenario_files import SMALL, VALID

# --- writing ------------------------------------------------------------------------------------
positive = st.floats(1e-100, 1e100)
probability = st.floats(0, 1)
words = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12) | st.sampled_from(
    [
        "1e-3",
        "null",
        "~",
        "1_0",
        "yes",
        "12:30",
        ".inf",
        "a: b",
        "- x",
        "# x",
        "",
        " x ",
        "\n",
        "\u2028",
    ]
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | words
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def block(kind: str, **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"kind": st.just(kind)}, optional=keys)


factors = (
    positive
    | st.fixed_dictionaries({"kind": st.just("exponential"), "mean": positive})
    | st.fixed_dictionaries(
        {"kind": st.just("pareto"), "mean": positive, "shape": st.floats(1.001, 9)}
    )
)
times = (
    positive
    | st.sampled_from(["50 ms", "1 h", "3 µs"])
    | st.fixed_dictionaries(
        {"kind": st.just("lognormal"), "mean": positive, "sigma": st.floats(0, 5)},
        optional={"per_agent": factors},
    )
)
scenarios = st.fixed_dictionaries(
    {
        "name": st.just("x"),
        "task": block(
            "mean_estimation",
            agents=st.integers(1, 6000),  # more have no complete graph
            variance=positive,
            samples=st.fixed_dictionaries({"kind": st.just("constant"), "value": st.just(3)}),
        ),
        "stop": st.fixed_dictionaries(
            {"time": positive}, optional={"communications": st.integers(1, 2**53)}
        ),
    },
    optional={
        "description": words,
        "seed": st.integers(0, 2**63 - 1),
        "graph": st.fixed_dictionaries(
            {"kind": st.just("networkx"), "generator": words},
            optional={"arguments": st.dictionaries(words, anything, max_size=3)},
        ),
        "algorithm": block(
            "admm",
            mu=positive,
            start=st.sampled_from(["own", "zero"])
            | st.fixed_dictionaries({"kind": st.just("normal"), "scale": positive}),
            primal=st.fixed_dictionaries({"gradient_steps": st.integers(1, 9)}),
        ),
        "network": st.fixed_dictionaries(
            {},
            optional={"latency": times, "drop": probability, "bandwidth": st.none() | positive},
        ),
        "clock": st.fixed_dictionaries({"rate": factors}),
        "compute": st.fixed_dictionaries({"time": times}),
    },
)


@settings(max_examples=150, deadline=None)
@given(scenarios)
def test_written_scenarios_are_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, raw: dict[str, Any]
) -> None:
    scenario = schema_for().model_validate(raw)
    text = dump_scenario(scenario)
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    again = load_scenario(path)
    assert again == scenario
    assert dump_scenario(again) == text
    payloads = [json.dumps(scenario_hash_payload(s, {})) for s in (scenario, again)]
    assert payloads[0] == payloads[1]
    # Other programs with YAML 1.1 see the same values.
    assert yaml.safe_load(text) == read_yaml(text).value


def test_dump_writes_everything_kind_first(write: Any) -> None:
    tree = yaml.safe_load(dump_scenario(load_scenario(write(SMALL))))
    assert list(tree) == list(Scenario.model_fields)
    assert tree["algorithm"]["alpha"] == 0.99
    assert tree["algorithm"]["mu"] is None
    assert next(iter(tree["graph"])) == "kind"
    assert tree["network"]["latency"] == {
        "kind": "constant",
        "value": 0.0,
        "per_agent": None,
        "per_link": None,
    }


def test_files_are_listed_renamed_and_hashed(write: Any, tmp_path: Path) -> None:
    source = ROOT / "tests/scenario/valid/laws.yaml"
    scenario = load_scenario(source)
    data = ROOT / "tests/scenario/valid/data"
    assert scenario_files(scenario) == [data / "delays.txt", data / "factors.txt"]
    for path in scenario_files(scenario):
        write(path.read_bytes(), path.name)
    names = {path: path.name for path in scenario_files(scenario)}
    copy = load_scenario(
        write(dump_scenario(scenario, names)), {"name": "copy", "description": "c"}
    )
    assert scenario_files(copy) == [tmp_path / "delays.txt", tmp_path / "factors.txt"]

    def payload(scenario: Scenario) -> dict[str, Any]:
        hashes = {path: f"hash of {path.name}" for path in scenario_files(scenario)}
        return scenario_hash_payload(scenario, hashes)

    assert json.dumps(payload(copy)) == json.dumps(payload(scenario))
    assert payload(copy)["network"]["latency"]["file"] == "hash of delays.txt"
    assert payload(load_scenario(source, {"seed": 1})) != payload(scenario)


def test_a_file_named_twice_is_listed_once(write: Any) -> None:
    write("1\n", "numbers.txt")
    law = "{kind: empirical, file: numbers.txt}"
    path = write(SMALL + f"network: {{latency: {law}}}\ncompute: {{time: {law}}}\n")
    assert len(scenario_files(load_scenario(path))) == 1


# --- the schema for editors ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "name", "schema"),
    [
        ("scenario", "scenarios/scenario.schema.json", lambda: json_schema(schema_for())),
        ("sweep", "scenarios/sweep.schema.json", sweep_schema),
    ],
)
def test_schema_files_are_current(kind, name, schema) -> None:
    assert json.loads((ROOT / name).read_text(encoding="utf-8")) == schema(), (
        f"run: python -m simulator schema --of {kind} > {name}"
    )


def test_the_schema_describes_every_key() -> None:
    """Those of plugins too, since they are written in the same way."""
    schema = json_schema(schema_for())
    blocks = {"Scenario": schema, **schema["$defs"]}
    every = {
        f"{name}.{key}": "description" in about
        for name, block in blocks.items()
        for key, about in block.get("properties", {}).items()
    }
    assert len(every) > 150
    assert [key for key, described in every.items() if not described] == []


def test_the_schema_accepts_the_shipped_sweeps() -> None:
    for file in (ROOT / "scenarios").rglob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        if "task" not in values:
            jsonschema.Draft202012Validator(sweep_schema()).validate(values)
            wrong = {**values, "grdi": {}}
            assert not jsonschema.Draft202012Validator(sweep_schema()).is_valid(wrong)


def test_files_of_another_kind_are_told_so(here) -> None:
    done = here("run", "scenarios/phase_diagram.yaml")
    assert done.returncode == 2
    assert "this is a sweep file, not a scenario" in done.stderr


def test_a_share_may_be_a_percentage() -> None:
    overrides = {"network.drop": "10%", "algorithm.alpha": "99.5 %"}
    scenario = load_scenario(ROOT / "scenarios/moons.yaml", overrides)
    assert (scenario.network.drop.rate, scenario.algorithm.alpha) == (0.1, 0.995)
    for wrong, message in (("120%", "must be at most 1"), ("ten", "a percentage like 10%")):
        with pytest.raises(ScenarioError, match=message):
            load_scenario(ROOT / "scenarios/moons.yaml", {"network.drop": wrong})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0:1:0.25", [0, 0.25, 0.5, 0.75, 1]),
        ("0:0.3:0.1", [0, 0.1, 0.2, 0.3]),
        ("5, 1:3:1", [5, 1, 2, 3]),
        ("1:2:5", [1]),
    ],
)
def test_ranges(text, values) -> None:
    assert parse_override(f"network.drop={text}") == ("network.drop", values)


@pytest.mark.parametrize("text", ["1:0:0.1", "0:1:0", "0:1:-1", "0:1:1e-9", "0:1:1e"])
def test_ranges_that_are_none(text) -> None:
    with pytest.raises(ScenarioError, match=r"range|values"):
        parse_override(f"network.drop={text}")


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_schema_accepts_valid_files_as_written_and_as_dumped(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(schema_for()))
    for text in (path.read_text(encoding="utf-8"), dump_scenario(load_scenario(path))):
        validator.validate(read_yaml(text).value)


@pytest.mark.parametrize(
    "name",
    ["unknown_key", "drop_above_one", "latency_unit", "agents_zero", "missing_task", "mode"],
)
def test_schema_rejects(name: str) -> None:
    text = (ROOT / f"tests/scenario/invalid/{name}.yaml").read_text(encoding="utf-8")
    assert not jsonschema.Draft202012Validator(json_schema(schema_for())).is_valid(
        read_yaml(text).value
    )


def test_schema_is_a_schema_with_descriptions() -> None:
    schema = json_schema(schema_for())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "rho" in schema["$defs"]["CollaborativeADMM"]["properties"]
    assert "rho" not in schema["$defs"]["ModelPropagation"]["properties"]
    assert "uplink" in schema["$defs"]["Network"]["properties"]["bandwidth"]["description"]
