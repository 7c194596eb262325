"""Partitions, and networks that span places: by theory and by what events show."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import yaml
from scipy import stats

from simulator import load_scenario, run
from simulator.engines.setup import prepare
from simulator.errors import ScenarioError
from simulator.problem.build import build_problem
from simulator.runs.simulation import start_engine
from simulator.scenario.geography import great_circle
from simulator.seeds import Streams
from tests.conftest import MEANS, ROOT, build
from tests.engines.test_availability import EVENTS, HALVES, SLOW, SURE, churning


# --- partitions ---------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_nothing_crosses_a_partition(mode):
    cut = [{"from": 4, "until": 9, "groups": [[0, 1, 2, 3], [4, 5]]}]  # and the other six
    network = {"latency": 0.1, "drop": 0.1 if mode == "async" else 0.0, "partitions": cut}
    events = run(churning(availability=None, network=network, algorithm__mode=mode)).events
    group = np.array([0] * 4 + [1] * 2 + [2] * 6)
    sends = events[events["kind"] == "send"]
    across = group[sends["agent"]] != group[sends["peer"]]
    inside = (sends["time"] >= 4) & (sends["time"] < 9)
    lost = sends["message"].isin(events.loc[events["kind"] == "drop", "message"])
    assert lost[across & inside].all()
    assert (across & inside).sum() > 20
    outside = lost[~(across & inside)]
    if mode == "async":
        assert stats.binomtest(int(outside.sum()), len(outside), 0.1).pvalue > SURE
        return
    assert not outside.any()
    # What was held up goes on at once, in the order of sender and receiver.
    again = sends[sends["time"] == 9.0]
    assert len(again) == 2 * (4 * 2 + 4 * 6 + 2 * 6) == (across & inside).sum()
    pairs = list(zip(again["agent"], again["peer"], strict=True))
    assert pairs == sorted(pairs)


def test_a_partition_tends_to_its_own_fixed_point():
    """Of mp: with the last copies from beyond the cut held (not the optimum of the cut graph)."""
    cut = [{"from": 3, "until": 6000, "groups": [[0, 1, 2, 3, 4, 5]]}]
    scenario = build(
        MEANS, engine="compiled", network={"latency": 0.05, "partitions": cut}, stop={"time": 12000}
    )
    streams = Streams(0)
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    engine = start_engine(setup, None)
    engine.advance(5999.0, None)
    problem, copies = setup.problem, engine.rule.arrays["copies"]
    W, alpha = problem.W, scenario.algorithm.alpha
    A, b = np.eye(12), np.zeros((12, 1))
    for i in range(12):
        c = problem.confidence[i]
        scale = 1 / (alpha + (1 - alpha) * c)
        b[i] = scale * (1 - alpha) * c * problem.solitary[i]
        for k in setup.links_of(i):
            j, weight = W.indices[k], scale * alpha * W.data[k] / problem.D[i]
            if (i < 6) == (j < 6):
                A[i, j] -= weight
            else:
                b[i] += weight * copies[k]
    fixed = np.linalg.solve(A, b)
    np.testing.assert_allclose(engine.models, fixed, atol=1e-9)
    optimum = run(scenario).optimum
    assert np.abs(fixed - optimum).max() > 1e-3
    engine.advance(12000.0, None)
    np.testing.assert_allclose(engine.models, optimum, atol=1e-6)


# --- places -------------------------------------------------------------------------------------
@pytest.fixture
def places(tmp_path):
    """Four agents at two sites, with columns of their own."""
    (tmp_path / "matrix.csv").write_text("site,eu,us\neu,10 ms,0.08\nus,90 ms,0.012\n")
    (tmp_path / "agents.csv").write_text(
        "agent,region,latitude,longitude,speed\n"
        "a,eu,48.86,2.35,1\nb,us,40.71,-74.01,2\nc,eu,52.52,13.40,3\nd,us,34.05,-118.24,4\n"
    )
    (tmp_path / "train.csv").write_text(
        "agent,y\n" + "".join(f"{a},{k}\n" for k, a in enumerate("abcd"))
    )
    (tmp_path / "edges.csv").write_text("a,b\na,c\na,d\nb,c\nb,d\nc,d\n")

    def scenario(**changes):
        values = {
            "name": "places",
            "task": {"kind": "files", "train": "train.csv", "agents": "agents.csv"},
            "graph": {"kind": "file", "file": "edges.csv"},
            "stop": {"time": 30},
            "record": EVENTS,
            **changes,
        }
        (tmp_path / "places.yaml").write_text(yaml.safe_dump(values))
        return load_scenario(tmp_path / "places.yaml")

    scenario.folder = tmp_path
    return scenario


def delays(result):
    events = result.events
    came = events[events["kind"] == "deliver"]
    return came["time"] - came["sent_at"], came["peer"].to_numpy(), came["agent"].to_numpy()


@pytest.mark.parametrize("halved", [False, True], ids=["one way", "round trip"])
def test_latency_between_sites(places, halved):
    latency = {"kind": "sites", "file": "matrix.csv", "round_trip": halved}
    result = run(places(network={"latency": latency}, sites={"column": "region"}))
    delay, sender, receiver = delays(result)
    matrix, site = np.array([[0.01, 0.08], [0.09, 0.012]]), np.array([0, 1, 0, 1])
    expected = matrix[site[sender], site[receiver]] / (2 if halved else 1)
    np.testing.assert_allclose(delay, expected, atol=1e-12)


def test_latency_by_distance(places):
    latency = {"kind": "distance", "base": "5 ms", "speed": "100000 km/s"}
    result = run(places(network={"latency": latency}))
    delay, sender, receiver = delays(result)
    paris_to_new_york = delay[(sender == 0) & (receiver == 1)]
    np.testing.assert_allclose(paris_to_new_york, 0.005 + 5837 / 1e5, rtol=0.002)


def test_great_circles():
    """A quarter of the way around, and half of it."""
    north, east = np.array([0.0, 90.0, -90.0, 0.0]), np.array([0.0, 30.0, 0.0, 180.0])
    found = great_circle(north, east, np.array([0, 1, 0]), np.array([1, 2, 3]))
    np.testing.assert_allclose(found, np.pi * 6371 * np.array([0.5, 1, 1]), rtol=1e-9)


def test_columns_of_the_agents_file(places):
    column = {"kind": "column", "column": "speed"}
    scenario = places(
        clock={"rate": column},
        compute={"time": {"kind": "column", "column": "latitude"}},
        network={"latency": {"kind": "constant", "value": 1.0, "per_agent": {**column}}},
    )
    streams = Streams(0)
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    assert setup.rates.tolist() == [1, 2, 3, 4]
    assert setup.latency_factors.tolist() == [1, 2, 3, 4]
    assert setup.compute_factors.tolist() == [48.86, 40.71, 52.52, 34.05]


def test_random_sites_and_groups_by_site():
    cut = [{"from": 1, "until": 2, "groups": "by site"}, {"from": 3, "until": 4, "groups": 5}]
    scenario = churning(sites={"random": 3}, network={**SLOW, "partitions": cut})
    streams = Streams(0)
    setup = prepare(scenario, build_problem(scenario, streams), streams, scenario.algorithm.rule)
    assert set(setup.sites) <= {0, 1, 2}
    assert setup.cuts.groups[0].tolist() == setup.sites.tolist()
    sizes = np.bincount(setup.cuts.groups[1])
    assert sizes.tolist() == [3, 3, 2, 2, 2]


# --- mistakes -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("site,eu,us\neu,1,2\n", "matrix.csv: 1 rows for 2 columns; it must be square"),
        ("site,eu,us\neu,1,2\nus,1\n", "matrix.csv:3: 2 cells in a line; 3 are expected"),
        ("site,eu,us\neu,1,-2\nus,1,2\n", "matrix.csv:2: column 'us': '-2' is not a time"),
        ("site,eu,us\neu,1,2\nus,nan,2\n", "matrix.csv:3: column 'eu': 'nan' is not a time"),
        ("site,eu,us\nus,1,2\neu,1,2\n", "matrix.csv:2: 'us' where 'eu' is expected"),
        ("site,eu,jp\neu,1,2\njp,1,2\n", "agents.csv:3: column 'region': 'us' is no site"),
    ],
)
def test_wrong_matrices(places, text, words):
    (places.folder / "matrix.csv").write_text(text)
    latency = {"kind": "sites", "file": "matrix.csv"}
    with pytest.raises(ScenarioError, match=words):
        run(places(network={"latency": latency}, sites={"column": "region"}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"availability": {"kind": "on_off", "on": 0, "off": 1}}, "availability.on"),
        (
            {"network": {"partitions": [HALVES[0], {**HALVES[1], "from": 8}]}},
            "must not be before 9",
        ),
        ({"network": {"partitions": [{"from": 3, "until": 2, "groups": 2}]}}, "must be later than"),
        (
            {"network": {"partitions": [{"from": 1, "until": 2, "groups": "by site"}]}},
            "needs sites",
        ),
        ({"network": {"latency": {"kind": "distance"}}}, "task.agents must be a CSV file"),
        ({"network": {"partitions": [{"from": 1, "until": 2, "groups": [["x"]]}]}}, "not an agent"),
        (
            {"network": {"retransmit_after": "never", "latency": 1.0}, "algorithm__mode": "sync"},
            "availability needs a time",
        ),
        ({"clock": {"rate": {"kind": "column", "column": "x"}}}, "task.agents must be a CSV file"),
    ],
)
def test_wrong_scenarios(changes, words):
    with pytest.raises((ScenarioError, ValueError), match=words):
        run(churning(**changes))


def test_the_files_of_continents_are_those_that_the_script_makes(tmp_path):
    folder = ROOT / "scenarios/data/continents"
    runpy.run_path(str(folder / "make.py"))["write"](tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes(), file.name
