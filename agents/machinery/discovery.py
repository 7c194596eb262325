"""Registries: the classes of a package, found by their place and known by their kind."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


def kind_of(thing: Any) -> str | None:
    """What a class is called in scenario files; None for one that is only a base for others."""
    kind = vars(thing).get("kind")
    if kind is None and hasattr(thing, "model_fields") and "kind" in thing.model_fields:
        kind = thing.model_fields["kind"].default
    return kind if isinstance(kind, str) else None


def classes_of(module: ModuleType, base: type[T]) -> dict[str, type[T]]:
    """The classes that a module defines itself, by kind."""
    found = {}
    for thing in vars(module).values():
        own = inspect.isclass(thing) and thing.__module__ == module.__name__
        if own and issubclass(thing, base) and (kind := kind_of(thing)) is not None:
            found[kind] = thing
    return found


def kinds_in(package: str, path: Iterable[str], base: type[T]) -> dict[str, type[T]]:
    """The classes of all modules of a package, by kind, in the order of the files' names."""
    found: dict[str, type[T]] = {}
    for info in sorted(iter_modules(path), key=lambda info: info.name):
        found |= classes_of(import_module(f"{package}.{info.name}"), base)
    return found
