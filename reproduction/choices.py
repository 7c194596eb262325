"""What the paper leaves open: ``choices.yaml``, read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from agents.parameters import NonNegative, Positive, Share
from simulator.errors import ScenarioError
from simulator.scenario.files import Source, read_scenario_text
from simulator.scenario.messages import Mistake, did_you_mean, shown
from simulator.scenario.yaml_positions import KeyPath, read_yaml

DEFAULT_FILE = Path(__file__).parent / "choices.yaml"

_Dimension = Annotated[str, Field(pattern="^p[1-9][0-9]*$")]
_ALPHA = (Share, "a number between 0 and 1")
_POSITIVE = (Positive, "a positive number")
_START = (Literal["known", "own", "hello"], "known, own or hello")
#: Every choice that there is: its type, and what is allowed in words.
CHOICES: dict[str, dict[str, tuple[Any, str]]] = {
    "mean_estimation": {
        "noise": (NonNegative, "a number from 0"),
        "alpha": _ALPHA,
        "confidence": (Literal["data", "share"], "data or share"),
        "without": (Literal["mean", "one"], "mean or one"),
        "start": _START,
    },
    "linear_classification": {
        "points": (Literal["cube", "ball", "sphere"], "cube, ball or sphere"),
        "test_flip": (bool, "true or false"),
        "min_weight": (Annotated[float, Field(ge=0, lt=1)], "a number from 0, below 1"),
        "ridge": _POSITIVE,
        "alpha": (dict[_Dimension, Share], "numbers between 0 and 1, like {p2: 0.5, p50: 0.8}"),
        "mu": (dict[_Dimension, Positive], "positive numbers, like {p2: 0.5, p50: 0.1}"),
        "rho": _POSITIVE,
        "start": _START,
    },
    "scalability": {
        # Figure 5 begins with 100 agents.
        "k": (Annotated[int, Field(ge=1, lt=100)], "a whole number from 1 to 99"),
        "alpha": _ALPHA,
        "mu": _POSITIVE,
        "rho": _POSITIVE,
    },
    "held_out": {"seed": (Annotated[int, Field(ge=0, lt=2**62)], "a whole number from 0")},
}
#: Choices with a value for each dimension; their others are plain values.
_OTHERS = {"linear_classification.alpha": _ALPHA, "linear_classification.mu": _POSITIVE}


@dataclass(frozen=True)
class Choice:
    """A value, those that it was preferred to, and the reason."""

    value: Any
    others: tuple[Any, ...]
    why: str


@dataclass(frozen=True)
class Choices:
    """All choices by their dotted names, such as ``linear_classification.mu``."""

    file: Path
    all: dict[str, Choice]

    def __getitem__(self, name: str) -> Any:
        return self.all[name].value

    def at(self, name: str, dimension: int) -> float:
        """A choice that may have a value for each dimension."""
        value = self[name]
        if not isinstance(value, dict):
            return float(value)
        if f"p{dimension}" not in value:
            raise ScenarioError(
                f"{self.file}: {name}.value: no value for p{dimension}; it has {', '.join(value)}"
            )
        return float(value[f"p{dimension}"])

    def changed(self, values: Mapping[str, Any]) -> Choices:
        """The same with other values for some names."""
        new = {name: replace(self.all[name], value=value) for name, value in values.items()}
        return replace(self, all={**self.all, **new})


def load_choices(path: Path) -> Choices:
    """Read and check a file of choices; raises ScenarioError with one line a mistake."""
    source = Source(path, read_yaml(read_scenario_text(path)))
    given = source.text.value
    if not isinstance(given, dict):
        what = f"must be blocks of choices: {', '.join(CHOICES)}"
        raise source.error([Mistake((), what)])
    if "task" in given or "base" in given:
        what = "a scenario: give it to run" if "task" in given else "a sweep file: give it to sweep"
        raise source.error([Mistake((), f"this is {what}; choices have {', '.join(CHOICES)}")])
    found = list(_mistakes(given))
    if found or source.text.faults:
        raise source.error(found)
    every = {
        f"{block}.{name}": Choice(
            given[block][name]["value"],
            tuple(given[block][name].get("others", ())),
            given[block][name]["why"].strip(),
        )
        for block, names in CHOICES.items()
        for name in names
    }
    return Choices(path, every)


def _mistakes(given: dict[str, Any]) -> Iterator[Mistake]:
    yield from _keys((), given, CHOICES)
    for block, names in CHOICES.items():
        values = given.get(block)
        if not isinstance(values, dict):
            if block in given:
                yield Mistake((block,), f"must be a block of choices (got {shown(values)})")
            continue
        yield from _keys((block,), values, names)
        for name, (kind, allowed) in names.items():
            if name in values:
                yield from _wrong_choice((block, name), values[name], kind, allowed)


def _wrong_choice(path: KeyPath, choice: Any, kind: Any, allowed: str) -> Iterator[Mistake]:
    if not isinstance(choice, dict):
        yield Mistake(path, f"must be a block with value, others and why (got {shown(choice)})")
        return
    yield from _keys(path, choice, {"value": 0, "why": 0}, optional=("others",))
    others = choice.get("others", [])
    if not isinstance(others, list):
        yield Mistake((*path, "others"), f"must be a list of values (got {shown(others)})")
        others = []
    if "why" in choice and not isinstance(choice["why"], str):
        yield Mistake((*path, "why"), f"must be text (got {shown(choice['why'])})")
    if "value" in choice:
        yield from _wrong_value((*path, "value"), choice["value"], kind, allowed)
    kind, allowed = _OTHERS.get(".".join(map(str, path)), (kind, allowed))
    for k, value in enumerate(others):
        yield from _wrong_value((*path, "others", k), value, kind, allowed)


def _wrong_value(path: KeyPath, value: Any, kind: Any, allowed: str) -> Iterator[Mistake]:
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        if isinstance(value, dict) and (where := error.errors()[0]["loc"]):  # one of several
            path, value = (*path, str(where[0])), value[where[0]]
        yield Mistake(path, f"must be {allowed} (got {shown(value)})")


def _keys(
    path: KeyPath, given: dict[str, Any], wanted: dict[str, Any], optional: tuple[str, ...] = ()
) -> Iterator[Mistake]:
    allowed = [*wanted, *optional]
    for key in given:
        if key not in allowed:
            what = f"unknown key;{did_you_mean(key, allowed)} allowed: {', '.join(allowed)}"
            yield Mistake((*path, key), what, "key")
    for key in wanted:
        if key not in given:
            yield Mistake((*path, key), "missing key", "missing")
