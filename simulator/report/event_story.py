"""What a page shows of a run's events, found in one pass over the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.machinery.code_cache import is_ours
from agents.protocols import protocol_of
from simulator.engines.event_rows import (
    DELIVER,
    DROP,
    HANDLE,
    KINDS,
    MISS,
    SEND,
    SKIP,
    SOLVE,
    STALE,
    TICK,
    WHAT,
)
from simulator.engines.setup import Setup
from simulator.problem.problem import Floats, Problem
from simulator.runs.result import Result
from simulator.scenario.network import RateDrop
from simulator.scenario.schema import Scenario
from simulator.store.recording import batches

#: The columns that are read.
COLUMNS = ("time", "kind", "agent", "peer", "message", "what", "answers", "sent_at")
#: Messages are drawn from so many events at most.
MOST_EVENTS = 20_000
#: What is counted for each agent, and how the page calls it.
COUNTED = {
    SEND: "sent",
    DELIVER: "received",
    DROP: "lost",
    MISS: "missed",
    STALE: "stale",
    SOLVE: "solves",
    TICK: "ticks",
    SKIP: "skipped",
}
#: A message's fate, as the page's script has it.
UNDER_WAY, ARRIVED, LOST = 0, 1, 2


def read_batches(path: Path) -> Iterator[pd.DataFrame]:
    """The rows of events.parquet, some at a time, with numbers for words; −1 where there is none.

    ``kind`` and ``what`` are positions in KINDS and WHAT.
    """
    for table in batches(path, COLUMNS):
        numbers = {
            name: table[name].astype(pd.CategoricalDtype(list(words))).cat.codes
            for name, words in (("kind", KINDS), ("what", WHAT))
        }
        yield table.assign(**numbers)


class Messages:
    """The messages that were sent in a window of time, for the picture in motion."""

    def __init__(self, start: float):
        self.start, self.end = start, 0.0
        #: How many events the window has; with MOST_EVENTS it is full.
        self.events = 0
        self._sends: list[pd.DataFrame] = []
        self._ends: list[pd.DataFrame] = []

    def take(self, batch: pd.DataFrame) -> None:
        """Look through a batch: sends within the window, and what became of them later."""
        window = batch[batch["time"] >= self.start].head(MOST_EVENTS - self.events)
        if len(window):
            self.events += len(window)
            self.end = float(window["time"].iloc[-1])
        self._sends.append(window[window["kind"] == SEND])
        # Numbers ascend in the order of sending, so what is asked for is a range.
        numbers = pd.concat(self._sends)["message"]
        ours = batch["message"].between(numbers.min(), numbers.max())
        self._ends.append(batch[ours & batch["kind"].isin((DROP, MISS, DELIVER))])

    @property
    def rows(self) -> pd.DataFrame:
        """One row a message: time, agent, peer and what, its fate, and until when it travels."""
        ends = pd.concat(self._ends)
        fates = {
            "message": ends["message"],
            "fate": np.where(ends["kind"] == DELIVER, ARRIVED, LOST),
            "until": ends["time"],
        }
        rows = pd.concat(self._sends).merge(pd.DataFrame(fates), "left", "message")
        return rows.fillna({"fate": UNDER_WAY, "until": np.inf})


@dataclass
class Story:
    """All that a page tells of the events."""

    #: Of each agent, by the names of COUNTED; kinds that never happened are left out.
    counts: dict[str, NDArray[np.int64]]
    delays: Histogram
    #: The ages of all links at the end, and each agent's mean at some times, (times, n).
    ages: Histogram
    mean_ages: Floats
    messages: Messages


class Knowledge:
    """When what each agent knows of each neighbour was sent: 0 before anything was heard."""

    def __init__(self, problem: Problem):
        W, n = problem.W, problem.n
        self.n = n
        self.owner = np.repeat(np.arange(n), np.diff(W.indptr))
        self.keys = self.owner.astype(np.int64) * n + W.indices
        self.sent_at = np.zeros(W.nnz)
        self.links = np.maximum(np.diff(W.indptr), 1)

    def hear(self, told: pd.DataFrame) -> None:
        """Fresh messages, in order: the last one of a link counts."""
        keys = told["agent"].to_numpy(dtype=np.int64) * self.n + told["peer"].to_numpy()
        self.sent_at[np.searchsorted(self.keys, keys)] = told["sent_at"]

    def mean_ages(self, now: float) -> Floats:
        """The mean age of what each agent knows, (n,)."""
        total = np.bincount(self.owner, weights=now - self.sent_at, minlength=self.n)
        return np.asarray(total / self.links)


def tell(result: Result, times: Floats, window: float) -> Story:
    """Go through the events of a run once; ``times`` are those at which ages are wanted, ascending.

    Messages are kept from the time ``window`` on.
    """
    problem, rule = result.problem, result.scenario.algorithm.rule
    assert result.events_file is not None
    assert rule is not None
    protocol = protocol_of(rule, result.scenario.algorithm.protocol)
    counts = {kind: np.zeros(problem.n, dtype=np.int64) for kind in COUNTED}
    knowledge, messages, delays = Knowledge(problem), Messages(window), Histogram()
    sent = np.zeros(result.summary["communications"])  # when each message was sent
    ages = np.empty((len(times), problem.n))
    done = 0
    for batch in _whole(read_batches(result.events_file.path)):
        for kind, count in counts.items():
            count += np.bincount(batch["agent"][batch["kind"] == kind], minlength=problem.n)
        sends = batch[batch["kind"] == SEND]
        sent[sends["message"]] = sends["time"]
        arrived = batch[batch["kind"] == DELIVER]
        delays.add(arrived["time"].to_numpy() - sent[arrived["message"]])
        messages.take(batch)
        told = _told(batch, sent, protocol.versioned)
        # A sample is taken after all events up to and including its instant.
        while done < len(times) and len(batch) and times[done] < batch["time"].iloc[-1]:
            before = told["time"] <= times[done]
            knowledge.hear(told[before])
            ages[done] = knowledge.mean_ages(times[done])
            told, done = told[~before], done + 1
        knowledge.hear(told)
    for row in range(done, len(times)):
        ages[row] = knowledge.mean_ages(times[row])
    known = Histogram()
    known.add(result.summary["simulated_time"] - knowledge.sent_at)
    happened = {COUNTED[kind]: count for kind, count in counts.items() if count.any()}
    return Story(happened, delays, known, ages, messages)


def _told(batch: pd.DataFrame, sent: Floats, solves_first: bool) -> pd.DataFrame:
    """The rows at which an agent learns something of ``peer``, and when that was sent.

    What is handled and not stale is known; but who solves before it answers takes in a request
    when it answers.
    """
    kind, what = batch["kind"], batch["what"]
    heard = (kind == HANDLE) & (kind.shift(-1) != STALE)
    if solves_first:
        answered = (kind == SEND) & (what == WHAT.index("reply"))
        asked = pd.Series(sent[batch["answers"][answered]], batch.index[answered])
        batch = batch.assign(sent_at=asked.reindex(batch.index).fillna(batch["sent_at"]))
        heard = answered | (heard & (what != WHAT.index("request")))
    return batch[heard]


def _whole(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The same rows, cut so that no ``handle`` is parted from its ``stale``."""
    kept: list[pd.DataFrame] = []
    for each in batches:
        batch = pd.concat([*kept, each], ignore_index=True)
        cut = len(batch) - int(batch["kind"].tail(1).eq(HANDLE).any())
        kept = [batch[cut:]]
        yield batch[:cut]
    yield from kept


# --- distributions --------------------------------------------------------------------------------
#: Bins per factor of ten, from 10^-9 to 10^9 seconds.
_BINS, _LOW, _HIGH = 12, -9, 9
_EDGES = np.logspace(_LOW, _HIGH, _BINS * (_HIGH - _LOW) + 1)
#: Draws from a law where there is no formula: enough for a line that looks smooth.
_DRAWS = 400_000


@dataclass
class Histogram:
    """How often values fell into logarithmic bins; values of (nearly) 0 are counted apart."""

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(_EDGES) - 1, dtype=np.int64)
    )
    zeros: int = 0
    total: int = 0
    sum: float = 0.0

    def add(self, values: Floats) -> None:
        """More values."""
        self.counts += np.histogram(values, _EDGES)[0]
        self.zeros += int((values < _EDGES[0]).sum())
        self.total += len(values)
        self.sum += float(values.sum())

    @property
    def mean(self) -> float:
        """The mean of all values; NaN where there are none."""
        return self.sum / self.total if self.total else float("nan")

    @property
    def shares(self) -> Floats:
        """The share of all values in each bin."""
        return self.counts / max(self.total, 1)


def together(*given: Histogram) -> tuple[Floats, list[Floats]]:
    """The bins between which any of them has values, (k + 1) edges and (k,) shares each."""
    used = np.flatnonzero(np.any([each.counts > 0 for each in given], axis=0))
    if not len(used):
        return _EDGES[:1], [np.zeros(0) for _ in given]
    inside = slice(used[0], used[-1] + 1)
    return _EDGES[inside.start : inside.stop + 1], [each.shares[inside] for each in given]


def delay_law(setup: Setup) -> Histogram:
    """The latencies that the scenario's law gives to messages on these links."""
    rng = np.random.default_rng(0)
    found = Histogram()
    found.add(_latencies(setup, rng, rng.integers(0, len(setup.neighbour), _DRAWS)))
    return found


def _latencies(setup: Setup, rng: np.random.Generator, edges: NDArray[np.int64]) -> Floats:
    delays = setup.scenario.network.latency.draw(rng, len(edges))
    for factors, lasting, places in (
        (setup.latency_factors, setup.lasting_latency, setup.owners[edges]),
        (setup.link_factors, setup.lasting_links, edges),
    ):
        if factors is not None:
            delays = delays * factors[places]
        if lasting is not None:
            delays = delays * lasting.law.draw(rng, len(edges))
    return delays


def age_law(setup: Setup, end: float) -> Histogram | None:
    """How old copies are at ``end`` if agents meet as their clocks have it and are never busy.

    Agent i hears from neighbour j when j contacts it and the message arrives, and when it
    contacts j and both messages arrive: at a rate

        r = λ_j π_j^i (1 − q) + λ_i π_i^j (1 − q)²,

    so the age is exponential plus a delay, and ``end`` where nothing was heard yet; r has the first
    term alone where nobody answers.  Rounds, where nobody chooses when to speak, have no such law,
    nor have regular clocks, peers in turn, plugins' protocols, and networks whose agents come and
    go.
    """
    scenario = setup.scenario
    lives = scenario.availability is not None or scenario.network.partitions
    in_order = scenario.clock.ticks == "regular" or setup.peers == "turn"
    if scenario.algorithm.mode != "async" or lives or in_order or not is_ours(setup.protocol):
        return None
    kept = 1 - _loss(scenario)
    chosen = setup.rates[setup.owners] * _chances(setup)
    if setup.peers == "all":
        rates = setup.rates[setup.neighbour] * kept
    elif setup.protocol.tells_all:
        rates = chosen[setup.back] * kept
    else:
        rates = chosen[setup.back] * kept + chosen * kept**2
    rng = np.random.default_rng(1)
    edges = rng.integers(0, len(rates), _DRAWS)
    with np.errstate(divide="ignore"):
        ages = rng.exponential(size=_DRAWS) / rates[edges]
    found = Histogram()
    found.add(np.minimum(ages + _latencies(setup, rng, setup.back[edges]), end))
    return found


def _chances(setup: Setup) -> Floats:
    """π_i^j of each directed edge."""
    weights: Any = np.ones(len(setup.neighbour))
    if setup.peers == "weighted":
        weights = setup.problem.W.data
    return weights / np.bincount(setup.owners, weights)[setup.owners]


def _loss(scenario: Scenario) -> float:
    """The share of messages that is lost, in the long run."""
    drop = scenario.network.drop
    if isinstance(drop, RateDrop):
        return drop.rate
    whole = drop.mean_good + drop.mean_bad
    return (drop.drop_good * drop.mean_good + drop.drop_bad * drop.mean_bad) / whole
