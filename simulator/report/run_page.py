"""A run on a page: what was simulated and what came of it, in words, tables and charts."""

from __future__ import annotations

import shlex
from typing import Any

import pandas as pd

from agents.protocols import protocol_of
from simulator.figures.agent_layout import Layout, arrange
from simulator.figures.style import shown_value
from simulator.report.event_story import Messages, tell
from simulator.report.parts import (
    MAIN,
    Html,
    Item,
    Source,
    count,
    definitions,
    fill,
    law_words,
    notes,
    paragraphs,
    seconds,
    thinned,
)
from simulator.report.run_data import (
    MOST_SAMPLES,
    age_colouring,
    colourings,
    metrics_data,
    network_data,
    stages,
    story_data,
    trace_data,
)
from simulator.runs.result import Result
from simulator.scenario.files import scenario_values
from simulator.scenario.laws import Constant
from simulator.scenario.network import RateDrop, Rounds
from simulator.scenario.schema import Scenario

#: Numbers of a colouring, and links, at most: more make a page slow.
_COLOURED, _LINKS = 200_000, 80_000
_HOW_EVENTS = "record: {events: true}"
_HOW_MODELS = "record: {models: true}"
#: Rules and baselines that readers know by another name.
_ALGORITHMS = {
    "mp": "model propagation",
    "admm": "collaborative learning by ADMM",
    "solitary": "learning alone",
    "consensus": "one model for all, computed centrally",
}


def run_item(source: Source, result: Result, *, key: str, share: int, window: float) -> Item:
    """A run's part of the page, of which ``share`` runs fill one."""
    trace, summary = result.trace, result.summary
    layout = arrange(result.problem, _LINKS // share)
    frames = max(2, _COLOURED // share // len(layout.agents))
    times, models = stages(result, frames)
    # Beside others a run is known by the name of its folder, which is its own.
    title = f"{summary['name'] if share == 1 else source.folder.name}, seed {summary['seed']}"
    data: dict[str, Any] = {
        "type": "run",
        "key": key,
        "title": title,
        "trace": trace_data(result),
        "metrics": metrics_data(result),
        **network_data(result, layout),
        "colourings": colourings(result, times, models, layout.agents),
        "inspect": f"python -m simulator inspect {shlex.quote(str(source.folder))}",
    }
    motion = _motion_notes(result, len(times), layout)
    missing = [] if summary["communications"] else ["Nobody sent anything."]
    if result.events_file is None:
        missing = missing or [f"Needs events: run with {_HOW_EVENTS}."]
    elif not missing:
        moments = trace["time"].to_numpy()[thinned(len(trace), frames)]
        story = tell(result, moments, window)
        data |= story_data(result, story, layout)
        data["colourings"].append(age_colouring(story, moments, layout))
        motion.append(_window_note(story.messages, summary["simulated_time"]))
    thin = f"Curves show {MOST_SAMPLES:,} of {len(trace):,} samples."
    html = fill(
        "run.html",
        key=key,
        title=title,
        words=paragraphs(_words(result)),
        notes=notes(summary["notes"]),
        results=_results(result),
        figures=definitions(_figures(summary)),
        error_notes=notes([thin] if len(trace) > MOST_SAMPLES else []),
        motion_notes=notes(motion),
        how=layout.how,
        events_notes=notes(missing),
        settings=definitions(_settings(result.scenario)),
        provenance=definitions(_provenance(source)),
        command=_command(source),
        scenario=(source.folder / "scenario.yaml").read_text(encoding="utf-8"),
    )
    return Item(html, data, title)


def _motion_notes(result: Result, frames: int, layout: Layout) -> list[str]:
    """What is not to be seen, or not all of it, and how to have it."""
    found = list(layout.notes)
    if result.kept is None:
        found.append(
            "The models were not recorded over time: colours change only between the start and "
            f"the end. A run with {_HOW_MODELS} keeps them at every sample."
        )
    elif frames < len(result.kept.samples):
        found.append(f"Colours change at {frames:,} of {len(result.kept.samples):,} samples.")
    if result.events_file is None:
        found.append(
            "No events were recorded: there are no messages to see, nor the age of knowledge. "
            f"A run with {_HOW_EVENTS} keeps them."
        )
    return found


def _window_note(messages: Messages, end: float) -> str:
    sent = count(len(messages.rows), "message")
    if messages.end >= end and messages.start <= 0:
        return f"All {sent} are shown."
    return (
        f"Messages are shown from {seconds(messages.start)} to {seconds(messages.end)} "
        f"({sent}, {messages.events:,} events); report --from TIME shows others."
    )


# --- words ----------------------------------------------------------------------------------------
def _words(result: Result) -> list[str]:
    """What was simulated and what came out, a paragraph each."""
    scenario = result.scenario
    found = [scenario.description] if scenario.description else []
    found.append(" ".join([_who(result), _how(scenario), _network(scenario)]).strip())
    return [*found, _outcome(result.summary)]


def _who(result: Result) -> str:
    problem, scenario = result.problem, result.scenario
    low, high = int(problem.data.sizes.min()), int(problem.data.sizes.max())
    points = count(low, "point") if low == high else f"{low:,} to {count(high, 'point')}"
    what = "one number" if problem.p == 1 else f"{problem.p:,} numbers"
    kinds = f"{scenario.task.kind}, {scenario.graph.kind}".replace("_", " ")
    return (
        f"{count(problem.n, 'agent')} with {points} of data each learn models of {what} "
        f"on a graph of {count(problem.W.nnz // 2, 'link')} ({kinds})."
    )


def _waiting(rounds: Rounds) -> str:
    """For what agents wait."""
    if rounds.barrier == "all":
        return " with a barrier"
    if rounds.slack:
        most = count(rounds.slack, "round")
        return f" of its own for each agent, whose neighbours may be {most} behind"
    words = "all its neighbours" if rounds.share == 1 else f"{rounds.enough} of its neighbours"
    end = "" if rounds.deadline is None else f", or {seconds(rounds.deadline)},"
    return f" of its own for each agent, which waits for {words}{end}"


#: Whom an agent contacts.
_PEERS = {
    "uniform": "a neighbour",
    "weighted": "a neighbour chosen by weight",
    "turn": "the next neighbour",
    "all": "all neighbours",
}


def _how(scenario: Scenario) -> str:
    algorithm = scenario.algorithm
    name = _ALGORITHMS.get(algorithm.kind, algorithm.kind.replace("_", " "))
    if algorithm.rule is None:
        return f"The algorithm is {name}: nobody sends anything."
    if algorithm.mode == "sync":
        return f"The algorithm is {name}, in synchronous rounds{_waiting(scenario.rounds)}."
    rate = law_words(scenario.clock.rate, "")
    times = {"1": "once"}.get(rate, f"{rate} times")
    when = "at random" if scenario.clock.ticks == "poisson" else "regularly"
    protocol = protocol_of(algorithm.rule, algorithm.protocol)
    tells = "tells" if protocol.tells_all else "contacts"
    return (
        f"The algorithm is {name}, by asynchronous gossip: each agent wakes up {times} a "
        f"second, {when}, and {tells} {_PEERS[scenario.peers]}."
    )


def _network(scenario: Scenario) -> str:
    if scenario.algorithm.rule is None:
        return ""
    network = scenario.network
    constant = isinstance(network.latency, Constant)
    delays = "Messages take" if constant else "The delays of messages are"
    parts = [f"{delays} {law_words(network.latency)}"]
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
    if not isinstance(scenario.compute.time, Constant) or scenario.compute.time.mean_value:
        parts.append(f"a solve takes {law_words(scenario.compute.time)}")
    return f"{'; '.join(parts)}."


def _outcome(summary: dict[str, Any]) -> str:
    sent = count(summary["communications"], "message")
    lost = summary["communications"] and 100 * summary["dropped"] / summary["communications"]
    words = f"In {seconds(summary['simulated_time'])} of simulated time {sent} were sent"
    words += f" ({lost:.3g} % lost)" if lost else ""
    metrics = summary["metrics"]
    start, final = metrics["start"], metrics["final"]
    name = next((name for name in MAIN if name in start and name in final), None)
    if name is None:
        return f"{words}."
    words += f", and {MAIN[name]} went from {start[name]:.3g} to {final[name]:.3g}"
    best = metrics.get("optimum", {}).get(name)
    if best is not None and name != "distance":
        words += f" (the optimum has {best:.3g})"
    return f"{words}."


# --- tables ---------------------------------------------------------------------------------------
def _results(result: Result) -> Html:
    """Metrics of the solitary, first, last, optimal and consensus models."""
    stages = result.summary["metrics"]
    names = [str(name) for name in result.trace if any(name in row for row in stages.values())]
    table = pd.DataFrame.from_dict(stages, orient="index").reindex(columns=names)
    table = table.rename(columns=lambda name: name.replace("_", " ")).rename_axis(columns="models")
    shown = table.to_html(float_format="{:.4g}".format, na_rep="", border=0)
    return Html(f'<div class="wide">{shown}</div>')


def _figures(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The counts of messages, and the target if there was one."""
    counts = ("communications", "delivered", "dropped", "missed", "in_flight", "stale", "skipped")
    names = [name for name in (*counts, "bytes") if name in summary]
    found = [(name.replace("_", " "), f"{summary[name]:,}") for name in names]
    found.append(("simulated time", seconds(summary["simulated_time"])))
    target = summary["target"]
    if target is not None:
        reached = "not reached"
        if target["time"] is not None:
            sent = f"{target['communications']:,} communications"
            reached = f"at {seconds(target['time'])}, {sent}"
        goal = f"{target['metric']} {target['direction']} {target['level']:.4g}"
        found.append(("target", f"{goal}: {reached}"))
    return found


def _settings(scenario: Scenario) -> list[tuple[str, str]]:
    """Every key of the scenario and its value, dotted."""
    dotted = pd.json_normalize(scenario_values(scenario)).iloc[0].to_dict()
    return [
        (str(key), shown_value(value))
        for key, value in dotted.items()
        if value is not None and key not in ("name", "description")
    ]


def _provenance(source: Source) -> list[tuple[str, str]]:
    manifest = source.manifest
    found = [("result", str(source.folder)), ("hash", manifest["hash"])]
    if manifest["plugins"]:
        found.append(("plugins", ", ".join(manifest["plugins"]["references"])))
        found.append(("plugins' SHA-256", manifest["plugins"]["sha256"]))
    found.append(("computed in", seconds(round(manifest["wall_time"], 2))))
    found.append(("software", source.software))
    found += [(name, f"SHA-256 {about['sha256']}") for name, about in manifest["files"].items()]
    return found


def _command(source: Source) -> str:
    """By which the run is repeated."""
    words = ["python", "-m", "simulator", "run", str(source.folder / "scenario.yaml")]
    for name in (source.manifest["plugins"] or {}).get("references", ()):
        words += ["--plugin", name]
    return shlex.join(words)
