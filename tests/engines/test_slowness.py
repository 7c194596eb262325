"""Factors that last for a while: their law, how they are correlated, and both ends of time scales.

Intervals follow from the law itself: a test fails by chance with a probability of about 1e-5.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from scipy import stats

from agents.parameters import Probability
from simulator.errors import ScenarioError
from simulator.runs.plugins import load_plugins
from simulator.runs.run import run
from simulator.scenario.laws import Law, Q
from tests.conftest import MEANS, build

SURE, SIGMAS = 1e-5, 4.4
SIGMA = 1.5
FACTOR = {"kind": "lognormal", "mean": 1.0, "sigma": SIGMA}
LAW = stats.lognorm(SIGMA, scale=np.exp(-(SIGMA**2) / 2))
LATENCY = {"kind": "constant", "value": 1e-3}


def ring(plugins=None, **changes):
    """Gossip of many agents on a ring, whose links are used some four times a second."""
    graph = {"kind": "networkx", "generator": "cycle_graph"}
    base = {"task__agents": 2000, "graph": graph, "engine": "compiled"}
    base |= {"record": {"every": 100.0, "events": True}, "stop": {"time": 10.0}}
    return build(MEANS, plugins=plugins, **base | changes)


def slow(whose, **changes):
    """Latencies of 1 ms times a factor: what they are shows the factor."""
    return {"latency": {**LATENCY, whose: {**FACTOR, **changes}}}


def uses(scenario, *whose):
    """What was sent when, in order, and how long it took, with the use before of the same."""
    events = run(scenario).events
    sent = events[(events["kind"] == "send") & (events["time"] < 8)].set_index("message")
    there = events[events["kind"] == "deliver"].set_index("message")["time"]
    found = sent[["time", "agent", "peer"]].astype(float).assign(took=there - sent["time"])
    assert found["took"].notna().all()  # what was sent in the last 2 s may be under way
    found["one"] = found[["agent", "peer"]].min(axis=1)
    found["other"] = found[["agent", "peer"]].max(axis=1)
    before = found.sort_index().groupby(list(whose))[["time", "took"]].shift()
    return found.assign(since=found["time"] - before["time"], before=before["took"])


def same(one, other):
    """Are they, but for the rounding of times from which others were taken?"""
    return np.isclose(one, other, rtol=1e-6, atol=1e-14)


LINKS = ("one", "other")


# --- the law ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("whose", "names"), [("per_link", LINKS), ("per_agent", ("agent",))])
def test_the_law_is_the_same_at_any_instant(whose, names):
    """Of independent links or agents: at their first use, and at their first after 3 s."""
    lasting = slow(whose, lasts=2.0)
    found = uses(ring(network=lasting), *names)
    for begin in (0.0, 3.0):
        first = found[found["time"] >= begin].groupby(list(names))["took"].first()
        assert len(first) > 1900
        assert stats.kstest(first / 1e-3, LAW.cdf).pvalue > SURE


@pytest.mark.parametrize("lasts", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("whose", "names"), [("per_link", LINKS), ("per_agent", ("agent",))])
def test_it_is_kept_with_the_chance_that_its_time_says(whose, names, lasts):
    """The number of kept ones is Σ exp(−Δ/τ), with variance Σ p (1 − p): uses are independent."""
    found = uses(ring(network=slow(whose, lasts=lasts)), *names).dropna()
    kept = same(found["took"], found["before"])
    p = np.exp(-found["since"] / lasts)
    for part in (found["since"] < 0.1, (found["since"] >= 0.1), found["since"] >= 0):
        off = kept[part].sum() - p[part].sum()
        assert abs(off) < SIGMAS * np.sqrt((p * (1 - p))[part].sum()) + 1


@pytest.mark.parametrize("lag", [0.3, 1.0, 3.0])
def test_the_correlation_falls_exponentially(lag):
    """corr(log f(0), log f(Δ)) = exp(−Δ/τ), over independent links.

    With x and y standard normal and equal with probability p, xy has the mean p and the variance
    3p + (1 − p) − p².
    """
    found = uses(ring(network=slow("per_link", lasts=1.0)), *LINKS)
    z = (np.log(found["took"] / 1e-3) + SIGMA**2 / 2) / SIGMA
    links = found.assign(z=z).sort_index().groupby(list(LINKS))[["time", "z"]]
    past = found["time"] - links.transform("first")["time"]
    x, y = links.first(), found.assign(z=z)[past > lag].groupby(list(LINKS))[["time", "z"]].first()
    p = np.exp(-(y["time"] - x["time"])).dropna()
    off = (x["z"] * y["z"]).reindex(p.index).sum() - p.sum()
    assert abs(off) < SIGMAS * np.sqrt((1 + 2 * p - p**2).sum())


def test_computing_has_a_factor_of_its_own():
    """admm solves at each tick: how long that takes is the factor that it draws or keeps."""
    base = {"algorithm": {"kind": "admm", "mu": 0.1}, "clock": {"rate": 1.0}, "task__agents": 500}
    time = {"kind": "constant", "value": 1e-3, "per_agent": {**FACTOR, "lasts": 1.0}}
    base |= {"network": slow("per_agent", lasts=1.0), "compute": {"time": time}}
    events = run(ring(**base, network__drop=1.0)).events
    events = events[events["kind"].isin(["tick", "solve"])].sort_values(["agent", "time"])
    begins, ends = events[events["kind"] == "tick"], events[events["kind"] == "solve"]
    count = ends.groupby("agent")["time"].count()
    begins = begins.groupby("agent").head(10**9)
    place = begins.groupby("agent").cumcount()
    begins = begins[place < begins["agent"].map(count).fillna(0)]
    took = ends["time"].to_numpy() - begins["time"].to_numpy()
    agent, when = begins["agent"].to_numpy(), begins["time"].to_numpy()
    again = agent[1:] == agent[:-1]
    kept = same(took[1:], took[:-1])[again]
    p = np.exp(-(when[1:] - when[:-1]))[again]
    assert abs(kept.sum() - p.sum()) < SIGMAS * np.sqrt((p * (1 - p)).sum())


# --- both ends ----------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_what_lasts_for_ever_stays(mode, engine):
    """Bit for bit: the first factors are those from ``rates``, whatever else is drawn."""
    runs = []
    for lasts in ({"lasts": 1e90}, {}):
        per = {**FACTOR, **lasts}
        network = {"latency": {**LATENCY, "per_agent": per, "per_link": per}, "drop": 0.1}
        time = {"kind": "exponential", "mean": 0.1, "per_agent": per}
        scenario = ring(
            task__agents=30, network=network, compute={"time": time}, algorithm__mode=mode
        )
        runs.append(run(scenario.model_copy(update={"engine": engine})))
    assert runs[0].events.equals(runs[1].events)
    assert runs[0].models.tobytes() == runs[1].models.tobytes()


def test_what_hardly_lasts_passes():
    """After time 0, a factor of a link is a law that each message draws."""
    found = uses(ring(network=slow("per_link", lasts=1e-9)), *LINKS)
    assert not same(found["took"], found["before"]).any()
    assert stats.kstest(found["took"] / 1e-3, LAW.cdf).pvalue > SURE
    r = stats.spearmanr(*found[["took", "before"]].dropna().to_numpy().T).statistic
    assert abs(r) < SIGMAS / np.sqrt(len(found))


def test_what_an_agent_sends_at_one_instant_shares_its_factor():
    """However short it lasts; and what it sends in the next round has another."""
    scenario = ring(network=slow("per_agent", lasts=1e-9), algorithm__mode="sync", task__agents=50)
    found = uses(scenario, "agent")
    at_once = found["since"] == 0
    assert 0.3 < at_once.mean() < 0.7
    assert (same(found["took"], found["before"]) == at_once)[found["since"] >= 0].all()


# --- whose law ----------------------------------------------------------------------------------
class Steps(Law[Q]):
    """1 or 3, or what a factor must not be."""

    kind: Literal["steps"] = "steps"
    wrong: Probability = 0.0

    def draw(self, rng, size):
        u = rng.random(size)
        return np.where(u < self.wrong, 0.0, np.where(u < 0.5, 1.0, 3.0))

    @property
    def mean_value(self):
        return 2.0

    @property
    def rare_value(self):
        return 3.0


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_law_that_numpy_does_not_have_is_asked(engine):
    """Both engines ask it for one number at a time, and a wrong one ends the run."""

    def ask(wrong):
        factor = {"kind": "steps", "lasts": 0.1, "wrong": wrong}
        network = {"latency": {**LATENCY, "per_link": factor}}
        plugins = load_plugins([Steps])
        return ring(plugins, task__agents=20, network=network, engine=engine, stop={"time": 100.0})

    found = uses(ask(0.0), *LINKS)
    assert set(np.round(found["took"] * 1e3)) == {1, 3}
    with pytest.raises(ScenarioError, match=r"latency\.per_link: .* drew 0\.0; it must be above 0"):
        run(ask(1e-3))


def test_what_draws_nothing_lasts_for_ever(write, here):
    """A constant and a column have no such key, and the message says which they have."""
    text = "task: {kind: mean_estimation}\nstop: {time: 1}\ncompute:\n"
    text += "  time: {kind: constant, value: 1, per_agent: {kind: KIND, lasts: 3 s}}\n"
    for kind in ("constant", "column"):
        done = here("validate", write(text.replace("KIND", kind)))
        assert done.returncode == 2
        assert "x.yaml:4:" in done.stderr
        assert f"compute.time.per_agent.lasts: unknown key for kind '{kind}'" in done.stderr
