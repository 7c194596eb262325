"""The types that parameters are made of: strict blocks, and numbers within limits."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


class Strict(BaseModel):
    """Unknown keys, wrong types, NaN and infinity are errors; a validated object never changes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
    )


def report(problems: list[tuple[str, str]]) -> None:
    """Raise all ``(key, what is wrong)`` that a model's validator found, if it found any.

    Keys are dotted and relative to the model, so that a scenario file's reader can point at each.
    """
    if problems:
        text = "; ".join(f"{key}: {problem}" for key, problem in problems)
        raise PydanticCustomError("problems", "{text}", {"text": text, "problems": problems})


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class TradeOff(Strict):
    """Parameters of a rule on Q_MP or Q_CL: the trade-off as α or as μ = (1 − α)/α."""

    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The trade-off of model propagation, 0 < α < 1; 0.99 where neither α nor μ is given."""
    mu: Positive | None = None
    """The trade-off μ = (1 − α)/α, instead of α."""

    @model_validator(mode="before")
    @classmethod
    def _default_trade_off(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("alpha") is None and values.get("mu") is None:
            return {**values, "alpha": 0.99}
        return values

    @model_validator(mode="after")
    def _one_trade_off(self) -> Self:
        if self.alpha is not None and self.mu is not None:
            report([("mu", "give alpha or mu, not both: mu = (1 − alpha)/alpha")])
        return self

    @property
    def trade_off(self) -> float:
        """μ, which is (1 − α)/α where α is given."""
        if self.alpha is None:
            assert self.mu is not None
            return self.mu
        return (1 - self.alpha) / self.alpha
