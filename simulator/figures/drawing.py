"""Which pictures a result has, by its class, and how they become figures or files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from simulator.errors import SimulatorError
from simulator.figures.comparison_figures import comparison_pictures
from simulator.figures.frontier_figures import frontier_pictures
from simulator.figures.run_figures import problem_pictures, run_pictures
from simulator.figures.style import PAGE, Look, Picture
from simulator.figures.sweep_figures import sweep_pictures
from simulator.problem.problem import Problem
from simulator.runs.result import Result
from simulator.sweeps.sweep import Comparison, Frontier, Sweep

#: Yields figures with their names, the most telling one first; drawn within the look's style.
Pictures = Callable[[Any, Look], Iterator[tuple[str, Figure]]]
_PICTURES: Mapping[type, Pictures] = {
    Problem: problem_pictures,
    Result: run_pictures,
    Sweep: sweep_pictures,
    Comparison: comparison_pictures,
    Frontier: frontier_pictures,
}


def plot(
    thing: Any,
    which: str | None = None,
    *,
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    width: float | None = None,
) -> Picture:
    """The first of the figures, or the one named."""
    look = Look(metric=metric, labels=labels or {}, width=PAGE if width is None else width)
    names = []
    with rc_context(look.style):
        figure: Any
        for name, figure in _PICTURES[type(thing)](thing, look):
            if which in (None, name):
                return figure
            names.append(name)
    if which is None:
        raise SimulatorError("there is nothing to draw: one sample, and no vectors of agents")
    raise SimulatorError(f"plot: no figure {which!r}; allowed: {', '.join(names)}")


def draw(thing: Any, folder: Path, look: Look | None = None) -> None:
    """All pictures of a result, as files in a folder, in every format that was asked for."""
    look = look or Look()
    # Without dates, so that the same picture is the same bytes.
    about: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with rc_context(look.style):
        for name, figure in _PICTURES[type(thing)](thing, look):
            for ending in look.formats:
                figure.savefig(folder / f"{name}.{ending}", metadata=about.get(ending))
