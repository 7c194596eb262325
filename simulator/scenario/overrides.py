"""Overrides: values that replace those of a scenario file before it is validated.

They come from ``load_scenario(path, overrides={"network.drop": 0.3})`` as Python values, or from
``--set network.drop=0.3`` on the command line as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import ScenarioError
from simulator.scenario.mistakes import Mistake, dotted, shown
from simulator.scenario.yaml_positions import MAX_DEPTH, MAX_DIGITS, KeyPath, check_text, read_yaml

#: Of these only one can be given, so setting one takes the file's other away.
_EXCLUSIVE = (
    (("algorithm", "alpha"), ("algorithm", "mu")),
    (("record", "every"), ("record", "every_communications")),
    (("record", "every"), ("record", "samples")),
    (("record", "every_communications"), ("record", "samples")),
    (("stop", "below"), ("stop", "above")),
)


def parse_override(text: str) -> tuple[str, list[Any]]:
    """The key and the values of ``--set key=VALUES``, where VALUES is a YAML flow sequence.

    >>> parse_override("network.drop=0, 0.2")
    ('network.drop', [0, 0.2])
    >>> parse_override("network.drop=0:0.3:0.1")
    ('network.drop', [0, 0.1, 0.2, 0.3])
    >>> parse_override("network.latency={kind: pareto, mean: 80 ms, shape: 2.5}")
    ('network.latency', [{'kind': 'pareto', 'mean': '80 ms', 'shape': 2.5}])
    """
    key, equals, values = text.partition("=")
    try:
        if not (key.strip() and equals):
            raise ValueError("expected KEY=VALUE, like network.drop=0.2")
        return key.strip(), _values(values)
    except ValueError as error:
        raise ScenarioError(f"--set {shown(text)[1:-1]}: {error}") from None


def _values(text: str) -> list[Any]:
    if text.rstrip().endswith(","):
        raise ValueError("the value after the last comma is missing")
    read = read_yaml(f"[{text}\n]")  # the line break ends a comment, if there is one
    if read.faults or not isinstance(read.value, list):
        raise ValueError(read.faults[0].message if read.faults else "not valid YAML")
    if not read.value:
        raise ValueError("the value is missing; write null for none, '' for no text")
    found = with_ranges(read.value)
    for value in repeated(found):
        raise ValueError(f"the value {shown(value)} is given twice")
    return found


#: Values of a range; more are a slip.
_MOST_VALUES = 10_000
_RANGE = re.compile(r"\s*([-+.\deE]+)\s*:\s*([-+.\deE]+)\s*:\s*([-+.\deE]+)\s*")


def with_ranges(values: list[Any]) -> list[Any]:
    """The values, with those of a range ``FROM:TO:STEP`` (both ends included) in its place.

    They are counted in decimal, so that 0:0.3:0.1 ends with 0.3 and not a bit above it.
    """
    found: list[Any] = []
    for value in values:
        match = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            found.append(value)
            continue
        try:
            low, high, step = map(Decimal, match.groups())
        except InvalidOperation:
            raise ValueError(f"{value} is no range like 0:1:0.1") from None
        if not step > 0 or not low <= high:
            raise ValueError(f"{value} is an empty range; expected FROM:TO:STEP, like 0:1:0.1")
        count = int((high - low) / step) + 1
        if count > _MOST_VALUES:
            raise ValueError(f"{value} has {count:,} values; at most {_MOST_VALUES:,} are allowed")
        numbers = [low + k * step for k in range(count)]
        found += [int(n) if n == n.to_integral_value() else float(n) for n in numbers]
    return found


def apply_overrides(
    given: dict[str, Any],
    overrides: Mapping[str, Any],
    algorithm_keys: Callable[[Any], frozenset[str]],
) -> tuple[set[KeyPath], list[Mistake]]:
    """Change ``given`` in place; return the paths set, and what could not be.

    Whole blocks come before single keys of theirs, in whichever order they are named.  Another
    ``algorithm.kind`` takes away what the file says of the old one and the new one does not have;
    ``algorithm_keys`` tells what each has.
    """
    paths: dict[KeyPath, Any] = {}
    mistakes = []
    for key, value in overrides.items():
        path = tuple(key.split(".")) if isinstance(key, str) else ("",)
        if not all(path):
            mistakes.append(Mistake((str(key),), "not a key; expected one like network.drop"))
            continue
        try:
            paths[path] = plain(value)
        except ValueError as error:
            mistakes.append(Mistake(path, str(error)))
    before = _kind(given)
    for path_set, value in sorted(paths.items(), key=lambda item: len(item[0])):
        problem = _set(given, path_set, value)
        if problem:
            mistakes.append(Mistake(path_set, problem))
    for pair in _EXCLUSIVE:
        for chosen, other in (pair, pair[::-1]):
            block = given.get(other[0])
            if paths.get(chosen) is not None and other not in paths and isinstance(block, dict):
                block.pop(other[1], None)
    if ("algorithm", "kind") in paths:
        # The file's keys that only its own kind has go with that kind.
        for key in algorithm_keys(before) - algorithm_keys(_kind(given)):
            if ("algorithm", key) not in paths:
                given["algorithm"].pop(key, None)
    return {*paths, *(mistake.path for mistake in mistakes)}, mistakes


def _kind(given: dict[str, Any]) -> Any:
    algorithm = given.get("algorithm")
    return algorithm.get("kind", "mp") if isinstance(algorithm, dict) else "mp"


def _set(given: dict[str, Any], path: KeyPath, value: Any) -> str | None:
    """Set one value; blocks on the way are made where there are none."""
    block: Any = given
    for depth, key in enumerate(path[:-1], 1):
        if block.get(key) is None:
            block[key] = {}
        block = block[key]
        if not isinstance(block, dict):
            name = dotted(path[:depth])
            return f"{name} is a plain value ({shown(block)}), not a block; set {name} as a whole"
    block[path[-1]] = value
    return None


def plain(value: Any, depth: int = 0) -> Any:
    """A value as YAML could have given it; ValueError for one that no file can hold."""
    if depth > MAX_DEPTH:
        raise ValueError(f"must not be nested in more than {MAX_DEPTH} levels")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("the keys of a block must be text")
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be a finite number (got {value})")
    if isinstance(value, int) and value.bit_length() > MAX_DIGITS * 3:
        raise ValueError(f"must be a number of at most {MAX_DIGITS} digits")
    if isinstance(value, str | Path):
        check_text(str(value))
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"cannot be of Python's type {type(value).__name__}")


def repeated(values: list[Any]) -> list[Any]:
    """Those that came before, as YAML values: Python's true is 1, YAML's is not."""
    seen, again = set(), []
    for value in values:
        block = isinstance(value, dict | list)
        item = (block, isinstance(value, bool), json.dumps(value) if block else value)
        if item in seen:
            again.append(value)
        seen.add(item)
    return again
