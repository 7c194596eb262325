"""The types of the keys that take a law: a plain value, or a block of one of the known kinds.

A key's type is made from the laws that a scenario may name, built in or a plugin's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from agents.parameters import Positive, Strict
from simulator.scenario.choice import one_of
from simulator.scenario.laws import Empirical, Law
from simulator.scenario.quantities import PositiveSeconds, Seconds


def _plain_is_constant(value: Any) -> Any:
    """``50 ms`` stands for ``{kind: constant, value: 50 ms}``."""
    if isinstance(value, dict | Law):
        return value
    return {"kind": "constant", "value": value}


def _holds_no_zero(law: Law[Any]) -> Law[Any]:
    if isinstance(law, Empirical) and not law.values().all():
        raise ValueError(f"{law.file.name} holds a 0; must be numbers greater than 0")
    return law


class Straggling(Strict):
    """What a law of times has beside its own keys."""

    per_agent: Law[Any] | None = None


class Lingering(Straggling):
    """What a law of latencies has beside its own keys."""

    per_link: Law[Any] | None = None


_PER_AGENT = "A fixed factor of the (sending) agent that multiplies the time: what a straggler is."
_PER_LINK = "A fixed factor of the undirected link that multiplies the time: slowness that stays."


def _above_zero(laws: Iterable[type[Law[Any]]], numbers: Any, name: str) -> Any:
    """The type of a number above 0, or of a law of such; ``name`` tells it apart in the schema."""
    made = []
    for law in laws:
        model = create_model(f"{law.__name__}{name}", __base__=law[numbers])  # type: ignore[index]
        model.__doc__ = law.__doc__
        made.append(model)
    choice = one_of(made)
    return Annotated[
        choice,
        AfterValidator(_holds_no_zero),
        BeforeValidator(_plain_is_constant, json_schema_input_type=numbers | choice),
    ]


def factor_law(laws: Iterable[type[Law[Any]]]) -> Any:
    """The type of a positive number per agent: a number for all of them, or a law over agents."""
    return _above_zero(laws, Positive, "Factor")


def stay_law(laws: Iterable[type[Law[Any]]]) -> Any:
    """The type of a stay: a time above 0, perhaps with a unit, or a law of such times."""
    return _above_zero(laws, PositiveSeconds, "Stay")


def time_law(
    laws: Iterable[type[Law[Any]]],
    *,
    by_agent: Any,
    by_link: Any = None,
    more: Iterable[type[Law[Any]]] = (),
) -> Any:
    """The type of a time: a number, perhaps with a unit, or a law; with factors per agent.

    ``by_agent`` and, of latencies, ``by_link`` are the types of the factors; ``more`` are laws
    whose scale is in seconds already.
    """
    fields: dict[str, Any] = {
        "per_agent": (by_agent | None, Field(default=None, description=_PER_AGENT))
    }
    base: type[Strict] = Straggling
    if by_link is not None:
        fields["per_link"] = (by_link | None, Field(default=None, description=_PER_LINK))
        base = Lingering
    suffix = "Latency" if by_link is not None else "Time"
    timed = []
    for law in [*laws, *more]:
        model = law if law in more else law[Seconds]  # type: ignore[index]
        made = create_model(f"{law.__name__}{suffix}", __base__=(base, model), **fields)
        made.__doc__ = law.__doc__
        timed.append(made)
    choice = one_of(timed)
    return Annotated[
        choice, BeforeValidator(_plain_is_constant, json_schema_input_type=Seconds | choice)
    ]
