"""What would never end, or not fit, is refused before the work; what can be stopped is."""

from __future__ import annotations

import json
import random
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from simulator import machine
from simulator.engines.setup import prepare
from simulator.errors import NoOptimumError, ScenarioError
from simulator.problem.build import build_problem
from simulator.problem.graphs import edges
from simulator.problem.graphs.edges import generate
from simulator.runs import limits, simulation
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.scenario import laws
from simulator.scenario.overrides import parse_override, repeated
from simulator.seeds import Streams
from simulator.sweeps.plan import make_plan, outline
from simulator.sweeps.request import MOST_RUNS, Request
from simulator.theory.objectives import mp_optimum
from tests.conftest import LINEAR, MEANS, build

HUGE = 10**15
TO_TARGET = {"time": 600, "metric": "distance", "below": "1%"}


def setup_of(scenario):
    streams = Streams(scenario.seed)
    problem = build_problem(scenario, streams)
    return prepare(scenario, problem, streams, scenario.algorithm.rule)


def refusal(base, **overrides):
    with pytest.raises(ScenarioError) as caught:
        run(build(base, **overrides))
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


# --- memory -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("base", "key", "value"),
    [
        ({**MEANS, "graph": {"kind": "knn"}}, "task__agents", 2**31 - 1),
        (MEANS, "task__samples", {"kind": "constant", "value": HUGE}),
        (MEANS, "task__samples", {"kind": "confidence_width", "max": HUGE}),
        (LINEAR, "task__samples", {"kind": "uniform", "low": 1, "high": HUGE}),
        (LINEAR, "task__dimension", 2**31 - 1),
        (LINEAR, "task__test_points", HUGE),
    ],
)
def test_a_task_that_does_not_fit_is_refused_before_it_is_made(base, key, value):
    assert "this machine has" in refusal(base, **{key: value})


def test_memory_is_the_containers_where_that_is_less(tmp_path: Path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("1000000\n")
    monkeypatch.setattr(machine, "_CONTAINER_LIMITS", (str(limit), str(tmp_path / "none")))
    assert machine.memory.__wrapped__() == 1e6
    limit.write_text("max\n")
    assert machine.memory.__wrapped__() > 1e6


def test_agents_messages_and_files_are_counted_too(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(machine, "memory", lambda: 1e6)
    assert "12 agents with 66 links" not in str(run(build(MEANS)).summary)
    assert "messages on their way" in refusal(
        MEANS, clock__rate=1e6, network__latency=1e3, stop__time=1e4
    )
    monkeypatch.setattr(machine, "memory", lambda: 4e4)
    assert "12 agents with 66 links" in refusal(MEANS)
    file = tmp_path / "numbers.txt"
    file.write_text("1\n" * 2500)
    with pytest.raises(ScenarioError, match=r"numbers\.txt.* this machine has"):
        laws.read_numbers(file)


# --- time ---------------------------------------------------------------------------------------
def test_clocks_that_cannot_advance_are_refused():
    assert "ticks (clock.rate)" in refusal(MEANS, clock__rate=1e99)
    to_target = {"time": 50, "metric": "distance", "below": "1%"}
    assert "ticks (clock.rate)" in refusal(MEANS, clock__rate=1e99, stop=to_target)
    busy = refusal(MEANS, clock__rate=1e99, compute__time=1, stop={"communications": 9})
    assert "ticks (clock.rate)" in busy
    assert run(build(MEANS, clock__rate=1e99, stop={"communications": 9})).summary["bytes"]


@pytest.mark.parametrize(
    "overrides",
    [
        {"record__every": 1e-9, "stop": {"communications": 1000}},
        {"record__every": 1e-9, "stop": {"communications": 1000}, "algorithm__start": "hello"},
        {"record__every_communications": 1, "stop": {"time": 1e9}},
        {
            "record__every": 1e-9,
            "stop": {"communications": 1000},
            "algorithm__mode": "sync",
            "network__latency": 1,
        },
    ],
)
def test_too_many_samples_are_refused_at_once(overrides):
    assert "at most 1,000,000 are allowed" in refusal(MEANS, **overrides)


def test_waiting_for_slow_solves_counts_as_time():
    overrides = {"record__every": 1, "stop": {"communications": 300}, "compute__time": 1e9}
    assert "samples" in refusal(LINEAR, **overrides)


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_the_expected_number_of_samples_is_a_lower_bound(mode):
    """Of runs with that many samples: the bound must not refuse what would do."""
    for base in (MEANS, LINEAR):
        scenario = build(
            base,
            algorithm__mode=mode,
            network={"latency": {"kind": "exponential", "mean": 0.2}, "drop": 0.2},
            compute__time=0.05,
            stop={"communications": 2000},
            record__every=0.1,
        )
        bound = limits.expected_events(setup_of(scenario))["samples"]
        # 1000 ticks or more: their number is within five standard deviations of its mean.
        assert 0 < bound * (1 - 5 / np.sqrt(1000)) < len(run(scenario).trace)


def test_more_samples_than_expected_end_the_run(monkeypatch):
    monkeypatch.setattr(simulation, "MOST_SAMPLES", 20)
    assert "more than 20 samples" in refusal(MEANS, record__every=1)


@pytest.mark.parametrize(
    "overrides",
    [
        {"clock__rate": 1e12, "stop": {"time": 1}},
        {"stop": {"communications": 2**53}, "record": {"samples": 10}},
        {"algorithm__mode": "sync", "network__latency": 1e-12, "stop": {"time": 10}},
        {"algorithm__mode": "sync", "network__latency": 1e-18, "stop": TO_TARGET},
        {
            "algorithm__mode": "sync",
            "network__latency": {"kind": "lognormal", "mean": 1, "sigma": 30},
        },
        {
            "algorithm__mode": "sync",
            "network": {"drop": 1 - 1e-10, "retransmit_after": 1e-90, "latency": 0.05},
        },
        {
            "algorithm__mode": "sync",
            "network": {"latency": 1e-18},
            "availability": {"kind": "on_off", "on": 100, "off": 1},
            "stop": {"time": 10},
        },
        {
            "algorithm__mode": "sync",
            "network": {"latency": 0.05, "retransmit_after": 1e-13},
            "stop": {"time": 10},
        },
        {
            "algorithm__mode": "sync",
            "network": {"drop": 1e-12, "retransmit_after": 1, "latency": 1e-12},
            "stop": {"time": 10},
        },
        {
            "algorithm__mode": "sync",
            "network": {"drop": 1 - 1e-12, "retransmit_after": 1e-10, "latency": 1},
            "stop": {"time": 100},
        },
        {
            "algorithm__mode": "sync",
            "network": {"drop": 1 - 1e-12, "retransmit_after": 1e-10, "latency": 1},
            "stop": {"communications": 100},
        },
    ],
)
def test_more_events_than_anybody_can_wait_for_are_refused(overrides):
    assert "which would take days at best" in refusal(MEANS, **overrides)


def test_more_comings_and_goings_than_anybody_can_wait_for_are_refused():
    for stop in ({"time": 100}, {"communications": 10_000}):
        availability = {"kind": "on_off", "on": 1e-9, "off": 1e-10}
        assert "switches (availability)" in refusal(MEANS, availability=availability, stop=stop)


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("drop", [0, 0.3, 0.95])
def test_the_expected_number_of_messages_is_a_lower_bound(mode, drop):
    """Or nearly so: in the mean, and of some thousand messages."""
    network = {"latency": 0.2, "drop": drop, "retransmit_after": 0.3}
    scenario = build(MEANS, algorithm__mode=mode, network=network, stop={"time": 100})
    bound = limits.expected_events(setup_of(scenario))["messages"]
    sent = run(scenario).summary["communications"]
    assert 1000 < bound * (1 - 5 / np.sqrt(1000)) < sent


def test_a_run_that_a_metric_may_stop_earlier_may_send_any_number_of_messages():
    stop = {"time": 1e13, "metric": "distance", "below": "90%"}
    assert run(build(MEANS, stop=stop)).summary["target"]["time"] < 1e3


# --- randomness and networkx --------------------------------------------------------------------
def test_generators_draw_from_nothing_but_their_seed():
    def made(name, **arguments):
        return [
            part.tolist() if hasattr(part, "tolist") else part
            for part in generate(name, arguments, 12, 7)[1]
        ]

    for name, arguments in (
        ("erdos_renyi_graph", {"p": 0.4}),
        ("random_geometric_graph", {"radius": 0.5}),
        ("barabasi_albert_graph", {"m": 2}),
        ("random_regular_graph", {"d": 4}),
    ):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        first = made(name, **arguments)
        random.seed(2)
        np.random.seed(2)  # noqa: NPY002
        assert made(name, **arguments) == first


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("balanced_tree", {"r": 2, "h": 30}),
        ("random_geometric_graph", {"radius": 0.5, "dim": 10**9}),
    ],
)
def test_a_generator_that_grows_too_large_is_stopped(name, arguments, monkeypatch):
    monkeypatch.setattr(edges, "_room", lambda n: 2e7)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(ScenarioError, match=r"needs more than 0\.02 GB for 12 agents and was stop"):
        generate(name, arguments, 12, 0)
    assert resource.getrlimit(resource.RLIMIT_AS) == limits


@pytest.mark.parametrize("n", [3 * 10**8, 10**30])
def test_more_nodes_than_agents_are_refused_before_they_are_made(n):
    for name in ("complete_graph", "full_rary_tree", "random_regular_graph"):
        with pytest.raises(ScenarioError, match=r"nodes or more for 12 agents"):
            generate(name, {"n": n}, 12, 0)


def test_a_generator_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(edges, "_seconds", lambda n: 0.2)
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ScenarioError, match=r"still at work after 0\.2 s for 12 agents"):
        generate("balanced_tree", {"r": 3, "h": 10**9}, 12, 0)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_small_graphs_have_little_time_and_large_ones_a_minute():
    assert edges._seconds(300) <= 10  # a refusal takes less than 15 seconds in all
    assert edges._seconds(10**6) == 60


def test_small_graphs_have_little_room_and_large_ones_enough():
    assert edges._room(20) < 4e8
    assert edges._room(2000) > 500 * 2000**2 / 2  # the complete graph
    assert edges._room(10**6) > 1e10


# --- numbers ------------------------------------------------------------------------------------
def test_metrics_that_overflow_are_left_out_with_a_note(tmp_path: Path):
    (tmp_path / "train.csv").write_text("agent,x,y\na,1e-90,1e90\nb,1,1\n")
    (tmp_path / "links.txt").write_text("a b\n")
    file = tmp_path / "x.yaml"
    file.write_text(
        "task: {kind: files, train: train.csv}\ngraph: {kind: file, file: links.txt}\n"
        "stop: {time: 5}\n"
    )
    summary = run(load_scenario(file)).summary
    assert any("too large to be numbers" in note for note in summary["notes"])
    assert "objective" not in summary["metrics"]["solitary"]
    json.dumps(summary, allow_nan=False)


def test_a_matrix_that_rounding_spoils_is_said_in_plain_words():
    problem = build_problem(build(MEANS), Streams(0))
    with pytest.raises(NoOptimumError, match="differ too much in size"):
        mp_optimum(problem.W, problem.confidence, problem.solitary, float("inf"))


def test_an_empirical_file_is_read_once_a_run(tmp_path: Path, monkeypatch):
    file = tmp_path / "numbers.txt"
    file.write_text("1\n2\n3\n")
    law = laws.Empirical[float](file=file)
    draw = laws.sampler(law, np.random.default_rng(0), block=10)
    expected = law.draw(np.random.default_rng(0), 100).tolist()
    monkeypatch.setattr(laws, "read_numbers", None)
    file.unlink()
    assert [draw() for _ in range(100)] == expected


def test_rare_values_are_exceeded_by_one_draw_in_a_billion():
    """By inversion: the law's survival function at its rare value is at most 1e-9."""
    rng = np.random.default_rng(1)
    for given in (
        {"kind": "exponential", "mean": 2},
        {"kind": "lognormal", "mean": 2, "sigma": 1.5},
        {"kind": "pareto", "mean": 2, "shape": 2.5},
        {"kind": "uniform", "low": 1, "high": 2},
        3,
    ):
        law = build(MEANS, network__latency=given).network.latency
        draws = law.draw(rng, 10_000)
        assert draws.max() <= law.rare_value
        assert law.rare_value < 1e6


# --- plans --------------------------------------------------------------------------------------
@pytest.fixture
def moons(tmp_path: Path) -> Path:
    file = tmp_path / "moons.yaml"
    file.write_text("task: {kind: mean_estimation, agents: 20}\nstop: {time: 10}\n")
    return file


def test_more_runs_than_meant_are_refused_at_once(moons: Path):
    grid = {"network.header": list(range(200)), "network.drop": [k / 400 for k in range(200)]}
    for request in (Request(moons, seeds=10**11), Request(moons, grid)):
        with pytest.raises(ScenarioError, match=f"at most {MOST_RUNS:,} are made.*--max-runs"):
            make_plan(request)
    with pytest.raises(ScenarioError, match="at most 2 are made"):
        make_plan(Request(moons, seeds=3, max_runs=2))
    assert len(make_plan(Request(moons, seeds=3, max_runs=3)).runs) == 3


def test_a_plan_too_large_to_list_is_outlined_and_its_values_checked(moons: Path):
    request = Request(moons, {"network.drop": [0, 0.5]}, seeds=10**6)
    assert outline(request)[:3] == [
        "network.drop: 2 values",
        "seeds: 1,000,000",
        "2,000,000 runs: too many to list; the first 100 values of each key were checked, one at a "
        "time",
    ]
    with pytest.raises(ScenarioError, match=r"network\.drop: must be at most 1"):
        outline(Request(moons, {"network.drop": [0, 2]}, seeds=10**6))


def test_repeated_values_are_found_in_one_pass():
    assert repeated([1, True, 1.0, "1", [1], {"a": 1}, [1], {"a": 1}, True]) == [
        1.0,
        [1],
        {"a": 1},
        True,
    ]
    with pytest.raises(ScenarioError, match="given twice"):
        parse_override("seed=1, 2, 1")


def test_scenarios_at_the_limits_are_loaded(moons: Path):
    load_scenario(moons, {"stop.communications": 2**53, "task.noise": 1e100, "stop.time": 1e-100})
