"""What is recorded, the same by both engines, and what is told of it."""

from __future__ import annotations

import json
import pickle
import re
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from simulator import load_scenario, run
from simulator.engines.compiled import compiled_engine
from simulator.engines.reference import journal
from simulator.errors import SimulatorError
from simulator.runs.result import load_result, save_result
from simulator.runs.story import Recorded, Window, contacts, fates
from simulator.store.recording import Keeper, batches
from simulator.store.store import Store, digest
from tests.conftest import LINEAR, MEANS, build
from tests.test_scenarios import FILES

ENGINES = ("simpy", "compiled")
LOSSY = {
    "latency": {"kind": "lognormal", "mean": 0.3, "sigma": 1.5},
    "drop": 0.2,
    "retransmit_after": 0.3,
}
RECORD = {"every": 1.0, "events": True, "models": True}
ROUNDS = {"algorithm__mode": "sync", "network": LOSSY, "record": RECORD}
#: The counts of trace.csv and the kinds of events that they count.
COUNTED = {
    "communications": "send",
    "delivered": "deliver",
    "dropped": "drop",
    "missed": "miss",
    "stale": "stale",
    "skipped": "skip",
}


def recorded(base=MEANS, engine="simpy", **changes):
    changes = {"network": LOSSY, "record": RECORD, "compute__time": 0.05, **changes}
    return run(build(base, engine=engine, stop={"time": 12}, **changes))


def assert_counts_follow(result):
    """All counts of every sample, from the events up to its instant."""
    events, trace = result.events, result.trace
    assert events["time"].is_monotonic_increasing
    for column, kind in COUNTED.items():
        times = events.loc[events["kind"] == kind, "time"].to_numpy()
        expected = np.searchsorted(times, trace["time"], side="right")
        assert trace[column].tolist()[1:] == expected.tolist()[1:], column
    sends = events[events["kind"] == "send"]
    size = np.append(0, sends["bytes"].cumsum())
    place = np.searchsorted(sends["time"], trace["time"], side="right")
    assert trace["bytes"].tolist()[1:] == size[place].tolist()[1:]


def assert_messages_have_one_life(events):
    """Sent once; then lost, or missed, or delivered once, or still under way; then handled …"""
    lives = {
        kind: events.loc[events["kind"] == kind, ["message", "time", "agent"]].set_index("message")
        for kind in ("send", "drop", "miss", "deliver", "handle", "stale")
    }
    for life in lives.values():
        assert life.index.is_unique
    sent = lives["send"]
    assert sent.index.tolist() == list(range(len(sent)))
    ended = [lives[kind].index for kind in ("drop", "miss", "deliver")]
    assert len(ended[0].union(ended[1]).union(ended[2])) == sum(map(len, ended)) <= len(sent)
    for before, after in (("send", "deliver"), ("deliver", "handle"), ("handle", "stale")):
        early, late = lives[before].loc[lives[after].index], lives[after]
        assert (late["time"] >= early["time"]).all()
        assert ((late["agent"] == early["agent"]) == (before != "send")).all()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_scenarios_have_the_same_events_in_both_engines(file):
    overrides = {"stop.communications": 600, "record.events": True}
    if load_scenario(file).task.kind != "files":  # whose agents are in files
        overrides["task.agents"] = 40
    one, other = (run(load_scenario(file, {**overrides, "engine": e})) for e in ENGINES)
    pd.testing.assert_frame_equal(one.events, other.events)
    assert_messages_have_one_life(one.events)
    if one.summary["mode"] == "sync" or one.scenario.compute.time.mean_value > 0:
        return
    # A sample by communications is taken after an event, and others may have the same time.
    kinds = one.events["kind"].value_counts()
    for column, kind in COUNTED.items():
        assert one.summary[column] == kinds[kind], column


@pytest.mark.parametrize("mode", ["async", "sync"])
@pytest.mark.parametrize("base", [MEANS, LINEAR], ids=["mp", "admm"])
def test_counts_follow_from_events(base, mode):
    result = recorded(base, algorithm__mode=mode)
    assert_counts_follow(result)
    assert_messages_have_one_life(result.events)
    kinds = set(result.events["kind"].unique())
    always = {"send", "drop", "deliver", "handle", "stale", "solve"}
    assert kinds == always | ({"round"} if mode == "sync" else {"tick", "skip"})


def test_the_order_within_an_event():
    """Of mp: deliver, handle, stale; then the reply and its loss; then the solve."""
    events = recorded(compute__time=0.0).events
    stories = set()
    for _, rows in events.groupby("time"):
        words = [
            kind if pd.isna(what) else f"{kind} {what}"
            for kind, what in zip(rows["kind"], rows["what"], strict=True)
        ]
        stories.add(", ".join(words))
    arrival = "deliver request, handle request, "
    assert stories <= {
        "tick, send request",
        "tick, send request, drop request",
        f"{arrival}send reply, solve",
        f"{arrival}send reply, drop reply, solve",
        f"{arrival}stale request, send reply",
        f"{arrival}stale request, send reply, drop reply",
        "deliver reply, handle reply, solve",
        "deliver reply, handle reply, stale reply",
    }
    assert len(stories) >= 6
    replies = events[(events["kind"] == "send") & (events["what"] == "reply")]
    requests = events[events["kind"] == "handle"].set_index("message")
    asked = requests.loc[replies["answers"]]
    assert (asked["what"] == "request").all()
    assert asked["peer"].tolist() == replies["peer"].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_attempts_have_numbers_of_their_own(engine):
    """Their content was sent with the first attempt, also where they come after the round."""
    events = recorded(engine=engine, **ROUNDS).events
    sends = events[events["kind"] == "send"]
    again = sends[sends["time"] > sends["sent_at"]]
    assert len(again) > 20
    firsts = sends[sends["time"] == sends["sent_at"]]
    first = set(zip(firsts["agent"], firsts["peer"], firsts["time"], strict=True))
    assert set(zip(again["agent"], again["peer"], again["sent_at"], strict=True)) <= first
    sent_at = sends.set_index("message")["sent_at"]
    came = events[events["kind"].isin(["deliver", "stale", "handle"])]
    assert came["sent_at"].tolist() == sent_at[came["message"]].tolist()
    rounds = events[events["kind"] == "round"]
    late = events[(events["kind"] == "stale") & (events["sent_at"] < rounds["time"].iloc[-1])]
    assert len(late) > 0


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_chunks_leave_no_trace(monkeypatch, mode):
    """However small the buffers are."""
    whole = recorded(algorithm__mode=mode).events
    monkeypatch.setattr(journal, "ROWS", 500)
    monkeypatch.setattr(compiled_engine, "ROWS", 1)
    for engine in ENGINES:
        pd.testing.assert_frame_equal(recorded(engine=engine, algorithm__mode=mode).events, whole)


def test_recording_changes_nothing_else():
    for engine in ENGINES:
        plain = recorded(engine=engine, record={"every": 1.0})
        result = recorded(engine=engine)
        pd.testing.assert_frame_equal(plain.trace, result.trace)
        assert plain.events is None
        assert plain.history is None
        assert plain.history_samples is None


def test_the_models_of_all_samples():
    result = recorded()
    assert result.history_samples.tolist() == list(range(13))
    assert result.history.shape == (13, 12, 1)
    np.testing.assert_array_equal(result.history[-1], result.models)
    means = np.mean(np.sum((result.history - result.optimum) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(means, result.trace["distance"], rtol=1e-12)


def test_too_many_models_are_thinned():
    keeper = Keeper(most_bytes=10 * 8)
    for k in range(100):
        keeper.add(np.full((1, 1), float(k)))
        kept = keeper.history()
        assert kept.samples[-1] == k
        assert kept.models[:, 0, 0].tolist() == kept.samples.tolist()
        assert len(kept.samples) <= 10
    assert kept.samples.tolist() == [0, 16, 32, 48, 64, 80, 96, 99]
    assert "every 16th sample" in kept.note
    assert "more than 8e-05 MB" in kept.note


def test_models_are_forgotten_with_their_samples():
    """``record.samples`` doubles its interval; models and rows stay together."""
    result = recorded(record={"samples": 5, "models": True})
    assert len(result.trace) <= 11
    assert result.history_samples.tolist() == list(range(len(result.trace)))
    means = np.mean(np.sum((result.history - result.optimum) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(means, result.trace["distance"], rtol=1e-12)


def test_a_run_in_which_nobody_sends():
    result = run(build(MEANS, algorithm={"kind": "solitary"}, record=RECORD))
    assert result.events.empty
    assert result.history.shape == (1, 12, 1)


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        SimulatorError, match=r"record.events: needs pyarrow.*pip install .*\[events\]"
    ):
        recorded()


# --- in the store -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A result, its folder, and the same as the store gives it back."""
    root = tmp_path_factory.mktemp("results")
    result = recorded()
    scenario = result.scenario
    folder = save_result(Store(root), result, full_hash=digest(scenario), wall_time=1.0)
    return result, folder


def copy_of(folder, tmp_path):
    new = tmp_path / folder.name
    new.mkdir()
    for file in folder.iterdir():
        (new / file.name).write_bytes(file.read_bytes())
    return new


def test_a_result_comes_back(stored):
    result, folder = stored
    store = Store(folder.parent)
    again = load_result(store, result.scenario, folder)
    pd.testing.assert_frame_equal(again.events, result.events)
    pd.testing.assert_frame_equal(store.load(folder).events.read(), result.events)
    np.testing.assert_array_equal(again.history, result.history)
    assert again.history_samples.tolist() == result.history_samples.tolist()
    assert {"events.parquet", "history.npz"} <= set(store.manifest(folder)["files"])
    travelled = pickle.loads(pickle.dumps(result.events_file))
    pd.testing.assert_frame_equal(travelled.read(), result.events)


def test_the_story_of_an_agent(stored, here):
    result, folder = stored
    told = here("inspect", folder, "--agent", "3")
    assert told.returncode == 0
    events = result.events
    own = events[(events["agent"] == 3) & (events["kind"] == "send")]
    assert f"{len(own)} send" in told.stdout
    assert "distance to optimum" in told.stdout
    assert "it moved most:" in told.stdout
    table = contacts(Recorded(folder).events(Window(), 3), 3, 12.0).set_index("peer")
    assert table["sent"].sum() == len(own)
    lost = events[(events["kind"] == "drop") & (events["agent"] == 3)]
    assert table["lost"].sum() == len(lost)
    peer = int(table.index[0])
    heard = events[(events["kind"] == "handle") & (events["agent"] == 3) & (events["peer"] == peer)]
    assert table.loc[peer, "age"] == 12.0 - heard["sent_at"].max()


def test_a_window_holds_for_moves_too(stored, here):
    _, folder = stored
    for begin, end in ((8, 11), (3.5, 4.2)):
        told = here("inspect", folder, "--agent", "3", "--from", begin, "--until", end).stdout
        spans = [tuple(map(float, span)) for span in re.findall(r" in ([\d.]+)–([\d.]+) s:", told)]
        assert all(begin <= first < last <= end for first, last in spans)
        assert bool(spans) == (end == 11)  # there is a sample every second


def test_a_window_in_which_nothing_happens(stored, here):
    for more in ([], ["--agent", "3"], ["--link", "3,4"]):
        told = here("inspect", stored[1], *more, "--from", "100")
        assert (told.returncode, told.stderr) == (0, "")
    assert "nothing happened" in here("inspect", stored[1], "--from", "100").stdout


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "-1", "x"])
@pytest.mark.parametrize("command", ["inspect", "trace", "report"])
def test_times_are_numbers_of_seconds(stored, here, command, value):
    told = here(command, stored[1], "--from", value)
    assert (told.returncode, told.stdout) == (2, "")
    assert "--from" in told.stderr
    assert value in told.stderr


def test_the_story_of_a_link(stored, here):
    result, folder = stored
    told = here("inspect", folder, "--link", "3,4", "--from", "2", "--until", "9")
    assert told.returncode == 0
    table = fates(Recorded(folder).events(Window(2, 9), 3, 4))
    assert f"{len(table)} messages" in told.stdout
    assert table["sent"].between(2, 9).all()
    assert set(table["from"]) | set(table["to"]) == {3, 4}
    whole = fates(result.events)
    counts = whole["fate"].value_counts()
    assert counts["lost"] == result.summary["dropped"]
    assert counts["under way"] == result.summary["in_flight"]
    assert counts["stale"] == result.summary["stale"]


def test_all_agents_and_csv(stored, here, tmp_path):
    result, folder = stored
    told = here("inspect", folder)
    assert f"{result.summary['communications']} send" in told.stdout
    printed = here("inspect", folder, "--agent", "3", "--csv", "-")
    assert printed.stdout.splitlines()[0].startswith("time,kind,agent,peer,message,what")
    assert here("inspect", folder, "--csv", tmp_path / "all.csv").returncode == 0
    table = pd.read_csv(tmp_path / "all.csv")
    assert table["message"].tolist() == result.events["message"].tolist()
    assert table["time"].tolist() == result.events["time"].tolist()


@pytest.mark.parametrize("window", [(), ("--from", "3", "--until", "8")], ids=["whole", "part"])
def test_a_trace_for_perfetto(stored, here, tmp_path, window):
    result, folder = stored
    folder = copy_of(folder, tmp_path)
    told = here("trace", folder, *window)
    assert told.returncode == 0
    assert f"{folder / 'trace.json'}: " in told.stdout

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    text = (folder / "trace.json").read_text(encoding="utf-8")
    entries = json.loads(text, parse_constant=refuse)["traceEvents"]
    begun = [e["id"] for e in entries if e["ph"] == "s"]
    ended = [e["id"] for e in entries if e["ph"] == "f"]
    lost = [e["args"]["message"] for e in entries if e["name"] in ("drop", "miss")]
    assert len(set(begun)) == len(begun)
    assert sorted(begun) == sorted([*ended, *(set(lost) & set(begun))])
    if not window:
        assert len(begun) == result.summary["communications"]
        assert len(lost) == result.summary["dropped"]
    assert {e["tid"] for e in entries if e["ph"] == "X"} <= set(range(1, 13))


# --- what may be wrong ----------------------------------------------------------------------------
@pytest.mark.parametrize("command", [["inspect"], ["trace", "-o", "x.json"]], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("missing", "nothing"),
        ("damaged", "damaged"),
        ("newer", "newer version"),
        ("no manifest", "no result is stored"),
    ],
)
def test_results_that_are_of_no_use(stored, here, tmp_path, command, fault, words):
    folder = tmp_path / "nothing"
    if fault != "missing":
        folder = copy_of(stored[1], tmp_path)
    if fault == "damaged":
        content = bytearray((folder / "events.parquet").read_bytes())
        content[100] ^= 1
        (folder / "events.parquet").write_bytes(content)
    if fault == "newer":
        text = (
            (folder / "manifest.json")
            .read_text()
            .replace('"schema_version": ', '"schema_version": 9')
        )
        (folder / "manifest.json").write_text(text)
    if fault == "no manifest":
        (folder / "manifest.json").unlink()
    told = here(command[0], folder, *command[1:], cwd=tmp_path)
    assert told.returncode == 2
    assert words in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_a_result_without_events(here, tmp_path):
    result = recorded(record={"every": 1.0})
    folder = save_result(Store(tmp_path), result, full_hash=digest(result.scenario), wall_time=1.0)
    told = here("inspect", folder)
    assert (told.returncode, len(told.stderr.splitlines())) == (2, 1)
    assert "no events were recorded; run it again with --set record.events=true" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--agent", "nobody"], "no agent 'nobody'; its agents are 0, 1, 2, 3, 4 and"),
        (["--link", "3"], "must be two agents"),
        (["--link", "3,3"], "two different agents"),
        (["--from", "5", "--until", "2"], "must not be after"),
        (["--agent", "1", "--link", "1,2"], "not both"),
    ],
)
def test_wrong_questions(stored, here, arguments, words):
    told = here("inspect", stored[1], *arguments)
    assert (told.returncode, len(told.stderr.splitlines())) == (2, 1)
    assert words in told.stderr


@pytest.mark.verify
def test_memory_stays_flat():
    """Ten times as many events in hardly more memory."""
    peaks, counts = [], []
    for time in (1e3, 1e4):
        record = {"every": 1e3, "events": True}
        changes = {"engine": "compiled", "clock": {"rate": 20.0}, "record": record}
        tracemalloc.start()
        result = run(build(MEANS, stop={"time": time}, **changes))
        peaks.append(tracemalloc.get_traced_memory()[1])
        counts.append(sum(map(len, batches(result.events_file.path))))
        tracemalloc.stop()
    assert counts[1] > 9 * counts[0] > 1e6
    assert peaks[1] < 1.2 * peaks[0]
