"""Laws: what they draw against what they say of themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.conformance.subjects import Subject
from simulator.conformance.verdicts import CheckError, NotApplicableError, check
from simulator.scenario.laws import Law

Floats = NDArray[np.float64]
#: How many are drawn, and how many standard errors a mean may be off: once in 10⁷ by chance.
DRAWS, SIGMAS = 200_000, 5.3
#: The share of one draw in the sum of all, above which their spread says nothing of the mean's.
HEAVY = 0.01


def _draws(law: Law[Floats], seed: int = 1) -> Floats:
    return law.draw(np.random.default_rng(seed), DRAWS)


def _interval(values: Floats) -> float:
    """How far their mean may be from the expectation."""
    if values.max() > HEAVY * values.sum():
        share = f"one of {DRAWS} draws is {values.max() / values.sum():.1%} of their sum"
        raise NotApplicableError(f"the tail is too heavy to tell: {share}")
    return float(SIGMAS * values.std() / np.sqrt(len(values)) + 1e-9 * values.mean())


@check("draws are finite numbers from 0", "laws")
def numbers(subject: Subject) -> str:
    """As many as were asked for."""
    for size in (0, 1, 1000):
        values = np.asarray(subject.instance.draw(np.random.default_rng(size), size))
        if values.shape != (size,) or not (np.isfinite(values) & (values >= 0)).all():
            raise CheckError(f"it gives {values[:3]} … for {size} draws")
    return ""


@check("blocks of draws equal single ones", "laws")
def blocks(subject: Subject) -> str:
    """Engines draw in blocks of different sizes."""
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    law = subject.instance
    parts = [law.draw(other, size) for size in (1, 2, 37, 60)]
    if not np.array_equal(law.draw(one, 100), np.concatenate(parts)):
        what = "each draw must be one call of the generator, and nothing may be kept"
        raise CheckError(f"100 draws differ from 1, 2, 37 and 60 of the same seed; {what}")
    return ""


@check("draws have the mean that it declares", "laws")
def mean(subject: Subject) -> str:
    """Within an interval of their own spread."""
    law = subject.instance
    values = _draws(law)
    off, declared = _interval(values), law.mean_value
    if not abs(values.mean() - declared) <= off:
        what = f"the mean of {DRAWS} draws is {values.mean():.6g} ± {off:.2g}"
        raise CheckError(f"{what}, and mean_value {declared:.6g}")
    return f"{declared:.4g}, and {values.mean():.4g} ± {off:.1g} of {DRAWS} draws"


@check("hardly any draw exceeds rare_value", "laws")
def rare(subject: Subject) -> str:
    """One in a billion."""
    law, most = subject.instance, _draws(subject.instance).max()
    if most > law.rare_value * (1 + 1e-12):
        raise CheckError(f"one of {DRAWS} draws is {most:.6g}, and rare_value {law.rare_value:.6g}")
    return ""


@check("length-weighted draws, for stays", "laws")
def weighted(subject: Subject) -> str:
    """Their mean is E[X²]/E[X]."""
    law = subject.instance
    if type(law).weighted is Law.weighted:
        raise NotApplicableError("it writes no weighted, so it is not for availability")
    values, plain = law.weighted(np.random.default_rng(2), DRAWS), _draws(law)
    expected = np.mean(plain**2) / np.mean(plain)
    off = _interval(values) + _interval(plain**2) / plain.mean()
    if not abs(values.mean() - expected) <= off:
        found = f"their mean is {values.mean():.6g}"
        raise CheckError(f"{found}, and E[X²]/E[X] of draws {expected:.6g} ± {off:.2g}")
    return f"{expected:.4g}, and {values.mean():.4g} ± {off:.1g} of {DRAWS} draws"
