"""Generated data against the laws they claim to follow, files against pandas, and all errors.

Statistical tests have fixed seeds and a level of 1e-4: a right program fails one in ten thousand
choices of the seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from agents.losses import LOSSES
from simulator.errors import ScenarioError
from simulator.problem.build import build_problem, confidence
from simulator.problem.problem import Problem
from simulator.runs.plugins import schema_for
from simulator.seeds import NAMES, Streams
from tests.conftest import ROOT

LEVEL = 1e-4
STATIONS = ROOT / "scenarios" / "data"


def build(task: dict, graph: dict | None = None, seed: int = 0, **algorithm) -> Problem:
    values = {"name": "t", "seed": seed, "task": task, "stop": {"time": 1.0}}
    values |= {"algorithm": algorithm} | ({} if graph is None else {"graph": graph})
    return build_problem(schema_for().model_validate(values), Streams(seed))


def moons(agents: int = 300, **task) -> Problem:
    # Any graph will do here, and a cycle is quick.
    cycle = {"kind": "networkx", "generator": "cycle_graph"}
    return build({"kind": "mean_estimation", "agents": agents, **task}, cycle)


def separators(agents: int = 100, seed: int = 0, **task) -> Problem:
    graph = {"kind": "knn", "k": 5, "allow_disconnected": True}
    return build({"kind": "linear_classification", "agents": agents, **task}, graph, seed)


def assert_follows(sample: np.ndarray, law) -> None:
    """Kolmogorov–Smirnov."""
    assert stats.kstest(sample, law.cdf).pvalue > LEVEL


def owners(data) -> np.ndarray:
    return np.repeat(np.arange(len(data)), data.sizes)


# --- seeds --------------------------------------------------------------------------------------
def test_streams_are_those_of_one_seed_sequence():
    streams = Streams(7)
    for name, child in zip(NAMES, np.random.SeedSequence(7).spawn(len(NAMES)), strict=True):
        expected = np.random.default_rng(child).random(3)
        np.testing.assert_array_equal(getattr(streams, name).random(3), expected)


def test_same_seed_same_problem():
    first, second, other = separators(seed=3), separators(seed=3), separators(seed=4)
    assert first.data.X.tobytes() == second.data.X.tobytes()
    assert first.solitary.tobytes() == second.solitary.tobytes()
    assert (first.W != second.W).nnz == 0
    assert not np.array_equal(first.targets, other.targets)


# --- mean estimation ----------------------------------------------------------------------------
@pytest.mark.parametrize("agents", [1, 2, 301])
def test_half_of_the_agents_on_each_moon(agents):
    cycle = {"kind": "gaussian_kernel", "sigma": 10.0}
    problem = build({"kind": "mean_estimation", "agents": agents}, cycle)
    upper = -(-agents // 2)
    np.testing.assert_array_equal(
        problem.targets.ravel(), [1.0] * upper + [-1.0] * (agents - upper)
    )
    assert problem.vectors.shape == (agents, 2)
    assert problem.n == len(problem.names) == agents
    assert problem.p == 1
    assert problem.test is None
    assert problem.names[-1] == str(agents - 1)


def test_the_moons_are_half_circles_walked_evenly():
    x, y = moons(4001, noise=0.0).vectors.T
    upper, lower = slice(0, 2001), slice(2001, None)
    np.testing.assert_allclose(np.hypot(x[upper], y[upper]), 1)
    np.testing.assert_allclose(np.hypot(x[lower] - 1, y[lower] - 0.5), 1)
    assert y[upper].min() >= 0
    assert y[lower].max() <= 0.5
    even = stats.uniform(0, np.pi)
    assert_follows(np.arctan2(y[upper], x[upper]), even)
    assert_follows(np.arctan2(0.5 - y[lower], 1 - x[lower]), even)


def test_noise_is_normal_with_the_given_spread():
    shift = (moons(3000, noise=0.05).vectors - moons(3000, noise=0.0).vectors) / 0.05
    assert_follows(shift[:, 0], stats.norm)
    assert_follows(shift[:, 1], stats.norm)
    assert abs(stats.pearsonr(*shift.T).statistic) < stats.norm.isf(LEVEL / 2) / np.sqrt(3000)


def test_samples_are_normal_around_the_target():
    problem = moons(400, variance=40.0)
    residual = problem.data.y - problem.targets[owners(problem.data), 0]
    assert_follows(residual / np.sqrt(40), stats.norm)
    assert problem.data.X is None


def test_sizes_from_the_confidence_width():
    def sizes(width):
        samples = {"kind": "confidence_width", "width": width, "max": 100}
        return moons(20_000, samples=samples, variance=1.0).data.sizes

    assert set(sizes(0.0)) == {50}
    narrow = sizes(0.5)
    assert narrow.min() == 26  # c in [1/4, 3/4)
    assert narrow.max() == 75
    counts = np.bincount(sizes(1.0), minlength=101)[1:]
    assert stats.chisquare(counts).pvalue > LEVEL


def test_other_sizes():
    assert set(moons(50, samples={"kind": "constant", "value": 7}).data.sizes) == {7}
    sizes = moons(5000, samples={"kind": "uniform", "low": 0, "high": 4}).data.sizes
    assert stats.chisquare(np.bincount(sizes)).pvalue > LEVEL
    assert len(np.bincount(sizes)) == 5


def test_the_solitary_model_is_the_mean():
    problem = moons(50, samples={"kind": "uniform", "low": 0, "high": 3})
    means = [y.mean() if len(y) else 0.0 for _, y in problem.data]
    np.testing.assert_allclose(problem.solitary.ravel(), means, atol=1e-12)
    assert problem.loss.kind == "quadratic"


def test_confidence_is_the_share_of_the_largest_data_set():
    samples = {"kind": "uniform", "low": 0, "high": 3}
    task = {"kind": "mean_estimation", "agents": 60, "samples": samples}
    cycle = {"kind": "networkx", "generator": "cycle_graph"}
    problem = build(task, cycle, confidence="data")
    np.testing.assert_array_equal(problem.confidence, problem.data.sizes / 3)
    plain = build(task, cycle, confidence="none")
    np.testing.assert_array_equal(plain.confidence, plain.data.sizes > 0)
    np.testing.assert_array_equal(confidence(np.array([0, 2, 8]), True), [0, 0.25, 1])


def test_the_papers_graph_is_the_default():
    problem = build({"kind": "mean_estimation", "agents": 60})
    v = problem.vectors
    distance = np.linalg.norm(v[:, None] - v[None], axis=2)
    expected = np.exp(-(distance**2) / (2 * 0.1**2)) - np.eye(60)
    np.testing.assert_allclose(problem.W.toarray(), expected, rtol=1e-10)
    np.testing.assert_allclose(problem.D, expected.sum(axis=1))
    assert problem.notes == ()


# --- linear classification ----------------------------------------------------------------------
def test_targets_lie_in_a_plane():
    problem = separators(1000, dimension=5, test_points=1)
    assert not problem.targets[:, 2:].any()
    assert_follows(problem.targets[:, 0], stats.norm)
    assert_follows(problem.targets[:, 1], stats.norm)
    assert problem.vectors is None
    assert problem.p == 5


def test_sizes_are_uniform_from_1_to_20():
    problem = separators(5000, dimension=2, test_points=3)
    assert stats.chisquare(np.bincount(problem.data.sizes, minlength=21)[1:]).pvalue > LEVEL
    assert set(problem.test.sizes) == {3}


def test_points_on_the_cube():
    X = separators(dimension=4).test.X
    assert_follows(X.ravel(), stats.uniform(-1, 2))


def test_points_in_the_ball():
    X = separators(dimension=4, points="ball").test.X
    radius = np.linalg.norm(X, axis=1)
    assert_follows(radius**4, stats.uniform)  # the volume within a radius
    assert_follows(X[:, 0], _marginal_in_ball(4))


def test_points_on_the_sphere():
    X = separators(dimension=3, points="sphere").test.X
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    for k in range(3):
        assert_follows(X[:, k], stats.uniform(-1, 2))  # Archimedes: zones of equal height


def _marginal_in_ball(p: int):
    """A coordinate of a uniform point of the ball: density ∝ (1 − x²)^((p − 1)/2)."""
    return stats.beta((p + 1) / 2, (p + 1) / 2, loc=-1, scale=2)


def test_labels_are_flipped_as_often_as_said():
    for test_flip in (True, False):
        problem = separators(500, dimension=6, flip=0.05, test_flip=test_flip)
        for data, flip in ((problem.data, 0.05), (problem.test, 0.05 if test_flip else 0.0)):
            assert set(data.y) == {-1.0, 1.0}
            side = np.einsum("mp,mp->m", data.X, problem.targets[owners(data)])
            wrong = int((side * data.y < 0).sum())
            low, high = stats.binom.interval(1 - LEVEL, len(data.y), flip)
            assert low <= wrong <= high


def test_the_probability_of_a_flip_changes_nothing_else():
    quiet, loud = separators(dimension=3, flip=0.0), separators(dimension=3, flip=0.5)
    for a, b in ((quiet.data, loud.data), (quiet.test, loud.test)):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.offsets, b.offsets)


def test_the_graph_compares_the_angles_of_targets():
    problem = build({"kind": "linear_classification", "agents": 60, "dimension": 10})
    u = problem.targets / np.linalg.norm(problem.targets, axis=1, keepdims=True)
    expected = np.exp((u @ u.T - 1) / 0.1)
    np.fill_diagonal(expected, 0)
    expected[expected <= 0.01] = 0
    np.testing.assert_allclose(problem.W.toarray(), expected, rtol=1e-10)


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "hinge", "logistic"])
def test_each_loss_has_solitary_models(loss):
    problem = separators(20, dimension=3, loss=loss)
    assert problem.loss.kind == loss
    assert problem.solitary.shape == (20, 3)
    assert np.isfinite(problem.solitary).all()


# --- connectivity and data ----------------------------------------------------------------------
def test_a_graph_in_two_parts_is_noted_where_it_is_allowed():
    task = {"kind": "mean_estimation", "agents": 300, "noise": 0.0}
    graph = {"kind": "knn", "k": 10}
    with pytest.raises(ScenarioError, match=r"2 parts of 150 and 150 agents.*allow_disconnected"):
        build(task, graph)
    problem = build(task, graph | {"allow_disconnected": True})
    assert problem.notes == ("the graph falls into 2 parts of 150 and 150 agents",)


# --- files --------------------------------------------------------------------------------------
TRAIN = "agent,a,b,y\n10,1,2,1\n9,0.5,1e-3,-1\n\n10,3,4,-1\n"
PATH = {"kind": "networkx", "generator": "path_graph"}


class Folder:
    """Files of a scenario, written where a test wants them."""

    def __init__(self, path: Path):
        self.path = path

    def build(self, graph=PATH, **task) -> Problem:
        for key in ("train", "test", "agents", "vectors", "targets"):
            if key in task:
                file = self.path / f"{key}.csv"
                text = task[key]
                file.write_bytes(text if isinstance(text, bytes) else text.encode())
                task[key] = str(file)
        return build({"kind": "files", **task}, graph)

    def error(self, **task) -> str:
        with pytest.raises(ScenarioError) as raised:
            self.build(**task)
        return str(raised.value).replace(f"{self.path}/", "")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_rows_are_grouped_by_agent(folder):
    problem = folder.build(train=TRAIN)
    assert problem.names == ["9", "10"]  # as numbers
    np.testing.assert_array_equal(problem.data[0][0], [[0.5, 1e-3]])
    np.testing.assert_array_equal(problem.data[1][0], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(problem.data[1][1], [1, -1])
    assert problem.test is problem.targets is problem.vectors is None


def test_names_that_are_no_numbers_are_sorted_as_text(folder):
    problem = folder.build(train="agent,y\nb,1\n10,2\n9,3\nNA,3\n")
    assert problem.names == ["10", "9", "NA", "b"]


def test_columns_by_name(folder):
    train = "who,u,v,w,rain\nx,1,2,3,4\nz,5,6,7,8\n"
    problem = folder.build(train=train, agent="who", target="rain", features=["w", "u"])
    np.testing.assert_array_equal(problem.data[1][0], [[7, 5]])
    assert problem.p == 2


@pytest.mark.parametrize("task", [{"features": []}, {}])
def test_without_features_a_mean_is_estimated(folder, task):
    columns = "agent,u,y\nx,0,1\nx,0,4\nz,0,7\n" if task else "agent,y\nx,1\nx,4\nz,7\n"
    problem = folder.build(train=columns, **task)
    assert problem.data.X is None
    np.testing.assert_allclose(problem.solitary, [[2.5], [7]])


def test_listed_agents_keep_their_order_and_may_lack_data(folder):
    problem = folder.build(train=TRAIN, agents="10\n# resting\nnew\n\n 9 \n")
    assert problem.names == ["10", "new", "9"]
    np.testing.assert_array_equal(problem.data.sizes, [2, 0, 1])
    np.testing.assert_array_equal(problem.confidence, [1, 0, 0.5])
    assert not problem.solitary[1].any()


def test_an_agent_of_the_test_file_alone_is_an_agent(folder):
    test = "agent,y,b,a,more\n11,1,2,3,x\n"
    problem = folder.build(train=TRAIN, test=test, loss="hinge")
    assert problem.names == ["9", "10", "11"]
    np.testing.assert_array_equal(problem.test[2][0], [[3, 2]])
    np.testing.assert_array_equal(problem.test.sizes, [0, 0, 1])


def test_vectors_and_targets_follow_the_agents(folder):
    problem = folder.build(
        train=TRAIN,
        vectors="east,agent\n0.5,10\n0.25,9\n",
        targets="agent,b,a\n10,1,2\n9,3,4\n",
        graph={"kind": "gaussian_kernel", "sigma": 1.0},
    )
    np.testing.assert_array_equal(problem.vectors, [[0.25], [0.5]])
    np.testing.assert_array_equal(problem.targets, [[4, 3], [2, 1]])  # by the features' names
    assert problem.W[0, 1] == pytest.approx(np.exp(-(0.25**2) / 2))
    by_order = folder.build(train=TRAIN, targets="agent,t1,t2\n10,1,2\n9,3,4\n")
    np.testing.assert_array_equal(by_order.targets, [[3, 4], [1, 2]])


def test_a_byte_order_mark_quotes_and_blanks_do_no_harm(folder):
    train = '\ufeffagent, a ,"y"\r\n"x, y", 1 , 2\r\n  \r\nz,"3",4\r\n'
    problem = folder.build(train=train)
    assert problem.names == ["x, y", "z"]
    np.testing.assert_array_equal(problem.data.X, [[1], [3]])


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"train": ""}, "train.csv: the first line is empty; it must name the columns"),
        ({"train": "agent,a,y\n"}, "train.csv: no rows below the line of column names"),
        ({"train": "agent,a,y\n\n,,\n"}, "train.csv: no rows"),
        ({"train": b"agent,a,y\nx,\xff,1\n"}, "train.csv: not UTF-8 text (byte 12)"),
        ({"train": "name,a,y\nx,1,1\n"}, "no column 'agent' (task.agent); the columns are name, a"),
        ({"train": "agent,a,z\nx,1,1\n"}, "no column 'y' (task.target)"),
        ({"train": "agent,a,a,y\nx,1,1,1\n"}, "train.csv: two columns are called 'a'"),
        ({"train": TRAIN, "features": ["a", "c"]}, "no column 'c' (task.features)"),
        ({"train": TRAIN, "features": ["a", "a"]}, "task.features: 'a' is there twice"),
        ({"train": TRAIN, "features": ["y"]}, "'y' is the agent's or the target's column"),
        ({"train": TRAIN, "target": "agent"}, "are the same column 'agent'"),
        ({"train": "agent,a,y\nx,1,2\n\nx,one,2\n"}, "train.csv:4: column 'a': 'one' is not a fin"),
        (
            {"train": "agent,a,y\nx,1,2\nx,1\n"},
            "train.csv:3: 2 cells in a line; 3 are expected",
        ),
        (
            {"train": "agent,a,y\nx,nan,2\n"},
            "train.csv:2: column 'a': 'nan' is not a finite number",
        ),
        ({"train": "agent,a,y\nx,1,-inf\n"}, "train.csv:2: column 'y': '-inf' is not a finite"),
        ({"train": "agent,a,y\nx,1e400,2\n"}, "train.csv:2: column 'a': '1e400' is not a finite"),
        ({"train": "agent,a,y\n,1,2\n"}, "train.csv:2: column 'agent': '' is no name of an agent"),
        ({"train": "agent,a,y\nx,1,2\nx,1,2,3\n"}, "train.csv:3: 4 cells in a line; at most 3"),
        ({"train": 'agent,a,y\nx,"1,2\n'}, "train.csv: malformed CSV: "),
        (
            {"train": TRAIN, "agents": "10\n"},
            "train.csv:3: column 'agent': '9' is not an agent; th",
        ),
        ({"train": TRAIN, "agents": "9\n10\n9\n"}, "agents.csv:3: agent '9' is already in line 1"),
        (
            {"train": TRAIN, "agents": "agent,site,kind\n9,,x\n\n10,eu\n"},
            "agents.csv:4: 2 cells in a line; 3 are expected",
        ),
        ({"train": TRAIN, "agents": "# none\n"}, "agents.csv: no agents; expected one name a line"),
        (
            {"train": TRAIN, "test": "agent,a,y\n9,1,1\n", "loss": "hinge"},
            "test.csv: no column 'b' (task.features)",
        ),
        ({"train": TRAIN, "test": "agent,a,b,y\n", "loss": "hinge"}, "test.csv: no rows"),
        (
            {"train": TRAIN, "test": "agent,a,b,y\n9,1,?,1\n", "loss": "hinge"},
            "test.csv:2: column 'b': '?' is not",
        ),
        ({"train": TRAIN, "vectors": "agent,e\n9,1\n"}, "vectors.csv: no row for agent 10"),
        (
            {"train": TRAIN, "vectors": "agent,e\n9,1\n10,1\n9,2\n"},
            "vectors.csv:4: column 'agent': ",
        ),
        (
            {"train": TRAIN, "vectors": "agent,e\n9,1\n1,1\n"},
            "vectors.csv:3: column 'agent': '1' is",
        ),
        (
            {"train": TRAIN, "vectors": "agent,e\n9,1\n10,x\n"},
            "vectors.csv:3: column 'e': 'x' is n",
        ),
        ({"train": TRAIN, "vectors": "agent\n9\n10\n"}, "vectors.csv: no column of numbers beside"),
        (
            {"train": TRAIN, "targets": "agent,t\n9,1\n10,1\n"},
            "targets.csv: 1 columns of numbers (t); a model has 2",
        ),
        (
            {"train": "agent,a,y\nx,1,1\nz,1,0\n", "loss": "logistic"},
            "train.csv:3: column 'y': '0' is no label; the logistic loss allows -1 and 1",
        ),
        (
            {"train": TRAIN, "test": "agent,a,b,y\n9,1,1,2\n", "loss": "hinge"},
            "test.csv:2: column 'y': '2' is no label; the hinge loss allows -1 and 1",
        ),
        ({"train": "agent,y\nx,1\nz,-1\n", "loss": "hinge"}, "the hinge loss needs at least one"),
    ],
)
def test_wrong_files(folder, task, message):
    assert message in folder.error(**task)


def test_a_part_without_data_is_an_error(folder, tmp_path):
    edges = tmp_path / "edges.txt"
    edges.write_text("9 10\na b\n")
    graph = {"kind": "file", "file": str(edges), "allow_disconnected": True}
    message = folder.error(train=TRAIN, agents="9\na\n10\nb\n", graph=graph)
    assert "in which no agent has data: agent a, b;" in message


def test_generated_agents_who_all_lack_data_are_an_error():
    samples = {"kind": "uniform", "low": 0, "high": 1}
    graph = {"kind": "networkx", "generator": "empty_graph", "allow_disconnected": True}
    task = {"kind": "mean_estimation", "agents": 200, "samples": samples}
    with pytest.raises(ScenarioError, match="in which no agent has data: agent "):
        build(task, graph)


def test_a_solitary_model_that_is_not_finite_is_an_error(monkeypatch):
    def overflow(self, X, y, offsets, ridge):
        models = np.zeros((len(offsets) - 1, 1))
        models[4] = np.inf
        return models

    monkeypatch.setattr(LOSSES["quadratic"], "fit_all", overflow)
    with pytest.raises(ScenarioError, match="solitary model of agent 4 is not finite"):
        moons(10)


def test_a_solitary_fit_that_fails_is_an_error(monkeypatch):
    def fail(self, X, y, offsets, ridge):
        raise ValueError("the fit of 3 agents did not reach its accuracy")

    monkeypatch.setattr(LOSSES["quadratic"], "fit_all", fail)
    with pytest.raises(ScenarioError, match="task: the fit of 3 agents"):
        moons(10)


# --- the data set that comes with the scenarios ---------------------------------------------------
def test_the_weather_stations():
    task = {
        "kind": "files",
        "loss": "logistic",
        "train": str(STATIONS / "train.csv"),
        "test": str(STATIONS / "test.csv"),
        "agents": str(STATIONS / "stations.txt"),
        "vectors": str(STATIONS / "vectors.csv"),
    }
    problem = build(task, {"kind": "file", "file": str(STATIONS / "edges.csv")})
    frame = pd.read_csv(STATIONS / "train.csv")
    counts = frame["agent"].value_counts().reindex(problem.names, fill_value=0)
    np.testing.assert_array_equal(problem.data.sizes, counts)
    assert problem.names[2] == "Cedar Point"
    assert problem.data.sizes[2] == 0
    for i, name in enumerate(problem.names):
        rows = frame[frame["agent"] == name]
        np.testing.assert_array_equal(
            problem.data[i][0], rows[["humidity", "pressure", "wind"]].to_numpy()
        )
        np.testing.assert_array_equal(problem.data[i][1], rows["y"])
    distance = np.linalg.norm(problem.vectors[:, None] - problem.vectors[None], axis=2)
    near = (distance < 1.5) & (distance > 0)
    expected = np.where(near, np.exp(-(distance**2) / 2), 0)
    np.testing.assert_allclose(problem.W.toarray(), expected, atol=5e-4)


def test_problem_seed_gives_the_problem_of_that_seed_and_leaves_the_other_streams():
    one, other = Streams(7), Streams(3, problem_seed=7)
    for name in ("data", "graph"):
        assert getattr(one, name).random() == getattr(other, name).random()
    for name in ("clock", "peers", "latency", "loss", "compute", "rates"):
        assert getattr(Streams(3), name).random() == getattr(other, name).random()


def test_validate_builds_a_graph_that_is_cheap(here, write):
    """Where the scenario's own seed would fail, but not a graph of so many agents."""
    text = "task: {kind: mean_estimation, agents: %d, noise: 0}\n"
    text += "graph: {kind: knn, k: 2}\nstop: {time: 1}\nseed: 3\n"
    small, large = write(text % 300, "small.yaml"), write(text % 10**6, "large.yaml")
    done = here("validate", str(small), str(large))
    assert done.returncode == 2
    assert f"{small}: with seed 3: graph: the graph falls into" in done.stderr
    assert f"{large}: valid" in done.stdout
