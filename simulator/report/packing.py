"""What a page carries: arrays as base64, the rest as JSON that cannot end its own element."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: How the page's script calls a dtype; ``base.js`` makes the typed array.
_NAMES = {"u1": "u1", "u2": "u2", "u4": "u4", "f4": "f4", "f8": "f8"}
#: The code of a value that is missing among packed ones.
_MISSING = 65_535


def typed(values: ArrayLike, dtype: str) -> dict[str, str]:
    """An array as the page's script reads it: little-endian bytes, in base64."""
    content = np.ascontiguousarray(values, dtype=f"<{_NAMES[dtype]}").tobytes()
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
        values, least, most = _log(np.maximum(values, least)), math.log(least), math.log(most)
    step = (most - least) / (_MISSING - 1) or 1.0
    codes = np.full(values.shape, _MISSING, dtype=np.uint16)
    codes[given] = np.round((values[given] - least) / step).astype(np.uint16)
    return {"codes": typed(codes, "u2"), "first": least, "step": step, "log": log}


def _log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


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
