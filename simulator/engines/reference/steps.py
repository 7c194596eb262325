"""The rule's functions as SimPy's agents call them: through their pointers, or as they stand."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from agents.compiling import FAILED, FINE, JIT, call, entry, invoke
from agents.messages import Sheet
from agents.running import RuleError, RunningRule
from simulator.engines.watch import DIVERGED, FIELDS, REACHED, Watch, follow

RECORD = np.dtype(FIELDS, align=True)


@entry
def solve_and_follow(runs: Any, function: int, s: int, i: int) -> int:
    """Agent i's costly step, and what its new model means: −1 if the step failed."""
    if invoke(function, s, i, 0, 0, 0) == FAILED:  # type: ignore[call-arg, unused-ignore]
        return -1
    return follow(runs[0], i)  # type: ignore[no-any-return]


@entry
def only_follow(runs: Any, i: int) -> int:
    """What a new model means."""
    return follow(runs[0], i)  # type: ignore[no-any-return]


class Steps:
    """The rule at work (``agents.messages.Steps``).

    ``on_reached`` and ``on_divergence`` are told the agent whose new model brought it about.
    """

    def __init__(
        self,
        rule: RunningRule,
        watch: Watch | None,
        now: Callable[[], float],
        on_reached: Callable[[], None],
        on_divergence: Callable[[int], None],
    ):
        self.rule, self._now = rule, now
        self._on_reached, self._on_divergence = on_reached, on_divergence
        self._record = np.zeros(1, RECORD).view(np.recarray)
        record, models = self._record, rule.models
        record["n"], record["p"] = models.shape
        record["models"] = models.ctypes.data
        if watch is not None:
            watch.fill(record)
        if JIT:
            pointers, state = rule.pointers(), rule.address
            self._pointers, self._state = pointers, state

    def tell(self, i: int, k: int, out: Sheet) -> None:
        """Write what agent i tells the neighbour on link k."""
        self._do("tell", i, k, out, None)

    def absorb(self, i: int, k: int, received: Sheet, sent: Sheet | None) -> None:
        """Agent i takes in what came from link k."""
        self._do("absorb", i, k, received, sent)

    def introduce(self, i: int, k: int, model: Sheet) -> None:
        """Agent i takes in a hello."""
        self._do("introduce", i, k, model, None)

    def say_hello(self, i: int, out: Sheet) -> None:
        """Write agent i's model."""
        out.array(self.rule.models[i].shape)[:] = self.rule.models[i]

    def solve(self, i: int) -> None:
        """Agent i gets a new model."""
        if JIT:
            verdict = solve_and_follow(self._record, self._pointers["solve"], self._state, i)
        else:
            self._do("solve", i, 0, None, None)
            verdict = only_follow(self._record, i)
        if verdict == REACHED:
            self._on_reached()
        elif verdict == DIVERGED:
            self._on_divergence(i)
        elif verdict < 0:
            raise self._failure("solve", i, 0, None, None)

    def _do(self, name: str, i: int, k: int, a: Sheet | None, b: Sheet | None) -> None:
        if JIT:
            first = 0 if a is None else a.address
            # Where nothing was sent in the same exchange, what was sent is the model as it is.
            second = self.rule.models[i].ctypes.data if b is None else b.address
            if call(self._pointers[name], self._state, i, k, first, second) != FINE:
                raise self._failure(name, i, k, a, b)
            return
        try:
            self.rule.plain(name, i, k, self._array(name, a), self._array(name, b))
        except Exception as error:
            where = f" for agent {i} at {self._now():g} s"
            raise self.rule.error(name, error, where) from error

    def _failure(self, name: str, i: int, k: int, a: Sheet | None, b: Sheet | None) -> RuleError:
        arrays = self._array(name, a), self._array(name, b)
        return self.rule.explain(name, i, k, *arrays, f"{self._now():g} s")

    def _array(self, name: str, sheet: Sheet | None) -> Any:
        if sheet is None:
            return None
        shape = self.rule.models[0].shape if name == "introduce" else self.rule.shape
        return sheet.array(shape)
