"""The small types that scenario files are made of: numbers with units, names and input files."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from agents.parameters import sane

_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BANDWIDTH = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_QUANTITY = re.compile(rf"([-+]?{_NUMBER})\s*([^\s0-9.]\S*)")


def in_base_unit(text: str) -> float | None:
    """The seconds of a time, or the bytes per second of a bandwidth; None for any other text."""
    for units, example in ((_TIME, "50 ms"), (_BANDWIDTH, "1 MB/s")):
        try:
            return _parse(text, units, example)
        except ValueError:
            continue
    return None


def _parse(text: str, units: dict[str, float], example: str) -> float:
    # The micro sign and the Greek letter look the same and should mean the same.
    match = _QUANTITY.fullmatch(text.strip().replace("\u03bc", "\u00b5"))
    if match is None or match[2] not in units:
        raise ValueError(
            f"must be a number, or one with a unit ({', '.join(units)}) like {example!r}"
        )
    # A division keeps `50 ms` equal to the literal 0.05, which 50 * 1e-3 is not.
    scale = units[match[2]]
    number = float(match[1]) * scale if scale >= 1 else float(match[1]) / round(1 / scale)
    if math.isinf(number):
        raise ValueError("must be a finite number")
    return number


def _with_unit(units: dict[str, float], example: str) -> BeforeValidator:
    def parse(value: Any) -> Any:
        return _parse(value, units, example) if isinstance(value, str) else value

    return BeforeValidator(parse)


def _schema(units: dict[str, float], example: str, low: dict[str, float]) -> WithJsonSchema:
    names = "|".join(units).replace("\u00b5", "[\u00b5\u03bc]")
    pattern = rf"^\s*\+?{_NUMBER}\s*({names})\s*$"
    text = {"type": "string", "pattern": pattern, "examples": [example]}
    return WithJsonSchema({"anyOf": [{"type": "number", **low}, text]})


_seconds = _with_unit(_TIME, "50 ms")
Seconds = Annotated[float, _seconds, Field(ge=0), sane, _schema(_TIME, "50 ms", {"minimum": 0})]
PositiveSeconds = Annotated[
    float, _seconds, Field(gt=0), sane, _schema(_TIME, "50 ms", {"exclusiveMinimum": 0})
]
BytesPerSecond = Annotated[
    float,
    _with_unit(_BANDWIDTH, "1 MB/s"),
    Field(gt=0),
    sane,
    _schema(_BANDWIDTH, "1 MB/s", {"exclusiveMinimum": 0}),
]

_SPEED = {"km/s": 1.0, "m/s": 1e-3}
KilometresPerSecond = Annotated[
    float,
    _with_unit(_SPEED, "200000 km/s"),
    Field(gt=0),
    sane,
    _schema(_SPEED, "200000 km/s", {"exclusiveMinimum": 0}),
]


def _input_file(value: Any, info: ValidationInfo) -> Path:
    """A path relative to the scenario's folder (the validation context's ``folder``)."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("must be the path of a file, relative to the scenario's folder")
    path = Path((info.context or {}).get("folder", ".")) / value
    try:
        if not path.is_file():
            raise ValueError(
                f"{path} is not a regular file" if path.exists() else f"no file {path}"
            )
        with path.open("rb"):
            pass
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    return path


InputFile = Annotated[
    Path, BeforeValidator(_input_file), WithJsonSchema({"type": "string", "minLength": 1})
]
