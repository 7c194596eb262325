"""Scenario files: what is read, and what is said of what is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.engines.setup import prepare
from simulator.errors import ScenarioError
from simulator.problem.build import build_problem
from simulator.runs.scenarios import load_scenario
from simulator.scenario import geography, network, tables
from simulator.scenario.files import (
    MAX_BYTES,
    dump_scenario,
)
from simulator.scenario.yaml_positions import read_yaml
from simulator.seeds import Streams
from tests.conftest import ROOT
from tests.scenario.scenario_files import INVALID, SMALL, VALID, errors


# --- valid and invalid files --------------------------------------------------------------------
@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_file_gives_the_messages_of_its_comment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    expected = re.match(r"(?:# .*\n)+", path.read_text(encoding="utf-8"))
    assert expected, "the file should begin with the messages that it causes"
    messages = [line.removeprefix("# ") for line in expected[0].splitlines()]
    for got, message in zip(errors(path.relative_to(ROOT)), messages, strict=True):
        begin = message.removesuffix("…")  # lists of keys, which grow, are left out
        assert got == message or (begin != message and got.startswith(begin))


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
    scenario = load_scenario(ROOT / "tests/scenario/valid/design.yaml")
    assert scenario.network.latency.mean_value == 0.05
    assert scenario.algorithm.trade_off == pytest.approx(0.01 / 0.99)
    assert scenario.network.drop.rate == 0.1  # type: ignore[union-attr]


def test_plain_values_units_and_numbers() -> None:
    scenario = load_scenario(ROOT / "tests/scenario/valid/plain_values.yaml")
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


# --- agents of partitions -----------------------------------------------------------------------
@pytest.mark.parametrize("name", [1.5, True, None, [], {}])
def test_an_agent_of_a_group_is_text_or_a_whole_number(name: Any, write: Any) -> None:
    def groups(*lists: Any) -> dict[str, Any]:
        return {"network.partitions": [{"from": 1, "until": 2, "groups": list(lists)}]}

    (line,) = errors(write(SMALL), groups(["0", 1], [name]))
    assert "network.partitions.0.groups.1.0: must be text" in line
    loaded = load_scenario(write(SMALL), groups(["0", 1]))
    assert loaded.network.partitions[0].groups == [["0", "1"]]
    (line,) = errors(write(SMALL), groups([]))
    assert "groups.0: must not be empty" in line


def test_a_group_of_many_agents_is_checked_in_one_pass(write: Any) -> None:
    names = [str(number) for number in range(200_000)]
    cut = {"from": 1, "until": 2, "groups": [names]}
    assert load_scenario(write(SMALL), {"network.partitions": [cut]})
    (line,) = errors(write(SMALL), {"network.partitions": [{**cut, "groups": [names, ["77"]]}]})
    assert "agent '77' is there twice" in line


# --- files that are read ------------------------------------------------------------------------
def test_a_file_of_many_rows_is_read_once(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check, the run's setup and each question for a mean."""
    parsed = []
    cells = tables.read_cells
    monkeypatch.setattr(tables, "read_cells", lambda *a, **k: parsed.append(a) or cells(*a, **k))
    monkeypatch.setattr(geography, "read_cells", tables.read_cells)
    monkeypatch.setattr(network, "read_cells", tables.read_cells)
    write("site,eu,us\neu,1,2\nus,3 s,4\n", "matrix.csv")
    write("agent,time,state\n3,5,off\n3,6 s,on\n", "trace.csv")
    more = "network: {latency: {kind: sites, file: matrix.csv}}\nsites: {random: 2}\n"
    more += "availability: {kind: trace, file: trace.csv}\n"
    scenario = load_scenario(write(SMALL + more))
    assert len(parsed) == 2
    latency: Any = scenario.network.latency
    assert (latency.mean_value, latency.rare_value) == (2.5, 4)
    streams = Streams(0)
    prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    assert len(parsed) == 2


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
    text = (ROOT / "tests/scenario/valid/laws.yaml").read_text(encoding="utf-8")
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
