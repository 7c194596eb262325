"""What the paper leaves open: ``choices.yaml``, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from agents.parameters import NonNegative, Positive, Share, Strict
from simulator.errors import ScenarioError
from simulator.scenario.files import read_source
from simulator.scenario.mistakes import Mistake

DEFAULT_FILE = Path(__file__).parent / "choices.yaml"
Value = TypeVar("Value")
Other = TypeVar("Other")


class Choice(Strict, Generic[Value, Other]):
    """A choice: what was chosen, other values that one might have taken, and the reason."""

    value: Value
    others: list[Other] = Field(default_factory=list)
    why: str


def _is_dimension(key: str) -> str:
    if not (key[:1] == "p" and key[1:].isdecimal() and key[1] != "0"):
        raise ValueError("must be a dimension such as p2 or p50")
    return key


Dimension = Annotated[str, AfterValidator(_is_dimension)]
Weight = Annotated[float, Field(ge=0, lt=1)]
#: Figure 5 begins with 100 agents.
Neighbours = Annotated[int, Field(ge=1, lt=100)]
Seed = Annotated[int, Field(ge=0, lt=2**62)]
Start = Literal["known", "own", "hello"]
Points = Literal["cube", "ball", "sphere"]


class MeanEstimation(Strict):
    """Section 5.1."""

    noise: Choice[NonNegative, NonNegative]
    alpha: Choice[Share, Share]
    confidence: Choice[Literal["data", "share"], Literal["data", "share"]]
    without: Choice[Literal["mean", "one"], Literal["mean", "one"]]
    start: Choice[Start, Start]


class LinearClassification(Strict):
    """Section 5.2."""

    points: Choice[Points, Points]
    test_flip: Choice[bool, bool]
    min_weight: Choice[Weight, Weight]
    ridge: Choice[Positive, Positive]
    alpha: Choice[dict[Dimension, Share], Share]
    mu: Choice[dict[Dimension, Positive], Positive]
    rho: Choice[Positive, Positive]
    start: Choice[Start, Start]


class Scalability(Strict):
    """Appendix E, figure 5."""

    k: Choice[Neighbours, Neighbours]
    alpha: Choice[Share, Share]
    mu: Choice[Positive, Positive]
    rho: Choice[Positive, Positive]


class HeldOut(Strict):
    """Instances that are never reported."""

    seed: Choice[Seed, Seed]


class ChoicesFile(Strict):
    """What the paper leaves open, decided: for python -m reproduction --choices."""

    mean_estimation: MeanEstimation
    linear_classification: LinearClassification
    scalability: Scalability
    held_out: HeldOut


@dataclass(frozen=True)
class Choices:
    """All choices by their dotted names, such as ``linear_classification.mu``."""

    file: Path
    all: dict[str, Choice[Any, Any]]

    def __getitem__(self, name: str) -> Any:
        return self.all[name].value

    def at(self, name: str, dimension: int) -> float:
        """A choice with a value for each dimension, at one; or one that is the same for all."""
        value = self[name]
        if not isinstance(value, dict):
            return float(value)
        if f"p{dimension}" not in value:
            has = ", ".join(value)
            raise ScenarioError(
                f"{self.file}: {name}.value: no value for p{dimension}; it has {has}"
            )
        return float(value[f"p{dimension}"])

    def changed(self, values: Mapping[str, Any]) -> Choices:
        """The same with other values for some names."""
        new = {k: self.all[k].model_copy(update={"value": value}) for k, value in values.items()}
        return replace(self, all={**self.all, **new})


def load_choices(path: Path) -> Choices:
    """Read and check a file of choices; raises ScenarioError with one line a mistake."""
    source = read_source(path)
    if not isinstance(source.text.value, dict):
        what = f"must be blocks of choices: {', '.join(ChoicesFile.model_fields)}"
        raise source.error([Mistake((), what)])
    file = source.checked(ChoicesFile, source.text.value)
    blocks = {name: getattr(file, name) for name in ChoicesFile.model_fields}
    return Choices(
        path, {f"{b}.{name}": choice for b, own in blocks.items() for name, choice in own}
    )
