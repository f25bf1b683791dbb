"""Calibration: the largest rate that a target allows, and the mass below which none does.

At a fixed mass delta grows with the rate, so calibration is a bracketed root. As the rate falls to
zero delta does not: it tends to ``exp(-eps mu) / (2 mu + 1)`` under `destination` and to
``exp(-eps mu) mu^mu / (mu + 1)^(mu + 1)`` under `transition` (theory section 3, *feasibility*). A
target below that limit needs more mass: below the root ``mu*`` no rate works at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import InfeasibleError
from dpmarkov.privacy.profiles import (
    Unit,
    check_unit,
    checked,
    each,
    overshoot,
    profile,
    safe_root,
)

__all__ = ["calibrate", "minimum_mass"]

# Below this rate the profile has reached its limit to the last digit.
_LEAST_RATE = 1e-12


@overload
def calibrate(unit: Unit, *, epsilon: float, delta: float, mass: float) -> float: ...
@overload
def calibrate(
    unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike, mass: npt.ArrayLike
) -> Any: ...
def calibrate(
    unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike, mass: npt.ArrayLike
) -> Any:
    """Find the largest rate whose guarantee meets (epsilon, delta).

    Parameters
    ----------
    unit : {"destination", "transition"}
        What the guarantee hides.
    epsilon : float or array
        At least 0.
    delta : float or array
        Between 0 and 1, neither included.
    mass : float or array
        The least weight mu of a feasible transition.

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
    """
    check_unit(unit)
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    mu = checked("mass", mass, above=0.0)
    return each(lambda e, d, m: _calibrate(unit, e, d, m), eps, target, mu)


def _calibrate(unit: Unit, eps: float, target: float, mu: float) -> float:
    def excess(rate: float) -> float:
        return overshoot(profile(unit, rate=rate, mass=mu, epsilon=eps), target)

    needed = minimum_mass(unit, epsilon=eps, delta=target)
    if mu <= needed or excess(_LEAST_RATE) > 0:
        raise _infeasible(unit, eps, target, mu, needed)
    high = max(_LEAST_RATE, 0.5 * mu * min(eps, 1.0) ** 2 / -np.log(target))
    while excess(high) <= 0:
        high *= 4
    low = high
    while excess(low) > 0:
        low = max(low / 4, _LEAST_RATE)
    return safe_root(excess, safe=low, unsafe=high)


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
def minimum_mass(unit: Unit, *, epsilon: float, delta: float) -> float: ...
@overload
def minimum_mass(unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> Any: ...
def minimum_mass(unit: Unit, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    """Find the mass mu* that a target needs: it must be exceeded, whatever the rate.

    Parameters
    ----------
    unit : {"destination", "transition"}
        What the guarantee hides.
    epsilon, delta : float or array
        The target.

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
    """
    check_unit(unit)
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    return each(lambda e, d: _minimum_mass(_LIMITS[unit], e, d), eps, target)


def _minimum_mass(log_limit: Callable[[float, float], float], eps: float, target: float) -> float:
    wanted = -np.log(target)

    def excess(mu: float) -> float:
        return float(wanted - log_limit(eps, mu))

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return safe_root(excess, safe=high, unsafe=0.0, rtol=1e-15) * (1 + 2**-50)


def _destination_limit(eps: float, mu: float) -> float:
    return float(eps * mu + np.log1p(2 * mu))


def _transition_limit(eps: float, mu: float) -> float:
    return float(eps * mu + np.log1p(mu) + (mu * np.log1p(1 / mu) if mu > 0 else 0.0))


# -log of the limit of delta as the rate falls to zero.
_LIMITS = {"destination": _destination_limit, "transition": _transition_limit}
