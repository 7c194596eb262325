"""Reading YAML so that every key and value keeps its place in the text.

A scenario needs less than YAML offers, and what it does not need is an error instead of a surprise:
tags, anchors and aliases, duplicate keys, keys that are no text, several documents.  Plain scalars
follow YAML 1.2's core schema, so `1e-3` is a number, `no` is text and `12:30` is not 750.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import yaml

#: Keys and list indices from the top of the file down to a value.
KeyPath = tuple[str | int, ...]

#: PyYAML may have been built without its compiled part.
_FAST: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 50
#: Python refuses to convert longer ones, since that takes quadratic time.
MAX_DIGITS = 4300

_DIGITS = "[0-9]+(?:_[0-9]+)*"
_INT = re.compile(rf"[-+]?{_DIGITS}")
_FLOAT = re.compile(rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _Unreadable:
    def __repr__(self) -> str:
        return "unreadable"


#: Stands for a value with a fault: no schema accepts it.
UNREADABLE: Final = _Unreadable()
#: Control characters, and halves of surrogate pairs, which no file can hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Position(NamedTuple):
    """A place in the text, counted from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, mark: Any) -> Position:
        """PyYAML counts from 0."""
        return cls(mark.line + 1, mark.column + 1) if mark else cls(1, 1)


class Fault(NamedTuple):
    """Something that YAML allows, or not, and that a scenario cannot hold."""

    position: Position
    path: KeyPath
    message: str


@dataclass
class YamlText:
    """The value of a YAML text, and where its parts stand."""

    value: Any = None
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)
    #: Values with a fault are ``UNREADABLE``, or left out, in ``value``.
    faults: list[Fault] = field(default_factory=list)
    #: False where reading had to stop, so that ``value`` means nothing.
    complete: bool = False


def read_yaml(text: str) -> YamlText:
    """Read one YAML document; whatever is wrong with it is in ``faults``, never an exception."""
    read = YamlText()
    try:
        read.value = _value(_compose(text), (), read)
        read.complete = True
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        what = f"not valid YAML: control character U+{error.character:04X}"
        read.faults.append(Fault(position, (), what))
    except yaml.MarkedYAMLError as error:
        position = Position.of(error.problem_mark or error.context_mark)
        reasons = ", ".join(part for part in (error.context, error.problem) if part)
        valid = "" if isinstance(error, _NotAllowedError) else "not valid YAML: "
        read.faults.append(Fault(position, (), f"{valid}{reasons}"))
    except (ValueError, OverflowError):  # PyYAML on "\UFFFFFFFF" and on %YAML 1.999…
        message = "not valid YAML: the number of an escape or a directive is out of range"
        read.faults.append(Fault(Position(1, 1), (), message))
    return read


class _NotAllowedError(yaml.MarkedYAMLError):
    """YAML that no scenario needs."""

    def __init__(self, event: Any, what: str):
        super().__init__(problem=what, problem_mark=event.start_mark)


def _compose(text: str) -> yaml.Node:
    """The one document of a text.

    PyYAML's compiled reader is ten times as fast, and its own one says better what is wrong.
    """
    try:
        _check_events(text, _FAST)
        node = yaml.compose(text, Loader=_FAST)
    except (yaml.YAMLError, ValueError, OverflowError):
        _check_events(text, yaml.SafeLoader)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None
    return node


def _check_events(text: str, loader: type[Any]) -> None:
    """Refuse what scenarios need not, before a bomb of aliases is unfolded or the stack is full."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > MAX_DEPTH + 1:
            raise _NotAllowedError(event, f"must not be nested in more than {MAX_DEPTH} levels")
        if documents > 1:
            raise _NotAllowedError(event, "must be a single YAML document")
        if anchor := getattr(event, "anchor", None):
            raise _NotAllowedError(event, f"anchors and aliases are not allowed (got {anchor})")
        if tag := getattr(event, "tag", None):
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            raise _NotAllowedError(event, f"tags are not allowed (got {shown})")
    if documents == 0:
        raise _NotAllowedError(event, "must be a scenario, but is empty")


def _value(node: yaml.Node, path: KeyPath, read: YamlText) -> Any:
    """What a node stands for; places and faults go to ``read``."""
    position = read.values[path] = Position.of(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, k), read) for k, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        try:
            check_text(node.value)
            return node.value if node.style else plain_value(node.value)
        except ValueError as error:
            read.faults.append(Fault(position, path, str(error)))
            return UNREADABLE
    items: dict[str, Any] = {}
    for key_node, item in node.value:
        place = Position.of(key_node.start_mark)
        key = _value(key_node, (*path, "?"), YamlText())
        if not isinstance(key, str):
            read.faults.append(Fault(place, path, "a key must be text; put it in quotes"))
        elif key in items:
            what = f"duplicate key, first given in line {read.keys[*path, key].line}"
            read.faults.append(Fault(place, (*path, key), what))
        else:
            read.keys[*path, key] = place
            items[key] = _value(item, (*path, key), read)
    return items


def plain_value(text: str) -> Any:
    """What an unquoted scalar stands for: null, a boolean, a number or else text itself.

    Raises ValueError for infinity, NaN and numbers too large to hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"must be a number of at most {MAX_DIGITS} digits (got {len(text)})")
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError(f"must be a finite number (got {text[:40]})")
        return value
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"must be a finite number (got {text})")
    return text


def check_text(text: str) -> None:
    """Raise ValueError for text with control characters other than line breaks and tabs."""
    match = _UNPRINTABLE.search(text)
    if match:
        raise ValueError(f"must not contain the control character U+{ord(match[0]):04X}")
