"""Scenario files: reading them with all their mistakes at once, writing them back, their schema.

``read_scenario`` reads YAML (``yaml_positions``), applies overrides (``overrides``), validates the
result (``scenario``) and says what is wrong in lines of the form

    scenarios/moons.yaml:12:9: network.drop: must be at most 1 (got 1.5)
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from simulator.errors import ScenarioError
from simulator.scenario.kinds import blaming
from simulator.scenario.laws import Constant
from simulator.scenario.mistakes import Mistake, dotted, mistakes, shown
from simulator.scenario.network import Rounds
from simulator.scenario.overrides import apply_overrides, plain
from simulator.scenario.schema import Scenario
from simulator.scenario.yaml_positions import KeyPath, Position, YamlText, plain_value, read_yaml
from simulator.shipped import found as shipped

#: PyYAML reads some 100 kB a second; a scenario has one or two.
MAX_BYTES = 500_000


# --- reading ------------------------------------------------------------------------------------
def read_scenario(
    given: str | os.PathLike[str] | Mapping[str, Any] | Source,
    overrides: Mapping[str, Any] | None,
    schema: type[Scenario],
) -> Scenario:
    """Read, override and validate a scenario file, or its content as a dictionary.

    ``overrides`` maps dotted keys to values: ``{"seed": 3, "network.latency.mean": "80 ms"}``.
    ``schema`` knows all kinds that there are.  Files that the scenario
    names are found relative to its own folder, also those that come by an override.

    Raises ScenarioError with one line a mistake.
    """
    source = given if isinstance(given, Source) else read_source(given)
    values = deepcopy(source.text.value)
    if not source.text.complete:
        raise source.error([])
    if not isinstance(values, dict):
        what = "is empty" if values is None else f"holds {shown(values)}"
        what = f"must be keys and values such as task and stop, but {what}"
        raise source.error([Mistake((), what)])
    if "task" not in values and {"base", "grid"} & values.keys():
        what = "this is a sweep file, not a scenario: give it to sweep or compare"
        raise source.error([Mistake((), what)])
    source.overridden, found = apply_overrides(values, overrides or {}, schema.algorithm_keys)
    values.setdefault("name", _default_name(source.path or Path("scenario")))
    with blaming(schema.plugins):
        return source.checked(schema, values, found)


def read_source(given: str | os.PathLike[str] | Mapping[str, Any]) -> Source:
    """The content of a YAML file, or a dictionary, from which many scenarios can be read."""
    if isinstance(given, Mapping):
        return Source(None, YamlText(_plain(given), complete=True))
    path = shipped(Path(given))
    return Source(path, read_yaml(read_scenario_text(path)))


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """A dictionary as a file could have given it, and a copy that may be changed."""
    values = {}
    for key, value in given.items():
        if not isinstance(key, str):
            raise ScenarioError(f"scenario: {shown(key)}: a key must be text")
        try:
            values[key] = plain(value)
        except ValueError as error:
            raise ScenarioError(f"scenario: {key}: {error}") from None
    return values


Model = TypeVar("Model", bound=BaseModel)


class Source:
    """Where values come from: places in a YAML file, or overrides.

    Without a file they come from Python, and have no place.
    """

    def __init__(self, path: Path | None, text: YamlText):
        self.path, self.text = path, text
        self.name = None if path is None else _printable(path)
        self.overridden: set[KeyPath] = set()

    def checked(self, model: type[Model], values: Any, found: Sequence[Mistake] = ()) -> Model:
        """The values, validated; or ScenarioError with these and all other mistakes at once.

        Files that they name are found beside this one.
        """
        made, folder = None, (self.path or Path()).parent
        try:
            made = model.model_validate(values, context={"folder": folder})
        except ValidationError as error:
            found = [*found, *mistakes(error, values, self.overridden, model)]
        if made is None or found or self.text.faults:
            raise self.error(found)
        return made

    def error(self, found: Sequence[Mistake]) -> ScenarioError:
        """All mistakes in the order of the file, then those of overrides."""
        faults = self.text.faults
        lines = [(0, at, self._line(at, path, message)) for at, path, message in faults]
        faulty = {fault.position for fault in faults}
        for mistake in found:
            override = self._override(mistake)
            if override is not None:
                lines.append((1, Position(0, 0), _override_line(override, mistake)))
            elif (position := self._position(mistake)) not in faulty:
                lines.append((0, position, self._line(position, mistake.path, mistake.message)))
        return ScenarioError("\n".join(line for _, _, line in sorted(lines)))

    def _line(self, position: Position, path: KeyPath, message: str) -> str:
        key = f"{dotted(path)}: " if path else ""
        if self.name is None:
            return f"scenario: {key}{message}"
        return f"{self.name}:{position.line}:{position.column}: {key}{message}"

    def _override(self, mistake: Mistake) -> KeyPath | None:
        """The override that a value, or a block which the file does not have, comes from."""
        path = mistake.path
        around = [key for key in self.overridden if path[: len(key)] == key]
        if around:
            return max(around, key=len)
        block = path[:-1] if mistake.about == "missing" else path
        inside = [key for key in self.overridden if key[: len(block)] == block]
        return None if not inside or block in self.text.values else min(inside)

    def _position(self, mistake: Mistake) -> Position:
        path = mistake.path[:-1] if mistake.about == "missing" else mistake.path
        places = self.text.keys if mistake.about == "key" else self.text.values
        while path and path not in places:
            path = path[:-1]
        return places.get(path, Position(1, 1))


def _override_line(override: KeyPath, mistake: Mistake) -> str:
    same = override[: len(mistake.path)] == mistake.path
    return (
        f"--set {dotted(override)}: {'' if same else dotted(mistake.path) + ': '}{mistake.message}"
    )


def read_scenario_text(path: Path) -> str:
    """The text of a regular file of sensible size."""
    name = _printable(path)
    try:
        # A pipe or a device could block for ever, so look before opening.
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "not a regular file"
            raise ScenarioError(f"{name}: must be a scenario file, but is {what}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ScenarioError(f"{name}: no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{name}: cannot be read: {reason}") from None
    if len(content) > MAX_BYTES:
        raise ScenarioError(f"{name}: too large for a scenario: more than {MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ScenarioError(f"{name}:{line}:{column}: must be text in UTF-8") from None


def _printable(path: Path) -> str:
    """A path as text, also where its name is no valid text or holds line breaks."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else repr(text)[1:-1]


def _default_name(path: Path) -> str:
    """The file's name without ending, of the characters that a scenario's name may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("._-")[:80] or "scenario"


# --- writing ------------------------------------------------------------------------------------
def dump_scenario(scenario: Scenario, files: Mapping[Path, str] | None = None) -> str:
    """The scenario as YAML with all defaults written out; loading it gives the same scenario.

    ``files`` gives the names to write for the scenario's files; others are written as absolute
    paths, which hold wherever the YAML is stored.
    """
    names = files or {}
    tree = _tree(scenario, lambda path: names.get(path, str(path.absolute())))
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


def scenario_values(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a dictionary with all defaults; reading it gives the same scenario."""
    return _tree(scenario, lambda path: str(path.absolute()))


_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the compiled one if there is one


class _Dumper(_SafeDumper):
    """Quotes text that would be read as a number; PyYAML would leave `1e-3` bare, for instance."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> Any:
        try:
            quoted = not isinstance(plain_value(text), str)
        except ValueError:
            quoted = True
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def scenario_files(scenario: Scenario) -> list[Path]:
    """The files that a scenario names, each once, in the order of the schema."""
    found: dict[Path, str] = {}
    _tree(scenario, lambda path: found.setdefault(path, ""))
    return list(found)


def scenario_hash_payload(scenario: Scenario, file_hashes: Mapping[Path, str]) -> dict[str, Any]:
    """What a result depends on, ready for JSON: files by their hash, no name, no description."""
    tree = _tree(effective(scenario), lambda path: file_hashes[path])
    return {key: value for key, value in tree.items() if key not in ("name", "description")}


def effective(scenario: Scenario) -> Scenario:
    """The scenario with the keys that play no part in its mode at their defaults.

    Two runs that differ in nothing else are one, and computed once: rounds have no clock, and
    gossip sends nothing again.  A law of clock rates stays, because drawing from it moves the
    factors of agents and links that are drawn after it.
    """
    clock, network, rounds = scenario.clock, scenario.network, scenario.rounds
    if scenario.algorithm.mode == "async":
        clock = clock.model_copy(update={"peers": scenario.peers})
        timer = type(network).model_fields["retransmit_after"].default
        network = network.model_copy(update={"retransmit_after": timer})
        rounds = Rounds()
    elif isinstance(clock.rate, Constant):
        rate = clock.rate.model_copy(update={"value": 1.0})
        clock = clock.model_copy(update={"rate": rate, "ticks": "poisson", "peers": None})
    return scenario.model_copy(update={"clock": clock, "network": network, "rounds": rounds})


def _tree(scenario: Scenario, file: Callable[[Path], str]) -> dict[str, Any]:
    """The scenario as plain values, in the order of the schema, a block's kind first."""

    def plain(value: Any) -> Any:
        if isinstance(value, BaseModel):
            items = {name: plain(getattr(value, name)) for name in type(value).model_fields}
            return {"kind": items.pop("kind"), **items} if "kind" in items else items
        if isinstance(value, list):
            return [plain(item) for item in value]
        return file(value) if isinstance(value, Path) else value

    return plain(scenario)


# --- for editors --------------------------------------------------------------------------------
def json_schema(scenarios: type[Scenario]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a scenario file, for completion and checks in an editor."""
    schema = _lenient(scenarios.model_json_schema())
    schema["required"] = ["task", "stop"]  # name and, for the paper's tasks, graph have defaults
    for block in schema["$defs"].values():
        kind = block.get("properties", {}).get("kind", {})
        if "const" in kind and "description" in block:
            kind.setdefault("description", block["description"].split("\n")[0])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _lenient(schema: Any) -> Any:
    """anyOf for oneOf, since ``kind`` may be left out; no OpenAPI words, no titles like "Kind"."""
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    names = {"oneOf": "anyOf"}
    left_out = ("discriminator", "title")
    return {names.get(k, k): _lenient(v) for k, v in schema.items() if k not in left_out}
