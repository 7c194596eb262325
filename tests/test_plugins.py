"""Rules of the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simulator import load_plugin, load_scenario, run
from simulator.errors import SimulatorError

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"


@pytest.fixture
def averaging():
    return load_plugin(str(EXAMPLES / "averaging.py"))


def test_the_documented_example_reaches_the_average(averaging):
    """Without delay and loss an exchange preserves the sum, so the limit is the mean."""
    scenario = load_scenario(EXAMPLES / "averaging.yaml", known_rules=averaging.rules)
    result = run(scenario, plugin=averaging)
    mean = result.problem.solitary.mean(axis=0)
    np.testing.assert_allclose(result.models.mean(axis=0), mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.models, np.tile(mean, (50, 1)), rtol=0, atol=1e-6)
    assert "objective" not in result.trace  # it minimises neither of the paper's objectives
    assert result.optimum is None


def test_parameters_reach_the_rule(averaging):
    file = EXAMPLES / "averaging.yaml"
    still = load_scenario(file, {"algorithm.parameters.step": 0}, known_rules=averaging.rules)
    result = run(still, plugin=averaging)
    np.testing.assert_array_equal(result.models, result.problem.solitary)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("RULES = 3", "must define RULES"),
        ("", "must define RULES"),
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("RULES = {'x': dict}", "not a subclass of Rule"),
        ("from agents.rule import Rule\nclass A(Rule): pass\nRULES = {'a': A}", "must implement"),
        ("from agents.admm import CollaborativeADMM as A\nRULES = {'mp': A}", "built-in"),
        ("def", "SyntaxError"),
    ],
)
def test_a_bad_plugin_is_an_error_in_plain_words(tmp_path, source, complaint):
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(SimulatorError, match=complaint):
        load_plugin(str(tmp_path / "bad.py"))


def test_a_missing_plugin_is_an_error(tmp_path):
    with pytest.raises(SimulatorError, match="cannot be imported"):
        load_plugin(str(tmp_path / "none.py"))
    with pytest.raises(SimulatorError, match="cannot be imported"):
        load_plugin("no_such_module_anywhere")


def test_the_built_in_rules_can_be_subclassed(tmp_path):
    """A plugin that is mp under another name gives mp's numbers."""
    (tmp_path / "same.py").write_text(
        "from agents.model_propagation import ModelPropagation\nRULES = {'same': ModelPropagation}"
    )
    plugin = load_plugin(str(tmp_path / "same.py"))
    file = EXAMPLES / "averaging.yaml"
    algorithm = {"algorithm": {"kind": "same", "alpha": 0.9}}
    same = run(load_scenario(file, algorithm, known_rules=plugin.rules), plugin=plugin)
    mp = run(load_scenario(file, {"algorithm": {"kind": "mp", "alpha": 0.9}}))
    np.testing.assert_array_equal(same.models, mp.models)
    assert same.trace.equals(mp.trace)
