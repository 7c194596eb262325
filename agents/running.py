"""A rule at work: its state over all agents of a run, and its functions ready to be called."""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import copy
import ctypes
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from agents import rule as rules
from agents.losses.loss import design
from agents.machinery import code_cache, compiling
from agents.machinery.code_errors import RAISED, CodeError, code_of, failed, place_of, read_only
from agents.machinery.compiling import floats, kernel
from agents.machinery.intrinsics import invoke, next_double
from agents.parameters import numbers_of
from agents.protocols import protocols_of
from agents.proximal import Attached
from agents.rule import SOLVE_THEN_ANSWER, TELL, Rule, Start

Floats = NDArray[np.float64]

FUNCTIONS = ("tell", "absorb", "solve", "introduce", "refresh")
#: What every state has, besides the rule's own arrays and parameters.
_COMMON_NUMBERS = {"n": int, "p": int, "mu": float}
_COMMON_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "models": (float, ("n", "p")),
    "W": (float, ("links",)),
    "D": (float, ("n",)),
    "c": (float, ("n",)),
    "solitary": (float, ("n", "p")),
    "first": (int, ("after_n",)),
    "neighbour": (int, ("links",)),
    "exhausted": (int, ("n",)),
}


#: Names that a rule's own arrays and parameters can't have.
RESERVED = frozenset({*_COMMON_NUMBERS, *_COMMON_ARRAYS, "links", "after_n", "loss", "stream"})


# --- what rules call, in compiled code ------------------------------------------------------------
#: How a state refers to its loss.
_LOSS = ("prox", "gradient", "weigh", "data", "a", "b", "curvature")


@overload(rules.prox)
def _prox(s: Any, i: Any, v: Any, theta: Any) -> Any:
    def compiled(s: Any, i: Any, v: Any, theta: Any) -> Any:
        verdict = invoke(s.loss.prox, s.loss.data, i, 0, v.ctypes.data, theta.ctypes.data)
        if verdict == compiling.FAILED:
            raise RuntimeError("the loss's proximal step failed")
        return verdict == compiling.FINE

    return compiled


@overload(rules.gradient)
def _gradient(s: Any, i: Any, theta: Any, out: Any) -> Any:
    def compiled(s: Any, i: Any, theta: Any, out: Any) -> Any:
        verdict = invoke(s.loss.gradient, s.loss.data, i, 0, theta.ctypes.data, out.ctypes.data)
        if verdict == compiling.FAILED:
            raise RuntimeError("the loss's gradient failed")

    return compiled


@overload(rules.weigh)
def _weigh(s: Any, i: Any, a: Any, b: Any) -> Any:
    def compiled(s: Any, i: Any, a: Any, b: Any) -> Any:
        floats(s.loss.a, s.n)[i] = a
        floats(s.loss.b, s.n)[i] = b
        if s.loss.weigh != 0:
            verdict = invoke(s.loss.weigh, s.loss.data, i, 0, 0, 0)
            if verdict == compiling.FAILED:
                raise RuntimeError("the loss's factors failed")

    return compiled


@overload(rules.curvature)
def _curvature(s: Any, i: Any) -> Any:
    def compiled(s: Any, i: Any) -> Any:
        return floats(s.loss.curvature, s.n)[i]

    return compiled


@overload(rules.summed)
def _summed(terms: Any) -> Any:
    def compiled(terms: Any) -> Any:
        return terms[0] + _in_pairs(terms, 1, len(terms) - 1) if len(terms) else 0.0

    return compiled


@kernel
def _in_pairs(terms: Floats, low: int, count: int) -> float:
    """Σ of so many terms, in NumPy's order: eight sums side by side, halves of more than 128."""
    total = 0.0
    if count < 8:
        for k in range(low, low + count):
            total += terms[k]
        return total
    if count > 128:
        half = count // 2 - count // 2 % 8
        return _in_pairs(terms, low, half) + _in_pairs(terms, low + half, count - half)
    sums = np.empty(8)
    for j in range(8):
        sums[j] = terms[low + j]
    for k in range(low + 8, low + count - count % 8, 8):
        for j in range(8):
            sums[j] += terms[k + j]
    total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + (
        (sums[4] + sums[5]) + (sums[6] + sums[7])
    )
    for k in range(low + count - count % 8, low + count):
        total += terms[k]
    return total


@overload(rules.uniform)
def _uniform(s: Any) -> Any:
    def compiled(s: Any) -> Any:
        return next_double(s.stream.function, s.stream.state)

    return compiled


# --- the functions of a rule ----------------------------------------------------------------------
class RuleError(CodeError):
    """A rule that fails: the message names the rule, the function, the agent and the time."""


@cache
def functions_of(rule: type[Rule]) -> compiling.Functions:
    """The functions of a rule's class, ready to be compiled."""
    sizes = {"agents": "n", "links": "links", "run": None}
    own: dict[str, tuple[type, tuple[int | str, ...]]] = {}
    for name, array in rule.arrays.items():
        axis = sizes[array.over]
        own[name] = (array.dtype, (*(() if axis is None else (axis,)), *array.shape))
    parameters = numbers_of(rule.Parameters)
    numbers = {**_COMMON_NUMBERS, "links": int, "after_n": int}
    numbers |= {name: float if kind is float else int for name, kind in parameters.items()}
    layout = compiling.Layout(
        numbers,
        _COMMON_ARRAYS | own,
        {"loss": _LOSS, "stream": ("function", "state")},
    )
    wrap = compiling.wrap_for(rule)
    shape = "s.p" if rule.vectors == 1 else f"({rule.vectors}, s.p)"
    if rule.extras:
        shape = f"{rule.vectors} * s.p + {rule.extras}"
    bodies = {
        "tell": f"f_tell(s, i, k, floats(a, {shape}))",
        "absorb": f"f_absorb(s, i, k, floats(a, {shape}), floats(b, {shape}))",
        "solve": "f_solve(s, i)",
    }
    functions: dict[str, Callable[..., Any]] = {
        name: wrap(getattr(rule, name)) for name in ("tell", "absorb", "solve")
    }
    if rule.introduce is not None:
        bodies["introduce"] = "f_introduce(s, i, k, floats(a, s.p))"
        functions["introduce"] = wrap(rule.introduce)
    elif rule.tells_models():
        bodies["introduce"] = "f_absorb(s, i, k, floats(a, s.p), s.models[i])"
    if rule.refresh is not None:
        bodies["refresh"] = "f_refresh(s, i)"
        functions["refresh"] = wrap(rule.refresh)
    return compiling.Functions(
        f"rule_{rule.kind}",
        layout,
        functions,
        bodies,
        code_cache.source_of(rule),
    )


@compiling.entry
def refresh_all(function: int, s: int, n: int) -> int:
    """Refresh all agents: which one has failed, or −1."""
    for i in range(n):
        if invoke(function, s, i, 0, 0, 0) == compiling.FAILED:
            return i
    return -1


class _Draft:
    """The state as ``prepare`` fills it: arrays as the rule has declared them, nothing else."""

    def __init__(self, layout: compiling.Layout, numbers: dict[str, Any], arrays: dict[str, Any]):
        vars(self).update(_layout=layout, _numbers=numbers, _arrays=arrays)

    def __getattr__(self, name: str) -> Any:
        if name in self._numbers:
            return self._numbers[name]
        if name not in self._layout.arrays:
            raise AttributeError(f"the rule declares no {name}")
        if name not in self._arrays:
            kind, shape = self._layout.arrays[name][0], self._layout.shape(name, self._numbers)
            self._arrays[name] = np.zeros(shape, kind)
        return self._arrays[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._layout.arrays:
            raise AttributeError(f"the rule declares no array {name}")
        self._arrays[name] = self._layout.check(name, value, self._numbers)


#: What agents that forget start with again: models (None: their solitary ones of now) and copies
#: (None: their models) where the rule refreshes, and a second state where it does not.
Fresh = Union["tuple[Floats | None, Floats | None]", "RunningRule"]


class RunningRule:
    """The state of a rule over all agents.

    ``models`` (n, p) is the agents' models; ``record`` and ``pointers`` are what compiled code
    needs; ``call`` is what Python calls.
    """

    def __init__(self, rule: type[Rule], start: Start, rng: np.random.Generator):
        self.rule = rule
        self.functions = functions_of(rule)  # type: ignore[arg-type]
        layout = self.functions.layout
        n, p = start.models.shape
        links = len(start.neighbour)
        numbers = {"n": n, "p": p, "mu": start.mu, "links": links, "after_n": n + 1}
        self._parameters = parameters = start.parameters
        numbers |= {
            name: getattr(parameters, name) for name in layout.numbers if name not in numbers
        }
        arrays: dict[str, Any] = {
            "models": start.models,
            "W": start.W,
            "D": start.D,
            "c": start.confidence,
            "solitary": start.solitary,
            "first": start.first,
            "neighbour": start.neighbour,
        }
        draft = _Draft(layout, numbers, arrays)
        self._give(draft, start)
        self._guard("prepare", lambda: rule.prepare(draft, start))
        self.arrays = {name: getattr(draft, name) for name in layout.arrays}
        self.models: Floats = self.arrays["models"]
        self.loss = self._attach(start)
        #: How many points each agent has, where they arrive.
        self.counts = start.counts if self.loss is None else self.loss.data.counts
        self._rng = rng
        #: The state as plain Python sees it.
        self.state = self.functions.state(**numbers, **self.arrays, loss=self.loss, stream=rng)
        #: What a message holds, in numbers, and its shape.
        self.shape = rule.shape(p)
        self.numbers = math.prod(self.shape)
        #: What agents said who said nothing: their models, or one row of NaN.
        self.unsaid = self.models if rule.tells_models() else np.full((1, self.numbers), np.nan)
        if not code_cache.is_ours(rule):
            self._try()
        self.record = layout.record(numbers, self.arrays)
        self.address = int(self.record.ctypes.data)
        if compiling.JIT:
            self._connect()
        self._refresh_all()

    def _give(self, draft: _Draft, start: Start) -> None:
        """The arrays that are given the first models and copies."""
        degrees = np.diff(start.first)
        for name, array in self.rule.arrays.items():
            if array.vectors == ("copy",) and array.shape == ("p",):
                setattr(draft, name, start.copies)
                continue
            for place, what in enumerate(array.vectors):
                of_links = array.over == "links" and what == "model"
                first = start.copies if what == "copy" else start.models
                first = np.repeat(first, degrees, axis=0) if of_links else first
                whole = getattr(draft, name)
                (whole[:, place] if len(array.shape) > 1 else whole)[:] = first

    def _refresh_all(self) -> None:
        """Derive what the rule derives, for everybody."""
        if self.rule.refresh is None:
            return
        if compiling.JIT:
            function = self.functions.address("refresh", self._written("refresh"))
            failed = refresh_all(function, self.address, len(self.models))
            if failed >= 0:
                raise self.explain("refresh", failed, 0, None, None, "0 s")
            return
        for i in range(len(self.models)):
            self.refresh(i)

    def refresh(self, i: int, when: str = "0 s") -> None:
        """Derive what the rule derives, for agent i; from Python."""
        if not compiling.JIT:
            where = f" for agent {i} at {when}"
            self._guard("refresh", lambda: self.plain("refresh", i, 0, None, None), where)
            return
        function = self.functions.address("refresh", self._written("refresh"))
        if compiling.call(function, self.address, i, 0, 0, 0) == compiling.FAILED:
            raise self.explain("refresh", i, 0, None, None, when)

    def _attach(self, start: Start) -> Attached | None:
        self._slopes = start.slopes
        if start.steps is None and not start.slopes:
            return None
        a, b, gradient_steps = start.steps or (None, None, 0)
        return Attached(
            start.loss,
            design(start.X, start.y),
            start.y,
            start.offsets,
            a,
            b,
            gradient_steps,
            clip=start.clip,
            norm=start.norm,
            proximal=start.steps is not None,
            curved=start.curved,
            counts=start.counts,
        )

    @property
    def random(self) -> tuple[int, int]:
        """The addresses of NumPy's function for the next random number, and of its state."""
        interface = self._rng.bit_generator.ctypes
        function = ctypes.cast(interface.next_double, ctypes.c_void_p).value
        assert function is not None
        return function, interface.state_address

    def _connect(self) -> None:
        """Write the addresses of the loss and of the random numbers into the record."""
        self.record["stream_function"], self.record["stream_state"] = self.random
        if self.loss is not None:
            for name, pointer in self.loss.pointers(self._slopes).items():
                self.record[f"loss_{name}"] = pointer

    def pointers(self, hello: bool) -> dict[str, int]:
        """The addresses of the functions; 0 for ``introduce`` where nobody says hello."""
        unused = {"introduce": not hello, "refresh": self.rule.refresh is None}
        return {
            name: 0
            if unused.get(name, False)
            else self.functions.address(name, self._written(name))
            for name in FUNCTIONS
        }

    @property
    def exhausted(self) -> int:
        """Solves that hit their limit."""
        return int(self.arrays["exhausted"].sum())

    # --- forgetting -------------------------------------------------------------------------------
    def kept(self) -> list[tuple[Any, bool]]:
        """The arrays of agents and links, and whether links have them."""
        own = [("models", False)]
        own += [(n, a.over == "links") for n, a in self.rule.arrays.items() if a.over != "run"]
        return [(self.arrays[name], links) for name, links in own]

    def remembered(self, fresh: RunningRule) -> list[tuple[Any, Any, bool]]:
        """The same beside those of a fresh state."""
        pairs = zip(self.kept(), fresh.kept(), strict=True)
        return [(array, new, links) for (array, links), (new, _) in pairs]

    def forgotten(self) -> list[tuple[Any, bool, dict[str, int]]]:
        """The arrays that begin anew where the rule refreshes, whether links have them.

        And the places in an entry of what they are given: the first model, or the first copy.
        """
        rows = [(self.models, False, {"model": 0})]
        for name, array in self.rule.arrays.items():
            if array.over != "run" and array.given != "prepare":
                places = {what: k * self.models.shape[1] for k, what in enumerate(array.vectors)}
                rows.append((self.arrays[name], array.over == "links", places))
        return rows

    def renew(self, i: int, links: range, fresh: Fresh, when: str) -> None:
        """Agent i is as at a fresh start again."""
        first, last = links.start, links.stop
        if isinstance(fresh, RunningRule):
            for array, new, of_links in self.remembered(fresh):
                own = slice(first, last) if of_links else slice(i, i + 1)
                array[own] = new[own]
            return
        models, copies = fresh
        model = (self.arrays["solitary"] if models is None else models)[i]
        for array, of_links, places in self.forgotten():
            entries = array[first:last] if of_links else array[i : i + 1]
            entries[:] = 0
            flat = entries.reshape(len(entries), -1)
            for what, place in places.items():
                new = model if what == "model" or copies is None else copies[first:last]
                flat[:, place : place + len(model)] = new
        self.refresh(i, when)

    def columns(self) -> dict[str, Any]:
        """More columns of agents.csv, of the state as it is now, which they can't change."""
        state = self.state._replace(**{n: read_only(array) for n, array in self.arrays.items()})
        found: dict[str, Any] = {}
        agents = len(self.models)

        def ask() -> None:
            columns: Any = self.rule.columns(state, self._parameters)
            if not isinstance(columns, Mapping):
                what = "it must return a mapping of names to arrays with an entry an agent"
                raise TypeError(f"{what}, got {type(columns).__name__}")
            for name, column in columns.items():
                if not isinstance(name, str) or np.shape(column) != (agents,):
                    what = f"{name!r} must be a name with one entry for each of {agents} agents"
                    raise TypeError(f"{what}, got {np.shape(column)} of them")
            found.update(columns)

        self._guard("columns", ask)
        return found

    # --- from Python ------------------------------------------------------------------------------
    def solve(self, i: int) -> None:
        """Agent i's step, before the run."""
        if not compiling.JIT:
            self.plain("solve", i, 0, None, None)
            return
        solve = self.functions.address("solve", self._written("solve"))
        if compiling.call(solve, self.address, i, 0, 0, 0) == compiling.FAILED:
            raise self.explain("solve", i, 0, None, None, "the start")

    def plain(self, name: str, i: int, k: int, a: Floats | None, b: Floats | None) -> None:
        """Call a function as it stands, uncompiled."""
        s, rule = self.state, self.rule
        if name == "solve":
            rule.solve(s, i)
        elif name == "refresh":
            rule.refresh(s, i)  # type: ignore[misc]
        elif name == "tell":
            rule.tell(s, i, k, a)  # type: ignore[arg-type]
        elif name == "introduce" and rule.introduce is not None:
            rule.introduce(s, i, k, a)
        else:
            if b is None:
                b = self.models[i] if rule.tells_models() else self.unsaid[0].reshape(self.shape)
            rule.absorb(s, i, k, a, b)  # type: ignore[arg-type]

    def explain(
        self, name: str, i: int, k: int, a: Floats | None, b: Floats | None, when: str
    ) -> RuleError:
        """What went wrong in a compiled call: the same again in Python says where."""
        try:
            # What divides by zero fails when compiled; NumPy's numbers would become infinite.
            with np.errstate(divide="raise", invalid="raise"):
                self.plain(name, i, k, a, b)
        except RAISED as error:
            return self.failure(name, error, f" for agent {i} at {when}")
        why = (
            "in compiled code, and not when called again in Python: a division by zero, an index "
            "out of range, or what the first call had drawn or changed before it failed"
        )
        return self.failure(name, why, f" for agent {i} at {when}")

    def failure(self, name: str, why: str | BaseException, where: str = "") -> RuleError:
        """What went wrong, and in which line of the rule."""
        return RuleError(failed(f"rule {self.rule.kind}", self._written(name), why, where))

    def _written(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.rule, name) or self.rule.absorb
        return function

    def _guard(self, name: str, action: Callable[[], None], where: str = "") -> None:
        try:
            action()
        except RAISED as error:
            raise self.failure(name, error, where) from error

    # --- a plugin's first steps -------------------------------------------------------------------
    def _try(self) -> None:
        """Call each function once as plain Python, on copies: compiled code would not complain."""
        state, rng = self.state, copy.deepcopy(self._rng)
        dual = None if self.loss is None else self.loss.data.dual.copy()
        trial = {name: array.copy() for name, array in self.arrays.items()}
        self.state = state._replace(**trial, stream=rng)
        try:
            linked = np.flatnonzero(np.diff(trial["first"]))
            if len(linked):
                self._try_exchange(trial, int(linked[0]))
        finally:
            self.state = state
            if dual is not None and self.loss is not None:
                self.loss.data.dual[:] = dual

    def _try_exchange(self, trial: dict[str, Any], i: int) -> None:
        """Tell, absorb and solve in the protocol's order, and introduce."""
        rule, s, k = self.rule, self.state, int(trial["first"][i])
        refresh = rule.refresh
        if refresh is not None:
            self._try_one("refresh", i, trial, ["models"], lambda: refresh(s, i))
        out = np.full(self.shape, np.nan)
        hello = trial["models"][i].copy()
        averages = _averages(rule)
        received = np.empty(self.shape)

        def tell() -> None:
            kept = [name for name, array in rule.arrays.items() if array.over != "run"]
            kept = ["models", *([] if rule.stateful else kept)]
            self._try_one("tell", i, trial, kept, lambda: rule.tell(s, i, k, out))
            if not np.isfinite(out).all():
                place = np.argwhere(~np.isfinite(out))[0].tolist()
                raise self.failure("tell", f"it leaves out{place} unset", f" for agent {i} at 0 s")
            received[:] = out
            for array in (out, received, hello):
                array.flags.writeable = False

        def absorb() -> None:
            take_in("absorb", lambda: rule.absorb(s, i, k, received, out))

        def solve() -> None:
            change("solve", lambda: rule.solve(s, i))

        def take_in(name: str, action: Callable[[], Any]) -> None:
            if averages:
                change(name, action)
            else:
                self._try_one(name, i, trial, ["models"], action)

        def change(name: str, action: Callable[[], Any]) -> None:
            others = np.arange(len(trial["models"])) != i
            before = trial["models"][others].copy()
            self._try_one(name, i, trial, [], action)
            if not np.array_equal(trial["models"][others], before, equal_nan=True):
                raise self.failure(
                    name, "it changes another agent's model", f" for agent {i} at 0 s"
                )

        first = rule.protocol not in (SOLVE_THEN_ANSWER, TELL)
        for step in (tell, absorb, solve) if first else (solve, tell, absorb):
            step()
        introduce = rule.introduce
        if introduce is not None:
            take_in("introduce", lambda: introduce(s, i, k, hello))

    def _try_one(
        self,
        name: str,
        i: int,
        trial: dict[str, Any],
        kept: list[str],
        action: Callable[[], Any],
    ) -> None:
        """A call that must return nothing and leave the arrays ``kept`` alone."""
        before = {array: trial[array].copy() for array in kept}
        self._guard(name, lambda: _no_answer(action()), f" for agent {i} at 0 s")
        for array in kept:
            if not np.array_equal(trial[array], before[array], equal_nan=True):
                who = "which tell may do if stateful is True"
                who = "which only solve may do" if array == "models" else who
                raise self.failure(name, f"it changes {array}, {who}", f" for agent {i} at 0 s")


def _averages(rule: type[Rule]) -> bool:
    """May absorbing change models?"""
    return any(protocol.averages for protocol in protocols_of(rule).values())


def changed_by(rule: type[Rule]) -> str:
    """What may have made a model what it is: the functions that change models."""
    names = ("absorb", "solve") if _averages(rule) else ("solve",)
    places = [f"{name} ({place_of(code_of(getattr(rule, name)))})" for name in names]
    return f"rule {rule.kind} has changed it in {' or '.join(places)}"


def _no_answer(answer: Any) -> None:
    if answer is not None:
        what = f"it must change the state and return nothing, got {type(answer).__name__}"
        raise TypeError(what)
