"""The compiled engine against the SimPy engine: the same events, the same rows, the same models."""

from __future__ import annotations

import heapq
import inspect
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.machinery.code_cache import source_of
from agents.machinery.compiling import entry
from agents.rules.model_propagation import ModelPropagation
from simulator.conformance.run_checks import ROUNDING, difference, tables_of
from simulator.engines.compiled import pool, queue, record
from simulator.engines.compiled.compiled_engine import CompiledEngine
from simulator.engines.compiled.queue import FIELDS, KINDS
from simulator.errors import DivergenceError
from simulator.runs.result import Result
from simulator.runs.run import run
from simulator.scenario.algorithm import NormalStart
from simulator.scenario.schema import Scenario
from tests.conftest import LINEAR, MEANS, build

BURSTY = {
    "kind": "gilbert_elliott",
    "mean_good": 2.0,
    "mean_bad": 1.0,
    "drop_good": 0.05,
    "drop_bad": 0.8,
}


def both(scenario: Scenario) -> tuple[Result, Result]:
    return tuple(run(scenario.model_copy(update={"engine": e})) for e in ("simpy", "compiled"))


def assert_same(scenario: Scenario) -> Result:
    """Times, counts and all events equal, bit for bit; metrics and models to 1e-9."""
    record = scenario.record.model_copy(update={"events": True})
    reference, compiled = both(scenario.model_copy(update={"record": record}))
    assert difference(tables_of(reference), tables_of(compiled), ROUNDING) is None
    for key in ("target", "unfinished_solves"):
        assert compiled.summary[key] == reference.summary[key]
    return compiled


MEANS_SYNC = {"algorithm__mode": "sync", "record": {"every": 0.7}, "stop": {"time": 20}}
LINEAR_SYNC = {"algorithm__mode": "sync", "record": {"every": 0.7}, "stop": {"time": 8}}
CASES = [(MEANS, {"record": {"every": 0.7}}), (LINEAR, {"record": {"every": 0.7}})]
ALL_CASES = [*CASES, (MEANS, MEANS_SYNC), (LINEAR, LINEAR_SYNC)]
IDS = ["mp-async", "admm-async", "mp-sync", "admm-sync"]


@pytest.mark.parametrize(("base", "changes"), ALL_CASES, ids=IDS)
def test_metrics_and_summaries(base, changes):
    """What test_oracle_network.py does not look at."""
    latency = {"kind": "uniform", "low": 0, "high": 2}
    network = {"latency": latency, "drop": BURSTY, "bandwidth": 900.0, "retransmit_after": 0.3}
    result = assert_same(build(base, **changes, network=network, compute={"time": 0.2}, seed=3))
    assert result.summary["communications"] > 0


@pytest.mark.parametrize(("base", "changes"), ALL_CASES, ids=IDS)
def test_an_empirical_latency(base, changes, tmp_path):
    file = tmp_path / "delays.txt"
    file.write_text("0.1\n0.2\n0.25\n3\n")
    assert_same(build(base, **changes, network={"latency": {"kind": "empirical", "file": file}}))


@pytest.mark.parametrize(("base", "changes"), ALL_CASES, ids=IDS)
@pytest.mark.parametrize("start", ["own", "hello", "known", "zero", {"kind": "normal", "scale": 2}])
def test_starts(base, changes, start):
    if base is LINEAR and start == "hello" and changes.get("algorithm__mode") == "sync":
        pytest.skip("admm says no hello before rounds")
    network = {"latency": {"kind": "exponential", "mean": 0.5}, "drop": 0.2}
    assert_same(build(base, **changes, algorithm__start=start, network=network))


def test_admm_from_the_model_propagation_optimum():
    assert_same(build(LINEAR, algorithm__start="mp", record={"every": 1}))


@pytest.mark.parametrize("loss", ["quadratic", "absolute", "hinge", "logistic"])
@pytest.mark.parametrize("primal", ["exact", {"gradient_steps": 3}], ids=["exact", "gradient"])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_losses(loss, primal, mode):
    assert_same(
        build(
            LINEAR,
            task__loss=loss,
            algorithm__primal=primal,
            algorithm__mode=mode,
            network={"latency": 0.2, "drop": 0.1},
            record={"every": 1},
        )
    )


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_admm_on_means(mode):
    algorithm = {"kind": "admm", "mu": 0.5, "rho": 0.3, "mode": mode}
    assert_same(build(MEANS, algorithm=algorithm, network={"latency": 0.1}, stop={"time": 10}))


@pytest.mark.parametrize("start", ["own", "hello"])
@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize(("every", "limit"), [(1, 40), (13, 300), (400, 401), (1000, 3)])
def test_samples_and_stop_by_communications(mode, every, limit, start):
    """An event, such as a hello to all neighbours, may pass a sample and the limit at once."""
    scenario = build(
        MEANS,
        algorithm={"mode": mode, "start": start},
        network={"latency": 0.5},
        stop={"communications": limit},
        record={"every_communications": every},
    )
    assert_same(scenario)


@pytest.mark.parametrize(("base", "changes"), ALL_CASES, ids=IDS)
def test_exact_time_to_target(base, changes):
    network = {"latency": {"kind": "exponential", "mean": 0.3}}
    metric = "l2_error" if base is MEANS else "distance"
    free = run(build(base, **changes, network=network, engine="compiled"))
    level = 0.3 * free.trace[metric].iloc[0] + 0.7 * free.trace[metric].iloc[-1]
    stop = {"time": 100, "metric": metric, "below": level}
    result = assert_same(build(base, **{**changes, "stop": stop}, network=network))
    assert 0 < result.summary["target"]["time"] < 100


def test_a_disconnected_graph_with_lonely_agents():
    graph = {"kind": "gaussian_kernel", "sigma": 0.05, "min_weight": 0.2}
    scenario = build(MEANS, task__agents=30, graph={**graph, "allow_disconnected": True})
    assert np.diff(run(scenario).problem.W.indptr).min() == 0
    assert_same(scenario)
    network = {"latency": 0.5}
    assert_same(
        build(scenario.model_dump(), algorithm__mode="sync", network=network, stop={"time": 9})
    )


def test_messages_outgrow_the_pool():
    """300 ticks a second and 100 s of latency: far more on their way than agents."""
    scenario = build(MEANS, clock={"rate": 300}, network={"latency": 100.0}, stop={"time": 3})
    assert assert_same(scenario).summary["in_flight"] > 5000


def test_divergence_is_reported_alike():
    scenario = build(MEANS, network={"latency": 0.1})
    huge = NormalStart.model_construct(kind="normal", scale=1e308)  # more than a file may say
    algorithm = scenario.algorithm.model_copy(update={"start": huge})
    scenario = scenario.model_copy(update={"algorithm": algorithm})
    errors = []
    for engine in ("simpy", "compiled"):
        with np.errstate(all="ignore"), pytest.raises(DivergenceError) as error:
            run(scenario.model_copy(update={"engine": engine}))
        errors.append(str(error.value).split(":")[0])
    assert errors[0] == errors[1]


# --- the parts -----------------------------------------------------------------------------------
push = entry(lambda run, time, order, kind, index: queue.push_ranked(run, time, order, kind, index))
pop = entry(lambda run: queue.pop(run))
take = entry(lambda run: pool.take(run))
give_back = entry(lambda run, slot: pool.give_back(run, slot))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.3, 0.5, 0.6]),
    st.sampled_from([(1.0,), (0.0, 1.0), (0.0, 1e-9, 1.0, 1e6), (1.0, math.inf)]),
)
@settings(max_examples=40)
def test_the_queue_is_ordered_by_time_then_by_order(seed, share, scales):
    """Against a heap: near and far, at one instant, early, for ever, and as the queue grows."""
    rng = np.random.default_rng(seed)
    state = np.zeros(1, np.dtype([*FIELDS, ("now", float)], align=True))
    arrays = queue.resize(state, 100, {})
    model, now = [], 0.0
    for number in range(2_000):
        if number < 50 or rng.random() < share:
            if state["size"][0] == len(arrays["entries"]):
                arrays = queue.resize(state, 2 * len(arrays["entries"]), arrays)
            scale = rng.choice(scales)
            time = now + (scale * rng.exponential() if 0 < scale < math.inf else scale)
            order = number + (queue.SWITCHES if rng.random() < 0.1 else 0)
            push(state[0], time, order, number % KINDS, number)
            heapq.heappush(model, (time, order, number))
        elif model:
            now, _, expected = heapq.heappop(model)
            assert pop(state[0]) == expected * KINDS + expected % KINDS
            assert state["now"][0] == now
            if math.isinf(now):
                break
        assert state["size"][0] == len(model)
        flying = sum(number % KINDS == queue.ARRIVAL for _, _, number in model[:100])
        assert state["in_flight"][0] == flying or len(model) > 100


def test_the_pool_hands_out_each_slot_once_and_grows():
    state = np.zeros(1, np.dtype([*pool.FIELDS], align=True))
    arrays = pool.resize(state, 4, 2, False, ())
    record.attach(state, "slots", arrays[0], pool.SLOT, (4,))
    taken = [take(state[0]) for _ in range(3)]
    give_back(state[0], taken.pop(1))
    arrays = pool.resize(state, 8, 2, False, arrays)
    record.attach(state, "slots", arrays[0], pool.SLOT, (8,))
    assert state["free_slots"] == 6
    taken += [take(state[0]) for _ in range(6)]
    assert sorted(taken) == list(range(8))


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((2, 2)), np.zeros(2, np.float32), np.zeros(4)[::2]]
)
def test_only_what_was_declared_can_be_attached(array):
    state = np.zeros(1, np.dtype([("numbers", np.int64)]))
    with pytest.raises(TypeError, match="numbers must be a contiguous array"):
        record.attach(state, "numbers", array, float, (2,))


def test_a_queue_that_is_too_small_grows(monkeypatch):
    """A full queue is an outcome of the loop, never a write past its end."""
    original = CompiledEngine._resize_queue
    scenario = build(MEANS, clock={"rate": 50}, network={"latency": 20.0}, stop={"time": 5})
    expected = run(scenario.model_copy(update={"engine": "compiled"}))
    sizes = []

    def small(self, capacity):
        sizes.append(capacity if sizes else 20)
        original(self, sizes[-1])

    monkeypatch.setattr(CompiledEngine, "_resize_queue", small)
    result = run(scenario.model_copy(update={"engine": "compiled"}))
    assert len(sizes) > 3
    np.testing.assert_array_equal(result.models, expected.models)


def test_classes_that_differ_in_names_alone_are_compiled_apart():
    """``s.up`` and ``s.down`` have the same byte code and constants."""

    class Up:
        def solve(s, i):
            return s.up[i]

    class Down:
        def solve(s, i):
            return s.down[i]

    assert source_of(Up) != source_of(Down)


def test_code_depends_on_the_classes_that_a_class_is_made_from():
    """Built-in ones, by their files, and others of a notebook."""

    class Halved(ModelPropagation):
        kind = "halved"

    def typed(share):
        base = type("Base", (), {"share": share, "__module__": "a_notebook"})
        return type("Own", (base,), {"__module__": "a_notebook"})

    file = inspect.getsourcefile(ModelPropagation)
    assert Path(file).read_bytes() in source_of(Halved)
    assert source_of(typed(0.5)) != source_of(typed(0.25))


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_target_that_holds_from_the_start(mode):
    """Nothing happens, and nobody says that a round could not end."""
    stop = {"time": 5, "metric": "distance", "below": 100}
    for result in both(build(MEANS, algorithm__mode=mode, stop=stop, network={"latency": 0.1})):
        assert result.summary["target"]["time"] == 0.0
        assert not [note for note in result.summary["notes"] if "round" in note]


def test_help_does_not_import_numba():
    code = (
        "import sys; from simulator.cli.commands import commands\n"
        "import simulator.engines.compiled\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
