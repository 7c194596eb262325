"""HTML from text: whatever is put into a page is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template


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


def paragraphs(texts: Iterable[str]) -> Html:
    """A paragraph each."""
    return Html("\n".join(f"<p>{safe(text)}</p>" for text in texts))


def items(texts: Sequence[str]) -> Html:
    """Remarks, if there are any."""
    return Html("".join(f'<p class="note">{safe(text)}</p>' for text in texts))


def definitions(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values."""
    rows = (f"<div><dt>{safe(name)}</dt><dd>{safe(value)}</dd></div>" for name, value in pairs)
    return Html(f"<dl>{''.join(rows)}</dl>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A plain table, the first cell of each row its name."""
    top = "".join(f'<th scope="col">{safe(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{safe(row[0])}</th>'
        + "".join(f"<td>{safe(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )
