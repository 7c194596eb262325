"""Runs that would never end, or not fit into memory: refused before their first event.

What a scenario's file shows is refused by ``scenario.py``; here is what needs the graph and the
agents' own rates.  A run that merely takes hours is the user's to wait for, or to interrupt.
"""

from __future__ import annotations

import math

import numpy as np

from agents.rule import SOLVE_THEN_ANSWER, TELL
from simulator.engines.setup import Setup
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.scenario.consistency import longest_round, stands_still
from simulator.scenario.living import OnOff
from simulator.scenario.schema import Scenario
from simulator.scenario.stopping import MOST_SAMPLES

#: Bytes of a message on its way beside its numbers; of SimPy's agents and their links.
_MESSAGE = {"simpy": 600, "compiled": 100}
_AGENT, _LINK = 2500, 400
#: Three days of the compiled engine at its fastest.
MOST_EVENTS = 10**12


def check_run(setup: Setup) -> None:
    """Raise ScenarioError for a run that cannot end or does not fit."""
    if setup.scenario.engine == "simpy":
        agents, links = len(setup.rates), len(setup.neighbour)
        what = f"{agents:,} agents with {links // 2:,} links (engine: compiled needs far less)"
        require_memory(agents * _AGENT + links * _LINK * setup.rule.vectors, what)
    if setup.scenario.algorithm.mode == "async":
        _clocks_advance(setup)
        _messages_fit(setup)
    samples = _expected_samples(setup)
    if samples > MOST_SAMPLES:
        raise too_many_samples(setup.scenario, f"some {samples:.3g}")
    if setup.scenario.stop.metric is None:
        _ends_some_day("send", "messages", _least_communications(setup))
        _ends_some_day("see agents come and go", "times", _expected_switches(setup))


def _ends_some_day(does: str, what: str, count: float) -> None:
    if count > MOST_EVENTS:
        raise ScenarioError(
            f"stop: the run would {does} some {count:.3g} {what}, which would take days at best; "
            f"at most {MOST_EVENTS:,} are allowed, unless a metric may stop it earlier"
        )


def too_many_samples(scenario: Scenario, count: str) -> ScenarioError:
    """The error for a run with so many samples."""
    key = "every" if scenario.record.every is not None else "every_communications"
    return ScenarioError(
        f"record.{key}: the run would have {count} samples; at most {MOST_SAMPLES:,} are allowed"
    )


def _clocks_advance(setup: Setup) -> None:
    """No agent ticks so often that time stands still between its ticks."""
    scenario = setup.scenario
    # Without stop.time every tick counts towards the end, unless it finds its agent busy.
    horizon = scenario.stop.time or scenario.compute.time.rare_value
    agent = int(np.argmax(setup.rates))
    rate = float(setup.rates[agent])
    if horizon > 0 and stands_still(1 / rate, horizon):
        raise ScenarioError(
            f"clock.rate: agent {agent} ticks {rate:.3g} times a second, so often that the clock "
            f"cannot advance from tick to tick after {horizon:g} s; lower the rate"
        )


def _messages_fit(setup: Setup) -> None:
    """The messages that are on their way at a time fit into memory."""
    scenario, network = setup.scenario, setup.scenario.network
    rate = _sent_by_ticks(setup)
    most = min(rate * (scenario.stop.time or math.inf), scenario.stop.communications or math.inf)
    under_way = rate * network.latency.mean_value
    if setup.latency_factors is not None:
        under_way *= float(setup.latency_factors.mean())
    # An uplink that is given more than it can pass on keeps the rest.
    if network.bandwidth is not None:
        capacity = len(setup.rates) * network.bandwidth / setup.message_bytes
        under_way += max(0.0, 1 - capacity / rate) * most
    # An agent that is busy neither ticks nor sends.
    busy = scenario.compute.time.mean_value
    if busy > 0:
        most = min(most, 2 * len(setup.rates) * (scenario.stop.time or math.inf) / busy)
    size = setup.message_bytes - network.header + _MESSAGE[scenario.engine]
    what = f"clock.rate, network: the {min(under_way, most):.3g} messages on their way at a time"
    require_memory(min(under_way, most) * size, what)


def _expected_samples(setup: Setup) -> float:
    """A lower bound, in the mean, where one is known; 0 elsewhere."""
    scenario = setup.scenario
    if scenario.record.samples is not None:
        return 0.0
    every, every_communications = scenario.sampling
    rate = _most_communications_a_second(setup)
    if every is not None and scenario.stop.time is None:
        assert scenario.stop.communications is not None
        # At once: a hello on every link, and what each agent sends before it is busy.
        at_start = len(setup.neighbour) if scenario.algorithm.start == "hello" else 0
        at_start += len(setup.rates)
        return max(0, scenario.stop.communications - at_start) / rate / every if rate else 0.0
    if every is None and scenario.stop.communications is None:
        least = 0.0 if scenario.algorithm.mode == "sync" else _least_communications(setup)
        return least / every_communications
    return 0.0


def _most_communications_a_second(setup: Setup) -> float:
    """An upper bound in the mean; 0 where none is known."""
    scenario = setup.scenario
    factors = (setup.latency_factors, setup.compute_factors)
    least = [1.0 if factor is None else float(factor.min()) for factor in factors]
    computing = least[1] * scenario.compute.time.mean_value
    if scenario.algorithm.mode == "async":
        ticking = _sent_by_ticks(setup)
        if setup.rule.protocol == SOLVE_THEN_ANSWER and computing > 0:
            # Every message follows a solve.
            return min(ticking, len(setup.rates) / computing)
        return ticking
    network = scenario.network
    most = network.drop.extremes[1]
    # A round takes at least the mean latency, as its slowest message does not fall below that.
    shortest = least[0] * network.latency.mean_value + computing
    shortest += setup.message_bytes / network.bandwidth if network.bandwidth else 0.0
    if shortest == 0 or most == 1:
        return 0.0
    return len(setup.neighbour) / (1 - most) / shortest


def _sent_by_ticks(setup: Setup) -> float:
    """Communications a second in the mean, if no tick is skipped and no message lost."""
    if setup.rule.protocol == TELL:
        return float(setup.rates @ np.diff(setup.first))
    return 2 * float(setup.rates.sum())  # a request and a reply


def _least_communications(setup: Setup) -> float:
    """A lower bound, in the mean, where one is known; 0 elsewhere."""
    stop = setup.scenario.stop
    time, most = stop.time or math.inf, stop.communications or math.inf
    if setup.availability is not None:
        return 0.0
    if setup.scenario.algorithm.mode == "async":
        return min(_least_by_ticks(setup, time), most)
    rounds, sent = _least_in_rounds(setup, time)
    return max(sent, min(rounds * sent, most))  # the first round is not broken off


def _expected_switches(setup: Setup) -> float:
    """Comings and goings in the mean, where the length of the run is known; 0 elsewhere."""
    scenario = setup.scenario
    if not isinstance(scenario.availability, OnOff):
        return 0.0
    time, rate = scenario.stop.time, _most_communications_a_second(setup)
    if time is None:
        assert scenario.stop.communications is not None
        time = scenario.stop.communications / rate if rate else 0.0
    stays = scenario.availability.on.mean_value + scenario.availability.off.mean_value
    return 2 * len(setup.rates) * time / stays


def _least_by_ticks(setup: Setup, time: float) -> float:
    """One message a tick; 0 where ticks may find agents busy."""
    if setup.scenario.compute.time.mean_value > 0:
        return 0.0
    linked = np.diff(setup.first) > 0
    return float(setup.rates[linked].sum()) * time


def _least_in_rounds(setup: Setup, time: float) -> tuple[float, float]:
    """How many rounds, and the messages of each: as many as are lost in the best of times."""
    network, links = setup.scenario.network, len(setup.neighbour)
    least, most = network.drop.extremes
    sent = links * (max(1.0, min(1 / (1 - least), time / network.timer)) if least > 0 else 1.0)
    if network.bandwidth is not None:
        sent = min(sent, time * len(setup.rates) * network.bandwidth / setup.message_bytes)
    length = longest_round(setup.scenario)
    if most > 0:
        length += network.timer * _mean_repeats(most, links)
    return (max(1.0, time / length) if length > 0 else math.inf), sent


def _mean_repeats(loss: float, messages: int) -> float:
    """An upper bound of how often the unluckiest of so many messages is repeated, in the mean.

    It is repeated k times with a probability of at most min(1, messages·loss^k): the sum over k.
    """
    if loss == 1:
        return math.inf
    sure = max(0, math.floor(math.log(messages) / -math.log(loss)))
    return sure + messages * loss ** (sure + 1) / (1 - loss)
