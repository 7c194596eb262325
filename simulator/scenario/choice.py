"""A block of one of several kinds, as a type: the kinds may come from a registry or a plugin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Tag


def kind_of(model: type[BaseModel]) -> str:
    """What a class is called in scenario files."""
    return str(model.model_fields["kind"].default)


def one_of(models: Sequence[type[BaseModel]], default: str | None = None) -> Any:
    """The type of a block whose ``kind`` says which of the models it is.

    The tags send a value to one branch, so that a mistake in it gives one message and not several.
    """

    def tag(value: Any) -> Any:
        if isinstance(value, dict):
            return value.get("kind", default)
        return getattr(value, "kind", None)

    tagged: list[Any] = [Annotated[model, Tag(kind_of(model))] for model in models]
    return Annotated[reduce(or_, tagged), Discriminator(tag)]
