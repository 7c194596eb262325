"""Reading YAML so that every key and value keeps its place in the text.

A scenario needs less than YAML offers, and what it does not need is an error instead of a surprise:
tags, anchors and aliases, duplicate keys, keys that are no text, several documents.  Plain scalars
follow YAML 1.2's core schema, so `1e-3` is a number, `no` is text and `12:30` is not 750.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
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


class _UnreadableError(Exception):
    """The rest of the text cannot be read."""

    def __init__(self, event: Any, message: str):
        self.position, self.message = Position.of(event.start_mark), message


def read_yaml(text: str) -> YamlText:
    """Read one YAML document; whatever is wrong with it is in ``faults``, never an exception.

    PyYAML's compiled reader is ten times as fast, and its own one says better what is wrong.
    """
    result = YamlText()
    with suppress(_UnreadableError, yaml.YAMLError, ValueError, OverflowError):
        _Builder(text, result, _FAST).read()
        result.complete = True
    return result if result.complete and not result.faults else _read_slowly(text)


def _read_slowly(text: str) -> YamlText:
    result = YamlText()
    try:
        _Builder(text, result, yaml.SafeLoader).read()
        result.complete = True
    except _UnreadableError as error:
        result.faults.append(Fault(error.position, (), error.message))
    except yaml.MarkedYAMLError as error:
        position = Position.of(error.problem_mark or error.context_mark)
        reasons = ", ".join(part for part in (error.context, error.problem) if part)
        result.faults.append(Fault(position, (), f"not valid YAML: {reasons}"))
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        result.faults.append(
            Fault(position, (), f"not valid YAML: control character U+{error.character:04X}")
        )
    except (ValueError, OverflowError):  # PyYAML on "\UFFFFFFFF" and on %YAML 1.999…
        message = "not valid YAML: the number of an escape or a directive is out of range"
        result.faults.append(Fault(Position(1, 1), (), message))
    return result


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


class _Builder:
    """Builds the value from PyYAML's events, which come one by one: a bomb is never unfolded."""

    def __init__(self, text: str, result: YamlText, loader: type[Any]):
        self._events: Iterator[Any] = yaml.parse(text, Loader=loader)
        self._result = result

    def read(self) -> None:
        next(self._events)  # the stream's start
        if isinstance(event := next(self._events), yaml.StreamEndEvent):
            raise _UnreadableError(event, "must be a scenario, but is empty")
        self._result.value = self._node(next(self._events), ())
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise _UnreadableError(event, "must be a single YAML document")

    def _fault(self, event: Any, path: KeyPath, message: str) -> None:
        self._result.faults.append(Fault(Position.of(event.start_mark), path, message))

    def _node(self, event: Any, path: KeyPath) -> Any:
        self._result.values[path] = Position.of(event.start_mark)
        self._check_depth(event, len(path))
        if isinstance(event, yaml.AliasEvent):
            self._fault(event, path, f"aliases are not allowed (got *{event.anchor})")
            return UNREADABLE
        if event.anchor is not None:
            self._fault(event, path, f"anchors are not allowed (got &{event.anchor})")
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._fault(event, path, f"tags are not allowed (got {tag})")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event, path)

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        try:
            check_text(event.value)
            return event.value if event.style else plain_value(event.value)
        except ValueError as error:
            self._fault(event, path, str(error))
            return UNREADABLE

    def _sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            faults = len(self._result.faults)
            key = self._node(event, (*path, "?"))
            del self._result.values[(*path, "?")]
            if not isinstance(key, str):
                if len(self._result.faults) == faults:
                    self._fault(event, path, "a key must be text; put it in quotes")
                self._skip(len(path))
                continue
            key_path = (*path, key)
            if key in items:
                line = self._result.keys[key_path].line
                self._fault(event, key_path, f"duplicate key, first given in line {line}")
                self._skip(len(path))
                continue
            self._result.keys[key_path] = Position.of(event.start_mark)
            items[key] = self._node(next(self._events), key_path)
        return items

    def _skip(self, depth: int) -> None:
        """Pass over a value whose key is of no use."""
        level = depth
        while True:
            event = next(self._events)
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if level == depth:
                return
            self._check_depth(event, level)

    @staticmethod
    def _check_depth(event: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _UnreadableError(event, f"must not be nested in more than {MAX_DEPTH} levels")
