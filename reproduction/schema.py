"""JSON Schema of files of choices, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from reproduction.choices import CHOICES


def choices_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file of choices."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "What the paper leaves open, decided: for python -m reproduction --choices.",
        "type": "object",
        "properties": {block: _block(block, known) for block, known in CHOICES.items()},
        "required": list(CHOICES),
        "additionalProperties": False,
    }


def _block(name: str, known: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"The choices of {name.replace('_', ' ')}.",
        "properties": {key: _choice(kind, allowed) for key, (kind, allowed) in known.items()},
        "additionalProperties": False,
    }


def _choice(kind: Any, allowed: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"A value ({allowed}), those that it was preferred to, and the reason.",
        "properties": {
            "value": {**TypeAdapter(kind).json_schema(), "description": f"{allowed}."},
            "others": {"type": "array", "description": "Other values that one might have taken."},
            "why": {"type": "string", "description": "The reason."},
        },
        "required": ["value"],
    }
