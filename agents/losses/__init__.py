"""The agents' losses, one a file: what is here is found by its place."""

from agents.losses.loss import Floats, Kinked, Loss, Smooth, design
from agents.machinery.discovery import kinds_in

#: The losses by kind.
LOSSES: dict[str, type[Loss]] = kinds_in(__name__, __path__, Loss)

__all__ = ["LOSSES", "Floats", "Kinked", "Loss", "Smooth", "design"]
