"""Laws, tasks, graphs and metrics by themselves; the keys of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from agents.machinery.discovery import kind_of
from simulator.conformance.subjects import CheckError, NotApplicableError, Subject, check
from simulator.problem.build import build_problem
from simulator.problem.graphs.graph import check_weights
from simulator.runs.plugins import schema_for
from simulator.scenario.files import json_schema
from simulator.scenario.kinds import BASES
from simulator.scenario.laws import Law
from simulator.scenario.tables import Floats
from simulator.seeds import Streams
from simulator.theory.metrics import View

SEEDS = (0, 1, 2)
#: How many are drawn, and how many standard errors a mean may be off: once in 10⁷ by chance.
DRAWS, SIGMAS = 200_000, 5.3
#: The share of one draw in the sum of all, above which their spread says nothing of the mean's.
HEAVY = 0.01


# --- laws -----------------------------------------------------------------------------------------
def _draws(law: Law[Floats], seed: int = 1) -> Floats:
    return law.draw(np.random.default_rng(seed), DRAWS)


def _interval(values: Floats) -> float:
    """How far their mean may be from the expectation."""
    if values.max() > HEAVY * values.sum():
        share = f"one of {DRAWS} draws is {values.max() / values.sum():.1%} of their sum"
        raise NotApplicableError(f"the tail is too heavy to tell: {share}")
    return float(SIGMAS * values.std() / np.sqrt(len(values)) + 1e-9 * values.mean())


@check("draws are finite numbers from 0", "laws")
def finite(subject: Subject) -> str:
    """As many as were asked for."""
    for size in (0, 1, 1000):
        values = np.asarray(subject.instance.draw(np.random.default_rng(size), size))
        if values.shape != (size,) or not (np.isfinite(values) & (values >= 0)).all():
            raise CheckError(f"it gives {values[:3]} … for {size} draws")
    return ""


@check("blocks of draws equal single ones", "laws")
def blocks(subject: Subject) -> str:
    """Engines draw in blocks of different sizes."""
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    law = subject.instance
    parts = [law.draw(other, size) for size in (1, 2, 37, 60)]
    if not np.array_equal(law.draw(one, 100), np.concatenate(parts)):
        what = "each draw must be one call of the generator, and nothing may be kept"
        raise CheckError(f"100 draws differ from 1, 2, 37 and 60 of the same seed; {what}")
    return ""


@check("draws have the mean that it declares", "laws")
def mean(subject: Subject) -> str:
    """Within an interval of their own spread."""
    law = subject.instance
    values = _draws(law)
    off, declared = _interval(values), law.mean_value
    if not abs(values.mean() - declared) <= off:
        what = f"the mean of {DRAWS} draws is {values.mean():.6g} ± {off:.2g}"
        raise CheckError(f"{what}, and mean_value {declared:.6g}")
    return f"{declared:.4g}, and {values.mean():.4g} ± {off:.1g} of {DRAWS} draws"


@check("hardly any draw exceeds rare_value", "laws")
def rare(subject: Subject) -> str:
    """One in a billion."""
    law, most = subject.instance, _draws(subject.instance).max()
    if most > law.rare_value * (1 + 1e-12):
        raise CheckError(f"one of {DRAWS} draws is {most:.6g}, and rare_value {law.rare_value:.6g}")
    return ""


@check("length-weighted draws, for stays", "laws")
def weighted(subject: Subject) -> str:
    """Their mean is E[X²]/E[X]."""
    law = subject.instance
    if type(law).weighted is Law.weighted:
        raise NotApplicableError("it writes no weighted, so it is not for availability")
    values, plain = law.weighted(np.random.default_rng(2), DRAWS), _draws(law)
    expected = np.mean(plain**2) / np.mean(plain)
    off = _interval(values) + _interval(plain**2) / plain.mean()
    if not abs(values.mean() - expected) <= off:
        found = f"their mean is {values.mean():.6g}"
        raise CheckError(f"{found}, and E[X²]/E[X] of draws {expected:.6g} ± {off:.2g}")
    return f"{expected:.4g}, and {values.mean():.4g} ± {off:.1g} of {DRAWS} draws"


# --- keys -----------------------------------------------------------------------------------------
@check("keys in the schema, with descriptions", *(name for name in BASES if name != "protocols"))
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
