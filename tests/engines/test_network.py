"""Delays, losses, uplinks and mailboxes against theory and exact traces."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agents.messages import HELLO, REQUEST, Message, Sheets
from agents.processes import GossipAgent
from agents.protocols.answer_then_solve import AnswerThenSolve
from simulator.engines.reference.network import Links, Timeline, loss_model
from simulator.runs.plugins import schema_for
from simulator.scenario.network import GilbertElliott, RateDrop
from simulator.seeds import Streams

NETWORK = schema_for().model_fields["network"].annotation
#: Each statistical test fails by chance with a probability of about 1e-5; seeds are fixed anyway.
SURE = 1e-5
SIGMAS = 4.4


def links(config: dict, edges: int = 1, seed: int = 0, size: int = 100, factors=None, links=None):
    """A network whose deliveries are logged as (time, edge)."""
    env, log = Timeline(), []
    setup = SimpleNamespace(
        scenario=SimpleNamespace(network=NETWORK.model_validate(config)),
        streams=Streams(seed),
        owners=np.zeros(edges, dtype=np.int64),
        back=np.arange(edges),
        latency_factors=factors,
        lasting_latency=None,
        lasting_links=None,
        link_factors=links,
        message_bytes=size,
        hello_bytes=size // 4,
        availability=None,
        cuts=None,
        near=False,
    )
    network = Links(env, setup, on_alarm=lambda: None)

    def receive(message, k):
        log.append((env.now, message))
        message.arrived = True

    network.mailboxes = [(receive, 0)] * edges
    return network, log


SHEETS = Sheets(1)


def message(edge: int = 0, number: int = 0, kind: int = REQUEST) -> Message:
    return Message(kind, edge, SHEETS.take(), number, 0.0)


LAWS = {
    "uniform": ({"kind": "uniform", "low": 0.1, "high": 0.4}, stats.uniform(0.1, 0.3)),
    "exponential": ({"kind": "exponential", "mean": 0.2}, stats.expon(scale=0.2)),
    "lognormal": (
        {"kind": "lognormal", "mean": 0.05, "sigma": 1.5},
        stats.lognorm(1.5, scale=0.05 * np.exp(-(1.5**2) / 2)),
    ),
    "pareto": (
        {"kind": "pareto", "mean": 0.08, "shape": 2.5},
        stats.pareto(2.5, scale=0.08 * 1.5 / 2.5),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_delays_follow_their_law(name):
    law, theory = LAWS[name]
    network, log = links({"latency": law})
    for _ in range(20_000):
        network.send(message())
    network.env.run()
    assert stats.kstest([time for time, _ in log], theory.cdf).pvalue > SURE


def test_empirical_delays_come_from_the_file(tmp_path):
    (tmp_path / "delays.txt").write_text("0.1\n0.2  # seconds\n\n0.4\n")
    network, log = links({"latency": {"kind": "empirical", "file": str(tmp_path / "delays.txt")}})
    for _ in range(9000):
        network.send(message())
    network.env.run()
    values, counts = np.unique([time for time, _ in log], return_counts=True)
    assert values.tolist() == [0.1, 0.2, 0.4]
    assert stats.chisquare(counts).pvalue > SURE


def test_per_agent_factors_multiply_the_senders_delay():
    network, log = links({"latency": 2.0}, factors=np.array([3.0]))
    network.send(message())
    network.env.run()
    assert log[0][0] == 6.0


def test_per_link_factors_multiply_the_delay_too():
    """latency = (draw × agent's) × link's."""
    network, log = links(
        {"latency": 2.0}, edges=2, factors=np.array([3.0]), links=np.array([1.0, 0.5])
    )
    network.send(message(edge=1))
    network.env.run()
    assert log[0][0] == 3.0


def test_a_hello_is_smaller_than_a_message():
    """One model, where others carry more: in bytes and in the uplink's time."""
    network, log = links({"bandwidth": "100 B/s"}, size=400)
    network.send(message(kind=HELLO))
    network.send(message())
    network.env.run()
    assert [time for time, _ in log] == [1.0, 5.0]
    assert network.bytes == 500


def test_loss_rate_is_binomial():
    network, log = links({"drop": 0.3})
    for _ in range(20_000):
        network.send(message())
    network.env.run()
    assert network.sent == 20_000 == network.delivered + network.dropped
    assert network.delivered == len(log)
    assert stats.binomtest(network.dropped, 20_000, 0.3).pvalue > SURE


GILBERT = GilbertElliott(
    kind="gilbert_elliott", mean_good=8.0, mean_bad=2.0, drop_good=0.1, drop_bad=0.7
)


def test_gilbert_elliott_is_stationary_at_first_use():
    """First sends on many links at any time: loss 0.8·0.1 + 0.2·0.7 = 0.22."""
    lost = loss_model(GILBERT, np.random.default_rng(1), 20_000)
    count = sum(lost(edge, 0.001 * edge) for edge in range(20_000))
    assert stats.binomtest(count, 20_000, 0.22).pvalue > SURE


def test_gilbert_elliott_bursts_have_the_mean_lengths():
    """drop 0 and 1 reveal the state; sojourns are exponential, so their mean has spread mean/√N."""
    config = GILBERT.model_copy(update={"drop_good": 0.0, "drop_bad": 1.0})
    lost = loss_model(config, np.random.default_rng(2), 1)
    step = 0.02
    states = np.array([lost(0, step * k) for k in range(1_000_000)])
    changes = np.flatnonzero(np.diff(states))
    lengths = np.diff(changes) * step
    bad = lengths[states[changes[:-1] + 1]]
    good = lengths[~states[changes[:-1] + 1]]
    for seen, mean in ((bad, 2.0), (good, 8.0)):
        # Stays shorter than a step are missed, which lengthens the others by O(step / mean).
        bias = 2 * step
        assert abs(seen.mean() - mean) < SIGMAS * mean / np.sqrt(len(seen)) + mean * bias


def test_gilbert_elliott_decorrelates_as_the_closed_form_says():
    """P(bad at dt | bad at 0) = q + (1 − q)·exp(−dt·(1/8 + 1/2))."""
    config = GILBERT.model_copy(update={"drop_good": 0.0, "drop_bad": 1.0})
    edges, dt = 40_000, 1.3
    lost = loss_model(config, np.random.default_rng(3), edges)
    first = np.array([lost(e, 0.0) for e in range(edges)])
    second = np.array([lost(e, dt) for e in range(edges)])
    theory = 0.2 + 0.8 * np.exp(-dt * 0.625)
    assert stats.binomtest(int(second[first].sum()), int(first.sum()), theory).pvalue > SURE


def test_uplink_sends_one_message_after_the_other_lost_ones_too():
    network, log = links({"latency": 0.5, "bandwidth": "100 B/s"}, size=100)
    network.lost = lambda edge, now, lose=iter([False, True, False]): next(lose)
    for number in range(3):
        network.send(message(number=number))
    network.env.run()
    assert [(time, m.number) for time, m in log] == [(1.5, 0), (3.5, 2)]


@given(st.integers(0, 1000), st.integers(2, 30))
def test_fifo_links_never_reorder(seed, count):
    law = {"kind": "pareto", "mean": 1.0, "shape": 1.2}
    network, log = links({"latency": law, "fifo": True}, edges=2, seed=seed)
    for number in range(count):
        network.send(message(edge=number % 2, number=number))
    network.env.run()
    for edge in (0, 1):
        numbers = [m.number for _, m in log if m.edge == edge]
        assert numbers == sorted(numbers)
    assert len(log) == count


def test_lost_messages_are_sent_again_after_leaving_the_uplink():
    network, log = links({"latency": 0.25, "bandwidth": "50 B/s", "retransmit_after": 3}, size=100)
    network.lost = lambda edge, now, lose=iter([True, True, False]): next(lose)
    network.send_surely(message())
    network.env.run()
    # Leaves at 2, again at 5 leaving at 7, again at 10 leaving at 12.
    assert [time for time, _ in log] == [12.25]
    assert (network.sent, network.dropped, network.delivered) == (3, 2, 1)


def test_slow_messages_are_sent_again_and_every_attempt_counts():
    """Delays 5, 4 and 1 with a timer of 2: arrivals at 5, 2 + 4 and 4 + 1; nothing after that."""
    network, log = links({"latency": 1.0, "retransmit_after": 2}, size=100)
    network.latency = iter([5.0, 4.0, 1.0]).__next__
    network.send_surely(message())
    network.env.run()
    assert [time for time, _ in log] == [5.0, 5.0, 6.0]
    assert (network.sent, network.dropped, network.delivered, network.bytes) == (3, 0, 3, 300)


def test_an_arrival_at_the_instant_of_the_timer_is_in_time():
    network, _ = links({"latency": 2.0, "retransmit_after": 2})
    network.send_surely(message())
    network.env.run()
    assert network.sent == 1


def test_what_is_in_flight_is_counted_in_the_queue():
    """A check that can fail: a message that vanishes breaks the law of conservation."""
    network, _ = links({"latency": 1.0})
    network.send(message())
    network.check_conservation()
    network.env._queue.clear()
    with pytest.raises(AssertionError, match="1 sent, 0 delivered"):
        network.check_conservation()


def test_rate_loss_extremes():
    never = loss_model(RateDrop(rate=0.0), np.random.default_rng(0), 1)
    always = loss_model(RateDrop(rate=1.0), np.random.default_rng(0), 1)
    assert not any(never(0, 0.0) for _ in range(1000))
    assert all(always(0, 0.0) for _ in range(1000))


class StubWorld:
    """Records what an agent does; every solve takes as long as ``durations`` says.

    The model is the number of solves.
    """

    def __init__(self, env, durations):
        self.env, self.log, self.model = env, [], 0
        self.compute_time = lambda agent: next(durations)
        self.steps, self.sheets = self, Sheets(1)

    def send(self, message):
        self.log.append((self.env.now, "send", message.kind, message.sheet.array((1,))[0]))

    def tell(self, i, k, out):
        out.array((1,))[0] = self.model

    def absorb(self, i, k, received, sent):
        pass

    def solve(self, i):
        self.model += 1
        self.log.append((self.env.now, "model", self.model))

    def refreshed(self, edge, sent_at):
        pass

    def handled(self, message):
        pass

    ticked = solved = handled

    def stale(self, message):
        self.log.append((self.env.now, "stale"))


def busy_agent(durations):
    env = Timeline()
    world = StubWorld(env, durations)
    keys = {"peer_weights": None, "in_turn": False, "to_all": False, "hello": False}
    agent = GossipAgent(world, 0, range(1), AnswerThenSolve, **keys)
    world.agents = [agent]
    return env, world, agent


def test_the_mailbox_waits_while_the_agent_computes():
    """Replies leave when handling starts; the new model holds from the end of computing."""
    env, world, agent = busy_agent(iter([5.0, 5.0]))
    for number, at in ((1, 1.0), (2, 2.0)):
        env.timeout(at).callbacks.append(lambda _, m=message(number=number): agent.receive(m, 0))
    env.run()
    assert world.log == [
        (1.0, "send", 1, 0),
        (6.0, "model", 1),
        (6.0, "send", 1, 1),
        (11.0, "model", 2),
    ]


def test_a_stale_request_is_answered_and_takes_no_time():
    env, world, agent = busy_agent(iter([5.0]))
    agent.receive(message(number=2), 0)
    env.run()
    agent.receive(message(number=1), 0)
    assert world.log[2:] == [(5.0, "stale"), (5.0, "send", 1, 1)]


def test_waiting_times_are_those_of_an_m_m_1_queue():
    """Poisson arrivals, exponential solves, load 1/2: the mean wait is 1 service time.

    The mean of N waits has the asymptotic variance ρ(2 + 5ρ − 4ρ² + ρ³)/(1 − ρ)⁴/N (Whitt 1989).
    """
    rng, count, load = np.random.default_rng(7), 40_000, 0.5
    env, world, agent = busy_agent(iter(rng.exponential(1.0, count)))
    arrivals = np.cumsum(rng.exponential(1 / load, count))
    for number, at in enumerate(arrivals, 1):
        env.timeout(at).callbacks.append(lambda _, m=message(number=number): agent.receive(m, 0))
    env.run()
    starts = np.array([entry[0] for entry in world.log if entry[1] == "send"])
    spread = np.sqrt(load * (2 + 5 * load - 4 * load**2 + load**3) / (1 - load) ** 4 / count)
    assert abs((starts - arrivals).mean() - load / (1 - load)) < SIGMAS * spread
