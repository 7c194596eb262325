"""Murmuration: a discrete-event network simulator for peers that learn personalized models.

>>> from simulator import run
>>> result = run("scenarios/moons.yaml", {"seed": 3})  # doctest: +SKIP
>>> result.plot()  # doctest: +SKIP
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator import showing

if TYPE_CHECKING:
    from simulator.api import *  # noqa: F403

__version__ = "0.1.0"

showing.figures = "simulator.figures.drawing"


def require_own_agents() -> None:
    """Say in one line that another package has the name of ours, before Python says it in many."""
    spec = find_spec("agents")
    home = None if spec is None or spec.origin is None else Path(spec.origin).parent
    if home is None or not (home / "rule.py").exists():
        raise ImportError(
            f"another package called 'agents', in {home}, hides the one of murmuration: "
            "install murmuration into an environment of its own"
        )


def __getattr__(name: str) -> Any:
    """The names of ``api``, at first use: help must not wait for the numerical libraries."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_own_agents()
    return getattr(import_module("simulator.api"), name)


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
