"""The protocols, one a file: what is here is found by its place."""

from agents.machinery.discovery import kinds_in
from agents.protocol import Protocol
from agents.rule import Rule

#: The protocols by kind.
PROTOCOLS: dict[str, type[Protocol]] = kinds_in(__name__, __path__, Protocol)


def protocol_of(rule: type[Rule]) -> type[Protocol]:
    """The protocol that a rule follows, which it names by its kind or by its class."""
    named = rule.protocol
    return PROTOCOLS[named] if isinstance(named, str) else named
