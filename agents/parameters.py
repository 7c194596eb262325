"""The types that parameters are made of: strict blocks, and numbers within limits."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError


class Strict(BaseModel):
    """Unknown keys, wrong types, NaN and infinity are errors; a validated object never changes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe each key by the text below its attribute.

        Pydantic's own ``use_attribute_docstrings`` reads the sources when classes are made, half a
        second in every process; only the schema needs the texts.
        """
        schema = handler(core_schema)
        for name, key in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if "description" not in key and (text := _text_below(cls, name)):
                key["description"] = text
        return schema


def numbers_of(model: type[Strict]) -> dict[str, type]:
    """The keys that are numbers, in their order, with their types: what compiled code knows."""
    types: dict[str, Any] = {name: key.annotation for name, key in model.model_fields.items()}
    return {name: kind for name, kind in types.items() if kind in (int, float, bool)}


def _text_below(model: type, attribute: str) -> str:
    """The string below an attribute, in the class that annotates it last."""
    texts = (
        _texts(each.__module__).get(f"{each.__qualname__}.{attribute}") for each in model.__mro__
    )
    return next(filter(None, texts), "")


@cache
def _texts(module: str) -> dict[str, str]:
    """All strings below annotated attributes of a module's classes, by ``Class.attribute``."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):  # made in a notebook or built in
        return {}
    return dict(_texts_in(tree, ""))


def _texts_in(node: ast.AST, outside: str) -> Iterator[tuple[str, str]]:
    """The same of what one syntax tree holds, below the name of the class around it."""
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, ast.ClassDef):
            continue
        yield from _texts_in(each, f"{outside}{each.name}.")
        for first, second in pairwise(each.body):
            match first, second:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    yield f"{outside}{each.name}.{name}", inspect.cleandoc(text)


def report(problems: list[tuple[str, str]]) -> None:
    """Raise all ``(key, what is wrong)`` that a model's validator found, if it found any.

    Keys are dotted and relative to the model, so that a scenario file's reader can point at each.
    """
    if problems:
        text = "; ".join(f"{key}: {problem}" for key, problem in problems)
        raise PydanticCustomError("problems", "{text}", {"text": text, "problems": problems})


#: Sizes of numbers other than 0: squares, products and quotients of two are numbers all the same.
LEAST, MOST = 1e-100, 1e100
#: Whole numbers up to here are exact as floats, which the compiled engine compares.
MOST_COUNT = 2**53
#: Agents and dimensions are indices of sparse matrices.
MOST_INDEX = 2**31 - 1


def _of_sane_size(value: float) -> float:
    if value != 0 and not LEAST <= abs(value) <= MOST:
        raise ValueError(f"must lie between {LEAST:g} and {MOST:g} in size")
    return value


sane = AfterValidator(_of_sane_size)
Positive = Annotated[float, Field(gt=0), sane]
NonNegative = Annotated[float, Field(ge=0), sane]


def _percentage(value: Any) -> Any:
    """``10%`` is 0.1."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*%\s*", value)
    if match is None:
        raise ValueError("must be a number, or a percentage like 10%")
    return float(match[1]) / 100


def _share_schema(**bounds: float) -> WithJsonSchema:
    text = {"type": "string", "pattern": r"^\s*[0-9.]+([eE][-+]?[0-9]+)?\s*%\s*$"}
    return WithJsonSchema({"anyOf": [{"type": "number", **bounds}, {**text, "examples": ["10%"]}]})


_share = BeforeValidator(_percentage)
#: Strictly between 0 and 1; ``10%`` is 0.1 here and below.
Share = Annotated[
    float,
    _share,
    Field(gt=0, lt=1),
    sane,
    _share_schema(exclusiveMinimum=0, exclusiveMaximum=1),
]
Probability = Annotated[float, _share, Field(ge=0, le=1), _share_schema(minimum=0, maximum=1)]
Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
Index = Annotated[int, Field(ge=1, le=MOST_INDEX)]


class TradeOff(Strict):
    """Parameters of a rule on Q_MP or Q_CL: the trade-off as α or as μ = (1 − α)/α."""

    alpha: Share | None = None
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


class Collaborative(TradeOff):
    """Parameters of a rule on Q_CL."""

    ridge: NonNegative = 0.0
    """r ≥ 0 adds r‖θ‖² to the loss of every agent in Q_CL."""
