"""A scenario and what came of it, in words."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from simulator.runs.result import Result
from simulator.scenario.laws import Constant, Law
from simulator.scenario.network import RateDrop
from simulator.scenario.schema import Scenario

#: Rules and baselines that readers know by another name.
_ALGORITHMS = {
    "mp": "model propagation",
    "admm": "collaborative learning by ADMM",
    "solitary": "learning alone",
    "consensus": "one model for all, computed centrally",
}
#: Metrics by how well they tell what was learned.
MAIN = ("accuracy", "l2_error", "distance", "gap", "objective")


def paragraphs(result: Result) -> list[str]:
    """What was simulated and what came out, a paragraph each."""
    scenario, summary = result.scenario, result.summary
    found = [scenario.description] if scenario.description else []
    found.append(" ".join([_who(result), _how(scenario), _network(scenario)]).strip())
    found.append(_outcome(summary))
    return found


def _who(result: Result) -> str:
    problem = result.problem
    sizes = problem.data.sizes
    low, high = int(sizes.min()), int(sizes.max())
    points = count(low, "point") if low == high else f"{low:,} to {count(high, 'point')}"
    what = "one number" if problem.p == 1 else f"{problem.p:,} numbers"
    return (
        f"{count(problem.n, 'agent')} with {points} of data each learn models of {what} "
        f"on a graph of {count(problem.W.nnz // 2, 'link')} ({scenario_kind(result)})."
    )


def scenario_kind(result: Result) -> str:
    """The task and the graph, as the scenario calls them."""
    task, graph = result.scenario.task.kind, result.scenario.graph.kind
    return f"{task.replace('_', ' ')}, {graph.replace('_', ' ')}"


def _how(scenario: Scenario) -> str:
    algorithm = scenario.algorithm
    name = _ALGORITHMS.get(algorithm.kind, algorithm.kind.replace("_", " "))
    if algorithm.rule is None:
        return f"The algorithm is {name}: nobody sends anything."
    if algorithm.mode == "sync":
        return f"The algorithm is {name}, in synchronous rounds with a barrier."
    rate = law_words(scenario.clock.rate, "")
    times = {"1": "once"}.get(rate, f"{rate} times")
    peers = " chosen by weight" if scenario.clock.peers == "weighted" else ""
    return (
        f"The algorithm is {name}, by asynchronous gossip: each agent wakes up {times} a "
        f"second, at random, and contacts a neighbour{peers}."
    )


def _network(scenario: Scenario) -> str:
    if scenario.algorithm.rule is None:
        return ""
    network = scenario.network
    constant = isinstance(network.latency, Constant)
    parts = [f"Messages take {law_words(network.latency)}"]
    if not constant:
        parts = [f"The delays of messages are {law_words(network.latency)}"]
    for key, whose in (("per_agent", "agent"), ("per_link", "link")):
        factor = getattr(network.latency, key, None)
        if factor is not None:
            lasts = getattr(factor, "lasts", None)
            words = "" if lasts is None else f", which lasts {seconds(lasts)} in the mean"
            parts[0] += f", times a factor of the {whose} ({law_words(factor, '')}{words})"
    drop = network.drop
    if not isinstance(drop, RateDrop):
        parts.append("messages are lost in bursts")
    elif drop.rate:
        parts.append(f"{100 * drop.rate:.4g} % of messages are lost")
    else:
        parts.append("no message is lost")
    if scenario.availability is not None:
        parts.append("agents come and go, and miss what arrives while they are off")
    if network.bandwidth is not None:
        parts.append(f"an uplink carries {network.bandwidth:,.0f} bytes a second")
    words = "; ".join(parts)
    if not isinstance(scenario.compute.time, Constant) or scenario.compute.time.mean_value:
        words += f"; a solve takes {law_words(scenario.compute.time)}"
    return f"{words}."


def _outcome(summary: dict[str, Any]) -> str:
    time = seconds(summary["simulated_time"])
    sent = count(summary["communications"], "message")
    lost = summary["communications"] and 100 * summary["dropped"] / summary["communications"]
    words = f"In {time} of simulated time {sent} were sent"
    words += f" ({lost:.3g} % lost)" if lost else ""
    metrics = summary["metrics"]
    start, final = metrics["start"], metrics["final"]
    name = next((name for name in MAIN if name in start and name in final), None)
    if name is None:
        return f"{words}."
    words += f", and {label(name)} went from {start[name]:.3g} to {final[name]:.3g}"
    best = metrics.get("optimum", {}).get(name)
    if best is not None and name != "distance":
        words += f" (the optimum has {best:.3g})"
    return f"{words}."


def label(metric: str) -> str:
    """A metric within a sentence."""
    return {
        "l2_error": "the mean squared error",
        "accuracy": "the mean test accuracy",
        "distance": "the mean squared distance to the optimum",
        "gap": "the relative gap of the objective",
        "objective": "the objective",
    }.get(metric, metric)


def count(number: int, noun: str) -> str:
    """``1 agent``, ``300 agents``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size or size == 1e-6:
            return f"{value / size:.6g} {unit}" if value else "0 s"
    raise AssertionError


def law_words(law: Law[Any], unit: str = "s") -> str:
    """``50 ms``; ``exponential with mean 50 ms``."""
    timed = seconds if unit else (lambda value: f"{value:.6g}")
    if isinstance(law, Constant):
        return timed(law.mean_value)
    parts = []
    for name in type(law).model_fields:
        value = getattr(law, name)
        if name in ("kind", "per_agent", "per_link", "lasts") or value is None:
            continue
        scaled = isinstance(value, float) and name in ("mean", "low", "high", "value")
        parts.append(f"{name} {timed(value) if scaled else getattr(value, 'name', value)}")
    return f"{law.kind} with {', '.join(parts)}" if parts else law.kind


def settings(scenario: Scenario) -> list[tuple[str, str]]:
    """Every key of the scenario and its value, dotted."""

    def walk(path: str, value: Any) -> list[tuple[str, str]]:
        if isinstance(value, BaseModel):
            names = type(value).model_fields
            return [
                pair
                for name in names
                for pair in walk(f"{path}.{name}" if path else name, getattr(value, name))
            ]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return [] if value is None else [(path, getattr(value, "name", text))]

    return [pair for pair in walk("", scenario) if pair[0] not in ("name", "description")]
