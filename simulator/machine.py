"""What this machine can hold: work that would need more memory is refused, or stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def within(room: float, seconds: float) -> Iterator[None]:
    """Raise MemoryError above so many bytes more than now, TimeoutError after so many seconds.

    Where the system can do that: it can for the main thread, and on Linux for memory.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)  # again, should somebody catch the first
    restore = _limit_memory(room)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        restore()


def _limit_memory(room: float) -> Callable[[], None]:
    """Take no more than ``room`` bytes beside what is in use; how to end that."""
    import resource

    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return lambda: None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [limit for limit in (int(used + room), soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
