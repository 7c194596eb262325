"""Keys of all kinds; tasks, graphs and metrics by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from agents.machinery.discovery import kind_of
from simulator.conformance.subjects import Subject
from simulator.conformance.verdicts import CheckError, NotApplicableError, check
from simulator.problem.build import build_problem
from simulator.problem.graphs.graph import check_weights
from simulator.runs.plugins import schema_for
from simulator.scenario.files import json_schema
from simulator.scenario.kinds import BASES
from simulator.seeds import Streams
from simulator.theory.metrics import View

SEEDS = (0, 1, 2)


@check("keys in the schema, with descriptions", *BASES)
def described(subject: Subject) -> str:
    """What ``schema`` prints, and editors show."""
    thing: Any = subject.thing
    fields = (thing.Parameters if subject.family == "rules" else thing).model_fields
    own, found = {name for name in fields if name != "kind"}, False
    for block in json_schema(schema_for(subject.plugins))["$defs"].values():
        keys = block.get("properties", {})
        if keys.get("kind", {}).get("const") != kind_of(thing) or not own <= keys.keys():
            continue
        found = True
        silent = [name for name in own if not keys[name].get("description")]
        if silent:
            what = "write a text in quotes below it"
            raise CheckError(f"nothing describes the key {silent[0]}: {what}")
    if not found and not getattr(thing, "always", False):
        raise CheckError("it is not in the schema")
    return ", ".join(sorted(own))


# --- tasks and graphs -----------------------------------------------------------------------------
def _same(one: Any, other: Any) -> bool:
    """Equal bits, of arrays or of what holds them."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if hasattr(one, "__dict__") and not isinstance(one, type):
        return all(_same(value, vars(other)[name]) for name, value in vars(one).items())
    return bool(one == other)


@check("the same seed, the same data", "tasks")
def data(subject: Subject) -> str:
    """Of the stream that ``build`` is given, and of nothing else."""
    for seed in SEEDS:
        first, again = (subject.instance.build(Streams(seed).data) for _ in range(2))
        for name in ("names", "data", "test", "targets", "vectors"):
            if not _same(getattr(first, name), getattr(again, name)):
                what = f"{name} differ between two builds with the seed {seed}"
                raise CheckError(f"{what}; draw from rng alone")
    return ""


@check("data are numbers, and labels ±1", "tasks")
def numbers(subject: Subject) -> str:
    """Where the loss is one of labels."""
    material = subject.instance.build(Streams(0).data)
    X, y = material.data.X, material.data.y
    if not np.isfinite(y).all() or not (X is None or np.isfinite(X).all()):
        raise CheckError("a point or its target is not a finite number")
    if subject.instance.loss.labels and set(np.unique(y)) - {-1.0, 1.0}:
        raise CheckError(f"the loss {subject.instance.loss.kind} needs labels ±1")
    return f"{len(material.data)} agents, {len(y)} points"


@check("weights are symmetric and positive, without self-loops", "graphs")
def weights(subject: Subject) -> str:
    """And the same for the same seed."""
    W: csr_array | None = None
    for seed in SEEDS:
        W, again = (build_problem(subject.scenario, Streams(seed)).W for _ in range(2))
        check_weights(W, W.shape[0], subject.scenario.graph)
        if not _same((W - again).toarray(), np.zeros(W.shape)):
            raise CheckError(f"two builds with the seed {seed} differ; draw from rng alone")
    assert W is not None
    return f"{W.shape[0]} agents, {W.nnz // 2} edges"


# --- metrics --------------------------------------------------------------------------------------
@check("a finite number, of arrays that it leaves alone", "metrics")
def measured(subject: Subject) -> str:
    """The arrays are read-only; of each agent too, where it has that."""
    problem = build_problem(subject.scenario, Streams(0))
    view, kind = View(subject.scenario, problem), str(kind_of(subject.thing))
    metric = view.metric(kind)
    if metric is None or kind == "staleness":
        raise NotApplicableError("it cannot be measured in this world: name a scenario that can")
    rng, values = np.random.default_rng(0), []
    for models in (problem.solitary, rng.normal(size=problem.solitary.shape)):
        values.append(view.measure(models)[kind])
        if not np.isfinite(values[-1]) or values[-1] != view.measure(models.copy())[kind]:
            raise CheckError(f"it is {values[-1]}, and not the same finite number twice")
        if metric.by_agent and np.isinf(view.each(metric, models)).any():
            raise CheckError("that of an agent is infinite")
    return f"{values[0]:.4g} of models learned alone"
