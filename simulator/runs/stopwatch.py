"""How long a run took, and how long compiling did, which is not the run's fault."""

from __future__ import annotations

import time
from typing import Any, Self

from numba.core import event as _event

event: Any = _event  # untyped
#: Numba holds this lock while it compiles, and while it reads compiled code from its cache.
_COMPILING = "numba:compiler_lock"


class Stopwatch(event.Listener):
    """A context manager: ``seconds`` without compiling, and ``compiling``."""

    def __init__(self) -> None:
        self.seconds = self.compiling = 0.0
        self._depth, self._began, self._started = 0, 0.0, 0.0

    def __enter__(self) -> Self:
        event.register(_COMPILING, self)
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        event.unregister(_COMPILING, self)
        self.seconds = time.perf_counter() - self._started - self.compiling

    def on_start(self, _: Any) -> None:
        """The lock is taken; it may be taken again by who holds it."""
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, _: Any) -> None:
        """It is given back."""
        self._depth -= 1
        if self._depth == 0:
            self.compiling += time.perf_counter() - self._began
