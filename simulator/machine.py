"""What this machine can hold: work that would need more memory is refused before it begins."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from simulator.errors import ScenarioError

#: Where Linux says how much memory a container may use; "max", or a huge number, is no limit.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def memory() -> float:
    """The memory of the machine or, if that is less, of the container; in bytes."""
    try:
        limits = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    except (ValueError, OSError, AttributeError):  # not known on this system
        limits = [float("inf")]
    for file in _CONTAINER_LIMITS:
        try:
            limits.append(float(Path(file).read_text().strip()))
        except (OSError, ValueError):
            continue
    return min(limits)


def require_memory(needed: float, what: str) -> None:
    """Raise a ScenarioError if ``what`` needs more bytes than there are."""
    if needed > memory():
        raise ScenarioError(
            f"{what} would need about {gigabytes(needed)}, "
            f"and this machine has {gigabytes(memory())}"
        )


def gigabytes(amount: float) -> str:
    """``2.5 GB``, and ``3e+21 GB`` where digits mean nothing."""
    return f"{amount / 1e9:.3g} GB"
