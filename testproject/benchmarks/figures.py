"""
What is measured and how it is judged.

A *reading* is one number that a trial gives in one round, say ``drain.worker``: 31,000 jobs/s. A *figure* is what is
judged: a ratio of two readings of the same round, or a reading by itself. Its value is the median of the rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bench import Bench

Readings = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Target:
    """A limit that a figure must reach, or must not pass."""

    limit: float
    at_most: bool = False

    def is_met(self, value: float) -> bool:
        """Whether ``value`` is on the right side of the limit."""
        return value <= self.limit if self.at_most else value >= self.limit

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"


def at_least(limit: float) -> Target:
    """Return the target of a figure that must not be smaller."""
    return Target(limit)


def at_most(limit: float) -> Target:
    """Return the target of a figure that must not be larger."""
    return Target(limit, at_most=True)


@dataclass(frozen=True, slots=True)
class Trial:
    """Something to be run once in each round. ``run`` answers the readings that ``gives`` names."""

    name: str
    run: Callable[[Bench], Readings]
    gives: tuple[str, ...]
    peers: bool = False
    """Whether it needs the packages of another queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``over`` divided by ``under``, two readings of one round; ``over`` alone where there is no ``under``."""

    name: str
    over: str
    under: str | None = None
    unit: str = "jobs/s"
    """The unit of the readings. A ratio has none."""
    target: Target | None = None

    @property
    def readings(self) -> tuple[str, ...]:
        """The names of the readings that it is made of."""
        return (self.over,) if self.under is None else (self.over, self.under)

    def value(self, readings: Readings) -> float:
        """Return the figure of one round."""
        value = readings[self.over]
        return value if self.under is None else value / readings[self.under]


@dataclass(frozen=True, slots=True)
class Spread:
    """The values of all rounds, in their order."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value in the middle."""
        return statistics.median(self.rounds)

    @property
    def least(self) -> float:
        """The smallest value."""
        return min(self.rounds)

    @property
    def most(self) -> float:
        """The largest value."""
        return max(self.rounds)
