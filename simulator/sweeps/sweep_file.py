"""Sweep files: reading them, and writing one that asks for the same again.

A sweep file says what ``--set`` and the other options say::

    base: moons.yaml                    # the scenario, relative to this file
    grid:                               # every combination is run …
      network.drop: [0, 0.2, 0.5]
      network.latency.mean: [10 ms, 100 ms]
    seeds: 5                            # … with the scenario's seed and the 4 after it
    target: distance=1%                 # optional: a run stops where it reaches this, or none
    vary: {algorithm.mode: [async, sync]}    # optional: what `compare` compares; or
    sides: {gossip: {}, near: {algorithm.mode: sync, rounds.barrier: neighbours}}
    tune:                               # optional: what a side may choose on other seeds
      near: {network.retransmit_after: [100 ms, 300 ms, never]}
      budget: 1.25                      # or 1.1 of gossip
    frontier: {gossip: {clock.rate: [1, 10]}, near: {network.retransmit_after: [100 ms, 1 s]}}
    worlds:                             # optional: overrides with a name; $spread is a key of grid
      passing: {network.latency: {kind: lognormal, mean: 100 ms, sigma: $spread}}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from agents.parameters import Strict
from simulator.scenario.files import Source, read_scenario_text
from simulator.scenario.mistakes import Mistake
from simulator.scenario.overrides import with_ranges
from simulator.scenario.yaml_positions import read_yaml
from simulator.shipped import found as shipped
from simulator.sweeps.request import Budget, Knobs, Request, knobs_of, label, sided, wrong_values


def _with_ranges(values: Any) -> Any:
    """A list, or a range, with the values of all ranges in it; what is wrong is said later."""
    try:
        ranged = with_ranges(values if isinstance(values, list) else [values])
    except ValueError:
        return values
    return ranged if isinstance(values, list) or ranged != [values] else values


def _listed(values: list[Any]) -> list[Any]:
    if (what := wrong_values(values)) is not None:
        raise ValueError(what.partition(" (got")[0])
    return values


def _alone(knob: dict[str, list[Any]]) -> dict[str, list[Any]]:
    if len(knob) != 1:
        raise ValueError(f"must have one key (got {len(knob)})")
    return knob


def _budgeted(given: Any) -> Any:
    Budget.read(given)
    return given


_RANGE = r"^\s*[-+.\deE]+\s*:\s*[-+.\deE]+\s*:\s*[-+.\deE]+\s*$"
#: Values of a key.
Values = Annotated[
    list[Any],
    BeforeValidator(_with_ranges),
    AfterValidator(_listed),
    WithJsonSchema(
        {
            "description": "Values, or a range FROM:TO:STEP with both ends.",
            "anyOf": [
                {"type": "array", "minItems": 1, "items": {}},
                {"type": "string", "pattern": _RANGE},
            ],
        }
    ),
]
_ONE_KEY = {"minProperties": 1, "maxProperties": 1}
#: One key of the scenario, and the values to try.
Knob = Annotated[dict[str, Values], AfterValidator(_alone), Field(json_schema_extra=_ONE_KEY)]
Overrides = dict[str, Any]
Text = Annotated[str, Field(min_length=1)]


class Tune(Strict):
    """By side, a key whose value it chooses on held-out seeds."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Knob]

    budget: Annotated[
        Any,
        AfterValidator(_budgeted),
        WithJsonSchema(
            {"anyOf": [{"type": "number", "minimum": 1}, {"type": "string", "pattern": " of "}]}
        ),
    ] = Field(
        1.25,
        description="How many times the least communications of its values a choice may cost; "
        "`1.1 of async`: of what that side's choice costs.",
    )


class SweepFile(Strict):
    """Many runs of one scenario, for sweep and compare."""

    base: Text = Field(description="The scenario file, relative to this file.")
    name: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$",
        description="What the sweep is called; the file's name by default.",
    )
    description: Text | None = Field(None, description="What the sweep is about.")
    grid: dict[str, Values] = Field(
        {},
        description="Keys of the scenario with their values; every combination is run. A key that "
        "begins with $ is one of worlds.",
    )
    seeds: int | None = Field(
        None,
        ge=1,
        description="So many runs of each combination: the scenario's seed and those after it.",
    )
    target: Text | None = Field(
        None,
        examples=["distance=1%", "l2_error=0.05"],
        description="A run stops where it reaches this: METRIC=LEVEL, a number or a percentage of "
        "the value at its start; none: at its limits alone.",
    )
    vary: Knob | None = Field(None, description="The key that compare compares, and its values.")
    sides: Annotated[dict[str, Overrides], AfterValidator(sided)] | None = Field(
        None,
        description="What compare compares, where that is more than one key: names with overrides.",
    )
    tune: Tune = Field(Tune(), description="By side, a key whose value it chooses.")
    frontier: dict[str, Knob] | None = Field(
        None, description="By side, a key over whose values its frontier is drawn."
    )
    worlds: dict[str, Overrides] = Field(
        {}, description="Sets of overrides with a name; each has the whole grid."
    )


def sweep_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a sweep file, for editors."""
    schema = _without_titles(SweepFile.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_titles(item) for key, item in schema.items() if key != "title"}


def read_request(path: Path | Mapping[str, Any]) -> Request:
    """A sweep file, or a scenario to be swept, which may be a dictionary."""
    if not isinstance(path, Path):
        return Request(base=path)
    path = shipped(path)
    source = Source(path, read_yaml(read_scenario_text(path)))
    given = source.text.value
    if not isinstance(given, dict) or "task" in given or not {"base", "grid"} & given.keys():
        return Request(base=path)  # a scenario; whatever is wrong with it is said by load_scenario
    file = source.checked(SweepFile, given, _world_mistakes(given))
    if file.vary and file.sides:
        raise source.error([Mistake(("sides",), "give vary or sides, not both", "key")])
    places = {}
    for block, swept in (("grid", file.grid), ("vary", file.vary or {})):
        for key, values in swept.items():
            at = source.text.values[(block, key)]
            for index, value in enumerate(values):
                position = source.text.values.get((block, key, index), at)
                here = f"{path}:{position.line}:{position.column}: {block}."
                places[f"{key}={label(value)}"] = here
    return Request(
        base=path.parent / file.base,
        grid=file.grid,
        seeds=file.seeds,
        name=file.name or path.stem,
        target=file.target,
        vary=None if file.vary is None else next(iter(file.vary.items())),
        sides=file.sides or {},
        budget=Budget.read(file.tune.budget),
        tune=knobs_of(file.tune.__pydantic_extra__),
        frontier=None if file.frontier is None else knobs_of(file.frontier),
        worlds=file.worlds,
        places=places,
    )


def _world_mistakes(given: dict[str, Any]) -> list[Mistake]:
    """What is wrong with ``$keys`` of the grid and with the worlds that refer to them."""
    worlds, grid = given.get("worlds", {}), given.get("grid", {})
    if not isinstance(worlds, dict) or not isinstance(grid, dict):
        return []  # said by the schema
    own = [key for key in grid if key.startswith("$")]
    used = set().union(*(_references(each) for each in worlds.values()))
    found = [
        Mistake(("grid", key), "no world refers to it", "key") for key in own if key not in used
    ]
    unknown = sorted(used.difference(own))
    if unknown:
        what = f"{unknown[0]} is no key of grid; those are: {', '.join(own) or 'none'}"
        found.append(Mistake(("worlds",), what))
    return found


def _references(value: Any) -> set[str]:
    """The ``$keys`` in a world's overrides."""
    if isinstance(value, dict):
        return set().union(*map(_references, value.values()))
    return {value} if isinstance(value, str) and value.startswith("$") else set()


def as_file(request: Request, name: str, folder: Path) -> str | None:
    """A sweep file for ``folder`` that asks for the same; None where no file has the base."""
    if not isinstance(request.base, Path):
        return None

    def blocks(knobs: Knobs) -> dict[str, Any]:
        return {side: {key: values} for side, (key, values) in knobs.items()}

    given = {
        "base": os.path.relpath(request.base.absolute(), folder.absolute()),
        "name": name,
        "grid": dict(request.grid),
        "worlds": dict(request.worlds),
        "vary": None if request.sides else request.vary and dict([request.vary]),
        "sides": dict(request.sides),
        "tune": {**blocks(request.tune), "budget": request.budget.given} if request.tune else None,
        "frontier": blocks(request.frontier) if request.frontier else None,
        "target": request.target,
        "seeds": request.seeds,
    }
    return yaml.safe_dump(
        {key: value for key, value in given.items() if value}, sort_keys=False, allow_unicode=True
    )
