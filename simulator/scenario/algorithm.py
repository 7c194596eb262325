"""The scenario's ``algorithm``: for each kind the keys that it has, and no others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from simulator.scenario.quantities import Count, Positive, Strict, report


# --- where a run begins, and how admm solves ------------------------------------------------------
class NormalStart(Strict):
    """Theorem 1's arbitrary start: every model and copy normal with the given spread."""

    kind: Literal["normal"]
    scale: Positive


class PropagatedStart(Strict):
    """admm only: the model propagation optimum with a trade-off of its own."""

    kind: Literal["mp"]
    alpha: Annotated[float, Field(gt=0, lt=1)]


class GradientSteps(Strict):
    """A few (sub)gradient steps instead of the exact proximal step."""

    gradient_steps: Count


def _start_tag(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("kind")
    return getattr(value, "kind", "name")


def _primal_tag(value: Any) -> str:
    return "steps" if isinstance(value, dict | GradientSteps) else "name"


# The tags send a value to one branch, so that a mistake in it gives one message and not three.
Start = Annotated[
    Annotated[Literal["own", "hello", "known", "zero", "mp"], Tag("name")]
    | Annotated[NormalStart, Tag("normal")]
    | Annotated[PropagatedStart, Tag("mp")],
    Discriminator(_start_tag),
]
Primal = Annotated[
    Annotated[Literal["exact"], Tag("name")] | Annotated[GradientSteps, Tag("steps")],
    Discriminator(_primal_tag),
]


# --- what each kind has -------------------------------------------------------------------------
class _Exchanges(Strict):
    """What every rule has whose agents talk to one another."""

    mode: Literal["async", "sync"] = "async"
    start: Start = "own"
    """Before the first contact.  In rounds hello is for mp only, whose first round is one."""
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    mu: Positive | None = None
    confidence: Literal["data", "none"] = "data"
    """c_i = m_i / max m_j, or 1 for all who have data; for admm it only matters to start: mp."""

    @model_validator(mode="before")
    @classmethod
    def _default_trade_off(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("alpha") is None and values.get("mu") is None:
            return {**values, "alpha": 0.99}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = []
        kind: str = getattr(self, "kind", "")
        if self.alpha is not None and self.mu is not None:
            problems.append(("mu", "give alpha or mu, not both: mu = (1 − alpha)/alpha"))
        starts_from_mp = self.start == "mp" or isinstance(self.start, PropagatedStart)
        if starts_from_mp and kind != "admm":
            problems.append(("start", f"mp is a start for admm only, not for {kind}"))
        if self.start == "hello" and self.mode == "sync" and kind != "mp":
            what = f"{kind} says no hello before synchronous rounds; use own or known"
            problems.append(("start", what))
        if kind == "admm" and self.confidence == "none" and not starts_from_mp:
            what = "admm knows no confidences, but for start: mp, which this run does not have"
            problems.append(("confidence", what))
        report(problems)
        return self

    @property
    def trade_off(self) -> float:
        """μ, which is (1 − α)/α where α is given."""
        if self.alpha is None:
            assert self.mu is not None
            return self.mu
        return (1 - self.alpha) / self.alpha


class Baseline(Strict):
    """Models computed centrally: nobody sends, and time, network and clock play no part.

    The class attributes are no keys: they are what code reads that treats all kinds alike.
    """

    mode: ClassVar[Literal["async"]] = "async"
    start: ClassVar[Literal["own"]] = "own"
    confidence: ClassVar[Literal["data"]] = "data"
    trade_off: ClassVar[float] = math.nan
    rho: ClassVar[float] = 1.0
    primal: ClassVar[Literal["exact"]] = "exact"
    parameters: ClassVar[dict[str, Any]] = {}


class Propagation(_Exchanges):
    """Model propagation (section 3 of the paper): solitary models, smoothed over the graph."""

    kind: Literal["mp"] = "mp"
    rho: ClassVar[float] = 1.0
    primal: ClassVar[Literal["exact"]] = "exact"
    parameters: ClassVar[dict[str, Any]] = {}


class Admm(_Exchanges):
    """Collaborative learning by decentralised ADMM (section 4 of the paper)."""

    kind: Literal["admm"]
    rho: Positive = 1.0
    """The penalty ρ > 0."""
    primal: Primal = "exact"
    """exact, or a few gradient steps."""
    parameters: ClassVar[dict[str, Any]] = {}


class Solitary(Baseline):
    """The models that agents learn alone."""

    kind: Literal["solitary"]


class Consensus(Baseline):
    """One model for all, learned from everybody's data (equation 2 of the paper)."""

    kind: Literal["consensus"]


class PluginRule(_Exchanges):
    """A plugin's rule, by its name; it is told all of these, and takes from them what it knows."""

    kind: str
    rho: Positive = 1.0
    primal: Primal = "exact"
    parameters: dict[str, Any] = Field(default={})
    """The rule's own."""


#: What a block ``algorithm`` of each built-in kind may hold; any other kind is a ``PluginRule``.
ALGORITHMS: Mapping[str, type[Strict]] = {
    "mp": Propagation,
    "admm": Admm,
    "solitary": Solitary,
    "consensus": Consensus,
}


def algorithm_keys(kind: Any) -> frozenset[str]:
    """The keys that ``algorithm`` has where it is of this kind."""
    known = isinstance(kind, str) and kind in ALGORITHMS
    return frozenset((ALGORITHMS[kind] if known else PluginRule).model_fields)


def _algorithm_tag(value: Any) -> Any:
    if not isinstance(value, dict | Strict):
        return None
    kind = value.get("kind", "mp") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) and kind in ALGORITHMS else "plugin"


Algorithm = Annotated[
    Annotated[Propagation, Tag("mp")]
    | Annotated[Admm, Tag("admm")]
    | Annotated[Solitary, Tag("solitary")]
    | Annotated[Consensus, Tag("consensus")]
    | Annotated[PluginRule, Tag("plugin")],
    Discriminator(_algorithm_tag),
]
