"""The Markdown beside this file, written by hand: sections by their headings, to be filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd


def sections(name: str) -> dict[str, str]:
    """What stands below each heading of the second level."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {heading: body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def filled(template: str, numbers: Mapping[Any, Any]) -> str:
    """On one line, with numbers in the place of their names."""
    return " ".join(template.format_map(numbers).split())


def listed(template: str, rows: pd.DataFrame) -> str:
    """The same of every row of a table, with commas."""
    return ", ".join(filled(template, row) for row in rows.to_dict("records"))
