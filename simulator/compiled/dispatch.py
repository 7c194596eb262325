"""How the loops of ``gossip`` and ``rounds`` come to the rule at hand: by its type, when compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload


def implement(placeholder: Callable[..., Any], rule_class: type, function: Any) -> None:
    """Let compiled calls of ``placeholder`` with a rule of this class be calls of ``function``."""
    signature = inspect.signature(function.py_func)
    place = list(signature.parameters).index("rule")

    def choose(*arguments: types.Type) -> Callable[..., Any] | None:
        rule = arguments[place]
        ours = isinstance(rule, types.NamedTuple) and rule.instance_class is rule_class
        return function.py_func if ours else None

    choose.__signature__ = signature  # type: ignore[attr-defined]
    overload(placeholder)(choose)
