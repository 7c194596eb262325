"""What ``test --plugin`` checks: of the built-in kinds, of the examples, and of wrong ones."""

from __future__ import annotations

import re

import pytest

from simulator.conformance import FAILED, examine, subjects_of
from simulator.conformance.subjects import OK
from simulator.runs.plugins import BUILT_IN
from simulator.scenario.kinds import Kinds
from tests.conftest import MEANS, ROOT, build

EXAMPLES = ROOT / "docs" / "examples"


def verdicts_of(scenarios=(), **kinds):
    verdicts = list(examine(subjects_of(Kinds(**kinds), scenarios=scenarios)))
    assert [verdict for verdict in verdicts if verdict.outcome == FAILED] == []
    return {(verdict.name, verdict.check): verdict for verdict in verdicts}


# --- the built-in kinds -------------------------------------------------------------------------
def test_rules():
    """With messages dropped, missed and stale, and ticks skipped, wherever there can be."""
    verdicts = verdicts_of(rules=BUILT_IN.rules)
    at_once = "both engines, agents forget, and all of that at once"
    for rule in BUILT_IN.rules:
        name = f"rule {rule.kind}"
        left_out = {
            c for (n, c), verdict in verdicts.items() if n == name and verdict.outcome != OK
        }
        hello = "both engines, neighbours say hello"
        assert left_out == (set() if "hello" in rule.starts else {hello})
        seen = verdicts[name, at_once].detail
        words = {"dropped", "missed"} | ({"stale", "skipped"} if "async" in rule.modes else set())
        assert words <= set(re.findall(r"[1-9]\d* (\w+)", seen))
        assert ("gossip" in seen, "rounds" in seen) == ("async" in rule.modes, "sync" in rule.modes)


def test_losses():
    verdicts_of(losses=BUILT_IN.losses)


def test_laws(tmp_path):
    (tmp_path / "stays.txt").write_text("1\n2\n5\n")
    given = [
        {"kind": "constant", "value": 3.0},
        {"kind": "uniform", "low": 1.0, "high": 4.0},
        {"kind": "exponential", "mean": 2.0},
        {"kind": "lognormal", "mean": 2.0, "sigma": 0.5},
        {"kind": "pareto", "mean": 2.0, "shape": 6.0},
        {"kind": "empirical", "file": str(tmp_path / "stays.txt")},
    ]
    stays = [{"kind": "on_off", "on": law, "off": 1.0} for law in given]
    scenarios = [build(MEANS, availability=stay, network__latency=0.3) for stay in stays]
    verdicts = verdicts_of(scenarios[::-1], laws=BUILT_IN.laws)
    assert all(verdict.outcome == OK for verdict in verdicts.values())


# --- plugins ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["averaging", "gradient_descent", "own_kinds", "query", "squared_hinge"]
)
def test_the_examples(here, name):
    done = here("test", EXAMPLES / f"{name}.yaml", "--plugin", EXAMPLES / f"{name}.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^\d+ ok(, 1 not applicable)?\n$", done.stdout.splitlines(True)[-1])
    if name == "averaging":
        assert f"```text\n{done.stdout}```" in (ROOT / "docs" / "extending.md").read_text()


WRONG = '''
import itertools
import os
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array

from agents.losses import Smooth
from agents.losses.quadratic import Quadratic
from agents.parameters import Positive
from agents.rule import Rule, per_agent
from simulator.problem.problem import DataSets, Material
from simulator.scenario.kinds import Graph, Metric, Task
from simulator.scenario.laws import Law, Q


class Right(Smooth):
    """A square, with a switch before its number."""

    kind: Literal["right"] = "right"
    half: bool = True
    """Half of it only?"""
    weight: Positive = 2.0
    """Its factor."""

    @property
    def curvature(self):
        return self.weight * (1.0 if self.half else 2.0)

    def value(self, s, y):
        return self.weight * (s - y) * (s - y) / (2.0 if self.half else 1.0)

    def slope(self, s, y):
        return self.weight * (s - y) * (1.0 if self.half else 2.0)

    def bend(self, s, y):
        return self.weight * (1.0 if self.half else 2.0)


class Steep(Right):
    kind: Literal["steep"] = "steep"

    def slope(self, s, y):
        return 1.1 * self.weight * (s - y) * (1.0 if self.half else 2.0)


class Bent(Right):
    kind: Literal["bent"] = "bent"

    def bend(self, s, y):
        return 2.0 * self.weight * (1.0 if self.half else 2.0)


class Misread(Right):
    kind: Literal["misread"] = "misread"

    @property
    def constants(self):
        return {"half": 1.0, "weight": 2.0}


class Longer(Law[Q]):
    kind: Literal["longer"] = "longer"
    mean: Q
    """What it says."""

    def draw(self, rng, size):
        return rng.exponential(1.02 * self.mean_value, size)

    @property
    def mean_value(self):
        return float(self.mean)

    @property
    def rare_value(self):
        return 30 * self.mean_value


class Twice(Longer):
    kind: Literal["twice"] = "twice"

    def draw(self, rng, size):
        return self.mean_value * (rng.random(size) + rng.random(size))


class Writes(Metric):
    kind: Literal["writes"] = "writes"

    def measure(self, view, models):
        models[:] = 0.0
        return 1.0


class OneWay(Graph):
    kind: Literal["one_way"] = "one_way"

    def build(self, agents, rng):
        n = len(agents.names)
        return csr_array(np.roll(np.eye(n), 1, axis=1))


class Unseeded(Task):
    kind: Literal["unseeded"] = "unseeded"
    loss: ClassVar = Quadratic()

    def build(self, rng):
        y = np.random.default_rng().normal(size=12)
        return Material([str(i) for i in range(6)], DataSets(None, y, np.arange(0, 13, 2)))


RUNS = itertools.count()
PLAIN = "NUMBA_DISABLE_JIT" in os.environ


class Remembers(Rule):
    """Starts where the last run of this process has not."""

    kind = "remembers"
    heard = per_agent("p")

    def prepare(s, start):
        s.heard = start.models + next(RUNS)

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.heard[i, x] += 0.5 * received[x]

    def solve(s, i):
        for x in range(s.p):
            s.models[i, x] = 0.5 * s.heard[i, x]
            s.heard[i, x] = 0.0


class Notices(Remembers):
    """Does otherwise where nothing is compiled."""

    kind = "notices"

    def prepare(s, start):
        s.heard = start.models.copy()

    def solve(s, i):
        for x in range(s.p):
            s.models[i, x] = 0.5 * s.heard[i, x] + (1.0 if PLAIN else 0.0)
            s.heard[i, x] = 0.0
'''
#: The first check that each fails, and words of why.
FIRST = {
    "loss steep": ("slope against differences of the value", "by differences of its values it is"),
    "loss bent": ("bend against differences of the slope", "by differences of its slopes it is"),
    "loss misread": ("formulas when compiled, for several parameters", "in plain Python it is"),
    "law longer": ("draws have the mean that it declares", "and mean_value 0.1"),
    "law twice": ("blocks of draws equal single ones", "one call of the generator"),
    "metric writes": ("a finite number, of arrays that it leaves alone", "read-only"),
    "graph one_way": ("weights are symmetric and positive, without self-loops", "not symmetric"),
    "task unseeded": ("the same seed, the same data", "data differ between two builds"),
    "rule remembers": ("both engines, event by event", "simpy and compiled: trace differ"),
    "rule notices": ("plain Python, as a debugger sees it", "compiled and not: trace differ"),
}


def test_wrong_ones_are_found_and_right_ones_pass(here, write):
    """Also of what stands in one file with them; the exit code is 1."""
    done = here("test", "--plugin", write(WRONG, "wrong.py"))
    assert (done.returncode, done.stderr) == (1, "")
    first, name = {}, ""
    for line in done.stdout.splitlines():
        name = line if not line.startswith("  ") else name
        if line.startswith("  failed"):
            first.setdefault(name, line)
    assert set(first) == set(FIRST)
    for name, (check, why) in FIRST.items():
        assert check in first[name]
        assert why in first[name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--plugin'"),
        (["--plugin", "nowhere.py"], "nowhere.py: cannot be imported"),
        (["nowhere.yaml", "--plugin", EXAMPLES / "averaging.py"], "nowhere.yaml: no such file"),
    ],
)
def test_wrong_input(here, arguments, words):
    done = here("test", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_keys_that_nobody_can_guess(here, write):
    text = WRONG[: WRONG.index("class Right")]
    text += "class Named(Law[Q]):\n    kind: Literal['named'] = 'named'\n    name: str\n"
    done = here("test", "--plugin", write(text, "named.py"))
    assert done.returncode == 2
    assert all(word in done.stderr for word in ("law named", "keys name", "test SCENARIO"))
