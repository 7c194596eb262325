"""The learning tasks; what is here is found by its place.

Generated data come from the stream ``data`` alone, each task drawing in the order that its
``build`` states.
"""

from agents.machinery.discovery import kinds_in
from simulator.scenario.kinds import Task

#: The tasks by kind.
TASKS: dict[str, type[Task]] = kinds_in(__name__, __path__, Task)
