"""The small types that scenario files are made of: numbers with units, percentages, input files."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from agents.parameters import sane

_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_BANDWIDTH = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
_SPEED = {"km/s": 1.0, "m/s": 1e-3}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_QUANTITY = re.compile(rf"([-+]?{_NUMBER})\s*([^\s0-9.]\S*)")


def in_seconds(text: str) -> float:
    """The seconds of a time, a number or one with a unit; ValueError for any other text."""
    try:
        return float(text)
    except ValueError:
        return _parsed(text, _TIME, "50 ms")


def in_base_unit(text: str) -> float | None:
    """The seconds of a time, or the bytes per second of a bandwidth; None for any other text."""
    for units in (_TIME, _BANDWIDTH):
        with suppress(ValueError):
            return _parsed(text, units, "")
    return None


def _parsed(text: str, units: dict[str, float], example: str) -> float:
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


def _with(units: dict[str, float], example: str, least: str = "exclusiveMinimum") -> list[Any]:
    """A number above 0, or one from it, that may be given with a unit: what is said of a float."""

    def parse(value: Any) -> Any:
        return _parsed(value, units, example) if isinstance(value, str) else value

    names = "|".join(units).replace("\u00b5", "[\u00b5\u03bc]")
    pattern = rf"^\s*\+?{_NUMBER}\s*({names})\s*$"
    text = {"type": "string", "pattern": pattern, "examples": [example]}
    schema = {"anyOf": [{"type": "number", least: 0}, text]}
    bound = Field(ge=0) if least == "minimum" else Field(gt=0)
    return [BeforeValidator(parse), bound, sane, WithJsonSchema(schema)]


Seconds = Annotated[float, *_with(_TIME, "50 ms", "minimum")]
PositiveSeconds = Annotated[float, *_with(_TIME, "50 ms")]
BytesPerSecond = Annotated[float, *_with(_BANDWIDTH, "1 MB/s")]
KilometresPerSecond = Annotated[float, *_with(_SPEED, "200000 km/s")]


# --- percentages ----------------------------------------------------------------------------------
_PERCENTAGE = r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?\s*%"


def read_level(value: Any) -> float | str:
    """A number, or a percentage in one spelling: ``1.0 %`` is ``1%``.

    A percentage stays text until the run knows what it is a percentage of: the number depends on
    the machine's arithmetic, and has no place in a scenario's hash.
    """
    if isinstance(value, str) and re.fullmatch(_PERCENTAGE, value.strip()):
        share = float(value.strip()[:-1])
        if share <= 100:
            return f"{int(share) if share.is_integer() else share}%"
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):
            if math.isfinite(value):
                return float(value)
    raise ValueError("must be a number, or a percentage of the start's value from 0% to 100%")


def read_share(value: Any) -> str:
    """A percentage above 0 in one spelling."""
    with suppress(ValueError):
        share = read_level(value)
        if isinstance(share, str) and percentage(share) > 0:
            return share
    raise ValueError("must be a percentage above 0% and up to 100%, like 80%")


def percentage(level: str) -> float:
    """The share that ``1%`` stands for."""
    return float(level.removesuffix("%")) / 100


def _text(example: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*{_PERCENTAGE}\s*$", "examples": [example]}


_LEVEL = {"anyOf": [{"type": "number"}, _text("1%")]}
Level = Annotated[float | str, PlainValidator(read_level), WithJsonSchema(_LEVEL)]
Percentage = Annotated[str, PlainValidator(read_share), WithJsonSchema(_text("80%"))]


# --- files ----------------------------------------------------------------------------------------
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
