"""From Python and in notebooks: dictionaries, data frames and graphs in, figures out."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import simulator
from simulator import (
    Comparison,
    Progress,
    Result,
    Sweep,
    build_problem,
    compare,
    load_scenario,
    results,
    run,
    sweep,
)
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.progress import _in_notebook, line
from simulator.sweeps.request import knobs_of

TINY = {
    "name": "tiny",
    "task": {"kind": "mean_estimation", "agents": 8},
    "graph": {"kind": "gaussian_kernel", "sigma": 0.5},
    "algorithm": {"alpha": 0.8},
    "stop": {"time": 5},
}
SLOW = {**TINY, "network": {"latency": "50 ms"}, "stop": {"time": 100}}


def points(rng: np.random.Generator) -> pd.DataFrame:
    """Numbers with all their digits, names that need quotes, a narrow float."""
    names = np.repeat(["Bath", 'the "Cove"', "Deal, Kent"], 4)
    table = pd.DataFrame({"agent": names, "x": rng.normal(size=12), "y": rng.normal(size=12)})
    return table.assign(z=rng.normal(size=12).astype("float32"))


def graph() -> nx.Graph:
    made = nx.Graph()
    made.add_edge("Bath", 'the "Cove"', weight=1 / 3)
    made.add_edge('the "Cove"', "Deal, Kent", weight=0.1)
    return made


OWN = {"graph": graph(), "algorithm": {"alpha": 0.8}, "stop": {"time": 5}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def own(folder) -> Result:
    """A run of a data frame and a graph, stored."""
    data = points(np.random.default_rng(1))
    return run({"name": "own", "task": {"kind": "files", "train": data}, **OWN}, out=folder)


@pytest.fixture(scope="module")
def swept(folder) -> Sweep:
    grid = {"network.latency": ["10 ms", "1 s"], "network.drop": [0, 0.5]}
    return sweep(TINY, grid, seeds=2, jobs=1, out=folder, figures=False)


@pytest.fixture(scope="module")
def compared(folder) -> Comparison:
    return compare(SLOW, seeds=2, target="distance=30%", jobs=1, out=folder, figures=False)


# --- what is given --------------------------------------------------------------------------------
def test_a_dictionary_a_file_and_a_scenario_are_the_same(tmp_path):
    import yaml

    file = tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(TINY))
    loaded = load_scenario(file)
    assert load_scenario(TINY) == loaded == load_scenario(loaded)
    assert load_scenario(loaded, {"algorithm.mu": 2}).algorithm.mu == 2
    trace = run(file, progress=False).trace
    assert run(TINY, progress=False).trace.equals(trace)
    assert run(loaded, progress=False).trace.equals(trace)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stop": {"time": 0}}, "scenario: stop.time: must be greater than 0 (got 0)"),
        ({"nettwork": {}}, "scenario: nettwork: unknown key; did you mean 'network'?"),
        ({"seed": 1j}, "scenario: seed: cannot be of Python's type complex"),
        ({"graph": nx.DiGraph([(0, 1)])}, "graph: the graph is directed"),
        ({"graph": nx.Graph([("a#", "b")])}, "has a # or a line break in its name"),
    ],
)
def test_mistakes_in_a_dictionary_are_named(change, message):
    with pytest.raises(ScenarioError) as error:
        load_scenario({**TINY, **change})
    assert message in str(error.value)


def test_what_is_no_scenario():
    with pytest.raises(ScenarioError, match="a file, a dictionary or a Scenario"):
        run(3)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="plugins: the scenario was read with its own"):
        run(load_scenario(TINY), plugins="x.py")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"seeds": 1.5}, "seeds: must be a whole number from 1 (got 1.5)"),
        ({"seeds": True}, "seeds: must be a whole number from 1 (got true)"),
        ({"jobs": "2"}, "jobs: must be a whole number from 1 (got '2')"),
        ({"target": 5}, "target: must be text like 'distance=1%'"),
        ({"progress": "x"}, "progress: must be True, False or a function (got 'x')"),
        ({"vary": 5}, "vary: must be a key and its values"),
        ({"vary": ("algorithm.mode", 5)}, "vary: must be a key and its values"),
        ({"tune": 5}, "must be one key with values for each side"),
        ({"tune": {"sync": {}}}, "must be one key with values for each side"),
        ({"tune": {"sync": {"clock.rate": [1], "network.drop": [0]}}}, "must be one key with"),
        ({"grid": 5}, "grid: must be keys with their values (got 5)"),
        ({"grid": {5: [1]}}, "5: not a key; expected one like network.drop"),
        ({"vary": (5, [1, 2])}, "5: not a key; expected one like network.drop"),
        ({"plugins": 5}, "plugins: must be files, modules or their names, or classes (got 5)"),
        ({"plugins": [5]}, "plugins: must be files, modules or their names, or classes (got 5)"),
        ({"out": 5}, "out: must be a path (got 5)"),
    ],
)
def test_arguments_that_make_no_sense_are_named(how, message, tmp_path):
    with pytest.raises(SimulatorError) as error:
        compare(SLOW, **{"jobs": 1, "out": tmp_path / "results", **how})
    assert message in str(error.value)
    assert not (tmp_path / "results").exists()


def test_the_most_runs_are_a_whole_number(tmp_path):
    for wrong in ("5", 1.5, 0, True):
        with pytest.raises(SimulatorError, match=r"max_runs: must be a whole number from 1 \(got"):
            sweep(TINY, {"network.drop": [0]}, max_runs=wrong, jobs=1, out=tmp_path)


def test_paths_that_are_none(tmp_path):
    for load in (Result.load, Sweep.load):
        with pytest.raises(SimulatorError, match=r"folder: must be a path \(got null\)"):
            load(None)
    with pytest.raises(SimulatorError, match=r"out: must be a path \(got 5\)"):
        run(TINY, out=5)
    file = tmp_path / "a_file"
    file.write_text("")
    with pytest.raises(SimulatorError, match=r"out: .*a_file is not a folder"):
        results(file)


def test_one_value_in_a_sweep_is_shared_by_all_runs(tmp_path):
    latency = {"kind": "exponential", "mean": "10 ms"}
    grid = {"stop.time": 3, "network.drop": [0, 0.5], "network.latency": latency}
    found = sweep(TINY, {**grid, "graph": nx.cycle_graph(8)}, jobs=1, out=tmp_path, figures=False)
    assert list(found.axes) == ["network.drop"]
    assert found.runs["simulated_time"].tolist() == [3, 3]


def test_one_value_to_tune_is_a_list_of_one():
    assert knobs_of({"sync": {"network.retransmit_after": "1 s"}, "async": {"clock.rate": 5}}) == {
        "sync": ("network.retransmit_after", ["1 s"]),
        "async": ("clock.rate", [5]),
    }


def test_frames_and_graphs_read_back_exactly(own):
    """Every number is the one of the frame; a narrow float is the same number, wide."""
    data = points(np.random.default_rng(1))
    problem = own.problem
    assert problem.names == ["Bath", "Deal, Kent", 'the "Cove"']
    for i, name in enumerate(problem.names):
        X, y = problem.data[i]
        rows = data[data["agent"] == name]
        np.testing.assert_array_equal(X, rows[["x", "z"]].to_numpy(np.float64))
        np.testing.assert_array_equal(y, rows["y"])
    assert problem.W[0, 2] == 1 / 3
    assert problem.W[1, 2] == 0.1
    assert problem.W.nnz == 4


def test_a_stored_run_of_frames_runs_again(own, folder):
    place = Path(results(folder).query("name == 'own'")["folder"].iloc[0])
    assert sorted(path.name for path in (place / "inputs").iterdir()) == ["edges.csv", "train.csv"]
    again = run(place / "scenario.yaml", progress=False)
    np.testing.assert_array_equal(again.models, own.models)
    loaded = Result.load(place)
    np.testing.assert_array_equal(loaded.models, own.models)
    pd.testing.assert_frame_equal(loaded.trace, own.trace)


def test_progress_where_there_is_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    values = {"task": {"kind": "mean_estimation", "agents": 5}, "stop": {"time": 1}}
    assert len(run(values).agents) == 5


def test_agents_without_points_are_listed(rng):
    alone = graph()
    alone.add_edge("Bath", "Ayr")
    task = {"kind": "files", "train": points(rng), "agents": list(alone)}
    problem = build_problem({**OWN, "task": task, "graph": alone})
    assert problem.names[-1] == "Ayr"
    assert problem.data.sizes.tolist() == [4, 4, 4, 0]


def test_an_index_with_a_name_is_a_column(rng):
    vectors = pd.DataFrame(rng.normal(size=(3, 2)), index=pd.Index(graph(), name="agent"))
    task = {"kind": "files", "train": points(rng), "vectors": vectors}
    problem = build_problem({**OWN, "task": task, "graph": {"kind": "knn", "k": 1}})
    np.testing.assert_array_equal(problem.vectors, vectors.loc[problem.names])


def test_a_stored_run_is_not_computed_again(folder, own, monkeypatch):
    data = points(np.random.default_rng(1))
    monkeypatch.setattr("simulator.runs.simulation._run", None)
    again = run({"name": "own", "task": {"kind": "files", "train": data}, **OWN}, out=folder)
    np.testing.assert_array_equal(again.models, own.models)


# --- what comes out -------------------------------------------------------------------------------
def test_things_show_themselves(own, swept, compared):
    assert repr(own).startswith("<Result own: mp, asynchronous; 3 agents; 5 s, ")
    assert repr(own.problem) == (
        "<Problem: 3 agents, 2 edges, models in R^2, quadratic loss, 12 points>"
    )
    assert repr(swept) == "<Sweep tiny: network.latency (2) × network.drop (2), 8 runs>"
    assert repr(compared).startswith("<Comparison tiny: speed-up of async over sync: ")
    for thing in (own.problem, compared):
        html = thing._repr_html_()
        assert "<table" in html
        assert 'src="data:image/png;base64,iVBOR' in html


def test_figures_are_matplotlibs(own, swept, compared):
    from matplotlib.figure import Figure

    for thing, which in ((own, "models"), (swept, "heat_map")):
        figure = thing.plot(which, width=3.3)
        assert isinstance(figure, Figure)
        assert figure.get_figwidth() == 3.3
        assert figure._repr_png_()[:4] == b"\x89PNG"
    drawn = own.plot(metric="objective", labels={"objective": "what is minimised"})
    assert drawn.axes[0].get_ylabel() == "what is minimised"
    with pytest.raises(SimulatorError, match="no figure 'x'; allowed: error, models"):
        own.plot("x")
    with pytest.raises(SimulatorError, match="--metric accuracy: not measured in this run"):
        own.plot(metric="accuracy")
    for width in (0, "x"):
        with pytest.raises(SimulatorError, match="--width: must be 2 to 40 inches"):
            own.plot(width=width)


def test_times_in_tables_are_seconds(swept):
    assert swept.runs["network.latency"].unique().tolist() == [0.01, 1.0]
    assert pd.read_csv(swept.folder / "summary.csv")["network.latency"].dtype == float


def test_stored_sweeps_are_read_again(swept, compared):
    for kind, made in ((Sweep, swept), (Comparison, compared)):
        loaded = kind.load(made.folder)
        pd.testing.assert_frame_equal(loaded.summary, made.summary, check_dtype=False, rtol=1e-12)
        assert repr(loaded) == repr(made)
    assert Comparison.load(compared.folder).notes == compared.notes
    with pytest.raises(SimulatorError, match="holds a Comparison, not a Sweep"):
        Sweep.load(compared.folder)


def test_results_are_listed(folder, own, swept, compared):
    table = results(folder)
    assert set(table["what"]) == {"run", "sweep", "compare"}
    assert table.loc[table["name"] == "own", "distance"].item() == own.trace["distance"].iloc[-1]
    assert results(folder / "none").empty


def test_the_package_shows_its_names():
    assert {"run", "sweep", "compare", "results", "Result"} <= set(dir(simulator))
    assert all(getattr(simulator, name) is not None for name in simulator.__all__)
    home = Path(simulator.__file__).parent
    assert (home / "py.typed").exists()


# --- progress -------------------------------------------------------------------------------------
def test_numbers_of_agents_are_values_of_a_grid(tmp_path):
    """A list of names is the value of one run, not of a grid."""
    grid = {"task.agents": [5, 6]}
    found = sweep(TINY, grid, seeds=1, jobs=1, out=tmp_path, figures=False, progress=False)
    assert found.runs["task.agents"].tolist() == [5, 6]
    assert (found.runs["status"] == "done").all()


def test_a_callback_is_told_the_same_of_a_run_and_of_a_sweep(tmp_path):
    told: list[Progress] = []
    run(TINY, progress=told.append)
    assert told[-1].share == 1.0
    assert (told[-1].done, told[-1].total) == (1, 1)
    assert told[-1].row is not None
    assert line(told[-1]).startswith("tiny: 100%, 5 s simulated, ")
    told.clear()
    sweep(TINY, seeds=2, jobs=1, out=tmp_path, figures=False, progress=told.append)
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 2, 2)
    assert line(told[-1]) == "tiny: 2 of 2 runs done"


def test_progress_on_a_terminal_and_nowhere_else(monkeypatch, capsys):
    run(TINY)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    run(TINY)
    assert "tiny" in capsys.readouterr().err
    run(TINY, progress=False)
    assert capsys.readouterr().err == ""


def test_progress_in_a_notebook(monkeypatch):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown.append(content["text/plain"])

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return Handle()

    assert not _in_notebook()
    fake = types.SimpleNamespace(
        get_ipython=lambda: types.SimpleNamespace(kernel=None),
        display=types.SimpleNamespace(display=display),
    )
    monkeypatch.setitem(__import__("sys").modules, "IPython", fake)
    run(TINY)
    assert shown[-1].startswith("tiny: 100%")


# --- held-out error for regression ----------------------------------------------------------------
@pytest.fixture(scope="module")
def regression(folder) -> Result:
    """Lines with a height of their own: agents differ in the intercept alone."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"agent": np.repeat(np.arange(4), 12), "x": rng.normal(size=48)})
    table["y"] = 2 * table["x"] + 5 + 0.3 * table["agent"] + rng.normal(size=48)
    task = {"kind": "files", "train": table[::3], "test": table[1::3][:-2], "intercept": True}
    stop = {"time": 50, "metric": "test_error", "below": "90%"}
    scenario = {"name": "lines", "task": task, "graph": nx.cycle_graph(4), "stop": stop}
    return run({**scenario, "algorithm": {"alpha": 0.8}}, progress=False)


def test_the_test_error_is_the_mean_square_on_own_test_points(regression):
    test, models = regression.problem.test, regression.models
    errors = [np.mean((X @ theta - y) ** 2) for (X, y), theta in zip(test, models, strict=True)]
    assert regression.agents["test_error_final"].to_numpy() == pytest.approx(errors)
    final = regression.summary["metrics"]["final"]["test_error"]
    assert final == pytest.approx(np.mean(errors)) == regression.trace["test_error"].iloc[-1]
    assert regression.summary["target"]["time"] is not None
    assert not regression.summary["target"]["exact"]
    assert regression.plot().axes[0].get_ylabel() == "mean squared error\non test points"


def test_an_intercept_is_a_feature_that_is_one(regression):
    problem = regression.problem
    for X, _ in (*problem.data, *problem.test):
        assert (X[:, -1] == 1).all()
    slope, height = np.polyfit(problem.data[0][0][:, 0], problem.data[0][1], 1)
    assert problem.solitary[0] == pytest.approx([slope, height], abs=1e-8)


def test_an_intercept_that_is_there_already():
    table = pd.DataFrame({"agent": [0, 1], "intercept": [1, 1], "y": [2.0, 3.0]})
    task = {"kind": "files", "train": table, "intercept": True}
    with pytest.raises(ScenarioError, match="has a column 'intercept' already"):
        build_problem({**OWN, "task": task, "graph": nx.path_graph(2)})


def test_the_test_error_of_means():
    table = pd.DataFrame({"agent": [0, 0, 1], "y": [1.0, 3.0, 5.0]})
    task = {"kind": "files", "train": table, "test": table, "features": []}
    result = run({**OWN, "task": task, "graph": nx.path_graph(2)}, progress=False)
    assert result.summary["metrics"]["solitary"]["test_error"] == pytest.approx(0.5)
