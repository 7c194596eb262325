from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.paper.schema import choices_schema
from simulator.runs.plugins import schema_for
from simulator.runs.scenarios import load_scenario
from simulator.scenario.files import (
    MAX_BYTES,
    dump_scenario,
    json_schema,
    parse_override,
    scenario_files,
    scenario_hash_payload,
)
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import read_yaml
from simulator.sweeps.schema import sweep_schema

ROOT = Path(__file__).parents[1]
VALID = sorted((ROOT / "tests/valid").glob("*.yaml"))
INVALID = sorted((ROOT / "tests/invalid").glob("*.yaml"))
SMALL = "task: {kind: mean_estimation, agents: 20}\nstop: {time: 10}\n"


def errors(path: Path, overrides: dict[Any, Any] | None = None, **more: Any) -> list[str]:
    """The lines of the error, without the file's name."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, overrides, **more)
    return [line.removeprefix(f"{path}:").lstrip() for line in str(caught.value).splitlines()]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: str | bytes, name: str = "x.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# --- valid and invalid files --------------------------------------------------------------------
@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_file_gives_exactly_the_messages_of_its_comment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected = re.match(r"(?:# .*\n)+", path.read_text(encoding="utf-8"))
    assert expected, "the file should begin with the messages that it causes"
    messages = [line.removeprefix("# ") for line in expected[0].splitlines()]
    assert errors(path.relative_to(ROOT)) == messages


def test_no_message_speaks_pydantic() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in INVALID)
    messages = "\n".join(line for line in text.splitlines() if line.startswith("# "))
    for word in ("Input", "Field required", "dictionary", "tagged", "literal[", "NoneType"):
        assert word not in messages


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_file_survives_writing_and_reading(path: Path, write: Any) -> None:
    scenario = load_scenario(path)
    again = load_scenario(write(dump_scenario(scenario)))
    assert again == scenario


def test_design_example_means_what_it_says() -> None:
    scenario = load_scenario(ROOT / "tests/valid/design.yaml")
    assert scenario.network.latency.mean_value == 0.05
    assert scenario.algorithm.trade_off == pytest.approx(0.01 / 0.99)
    assert scenario.network.drop.rate == 0.1  # type: ignore[union-attr]


def test_plain_values_units_and_numbers() -> None:
    scenario = load_scenario(ROOT / "tests/valid/plain_values.yaml")
    assert scenario.network.latency.mean_value == 0.05
    assert scenario.network.bandwidth == 1e6
    assert scenario.network.retransmit_after == 0.25
    assert scenario.compute.time.mean_value == 5e-6
    assert scenario.stop.time == 60
    assert scenario.stop.communications == 1_000_000
    assert scenario.stop.below == 1e-3
    assert scenario.task.samples.kind == "confidence_width"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["mean_estimation", "linear_classification"])
def test_default_graph_is_the_papers(name: str, write: Any) -> None:
    scenario = load_scenario(
        write(f"task: {{kind: {name}}}\nstop: {{time: 1}}\ngraph: {{sigma: 2}}")
    )
    kinds = {"mean_estimation": "gaussian_kernel", "linear_classification": "angular_kernel"}
    assert (scenario.graph.kind, scenario.graph.sigma) == (kinds[name], 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("moons.yaml", "moons"),
        ("my moons (2).yml", "my-moons-2"),
        (".hidden.yaml", "hidden"),
        ("μ.yaml", "scenario"),
        ("a" * 200 + ".yaml", "a" * 80),
    ],
)
def test_name_defaults_to_the_files(file: str, name: str, write: Any) -> None:
    assert load_scenario(write(SMALL, file)).name == name


# --- files that are no text, or no files --------------------------------------------------------
def test_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert errors(tmp_path) == ["must be a scenario file, but is a folder"]
    assert errors(tmp_path / "pipe") == ["must be a scenario file, but is not a regular file"]
    assert errors(Path("/dev/zero")) == ["must be a scenario file, but is not a regular file"]
    assert errors(tmp_path / "none.yaml") == ["no such file"]
    assert errors(tmp_path / "none" / "none.yaml") == ["no such file"]
    assert "cannot be read" in errors(tmp_path / "loop")[0]
    assert "cannot be read" in errors(tmp_path / ("x" * 5000))[0]
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario("a\0b.yaml")


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read anything")
def test_forbidden_file(write: Any) -> None:
    path = write(SMALL)
    path.chmod(0)
    assert errors(path) == ["cannot be read: Permission denied"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "1:1: must be a scenario, but is empty"),
        (b"# only a comment\n", "2:1: must be a scenario, but is empty"),
        (b"task: \xff\n", "1:7: must be text in UTF-8"),
        ("task: 1".encode("utf-16"), "1:1: must be text in UTF-8"),
        (b"a: 1\nb: \x00\n", "2:4: not valid YAML: control character U+0000"),
        (b"a: \x1b[31m", "1:4: not valid YAML: control character U+001B"),
        (b"x" * (MAX_BYTES + 1), f"too large for a scenario: more than {MAX_BYTES} bytes"),
        (b"[" * 100_000, "1:52: must not be nested in more than 50 levels"),
        (b"{" * 100_000, "1:52: must not be nested in more than 50 levels"),
        (b"- " * 100_000, "1:103: must not be nested in more than 50 levels"),
        (b"? " * 100_000, "1:103: must not be nested in more than 50 levels"),
        (b"1: " + b"[" * 100_000, "1:54: must not be nested in more than 50 levels"),
    ],
)
def test_not_a_scenarios_text(content: bytes, message: str, write: Any) -> None:
    assert errors(write(content))[-1] == message


def test_byte_order_mark_and_windows_line_ends(write: Any) -> None:
    content = b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode()
    assert load_scenario(write(content)) == load_scenario(write(SMALL))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_never_give_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = (ROOT / "tests/valid/laws.yaml").read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 30)))
    rubbish = st.text(max_size=8) | st.text("{}[]:-?*&!|>'\"%@#,~ \n\t.0e_", max_size=8)
    damaged = text[:start] + data.draw(rubbish) + text[end:]
    path = tmp_path_factory.getbasetemp() / "damaged.yaml"
    path.write_bytes(damaged.encode("utf-8", "surrogatepass"))
    lines = []
    try:
        load_scenario(path)
    except ScenarioError as error:
        lines = str(error).splitlines()
    assert all(line.startswith(f"{path}:") for line in lines)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1_000", 1000),
        ("010", 10),
        ("-.5E+3", -500.0),
        ("1.", 1.0),
        ("True", True),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2017-04-20", "2017-04-20"),
        ("0x1F", "0x1F"),
        ("_1", "_1"),
        ("1__0", "1__0"),
        ("'1'", "1"),
        ('"null"', "null"),
        ("e5", "e5"),
        ("nan", "nan"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    read = read_yaml(f"[{text}]" if text else "a:").value
    got = read[0] if text else read["a"]
    assert got == value
    assert type(got) is type(value)


# --- overrides ----------------------------------------------------------------------------------
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
    assert errors(path, {"algorithm.kind": "mp", "algorithm.rho": 1}) == [
        "--set algorithm.rho: unknown key for kind 'mp'; "
        "allowed: kind, mode, start, alpha, mu, confidence"
    ]
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
        ("seed=&a 1", "anchors are not allowed"),
        ("seed=!!python/none x", "tags are not allowed"),
        ("seed={a: 1, a: 2}", "duplicate key"),
    ],
)
def test_wrong_override(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_override(text)
    assert str(caught.value).startswith("--set " + text.replace("\n", "\\n"))
    assert message in str(caught.value)


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
            agents=st.integers(1, 10**6),
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
    source = ROOT / "tests/valid/laws.yaml"
    scenario = load_scenario(source)
    data = ROOT / "tests/valid/data"
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
        ("choices", "scenarios/paper/choices.schema.json", choices_schema),
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


def test_schemas_accept_the_shipped_sweeps_and_choices() -> None:
    for file in (ROOT / "scenarios").rglob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        kind = choices_schema if "held_out" in values else sweep_schema
        if "task" not in values:
            jsonschema.Draft202012Validator(kind()).validate(values)
            wrong = {**values, "grdi": {}}
            assert not jsonschema.Draft202012Validator(kind()).is_valid(wrong)


@pytest.mark.parametrize(
    ("command", "file", "message"),
    [
        ("run", "scenarios/phase_diagram.yaml", "this is a sweep file, not a scenario"),
        ("run", "scenarios/paper/choices.yaml", "this is a file of choices, not a scenario"),
        ("sweep", "scenarios/paper/choices.yaml", "this is a file of choices, not a scenario"),
    ],
)
def test_files_of_another_kind_are_told_so(here, command, file, message) -> None:
    done = here(command, file)
    assert done.returncode == 2
    assert message in done.stderr


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
    text = (ROOT / f"tests/invalid/{name}.yaml").read_text(encoding="utf-8")
    assert not jsonschema.Draft202012Validator(json_schema(schema_for())).is_valid(
        read_yaml(text).value
    )


def test_schema_is_a_schema_with_descriptions() -> None:
    schema = json_schema(schema_for())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "rho" in schema["$defs"]["CollaborativeADMM"]["properties"]
    assert "rho" not in schema["$defs"]["ModelPropagation"]["properties"]
    assert "uplink" in schema["$defs"]["Network"]["properties"]["bandwidth"]["description"]
