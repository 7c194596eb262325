"""Runs that would never end, or not fit into memory: refused before their first event.

One guard of memory, and one of work: how many events the engine has to make at least.  A run that
merely takes hours is the user's to wait for, or to interrupt.
"""

from __future__ import annotations

import math

import numpy as np

from agents.rule import SOLVE_THEN_ANSWER, TELL
from simulator.engines.setup import Setup
from simulator.engines.slowness import Lasting
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.problem.problem import Floats
from simulator.scenario.network import OnOff
from simulator.scenario.schema import Scenario
from simulator.scenario.stopping import MOST_SAMPLES

#: Bytes of a message on its way beside its numbers; of SimPy's agents and their links.
_MESSAGE = {"simpy": 600, "compiled": 100}
_AGENT, _LINK = 2500, 400
#: Three days of the compiled engine at its fastest; and where a metric may end the run sooner, what
#: leaves the clock some bits to advance by.
MOST_EVENTS, MOST_EVENTS_TO_TARGET = 10**12, 10**15


def check_run(setup: Setup) -> None:
    """Raise ScenarioError for a run that cannot end or does not fit."""
    agents, links, messages = len(setup.rates), len(setup.neighbour), _messages_under_way(setup)
    scenario = setup.scenario
    needed = messages * (setup.message_bytes - scenario.network.header + _MESSAGE[scenario.engine])
    what = f"{agents:,} agents with {links // 2:,} links"
    if scenario.engine == "simpy":
        needed += agents * _AGENT + links * _LINK * setup.rule.vectors
        what += " (engine: compiled needs far less)"
    require_memory(needed, f"{what} and {messages:.3g} messages on their way (clock.rate, network)")

    work = expected_events(setup)
    if work["samples"] > MOST_SAMPLES:
        raise too_many_samples(scenario, f"some {work['samples']:.3g}")
    most = MOST_EVENTS if scenario.stop.metric is None else MOST_EVENTS_TO_TARGET
    if sum(work.values()) > most:
        name, count = max(work.items(), key=lambda item: item[1])
        raise ScenarioError(
            f"stop: the run would have some {count:.3g} {name} ({_KEYS[name]}), which would take "
            f"days at best; at most {MOST_EVENTS:,} are allowed, and {MOST_EVENTS_TO_TARGET:,} "
            "where a metric may stop it earlier"
        )


#: What the numbers of events follow from, beside when the run stops.
_KEYS = {
    "ticks": "clock.rate",
    "messages": "network, compute",
    "switches": "availability",
    "samples": "record",
}


def too_many_samples(scenario: Scenario, count: str) -> ScenarioError:
    """The error for a run with so many samples."""
    key = "every" if scenario.record.every is not None else "every_communications"
    return ScenarioError(
        f"record.{key}: the run would have {count} samples; at most {MOST_SAMPLES:,} are allowed"
    )


def expected_events(setup: Setup) -> dict[str, float]:
    """Lower bounds in the mean, where some are known, of what the engine has to do."""
    scenario = setup.scenario
    every, every_communications = scenario.sampling
    seconds = _least_seconds(setup)
    on, stays = 1.0, math.inf
    if isinstance(scenario.availability, OnOff):
        on = scenario.availability.share_on
        stays = scenario.availability.on.mean_value + scenario.availability.off.mean_value
    computing = scenario.compute.time.mean_value
    if scenario.algorithm.mode == "sync":
        ticks, messages = 0.0, _least_messages_in_rounds(setup, seconds)
    else:  # clocks go on while an agent computes
        lasting = min(scenario.stop.time or math.inf, max(seconds, computing))
        ticks, messages = on * float(setup.rates.sum()) * lasting, 0.0
        if computing == 0 and setup.availability is None:  # each tick of who has neighbours sends
            messages = float(setup.rates[np.diff(setup.first) > 0].sum()) * seconds
            messages = min(messages, scenario.stop.communications or math.inf)
    if scenario.stop.time is None:
        messages = max(messages, scenario.stop.communications or 0.0)
    samples = 0.0
    if scenario.record.samples is None and every is not None:
        samples = seconds / every
    elif scenario.record.samples is None and scenario.algorithm.mode == "async":
        samples = messages / every_communications
    switches = 2 * len(setup.rates) * seconds / stays
    return {"ticks": ticks, "messages": messages, "switches": switches, "samples": samples}


def _least_seconds(setup: Setup) -> float:
    """How long the run is at least, in the mean; 0 where nothing is known."""
    stop, rate = setup.scenario.stop, _most_messages_a_second(setup)
    # At once: a hello on every link, and what each agent sends before it is busy.
    hello = setup.scenario.algorithm.start == "hello"
    at_start = len(setup.rates) + (len(setup.neighbour) if hello else 0)
    sent = max(0.0, (stop.communications or math.inf) - at_start)
    return min(stop.time or math.inf, sent / rate if rate else 0.0)


def _most_messages_a_second(setup: Setup) -> float:
    """An upper bound in the mean; 0 where none is known."""
    scenario, network, links = setup.scenario, setup.scenario.network, len(setup.neighbour)
    computing = (
        _least(setup.compute_factors, setup.lasting_computing) * scenario.compute.time.mean_value
    )
    if scenario.algorithm.mode == "async":
        ticking = _sent_by_ticks(setup)
        if setup.rule.protocol == SOLVE_THEN_ANSWER and computing > 0:
            return min(ticking, len(setup.rates) / computing)  # every message follows a solve
        return ticking
    most = network.drop.extremes[1]
    # A round takes at least the mean latency, as its slowest message does not fall below that.
    slowest = _least(setup.latency_factors, setup.lasting_latency)
    shortest = slowest * network.latency.mean_value + computing
    shortest += setup.message_bytes / network.bandwidth if network.bandwidth else 0.0
    # What is slow is sent again as well.
    again = 1 + slowest * network.latency.rare_value / network.timer
    return 0.0 if shortest == 0 or most == 1 else links * again / (1 - most) / shortest


def _sent_by_ticks(setup: Setup) -> float:
    """Messages a second in the mean, if no tick is skipped and no message lost."""
    if setup.rule.protocol == TELL:
        return float(setup.rates @ np.diff(setup.first))
    return 2 * float(setup.rates.sum())  # a request and a reply


def _messages_under_way(setup: Setup) -> float:
    """How many messages of gossip are on their way at a time."""
    scenario, network = setup.scenario, setup.scenario.network
    if scenario.algorithm.mode == "sync":
        return 0.0
    rate = _sent_by_ticks(setup)
    most = min(rate * (scenario.stop.time or math.inf), scenario.stop.communications or math.inf)
    under_way = rate * network.latency.mean_value
    if setup.lasting_latency is not None:
        under_way *= setup.lasting_latency.law.mean_value
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
    return min(under_way, most)


def _least_messages_in_rounds(setup: Setup, seconds: float) -> float:
    """At least one round, and as many attempts of it as are lost, or late, in the best of times."""
    scenario, network, links = setup.scenario, setup.scenario.network, len(setup.neighbour)
    least, most = network.drop.extremes
    time = scenario.stop.time or math.inf
    slow = network.latency.drawn.mean_value
    slow *= _least(setup.latency_factors, setup.lasting_latency) * _least(
        setup.link_factors, setup.lasting_links
    )
    attempts = max(1.0, min(1 / (1 - least), time / network.timer), min(slow, time) / network.timer)
    sent = links * attempts
    if network.bandwidth is not None:
        sent = min(sent, time * len(setup.rates) * network.bandwidth / setup.message_bytes)
    length = _longest_round(setup)
    if most > 0:
        length += network.timer * _mean_repeats(most, links)
    share = 1.0
    if isinstance(scenario.availability, OnOff):  # all agents are on
        share = scenario.availability.share_on ** len(setup.rates)
    rounds = share * seconds / length if length > 0 else math.inf
    return max(sent, min(rounds * sent, scenario.stop.communications or math.inf))


def _longest_round(setup: Setup) -> float:
    """What a round hardly ever exceeds: all its parts at their rare values, nothing lost."""
    network, computing = setup.scenario.network, setup.scenario.compute.time
    longest = network.latency.drawn.rare_value * _most(setup.latency_factors, setup.lasting_latency)
    longest *= _most(setup.link_factors, setup.lasting_links)
    longest += computing.drawn.rare_value * _most(setup.compute_factors, setup.lasting_computing)
    if network.bandwidth is not None:  # agents send one message after another
        longest += int(np.diff(setup.first).max()) * setup.message_bytes / network.bandwidth
    return longest


def _most(factors: Floats | None, lasting: Lasting | None) -> float:
    """The greatest factor; of those that are drawn anew, what they hardly exceed."""
    fixed = 1.0 if factors is None else float(factors.max())
    return fixed if lasting is None else fixed * lasting.law.rare_value


def _least(factors: Floats | None, lasting: Lasting | None) -> float:
    """The least factor; of those that are drawn anew, their mean over time."""
    fixed = 1.0 if factors is None else float(factors.min())
    return fixed if lasting is None else fixed * lasting.law.mean_value


def _mean_repeats(loss: float, messages: int) -> float:
    """An upper bound of how often the unluckiest of so many messages is repeated, in the mean.

    It is repeated k times with a probability of at most min(1, messages·loss^k): the sum over k.
    """
    if loss == 1:
        return math.inf
    sure = max(0, math.floor(math.log(messages) / -math.log(loss)))
    return sure + messages * loss ** (sure + 1) / (1 - loss)
