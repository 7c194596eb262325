"""On another machine: what is shipped is found, and the package in an empty folder does it all."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import simulator
from simulator import shipped
from simulator.cli.commands import commands
from simulator.cli.options import name_commands
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_everything_that_is_shipped_is_in_the_package():
    """setup.py names the folders; a new one below scenarios/ must be named there too."""
    named = re.findall(r'^    "simulator\.shipped\.([\w.]+)": "([\w/]+)",$', _setup(), re.MULTILINE)
    assert all(name.replace(".", "/") == folder for name, folder in named)
    folders = {folder for _, folder in named}
    for top in shipped.FOLDERS:
        below = {path.parent for path in (ROOT / top).rglob("*") if path.is_file()}
        wanted = {path.relative_to(ROOT).as_posix() for path in below if path.name[0] != "_"}
        assert wanted <= folders


def _setup() -> str:
    return (ROOT / "setup.py").read_text(encoding="utf-8")


def test_whatever_make_installs_is_pinned():
    """All that is asked for by name; and by no two versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [project["dependencies"], *project["optional-dependencies"].values()]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pins = dict(line.lower().split("==") for line in lines)
    assert len(pins) == len(lines)
    for text in (text.lower() for each in asked for text in each):
        name, exact, version = re.fullmatch(
            r"([\w-]+)(?:(==)|>=)?([\w.]*)(?:,<[\d.]+)?", text
        ).groups()
        assert name in pins, text
        assert not exact or pins[name] == version


def test_shipped_files_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shipped.found(Path("scenarios/moons.yaml")) == ROOT / "scenarios/moons.yaml"
    assert shipped.found(Path("scenarios/none.yaml")) == Path("scenarios/none.yaml")
    assert shipped.found(Path("moons.yaml")) == Path("moons.yaml")
    (tmp_path / "scenarios").mkdir()
    own = Path("scenarios/moons.yaml")
    own.write_text("")
    assert shipped.found(own) == own  # one's own file goes first
    assert len(shipped.expanded([Path("scenarios/m*.yaml")])) == 5


def test_every_example_can_be_written_anywhere(tmp_path, here):
    names = here("example", cwd=tmp_path).stdout
    for name in shipped.examples():
        assert f"{name} " in names
        (tmp_path / f"{name}.yaml").write_text(here("example", name, cwd=tmp_path).stdout)
    files = sorted(tmp_path.glob("*.yaml"))
    done = here("validate", *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(map(len, names.splitlines())) <= 80
    wrong = here("example", "mons", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr[:50]) == (
        2,
        "example mons: not shipped; did you mean 'moons'? a",
    )


def test_help_shows_the_name_that_was_called():
    try:
        assert name_commands(commands, "/usr/bin/murmuration") == "murmuration"
        assert "  murmuration run my.yaml" in str(commands.commands["run"].help)
        assert "python -m simulator" not in str(commands.help)
    finally:
        assert name_commands(commands, "simulator/__main__.py") == "python -m simulator"
    assert "  python -m simulator run my.yaml" in str(commands.commands["run"].help)


def test_another_package_called_agents(monkeypatch, tmp_path, capsys):
    other = ModuleSpec("agents", None, origin=str(tmp_path / "agents" / "__init__.py"))
    monkeypatch.setattr(simulator, "find_spec", lambda name: other)
    with pytest.raises(ImportError, match="hides the one of murmuration"):
        simulator.run  # noqa: B018
    from simulator.__main__ import main

    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.verify
def test_every_command_of_the_readme_in_an_empty_folder(tmp_path):
    """The wheel in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    binaries = tmp_path / "venv" / "bin"
    quiet = ["--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([binaries / "pip", "install", *quiet, ROOT], check=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    given = [line for line in lines if line.startswith(("python -m simulator", "murmuration"))]
    assert len(given) >= 8
    for line in given:
        words = [binaries / "murmuration", *shlex.split(line.replace("python -m simulator ", "x "))]
        done = subprocess.run(
            [words[0], *words[2:]], cwd=empty, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
