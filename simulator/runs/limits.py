"""Runs that would never end, or not fit into memory: refused before their first event.

One guard of memory, and one of work: about how many events the engine has to make.  A run that
merely takes hours is the user's to wait for, or to interrupt.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from simulator.engines.setup import Setup
from simulator.engines.slowness import Lasting
from simulator.errors import ScenarioError
from simulator.machine import require_memory
from simulator.problem.problem import Floats
from simulator.scenario.laws import Law
from simulator.scenario.network import OnOff
from simulator.scenario.schema import Scenario
from simulator.scenario.stopping import MOST_SAMPLES

#: Bytes of a message on its way beside its numbers; of SimPy's agents and their links.
_MESSAGE = {"simpy": 600, "compiled": 100}
_AGENT, _LINK = 2500, 400
#: Three days of the compiled engine at its fastest; and where a metric may end the run sooner, what
#: leaves the clock some bits to advance by.
MOST_EVENTS, MOST_EVENTS_TO_TARGET = 10**12, 10**15
#: What the numbers of events follow from, beside when the run stops.
_KEYS = {
    "ticks": "clock.rate",
    "messages": "network, compute",
    "switches": "availability",
    "samples": "record",
}


def check_run(setup: Setup) -> None:
    """Raise ScenarioError for a run that cannot end or does not fit."""
    scenario = setup.scenario
    agents, links, messages = len(setup.rates), len(setup.neighbour), _messages_under_way(setup)
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


def too_many_samples(scenario: Scenario, count: str) -> ScenarioError:
    """The error for a run with so many samples."""
    key = "every" if scenario.record.every is not None else "every_communications"
    return ScenarioError(
        f"record.{key}: the run would have {count} samples; at most {MOST_SAMPLES:,} are allowed"
    )


def expected_events(setup: Setup) -> dict[str, float]:
    """About how many there are in the mean, and rather fewer than more."""
    scenario = setup.scenario
    stop, (every, every_communications) = scenario.stop, scenario.sampling
    gossip, availability = scenario.algorithm.mode == "async", scenario.availability
    most, last = stop.time or math.inf, stop.communications or math.inf
    rate = _sent_a_second(setup) if gossip else _sent_a_second_in_rounds(setup)
    seconds = min(most, last / rate if rate else 0.0)
    switches, on = 0.0, 1.0
    if isinstance(availability, OnOff):
        stays = availability.on.mean_value + availability.off.mean_value
        switches, on = 2 * len(setup.rates) * seconds / stays, availability.share_on
    if gossip:
        ticks = on * float(setup.rates.sum()) * seconds
        messages = 0.0
        if scenario.compute.time.mean_value == 0 and availability is None:
            messages = float(setup.rates[np.diff(setup.first) > 0].sum()) * seconds
    else:  # whoever waits for all the others does so while they are on
        ticks, messages = 0.0, _least_messages_in_rounds(setup, on ** len(setup.rates) * seconds)
    messages = min(messages, last) if gossip else messages
    if stop.time is None:
        messages = max(messages, last)
    samples = 0.0
    if scenario.record.samples is None and (gossip or every is not None):
        samples = messages / every_communications if every is None else seconds / every
    return {"ticks": ticks, "messages": messages, "switches": switches, "samples": samples}


class _Times(NamedTuple):
    """A law's times with the factors of those whom it concerns."""

    #: The mean time of the quickest, and of all; what hardly any time of the slowest exceeds.
    least: float
    mean: float
    rare: float


def _times(law: Law[Any], *factors: tuple[Floats | None, Lasting | None]) -> _Times:
    """Factors are fixed, or drawn anew now and then, or both."""
    least = mean = law.mean_value
    rare = law.rare_value
    for fixed, lasting in factors:
        each = np.ones(1) if fixed is None else fixed
        anew = 1.0 if lasting is None else lasting.law.mean_value
        least, mean = least * anew * float(each.min()), mean * anew * float(each.mean())
        rare *= float(each.max()) * (1.0 if lasting is None else lasting.law.rare_value)
    return _Times(least, mean, rare)


def _computing(setup: Setup) -> _Times:
    factors = setup.compute_factors, setup.lasting_computing
    return _times(setup.scenario.compute.time.drawn, factors)


# --- gossip ---------------------------------------------------------------------------------------
def _sent_a_second(setup: Setup) -> float:
    """At every tick a request and a reply, or a message to every neighbour; at most one a solve."""
    answers = 1 if setup.protocol.tells_all else 2
    sent = np.diff(setup.first) if setup.peers == "all" else np.full(len(setup.rates), answers)
    rate, computing = float(setup.rates @ sent), _computing(setup).least
    return min(rate, float(sent.sum()) / computing) if computing > 0 else rate


def _messages_under_way(setup: Setup) -> float:
    """How many messages are on their way at a time, beside one a link in rounds."""
    stop, network, deadline = (
        setup.scenario.stop,
        setup.scenario.network,
        setup.scenario.rounds.deadline,
    )
    if setup.scenario.algorithm.mode == "async":
        rate = _sent_a_second(setup)
    elif deadline is None:
        return 0.0
    else:
        rate = len(setup.neighbour) / deadline
    sent = min(rate * (stop.time or math.inf), stop.communications or math.inf)
    under_way = rate * _times(network.latency, (setup.latency_factors, setup.lasting_latency)).mean
    if network.bandwidth is not None:  # an uplink that is given more than it can pass on keeps it
        capacity = len(setup.rates) * network.bandwidth / setup.message_bytes
        under_way += max(0.0, 1 - capacity / rate) * sent
    return min(under_way, sent)


# --- rounds ---------------------------------------------------------------------------------------
def _sent_a_second_in_rounds(setup: Setup) -> float:
    """As if the mean latency were every message's, and nobody sent again what is only slow."""
    network = setup.scenario.network
    least = _times(network.latency, (setup.latency_factors, setup.lasting_latency)).least
    least += _computing(setup).least
    least += setup.message_bytes / network.bandwidth if network.bandwidth else 0.0
    lost = network.drop.extremes[1]
    return len(setup.neighbour) / (1 - lost) / least if least > 0 and lost < 1 else 0.0


def _least_messages_in_rounds(setup: Setup, seconds: float) -> float:
    """At least one round, and as many attempts of it as are lost, or late, in the best of times."""
    network, stop, links = setup.scenario.network, setup.scenario.stop, len(setup.neighbour)
    least, most = network.drop.extremes
    agents = setup.latency_factors, setup.lasting_latency
    latency = _times(network.latency.drawn, agents, (setup.link_factors, setup.lasting_links))
    time = stop.time or math.inf
    attempts = 1.0
    if not setup.loose:  # else, what nobody waits for any more is not sent again
        late = min(latency.least, time) / network.timer
        attempts = max(1.0, min(1 / (1 - least), time / network.timer), late)
    sent = links * attempts
    # What a round hardly ever exceeds: all its parts at their rare values, nothing lost.
    length = latency.rare + _computing(setup).rare
    if network.bandwidth is not None:  # agents send one message after another
        length += int(np.diff(setup.first).max()) * setup.message_bytes / network.bandwidth
    if most == 1:
        length = math.inf
    elif most > 0:  # repeats of the unluckiest: the sum over k of min(1, links·most^k) at most
        unlucky = math.log(links) / -math.log(most) + 1 / (1 - most)
        length += network.timer * min(unlucky, links * most / (1 - most))
    rounds = seconds / length if length > 0 else math.inf
    return max(sent, min(rounds * sent, stop.communications or math.inf))
