"""What pages are made of: HTML from text, which is escaped here, once; words; packed data."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.scenario.laws import Constant, Law
from simulator.store.store import check_files, read_manifest
from simulator.theory.metrics import METRICS


@dataclass(frozen=True)
class Item:
    """A part of the page: its HTML, what its script needs, and its place in the contents."""

    html: str
    data: dict[str, Any]
    title: str


@dataclass(frozen=True)
class Source:
    """A folder of the store and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def is_run(self) -> bool:
        """A run, or else a sweep, a comparison or a frontier."""
        return "summary" in self.manifest

    @property
    def software(self) -> str:
        """What computed it, in which versions."""
        versions = self.manifest["software"].items()
        return ", ".join(f"{name} {version}" for name, version in versions if version)


def find(folder: Path) -> Source:
    """A whole result, sweep or comparison; SimulatorError says what is wrong with it."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return Source(folder, manifest)


# --- HTML -----------------------------------------------------------------------------------------
class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def static(name: str) -> str:
    """The text of one of the files beside this module."""
    return files("simulator.report").joinpath("static", name).read_text(encoding="utf-8")


def safe(text: str) -> Html:
    """Text as HTML; what is HTML already stays as it is."""
    return text if isinstance(text, Html) else Html(escape(text))


def fill(name: str, **parts: str) -> Html:
    """A template with its parts, each escaped unless it is HTML."""
    return Html(Template(static(name)).substitute({k: safe(part) for k, part in parts.items()}))


def paragraphs(texts: Iterable[str], kind: str = "") -> Html:
    """A paragraph each, perhaps all of one class."""
    start = f'<p class="{kind}">' if kind else "<p>"
    return Html("\n".join(f"{start}{safe(text)}</p>" for text in texts))


def notes(texts: Iterable[str]) -> Html:
    """Remarks, if there are any."""
    return paragraphs(texts, "note")


def definitions(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values."""
    rows = (f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>" for name, value in pairs)
    return Html(f"<dl>{''.join(rows)}</dl>")


# --- words ----------------------------------------------------------------------------------------
#: Metrics by how well they tell what was learned, and what a sentence calls them.
MAIN = {
    "accuracy": "the mean test accuracy",
    "l2_error": "the mean squared error",
    "distance": "the mean squared distance to the optimum",
    "gap": "the relative gap of the objective",
    "objective": "the objective",
}


def count(number: int, noun: str) -> str:
    """``1 agent``, ``300 agents``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    size, unit = next((pair for pair in ((1, "s"), (1e-3, "ms")) if value >= pair[0]), (1e-6, "µs"))
    return f"{value / size:.6g} {unit}" if value else "0 s"


def law_words(law: Law[Any], unit: str = "s") -> str:
    """``50 ms``; ``exponential with mean 50 ms``."""
    timed = seconds if unit else (lambda value: f"{value:.6g}")
    if isinstance(law, Constant):
        return timed(law.mean_value)
    parts = []
    for name, value in law:
        if name in ("kind", "per_agent", "per_link", "lasts") or value is None:
            continue
        text = str(getattr(value, "name", value))
        if isinstance(value, float):
            text = timed(value) if name in ("mean", "low", "high", "value") else f"{value:g}"
        parts.append(f"{name} {text}")
    return f"{law.kind} with {', '.join(parts)}" if parts else law.kind


def by_importance(names: Iterable[str], first: Iterable[str] = ()) -> list[str]:
    """Those that a reader asks for first come first."""
    order = list(dict.fromkeys([*first, *MAIN]))
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def label_of(name: str) -> str:
    """A metric, or another measure, for an axis."""
    if name in METRICS:
        return METRICS[name].label.replace("\n", " ")
    units = {"time_to_target": "time to target (s)", "simulated_time": "simulated time (s)"}
    units |= {"round_mean": "rounds finished, mean over agents"}
    return units.get(name, name.replace("_", " "))


def metric_data(name: str, values: Any) -> dict[str, Any]:
    """What a chart needs to know of a metric: errors have a logarithmic axis."""
    grows = name in METRICS and METRICS[name].grows
    log = not grows and name != "staleness" and bool((values > 0).all())
    return {"kind": name, "label": label_of(name), "log": log}


# --- data -----------------------------------------------------------------------------------------
#: The code of a value that is missing among packed ones.
_MISSING = 65_535


def thinned(count: int, most: int) -> NDArray[np.int64]:
    """Positions of at most ``most`` of ``count`` things, evenly, the first and last among them."""
    return np.unique(np.linspace(0, count - 1, max(2, min(count, most))).round().astype(int))


def typed(values: ArrayLike, dtype: str) -> dict[str, str]:
    """An array as the page's script reads it: little-endian bytes, in base64.

    The dtype is one of u1, u2, u4, f4 and f8; ``base.js`` makes the typed array.
    """
    content = np.ascontiguousarray(values, dtype=f"<{dtype}").tobytes()
    return {"dtype": dtype, "base64": base64.b64encode(content).decode("ascii")}


def squeezed(values: NDArray[np.float64], *, log: bool) -> dict[str, Any]:
    """Numbers in two bytes each, to a part in 65,000 of their range, or of that of their logarithm.

    Of a logarithmic range everything below a part in 10^12 of the largest is the least.
    """
    given = np.isfinite(values)
    known = values[given]
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if log:
        most = max(most, 1e-300)
        least = max(least, most * 1e-12)
        values = np.log(np.maximum(values, least))
        least, most = math.log(least), math.log(most)
    step = (most - least) / (_MISSING - 1) or 1.0
    codes = np.full(values.shape, _MISSING, dtype=np.uint16)
    codes[given] = np.round((values[given] - least) / step).astype(np.uint16)
    return {"codes": typed(codes, "u2"), "first": least, "step": step, "log": log}


def column(values: Any, dtype: str = "f8") -> dict[str, Any] | list[Any]:
    """A column of a table: numbers as a typed array, anything else as text or null."""
    if values.dtype.kind in "iufb" or str(values.dtype) == "Int64":
        return typed(values.astype("float64"), dtype)
    return [None if isinstance(v, float) and math.isnan(v) else str(v) for v in values.tolist()]


def to_json(content: Any) -> str:
    """JSON for a ``<script>`` element: no ``<`` is in it, hence no end of the element either."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # U+2028 and U+2029 are line ends to old scripts.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
