"""JSON Schema of sweep files, for editors."""

from __future__ import annotations

from typing import Any

_VALUE: dict[str, Any] = {}  # anything that the scenario's key takes
_VALUES = {
    "description": "Values, or a range FROM:TO:STEP with both ends.",
    "anyOf": [
        {"type": "array", "minItems": 1, "items": _VALUE},
        {"type": "string", "pattern": r"^\s*[-+.\deE]+\s*:\s*[-+.\deE]+\s*:\s*[-+.\deE]+\s*$"},
    ],
}
_KNOB = {
    "type": "object",
    "description": "One key of the scenario, and the values to try.",
    "additionalProperties": _VALUES,
    "minProperties": 1,
    "maxProperties": 1,
}
_PROPERTIES: dict[str, Any] = {
    "base": {
        "type": "string",
        "description": "The scenario file, relative to this file.",
    },
    "name": {
        "type": "string",
        "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$",
        "description": "What the sweep is called; the file's name by default.",
    },
    "description": {"type": "string", "description": "What the sweep is about."},
    "grid": {
        "type": "object",
        "description": "Keys of the scenario with their values; every combination is run. A key "
        "that begins with $ is one of worlds.",
        "additionalProperties": _VALUES,
    },
    "seeds": {
        "type": "integer",
        "minimum": 1,
        "description": "So many runs of each combination: the scenario's seed and those after it.",
    },
    "target": {
        "type": "string",
        "pattern": "=|^none$",
        "examples": ["distance=1%", "l2_error=0.05"],
        "description": "A run stops where it reaches this: METRIC=LEVEL, a number or a percentage "
        "of the value at its start; none: at its limits alone.",
    },
    "vary": {**_KNOB, "description": "The key that compare compares, and its values."},
    "tune": {
        "type": "object",
        "description": "By side, a key whose value it chooses on held-out seeds.",
        "properties": {
            "budget": {
                "type": "number",
                "minimum": 1,
                "description": "How many times the least communications a choice may cost.",
            }
        },
        "additionalProperties": _KNOB,
    },
    "frontier": {
        "type": "object",
        "description": "By side, a key over whose values its frontier is drawn.",
        "additionalProperties": _KNOB,
    },
    "worlds": {
        "type": "object",
        "description": "Sets of overrides with a name; each has the whole grid.",
        "additionalProperties": {
            "type": "object",
            "description": "Keys of the scenario with one value each; $names are keys of grid.",
        },
    },
}


def sweep_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a sweep file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "description": "Many runs of one scenario, for sweep and compare.",
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["base"],
        "additionalProperties": False,
    }
