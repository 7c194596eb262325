"""Kinds of the user's own: the examples, loading, and what a plugin can get wrong."""

from __future__ import annotations

import importlib
import json
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from agents.rule import Rule, Strict
from agents.rules.model_propagation import ModelPropagation
from simulator import Progress, load_scenario, run, sweep
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import load_plugins, schema_for
from tests.conftest import MEANS, ROOT, build

EXAMPLES = ROOT / "docs" / "examples"
AVERAGING = EXAMPLES / "averaging.py"
OWN = (EXAMPLES / "own_kinds.py").read_text()
#: A rule in parts, so that each test can spoil one.
PARTS = {
    "head": """from agents.rule import Rule, per_agent


class Mine(Rule):
    kind = "mine"
    heard = per_agent("p")
""",
    "tell": """
    def tell(s, i, k, out):
        for x in range(s.p):
            out[x] = s.models[i, x]
""",
    "absorb": """
    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.heard[i, x] = received[x]
""",
    "solve": """
    def solve(s, i):
        for x in range(s.p):
            s.models[i, x] = 0.5 * (s.models[i, x] + s.heard[i, x])
""",
}
MINE = "".join(PARTS.values())
TINY = """name: tiny
task: {kind: mean_estimation, agents: 12}
graph: {kind: gaussian_kernel, sigma: 0.5}
algorithm: {kind: mine}
stop: {time: 5}
"""


@pytest.fixture
def plugin(tmp_path: Path):
    """Write a plugin, or another version of it."""

    def write(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def spoilt(function: str, *lines: str) -> str:
    """The rule with further lines at the beginning of one function."""
    head, _, rest = PARTS[function].lstrip("\n").partition("\n")
    changed = "\n".join(["", head, *(f"        {line}" for line in lines), rest])
    return "".join({**PARTS, function: changed}.values())


def mine(path: Path, engine: str = "simpy", **parameters):
    plugins = load_plugins(path)
    algorithm = {"kind": "mine", **parameters}
    return run(build(MEANS, plugins=plugins, algorithm=algorithm, engine=engine))


# --- the examples -------------------------------------------------------------------------------
def test_averaging_reaches_the_average():
    """Without delay and loss an exchange preserves the sum, so the limit is the mean."""
    overrides = {"engine": "compiled"}
    result = run(load_scenario(EXAMPLES / "averaging.yaml", overrides, plugins=AVERAGING))
    mean = result.problem.solitary.mean(axis=0)
    np.testing.assert_allclose(result.models.mean(axis=0), mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.models, np.tile(mean, (50, 1)), rtol=0, atol=1e-6)
    assert "objective" not in result.trace  # it minimises neither of the paper's objectives
    assert result.optimum is None


def test_gradient_descent_comes_near_the_optimum():
    """It minimises Q_CL: the objective falls to within a tenth of the least."""
    file = EXAMPLES / "gradient_descent.yaml"
    overrides = {"engine": "compiled", "stop.time": 400, "network": {}}
    result = run(load_scenario(file, overrides, plugins=EXAMPLES / "gradient_descent.py"))
    assert result.trace["gap"].iloc[0] > 1
    assert result.trace["gap"].iloc[-1] < 0.1


def test_own_kinds_are_what_they_say(rng):
    plugins = load_plugins(EXAMPLES / "own_kinds.py")
    result = run(load_scenario(EXAMPLES / "own_kinds.yaml", {"stop.time": 1}, plugins=plugins))
    worst = ((result.models - result.problem.targets) ** 2).sum(axis=1).max()
    assert result.trace["worst_error"].iloc[-1] == pytest.approx(worst, rel=1e-14)
    assert result.summary["metrics"]["final"]["worst_error"] == pytest.approx(worst, rel=1e-14)
    assert set(np.diff(result.problem.W.indptr)) == {6}
    law = result.scenario.network.latency
    found = law.draw(rng, 1000)
    exact = stats.weibull_min(0.7, scale=law.scale)
    assert stats.kstest(found, exact.cdf).pvalue > 1e-4
    assert exact.mean() == pytest.approx(law.mean_value)
    assert exact.sf(law.rare_value) == pytest.approx(1e-9)


def test_a_metric_of_ones_own_can_end_a_run():
    stop = {"time": 100, "metric": "worst_error", "below": "90%"}
    overrides = {"stop": stop, "engine": "compiled"}
    plugins = EXAMPLES / "own_kinds.py"
    result = run(load_scenario(EXAMPLES / "own_kinds.yaml", overrides, plugins=plugins))
    assert result.summary["simulated_time"] < 100
    assert result.trace["worst_error"].iloc[-1] <= 0.9 * result.trace["worst_error"].iloc[0]


# --- parameters ---------------------------------------------------------------------------------
def test_parameters_reach_the_rule():
    file = EXAMPLES / "averaging.yaml"
    still = load_scenario(file, {"algorithm.step": 0, "stop.time": 5}, plugins=AVERAGING)
    result = run(still)
    np.testing.assert_array_equal(result.models, result.problem.solitary)


def test_parameters_are_checked():
    file = EXAMPLES / "averaging.yaml"
    with pytest.raises(ScenarioError, match=r"algorithm\.step: must be at most 1 \(got 1\.5\)"):
        load_scenario(file, {"algorithm.step": 1.5}, plugins=AVERAGING)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file, {"algorithm.stepp": 0.5}, plugins=AVERAGING)
    assert str(caught.value) == (
        "--set algorithm.stepp: unknown key for kind 'averaging'; did you mean 'step'? "
        "allowed: kind, mode, protocol, start, step"
    )
    own = EXAMPLES / "own_kinds.yaml"
    for key, value in (
        ("task.loss.delta", 0),
        ("graph.k", 20),
        ("network.latency.shape", -1),
        ("record.metrics", ["worst"]),
    ):
        with pytest.raises(ScenarioError, match=key.replace(".", r"\.")):
            load_scenario(own, {key: value}, plugins=EXAMPLES / "own_kinds.py")


def test_parameters_are_swept(tmp_path: Path):
    """Of a rule, in two processes, to which the plugin travels."""
    grid = {"algorithm.step": [0, 0.5], "stop.time": [5]}
    out = tmp_path / "results"
    result = sweep(
        EXAMPLES / "averaging.yaml", grid, plugins=AVERAGING, jobs=2, out=out, figures=False
    )
    assert result.runs["status"].tolist() == ["done", "done"]
    errors = result.runs["l2_error"]
    direct = run(load_scenario(EXAMPLES / "averaging.yaml", {"stop.time": 5}, plugins=AVERAGING))
    assert errors[1] == direct.trace["l2_error"].iloc[-1] != errors[0]


def test_the_schema_documents_them(here):
    plugins = [EXAMPLES / "averaging.py", EXAMPLES / "own_kinds.py"]
    done = here("schema", "--plugin", plugins[0], "--plugin", plugins[1])
    defs = json.loads(done.stdout)["$defs"]
    assert defs["Averaging"]["properties"]["step"]["description"].startswith("The share")
    assert defs["Averaging"]["description"].startswith("θ_i ← θ_i + step")
    assert defs["Huber"]["properties"]["delta"]["description"].startswith("From here on")
    assert {"RingLattice", "WeibullLatency", "WeibullTime", "WorstError"} <= set(defs)
    assert "Averaging" not in json.loads(here("schema").stdout)["$defs"]


# --- loading ------------------------------------------------------------------------------------
class Same(ModelPropagation):
    """mp under another name."""

    kind = "same"


def test_a_file_a_module_and_a_class_are_the_same(plugin):
    """A plugin that is mp under another name gives mp's numbers."""
    text = "from agents.rules.model_propagation import ModelPropagation\n\n\n"
    text += "class Same(ModelPropagation):\n    kind = 'same'\n"
    expected = run(build(MEANS, algorithm={"kind": "mp", "alpha": 0.8}))
    for given in (Same, str(plugin(text)), sys.modules[__name__], [plugin(text)]):
        algorithm = {"kind": "same", "alpha": 0.8}
        result = run(build(MEANS, plugins=load_plugins(given), algorithm=algorithm))
        np.testing.assert_array_equal(result.models, expected.models)
        assert result.trace.equals(expected.trace)


def test_a_class_runs_in_this_process_only(tmp_path: Path):
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY.replace("mine", "same"))
    swept = sweep(file, {"seed": [0, 1]}, plugins=Same, jobs=1, out=tmp_path / "results")
    assert swept.failed == 0
    # What its code refers to is in no hash: a helper that has changed must not go unnoticed.
    told: list[Progress] = []
    sweep(file, {"seed": [0, 1]}, plugins=Same, out=tmp_path / "results", progress=told.append)
    assert [told[0].done, told[-1].done] == [0, 2]
    with pytest.raises(SimulatorError, match="in this process only"):
        sweep(file, {"seed": [2, 3]}, plugins=Same, jobs=2, out=tmp_path / "results")


BAD = {
    "": "it defines no class with a kind",
    "RULES = 3": "it defines no class with a kind",
    "from agents.rules.admm import CollaborativeADMM": "it defines no class with a kind",
    "import nothing_like_this": "ModuleNotFoundError",
    "import sys\nsys.exit(0)": "cannot be imported (mine.py:2): SystemExit: 0",
    "def": "SyntaxError",
    PARTS["head"]: "Mine must implement absorb, solve",
    MINE.replace('"mine"', '"mp"'): "'mp' is the name of a built-in one",
    MINE.replace('"mine"', '"consensus"'): "'consensus' is the name of a built-in one",
    MINE + MINE.replace("Mine", "Yours"): "Yours: 'mine' is the name of another",
    MINE.replace(
        "heard =", "protocol = 'shout'\n    heard ="
    ): "protocol is 'shout'; allowed: 'ans",
    MINE.replace(
        "heard =", "protocol = 'average'\n    heard ="
    ): "modes is ('async', 'sync'); the protocol 'average' has no rounds",
    MINE.replace("heard =", "vectors = 0\n    heard ="): "vectors is 0; it must be a number from 1",
    PARTS["head"] + "    vectors = 2\n" + PARTS["absorb"] + PARTS["solve"]: "a tell of its own",
    MINE.replace("heard =", "extras = -1\n    heard ="): "extras is -1; it must be a number from 0",
    PARTS["head"] + "    extras = 2\n" + PARTS["absorb"] + PARTS["solve"]: "1 vectors and 2 extras",
    MINE.replace("heard =", "stateful = True\n    heard ="): "stateful is True; then modes must be",
    MINE.replace("heard", "models"): "the name of the array 'models' is taken",
    MINE.replace(
        "heard =", "class Parameters(Rule.Parameters):\n        n: int = 3\n\n    heard ="
    ): ("the name of the parameter 'n' is taken"),
    MINE.replace(
        "heard =", "class Parameters(Rule.Parameters):\n        mode: int = 3\n\n    heard ="
    ): "the name of the parameter 'mode' is taken",
    """from simulator.scenario.kinds import Task
class T(Task):
    kind: str = 't'""": "must have a loss",
    MINE.replace(
        "heard =", "modes = ('foo',)\n    heard ="
    ): "modes is ('foo',); allowed: a tuple of",
    MINE.replace(
        "heard =", "starts = ('own', 'foo')\n    heard ="
    ): "starts is ('own', 'foo'); allo",
    MINE.replace(
        "heard =", "objective = 'foo'\n    heard ="
    ): "objective is 'foo'; allowed: None, 'mp', 'cl', 'consensus'",
    MINE.replace(
        "heard =", "objective = 'mp'\n    heard ="
    ): "Parameters must derive from TradeOff",
    MINE.replace(
        "per_agent(", "per_agent(-3, "
    ): "heard has the shape -3; allowed: 'p' or a number",
    MINE.replace(
        "per_agent(", "per_agent('q', "
    ): "heard has the shape 'q'; allowed: 'p' or a numb",
    MINE.replace('("p")', '("p", dtype=str)'): "heard has the dtype <class 'str'>; allowed: float",
    OWN.replace(
        "curvature = 1.0", "curvature = 'a'"
    ): "Huber.curvature is 'a'; it must be a finite",
    OWN.replace("curvature = 1.0", "curvature = math.nan"): "Huber.curvature is nan; it must be a",
    OWN.replace(
        'kind: Literal["huber"] =', "kind ="
    ): "cannot be imported (mine.py:18): PydanticUserError: Field 'kind' defined on a base class",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_plugin_is_an_error_in_plain_words(plugin, text: str):
    with pytest.raises(SimulatorError) as caught:
        load_plugins(plugin(text))
    assert BAD[text] in str(caught.value)
    assert str(caught.value).startswith("--plugin ")
    assert "\n" not in str(caught.value)


def test_a_missing_plugin_is_an_error(tmp_path: Path):
    for name in (tmp_path / "none.py", "no_such_module_anywhere"):
        with pytest.raises(SimulatorError, match="cannot be imported"):
            load_plugins(name)
    with pytest.raises(SimulatorError, match="not a subclass of Task, Graph, Rule"):
        load_plugins(dict)


def test_two_plugins_with_one_name(plugin):
    first, second = plugin(MINE), plugin(MINE, "yours.py")
    with pytest.raises(SimulatorError, match=r"yours\.py: Mine: 'mine' is the name of another"):
        load_plugins([first, second])


def test_dataclasses_with_postponed_annotations(plugin):
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text += "@dataclass\nclass Point:\n    x: float\n"
    assert load_plugins(plugin(text + MINE)).kinds.rules[0].kind == "mine"


def test_a_folder_that_holds_our_own_packages_is_like_any_other():
    """What a plugin in the checkout's root imports of us is no helper file of its own."""
    path = ROOT / "murmuration_test_plugin.py"
    path.write_text(MINE)
    try:
        first, second = load_plugins(path), load_plugins(path)
    finally:
        path.unlink()
    assert first.files == second.files == (("murmuration_test_plugin.py", MINE.encode()),)
    assert issubclass(second.kinds.rules[0], Rule)


def test_a_helper_file_that_changes_is_read_again_and_changes_the_hash(plugin):
    """Also in compiled code, which would not notice by itself."""
    text = "from murmuration_test_helper import share\n" + MINE.replace("0.5 * (", "share() * (")
    path = plugin(text)
    results, hashes = [], []
    for share in (0.5, 0.25):
        helper = f"import numba\n@numba.njit\ndef share():\n    return {share}\n"
        plugin(helper, "murmuration_test_helper.py")
        hashes.append(load_plugins(path).sha256)
        results.append([mine(path, engine).models for engine in ("simpy", "compiled")])
    assert hashes[0] != hashes[1]
    for simpy, compiled in results:
        np.testing.assert_array_equal(simpy, compiled)
    assert not np.array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][0], mine(plugin(MINE, "plain.py")).models)


def test_a_plugin_of_several_files_runs_everywhere(tmp_path: Path, monkeypatch):
    """In this process, in others, and where a file beside it was imported before."""
    home, other = tmp_path / "home", tmp_path / "other"
    for folder, share in ((home, 0.5), (other, 0.25)):
        folder.mkdir()
        helper = (
            "from murmuration_test_constants import SHARE\n\n\ndef share():\n    return SHARE\n"
        )
        (folder / "murmuration_test_helper.py").write_text(helper)
        (folder / "murmuration_test_constants.py").write_text(f"SHARE = {share}\n")
        text = "from murmuration_test_helper import share\n" + MINE.replace(
            "0.5 * (", "HALF * ("
        ).replace("class Mine", "HALF = share()\n\n\nclass Mine")
        (folder / "mine.py").write_text(text)
    (home / "tiny.yaml").write_text(TINY)
    monkeypatch.syspath_prepend(str(home))
    importlib.import_module("murmuration_test_helper")
    hashes = set()
    for jobs in (1, 2):
        swept = sweep(
            home / "tiny.yaml",
            {"seed": [0, 1, 2]},
            plugins=home / "mine.py",
            jobs=jobs,
            out=tmp_path / f"results{jobs}",
        )
        assert swept.failed == 0
        hashes.add(frozenset(path.name for path in (tmp_path / f"results{jobs}").rglob("*-*")))
    assert len(hashes) == 1
    models = [mine(folder / "mine.py").models for folder in (home, other, home)]
    np.testing.assert_array_equal(models[0], models[2])
    assert not np.array_equal(models[0], models[1])
    for name in ("murmuration_test_helper", "murmuration_test_constants"):
        sys.modules.pop(name, None)


# --- what a rule gets wrong -----------------------------------------------------------------------
READ_ONLY = "ValueError: assignment destination is read-only"
#: The function, its further lines, the agent and time, the line, and what is said of it.
WRONG = {
    "raises": (
        ("solve", "if i == 3:", "    raise ValueError('no luck')"),
        r"agent 3 at [0-9.]+ s \(mine\.py:18\): ValueError: no luck",
    ),
    "out of range": (
        ("tell", "out[0] = 0.0 if i < 5 else s.heard[i + 9, 0]"),
        r"agent \d+ at [0-9.]+ s \(mine\.py:9\): IndexError: index \d+ is out of bounds for axis 0",
    ),
    "returns": (
        ("solve", "return s.models[i, 0]"),
        r"agent 0 at 0 s \(mine\.py:16\): TypeError: it must change .* nothing, got float64",
    ),
    "leaves unset": (
        ("tell", "return"),
        r"agent 0 at 0 s \(mine\.py:8\): it leaves out\[0\] unset",
    ),
    "changes models": (
        ("absorb", "s.models[i, 0] = 3.0"),
        r"agent 0 at 0 s \(mine\.py:12\): it changes models, which only solve may do",
    ),
    "changes another": (
        ("solve", "s.models[i + 1, 0] = 3.0"),
        r"agent 0 at 0 s \(mine\.py:16\): it changes another agent's model",
    ),
    "changes the state": (
        ("tell", "s.heard[i, 0] = 3.0"),
        r"agent 0 at 0 s \(mine\.py:8\): it changes heard, which tell may do if stateful is True",
    ),
    "changes received": (
        ("absorb", "received[0] = 3.0"),
        rf"agent 0 at 0 s \(mine\.py:13\): {READ_ONLY}",
    ),
    "knows no such thing": (
        ("solve", "s.models[i, 0] = s.nothing"),
        r"agent 0 at 0 s \(mine\.py:17\): AttributeError: 'State' object has no attribute",
    ),
    "exits": (
        ("absorb", "raise SystemExit(0)"),
        r"agent 0 at 0 s \(mine\.py:13\): SystemExit: 0",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_rule_gets_wrong(plugin, wrong: str):
    """One message, the same in both engines, in a first run and in a cached one."""
    lines, message = WRONG[wrong]
    path = plugin(spoilt(*lines))
    found = set()
    for engine in ("simpy", "compiled", "compiled"):
        with pytest.raises(SimulatorError) as caught:
            mine(path, engine)
        found.add(str(caught.value))
    (said,) = found
    assert "\n" not in said
    assert re.match(f"rule mine: {lines[0]} failed for {message}", said), said


def test_prepare_is_checked_too(plugin):
    path = plugin(MINE + "\n    def prepare(s, start):\n        s.heard = start.D\n")
    for engine in ("simpy", "compiled"):
        with pytest.raises(SimulatorError) as caught:
            mine(path, engine)
        assert str(caught.value) == (
            "rule mine: prepare failed (mine.py:21): TypeError: heard must be an array of float64 "
            "with shape (12, 1), got float64 (12,)"
        )


def test_what_only_the_compiler_sees(plugin, here, tmp_path: Path):
    """A message of one line with the rule, the function and the line; exit code 2."""
    path = plugin(spoilt("solve", "s.models[i, 0] = float.fromhex('0x1')"))
    (tmp_path / "tiny.yaml").write_text(TINY)
    for engine in ("simpy", "compiled", "compiled"):
        arguments = ["--plugin", path, "--set", f"engine={engine}", "--no-figures"]
        done = here("run", "tiny.yaml", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("rule mine: solve can't be compiled (mine.py:17): ")
        assert len(line) < 400
    assert not (tmp_path / "results").exists()


def test_a_rule_that_fails_ends_with_2(plugin, here, tmp_path: Path):
    lines, message = WRONG["raises"]
    path = plugin(spoilt(*lines))
    (tmp_path / "tiny.yaml").write_text(TINY)
    done = here("run", "tiny.yaml", "--plugin", path, cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert len(done.stderr.splitlines()) == 1


# --- what the others get wrong -----------------------------------------------------------------
GRAPH = """
import numpy as np
from typing import Literal
from scipy.sparse import csr_array
from simulator.scenario.kinds import Graph

class Mine(Graph):
    kind: Literal["mine"] = "mine"

    def build(self, agents, rng):
        n = len(agents.names)
        return {}
"""
RING = "np.roll(np.eye(n), 1, axis=1)"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (f"{RING} + {RING}.T", "10): it must give a SciPy csr_array of floats with shape (12, 12)"),
        ("csr_array((3, 3))", "10): it must give a SciPy csr_array of floats with shape (12, 12)"),
        (f"csr_array({RING})", "10): it gives weights that are not symmetric"),
        ("csr_array(np.ones((n, n)))", "10): it gives an edge from an agent to itself"),
        (f"csr_array(-{RING} - {RING}.T)", "10): it gives a weight that is not a finite number"),
        ("1 / 0", "12): ZeroDivisionError: division by zero"),
    ],
)
def test_what_a_graph_gets_wrong(plugin, made: str, message: str):
    plugins = load_plugins(plugin(GRAPH.format(made)))
    with pytest.raises(SimulatorError) as caught:
        run(build(MEANS, plugins=plugins, graph={"kind": "mine"}))
    assert str(caught.value).startswith(f"graph mine: build failed (mine.py:{message}")


def test_what_a_task_gets_wrong(plugin):
    text = "from typing import ClassVar, Literal\nfrom agents.losses.quadratic import Quadratic\n"
    text += "from simulator.scenario.kinds import Task\n\n\nclass Mine(Task):\n"
    text += "    kind: Literal['mine'] = 'mine'\n    loss: ClassVar = Quadratic()\n\n"
    text += "    def build(self, rng):\n        return 3\n"
    plugins = load_plugins(plugin(text))
    with pytest.raises(
        SimulatorError, match=r"^task mine: build failed \(mine\.py:10\): it must give"
    ):
        run(build(MEANS, plugins=plugins, task={"kind": "mine"}))


VALUE = "return r * r / 2 if r <= self.delta else self.delta * (r - self.delta / 2)"
SLOPE = "return min(max(s - y, -self.delta), self.delta)"
BEND = "return 1.0 if abs(s - y) <= self.delta else 0.0"
MADE = "return symmetric(n, i, j, np.ones(len(i)))"
DRAW = "return self.scale * rng.weibull(self.shape, size)"
MEAN = "return float(self.mean)"
MEASURE = "return ((models - view.problem.targets) ** 2).sum(axis=1).max()"
FITS = "return []\n"
EXIT = "raise SystemExit(0)"
BAD_DRAW = "it must give as many finite numbers from 0 as it is asked for, here 4096, got "
#: A line of docs/examples/own_kinds.py, what is there instead, who fails, how far from there, why.
OTHERS = [
    (MADE, EXIT, "graph ring_lattice: build", 0, "SystemExit: 0"),
    (FITS, "raise ValueError('p')\n", "graph ring_lattice: problems", 0, "ValueError: p"),
    (
        FITS,
        "return None\n",
        "graph ring_lattice: problems",
        -4,
        "it must return a list of (key, mes",
    ),
    (
        FITS,
        "return [5]\n",
        "graph ring_lattice: problems",
        -4,
        "it must return a list of (key, mess",
    ),
    (DRAW, EXIT, "law weibull: draw", 0, "SystemExit: 0"),
    (DRAW, "raise ValueError('v')", "law weibull: draw", 0, "ValueError: v"),
    (DRAW, "return -np.ones(size)", "law weibull: draw", -2, f"{BAD_DRAW}array([-1., -1."),
    (DRAW, "return np.full(size, np.inf)", "law weibull: draw", -2, f"{BAD_DRAW}array([inf"),
    (DRAW, "return ['a'] * size", "law weibull: draw", -2, f"{BAD_DRAW}['a', 'a'"),
    (DRAW, "return None", "law weibull: draw", -2, f"{BAD_DRAW}None"),
    (
        MEAN,
        "return None",
        "law weibull: mean_value",
        -3,
        "it must be a finite number from 0, got No",
    ),
    (MEAN, "raise ValueError('m')", "law weibull: mean_value", 0, "ValueError: m"),
    (MEASURE, EXIT, "metric worst_error: measure", 0, "SystemExit: 0"),
    (MEASURE, "models[:] = 7.0", "metric worst_error: measure", 0, READ_ONLY),
    (MEASURE, "view.problem.solitary[:] = 7.0", "metric worst_error: measure", 0, READ_ONLY),
    (MEASURE, "view.problem.W.data[:] = 7.0", "metric worst_error: measure", 0, READ_ONLY),
    (MEASURE, "view.objective.problem.D[:] = 7.0", "metric worst_error: measure", 0, READ_ONLY),
    (MEASURE, "view.optimum[:] = 7.0", "metric worst_error: measure", 0, READ_ONLY),
    (
        MEASURE,
        "return models",
        "metric worst_error: measure",
        -2,
        "it must give a number, got ndarr",
    ),
    (MEASURE, "return view.nothing", "metric worst_error: measure", 0, "AttributeError: 'View'"),
]


@pytest.mark.parametrize(("line", "instead", "who", "offset", "why"), OTHERS)
def test_what_the_others_get_wrong(
    plugin, line: str, instead: str, who: str, offset: int, why: str
):
    """One message with family, kind, function and line, the same from both engines.

    The loss is one of ours: the file's own would be compiled anew for each of its versions.
    """
    said = spoilt_kinds(plugin, line, instead, **{"task.loss": "quadratic"})
    number = OWN[: OWN.index(line)].count("\n") + 1 + offset
    assert said.startswith(f"{who} failed (mine.py:{number}): {why}"), said


#: The same of a loss: here the line is that of the formula's beginning or of what fails in it.
LOSS = [
    (VALUE, "return None", "value", "26): TypeError: it must give a number, got NoneType"),
    (VALUE, "raise SystemExit(0)", "value", "29): SystemExit: 0"),
    (VALUE, "return math.nan", "value", "26): it gives NaN"),
    (VALUE, "return 1.0 / (s - s)", "value", "29): ZeroDivisionError: float division by zero"),
    (
        SLOPE,
        f"if s > 99.0:\n            raise ValueError('v')\n        {SLOPE}",
        "slope",
        "34): Va",
    ),
    (SLOPE, "return 'a'", "slope", "31): TypeError: it must give a number, got str"),
    (SLOPE, "return np.ones(3)", "slope", "31): TypeError: it must give a number, got ndarray"),
    (BEND, "raise ValueError('b')", "bend", "37): ValueError: b"),
    (BEND, "return 1.0 / (s - s)", "bend", "37): ZeroDivisionError: float division by zero"),
]


@pytest.mark.parametrize(("line", "instead", "name", "why"), LOSS)
def test_what_a_loss_gets_wrong(plugin, line: str, instead: str, name: str, why: str):
    """Found by the same formula in plain Python, with numbers for which it fails."""
    said = spoilt_kinds(plugin, line, instead)
    where = r"for the prediction [-+.e0-9]+ and the target [-+.e0-9]+"
    assert re.match(rf"loss huber: {name} failed {where} \({re.escape('mine.py:' + why)}", said), (
        said
    )


def test_a_loss_that_only_the_compiler_refuses(plugin):
    for wrong in ("float.fromhex('0x1')", "float(str(1.5))"):
        said = spoilt_kinds(plugin, SLOPE, f"return {wrong}", engines=("simpy",))
        assert re.match(r"loss huber: slopes can't be compiled \(mine\.py:3[13]\): ", said), said


def test_a_loss_that_fails_inside_a_rule(plugin):
    """Both are named: far from the data, where only the rule asks for slopes."""
    far = f"if abs(s) > 1e20:\n            raise ValueError('far')\n        {SLOPE}"
    own = plugin(OWN.replace(SLOPE, far))
    how = {"task.loss": "huber", "algorithm.start": {"kind": "normal", "scale": 1e30}}
    for engine in ("simpy", "compiled"):
        plugins = load_plugins([own, EXAMPLES / "gradient_descent.py"])
        file = EXAMPLES / "gradient_descent.yaml"
        scenario = load_scenario(file, {**how, "engine": engine}, plugins=plugins)
        with pytest.raises(SimulatorError) as caught:
            run(scenario)
        assert re.match(
            r"rule gradient_descent: solve failed for agent 0 at 0 s \(gradient_descent\.py:\d+\): "
            r"loss huber: slope failed for the prediction \S+ and the target \S+ \(mine\.py:34\): ",
            str(caught.value),
        ), str(caught.value)


def spoilt_kinds(plugin, line: str, instead: str, engines=("simpy", "compiled"), **how) -> str:
    """What is said of docs/examples/own_kinds.py with another line."""
    assert OWN.count(line) == 1
    plugins = plugin(OWN.replace(line, instead))
    found = set()
    file = EXAMPLES / "own_kinds.yaml"
    for engine in engines:
        keys = {"engine": engine, "stop.time": 1, **how}
        with pytest.raises(SimulatorError) as caught:
            run(load_scenario(file, keys, plugins=plugins))
        found.add(str(caught.value))
    (said,) = found
    assert "\n" not in said
    return said


def test_draws_of_a_law_may_be_a_list(plugin):
    plugins = load_plugins(plugin(OWN.replace(DRAW, "return [1] * size")))
    network = {"latency": {"kind": "weibull", "mean": 1}}
    results = [
        run(build(MEANS, plugins=plugins, network=network, engine=engine))
        for engine in ("simpy", "compiled")
    ]
    assert results[0].trace.equals(results[1].trace)


def test_ctrl_c_is_not_taken_for_a_mistake_of_the_plugin(plugin):
    """A signal that comes while a plugin's code runs stays what it is."""
    text = OWN.replace(MADE, "import signal; signal.raise_signal(signal.SIGINT)\n        " + MADE)
    scenario = load_scenario(EXAMPLES / "own_kinds.yaml", plugins=plugin(text))
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(scenario)
    finally:
        signal.signal(signal.SIGINT, usual)


def test_a_metric_says_why_it_cannot_be_measured(plugin):
    text = OWN.replace("[] if task.has_targets else", "")
    with pytest.raises(ScenarioError, match=r"record\.metrics: worst_error needs task\.targets"):
        load_scenario(EXAMPLES / "own_kinds.yaml", plugins=plugin(text))


def test_a_metric_that_is_no_number_is_left_out_with_a_note(plugin):
    plugins = plugin(OWN.replace(MEASURE, "return math.nan"))
    scenario = load_scenario(EXAMPLES / "own_kinds.yaml", {"stop.time": 1}, plugins=plugins)
    (note,) = run(scenario).summary["notes"]
    assert note.startswith("not a number, and left out: worst_error (solitary), worst_error (sta")


#: One version of the rule, so that it is compiled once: a parameter says what is wrong.
WRONG_COLUMNS = """
    class Parameters(Rule.Parameters):
        wrong: int

    def columns(s, parameters):
        if parameters.wrong == 0:
            raise SystemExit(0)
        if parameters.wrong == 1:
            return None
        if parameters.wrong == 2:
            return {"a": [1, 2]}
        s.models[:] = 7.0
"""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, r"25\): SystemExit: 0"),
        (1, r"23\): TypeError: it must return a mapping of names to arrays .* NoneType"),
        (2, r"23\): TypeError: 'a' must be a name with one entry for each of 12"),
        (3, r"30\): ValueError: assignment destination is read-only"),
    ],
)
def test_what_columns_gets_wrong(plugin, wrong: int, message: str):
    path = plugin(MINE + WRONG_COLUMNS)
    for engine in ("simpy", "compiled"):
        with pytest.raises(
            SimulatorError, match=rf"^rule mine: columns failed \(mine\.py:{message}"
        ):
            mine(path, engine, wrong=wrong)


def test_nothing_is_called_after_a_failure(plugin):
    """A tell and an absorb of the same event would change what the failure was about."""
    text = spoilt("solve", "if s.times[i] == 2.0:", "    raise ValueError('twice')")
    text = text.replace(
        "heard =", "times = per_agent()\n    protocol = 'solve, then answer'\n    heard ="
    )
    text = text.replace(
        "s.heard[i, x] = received[x]", "s.heard[i, x] = received[x]\n        s.times[i] += 1.0"
    )
    path, messages = plugin(text), set()
    for engine in ("simpy", "compiled"):
        with pytest.raises(SimulatorError, match=r"mine\.py:\d+\): ValueError: twice") as failed:
            mine(path, engine)
        messages.add(str(failed.value))
    assert len(messages) == 1


#: What is no mistake in plain NumPy, and one in compiled code; a parameter says which.
COMPILED = spoilt(
    "solve",
    "if s.wrong == 0:",
    "    s.models[i, 0] = 1.0 / (s.heard[i, 0] - s.heard[i, 0]) if i > 2 else 0.5",
    "if s.wrong == 1:  # the state is another one when the call is made again",
    "    s.count[i] += 1.0",
    "    s.heard[i, 0] += 1.0 / (s.count[i] - 3.0)",
    "if s.wrong == 2:",
    "    s.heard[i, 0] = 1e300 * 1e300",
).replace(
    "heard =",
    "class Parameters(Rule.Parameters):\n        wrong: int\n\n"
    "    count = per_agent()\n    heard =",
)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, r"solve failed for agent \d+ at [0-9.]+ s \(mine\.py:22\): FloatingPointError: "),
        (
            1,
            r"solve failed for agent \d+ at [0-9.]+ s \(mine\.py:20\): in compiled code, and not "
            "when called again in Python: a division by zero, an index out of range, or what ",
        ),
        (
            2,
            r"the model of agent \d+ is no longer finite .*; rule mine has changed it in solve "
            r"\(mine\.py:20\)",
        ),
    ],
)
def test_what_shows_when_it_is_compiled(plugin, wrong: int, message: str):
    path = plugin(COMPILED)
    for engine in ("simpy", "compiled"):
        with pytest.raises(SimulatorError, match=message):
            mine(path, engine, wrong=wrong)


def test_what_the_compiler_refuses(plugin):
    path = plugin(spoilt("solve", "s.models[i, 0] = float(str(1.5))"))
    message = r"rule mine: solve can't be compiled \(mine\.py:16\): ValueError: could not convert"
    for engine in ("simpy", "compiled"):
        with pytest.raises(SimulatorError, match=message):
            mine(path, engine)


def test_parameters_of_other_types(plugin):
    """Whole numbers and switches are attributes of ``s`` too; defaults are checked."""
    own = (
        "class Parameters(Rule.Parameters):\n        times: int = 2\n        still: bool = False\n"
    )
    text = MINE.replace("heard =", own + "\n    heard =").replace(
        "    def solve(s, i):\n", "    def solve(s, i):\n        if s.still:\n            return\n"
    )
    plugins = load_plugins(plugin(text))
    assert {"times", "still"} <= set(schema_for(plugins).algorithm_keys("mine"))
    moved, still = (
        run(build(MEANS, plugins=plugins, algorithm={"kind": "mine", "still": still}))
        for still in (False, True)
    )
    np.testing.assert_array_equal(still.models, still.problem.solitary)
    assert not np.array_equal(moved.models, still.models)
    assert issubclass(plugins.kinds.rules[0].Parameters, Strict)
