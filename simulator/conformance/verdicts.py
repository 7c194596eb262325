"""Checks and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from simulator.conformance.subjects import Subject
from simulator.errors import SimulatorError
from simulator.scenario.kinds import blaming

OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not applicable"


class CheckError(Exception):
    """A check fails; the text says with what."""


class NotApplicableError(Exception):
    """A check has nothing to say of this kind; the text says why."""


@dataclass(frozen=True)
class Verdict:
    """What a check says of one kind."""

    #: ``rule averaging``.
    name: str
    check: str
    #: ok, failed or not applicable.
    outcome: str
    #: What was seen, or what is wrong.
    detail: str


@dataclass(frozen=True)
class Check:
    """A function that returns what it has seen, or raises one of the errors above."""

    name: str
    families: tuple[str, ...]
    function: Callable[[Subject], str]


#: All checks, in the order in which they are made.
CHECKS: list[Check] = []


def check(name: str, *families: str) -> Callable[[Callable[[Subject], str]], Callable[..., str]]:
    """Make a function a check of these families (of ``simulator.scenario.kinds.Kinds``)."""

    def register(function: Callable[[Subject], str]) -> Callable[..., str]:
        CHECKS.append(Check(name, families, function))
        return function

    return register


def examine(subjects: Iterable[Subject]) -> Iterator[Verdict]:
    """All verdicts, as they come; what raises is not tried further."""
    for subject in subjects:
        for each in CHECKS:
            if subject.family not in each.families:
                continue
            try:
                with blaming(subject.plugins):
                    outcome, detail = OK, each.function(subject)
            except NotApplicableError as error:
                outcome, detail = NOT_APPLICABLE, str(error)
            except CheckError as error:
                outcome, detail = FAILED, str(error)
            except SimulatorError as error:
                yield Verdict(subject.name, each.name, FAILED, f"{error} (the rest is not tried)")
                break
            yield Verdict(subject.name, each.name, outcome, detail)
