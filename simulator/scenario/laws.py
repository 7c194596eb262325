"""Laws of random quantities: the delays, computing times, clock rates and factors of a scenario.

A law is a tiny class that knows its parameters, its mean and how to draw.  Every draw is one call
of a method of ``numpy.random.Generator`` followed by at most a sum and a product, so a block of
draws equals as many single ones bit for bit, in NumPy and in Numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

import numpy as np
from pydantic import Field, model_validator

from agents.machinery.code_errors import failed
from agents.parameters import MOST, Strict, report, sane
from simulator.errors import ScenarioError
from simulator.scenario.quantities import InputFile
from simulator.scenario.tables import (
    Floats,
    Ints,
    held_by,
    numbers,
    parsed,
    read_cells,
    without_comments,
)

Q = TypeVar("Q")
_RARE = 1e-9


class Law(Strict, Generic[Q]):
    """A distribution of nonnegative numbers; Q is what its scale is given in, such as seconds."""

    kind: str

    def __init_subclass__(cls, **kwargs: Any):
        """A plugin's law might give anything: it is checked wherever it is asked for something."""
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("simulator."):
            return
        for name, given in [*vars(cls).items()]:
            if name in ("draw", "weighted") and callable(given):
                what = "as many finite numbers from 0 as it is asked for, here {}"
                setattr(cls, name, _checked(given, f"it must give {what}", _as_draws))
            elif name in ("mean_value", "rare_value") and isinstance(given, property):
                get = _checked(given.fget, "it must be a finite number from 0", _as_number)
                setattr(cls, name, property(get, doc=given.__doc__))

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Independent values, each from one call of the generator.

        Parameters
        ----------
        rng
            Where randomness comes from; so many draws at once are the same as one by one.
        size
            How many.

        Returns
        -------
        numpy.ndarray
            (size,), finite and not negative.
        """
        raise NotImplementedError

    def source(self, rng: np.random.Generator) -> Callable[[int], Floats]:
        """A function that draws so many values at a time, for many calls."""
        return lambda size: self.draw(rng, size)

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws with chances in proportion to their length: stays that a random instant falls into.

        Only where a law is one of stays (``availability``).
        """
        raise ScenarioError(
            f"the law {self.kind} has no length-weighted draws: it is not for stays"
        )

    @property
    def drawn(self) -> Law[Any]:
        """What is drawn of it at every use; the rest is factors that are fixed before the run."""
        return self

    @property
    def mean_value(self) -> float:
        """The expectation."""
        raise NotImplementedError

    @property
    def rare_value(self) -> float:
        """A value that hardly any draw exceeds: at most one in a billion."""
        raise NotImplementedError


def _checked(function: Any, what: str, read: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a plugin's law, where ``read`` makes sense of its answer, and is not None."""

    @wraps(function)
    def checked(self: Law[Any], *asked: Any) -> Any:
        got = function(self, *asked)
        if (answer := read(got, *asked)) is not None:
            return answer
        told = f"{what.format(*asked[1:])}, got {' '.join(repr(got).split())[:80]}"
        raise ScenarioError(failed(f"law {self.kind}", function, told))

    return checked


def _as_draws(got: Any, rng: np.random.Generator, size: int) -> Floats | None:
    try:
        numbers = np.asarray(got)
    except ValueError:  # a ragged list
        return None
    right = numbers.shape == (size,) and numbers.dtype.kind in "fiu"
    right = right and bool(np.all((numbers >= 0) & np.isfinite(numbers)))
    return numbers.astype(float, copy=False) if right else None


def _as_number(got: Any) -> float | None:
    right = isinstance(got, int | float | np.number) and 0 <= got < math.inf
    return float(got) if right else None


class Constant(Law[Q]):
    """Always ``value``."""

    kind: Literal["constant"] = "constant"
    value: Q
    """The value."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """``value``, without using the generator."""
        return np.full(size, self.value, dtype=float)

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """``value``."""
        return self.draw(rng, size)

    @property
    def mean_value(self) -> float:
        """``value``."""
        return float(self.value)  # type: ignore[arg-type]

    @property
    def rare_value(self) -> float:
        """``value``."""
        return self.mean_value


class Uniform(Law[Q]):
    """Uniform on [low, high)."""

    kind: Literal["uniform"] = "uniform"
    low: Q
    """The least value."""
    high: Q
    """The greatest value, which is never quite reached."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:  # type: ignore[operator]
            report([("low", f"must not exceed high, {self.high} (got {self.low})")])
        return self

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Uniform draws."""
        return rng.uniform(*self.parameters(), size)

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """The square is uniform."""
        low, high = self.parameters()
        return np.sqrt(rng.uniform(low * low, high * high, size))

    def parameters(self) -> tuple[float, float]:
        """``(low, high)``."""
        return float(self.low), float(self.high)  # type: ignore[arg-type]

    @property
    def mean_value(self) -> float:
        """The midpoint."""
        low, high = self.parameters()
        return (low + high) / 2

    @property
    def rare_value(self) -> float:
        """``high``."""
        return self.parameters()[1]


class Exponential(Law[Q]):
    """Exponential with the given mean."""

    kind: Literal["exponential"] = "exponential"
    mean: Q
    """The mean."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Exponential draws."""
        return rng.exponential(self.mean_value, size)

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """The sum of two of them: what has passed, and what is to come."""
        return rng.gamma(2.0, self.mean_value, size)

    @property
    def mean_value(self) -> float:
        """``mean``."""
        return float(self.mean)  # type: ignore[arg-type]

    @property
    def rare_value(self) -> float:
        """P(X > x) = exp(−x/mean)."""
        return self.mean_value * -math.log(_RARE)


class Lognormal(Law[Q]):
    """Lognormal with the given mean of the value itself; ``sigma`` is the spread of its log."""

    kind: Literal["lognormal"] = "lognormal"
    mean: Q
    """The mean of the value itself, not of its logarithm."""
    #: With more, every draw that one ever sees would be 0: the median is mean·exp(−sigma²/2).
    sigma: Annotated[float, Field(ge=0, le=30)]
    """The standard deviation of the logarithm: 0 is constant, 1 has a tail, 2 a heavy one."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Lognormal draws; a mean of 0 is the constant 0."""
        if self.mean_value == 0:
            return np.zeros(size)
        return rng.lognormal(*self.parameters(), size)

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """Lognormal too, with σ² more in the mean of the logarithm."""
        log, sigma = self.parameters()
        return rng.lognormal(log + sigma**2, sigma, size)

    def parameters(self) -> tuple[float, float]:
        """``(ln mean − sigma²/2, sigma)``: mean and spread of the logarithm."""
        log = math.log(self.mean_value) if self.mean_value > 0 else -math.inf
        return log - self.sigma**2 / 2, self.sigma

    @property
    def mean_value(self) -> float:
        """``mean``."""
        return float(self.mean)  # type: ignore[arg-type]

    @property
    def rare_value(self) -> float:
        """Six spreads of the logarithm above its mean."""
        log, sigma = self.parameters()
        return math.exp(log + 6 * sigma)


class Pareto(Law[Q]):
    """Classical Pareto: the least value is mean·(shape − 1)/shape."""

    kind: Literal["pareto"] = "pareto"
    mean: Q
    """The mean."""
    shape: Annotated[float, Field(gt=1), sane]
    """How fast the tail falls, P(X > x) ~ x^(−shape); above 1, and above 2 with a variance."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Pareto draws: NumPy's are Lomax, so shift by one and scale."""
        shape, least = self.parameters()
        return (rng.pareto(shape, size) + 1.0) * least

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """Pareto too, with a shape less by 1."""
        shape, least = self.parameters()
        return (rng.pareto(shape - 1.0, size) + 1.0) * least

    def parameters(self) -> tuple[float, float]:
        """``(shape, least value)``."""
        return self.shape, self.mean_value * (self.shape - 1) / self.shape

    @property
    def mean_value(self) -> float:
        """``mean``."""
        return float(self.mean)  # type: ignore[arg-type]

    @property
    def rare_value(self) -> float:
        """P(X > x) = (least/x)^shape."""
        shape, least = self.parameters()
        return least * _RARE ** (-1 / shape)


@parsed
def read_numbers(path: Path, text: str) -> Floats:
    """The numbers ≥ 0 of a file, one a line; blank lines and # comments are left out."""
    cells = read_cells(path, without_comments(text), header=["number"])["number"]
    if cells.empty:
        raise ScenarioError(f"{path} holds no numbers")
    values = numbers(cells)
    wrong = np.flatnonzero(~((values >= 0) & (values <= MOST)))
    if len(wrong):
        place, what = f"{path}:{cells.index[wrong[0]]}", f"is not a number from 0, at most {MOST:g}"
        raise ScenarioError(f"{place}: {cells.iloc[wrong[0]][:40]!r} {what}")
    values.flags.writeable = False
    return values


class Empirical(Law[Q]):
    """Drawn with replacement from the numbers of a file, one a line."""

    kind: Literal["empirical"] = "empirical"
    file: Annotated[InputFile, held_by(read_numbers)]
    """Numbers from 0, one a line; # begins a comment.  Times are in seconds."""

    def values(self) -> Floats:
        """The numbers of the file."""
        return read_numbers(self.file)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """One uniform a draw picks the line."""
        return self.source(rng)(size)

    def source(self, rng: np.random.Generator) -> Callable[[int], Floats]:
        """The file is read once, here."""
        values = self.values()
        return lambda size: values[pick(rng.random(size), len(values))]

    def weighted(self, rng: np.random.Generator, size: int) -> Floats:
        """A line is picked in proportion to its number."""
        values = self.values()
        upto = np.cumsum(values)
        places = np.searchsorted(upto, rng.random(size) * upto[-1], side="right")
        return values[np.minimum(places, len(values) - 1)]

    @property
    def mean_value(self) -> float:
        """The mean of the file's numbers."""
        return float(self.values().mean())

    @property
    def rare_value(self) -> float:
        """The largest number of the file."""
        return float(self.values().max())


def pick(uniform: Floats, count: int) -> Ints:
    """Indices in 0 … count − 1 from numbers in [0, 1); u·count may round up to count."""
    return np.minimum((uniform * count).astype(np.int64), count - 1)


#: The laws by kind.
LAWS: dict[str, type[Law[Any]]] = {
    law.model_fields["kind"].default: law
    for law in (Constant, Uniform, Exponential, Lognormal, Pareto, Empirical)
}


def sampler(law: Law[Any], rng: np.random.Generator, block: int = 4096) -> Callable[[], float]:
    """A function that gives one draw a call, made in blocks: 0.02 µs instead of 0.4 µs a draw."""
    if isinstance(law, Constant):
        value = law.mean_value
        return lambda: value
    draw = law.source(rng)
    return stream(lambda: draw(block))


def stream(draw_block: Callable[[], Floats]) -> Callable[[], float]:
    """One number a call, from blocks that ``draw_block`` makes."""

    def numbers() -> Any:
        while True:
            yield from draw_block().tolist()

    return numbers().__next__
