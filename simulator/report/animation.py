"""A moving picture of the agents' models, for pages that run no scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image

from simulator.errors import SimulatorError
from simulator.figures.agent_layout import arrange, model_values, reach
from simulator.figures.run_figures import draw_agents, draw_links
from simulator.figures.style import BLUE, STYLE
from simulator.report.parts import find
from simulator.runs.plugins import Given
from simulator.runs.result import Result
from simulator.store.whole_files import replacing_file

#: Frames, milliseconds between them and at the end, and colours of a palette.
_FRAMES, _PAUSE, _END, _COLOURS = 72, 70, 2500, 96
_FORMATS = {".gif": "GIF", ".png": "PNG"}


def write_animation(folder: Path, out: Path | None = None, *, plugins: Given = None) -> Path:
    """A picture of a stored run whose models were recorded; where it was written."""
    place = folder / "models.gif" if out is None else out
    if place.suffix.lower() not in _FORMATS:
        raise SimulatorError(f"{place}: must end in .gif or .png")
    source = find(folder)
    if not source.is_run:
        raise SimulatorError(f"{folder}: must be a run's result, but is a sweep")
    result = Result.load(source.folder, plugins=plugins)
    if result.kept is None or len(result.kept.samples) < 2:
        raise SimulatorError(
            f"{folder}: the models were not recorded over time; run with record: {{models: true}}"
        )
    first, *others = _frames(result)
    pauses = [_PAUSE] * len(others) + [_END]
    with replacing_file(place) as draft:
        first.save(
            draft,
            format=_FORMATS[place.suffix.lower()],
            save_all=True,
            append_images=others,
            duration=pauses,
            loop=0,
            optimize=place.suffix.lower() == ".gif",  # a PNG takes minutes, and gains nothing
        )
    return place


def _frames(result: Result) -> list[Image.Image]:
    """The agents at their places in the colours of their models, and the error's course."""
    assert result.kept is not None
    layout = arrange(result.problem, most_links=4_000)
    # Most happens early: frames are the nearer to one another.
    last = len(result.kept.samples) - 1
    rows = np.unique((last * np.linspace(0, 1, _FRAMES) ** 1.7).round().astype(int))
    values, text = model_values(result.kept.models[:, layout.agents])
    far = reach(values)
    times = result.trace["time"].to_numpy()[result.kept.samples]
    height = min(1.0, max(0.5, float(np.ptp(layout.places[:, 1]))))
    with rc_context(STYLE):
        figure = Figure(figsize=(6.0, 5.0 * height + 0.55), dpi=110, layout="constrained")
        canvas: Any = FigureCanvasAgg(figure)  # Matplotlib's is not typed
        axis = figure.subplots()
        axis.set_axis_off()
        axis.set_aspect("equal")
        draw_links(axis, layout.places, layout.links, layout.weights, BLUE, 0.15)
        scale = {"cmap": "RdBu", "norm": Normalize(-far, far)}
        points = draw_agents(axis, layout.places, values[0], len(layout.agents), **scale)
        bar = figure.colorbar(points, ax=axis, shrink=0.7, extend="both", pad=0.01)
        bar.set_label("estimated mean" if result.problem.p == 1 else text)
        title = axis.set_title("", fontsize=10, loc="left", family="monospace")
        made = []
        for row in rows:
            points.set_array(values[row])
            title.set_text(f"{times[row]:6.4g} s of gossip" if row else "   0 s: alone")
            canvas.draw()
            picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            made.append(picture)
    # One palette for all frames, so that what does not move need not be stored again.
    palette = made[len(made) // 2].quantize(_COLOURS)
    return [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in made]
