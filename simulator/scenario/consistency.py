"""What can be wrong with a scenario whose blocks are right, each by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from agents.machinery.code_errors import failed
from agents.protocols import protocol_of, protocols_of
from simulator.errors import ScenarioError
from simulator.scenario.algorithm import Baseline
from simulator.scenario.geography import BySite
from simulator.scenario.kinds import Graph, Metric, Problems, Task, family_of, kind_of
from simulator.scenario.network import Traced
from simulator.scenario.stopping import MOST_SAMPLES

if TYPE_CHECKING:
    from simulator.scenario.schema import Scenario


def problems_of(scenario: Scenario) -> Problems:
    """The keys that don't go together, and why."""
    return [
        *[(f"graph.{key}", what) for key, what in _of(scenario.graph, scenario.task)],
        *[(f"task.{key}", what) for key, what in _of(scenario.task)],
        *_rule_problems(scenario),
        *_change_problems(scenario),
        *_clock_problems(scenario),
        *_stop_problems(scenario),
        *_round_problems(scenario),
        *_place_problems(scenario),
        *_record_problems(scenario),
    ]


def _of(thing: Graph | Task | Metric, *task: Task) -> Problems:
    """What it says of itself; a plugin's might say anything."""
    found: Any = thing.problems(*task)
    if isinstance(found, list) and all(map(_is_problem, found)):
        return found
    what = f"it must return a list of (key, message), got {found!r:.80}"
    raise ScenarioError(failed(f"{family_of(thing)} {thing.kind}", thing.problems, what))


def _is_problem(found: Any) -> bool:
    """A key and a message."""
    match found:
        case (str(), str()):
            return True
    return False


def _default(metric: type[Metric]) -> Metric:
    """A metric with its default parameters."""
    return metric.model_construct(kind=kind_of(metric))


def _rule_problems(scenario: Scenario) -> Problems:
    """Rules that can't do with the task's loss; budgets that must not be forgotten."""
    private = getattr(scenario.algorithm, "privacy", None) is not None
    if private and getattr(scenario.availability, "forget", False):
        what = "an agent that forgets what it has spent would spend its budget again"
        return [("availability.forget", f"{what}; with privacy it must be false")]
    rule, loss = scenario.algorithm.rule, getattr(scenario.task, "loss", None)
    if rule is None or loss is None or not rule.smooth_only or loss.curvature is not None:
        return []
    what = f"{rule.kind} needs a loss without kinks, like logistic or quadratic (got {loss.kind})"
    return [("algorithm.kind", what)]


def _change_problems(scenario: Scenario) -> Problems:
    """Rules and tasks that can't follow what changes."""
    stream, rule, problems = scenario.stream, scenario.algorithm.rule, []
    if stream is None:
        return []
    if rule is not None and rule.refresh is None:
        what = f"{rule.kind} has no refresh, so nothing that it depends on may change: see stream"
        problems.append(("algorithm.kind", what))
    if getattr(scenario.algorithm, "privacy", None) is not None:
        what = "with privacy all points must be there at first: leave stream out"
        problems.append(("algorithm.privacy", what))
    if stream.column is not None and not scenario.task.has_columns:
        what = f"{scenario.task.kind} reads no file of points: give gaps"
        problems.append(("stream.column", what))
    return problems


def _clock_problems(scenario: Scenario) -> Problems:
    """Protocols whose ticks are about one neighbour."""
    rule, algorithm = scenario.algorithm.rule, scenario.algorithm
    if scenario.clock.peers != "all" or rule is None or algorithm.mode == "sync":
        return []
    protocol = protocol_of(rule, algorithm.protocol)
    if protocol.tells_all:
        return []
    what = f"{protocol.kind!r} contacts one neighbour; use uniform, weighted or turn"
    tells = [kind for kind, known in protocols_of(rule).items() if known.tells_all]
    instead = f", or algorithm.protocol: {tells[0]}" if tells else ""
    return [("clock.peers", f"the protocol {what}{instead}")]


def _stop_problems(scenario: Scenario) -> Problems:
    """Metrics that cannot be measured on the task, or mean nothing where nobody sends."""
    stop, algorithm = scenario.stop, scenario.algorithm
    if stop.metric is None:
        return []
    if getattr(algorithm, "privacy", None) is not None:
        what = "with privacy the end of a run must not depend on what the data say"
        instead = "give stop.time or stop.communications instead, and compare with --target none"
        return [("stop.metric", f"{what}; {instead}")]
    if isinstance(algorithm, Baseline):
        allowed = [kind for kind, metric in stop.known.items() if metric.of_baselines]
        if stop.metric not in allowed:
            what = f"{algorithm.kind} has no {stop.metric}; allowed: {', '.join(allowed)}"
            return [("stop.metric", what)]
        if isinstance(stop.below, str):
            what = f"{algorithm.kind} has one sample and no start to take {stop.below} of"
            return [("stop.below", f"{what}; give a number")]
    problems = _of(_default(stop.known[stop.metric]), scenario.task)
    return [("stop.metric", what) for _, what in problems]


def _round_problems(scenario: Scenario) -> Problems:
    """Synchronous rounds that would never end, or take no time at all."""
    network, algorithm = scenario.network, scenario.algorithm
    if algorithm.mode != "sync":
        return []
    problems = _wait_problems(scenario)
    least, most = network.drop.extremes
    ends = scenario.rounds.deadline is not None
    if least == 1 and not ends:
        what = "every message is lost, so a synchronous round never ends; must be less than 1"
        problems.append(("network.drop", what))
    parts = (network.latency.rare_value, scenario.compute.time.rare_value)
    if not any(parts) and network.bandwidth is None and scenario.stop.communications is None:
        what = (
            "synchronous rounds without latency, bandwidth limit or computing time take no time, "
            "so that the clock stands still; give one of them, or stop.communications"
        )
        problems.append(("algorithm.mode", what))
    losing = {
        "give a time": most > 0,
        "availability needs a time": scenario.availability,
        "partitions needs a time": network.partitions,
    }
    for needed, given in losing.items():
        if given and math.isinf(network.timer) and not ends:
            what = f"what is lost must be sent again, or a round never ends: {needed}"
            problems.append(("network.retransmit_after", what))
    return problems


def _wait_problems(scenario: Scenario) -> Problems:
    """Rules that can't do without what a way of waiting leaves out."""
    rule, rounds = scenario.algorithm.rule, scenario.rounds
    assert rule is not None
    given = [key for key in ("slack", "enough", "deadline") if getattr(rounds, key)]
    exact = protocol_of(rule).rounds
    if exact is not None and exact.solves_first:
        what = f"{rule.kind} needs both ends of one round; it has barrier: neighbours alone"
        return [(f"rounds.{key}", what) for key in given]
    if rounds.slack and rule.once_a_round:
        what = f"{rule.kind} takes each message in once, in its round, and has no slack"
        return [("rounds.slack", what)]
    if rounds.slack and scenario.compute.time.rare_value == 0:
        what = "without computing time so many rounds happen at once; give compute.time"
        return [("rounds.slack", what)]
    return []


def _place_problems(scenario: Scenario) -> Problems:
    """Agents that may be off for ever, and sites that nobody knows, or that play no part."""
    network, gossip = scenario.network, scenario.algorithm.mode == "async"
    problems = []
    if isinstance(scenario.availability, Traced) and gossip and scenario.stop.time is None:
        what = "with a trace all agents may be off for ever: give stop.time as well"
        problems.append(("availability.kind", what))
    users = [("network.latency", "{column: region}")] * isinstance(network.latency, BySite)
    users += [
        (f"network.partitions.{k}.groups", "{random: 5}")
        for k, cut in enumerate(network.partitions)
        if cut.groups == "by site"
    ]
    if scenario.sites is None:
        problems += [(key, f"needs sites, e.g. sites: {example}") for key, example in users]
    elif not users:
        what = (
            "neither network.latency (kind: sites) nor a partition (groups: by site) asks for them"
        )
        problems.append(("sites", f"play no part: {what}"))
    return problems


def _record_problems(scenario: Scenario) -> Problems:
    """Metrics that can't be measured; samples so frequent that they would fill the memory."""
    stop, record = scenario.stop, scenario.record
    asked: list[Metric] = getattr(record, "metrics", [])  # a key where plugins bring some
    if record.only is not None and stop.metric is not None and stop.metric not in record.only:
        return [("stop.metric", f"{stop.metric} is not among record.only")]
    wrong = [what for metric in asked for _, what in _of(metric, scenario.task)]
    if wrong:
        return [("record.metrics", what) for what in wrong]
    for key, every, limit in (
        ("every", record.every, stop.time),
        ("every_communications", record.every_communications, stop.communications),
    ):
        if every is not None and limit is not None and limit / every > MOST_SAMPLES:
            what = f"{limit:g}/{every:g} samples are too many; at most {MOST_SAMPLES:,} are allowed"
            return [(f"record.{key}", what)]
    return []
