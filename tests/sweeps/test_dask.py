"""A real Dask scheduler and two real worker processes on the loopback address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from simulator import compare, run, sweep
from simulator.errors import SimulatorError
from simulator.runs.tasks import Done, pack
from simulator.sweeps.plan import make_plan
from simulator.sweeps.request import Request
from simulator.sweeps.workers import DaskCrew, run_all
from tests.conftest import ROOT
from tests.sweeping import GRID, TINY, table_bytes, write_tiny

distributed = pytest.importorskip("distributed")


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path):
        self.folder, self.processes = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        while not file.exists() or not file.stat().st_size:
            time.sleep(0.02)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            self.address = client.scheduler.address
            self.workers = [self.add_worker() for _ in range(2)]
            client.wait_for_workers(2)

    def _start(self, what: str, *words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, *map(str, words)]
        process = subprocess.Popen(
            [*command, "--no-dashboard"],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        words = ("--no-nanny", "--nthreads", "1", "--local-directory", self.folder)
        return self._start("worker", self.address, *words)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


def test_dask_gives_the_same_bytes_as_one_local_worker(cluster: Cluster, tmp_path: Path):
    scenario = write_tiny(tmp_path)
    here = sweep(scenario, GRID, seeds=2, jobs=1, out=tmp_path / "here", figures=False)
    there = sweep(
        scenario, GRID, seeds=2, dask=cluster.address, out=tmp_path / "there", figures=False
    )
    assert table_bytes(there.folder) == table_bytes(here.folder)
    assert there.failed == 0


HELPER = "HALF = 0.5\n"
PLUGIN = """
from agents.rule import Rule, per_agent
from halves import HALF

class Halfway(Rule):
    kind = "halfway"
    heard = per_agent("p")

    def absorb(s, i, k, received, sent):
        for x in range(s.p):
            s.heard[i, x] = received[x]

    def solve(s, i):
        for x in range(s.p):
            s.models[i, x] += HALF * (s.heard[i, x] - s.models[i, x])
"""


def test_every_way_to_ask_for_a_run_is_one_run(cluster: Cluster, tmp_path: Path):
    """A run, a sweep here, in two processes, on Dask, a comparison: one hash, computed once."""
    text = TINY.replace("kind: mp, alpha: 0.8", "kind: halfway") + (
        "engine: compiled\nrecord: {samples: 100}\nclock: {rate: 3}\n"
    )
    scenario, plugin = write_tiny(tmp_path, text), tmp_path / "halfway.py"
    (tmp_path / "halves.py").write_text(HELPER)
    plugin.write_text(PLUGIN)
    out = tmp_path / "results"
    how = {"plugins": plugin, "out": out, "progress": False}
    target = "l2_error=0.1"
    level = {"stop.metric": "l2_error", "stop.below": 0.1}
    for mode in ("async", "sync"):
        run(scenario, {"algorithm.mode": mode, **level}, **how)
    first = {path: path.stat().st_mtime_ns for path in out.glob("tiny-*/manifest.json")}
    assert len(first) == 2
    modes = {"algorithm.mode": ["async", "sync"]}
    ways = ({"jobs": 1}, {"jobs": 2}, {"dask": cluster.address})
    for way in ways:
        sweep(scenario, modes, target=target, figures=False, **way, **how)
        # With the scenario's own end, which a comparison otherwise leaves aside.
        limit = {"limit_time": 20}
        made = compare(scenario, target=target, figures=False, **limit, **way, **how)
        assert set(made.runs["folder"]) == {path.parent.name for path in first}
    assert first == {path: path.stat().st_mtime_ns for path in out.glob("tiny-*/manifest.json")}
    tables = []
    for number, way in enumerate(ways):  # and computed by each, they are the same bytes
        elsewhere = how | {"out": tmp_path / str(number)}
        made = sweep(scenario, modes, seeds=2, target=target, figures=False, **way, **elsewhere)
        assert made.failed == 0
        tables.append(table_bytes(made.folder))
    assert tables[0] == tables[1] == tables[2]


def test_a_dask_worker_that_is_killed_does_no_harm(cluster: Cluster, tmp_path: Path):
    """Runs of a second or so: one worker is killed with some in its hands."""
    scenario = write_tiny(tmp_path, TINY.replace("time: 20", "time: 2000"))
    plan = make_plan(Request(scenario, seeds=6))
    jobs = [partial(pack, run.scenario) for run in plan.runs]
    outcomes, killed = {}, 0
    with DaskCrew(cluster.address) as crew:
        for number, outcome in run_all(jobs, crew):
            if outcome is not None:
                outcomes[number] = outcome
                if not killed:
                    killed += 1
                    os.kill(cluster.workers[0].pid, signal.SIGKILL)
    assert killed == 1
    assert sorted(outcomes) == list(range(6))
    assert all(isinstance(outcome, Done) for outcome in outcomes.values())


@pytest.mark.parametrize(
    "address", ["nothing-of-the-kind", "", "tls://127.0.0.1:1", "ucx://127.0.0.1:1", "foo://x"]
)
def test_an_address_that_is_no_schedulers(address: str):
    with pytest.raises(SimulatorError, match=f"--dask {address}: cannot be used: .*allowed"):
        DaskCrew(address)
