"""Small runs, event for event: in both engines, twice, and as plain Python without compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache, partial
from typing import Any

import pandas as pd

from agents.machinery.compiling import JIT
from simulator.conformance.subjects import CheckError, NotApplicableError, Subject, check
from simulator.errors import ScenarioError, SimulatorError
from simulator.runs.plugins import load_plugins
from simulator.runs.result import Result
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.scenario.files import scenario_values
from simulator.scenario.kinds import BASES
from simulator.scenario.schema import Scenario

MODES = {"async": "gossip", "sync": "rounds"}
#: What plain Python may differ by, where the compiler orders sums in another way.
ROUNDING = 1e-9
#: A run as tables: events (where pyarrow is there to record them), trace and models.
Tables = dict[str, pd.DataFrame]


# --- comparing ------------------------------------------------------------------------------------
def tables_of(result: Result) -> Tables:
    """What two runs must have in common."""
    found = {"events": result.events, "trace": result.trace, "models": pd.DataFrame(result.models)}
    return {name: table.rename(columns=str) for name, table in found.items() if table is not None}


def difference(one: Tables, other: Tables, rounding: float = 0.0) -> str | None:
    """Where two runs differ first: in their events, else by more than rounding errors."""
    for name in one:
        a, b = one[name], other[name]
        for column in a:
            pairs = zip(a[column].tolist(), b[column].tolist(), strict=False)
            for row, (x, y) in enumerate(pairs):
                if x == y or (x != x and y != y):  # NaN
                    continue
                exact = name == "events" or column == "time" or not isinstance(x, float)
                if exact or not abs(x - y) <= rounding * (1 + abs(x)):
                    return f"{name} differ, the first time in row {row}: {column} {x} and {y}"
        if a.shape != b.shape:
            return f"{name} differ: {len(a)} rows and {len(b)}"
    return None


# --- running --------------------------------------------------------------------------------------
def modes_of(subject: Subject, changes: dict[str, Any] | None = None) -> dict[str, Scenario]:
    """The subject's world with changes, in gossip and in rounds, where it allows them."""
    found, reasons = {}, []
    for mode, word in MODES.items():
        try:
            found[word] = load_scenario(
                subject.scenario, {"algorithm.mode": mode, **(changes or {})}
            )
        except ScenarioError as error:
            reasons.append(str(error).splitlines()[0])
    if not found:
        raise NotApplicableError(reasons[0])
    return found


def same_in_both(subject: Subject, counts: tuple[str, ...], changes: dict[str, Any]) -> str:
    """Compare the engines in the subject's world with changes; what the runs counted."""
    if not JIT:
        raise NotApplicableError("nothing is compiled under NUMBA_DISABLE_JIT=1")
    told = []
    for word, scenario in modes_of(subject, changes).items():
        simpy, compiled = (
            run(scenario.model_copy(update={"engine": engine})) for engine in ("simpy", "compiled")
        )
        found = difference(tables_of(simpy), tables_of(compiled))
        if found:
            raise CheckError(f"{word}, simpy and compiled: {found}")
        summary = simpy.summary
        seen = [f"{summary[name]} {name}" for name in counts if summary[name]]
        told.append(", ".join([f"{word}: {summary['communications']} messages", *seen]))
    return "; ".join(told)


_STAYS: dict[str, Any] = {"kind": "on_off", "on": 3.0, "off": 1.5}
#: For a while what is sent from one half to the other is lost.
_CUT: dict[str, Any] = {"from": 1, "until": 4, "groups": 2}
#: Rules, and protocols with a rule that follows them.
FOLLOWED = ("rules", "protocols")
#: What is compared, for whom, what is counted of it, and the keys that make it happen.
_WORLDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "event by event": (tuple(BASES), (), {}),
    "few gradient steps": (("losses",), (), {"algorithm.primal": {"gradient_steps": 3}}),
    "computing takes time": (FOLLOWED, ("skipped",), {"compute.time": 0.3}),
    "messages are dropped": (FOLLOWED, ("dropped", "stale"), {"network.drop": 0.3}),
    "neighbours say hello": (FOLLOWED, (), {"algorithm.start": "hello"}),
    "agents come and go": (
        FOLLOWED,
        ("missed",),
        {"availability": _STAYS, "network.drop": 0.1},
    ),
    "regular clocks, rounds by neighbours": (
        FOLLOWED,
        ("dropped", "stale"),
        {
            "clock.ticks": "regular",
            "clock.peers": "turn",
            "rounds.barrier": "neighbours",
            "compute.time": 0.15,
            "network.drop": 0.2,
        },
    ),
    "partitions": (FOLLOWED, ("dropped",), {"network.partitions": [_CUT]}),
    "agents forget, and all of that at once": (
        FOLLOWED,
        ("dropped", "missed", "stale", "skipped"),
        {
            "availability": {**_STAYS, "forget": True},
            "compute.time": 0.15,
            "clock.rate": 3.0,
            "network.drop": 0.1,
            "network.partitions": [_CUT],
        },
    ),
}
for _what, (_families, _counts, _changes) in _WORLDS.items():
    _compare = partial(same_in_both, counts=_counts, changes=_changes)
    check(f"both engines, {_what}", *_families)(_compare)


@cache
def reference(subject: Subject) -> dict[str, Tables]:
    """What comes out of its world as it is, in each mode, which several checks compare with."""
    return {word: tables_of(run(scenario)) for word, scenario in modes_of(subject).items()}


@check("the same seed, the same run", *BASES)
def repeated(subject: Subject) -> str:
    """Once more in this process."""
    for word, scenario in modes_of(subject).items():
        found = difference(reference(subject)[word], tables_of(run(scenario)))
        if found:
            raise CheckError(f"{word}, twice: {found}")
    return ""


# --- without compilation --------------------------------------------------------------------------
@check("plain Python, as a debugger sees it", *BASES)
def uncompiled(subject: Subject) -> str:
    """With NUMBA_DISABLE_JIT=1: the same events, and models but for rounding errors."""
    if subject.plugins is not None and subject.plugins.files is None:
        raise NotApplicableError("a class that has no file of its own runs in this process only")
    number = subject.everybody.index(subject)
    for word, answer in _uncompiled(subject.everybody[0])[number].items():
        if isinstance(answer, str):
            raise CheckError(f"{word}: {answer}")
        plain = {name: pd.DataFrame(table) for name, table in answer.items()}
        found = difference(reference(subject)[word], plain, ROUNDING)
        if found:
            raise CheckError(f"{word}, compiled and not: {found}")
    return ""


@cache
def _uncompiled(first: Subject) -> list[dict[str, Any]]:
    """What comes out of everybody's world in one process that compiles nothing, in each mode."""
    worlds = [
        {word: scenario_values(scenario) for word, scenario in modes_of(subject).items()}
        for subject in first.everybody
    ]
    references = [] if first.plugins is None else list(first.plugins.references)
    code = "from simulator.conformance.run_checks import answer; answer()"
    paths = os.pathsep.join(path or os.curdir for path in sys.path)
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", code],
        input=json.dumps({"plugins": references, "worlds": worlds}),
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
    )
    if done.returncode:
        raise CheckError(done.stderr.strip().splitlines()[-1])
    return list(json.loads(done.stdout))


def answer() -> None:
    """Run what standard input asks for: the other process of ``_uncompiled``."""
    asked = json.load(sys.stdin)
    plugins = load_plugins(asked["plugins"])

    def tables(values: dict[str, Any]) -> Any:
        try:
            found = tables_of(run(load_scenario(values, plugins=plugins)))
        except SimulatorError as error:
            return str(error)
        return {name: table.to_dict("list") for name, table in found.items()}

    worlds = asked["worlds"]
    json.dump(
        [{word: tables(values) for word, values in each.items()} for each in worlds], sys.stdout
    )
