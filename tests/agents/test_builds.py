"""The other builds of the same code: without compilation, and with checks of every index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np

from agents.machinery import code_cache
from simulator.runs import result
from simulator.runs.result import Result
from simulator.runs.run import run
from tests.conftest import LINEAR, MEANS, ROOT, build

COUNTS = list(result.COUNTS)
#: Runs that pass through all parts of an agent's life; ``build`` of the base named first.
NETWORK = {"latency": {"kind": "exponential", "mean": 0.3}, "drop": 0.2, "bandwidth": 2000.0}
PRIVACY = {"epsilon": 3.0, "delta": 1e-5, "updates": 3, "clip": 0.5, "noise": "gaussian"}
PRIVATE = {"kind": "cd", "mu": 0.4, "start": "private", "privacy": PRIVACY}
RUNS = {
    "mp": ("MEANS", {"network": NETWORK, "compute": {"time": 0.1}, "stop": {"time": 10}}),
    "hello": ("MEANS", {"algorithm__start": "hello", "network": NETWORK, "stop": {"time": 5}}),
    "admm": ("LINEAR", {"network": NETWORK, "stop": {"time": 5}}),
    "rounds": ("LINEAR", {"algorithm__mode": "sync", "network": NETWORK, "stop": {"time": 5}}),
    "newton": ("LINEAR", {"task__loss": "logistic", "stop": {"time": 2}}),
    "private": ("LINEAR", {"task__loss": "logistic", "algorithm": PRIVATE, "stop": {"time": 9}}),
    "quadratic": ("LINEAR", {"task__loss": "quadratic", "stop": {"time": 2}}),
    "absolute": ("LINEAR", {"task__loss": "absolute", "stop": {"time": 2}}),
}
#: What a process of its own does: the runs named, and what came of them as JSON.
ELSEWHERE = """
import json, sys
from simulator.errors import SimulatorError
from simulator.runs.run import run
from tests import conftest
from tests.agents import test_builds

found = {}
for name, engine in json.loads(sys.argv[1]):
    try:
        found[name] = test_builds.told(run(test_builds.scenario(name, engine)))
    except SimulatorError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


def scenario(name: str, engine: str):
    base, overrides = RUNS[name]
    return build({"MEANS": MEANS, "LINEAR": LINEAR}[base], engine=engine, **overrides)


def told(result: Result) -> dict:
    """All counts and times of a run, and its models."""
    trace = result.trace
    counts = {name: trace[name].tolist() for name in ["time", *COUNTS]}
    return {"counts": counts, "models": result.models.tolist()}


def elsewhere(runs: list[tuple[str, str]], **variables: str) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, json.dumps(runs)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_compilation_the_reference_engine_gives_the_same():
    """As plain Python, which may sum in another order: counts are equal, models to 1e-12."""
    names = [name for name in RUNS if name != "hello"]
    found = elsewhere(
        [*((name, "simpy") for name in names), ("hello", "compiled")], NUMBA_DISABLE_JIT="1"
    )
    assert found.pop("hello") == (
        "engine: compiled is not possible with NUMBA_DISABLE_JIT=1, under which nothing is "
        "compiled; use engine: simpy, or unset the variable"
    )
    for name in names:
        expected = told(run(scenario(name, "simpy")))
        assert found[name]["counts"] == expected["counts"], name
        np.testing.assert_allclose(
            found[name]["models"], expected["models"], rtol=1e-12, atol=1e-12, err_msg=name
        )


def test_with_checked_indices_the_compiled_engine_gives_the_same():
    """No index is out of range: with the checks it would be an error."""
    found = elsewhere([("mp", "compiled")], MURMURATION_CHECK_BOUNDS="1")
    expected = told(run(scenario("mp", "compiled")))
    assert found["mp"]["counts"] == expected["counts"]
    np.testing.assert_allclose(found["mp"]["models"], expected["models"], rtol=1e-12, atol=1e-12)


def test_the_checks_are_there():
    code = (
        "import numba, numpy as np\nfrom agents.machinery.compiling import kernel\n"
        "f = kernel(lambda a, i: a[i])\ng = numba.njit(lambda a, i: f(a, i))\n"
        "try: g(np.zeros(3), 3)\nexcept IndexError: print('checked')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MURMURATION_CHECK_BOUNDS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout == "checked\n", done.stderr


SLOPES = """
import sys
import numpy as np
from agents.losses import LOSSES

for name in sys.argv[1:]:
    print(name, *LOSSES[name]().slopes(np.array([0.5, -2.0]), np.ones(2)))
"""


def test_kept_code_finds_its_own_functions_in_any_process(tmp_path):
    """Numba names functions by numbers that each process counts: here both begin with the same."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    logistic = [-1 / (1 + np.exp(s)) for s in (0.5, -2.0)]
    for order in (["logistic"], ["hinge", "logistic"]):
        command = [sys.executable, "-c", SLOPES, *order]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        *_, told = done.stdout.splitlines()
        name, *slopes = told.split()
        assert name == "logistic"
        np.testing.assert_allclose([float(s) for s in slopes], logistic, rtol=1e-14)


def test_compiled_code_that_may_be_in_use_is_not_cleared_away(tmp_path, monkeypatch):
    """Of many folders the oldest go, but none that a process may still read from."""
    monkeypatch.setattr(code_cache, "_cache_root", lambda: tmp_path)
    monkeypatch.setattr(code_cache, "KEPT", 2)
    for name, age in (("recent", 3600), ("old", 2 * code_cache.IN_USE), ("new", 0), ("newer", 0)):
        (tmp_path / name).mkdir()
        used = time.time() - age
        os.utime(tmp_path / name, (used, used))
    made = code_cache.cache_folder.__wrapped__(b"other")
    assert {path.name for path in tmp_path.iterdir()} == {"recent", "new", "newer", made.name}


def test_what_is_kept_is_no_source(tmp_path):
    """The wrappers that a run leaves beside the code are not part of the next run's hash."""
    sources = tmp_path / "rules"
    sources.mkdir()
    (sources / "rule.py").write_text("kind = 'mp'\n")
    before = code_cache._content_of.__wrapped__(sources)
    kept = sources / "__pycache__" / "murmuration" / "0a1b" / "rule_mp.py"
    kept.parent.mkdir(parents=True)
    kept.write_text("def tell(): ...\n")
    assert code_cache._content_of.__wrapped__(sources) == before
    (sources / "rule.py").write_text("kind = 'admm'\n")
    assert code_cache._content_of.__wrapped__(sources) != before
