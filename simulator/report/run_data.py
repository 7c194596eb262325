"""A run on a page, as data for its script: curves, the network, colours, messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.engines.setup import first_models, prepare
from simulator.figures.agent_layout import Layout, model_values, reach, span
from simulator.problem.problem import Floats
from simulator.report.event_story import (
    Histogram,
    Messages,
    Story,
    age_law,
    delay_law,
    together,
)
from simulator.report.parts import (
    by_importance,
    column,
    law_words,
    metric_data,
    squeezed,
    thinned,
    typed,
)
from simulator.runs.result import Result
from simulator.scenario.algorithm import NormalStart
from simulator.seeds import Streams
from simulator.theory.metrics import View

#: Samples of a curve at most: more make a page slow.
MOST_SAMPLES = 4_000
#: Columns of a trace that are no metrics.
_COUNTS = {
    *("time", "communications", "delivered", "dropped", "in_flight", "bytes"),
    *("stale", "skipped", "missed", "late", "round_least", "round_most"),
}


def trace_data(result: Result) -> dict[str, Any]:
    """The samples, every so many of very many."""
    rows = thinned(len(result.trace), MOST_SAMPLES)
    return {str(name): typed(values.iloc[rows], "f8") for name, values in result.trace.items()}


def metrics_data(result: Result) -> list[dict[str, Any]]:
    """What the error charts can show, and the levels to compare each metric with."""
    stages = result.summary["metrics"]
    found = []
    for name in by_importance(str(name) for name in result.trace if name not in _COUNTS):
        levels = {
            stage: stages[stage][name]
            for stage in ("solitary", "consensus", "optimum")
            if name in stages.get(stage, {})
        }
        found.append({**metric_data(name, result.trace[name]), "levels": levels})
    return found


def network_data(result: Result, layout: Layout) -> dict[str, Any]:
    """Places, links and names, and whatever is known of each agent."""
    names = [result.problem.names[i] for i in layout.agents]
    numbered = names == [str(i) for i in layout.agents]
    wide = "u2" if len(layout.agents) <= 65_536 else "u4"
    network = {
        "x": typed(layout.places[:, 0], "f4"),
        "y": typed(layout.places[:, 1], "f4"),
        "links": typed(layout.links, wide),
        "weights": squeezed(layout.weights, log=False),
        # Most agents are called by their numbers.
        "agents": typed(layout.agents, "u4"),
        "names": None if numbered else names,
    }
    drawn = result.agents.drop(columns="agent").iloc[layout.agents]
    return {"network": network, "agents": {k: column(v, "f4") for k, v in drawn.items()}}


# --- colours --------------------------------------------------------------------------------------
def stages(result: Result, most: int) -> tuple[Floats, Floats]:
    """Times (k,) and models (k, n, p) to colour by: those recorded, or the first and the last."""
    if result.kept is not None:
        rows = thinned(len(result.kept.samples), most)
        times = result.trace["time"].to_numpy()[result.kept.samples[rows]]
        return times, result.kept.models[rows]
    end = float(result.summary["simulated_time"])
    if end == 0:
        return np.zeros(1), result.models[None]
    scenario, problem = result.scenario, result.problem
    first = problem.solitary  # also where the start was drawn at random
    if scenario.algorithm.rule and not isinstance(scenario.algorithm.start, NormalStart):
        first = first_models(scenario, problem, Streams(scenario.seed).data)[0]
    return np.array([0.0, end]), np.stack([first, result.models])


def colourings(
    result: Result, times: Floats, models: Floats, agents: np.ndarray
) -> list[dict[str, Any]]:
    """Models and errors of the agents that are drawn, over time."""
    found = [by_model(times, models[:, agents])]
    view = View(result.scenario, result.problem)
    for metric in view.metrics:
        if metric.by_agent:
            values = np.stack([view.each(metric, each)[agents] for each in models])
            text = metric.label.replace("mean ", "").replace("\n", " ") or metric.kind
            log = not metric.grows and bool((values[np.isfinite(values)] > 0).any())
            found.append(colouring(metric.kind, text, times, values, log=log))
    return found


def by_model(times: Floats, models: Floats) -> dict[str, Any]:
    """The models; where there are negative and positive ones, they part mid-scale."""
    values, text = model_values(models)
    found = colouring("model", text, times, values, log=False)
    if values[-1].min() < 0 < values[-1].max():
        return {**found, "diverging": True, "low": -reach(values), "high": reach(values)}
    return found


def colouring(kind: str, text: str, times: Floats, values: Floats, *, log: bool) -> dict[str, Any]:
    """Values (times, agents), and the range that the colours span."""
    known = values[np.isfinite(values)]
    low, high = span(known[known > 0] if log else known)
    return {
        "kind": kind,
        "label": text,
        "times": typed(times, "f8"),
        "values": squeezed(values, log=log),
        "low": low,
        "high": high,
        "diverging": False,
    }


# --- events ---------------------------------------------------------------------------------------
def story_data(result: Result, story: Story, layout: Layout) -> dict[str, Any]:
    """Messages between agents that are drawn, counts, and the distributions with their laws."""
    rule, scenario = result.scenario.algorithm.rule, result.scenario
    assert rule is not None
    streams = Streams(scenario.seed, scenario.problem_seed)
    setup = prepare(scenario, result.problem, streams, rule)
    end = float(result.summary["simulated_time"])
    clocks = "clocks, partners and loss, if nobody is busy"
    uplink = " (without the wait for the uplink)" if scenario.network.bandwidth else ""
    delays = f"{law_words(scenario.network.latency)}{uplink}"
    return {
        "messages": _messages(story.messages, layout, result.problem.n),
        "counts": {name: typed(each[layout.agents], "u4") for name, each in story.counts.items()},
        "delay": _distribution(story.delays, delay_law(setup), delays),
        "age": _distribution(story.ages, age_law(setup, end), clocks),
    }


def age_colouring(story: Story, moments: Floats, layout: Layout) -> dict[str, Any]:
    """How old what agents know is, over time."""
    ages = story.mean_ages[:, layout.agents]
    return colouring("age", "age of what it knows (s)", moments, ages, log=False)


def _messages(messages: Messages, layout: Layout, n: int) -> dict[str, Any]:
    places = np.full(n, -1)
    places[layout.agents] = np.arange(len(layout.agents))
    rows = messages.rows
    rows = rows.assign(source=places[rows["agent"]], sink=places[rows["peer"]])
    rows = rows[(rows["source"] >= 0) & (rows["sink"] >= 0)]
    return {
        "start": messages.start,
        "end": messages.end,
        "sent": typed(rows["time"], "f8"),
        "from": typed(rows["source"], "u2"),
        "to": typed(rows["sink"], "u2"),
        "what": typed(rows["what"], "u1"),
        "fate": typed(rows["fate"], "u1"),
        "until": typed(rows["until"], "f8"),
    }


def _distribution(found: Histogram, law: Histogram | None, text: str) -> dict[str, Any]:
    edges, shares = together(found, *([] if law is None else [law]))
    return {
        "edges": typed(edges, "f8"),
        "found": typed(shares[0], "f4"),
        "law": None if law is None else typed(shares[1], "f4"),
        "words": text,
        "mean": found.mean if found.total else None,
        "law_mean": None if law is None else law.mean,
        "total": found.total,
        "zeros": found.zeros,
    }
