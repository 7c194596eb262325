"""The documentation: its commands and code work, its pages are made of the code."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from agents.protocols import PROTOCOLS
from simulator.cli.commands import commands
from simulator.errors import MissingError
from simulator.runs.plugins import schema_for
from simulator.scenario.files import json_schema
from simulator.shipped import examples
from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
#: Lines of the pages' blocks, which begin so and nowhere else; some go on in the next line.
COMMANDS = [
    (name, line.split("  #")[0].strip())
    for name, text in PAGES.items()
    for line in text.replace("\\\n", " ").splitlines()
    if line.startswith("python -m simulator")
]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGES[name], flags=re.DOTALL)


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_are_understood(page, command):
    """Every option exists, and every file that is named; `make verify` runs some of them."""
    words = shlex.split(command)[3:]
    name, context = words[0], commands.make_context("x", words[:1], resilient_parsing=True)
    try:
        parsed = commands.get_command(context, name).make_context(name, words[1:])
    except MissingError:  # the options are understood; RESULT stands for one of the reader's
        assert "RESULT" in words
        return
    for key in ("file", "scenario_file"):
        if key in parsed.params and str(parsed.params[key]).startswith(("scenarios", "docs")):
            assert (ROOT / parsed.params[key]).exists()


def functions_of(text: str) -> dict[str, dict[str, str]]:
    """What the classes of a text do, without words and types."""
    found: dict[str, dict[str, str]] = {}
    for thing in ast.parse(text).body:
        if isinstance(thing, ast.ClassDef):
            functions = [part for part in thing.body if isinstance(part, ast.FunctionDef)]
            for each in functions:
                each.returns, each.body = None, each.body[ast.get_docstring(each) is not None :]
                for argument in each.args.args:
                    argument.annotation = None
            found[thing.name] = {each.name: ast.unparse(each) for each in functions}
    return found


def test_protocols_are_shown_as_they_are():
    (shown,) = [text for text in blocks("design") if "class AnswerThenSolve" in text]
    files = [Path(inspect.getfile(protocol)).read_text() for protocol in PROTOCOLS.values()]
    assert functions_of(shown) == functions_of("".join(files).replace("from __future__", "from a"))


def test_there_are_commands():
    assert len(COMMANDS) > 10


@pytest.mark.verify
@pytest.mark.parametrize(
    "command", [c for page, c in COMMANDS if page in ("tutorial", "extending")]
)
def test_commands_of_the_tutorial(command, tmp_path, here):
    words = shlex.split(command)[3:]
    if words[0] in ("run", "sweep", "compare", "list"):
        words += ["--out", str(tmp_path)]
    assert here(*words).returncode == 0


def test_the_ten_lines_end_in_a_plot(tmp_path, monkeypatch):
    """The tutorial's script with a DataFrame and a graph, as it stands."""
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    script = blocks("tutorial")[0]
    lines = [line for line in script.splitlines() if line and "import" not in line]
    assert len(lines) <= 10
    *before, last = script.strip().splitlines()
    names: dict = {}
    exec("\n".join(before), names)
    assert isinstance(eval(last, names), Figure)
    assert names["result"].summary["metrics"]["final"]["test_error"] > 0


@pytest.mark.verify
@pytest.mark.parametrize("page", ["tutorial", "python"])
def test_python_of_the_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A class that is compiled must be found in its module.
    names = vars(sys.modules["__main__"]).copy() | {"__name__": "__main__"}
    for block in blocks(page):
        exec(block, names)


def test_the_notebook_is_the_tutorial(monkeypatch):
    """Its code is that of the page, so that what runs there runs here."""
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert code == [block.strip() for block in blocks("tutorial")]
    assert all(not c.get("outputs") for c in notebook["cells"])


@pytest.mark.verify
def test_the_notebook_runs(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(DOCS / "tutorial.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [set(o.get("data", {})) for c in notebook.cells for o in c.get("outputs", ())]
    assert any("image/png" in kinds for kinds in shown)


@pytest.mark.verify
@pytest.mark.filterwarnings("ignore")  # -W makes errors of those about our pages
def test_the_site_is_built_without_warnings(tmp_path):
    from sphinx.cmd.build import main

    assert main(["-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]) == 0


def test_the_reference_has_every_key(generate):
    text = generate.reference()
    schema = json_schema(schema_for())
    for block in (schema, *schema["$defs"].values()):
        for key in block.get("properties", {}):
            assert f"| `{key}` |" in text or key == "kind", key


def test_the_gallery_has_every_scenario(generate):
    text = generate.gallery()
    for name in examples():
        assert f"## {name}\n" in text
    for place in re.findall(r"!\[\w+\]\(\.\./([^)]+)\)", text):
        assert (DOCS / place).exists()


def test_every_page_is_in_the_contents():
    listed = re.findall(r"^(?:generated/)?(\w+)$", PAGES["index"], flags=re.MULTILINE)
    assert {*PAGES, "reference", "gallery"} <= {*listed, "index"}


def test_links_lead_somewhere():
    for name, text in PAGES.items():
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            known = target.startswith(("http", "generated/"))
            assert known or (DOCS / target).exists(), f"{name}: {target}"


def test_the_map_names_what_there_is():
    """Each file of the map from the paper to the code exists, and defines what it is said to."""
    files = re.findall(r"`((?:agents|simulator|scenarios|reproduction)/[\w/.]+)`", PAGES["paper"])
    assert len(files) > 10
    assert all((ROOT / file).exists() for file in files)
    for names, file in re.findall(r"`(\w+)`, `([\w/]+\.py)`", PAGES["paper"]):
        assert re.search(rf"(class|def) {names}\b", (ROOT / file).read_text()), (names, file)
    for file in re.findall(r"`(tests/[\w/]+\.py)`", PAGES["trust"]):
        assert Path(ROOT / file).exists(), file
