"""The rule's functions as SimPy's agents call them: through their pointers, or as they stand."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, cast

import numpy as np

from agents.machinery.compiling import FAILED, JIT, call, direct, entry, kernel
from agents.machinery.intrinsics import array_at, invoke
from agents.messages import Sheet
from agents.running import RuleError, RunningRule
from simulator.engines.watch import DIVERGED, FIELDS, REACHED, Watch
from simulator.engines.watch import follow as follow_any

RECORD = np.dtype(FIELDS, align=True)
follow = kernel(follow_any)


@entry
def solve_and_follow(run: int, function: int, s: int, i: int) -> int:
    """Agent i's costly step, and what its new model means: −1 if the step failed."""
    if invoke(function, s, i, 0, 0, 0) == FAILED:
        return -1
    return follow(array_at(run, 1, RECORD)[0], i)


@entry
def follow_changed(run: int, i: int) -> int:
    """What it means that agent i has a new model without having solved."""
    return follow(array_at(run, 1, RECORD)[0], i)


class Steps:
    """The rule at work (``agents.messages.Steps``), as plain Python.

    ``hello`` says whether agents will be introduced; ``on_divergence`` is told the agent whose new
    model brought it about.
    """

    def __init__(
        self,
        rule: RunningRule,
        watch: Watch | None,
        hello: bool,
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

    def tell(self, i: int, k: int, out: Sheet) -> None:
        """Write what agent i tells the neighbour on link k."""
        self._do("tell", i, k, out, None)

    def absorb(self, i: int, k: int, received: Sheet, sent: Sheet | None) -> None:
        """Agent i takes in what came from link k.

        Where nothing was sent in the same exchange, ``sent`` is None.
        """
        self._do("absorb", i, k, received, sent)

    def introduce(self, i: int, k: int, model: Sheet) -> None:
        """Agent i takes in a hello."""
        self._do("introduce", i, k, model, None)

    def say_hello(self, i: int, out: Sheet) -> None:
        """Write agent i's model."""
        out.array(self.rule.models[i].shape)[:] = self.rule.models[i]

    def solve(self, i: int) -> None:
        """Agent i gets a new model."""
        self._do("solve", i, 0, None, None)
        self._consider(follow(self._record[0], i), i)

    def changed(self, i: int) -> None:
        """Agent i has a new model without having solved."""
        self._consider(follow(self._record[0], i), i)

    def _consider(self, outcome: int, i: int) -> None:
        if outcome == REACHED:
            self._on_reached()
        elif outcome == DIVERGED:
            self._on_divergence(i)

    def _do(self, name: str, i: int, k: int, a: Sheet | None, b: Sheet | None) -> None:
        try:
            self.rule.plain(name, i, k, self._array(name, a), self._array(name, b))
        except Exception as error:
            where = f" for agent {i} at {self._now():g} s"
            raise self.rule.failure(name, error, where) from error

    def _array(self, name: str, sheet: Sheet | None) -> Any:
        if sheet is None:
            return None
        shape = self.rule.models[0].shape if name == "introduce" else self.rule.shape
        return sheet.array(shape)


class CompiledSteps(Steps):
    """The same through the pointers that the compiled engine uses."""

    def __init__(self, rule: RunningRule, watch: Watch | None, hello: bool, *callbacks: Any):
        super().__init__(rule, watch, hello, *callbacks)
        pointers, self._state = self.rule.pointers(hello), self.rule.address
        self._tell, self._absorb = pointers["tell"], pointers["absorb"]
        self._solve, self._introduce = pointers["solve"], pointers["introduce"]
        self._call, self._solve_and_follow = direct(call, 6), direct(solve_and_follow, 4)
        self._run = int(self._record.ctypes.data)
        unsaid = self.rule.unsaid
        self._unsaid = int(unsaid.ctypes.data)
        self._width = unsaid.strides[0] if unsaid is self.rule.models else 0

    def tell(self, i: int, k: int, out: Sheet) -> None:
        """Write what agent i tells the neighbour on link k."""
        if self._call(self._tell, self._state, i, k, out.address, 0):
            raise self._failure("tell", i, k, out, None)

    def absorb(self, i: int, k: int, received: Sheet, sent: Sheet | None) -> None:
        """Agent i takes in what came from link k."""
        own = self._unsaid + self._width * i if sent is None else sent.address
        if self._call(self._absorb, self._state, i, k, received.address, own):
            raise self._failure("absorb", i, k, received, sent)

    def introduce(self, i: int, k: int, model: Sheet) -> None:
        """Agent i takes in a hello."""
        if self._call(self._introduce, self._state, i, k, model.address, 0):
            raise self._failure("introduce", i, k, model, None)

    def solve(self, i: int) -> None:
        """Agent i gets a new model."""
        outcome = self._solve_and_follow(self._run, self._solve, self._state, i)
        if outcome:
            if outcome < 0:
                raise self._failure("solve", i, 0, None, None)
            self._consider(outcome, i)

    def changed(self, i: int) -> None:
        """Agent i has a new model without having solved."""
        self._consider(self._follow(self._run, i), i)

    @cached_property
    def _follow(self) -> Callable[[int, int], int]:
        """Few runs need it."""
        return cast("Callable[[int, int], int]", direct(follow_changed, 2))

    def _failure(self, name: str, i: int, k: int, a: Sheet | None, b: Sheet | None) -> RuleError:
        arrays = self._array(name, a), self._array(name, b)
        return self.rule.explain(name, i, k, *arrays, f"{self._now():g} s")


def steps_for(rule: RunningRule, watch: Watch | None, hello: bool, *callbacks: Any) -> Steps:
    """The rule's functions as they are called here: compiled, unless nothing is."""
    return (CompiledSteps if JIT else Steps)(rule, watch, hello, *callbacks)
