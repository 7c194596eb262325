"""The scenario's ``algorithm``: for each rule the keys that it has, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Discriminator, Field, Tag, create_model, model_validator

from agents.parameters import Positive, Share, Strict, report
from agents.protocols import protocol_of, protocols_of
from agents.rule import Rule
from simulator.scenario.kinds import one_of


# --- where a run begins ---------------------------------------------------------------------------
class NormalStart(Strict):
    """Theorem 1's arbitrary start: every model and copy normal with the given spread."""

    kind: Literal["normal"] = "normal"
    scale: Positive
    """The spread."""


class PropagatedStart(Strict):
    """The model propagation optimum with a trade-off of its own, free of charge."""

    kind: Literal["mp"] = "mp"
    alpha: Share
    """The trade-off of that optimum."""


def _start_tag(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("kind")
    return getattr(value, "kind", "name")


def _start(rule: type[Rule]) -> Any:
    """The starts that a rule allows."""
    plain: Any = Literal.__getitem__(tuple(name for name in rule.starts if name != "normal"))
    blocks: Any = Annotated[NormalStart, Tag("normal")]
    if "mp" in rule.starts:
        blocks = blocks | Annotated[PropagatedStart, Tag("mp")]
    return Annotated[Annotated[plain, Tag("name")] | blocks, Discriminator(_start_tag)]


def _protocols(rule: type[Rule]) -> Any:
    """The protocols that a rule can follow."""
    words: Any = Literal.__getitem__(tuple(protocols_of(rule)))
    return words | None


# --- what each kind has ---------------------------------------------------------------------------
class Algorithm(Strict):
    """What the agents compute.

    The class attributes are no keys: they are what code reads that treats all kinds alike.
    """

    kind: str
    rule: ClassVar[type[Rule] | None] = None
    mode: Any = "async"
    protocol: str | None = None
    start: Any = "own"

    @property
    def starts_from_mp(self) -> bool:
        """Does the run start at the model propagation optimum?"""
        return self.start == "mp" or isinstance(self.start, PropagatedStart)


class Baseline(Algorithm):
    """Models computed centrally: nobody sends, and time, network and clock play no part."""

    mode: ClassVar[Literal["async"]] = "async"  # type: ignore[misc]
    protocol: ClassVar[None] = None  # type: ignore[misc]
    start: ClassVar[Literal["own"]] = "own"  # type: ignore[misc]


class Solitary(Baseline):
    """The models that agents learn alone."""

    kind: Literal["solitary"] = "solitary"


class Consensus(Baseline):
    """One model for all, learned from everybody's data (equation 2 of the paper)."""

    kind: Literal["consensus"] = "consensus"


class Exchanges(Algorithm):
    """What every rule has whose agents talk to one another."""

    mode: Literal["async", "sync"] = "async"
    """async: gossip; sync: rounds, whose barrier ``rounds`` describes."""

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        if self.mode == "sync" and self.protocol is not None:
            report(
                [("protocol", "rounds have none of gossip's protocols; use null with mode: sync")]
            )
        return self

    @model_validator(mode="after")
    def _start_fits(self) -> Self:
        rule = type(self).rule
        if rule is None or self.start != "hello":
            return self
        rounds = protocol_of(rule).rounds
        if self.mode == "sync" and rounds is not None and rounds.solves_first:
            what = f"{self.kind} says no hello before synchronous rounds; use own or known"
            report([("start", what)])
        if rule.introduce is None and not rule.tells_models():
            report([("start", f"{self.kind} has no introduce, and can't take a hello; use own")])
        return self


_START = "What is known before the first contact, see docs/design.md."
_PROTOCOL = "Who sends what to whom in gossip; null is the first that the rule names."


def _block_of(rule: type[Rule]) -> type[Algorithm]:
    """The block ``algorithm`` of a rule: its own parameters, mode and start."""
    fields: dict[str, Any] = {
        "kind": (Literal[rule.kind], rule.kind),
        "protocol": (_protocols(rule), Field(default=None, description=_PROTOCOL)),
        "start": (_start(rule), Field(default="own", description=_START)),
    }
    if rule.modes != Rule.modes:
        text = f"{rule.kind} has this one alone."
        modes: Any = Literal.__getitem__(rule.modes)
        fields["mode"] = (modes, Field(default=rule.modes[0], description=text))
    # Fields come in the order of the bases from the last to the first: a rule's own last.
    bases: Any = (rule.Parameters, Exchanges)
    made: Any = create_model
    model = made(rule.__name__, __base__=bases, **fields)
    model.__doc__ = (rule.__doc__ or "").split("\n")[0]
    model.rule = rule
    return cast("type[Algorithm]", model)


def blocks(rules: Iterable[type[Rule]]) -> dict[str, type[Algorithm]]:
    """The blocks of all algorithms by kind."""
    return {rule.kind: _block_of(rule) for rule in rules} | {
        "solitary": Solitary,
        "consensus": Consensus,
    }


def algorithm_type(known: dict[str, type[Algorithm]]) -> Any:
    """The type of ``algorithm``; without a kind it is mp."""
    return one_of(list(known.values()), default="mp")
