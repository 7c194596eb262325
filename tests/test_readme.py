"""The README's commands run as they stand, and the docs' example is the shipped one."""

from __future__ import annotations

import re
import shlex

import pytest

from reproduction.__main__ import commands as reproduction
from simulator import load_scenario
from simulator.cli.commands import commands
from simulator.store.store import Store
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.split("  #")[0].strip()
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith(("python -m simulator", "python -m reproduction"))
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, tmp_path, monkeypatch):
    """In this process, and on the compiled engine, which gives the same in less time."""
    words = shlex.split(command)
    arguments = [
        str(path)
        for word in words[3:]
        for path in (sorted(ROOT.glob(word)) if "*" in word else [word])
    ]
    if words[2] == "reproduction" or words[3] in ("run", "sweep", "compare"):
        arguments += ["--out", str(tmp_path)]
    if words[3] in ("run", "sweep", "compare"):
        arguments += ["--set", "engine=compiled"]
    monkeypatch.chdir(ROOT)
    program = reproduction if words[2] == "reproduction" else commands
    assert not program.main(arguments, standalone_mode=False)


def test_the_result_that_it_shows_is_this_versions():
    place = Store("results").folder(load_scenario(ROOT / "scenarios" / "moons.yaml"))
    assert f"files:    {place.as_posix()}\n" in README


def test_there_are_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("name", ["averaging", "squared_hinge"])
def test_the_examples_are_the_shipped_ones(name):
    shipped = (ROOT / "docs" / "examples" / f"{name}.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert any(shipped.endswith(example) for example in examples)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
