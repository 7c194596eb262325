"""A run on a page: its words and tables as HTML, its curves, network and events as data."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.engines.setup import Setup, prepare
from simulator.report import words
from simulator.report.event_story import (
    UNDER_WAY,
    Histogram,
    Messages,
    Story,
    age_law,
    delay_law,
    read_batches,
    tell,
    together,
)
from simulator.report.network_view import Layout, arrange, colouring, colourings, stages, thinned
from simulator.report.parts import (
    Source,
    column,
    definitions,
    fill,
    items,
    paragraphs,
    squeezed,
    table,
    typed,
)
from simulator.runs.result import Result
from simulator.seeds import Streams
from simulator.theory.metrics import METRICS

#: Samples of a curve, and numbers of a colouring, at most: more make a page slow.
_SAMPLES, _COLOURED, _LINKS = 4_000, 200_000, 80_000
_HOW_EVENTS = "record: {events: true}"
_HOW_MODELS = "record: {models: true}"


@dataclass(frozen=True)
class Item:
    """A part of the page: its HTML, what its script needs, and its place in the contents."""

    html: str
    data: dict[str, Any]
    title: str


def run_item(source: Source, result: Result, *, key: str, share: int, window: float) -> Item:
    """A run's part of the page, of which ``share`` runs fill one."""
    trace, problem = result.trace, result.problem
    layout = arrange(problem, _LINKS // share)
    frames = max(2, _COLOURED // share // len(layout.agents))
    times, models = stages(result, frames)
    shades = list(colourings(result, times, models, layout.agents))
    notes = _notes(result, len(times), layout)
    data: dict[str, Any] = {"type": "run", "key": key, "title": _title(source, share)}
    data["trace"], thin = _trace(result)
    notes["error"] += thin
    data["metrics"] = _metrics(result)
    data["network"] = _network(layout, problem.names)
    # By columns; the network's agents are rows of it.
    agents = {name: result.agents[name] for name in result.agents.columns if name != "agent"}
    data["agents"] = {
        name: column(values.iloc[layout.agents], "f4") for name, values in agents.items()
    }
    story = None
    if result.events_file is not None and result.summary["communications"]:
        rows = thinned(len(trace), frames)
        moments = trace["time"].to_numpy()[rows]
        end = float(result.summary["simulated_time"])
        rule = result.scenario.algorithm.rule
        assert rule is not None
        batches = read_batches(result.events_file.path)
        story = tell(batches, problem, moments, end, window, rule.protocol)
        ages = story.mean_ages[:, layout.agents]
        text = "age of what it knows (s)"
        shades.append(colouring("age", text, moments, ages, log=False))
        data |= _events(result, story, layout)
        data["counts"] = {
            name: typed(values[layout.agents], "u4") for name, values in story.counts.items()
        }
        notes["motion"].append(_window_note(story.messages, end))
    data["colourings"] = shades
    command = f"python -m simulator run {shlex.quote(str(source.folder / 'scenario.yaml'))}"
    command += "".join(
        f" --plugin {shlex.quote(name)}"
        for name in (source.manifest["plugins"] or {}).get("references", ())
    )
    data["inspect"] = f"python -m simulator inspect {shlex.quote(str(source.folder))}"
    title = data["title"]
    html = fill(
        "run.html",
        key=key,
        title=title,
        words=paragraphs(words.paragraphs(result)),
        notes=items(result.summary["notes"]),
        results=_results(result),
        figures=definitions(_figures(result)),
        error_notes=items(notes["error"]),
        motion_notes=items(notes["motion"]),
        how=layout.how,
        events_notes=items([] if story else [_missing_events(result)]),
        settings=definitions(words.settings(result.scenario)),
        provenance=definitions(_provenance(source)),
        command=command,
        scenario=(source.folder / "scenario.yaml").read_text(encoding="utf-8"),
    )
    return Item(html, data, title)


def _title(source: Source, share: int) -> str:
    """The run's name and seed; beside others the name of its folder, which is its own."""
    summary = source.manifest["summary"]
    name = summary["name"] if share == 1 else source.folder.name
    return f"{name}, seed {summary['seed']}"


def _notes(result: Result, frames: int, layout: Layout) -> dict[str, list[str]]:
    """What is not there, or not all of it, and how to have it."""
    motion = list(layout.notes)
    if result.kept is None:
        motion.append(
            "The models were not recorded over time: colours change only between the start and "
            f"the end. A run with {_HOW_MODELS} keeps them at every sample."
        )
    elif frames < len(result.kept.samples):
        motion.append(f"Colours change at {frames:,} of {len(result.kept.samples):,} samples.")
    if result.events_file is None:
        motion.append(
            "No events were recorded: there are no messages to see, nor the age of knowledge. "
            f"A run with {_HOW_EVENTS} keeps them."
        )
    return {"error": [], "motion": motion}


def _missing_events(result: Result) -> str:
    if not result.summary["communications"]:
        return "Nobody sent anything."
    return f"Needs events: run with {_HOW_EVENTS}."


def _window_note(messages: Messages, end: float) -> str:
    sent = words.count(len(messages.rows), "message")
    if messages.end >= end and messages.start <= 0:
        return f"All {sent} are shown."
    start, stop = words.seconds(messages.start), words.seconds(messages.end)
    return (
        f"Messages are shown from {start} to {stop} ({sent}, {messages.events:,} events); "
        "report --from TIME shows others."
    )


# --- data -----------------------------------------------------------------------------------------
def _trace(result: Result) -> tuple[dict[str, Any], list[str]]:
    """The samples, every so many of very many."""
    rows = thinned(len(result.trace), _SAMPLES)
    note = [f"Curves show {len(rows):,} of {len(result.trace):,} samples."]
    columns = {str(name): typed(values.iloc[rows], "f8") for name, values in result.trace.items()}
    return columns, note if len(rows) < len(result.trace) else []


def _metrics(result: Result) -> list[dict[str, Any]]:
    """What the error charts can show: each metric with its name, scale and lines to compare with.

    The one that tells most comes first.
    """
    counts = ("time", "communications", "delivered", "dropped", "in_flight", "bytes")
    more = ("stale", "skipped", "missed", "round")
    names = [str(name) for name in result.trace if name not in (*counts, *more)]
    names.sort(key=lambda name: words.MAIN.index(name) if name in words.MAIN else len(words.MAIN))
    stages_of = result.summary["metrics"]
    found = []
    for name in names:
        values = result.trace[name].to_numpy()
        metric = METRICS.get(name)
        grows = metric is not None and metric.grows
        levels = {
            stage: stages_of[stage][name]
            for stage in ("solitary", "consensus", "optimum")
            if name in stages_of.get(stage, {})
        }
        text = metric.label.replace("\n", " ") if metric is not None else name
        log = not grows and name != "staleness" and bool((values > 0).all())
        found.append({"kind": name, "label": text, "log": log, "levels": levels})
    return found


def _network(layout: Layout, names: list[str]) -> dict[str, Any]:
    wide = "u2" if len(layout.agents) <= 65_536 else "u4"
    drawn = [names[i] for i in layout.agents]
    numbered = drawn == [str(i) for i in layout.agents]
    return {
        "x": typed(layout.places[:, 0], "f4"),
        "y": typed(layout.places[:, 1], "f4"),
        "links": typed(layout.links, wide),
        "weights": squeezed(layout.weights, log=False),
        # Most agents are called by their numbers.
        "agents": typed(layout.agents, "u4"),
        "names": None if numbered else drawn,
    }


def _events(result: Result, story: Story, layout: Layout) -> dict[str, Any]:
    """Messages between agents that are drawn, and the distributions with their laws."""
    places = np.full(result.problem.n, -1)
    places[layout.agents] = np.arange(len(layout.agents))
    rule, scenario = result.scenario.algorithm.rule, result.scenario
    assert rule is not None
    streams = Streams(scenario.seed, scenario.problem_seed)
    setup = prepare(scenario, result.problem, streams, rule)
    return {
        "messages": _messages(story.messages, places),
        "delay": _distribution(story.delays, delay_law(setup), _delay_words(setup)),
        "age": _distribution(story.ages, age_law(setup, story_end(result)), _AGE),
    }


def story_end(result: Result) -> float:
    """The end of the run in simulated time."""
    return float(result.summary["simulated_time"])


_AGE = "clocks, partners and loss, if nobody is busy"


def _delay_words(setup: Setup) -> str:
    uplink = " (without the wait for the uplink)" if setup.scenario.network.bandwidth else ""
    return f"{words.law_words(setup.scenario.network.latency)}{uplink}"


def _messages(messages: Messages, places: np.ndarray) -> dict[str, Any]:
    rows = [
        (number, sent, places[sender], places[receiver], what)
        for number, (sent, sender, receiver, what) in zip(
            messages.numbers, messages.rows, strict=True
        )
        if places[sender] >= 0 and places[receiver] >= 0
    ]
    fates = [messages.fates.get(number, (UNDER_WAY, np.inf)) for number, *_ in rows]
    columns = list(zip(*rows, strict=True)) or [(), (), (), (), ()]
    return {
        "start": messages.start,
        "end": messages.end,
        "sent": typed(columns[1], "f8"),
        "from": typed(columns[2], "u2"),
        "to": typed(columns[3], "u2"),
        "what": typed(columns[4], "u1"),
        "fate": typed([fate for fate, _ in fates], "u1"),
        "until": typed([until for _, until in fates], "f8"),
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


# --- tables ---------------------------------------------------------------------------------------
def _results(result: Result) -> str:
    """Metrics of the solitary, first, last, optimal and consensus models."""
    stages_of = result.summary["metrics"]
    names = [str(name) for name in result.trace if any(name in row for row in stages_of.values())]
    head = ["models", *[name.replace("_", " ") for name in names]]
    rows = [
        [stage, *[f"{row[name]:.4g}" if name in row else "" for name in names]]
        for stage, row in stages_of.items()
    ]
    return table(head, rows)


def _figures(result: Result) -> list[tuple[str, str]]:
    """The counts of messages, and the target if there was one."""
    summary = result.summary
    names = ("communications", "delivered", "dropped", "missed", "in_flight", "stale", "skipped")
    found = [
        (name.replace("_", " "), f"{summary[name]:,}") for name in (*names, "bytes")
        if name in summary
    ]  # fmt: skip
    found.append(("simulated time", words.seconds(summary["simulated_time"])))
    target = summary["target"]
    if target is not None:
        goal = f"{target['metric']} {target['direction']} {target['level']:.4g}"
        if target["time"] is None:
            found.append(("target", f"{goal}: not reached"))
        else:
            sent = f"{target['communications']:,} communications"
            found.append(("target", f"{goal}: at {words.seconds(target['time'])}, {sent}"))
    return found


def _provenance(source: Source) -> list[tuple[str, str]]:
    manifest = source.manifest
    found = [("result", str(source.folder)), ("hash", manifest["hash"])]
    if manifest["plugins"]:
        found.append(("plugins", ", ".join(manifest["plugins"]["references"])))
        found.append(("plugins' SHA-256", manifest["plugins"]["sha256"]))
    found.append(("computed in", words.seconds(round(manifest["wall_time"], 2))))
    found.append(("software", source.software))
    found += [(name, f"SHA-256 {about['sha256']}") for name, about in manifest["files"].items()]
    return found
