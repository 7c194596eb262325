"""The rooms of the code: imports go one way, as section 7 of docs/design.md says."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tests.conftest import ROOT

#: From the table, the lowest first.
ROOMS = re.findall(
    r"^\| `simulator/(\w+)/` \|", (ROOT / "docs/design.md").read_text(), re.MULTILINE
)
#: Single files: what everybody may use, and what uses everybody.
FLOOR = ("errors", "machine", "seeds", "shipped", "showing")
ROOF = ("__init__", "__main__", "api")
#: What everybody may take from ``simulator`` itself.
FROM_THE_TOP = ("__version__", "require_own_agents")
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
    if len(module) == 1 or module[1] in (*FLOOR, *FROM_THE_TOP):
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
        elif isinstance(node, ast.Constant) and (named := _named(node.value)):
            found = [named]
        else:
            continue
        for name in found:
            module = tuple(name.split("."))
            if module[0] in PACKAGES:
                yield node.lineno, module


def _named(value: object) -> str | None:
    """The module, package or file that a string names."""
    pattern = rf"({'|'.join(PACKAGES)})([./]\w+)+?(\.py|/\W.*)?"
    if not isinstance(value, str) or not (match := re.fullmatch(pattern, value)):
        return None
    name = value.removesuffix(match[3] or "").replace("/", ".")
    path = ROOT.joinpath(*name.split("."))
    return name if path.is_dir() or path.with_suffix(".py").exists() else None


def _module_of(name: tuple[str, ...]) -> tuple[str, ...] | None:
    """The module that a name belongs to: itself, or what it is taken from."""
    for end in (len(name), len(name) - 1):
        path = Path(*name[:end])
        if path.with_suffix(".py") in FILES:
            return name[:end]
        if path / "__init__.py" in FILES:
            return (*name[:end], "__init__")
    return None


def _cycles(graph: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[set[tuple[str, ...]]]:
    """The sets of modules that need each other."""
    number = {module: k for k, module in enumerate(graph)}
    pairs = [(number[m], number[n]) for m, needed in graph.items() for n in needed]
    matrix = coo_array((np.ones(len(pairs)), np.transpose(pairs)), shape=2 * (len(graph),))
    _, parts = connected_components(matrix, connection="strong")
    found = [{m for m in graph if parts[number[m]] == part} for part in set(parts.tolist())]
    return [part for part in found if len(part) > 1]


def test_no_module_imports_itself_through_others():
    """Not even inside functions; but types may be those of whoever calls."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for file in FILES:
        own = file.with_suffix("").parts
        text = (ROOT / file).read_text(encoding="utf-8")
        found = imports(re.sub(r"^if TYPE_CHECKING:\n(    .*\n|\n)+", "", text, flags=re.MULTILINE))
        needed = {_module_of(name) for _, name in found if name[-1] not in FROM_THE_TOP}
        graph[own] = {module for module in needed if module is not None} - {own}
    cycles = [sorted(".".join(m) for m in part) for part in _cycles(graph)]
    assert not cycles


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


#: What docs/extending.md and docs/examples import of ours: plugins rely on these names.
PROMISED = {
    "agents.losses.Smooth",
    "agents.parameters.Count",
    "agents.parameters.Positive",
    "agents.parameters.Probability",
    "agents.protocol.Protocol",
    "agents.protocol.absorb",
    "agents.protocol.answer",
    "agents.protocol.choose",
    "agents.protocol.compute",
    "agents.protocol.fresh",
    "agents.protocol.is_request",
    "agents.protocol.send",
    "agents.protocol.solve",
    "agents.rules.model_propagation.ModelPropagation",
    "agents.rule.Rule",
    "agents.rule.Strict",
    "agents.rule.TradeOff",
    "agents.rule.gradient",
    "agents.rule.per_agent",
    "agents.rule.per_link",
    "agents.rule.scratch",
    "simulator.load_scenario",
    "simulator.problem.graphs.graph.symmetric",
    "simulator.run",
    "simulator.scenario.kinds.Graph",
    "simulator.scenario.kinds.Metric",
    "simulator.scenario.laws.Law",
    "simulator.scenario.laws.Q",
}


def test_what_plugins_import_keeps_its_place():
    """The documentation imports these names, no others, and they are there."""
    docs = ROOT / "docs"
    blocks = re.findall(r"```python\n(.*?)```", (docs / "extending.md").read_text(), re.DOTALL)
    texts = [*blocks, *(path.read_text() for path in (docs / "examples").glob("*.py"))]
    assert {".".join(name) for text in texts for _, name in imports(text)} == PROMISED
    for name in PROMISED:
        module, _, thing = name.rpartition(".")
        assert hasattr(importlib.import_module(module), thing)
