"""The whole page: one HTML file with everything inside, which asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from simulator import __version__
from simulator.errors import SimulatorError
from simulator.report.parts import Html, Item, fill, find, safe, static, to_json
from simulator.report.run_page import run_item
from simulator.report.sweep_page import sweep_item
from simulator.runs.plugins import Given
from simulator.runs.result import Result
from simulator.shipped import install
from simulator.store.whole_files import replacing_file

#: Our scripts, in the order in which they need one another.
SCRIPTS = (
    "base.js",
    "colours.js",
    "charts.js",
    "tables.js",
    "stamps.js",
    "network.js",
    "player.js",
    "agent.js",
    "run.js",
    "sweep.js",
    "main.js",
)


def write_page(
    paths: Sequence[Path],
    out: Path | None = None,
    *,
    plugins: Given = None,
    window: float = 0.0,
) -> Path:
    """A page of one or several results, sweeps or comparisons; where it was written.

    Without ``out`` a single one's page is in its own folder, that of several in the current one.
    ``window`` is the time from which messages are shown.
    """
    plotly = plotly_script()
    sources = [find(path) for path in paths]
    own = sources[0].folder if len(sources) == 1 else Path()
    place = own / "report.html" if out is None else out
    runs = sum(source.is_run for source in sources)
    made = []
    for number, source in enumerate(sources):
        key = f"p{number}"
        if source.is_run:
            result = Result.load(source.folder, plugins=plugins)
            made.append(run_item(source, result, key=key, share=runs, window=window))
        else:
            made.append(sweep_item(source, key=key, page=place, share=len(sources)))
    with replacing_file(place) as draft:
        draft.write_text(page(made, plotly), encoding="utf-8")
    return place


def page(items: Sequence[Item], plotly: str) -> str:
    """The HTML of the page."""
    script = '(() => {\n"use strict";\n' + "\n".join(map(static, SCRIPTS)) + "\n})();\n"
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(plotly)}' '{_hash(script)}'",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    data = {"items": [item.data for item in items]}
    runs = sum(item.data["type"] == "run" for item in items)
    title = items[0].title if len(items) == 1 else f"{len(items)} results"
    contents = "".join(
        f'<a href="#{safe(item.data["key"])}">{safe(item.title)}</a>' for item in items
    )
    return fill(
        "page.html",
        policy=policy,
        title=title,
        version=__version__,
        style=Html(static("page.css")),
        contents=Html(f"<nav>{contents}</nav>" if len(items) > 1 else ""),
        overview=Html(static("overview.html") if runs > 1 else ""),
        items=Html("\n".join(item.html for item in items)),
        data=Html(to_json(data)),
        plotly=Html(plotly),
        script=Html(script),
    )


def _hash(script: str) -> str:
    """By which the policy knows a script: no other one runs, whatever a name may hold."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def plotly_script() -> str:
    """Plotly's script, from its package."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise SimulatorError(f"a page needs Plotly, which is not installed: {install('report')}")
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise SimulatorError(
            f"{path}: no such file, though Plotly should have it: "
            f"{install('report')} --force-reinstall"
        ) from None
    text = _at_once(text)
    # Neither may end or change the element that it stands in.
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r\n", "\n")


def _at_once(script: str) -> str:
    """The script with its one great function in brackets, by which browsers know that it is called.

    They read it once then, instead of skipping through it first: half a second is saved.
    """
    start, end = ": this, () => {\n", "}));"
    if script.count(start) != 1 or not script.endswith(end):
        return script  # built in another way, and as good
    return f"{script.replace(start, start.replace('()', '(()')).removesuffix(end)}}})));"
