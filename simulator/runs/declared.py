"""What the classes of a plugin declare, checked when they are loaded."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from agents.losses.loss import Loss
from agents.parameters import TradeOff
from agents.rule import AVERAGE, PROTOCOLS, TELL, Array, Rule
from simulator.errors import SimulatorError
from simulator.scenario.algorithm import Algorithm
from simulator.scenario.kinds import Task
from simulator.theory.objectives import OBJECTIVES

STARTS = (*Rule.starts, "mp")


def check_declared(thing: type, place: str) -> None:
    """Raise SimulatorError for what a class says of itself and can't be; ``place`` names it."""
    if issubclass(thing, Rule):
        _check_words(thing, place)
        _check_rule(thing, place)
        _check_names(thing, place)
        for name, array in thing.arrays.items():
            _check_array(array, f"{place}.{name}")
    if issubclass(thing, Loss):
        _check_loss(thing, place)
    if issubclass(thing, Task) and not (hasattr(thing, "loss") or "loss" in thing.model_fields):
        what = "must have a loss, as a key or for all: loss: ClassVar = Quadratic()"
        raise SimulatorError(f"{place} {what}")


def _check_words(rule: type[Rule], place: str) -> None:
    """What is chosen of a few words: one, or some of them."""
    objectives = (None, *OBJECTIVES, "consensus")
    for name, allowed in (("protocol", PROTOCOLS), ("objective", objectives)):
        if getattr(rule, name) not in allowed:
            raise _not_allowed(f"{place}.{name}", getattr(rule, name), allowed)
    for name, allowed in (("modes", Rule.modes), ("starts", STARTS)):
        words: Any = getattr(rule, name)
        if not (isinstance(words, tuple) and words and all(word in allowed for word in words)):
            raise _not_allowed(f"{place}.{name}", words, allowed, "a tuple of some of ")


def _not_allowed(place: str, got: Any, allowed: Iterable[Any], how: str = "") -> SimulatorError:
    return SimulatorError(f"{place} is {got!r}; allowed: {how}{', '.join(map(repr, allowed))}")


def _check_rule(rule: type[Rule], place: str) -> None:
    missing = [name for name in ("absorb", "solve") if getattr(rule, name) is getattr(Rule, name)]
    if missing:
        raise SimulatorError(f"{place} must implement {', '.join(missing)}")
    if rule.protocol == AVERAGE and "sync" in rule.modes:
        what = f"{AVERAGE!r} has no rounds; modes must be ('async',)"
        raise SimulatorError(f"{place}.modes is {rule.modes!r}; the protocol {what}")
    if rule.objective in OBJECTIVES and not issubclass(rule.Parameters, TradeOff):
        what = "the class Parameters must derive from TradeOff or Collaborative"
        raise SimulatorError(f"{place}.objective is {rule.objective!r}; {what}")
    if not (isinstance(rule.vectors, int) and rule.vectors >= 1):
        raise SimulatorError(f"{place}.vectors is {rule.vectors!r}; it must be a number from 1")
    if rule.vectors > 1 and rule.tell is Rule.tell:
        raise SimulatorError(
            f"{place}: a message of {rule.vectors} vectors needs a tell of its own"
        )
    if rule.vectors > 1 and rule.protocol == TELL:
        others = tuple(protocol for protocol in PROTOCOLS if protocol != TELL)
        what = f"{rule.protocol!r}, which takes messages of one vector, not of {rule.vectors}"
        raise SimulatorError(f"{place}.protocol is {what}; allowed: {', '.join(map(repr, others))}")


def _check_array(array: Array, place: str) -> None:
    for axis in array.shape:
        if not (axis == "p" or (isinstance(axis, int) and axis >= 1)):
            raise SimulatorError(f"{place} has the shape {axis!r}; allowed: 'p' or a number from 1")
    if array.dtype not in (int, float):
        raise SimulatorError(f"{place} has the dtype {array.dtype!r}; allowed: float, int")


def _check_names(rule: type[Rule], place: str) -> None:
    """The names of arrays and parameters: they share ``s`` with what every rule has."""
    from agents.running import RESERVED

    keys = {*Algorithm.model_fields, *RESERVED} - {*TradeOff.model_fields}
    for what, names in (("array", rule.arrays), ("parameter", rule.Parameters.model_fields)):
        taken = [name for name in names if name in keys]
        if taken:
            raise SimulatorError(f"{place}: the name of the {what} {taken[0]!r} is taken")
    both = [name for name in rule.arrays if name in rule.Parameters.model_fields]
    if both:
        raise SimulatorError(f"{place}: {both[0]!r} is both an array and a parameter")


def _check_loss(loss: type[Loss], place: str) -> None:
    bound: Any = loss.curvature
    if bound is None or isinstance(bound, property):
        return
    if isinstance(bound, int | float) and 0 <= bound < math.inf:
        return
    what = "it must be a finite number from 0, or None where the loss has kinks"
    raise SimulatorError(f"{place}.curvature is {bound!r}; {what}")
