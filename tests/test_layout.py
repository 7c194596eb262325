"""The rooms of the code: imports go one way, as section 7 of docs/design.md says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

#: From the table, the lowest first.
ROOMS = re.findall(
    r"^\| `simulator/(\w+)/` \|", (ROOT / "docs/design.md").read_text(), re.MULTILINE
)
#: Single files: what everybody may use, and what uses everybody.
FLOOR, ROOF = ("errors", "machine", "seeds", "shipped"), ("__init__", "__main__")
PACKAGES = ("agents", "simulator", "reproduction")
FILES = sorted(
    path.relative_to(ROOT)
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "__pycache__" not in path.parts
)


def height(module: tuple[str, ...]) -> int:
    """How high a module of ours stands: it may import from its own height and from below."""
    if module[0] != "simulator":
        return -2 if module[0] == "agents" else len(ROOMS) + 1
    if len(module) == 1 or module[1] in (*FLOOR, "__version__", "require_own_agents"):
        return -1
    return ROOMS.index(module[1]) if module[1] in ROOMS else len(ROOMS)  # or a name of the API


def imports(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """All imports of our own modules, inside functions and for type checkers too, with lines.

    Names of modules in strings are imports as well: somebody will import them.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and _is_module(node.value):
            found = [node.value]
        else:
            continue
        for name in found:
            module = tuple(name.split("."))
            if module[0] in PACKAGES:
                yield node.lineno, module


def _is_module(value: object) -> bool:
    if not isinstance(value, str) or not re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)+", value):
        return False
    path = ROOT.joinpath(*value.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def test_every_folder_is_a_room_of_the_table():
    folders = {path.parts[1] for path in FILES if path.parts[0] == "simulator" and path.parts[2:]}
    assert folders == set(ROOMS)
    files = {path.stem for path in FILES if path.parts[0] == "simulator" and not path.parts[2:]}
    assert files == {*FLOOR, *ROOF}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_go_one_way(file: Path):
    own = height(file.with_suffix("").parts)
    text = (ROOT / file).read_text(encoding="utf-8")
    wrong = [
        f"{file}:{line}: {'.'.join(name)}" for line, name in imports(text) if height(name) > own
    ]
    assert not wrong


def test_agents_know_no_simulator():
    for file in FILES:
        if file.parts[0] == "agents":
            found = imports((ROOT / file).read_text(encoding="utf-8"))
            assert all(name[0] == "agents" for _, name in found), file
