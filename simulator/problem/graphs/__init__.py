"""Who knows whom: the kinds of graphs; what is here is found by its place."""

from agents.machinery.discovery import kinds_in
from simulator.scenario.kinds import Graph

#: The graphs by kind.
GRAPHS: dict[str, type[Graph]] = kinds_in(__name__, __path__, Graph)
