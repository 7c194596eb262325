"""How pictures look, and how they are kept: one style for all, a column or a page wide."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib import colormaps, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke
from matplotlib.ticker import (
    EngFormatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from simulator.errors import ScenarioError
from simulator.scenario.mistakes import shown

STYLE: Any = {
    "figure.dpi": 130,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}
#: Inches: a column and a page of a paper.
COLUMN, PAGE = 3.3, 6.8
FORMATS = ("png", "pdf", "svg")
#: Colours that stay apart for colour-blind readers and, by their lightness, in black and white.
BLUE, ORANGE, GREEN, GREY = "#0B4F8A", "#E08214", "#1B9E77", "#777777"
#: Colour and line of each of several categories (colours of Okabe and Ito, 2008).
LOOKS: tuple[tuple[str, Any], ...] = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    ("#CC79A7", ":"),
    ("#56B4E9", (0, (5, 1, 1, 1, 1, 1))),
    ("#D55E00", (0, (1, 1))),
    ("#000000", "-"),
    ("#F0E442", "--"),
)
#: Around numbers that lines may run through.
HALO = withStroke(linewidth=2, foreground="white")
#: Keys in words and units.
_WORDS = {
    "algorithm.alpha": "trade-off α",
    "algorithm.kind": "algorithm",
    "algorithm.mode": "mode",
    "algorithm.mu": "trade-off μ",
    "algorithm.rho": "penalty ρ",
    "algorithm.start": "start",
    "availability.off.mean": "mean time off",
    "availability.on.mean": "mean time on",
    "clock.rate": "ticks of an agent per second",
    "compute.time": "time of a solve",
    "graph.k": "nearest neighbours",
    "network.bandwidth": "bandwidth of an uplink",
    "network.drop": "share of messages lost",
    "network.latency": "delay",
    "network.latency.mean": "mean delay",
    "network.latency.sigma": "tail of the delays, σ of their logarithm",
    "network.latency.per_link.sigma": "spread of the links' delays, σ of their logarithm",
    "network.retransmit_after": "sent again after",
    "rounds.deadline": "deadline of a round",
    "rounds.enough": "share of neighbours waited for",
    "rounds.slack": "rounds that a neighbour may be behind",
    "task.agents": "number of agents",
    "task.dimension": "dimension of the models",
}
#: Values in words.
_SIDES = {("algorithm.mode", "async"): "gossip", ("algorithm.mode", "sync"): "rounds"}
#: Words stay whole.
_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
#: Spaces at which no line ends: within ``1 s``, ``95 %`` and ``0.5 … 2``.
_TOGETHER = re.compile(r"(?<=\d) (?=(?:m?s|%)(?:\W|$))|(?<=\d) (?=…)|(?<=…) (?=\d)")
#: 0.01 and 1e-05 rather than mathematics, which the style leaves unparsed.
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")

#: Messages: 200k and 1.5M.
COUNTS = EngFormatter(sep="")


class Picture(Figure):
    """A figure that shows itself in a notebook, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


@dataclass(frozen=True)
class Look:
    """What the reader asked for: formats, a metric, words for keys and metrics, a width."""

    formats: tuple[str, ...] = ("png",)
    metric: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Inches.
    width: float = PAGE

    def __post_init__(self) -> None:
        for name in self.formats:
            if name not in FORMATS:
                allowed = ", ".join(FORMATS)
                raise ScenarioError(f"--format {name}: unknown; allowed: {allowed}")
        number = isinstance(self.width, int | float)
        if not (number and 2 <= self.width <= 40):
            got = f"{self.width:g}" if number else shown(self.width)
            raise ScenarioError(f"--width: must be 2 to 40 inches (got {got})")

    @property
    def narrow(self) -> bool:
        """Is there room for one panel beside another?"""
        return self.width < 5

    @property
    def style(self) -> Any:
        """For ``matplotlib.rc_context``."""
        size = 7 if self.narrow else 8
        return {
            **STYLE,
            "font.size": size,
            "axes.titlesize": size,
            "figure.titlesize": size,
            "legend.fontsize": size - 0.5,
            "legend.title_fontsize": size - 0.5,
            "lines.linewidth": 1.3,
            "savefig.dpi": 200,
            "pdf.fonttype": 42,  # text stays text
            "svg.hashsalt": "murmuration",  # the same picture, the same bytes
        }

    def picture(self, height: float, width: float | None = None) -> Picture:
        """An empty figure, of the width asked for."""
        figure = Picture(figsize=(width or self.width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure

    def panels(self, figure: Figure, rows: int, columns: int, **shared: Any) -> Any:
        """So many panels (rows, columns); one below the other in a narrow figure."""
        shape = (rows * columns, 1) if self.narrow else (rows, columns)
        grid = figure.subplots(*shape, squeeze=False, **shared)
        return grid.reshape(rows, columns)

    def room(self, columns: int) -> float:
        """Inches that the inside of one of so many panels beside one another has."""
        return 0.8 * self.width / (1 if self.narrow else columns)

    def words(self, key: str) -> str:
        """A swept key for an axis; a sweep file's own ``$name`` is in words already."""
        return self.labels.get(key) or _WORDS.get(key, key.removeprefix("$"))

    def side(self, key: str, value: Any) -> str:
        """A value of a key for a legend."""
        return self.labels.get(f"{key}={value}") or _SIDES.get((key, value)) or shown_value(value)

    def metric_label(self, kind: str, known: Mapping[str, str]) -> str:
        """A metric for an axis."""
        return self.labels.get(kind) or known.get(kind) or kind.replace("_", " ")


def read_labels(texts: Iterable[str]) -> dict[str, str]:
    """``KEY=WORDS`` of ``--labels``."""
    found = {}
    for text in texts:
        # A value may be named too: "algorithm.mode=async=without a barrier".
        key, equals, words = text.rpartition("=")
        if not equals or not key.strip() or not words.strip():
            raise ScenarioError(f'--labels {text[:60]}: expected KEY=WORDS, like "seed=instance"')
        found[key.strip()] = words.strip()
    return found


def wrapped(text: str, inches: float, size: float = 8) -> str:
    """A text in lines that fit, each of the given lines by itself; long keys end at a dot."""
    most = max(12, int(inches * 72 / (0.53 * size)))
    text = _TOGETHER.sub("\xa0", text)
    lines = [line for given in text.split("\n") for line in textwrap.wrap(given, most, **_WHOLE)]
    return "\n".join(
        re.sub(r"(?<=[a-z_]\.)(?=[a-z])", "\n", line) if len(line) > most else line
        for line in lines
    ).replace("\xa0", " ")


def title(figure: Figure, text: str) -> None:
    """Above all panels, in as many lines as it needs."""
    size = rcParams["font.size"]
    figure.suptitle(wrapped(text, figure.get_figwidth() - 0.2, size), fontsize=size)


def shown_value(value: Any) -> str:
    """A value of a table or a grid for people."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def log_scale(axis: Any) -> None:
    """A logarithmic y axis in plain numbers."""
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogTicks())
    axis.yaxis.set_major_formatter(PLAIN)
    axis.yaxis.set_minor_formatter(NullFormatter())


class LogTicks(LogLocator):
    """Three round numbers at least, however little an axis spans, and seven or so at most."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks between two values, and those just beyond."""
        low, high = sorted((vmin, vmax))
        if low <= 0:
            return super().tick_values(vmin, vmax)
        powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        tens = 10.0 ** powers[:: -(-len(powers) // 7)]
        for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            ticks = np.outer(tens, steps).ravel()
            if np.count_nonzero((low <= ticks) & (ticks <= high)) >= 3:
                return ticks
        return MaxNLocator(4).tick_values(low, high)


def legend_below(figure: Figure, axis: Any, name: str | None = None) -> None:
    """What the lines of an axis are, below all panels, where no line can run through it."""
    handles, texts = axis.get_legend_handles_labels()
    if not handles:
        return
    size = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points()
    widths = [0.6 * size * len(text) + 5 * size for text in texts]  # points: a text, and its line
    room = 72 * figure.get_figwidth()
    columns = len(texts) if sum(widths) < room else max(1, int(room / max(widths)))
    figure.legend(handles, texts, title=name, loc="outside lower center", ncols=columns)


def line_looks(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """A colour and a line for each value: a scale for quantities, colours apart for categories."""
    if len(values) > 2 and all(_is_quantity(value) for value in values):
        return [(colour, "-") for colour in colormaps["viridis"](np.linspace(0, 0.85, len(values)))]
    return [LOOKS[number % len(LOOKS)] for number in range(len(values))]


def _is_quantity(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    text = isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+(e[-+]?\d+)? ?[^\d\s]*", value)
    return isinstance(value, int | float) or bool(text)


def value_ticks(axis: Any, texts: Sequence[str], room: float) -> None:
    """Values along an x axis of ``room`` inches, turned where they would run into one another."""
    longest = max((len(text) for text in texts), default=0)
    crowded = longest * 0.075 * len(texts) > room
    axis.set_xticks(
        range(len(texts)),
        texts,
        rotation=35 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
