"""Calibration: the largest rate that a target allows, and the mass below which none does.

At a fixed mass delta grows with the rate, so calibration is a bracketed root. As the rate falls to
zero delta does not: it tends to ``exp(-eps mu) / (2 mu + 1)`` under `destination` and to
``exp(-eps mu) mu^mu / (mu + 1)^(mu + 1)`` under `transition` (theory section 3, *feasibility*). A
target below that limit needs more mass: below the root ``mu*`` no rate works at all. For a user of
several cells the limit has no closed form, but its moments have: as the rate falls to zero, minus
the logarithm of a Gamma(rate * mu) variate, times the rate, becomes exponential of rate mu.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import InfeasibleError
from dpmarkov.privacy import contour
from dpmarkov.privacy.losses import LimitLoss
from dpmarkov.privacy.profiles import checked, each, overshoot, profile, safe_root
from dpmarkov.privacy.units import Unit, UserBounds, sensitivity

__all__ = ["calibrate", "minimum_mass"]

# Below this rate, and this product of rate and mass, the profile has reached its limit.
_LEAST_RATE = 1e-12


@overload
def calibrate(
    unit: Unit, *, epsilon: float, delta: float, mass: float, **bounds: Unpack[UserBounds]
) -> float: ...
@overload
def calibrate(
    unit: Unit,
    *,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    mass: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any: ...
def calibrate(
    unit: Unit,
    *,
    epsilon: npt.ArrayLike,
    delta: npt.ArrayLike,
    mass: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any:
    """Find the largest rate whose guarantee meets (epsilon, delta).

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    epsilon : float or array
        At least 0.
    delta : float or array
        Between 0 and 1, neither included.
    mass : float or array
        The least weight mu of a feasible transition.
    max_cells, max_per_cell : int
        For the unit `user`: the bounds that every user was cut down to.

    Returns
    -------
    float or array
        The rate, rounded down: ``profile(unit, rate=result, ...) <= delta``.

    Raises
    ------
    InfeasibleError
        If the mass is at or below `minimum_mass`; it carries both.

    Examples
    --------
    >>> round(calibrate("destination", epsilon=1.0, delta=1e-6, mass=30), 6)
    0.789432
    >>> bounds = {"max_cells": 100, "max_per_cell": 5}
    >>> round(calibrate("user", epsilon=1.0, delta=1e-6, mass=30_000, **bounds), 6)
    0.67172
    """
    change = sensitivity(unit, **bounds)
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    mu = checked("mass", mass, above=0.0)

    def of_one(eps: float, target: float, mu: float) -> float:
        def excess(rate: float) -> float:
            return overshoot(profile(unit, rate=rate, mass=mu, epsilon=eps, **bounds), target)

        needed = minimum_mass(unit, epsilon=eps, delta=target, **bounds)
        start = 0.5 * mu * min(eps, 1.0) ** 2 / -np.log(target) / change.l2**2
        least = _LEAST_RATE / max(mu, 1.0)
        rate = _largest(excess, start, least) if mu > needed else None
        if rate is None:
            raise _infeasible(unit, eps, target, mu, needed)
        return rate

    return each(of_one, eps, target, mu)


def _largest(excess: Callable[[float], float], start: float, least: float) -> float | None:
    """Find the largest safe rate; none if even the least is not safe."""
    high = max(least, start)
    while excess(high) <= 0:
        high *= 4
    low = high
    while excess(low) > 0:
        if low == least:
            return None
        low = max(low / 4, least)
    return safe_root(excess, safe=low, unsafe=min(4 * low, high))


def _infeasible(unit: Unit, eps: float, target: float, mu: float, needed: float) -> InfeasibleError:
    return InfeasibleError(
        f"no rate gives epsilon = {eps:g}, delta = {target:g} at the unit {unit!r}: every feasible "
        f"transition needs a mass above {needed:.6g}, and the smallest has {mu:.6g}. Three ways "
        f"out: a prior above {needed:.6g} pseudo-counts (prior=), merging states until the "
        "smallest cell is that large, or a larger epsilon (or delta)",
        mass=mu,
        minimum_mass=needed,
    )


@overload
def minimum_mass(
    unit: Unit, *, epsilon: float, delta: float, **bounds: Unpack[UserBounds]
) -> float: ...
@overload
def minimum_mass(
    unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike, **bounds: Unpack[UserBounds]
) -> Any: ...
def minimum_mass(
    unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike, **bounds: Unpack[UserBounds]
) -> Any:
    """Find the mass mu* that a target needs: it must be exceeded, whatever the rate.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    epsilon, delta : float or array
        The target.
    max_cells, max_per_cell : int
        For the unit `user`: the bounds that every user was cut down to.

    Returns
    -------
    float or array
        mu*, rounded up.

    Examples
    --------
    >>> round(minimum_mass("destination", epsilon=1.0, delta=1e-6), 3)
    10.706
    >>> round(minimum_mass("transition", epsilon=1.0, delta=1e-6), 3)
    10.425
    >>> round(minimum_mass("user", epsilon=1.0, delta=1e-6, max_cells=100, max_per_cell=5), 1)
    239.3
    """
    change = sensitivity(unit, **bounds)
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    if unit == "user" and change.cells > 1:
        mass = partial(_minimum_mass_of_many_cells, change.cells)
    else:
        limit = _destination_limit if unit == "destination" else _transition_limit
        mass = partial(_minimum_mass, limit)
    return each(lambda e, d: change.per_cell * mass(e, d), eps, target)


def _minimum_mass(log_limit: Callable[[float, float], float], eps: float, target: float) -> float:
    wanted = -np.log(target)

    def excess(mu: float) -> float:
        return float(wanted - log_limit(eps, mu))

    return _least(excess, rtol=1e-15) * (1 + 2**-50)


def _destination_limit(eps: float, mu: float) -> float:
    """Give minus the logarithm of what delta tends to as the rate falls to zero."""
    return float(eps * mu + np.log1p(2 * mu))


def _transition_limit(eps: float, mu: float) -> float:
    """Give the same for one cell that is moved by one; more per cell only scale the mass."""
    return float(eps * mu + np.log1p(mu) + mu * np.log1p(1 / mu))


def _minimum_mass_of_many_cells(cells: int, eps: float, target: float) -> float:
    """Give the mass for cells that are moved by one."""

    def excess(mu: float) -> float:
        losses = (LimitLoss(mu, removed=removed) for removed in (False, True))
        return overshoot(max(contour.delta([(loss, cells)], eps) for loss in losses), target)

    return _least(excess, rtol=1e-8, start=float(np.sqrt(cells)))


def _least(excess: Callable[[float], float], rtol: float, start: float = 1.0) -> float:
    """Find the least mass at which excess is not above zero, from the safe side."""
    high = start
    while excess(high) > 0:
        high *= 2
    low = high / 2
    while excess(low) <= 0:
        high, low = low, low / 2
    return safe_root(excess, safe=high, unsafe=low, rtol=rtol)
