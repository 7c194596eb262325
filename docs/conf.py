"""The documentation as a site: ``make docs``.  Warnings are errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

project = "Murmuration"
copyright = "The Murmuration authors"  # noqa: A001  the name that Sphinx wants
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3
exclude_patterns = ["**.ipynb_checkpoints"]
smartquotes_action = "qe"  # quotes and dots; two hyphens begin an option
html_theme = "furo"
html_title = "Murmuration"
autodoc_typehints = "none"  # the signatures have them, and would say them twice
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
html_extra_path = ["tutorial.ipynb"]


def _links(app: Any, name: str, source: list[str]) -> None:
    """Links to the code are for readers of the checkout; the site shows the name."""
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./|examples)[^)]*\)", r"`\1`", source[0])
    source[0] = source[0].replace("](results/paper/", "](../results/paper/")


def _generate(app: Any) -> None:
    """Pages that are made of the code, so that they can't fall behind it."""
    import generate

    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    for name, text in (("reference", generate.reference()), ("gallery", generate.gallery())):
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("builder-inited", _generate)
    app.connect("source-read", _links)
