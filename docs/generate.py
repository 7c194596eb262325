"""Pages of the site that are made of the code: the reference of all keys, and the gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.runs.plugins import schema_for
from simulator.scenario.files import json_schema
from simulator.shipped import examples
from simulator.sweeps.sweep_file import sweep_schema

HERE = Path(__file__).parent
IMAGES = HERE / "images" / "gallery"
#: What ``gallery.py`` draws is shorter or smaller than shipped, where the picture shows the same.
SHORTER: dict[str, dict[str, Any]] = {
    "linear_classification": {"stop.time": 100},
    "million": {"task.agents": 20_000},
    "moons_knn": {"stop.communications": 400_000},
}


# --- reference ------------------------------------------------------------------------------------
def reference() -> str:
    """Every key of scenario files and of sweep files, from the schema."""
    schema = json_schema(schema_for())
    parts = [
        "# Every key",
        "Made of the schema: what the program checks. Times are in seconds or carry a "
        "unit (`50 ms`, `2 min`), bandwidths too (`1 MB/s`); a share may be a percentage (`10%`). "
        "A block of one of several kinds says which by its `kind`.",
        "A key that the kind of its block does not have is an error (`rho` under `mp`, anything "
        "but `kind` under `solitary` and `consensus`); but what only one mode or baseline leaves "
        "unused (the clock in rounds, `retransmit_after` in gossip) may stand, so that all can be "
        "compared on one scenario. Where `--set algorithm.kind` changes the kind, the file's keys "
        "that only its own kind has go with it.",
        "## A scenario file",
        _table(schema, schema["$defs"]),
    ]
    for key, about in schema["properties"].items():
        blocks = _blocks(about, schema["$defs"])
        if blocks:
            parts += [f"## {key}", about.get("description", "")]
            parts += _sections(blocks, schema["$defs"], set())
    sweep = sweep_schema()
    parts += ["## A sweep file", sweep["description"], _table(sweep, sweep["$defs"])]
    return "\n\n".join(parts) + "\n"


def _sections(blocks: list[str], known: dict[str, Any], seen: set[str]) -> list[str]:
    """A table of each block, and of those within it, once."""
    parts: list[str] = []
    for name in blocks:
        if name in seen:
            continue
        seen.add(name)
        block = known[name]
        kind = block["properties"].get("kind", {}).get("const")
        title = f"kind: {kind}" if kind else name
        text = " ".join(block.get("description", "").split())
        parts += [f"### {title}", text, _table(block, known)]
        inner = [n for about in block["properties"].values() for n in _blocks(about, known)]
        parts += _sections(inner, known, seen)
    return parts


def _blocks(about: Any, known: dict[str, Any]) -> list[str]:
    """The blocks that a key may have."""
    if isinstance(about, list):
        return [name for item in about for name in _blocks(item, known)]
    if not isinstance(about, dict):
        return []
    if "$ref" in about:
        return [about["$ref"].rsplit("/", 1)[-1]]
    return [name for key in ("anyOf", "allOf", "items") for name in _blocks(about.get(key), known)]


def _table(block: dict[str, Any], known: dict[str, Any]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, about in block["properties"].items():
        if key == "kind" and "const" in about:
            continue
        value, default = _type(about, known), _default(about, key in block.get("required", ()))
        meaning = " ".join(about.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| `{key}` | {value} | {default} | {meaning} |")
    return "\n".join(rows) if len(rows) > 2 else "No keys besides `kind`."


def _type(about: Any, known: dict[str, Any]) -> str:
    """What a value may be, in a few words."""
    if "const" in about:
        return f"`{about['const']}`"
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"])
    if "$ref" in about:
        return _named(about["$ref"].rsplit("/", 1)[-1], known)
    if "anyOf" in about:
        found = dict.fromkeys(_type(item, known) for item in about["anyOf"])
        return ", ".join(text for text in found if text)
    kind = about.get("type", "")
    if kind == "string" and "examples" in about:
        return f"like `{about['examples'][0]}`"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    words |= {"null": "null", "object": "block", "array": "list"}
    bounds = _bounds(about)
    return f"{words.get(kind, kind)}{f' {bounds}' if bounds else ''}" if kind else "anything"


def _bounds(about: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    # What a machine's whole numbers can hold is no news to a reader.
    told = [key for key in signs if key in about and about[key] < 2**31 - 1]
    return ", ".join(f"{signs[key]} {about[key]:g}" for key in told)


def _named(name: str, known: dict[str, Any]) -> str:
    kind = known[name].get("properties", {}).get("kind", {}).get("const")
    return f"`{{kind: {kind}}}`" if kind else "block"


def _default(about: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = about.get("default")
    if default in (None, "") or isinstance(default, dict):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


# --- gallery --------------------------------------------------------------------------------------
def gallery() -> str:
    """Every shipped scenario: what it says about itself, and its pictures."""
    parts = [
        "# Gallery",
        "Every scenario that is shipped. `python -m simulator example NAME` prints one; "
        "`python docs/gallery.py` draws these pictures anew.",
    ]
    for name, path in examples().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        comment = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
        told = " ".join(line for line in comment if "$schema" not in line)
        sweep = is_sweep(path)
        command = "compare" if sweep else "run"
        parts += [f"## {name}", _as_text(told)]
        parts += [f"```sh\npython -m simulator {command} scenarios/{name}.yaml\n```"]
        pictures = sorted(IMAGES.glob(f"{name}-*.png"))
        own = HERE / "images" / f"{name}.png"
        pictures += [own] if sweep and own.exists() else []
        if pictures and name in SHORTER:
            changed = " and ".join(f"`{key}: {value}`" for key, value in SHORTER[name].items())
            parts += [f"The pictures are of a smaller run, with {changed}:"]
        places = [picture.relative_to(HERE).as_posix() for picture in pictures]
        parts += [f"![{name}](../{place})" for place in places]
    return "\n\n".join(parts) + "\n"


def is_sweep(path: Path) -> bool:
    """Is a shipped file one for ``sweep`` and ``compare``?"""
    return "\nbase:" in path.read_text(encoding="utf-8")


def _as_text(text: str) -> str:
    """A comment as Markdown: what looks like emphasis is none."""
    return text.replace("*", "\\*").replace("_", "\\_")
