"""The agents' rules, one a file: what is here is found by its place."""

from agents.machinery.discovery import kinds_in
from agents.rule import Rule

#: The rules by kind.
RULES: dict[str, type[Rule]] = kinds_in(__name__, __path__, Rule)
