"""Reading YAML so that every key and value keeps its place in the text.

A scenario needs less than YAML offers, and what it does not need is an error instead of a surprise:
tags, anchors and aliases, duplicate keys, keys that are no text, several documents.  Plain scalars
follow YAML 1.2's core schema, so `1e-3` is a number, `no` is text and `12:30` is not 750.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

#: Keys and list indices from the top of the file down to a value.
KeyPath = tuple[str | int, ...]

#: PyYAML may have been built without its compiled part, which is ten times as fast.
_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
#: Control characters, and halves of surrogate pairs, which no file can hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class _Unreadable:
    """Stands for a value with a fault: no schema accepts it."""

    def __repr__(self) -> str:
        return "unreadable"


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
    #: Values with a fault are unreadable, or left out, in ``value``.
    faults: list[Fault] = field(default_factory=list)
    #: False where reading had to stop, so that ``value`` means nothing.
    complete: bool = False


def read_yaml(text: str) -> YamlText:
    """Read one YAML document; whatever is wrong with it is in ``faults``, never an exception."""
    read = YamlText()
    try:
        try:
            _read_document(_FAST(text), read)
        except (yaml.YAMLError, ValueError, OverflowError):
            read = YamlText()
            _read_document(yaml.SafeLoader(text), read)  # it says better what is wrong
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        what = f"not valid YAML: control character U+{error.character:04X}"
        read.faults = [Fault(position, (), what)]
    except yaml.MarkedYAMLError as error:
        position = Position.of(error.problem_mark or error.context_mark)
        reasons = ", ".join(part for part in (error.context, error.problem) if part)
        valid = "" if isinstance(error, _NotAllowedError) else "not valid YAML: "
        read.faults = [Fault(position, (), f"{valid}{reasons}")]
    except (ValueError, OverflowError):  # PyYAML on "\UFFFFFFFF" and on %YAML 1.999…
        message = "not valid YAML: the number of an escape or a directive is out of range"
        read.faults = [Fault(Position(1, 1), (), message)]
    return read


class _NotAllowedError(yaml.MarkedYAMLError):
    """YAML that no scenario needs."""

    def __init__(self, event: Any, what: str):
        super().__init__(problem=what, problem_mark=event.start_mark)


def _read_document(loader: Any, read: YamlText) -> None:
    """The one document of a text, of which nothing is left over."""
    loader.get_event()  # the text begins
    if loader.check_event(yaml.StreamEndEvent):
        raise _NotAllowedError(loader.peek_event(), "must be a scenario, but is empty")
    loader.get_event()
    read.value = _value(loader, (), read)
    loader.get_event()
    if not loader.check_event(yaml.StreamEndEvent):
        raise _NotAllowedError(loader.peek_event(), "must be a single YAML document")
    read.complete = True


def _value(loader: Any, path: KeyPath, read: YamlText) -> Any:
    """What begins with the next event; places and faults go to ``read``."""
    event = loader.get_event()
    if event.anchor:
        raise _NotAllowedError(event, f"anchors and aliases are not allowed (got {event.anchor})")
    if event.tag:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        raise _NotAllowedError(event, f"tags are not allowed (got {tag})")
    position = read.values[path] = Position.of(event.start_mark)
    if isinstance(event, yaml.ScalarEvent):
        try:
            check_text(event.value)
            return plain_value(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            read.faults.append(Fault(position, path, str(error)))
            return _Unreadable()
    if len(path) > MAX_DEPTH:
        raise _NotAllowedError(event, f"must not be nested in more than {MAX_DEPTH} levels")
    if isinstance(event, yaml.MappingStartEvent):
        return _block(loader, path, read)
    items: list[Any] = []
    while not loader.check_event(yaml.SequenceEndEvent):
        items.append(_value(loader, (*path, len(items)), read))
    loader.get_event()
    return items


def _block(loader: Any, path: KeyPath, read: YamlText) -> dict[str, Any]:
    """The keys and values up to the end of a block."""
    items: dict[str, Any] = {}
    while not loader.check_event(yaml.MappingEndEvent):
        place = Position.of(loader.peek_event().start_mark)
        key = _value(loader, (*path, "?"), YamlText())
        at = (*path, str(key))
        if not isinstance(key, str):
            read.faults.append(Fault(place, path, "a key must be text; put it in quotes"))
        elif key in items:
            what = f"duplicate key, first given in line {read.keys[at].line}"
            read.faults.append(Fault(place, at, what))
        else:
            read.keys[at] = place
            items[key] = _value(loader, at, read)
            continue
        _value(loader, at, YamlText())  # of no use
    loader.get_event()
    return items


# --- scalars --------------------------------------------------------------------------------------
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
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and math.isinf(float(text))):
        raise ValueError(f"must be a finite number (got {text[:40]})")
    return float(text) if _FLOAT.fullmatch(text) else text


def check_text(text: str) -> None:
    """Raise ValueError for text with control characters other than line breaks and tabs."""
    match = _UNPRINTABLE.search(text)
    if match:
        raise ValueError(f"must not contain the control character U+{ord(match[0]):04X}")
