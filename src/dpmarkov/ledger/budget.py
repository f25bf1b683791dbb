"""What a data set has spent, and whether one more release fits into its budget.

All charges of a data set add up, with one exception: *parts*. Where a curator declares that no
unit has data in two parts (months, under `transition`; patients of different wards, under `user`),
a charge of a part touches that part alone, and a charge without a part touches all of them. So
every part must keep the budget together with the charges without one (parallel composition).

A group of charges keeps a budget (epsilon, delta) in either of two ways:

* their epsilons and deltas add up to no more (basic composition). The sums are those of the
  decimals that people wrote, off which floats are by less than 2e-16: ten times 0.1 is 1;
* the privacy-loss distributions of their noise, composed, give no more than delta at epsilon, which
  for many releases is far less than the sum. Pure budgets (delta = 0) gain nothing by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter
from typing import NamedTuple

from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee
from dpmarkov.privacy import compose
from dpmarkov.privacy.units import Unit, check_unit

__all__ = ["Budget", "Spending", "fits", "largest", "spent"]


@dataclass(frozen=True)
class Budget:
    """How much all releases of a data set together may reveal.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What is hidden.
    epsilon, delta : float
        The budget.

    Examples
    --------
    >>> Budget("transition", epsilon=3, delta=1e-5)
    Budget(unit='transition', epsilon=3.0, delta=1e-05)
    """

    unit: Unit
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_unit(self.unit)
        epsilon, delta = float(self.epsilon), float(self.delta)
        if not 0 < epsilon < inf:
            raise DpmarkovError(f"a budget's epsilon must be above 0 and finite, not {epsilon:g}")
        if not 0 <= delta < 1:
            raise DpmarkovError(f"a budget's delta must be at least 0 and below 1, not {delta:g}")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


# No budget that protects anything lets this many times its epsilon through.
_FAR = 2**20


class Spending(NamedTuple):
    """What was charged, and to which part."""

    guarantee: Guarantee
    part: str | None


def fits(charges: Iterable[Spending], budget: Budget) -> bool:
    """Tell whether charges keep a budget together.

    Parameters
    ----------
    charges : iterable of Spending
        All of them.
    budget : Budget
        The budget.

    Returns
    -------
    bool
    """
    return all(_keeps(group, budget) for group in _groups(charges))


def spent(charges: Iterable[Spending], budget: Budget) -> float:
    """Give the epsilon of all charges together, at the budget's delta.

    Parameters
    ----------
    charges : iterable of Spending
        All of them.
    budget : Budget
        Of which the delta is taken.

    Returns
    -------
    float
        That of the part that spent most; never below the truth.
    """
    return max(_spent(group, budget.delta) for group in _groups(charges))


def largest(allowed: Callable[[float], bool], start: float) -> float:
    """Find the largest epsilon, to four digits, that is allowed.

    Parameters
    ----------
    allowed : callable
        Tells it of an epsilon; what is allowed is allowed below too.
    start : float
        Where to begin.

    Returns
    -------
    float
        `allowed` holds for the result itself; 0 if it does for nothing above a millionth of
        `start`.

    Examples
    --------
    >>> largest(lambda epsilon: epsilon <= 2 / 3, 1.0)
    0.6666
    """
    low, high = 0.0, start
    while high < _FAR * start and allowed(high):
        low, high = high, 2 * high
    while (middle := _digits((low or high / 4) / 2 + high / 2)) not in (low, high):
        if allowed(middle):
            low = middle
        elif middle < 1e-6 * start:
            break
        else:
            high = middle
    return low


def _digits(epsilon: float) -> float:
    return float(f"{epsilon:.4g}")


def _groups(charges: Iterable[Spending]) -> Iterator[tuple[Guarantee, ...]]:
    """Give what touches each part: its own charges, and those without a part."""
    listed = list(charges)
    everywhere = [guarantee for guarantee, part in listed if part is None]
    parts = sorted({part for _, part in listed if part is not None})
    groups = [[one for one, its in listed if its == part] for part in parts] or [[]]
    for own in groups:
        yield tuple(sorted(everywhere + own, key=repr))


@lru_cache(maxsize=1024)
def _keeps(group: tuple[Guarantee, ...], budget: Budget) -> bool:
    epsilon, delta = _sums(group)
    if epsilon <= _decimal(budget.epsilon) and delta <= _decimal(budget.delta):
        return True
    return budget.delta > 0 and compose(group).profile(budget.epsilon) <= budget.delta


@lru_cache(maxsize=1024)
def _spent(group: tuple[Guarantee, ...], delta: float) -> float:
    if not group:
        return 0.0
    epsilon, sum_of_deltas = _sums(group)
    composed = compose(group).epsilon(delta) if delta > 0 else inf
    return min(composed, _up(epsilon) if sum_of_deltas <= _decimal(delta) else inf)


def _sums(group: Sequence[Guarantee]) -> tuple[Fraction, Fraction]:
    epsilons = sum((_decimal(one.epsilon) for one in group), Fraction())
    return epsilons, sum((_decimal(one.delta) for one in group), Fraction())


def _decimal(number: float) -> Fraction:
    """Read a float as the shortest decimal that stands for it."""
    return Fraction(repr(float(number)))


def _up(number: Fraction) -> float:
    nearest = float(number)
    return nearest if _decimal(nearest) >= number else nextafter(nearest, inf)
