"""The protocols, one a file: what is here is found by its place."""

from agents.machinery.discovery import kinds_in
from agents.protocol import Protocol
from agents.rule import Rule

#: The protocols by kind.
PROTOCOLS: dict[str, type[Protocol]] = kinds_in(__name__, __path__, Protocol)


def protocols_of(rule: type[Rule]) -> dict[str, type[Protocol]]:
    """The protocols that a rule can follow, the first by default: named by kind or by class."""
    found = [PROTOCOLS[named] if isinstance(named, str) else named for named in rule.protocols]
    return {protocol.kind: protocol for protocol in found}


def protocol_of(rule: type[Rule], kind: str | None = None) -> type[Protocol]:
    """The protocol that a rule follows: the one of this kind, or its first."""
    known = protocols_of(rule)
    return known[kind or next(iter(known))]
