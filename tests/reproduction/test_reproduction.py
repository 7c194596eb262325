"""The reproduction of the paper: closed forms, statistics, choices, and the whole in small."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from agents.rules.model_propagation import ModelPropagation
from reproduction import reproduce as reproducing
from reproduction.__main__ import commands
from reproduction.choices import load_choices
from reproduction.claims import all_of, judged
from reproduction.classification import (
    algorithm,
    by_instance,
    with_hello,
)
from reproduction.closed_forms import (
    accuracies,
    confidences,
    equivalence,
    expected_models,
    mean_errors,
    propagated,
)
from reproduction.mean_estimation import fig1, sides, wins
from reproduction.measuring import geometric, reached, slope
from reproduction.page import follows, write_page
from reproduction.paper import Paper
from reproduction.problems import moons, separators
from reproduction.reproduce import IDS, expand, reproduce
from reproduction.sizes import FULL, QUICK
from simulator.engines.setup import prepare
from simulator.errors import MissingError, ScenarioError, SimulatorError, StoreWarning
from simulator.problem.build import build_problem
from simulator.seeds import Streams
from simulator.store.store import Store
from simulator.sweeps.plan import make_plan
from simulator.sweeps.sweep_file import read_request
from simulator.sweeps.workers import RESUMED
from simulator.theory.metrics import View
from simulator.theory.objectives import consensus_model
from tests.conftest import ROOT
from tests.processes import Command

CHOICES = ROOT / "reproduction" / "choices.yaml"
COMMITTED = ROOT / "results" / "paper"
#: Of results at full size, which are written once, after the last change of numbers.
ANEW = pytest.mark.xfail(reason="results/paper is to be written anew", strict=True)


@pytest.fixture(scope="module")
def choices():
    return load_choices(CHOICES)


# --- choices ------------------------------------------------------------------------------------
def test_every_choice_has_a_reason_and_the_scenarios_follow_it(choices):
    assert all(len(choice.why) > 5 for choice in choices.all.values())
    changed = choices.changed({"linear_classification.points": "sphere", "scalability.k": 3})
    assert separators(changed).task.points == "sphere"
    assert separators(choices).task.points == choices["linear_classification.points"]
    assert choices["scalability.k"] != 3 == changed["scalability.k"]
    with pytest.raises(ScenarioError, match="no value for p3; it has p2, p5"):
        choices.at("linear_classification.mu", 3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "value: 0.05\n",
            "value: -1\n",
            "mean_estimation.noise.value: must be at least 0 (got -1)",
        ),
        ("value: mean\n", "value: median\n", "without.value: must be mean or one (got 'median')"),
        ("others: [known, own]", "others: own", "start.others: must be a list (got 'own')"),
        ("p50: 0.85,", "p50: 1.5,", "alpha.value.p50: must be less than 1 (got 1.5)"),
        ("others: [5, 20]", "others: [5, 2.5]", "scalability.k.others.1: must be a whole number"),
        (
            "  ridge:\n",
            "  rigde:\n",
            "linear_classification.rigde: unknown key; did you mean 'ridg",
        ),
        ("scalability: #", "scaling: #", "scalability: missing key"),
    ],
)
def test_a_wrong_choice_is_named_with_its_place(tmp_path: Path, old, new, message):
    text = CHOICES.read_text()
    assert old in text
    path = tmp_path / "choices.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ScenarioError) as error:
        load_choices(path)
    (line,) = [line for line in str(error.value).splitlines() if message in line]
    if "missing" not in message:
        place = text[: text.index(old)].count("\n") + 1
        assert line.startswith(f"{path}:{place}:")
    assert all(line.startswith(f"{path}:") for line in str(error.value).splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fig9"], "fig9: no such experiment; allowed: all, fig1"),
        (["fig1", "--choices", "none.yaml"], "none.yaml: no such file"),
        (["fig1", "--choices", "list.yaml"], "must be blocks of choices"),
    ],
)
def test_wrong_files_and_names_end_in_plain_words(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Path("list.yaml").write_text("[1, 2]")
    with pytest.raises(SimulatorError, match=message):  # which ends in exit code 2
        commands.main([*words, "--out", "results"], standalone_mode=False)
    assert not Path("results").exists()


def test_choices_of_ones_own_may_lie_anywhere(tmp_path, monkeypatch):
    own = tmp_path / "own.yaml"
    own.write_text(CHOICES.read_text())
    monkeypatch.chdir(tmp_path)
    (done,) = reproduce(["fig4"], choices=own, out="here", quick=True)
    assert done.files[0] == Path("here/paper/quick/fig4.png")
    assert "Made with own.yaml" in Path("here/paper/quick/fig4.txt").read_text()


def test_names_are_done_once_in_their_order():
    assert expand(["fig5", "fig1", "fig5"]) == ["fig1", "fig5"]
    assert expand(["fig5", "all"]) == list(IDS)
    with pytest.raises(SimulatorError, match="no such experiment"):
        expand(["fig1", "nonsense"])


def test_help_names_every_experiment():
    output = CliRunner().invoke(commands, ["--help"]).output
    assert all(name in output for name in IDS)


@pytest.mark.parametrize("name", ["beyond.yaml", "beyond_admm.yaml"])
def test_the_comparison_beyond_the_paper_is_an_ordinary_sweep_file(name):
    request = replace(read_request(ROOT / "reproduction" / name), seeds=1)
    assert request.tune["sync"][0] == "network.retransmit_after"
    assert {"world", "$spread"} <= make_plan(request).axes.keys()


def test_choices_can_be_validated_alone(tmp_path: Path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(CHOICES.read_text().replace("value: cube", "value: square"))
    result = CliRunner().invoke(commands, ["validate"])
    assert result.output == f"{CHOICES}: valid\n"
    with pytest.raises(ScenarioError, match=r"points\.value: must be cube, ball or sphere"):
        commands.main(["validate", "--choices", str(wrong)], standalone_mode=False)


def test_the_schema_accepts_the_choices():
    schema = json.loads(CliRunner().invoke(commands, ["schema"]).output)
    values = yaml.safe_load(CHOICES.read_text())
    jsonschema.Draft202012Validator(schema).validate(values)
    assert not jsonschema.Draft202012Validator(schema).is_valid({**values, "grdi": {}})


# --- closed forms -------------------------------------------------------------------------------
def literal(problem, c, alpha):
    """Proposition 1, letter by letter."""
    W, eye = problem.W.toarray(), np.eye(problem.n)
    P, rest, C = W / W.sum(axis=1, keepdims=True), 1 - alpha, np.diag(c)
    return rest * np.linalg.inv(eye - rest * (eye - C) - alpha * P) @ C @ problem.solitary


def test_stacked_closed_forms_are_proposition_1(choices):
    problem = build_problem(moons(choices, width=1.0), Streams(3))
    kinds = confidences(problem, 100)
    models = propagated(problem, np.array(list(kinds.values())), 0.01 / 0.99)
    for row, c in zip(models, kinds.values(), strict=True):
        np.testing.assert_allclose(row, literal(problem, c, 0.99)[:, 0], rtol=0, atol=1e-9)
    sizes = problem.data.sizes
    np.testing.assert_allclose(kinds["data"], sizes / sizes.max())
    np.testing.assert_allclose(kinds["share"], sizes / 100)
    assert kinds["mean"][0] == pytest.approx(kinds["data"].mean())


def test_errors_of_an_instance_are_mean_squares_to_the_true_means(choices):
    scenario = moons(choices, width=0.6)
    table = mean_errors(scenario, [5, 6], [0.9, 0.99]).set_index(["seed", "alpha"])
    problem = build_problem(scenario, Streams(6))
    sizes = problem.data.sizes
    for kind, c in (("data", sizes / sizes.max()), ("one", np.ones(problem.n))):
        models = literal(problem, c, 0.9)
        expected = float(np.mean((models - problem.targets) ** 2))
        assert table.loc[(6, 0.9), kind] == pytest.approx(expected, rel=1e-8)
    assert len(table) == 4


def test_accuracies_by_size_add_up_to_those_of_all_agents(choices):
    scenario = separators(choices, dimension=5)
    table = accuracies(scenario, [2], [0.7], [0.2])
    problem = build_problem(scenario, Streams(2))
    metrics = View(scenario, problem)
    means = by_instance(table).loc[2]
    models = literal(problem, problem.data.sizes / problem.data.sizes.max(), 0.7)
    assert means["mp"] == pytest.approx(metrics.measure(models)["accuracy"])
    right = 0
    for i in range(problem.n):
        X, y = problem.test[i]
        right += np.sum(y * (X @ problem.solitary[i]) > 0)
    assert means["solitary"] == pytest.approx(right / len(problem.test.y))
    assert table.groupby("method")["agents"].sum().eq(problem.n).all()
    assert means["cl"] > means["consensus"]


def test_a_stored_table_comes_back_as_it_was(choices, tmp_path: Path):
    paper = Paper(choices, FULL, Store(tmp_path))
    scenario = separators(choices, dimension=2)
    (task,) = paper.closed_forms("accuracies", scenario, [1], 5, alphas=[0.7], mus=[])
    with pytest.raises(MissingError):
        task.check()
    outcome = task.job().execute()
    task.save(outcome)
    task.check()
    pd.testing.assert_frame_equal(task.table(), outcome.result, check_exact=True, check_dtype=False)
    other = paper.closed_forms("accuracies", scenario, [1], 5, alphas=[0.8], mus=[])
    assert other[0].place != task.place


@pytest.mark.verify
def test_the_consensus_model_is_found_with_hardly_a_ridge(choices):
    """An instance of figure 3 that needs the hardest penalties of the central solver."""
    problem = build_problem(separators(choices, dimension=90), Streams(5))
    tiny, small = (consensus_model(problem, ridge) for ridge in (1e-6, 1e-4))
    # The loss alone decides: it is polyhedral, and has one minimiser.
    np.testing.assert_allclose(tiny, small, rtol=0, atol=1e-6)


# --- statistics ---------------------------------------------------------------------------------
def test_a_tie_is_half_a_win():
    ours, theirs = pd.Series([1.0, 2.0, 3.0]), pd.Series([2.0, 2.0 * (1 + 1e-14), 1.0])
    assert wins(ours, theirs).tolist() == [1.0, 0.5, 0.0]


def test_slope_is_that_of_a_power_law(rng):
    n = np.repeat([100, 200, 400, 800], 5)
    found = slope(np.log(n), np.log(3.0 * n**1.3))
    assert found["slope"] == pytest.approx(1.3)
    assert found["slope_low"] <= 1.3 + 1e-9 <= found["slope_high"] + 2e-9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1))
def test_reaching_a_level(values, level):
    samples = pd.DataFrame({"communications": range(len(values)), "accuracy": values})
    first = next((k for k, v in enumerate(values) if v >= level), None)
    staying = next((k for k in range(len(values)) if min(values[k:]) >= level), None)
    for expected, for_good in ((first, False), (staying, True)):
        found = reached(samples, "accuracy", level, for_good)
        assert np.isnan(found) if expected is None else found == expected


def test_a_claim_holds_where_its_whole_interval_does():
    assert judged((0.7, 0.6, 0.8), 0.6, 0.9).holds == "yes"
    assert judged((0.7, 0.6, 0.8), 0.65, 0.9).holds == "undecided"
    assert judged((0.7, 0.6, 0.8), most=0.59).holds == "no"
    # Without an interval nothing is decided, nor by what was not reached.
    assert judged((0.8, np.nan, np.nan), 0.78, 0.9).holds == "undecided"
    assert judged((0.7, np.nan, np.nan), 0.78).holds == "undecided"
    assert judged((np.nan, np.nan, np.nan), 0.78).holds == "undecided"
    assert all_of([(np.nan, np.nan, np.nan), (0.9, 0.8, 1.0)], least=0).holds == "undecided"


def test_of_several_cases_the_one_that_decides_is_shown():
    sure, unsure, wrong = (2.0, 1.5, 2.5), (5.0, -9.0, 19.0), (-1.0, -1.5, -0.5)
    assert all_of([(3.0, 2.0, 4.0), sure], least=0).value == 2.0
    assert all_of([sure, unsure], least=0).holds == "undecided"
    assert all_of([unsure, wrong, sure], least=0) == judged(wrong, least=0)


def test_geometric_mean_of_ratios():
    found = geometric("ratio", [0.5, 2.0, 1.0])
    assert found["ratio"] == pytest.approx(1.0)
    assert found["ratio_low"] * found["ratio_high"] == pytest.approx(1.0)


def test_rounds_pay_for_their_hello(choices):
    """The warm start of section 4.2 costs synchronous ADMM a message a link, as it does gossip."""
    scenario = separators(choices, algorithm=algorithm(choices, "linear_classification", "sync"))
    assert scenario.algorithm.start == "known"
    rows = pd.DataFrame({"communications": [0, 0, 10, 20], "accuracy": [0.5, 0.5, 0.6, 0.7]})
    counted = with_hello(rows)
    assert counted["communications"].tolist() == [0, 10, 10, 20, 30]
    assert counted["accuracy"].tolist() == [0.5, 0.5, 0.5, 0.6, 0.7]


def test_means_make_mp_and_cl_the_same(choices):
    table = equivalence(moons(choices, agents=40), [1, 2], [0.9])
    # Sums of some 3000 squares, each rounded once: far below 1e-10 of their size.
    assert (table[["objectives", "models"]] < 1e-9).all(axis=None)


def test_the_expected_models_are_those_of_every_exchange(choices):
    """Against all exchanges of appendix C one by one: the mean, weighted by their chances."""
    start = {"kind": "normal", "scale": 10}
    scenario = moons(
        choices,
        agents=6,
        algorithm={"kind": "mp", "alpha": 0.9, "start": start},
        clock={"rate": {"kind": "lognormal", "mean": 1, "sigma": 1}},
    )
    found = expected_models(scenario, [3], [2, 4])
    streams = Streams(3)
    problem = build_problem(scenario, streams)
    setup = prepare(scenario, problem, streams, ModelPropagation)
    W, n, c = problem.W.toarray(), 6, problem.confidence
    known = np.zeros((n, n))  # known[i, j]: what i knows of j; of itself, its model
    known[setup.owners, setup.neighbour] = setup.copies[:, 0]
    np.fill_diagonal(known, setup.models[:, 0])

    def exchange(before, i, j):
        after = before.copy()
        after[i, j], after[j, i] = before[j, j], before[i, i]
        for one in (i, j):
            others = W[one] @ after[one] / W[one].sum()
            own = 0.1 * c[one] * problem.solitary[one, 0]
            after[one, one] = (0.9 * others + own) / (0.9 + 0.1 * c[one])
        return after

    def step(before):
        chances = setup.rates / setup.rates.sum() / (n - 1)
        pairs = ((i, j) for i in range(n) for j in range(n) if i != j)
        return sum(chances[i] * exchange(before, i, j) for i, j in pairs)

    once = step(known)
    for length, expected in ((2, once), (4, step(once))):
        own = found[found["communications"] == length]
        np.testing.assert_allclose(own["expected"], np.diag(expected), rtol=1e-12)
        optimum = literal(problem, c, 0.9)[:, 0]
        np.testing.assert_allclose(own["optimum"], optimum, rtol=1e-9)


def test_figure_1_shows_the_instance_with_the_median_gain(choices, tmp_path: Path):
    paper = Paper(choices, replace(QUICK, mean_instances=5), Store(tmp_path))
    tables, _ = fig1(paper, Figure())
    with_c, without = sides(choices)
    gains = {}
    for seed in range(5):
        row = mean_errors(moons(choices), [seed], [choices["mean_estimation.alpha"]]).iloc[0]
        gains[row[without] / row[with_c]] = seed
    assert tables["fig1"]["seed"][0] == gains[sorted(gains)[2]]


# --- the whole ----------------------------------------------------------------------------------
def tables_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}


def plain_figures() -> None:
    """What fonts and pixels cost is not the point here."""
    reproducing._STYLE = {**reproducing._STYLE, "pdf.fonttype": 3, "savefig.dpi": 50}


@pytest.fixture
def plain_figures_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproducing, "_STYLE", reproducing._STYLE)  # so that it is undone
    plain_figures()


@pytest.fixture
def quick(tmp_path: Path, plain_figures_here: None) -> tuple[Path, str]:
    """All experiments in small: results and output."""
    words = ["all", "--quick", "--jobs", "2", "--out", str(tmp_path)]
    result = CliRunner().invoke(commands, [*words, "--choices", str(CHOICES)])
    assert result.exit_code == 0, result.output
    return tmp_path, result.output


def test_killed_and_started_again_it_gives_the_same_bytes(tmp_path: Path, plain_figures_here):
    names = ["theorem1"]
    list(reproduce(names, choices=CHOICES, out=tmp_path / "whole", quick=True, jobs=1))
    once = tables_of(tmp_path / "whole" / "paper" / "quick")
    out = tmp_path / "killed"
    words = [*names, "--quick", "--jobs", 1, "--out", out]
    process = Command(*words, cwd=tmp_path, first=plain_figures, module="reproduction")
    while process.running() and _stored(out) < 8:
        time.sleep(0.01)
    process.kill()
    before = _stored(out)
    assert 8 <= before < 30
    again = list(reproduce(names, choices=CHOICES, out=out, quick=True, jobs=1))
    assert [item.id for item in again] == names
    assert sum(item.stored for item in again) >= before
    for name, table in tables_of(out / "paper" / "quick").items():
        assert table == once[name], name
    forced = ["fig2-left", "fig2-middle"]  # of the same computations
    again = list(reproduce(forced, choices=CHOICES, out=out, quick=True, jobs=1, force=True))
    assert [(item.computed, item.stored) for item in again] == [(3, 0), (0, 3)]


def test_interrupted_it_says_that_work_is_stored(tmp_path: Path, monkeypatch):
    """However it ends: by Ctrl-C, by SIGTERM, between two experiments."""

    class Stopped(BaseException):
        pass

    def stop(*_, **__):
        raise Stopped
        yield

    monkeypatch.setattr("reproduction.reproduce.reproduce", stop)
    with pytest.raises(Stopped) as error:
        CliRunner().invoke(commands, ["fig1", "--out", str(tmp_path)])
    assert error.value.__notes__ == [RESUMED]


def test_a_damaged_table_of_claims_does_not_spoil_the_page(choices, tmp_path: Path):
    paper = Paper(choices, QUICK, Store(tmp_path))
    (tmp_path / "claims.txt").write_bytes(b"\xff\xfe")
    for damaged in (b"", b"a,b\n1,2\n", b"\xff\xff", b"\x00" * 30):
        (tmp_path / "claims.csv").write_bytes(damaged)
        with pytest.warns(StoreWarning, match=r"claims\.csv: damaged"):
            page = write_page(tmp_path, paper)
        assert "`python -m reproduction claims` writes it anew" in page.read_text()


def _stored(out: Path) -> int:
    work = out / "paper" / ".work"
    assert not [*out.glob("theorem1-*"), *out.glob("closed-forms")]  # apart from runs of one's own
    return len([*work.glob("closed-forms/*.json"), *work.glob("theorem1-*/manifest.json")])


def test_quick_versions_and_their_claims_are_those_committed(quick):
    """Numbers as committed, up to other machines' last digits."""
    out, output = quick
    assert all(name in output for name in IDS)
    # Of figure 2's instances, those at ε = 1 were computed for figure 1.
    for name, computed, there in (("fig1", 1, 0), ("fig2-left", 2, 1), ("theorem1", 36, 0)):
        assert re.search(rf"{name} .* {computed} computed, {there} already there", output)
    made, committed = out / "paper" / "quick", COMMITTED / "quick"
    names = {path.name for path in committed.iterdir()}
    assert {path.name for path in made.iterdir()} == names
    for name in sorted(names):
        if name.endswith(".csv"):
            new, old = pd.read_csv(made / name), pd.read_csv(committed / name)
            new, old = (t.drop(columns="remark", errors="ignore") for t in (new, old))
            pd.testing.assert_frame_equal(new, old, rtol=1e-3, atol=1e-6, obj=name)
    page = (made / "README.md").read_text()
    for name in IDS[:-1]:
        assert f"]({name}.png)" in page
        assert (made / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert (made / f"{name}.pdf").read_bytes()[:5] == b"%PDF-"
        caption, provenance = (made / f"{name}.txt").read_text().splitlines()
        assert caption in page
        assert provenance in page
    assert "Of another making" not in page
    # What was made with other choices says so on the page, until it is made again.
    (made / "fig1.txt").write_text("A caption.\nMade with other.yaml.\n")
    list(reproduce(["fig4"], choices=CHOICES, out=out, quick=True))
    assert (
        "A caption. **Of another making than this page: Made with other.yaml.**"
        in (made / "README.md").read_text()
    )


@ANEW
def test_the_committed_reproduction_is_complete_and_of_these_choices():
    """Full size: every figure and table, with the choices as they are now."""
    page = (COMMITTED / "README.md").read_text()
    for name in IDS[:-1]:
        for ending in ("png", "pdf", "csv", "txt"):
            assert (COMMITTED / f"{name}.{ending}").is_file()
        assert f"]({name}.png)" in page
    claims = pd.read_csv(COMMITTED / "claims.csv")
    assert set(claims["holds"]) <= {"yes", "in part", "undecided", "no"}
    assert all(text in page for text in claims["words"])
    assert hashlib.sha256(CHOICES.read_bytes()).hexdigest()[:16] in page
    assert "Of another making" not in page


@ANEW
def test_tuned_choices_are_the_best_on_held_out_instances(choices):
    best = pd.read_csv(COMMITTED / "tuning-best.csv")
    tuned = best[best["choice"] != "mean_estimation.alpha"]
    assert set(tuned["case"]) == set(FULL.dimensions)
    for row in tuned.itertuples():
        assert row.chosen == row.best == choices.at(row.choice, int(row.case))


@ANEW
def test_less_privacy_and_fewer_dimensions_are_more_accurate():
    """As committed: a smaller ε means more noise, and every coordinate has its own."""
    table = pd.read_csv(COMMITTED / "private.csv")
    hidden = ["laplace_keep", "laplace", "gaussian_keep", "gaussian"]
    by_dimension = table[table["epsilon"] == 1].sort_values("dimension")[hidden]
    by_epsilon = table[table["dimension"] == 20].sort_values("epsilon")[hidden]
    assert (by_dimension.diff().iloc[1:] < 0).all(axis=None)
    assert (by_epsilon.diff().iloc[1:] > 0).all(axis=None)
    # More than two dimensions: to smooth what was shown is better than to keep it.
    later = by_dimension.iloc[1:]
    assert (later["laplace"] > later["laplace_keep"]).all()
    assert (later["gaussian"] > later["gaussian_keep"]).all()


@ANEW
def test_the_readme_counts_as_the_claims_do():
    claims = pd.read_csv(COMMITTED / "claims.csv", keep_default_na=False)
    readme = (ROOT / "README.md").read_text()
    counts = r"Of (\d+) claims (\d+) hold by themselves and (\d+) by a choice"
    assert re.search(counts, readme)[0] in follows(claims)
