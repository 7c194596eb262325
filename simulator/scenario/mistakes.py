"""What is wrong with a scenario, in plain words: one message a mistake.

Pydantic says where (``loc``), which kind of error and with which input.  Its ``loc`` also holds the
names of union branches, and its phrases speak of Python; both are translated here, with the schema
at hand, so that a message can say what is allowed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from agents.losses.loss import Loss
from simulator.scenario.algorithm import Algorithm
from simulator.scenario.kinds import Graph, Metric, Task
from simulator.scenario.laws import Law
from simulator.scenario.yaml_positions import KeyPath

#: Phrases for pydantic's error types; {…} is filled from the error's context.
PHRASES = {
    "bool_type": "must be true or false",
    "dict_type": "must be a block of keys",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "string_pattern_mismatch": (
        "must be 1 to 80 letters, digits, dots, hyphens or underscores, a letter or digit first"
    ),
    "string_type": "must be text",
    "too_short": "must not be empty",
    "value_error": "{error}",
}
_TYPES = {
    bool: "true or false",
    dict: "a block of keys",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "text",
    Path: "the path of a file",
}
#: The blocks that plugins may bring other kinds of.
_OPEN = (Algorithm, Graph, Law, Loss, Metric, Task)


class Mistake(NamedTuple):
    """One mistake: the path of a key, and what is wrong with it."""

    path: KeyPath
    message: str
    #: A missing key is shown where the block around it is, an unknown one where its name is.
    about: Literal["value", "key", "missing"] = "value"
    #: The key that an unknown one probably stands for.
    meant: KeyPath | None = None


def mistakes(
    error: ValidationError, given: Any, overridden: Iterable[KeyPath], schema: type[BaseModel]
) -> list[Mistake]:
    """The mistakes behind a ValidationError of the scenario ``given`` (as read)."""
    found: dict[Mistake, None] = {}
    for details in error.errors(include_url=False):
        found.update(dict.fromkeys(_explain(details, given, set(overridden), schema)))
    # A misspelt key is one mistake: do not say too that the key it stands for is missing.
    meant = {mistake.meant for mistake in found}
    return [item for item in found if item.about != "missing" or item.path not in meant]


def did_you_mean(word: Any, allowed: Iterable[str]) -> str:
    """`` did you mean 'alpha'?`` where one of the allowed words is near, else nothing."""
    near = _nearest(word, allowed)
    return f" did you mean {near!r}?" if near else ""


def _nearest(word: Any, allowed: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(word[:80], list(allowed), n=1) if isinstance(word, str) else []
    return near[0] if near else None


def shown(value: Any, width: int = 60) -> str:
    """A value on one short line, as YAML would have it."""
    if isinstance(value, str):
        text = repr(value if len(value) <= width else value[:width] + "…")
    else:
        text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= width + 3 else text[:width] + "…"


def dotted(path: KeyPath) -> str:
    """``network.latency.mean``; a key that would not be readable is quoted."""
    return ".".join(
        str(key) if isinstance(key, int) or (key.isprintable() and len(key) < 60) else shown(key)
        for key in path
    )


def _explain(
    details: ErrorDetails, given: Any, overridden: set[KeyPath], schema: type[BaseModel]
) -> Iterator[Mistake]:
    place = _follow(details["loc"], schema)
    path = _as_written(place.path, given)
    error, value, context = details["type"], details["input"], details.get("ctx", {})
    for_kind = f" for kind {place.kind!r}" if place.kind else ""
    if for_kind and (*path[:-1], "kind") in overridden and path not in overridden:
        for_kind += f", which --set {dotted(path[:-1])}.kind asks for"
    if error == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        error = "finite_number"  # a whole number that is too large to be a float
    if error == "problems":
        for key, problem in context["problems"]:
            yield Mistake(_as_written((*path, *key.split(".")), given), problem)
    elif error == "missing":
        message = f"missing key{for_kind}; expected {_expected(place.schema)}"
        yield Mistake(path, message, "missing")
    elif error == "extra_forbidden":
        yield _unknown_key(path, place.block, for_kind, schema)
    elif error in ("union_tag_invalid", "union_tag_not_found") and isinstance(value, dict):
        yield _wrong_kind((*path, "kind"), value, place.schema)
    elif error in PHRASES:
        limits = {name: _short(limit) for name, limit in context.items()}
        yield Mistake(path, PHRASES[error].format(**limits) + _got(error, value))
    else:
        hint = did_you_mean(value, _words(place.schema))
        message = f"must be {_expected(place.schema)} (got {shown(value)})"
        yield Mistake(path, f"{message};{hint}" if hint else message)


def _unknown_key(path: KeyPath, block: Any, for_kind: str, schema: type[BaseModel]) -> Mistake:
    allowed = sorted(block.model_fields, key=lambda name: name != "kind")
    near = _nearest(path[-1], allowed)
    homes = [
        f"{name}.{path[-1]}"
        for name, field in schema.model_fields.items()
        if not (for_kind and len(_models(field.annotation)) > 1)  # sigma is of laws and of graphs
        and any(path[-1] in model.model_fields for model in _models(field.annotation))
    ]
    guess = near or next(iter(homes), None)
    hint = f" did you mean {guess!r}?" if guess else ""
    message = f"unknown key{for_kind};{hint} allowed: {', '.join(allowed)}"
    return Mistake(path, message, "key", (*path[:-1], near) if near else None)


def _wrong_kind(path: KeyPath, block: dict[str, Any], schema: Any) -> Mistake:
    kinds = _kinds(schema)
    if "kind" not in block:
        return Mistake(path, f"missing key; expected {_one_of(kinds)}", "missing")
    kind = block["kind"]
    hint, allowed = did_you_mean(kind, kinds), ", ".join(kinds)
    if all(issubclass(model, _OPEN) for model in _models(schema)):
        allowed += ", and what a plugin adds (--plugin FILE_OR_MODULE)"
    return Mistake(path, f"unknown kind (got {shown(kind)});{hint} allowed: {allowed}")


def _got(error: str, value: Any) -> str:
    """The value got, and how to mend it where that is plain."""
    if error == "value_error" and isinstance(value, dict):
        return ""  # about several keys of a block, which the message has named
    text = f" (got {shown(value)})"
    if error.startswith("int") and isinstance(value, float) and _short(value) is not value:
        text += f"; write {_short(value)}"
    if error == "string_type" and not isinstance(value, dict | list | None):
        text += "; put it in quotes"
    return text


def _short(value: Any) -> Any:
    """1 for 1.0; anything but a whole float of moderate size as it is."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return int(value) if whole else value


# --- the schema behind a place ------------------------------------------------------------------
class _Place(NamedTuple):
    path: KeyPath
    #: Of the value; of the block which holds it; and that block's kind, if it has one.
    schema: Any
    block: Any
    kind: str | None


def _follow(loc: tuple[int | str, ...], root: type[BaseModel]) -> _Place:
    """Follow a ``loc`` through the schema, and leave out the names of union branches."""
    path: KeyPath = ()
    schema: Any = root
    value_schema: Any = root
    block: Any = root
    kind = block_kind = None
    for item in loc:
        branches = _branches(schema)
        if len(branches) > 1:
            schema = branches[str(item)]
            kind = str(item) if _kinds(schema) else None
            continue
        (block,), block_kind, kind = branches.values(), kind, None
        if _is_model(block):
            field = block.model_fields.get(item)
            schema = Any if field is None else field.annotation
        else:
            schema = get_args(block)[-1] if get_args(block) else Any
        path, value_schema = (*path, item), schema
    return _Place(path, value_schema, block, block_kind)


def _as_written(path: KeyPath, given: Any) -> KeyPath:
    """Without the keys that a plain value stands for: ``latency: 50 ms`` has no ``value``."""
    for depth, key in enumerate(path):
        if not isinstance(given, dict | list) or (isinstance(given, list) and isinstance(key, str)):
            return path[:depth]
        if isinstance(given, dict) and key not in given:
            return path
        given = given[key]  # type: ignore[index]
    return path


def _is_model(schema: Any) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _branches(schema: Any) -> dict[str, Any]:
    """The alternatives of a union, None aside, by their names in a ``loc``; or the schema alone."""
    bare, *about = get_args(schema) if get_origin(schema) is Annotated else (schema,)
    if get_origin(bare) in (Union, UnionType):
        inside = [_branches(item) for item in get_args(bare) if item is not NoneType]
        return {name: branch for each in inside for name, branch in each.items()}
    tags = [item.tag for item in about if isinstance(item, Tag)]
    return {(tags or _kinds_of(bare) or [str(bare)])[0]: bare}


def _kinds_of(model: Any) -> list[str]:
    field = model.model_fields.get("kind") if _is_model(model) else None
    return [] if field is None else list(get_args(field.annotation))


def _models(schema: Any) -> list[type[BaseModel]]:
    """The blocks that a schema allows."""
    return [branch for branch in _branches(schema).values() if _is_model(branch)]


def _kinds(schema: Any) -> list[str]:
    """The kinds of the blocks that a schema allows."""
    return [kind for model in _models(schema) for kind in _kinds_of(model)]


def _words(schema: Any) -> list[str]:
    """The words that a schema allows."""
    branches = _branches(schema).values()
    return [word for each in branches if get_origin(each) is Literal for word in get_args(each)]


def _expected(schema: Any) -> str:
    """What a schema allows, in words."""
    words, kinds = _words(schema), _kinds(schema)
    parts = [_one_of(words)] if words else []
    if kinds:
        parts.append(f"a block with kind {_one_of(kinds)}")
    for branch in _branches(schema).values():
        if _is_model(branch) and not _kinds_of(branch):
            parts.append(f"a block of {', '.join(branch.model_fields)}")
        plain = get_origin(branch) or branch
        if plain in _TYPES:
            parts.append(_TYPES[plain])
    return ", or ".join(parts)


def _one_of(words: list[str]) -> str:
    words = [repr(word) if ", " in word else word for word in words]
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"
