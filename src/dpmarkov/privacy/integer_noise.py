"""The privacy of noise added to whole counts: geometric and Gaussian, exactly.

A change of the database moves some cells by some whole number each: its `Sensitivity`. What
someone may learn from noisy counts depends on the law of the *privacy loss*, the logarithm of how
much likelier what they see is on one side, and with a loss L

    delta(epsilon) = E[1 - exp(epsilon - L)], where L > epsilon.

**Geometric** noise of scale s (two-sided, ``P(X = x)`` proportional to ``exp(-|x| / s)``): a cell
moved by k has the losses ``k/s, (k - 2)/s, ..., -k/s``, the upper end for all ``X <= 0``, the
lower one for all ``X >= k``. Over several cells they add up; all losses are multiples of 1/s, so
their law is a list (`dpmarkov.privacy.lattice`) and delta a sum of positive terms. It is zero from
``epsilon = l1 / s`` on: with delta = 0 this is the geometric mechanism as it is known. A cell moved
by 1 loses +-1/s, as in randomized response.

**Gaussian** noise of standard deviation s: with ``mu = l2 / s``, the loss is normal with
mean ``mu^2 / 2`` and variance ``mu^2`` (Balle and Wang 2018),

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

The difference cancels. But the loss is linear in a variable of log-concave density, so the
integral of `dpmarkov.privacy.pairs`, whose factors are all positive, gives it without.

Both are attained (for the Gaussian: before its rounding to a fine grid, which hides a little
more), both fall as the scale grows, and both are rounded up.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy.lattice import convolved, tilted_delta
from dpmarkov.privacy.pairs import DROP, hockey_stick
from dpmarkov.privacy.profiles import checked, each, overshoot, safe_root
from dpmarkov.privacy.units import Sensitivity

__all__ = [
    "gaussian_profile",
    "gaussian_scale",
    "geometric_profile",
    "geometric_scale",
]

Floats = npt.NDArray[np.float64]

_ULP = 2.0**-52
_LEAST = 5e-324
_LEAST_PURE = 1e-300
_CHUNK = 1024
_LONG = 600  # losses, from which on their list is not convolved term by term


# -- geometric ---------------------------------------------------------------------------------


@overload
def geometric_profile(change: Sensitivity, *, scale: float, epsilon: float) -> float: ...
@overload
def geometric_profile(
    change: Sensitivity, *, scale: npt.ArrayLike, epsilon: npt.ArrayLike
) -> Any: ...
def geometric_profile(change: Sensitivity, *, scale: npt.ArrayLike, epsilon: npt.ArrayLike) -> Any:
    """Compute the exact delta of geometric noise at each epsilon.

    Parameters
    ----------
    change : Sensitivity
        What the guarantee hides.
    scale : float or array
        The scale s of the noise.
    epsilon : float or array
        At least 0. The two are broadcast against each other.

    Returns
    -------
    float or array
        delta(epsilon), never below the truth and above it by less than 1e-9 of it; exactly 0
        from ``l1 / scale`` on.

    Examples
    --------
    >>> [f"{d:.4f}" for d in geometric_profile(Sensitivity(2), scale=2.0, epsilon=[0, 0.5, 1])]
    ['0.2449', '0.1525', '0.0000']
    """
    s = checked("scale", scale, above=0.0)
    eps = checked("epsilon", epsilon, at_least=0.0)
    return each(lambda s, eps: _geometric_delta(change, s, eps), s, eps)


def _geometric_delta(change: Sensitivity, scale: float, epsilon: float) -> float:
    if change.l1 > _LONG:
        return _geometric_delta_of_many(change, scale, epsilon)
    losses = np.arange(-change.l1, change.l1 + 1, 2)  # in steps of 1 / scale
    beyond = _distances(losses, epsilon, scale)
    above = beyond > 0
    if not above.any():
        return 0.0
    terms = convolved(change, 1 / scale)[above] * -np.expm1(-beyond[above] / scale)
    operations = 64 + change.cells * (8 + 4 * change.per_cell) + 4 * change.l1 / scale
    return float(min(terms.sum() * (1 + _ULP * operations) + change.l1 * _LEAST, 1.0))


def _geometric_delta_of_many(change: Sensitivity, scale: float, epsilon: float) -> float:
    threshold = Fraction(epsilon) * Fraction(scale)
    if threshold >= change.l1:
        return 0.0
    steps = (change.l1 - threshold) / 2  # from the threshold to the largest loss
    ahead = 2 * (steps - (ceil(steps) - 1))
    return tilted_delta(change, 1 / scale, float(threshold), float(ahead))


def _distances(losses: npt.NDArray[np.int64], epsilon: float, scale: float) -> Floats:
    """Compute losses - epsilon * scale with a relative error of an ulp or two, the sign exactly."""
    product = epsilon * scale
    if not np.isfinite(product):
        return np.full(losses.shape, -np.inf)
    rest = float(Fraction(epsilon) * Fraction(scale) - Fraction(product))
    return np.asarray((losses - product) - rest)


@overload
def geometric_scale(change: Sensitivity, *, epsilon: float, delta: float) -> float: ...
@overload
def geometric_scale(
    change: Sensitivity, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike
) -> Any: ...
def geometric_scale(change: Sensitivity, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    """Find the least scale of geometric noise that meets (epsilon, delta).

    Parameters
    ----------
    change : Sensitivity
        What the guarantee hides.
    epsilon : float or array
        At least 0, and above 0 where delta is 0.
    delta : float or array
        At least 0 and below 1.

    Returns
    -------
    float or array
        The scale, rounded up: ``geometric_profile(change, scale=result, ...) <= delta``.

    Examples
    --------
    >>> geometric_scale(Sensitivity(2), epsilon=1.0, delta=0.0)
    2.0
    >>> round(geometric_scale(Sensitivity(2), epsilon=1.0, delta=0.01), 4)
    1.9495
    """
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, at_least=0.0, below=1.0)
    if np.any((eps < _LEAST_PURE) & (target == 0)):
        raise DpmarkovError(
            f"epsilon must be at least {_LEAST_PURE:g} where delta is 0: no finite noise hides all"
        )
    return each(lambda e, d: _geometric_scale(change, e, d), eps, target)


def _geometric_scale(change: Sensitivity, epsilon: float, target: float) -> float:
    pure = _pure_scale(change, epsilon) if epsilon >= _LEAST_PURE else np.inf
    if target == 0:
        return pure
    start = min(change.l1, change.l2 * sqrt(-2 * np.log(target))) / max(epsilon, 1e-3)
    least = _least_scale(lambda s: _geometric_delta(change, s, epsilon), start, target)
    return min(least, pure)


def _pure_scale(change: Sensitivity, epsilon: float) -> float:
    """Give the least float at which epsilon covers every loss."""
    scale = change.l1 / epsilon
    while Fraction(scale) * Fraction(epsilon) < change.l1:
        scale = float(np.nextafter(scale, np.inf))
    return scale


# -- Gaussian ----------------------------------------------------------------------------------


@overload
def gaussian_profile(change: Sensitivity, *, scale: float, epsilon: float) -> float: ...
@overload
def gaussian_profile(
    change: Sensitivity, *, scale: npt.ArrayLike, epsilon: npt.ArrayLike
) -> Any: ...
def gaussian_profile(change: Sensitivity, *, scale: npt.ArrayLike, epsilon: npt.ArrayLike) -> Any:
    """Compute the exact delta of Gaussian noise at each epsilon.

    Parameters
    ----------
    change : Sensitivity
        What the guarantee hides.
    scale : float or array
        The standard deviation of the noise.
    epsilon : float or array
        At least 0. The two are broadcast against each other.

    Returns
    -------
    float or array
        delta(epsilon), never below the truth and above it by less than 1e-9 of it
        (wherever it is at least 1e-300).

    Examples
    --------
    >>> [f"{d:.2e}" for d in gaussian_profile(Sensitivity(1), scale=3.0, epsilon=[0.5, 1, 2])]
    ['1.24e-02', '2.08e-04', '1.40e-10']
    """
    s = checked("scale", scale, above=0.0)
    eps = checked("epsilon", epsilon, at_least=0.0)
    s, eps = np.broadcast_arrays(s, eps)
    flat_s, flat_eps = np.ravel(s), np.ravel(eps)
    values = np.empty(flat_s.shape)
    for start in range(0, values.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        values[part] = _gaussian_delta(change, flat_s[part], flat_eps[part])
    return float(values[0]) if eps.ndim == 0 else values.reshape(eps.shape)


def _gaussian_delta(change: Sensitivity, scale: Floats, epsilon: Floats) -> Floats:
    mu = change.l2 / scale * (1 + 2 * _ULP)  # rounded up: delta grows with mu
    terms = epsilon / mu + mu / 2
    # Where the loss passes epsilon. Below -40 delta is 1, above 1e4 it is far below any float.
    y0 = np.clip(epsilon / mu - mu / 2, -40.0, 1e4)
    log_peak = np.full(mu.shape, -0.5 * np.log(2 * np.pi))
    return hockey_stick(_Normal(), log_peak, mu, y0, np.minimum(terms, 1e15))


class _Normal:
    """The standard normal density: D = y^2 / 2."""

    def value(self, y: Floats) -> Floats:
        return np.asarray(y * y / 2)

    def slope(self, y: Floats) -> Floats:
        return y

    def terms(self, y: Floats) -> Floats:
        return self.value(y)

    def reach(self) -> Floats:
        return np.asarray(sqrt(2 * DROP))


@overload
def gaussian_scale(change: Sensitivity, *, epsilon: float, delta: float) -> float: ...
@overload
def gaussian_scale(change: Sensitivity, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> Any: ...
def gaussian_scale(change: Sensitivity, *, epsilon: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    """Find the least standard deviation of Gaussian noise that meets (epsilon, delta).

    Parameters
    ----------
    change : Sensitivity
        What the guarantee hides.
    epsilon : float or array
        At least 0.
    delta : float or array
        Between 0 and 1, neither included.

    Returns
    -------
    float or array
        The scale, rounded up: ``gaussian_profile(change, scale=result, ...) <= delta``.

    Examples
    --------
    >>> round(gaussian_scale(Sensitivity(2), epsilon=1.0, delta=1e-6), 4)
    5.9746
    """
    eps = checked("epsilon", epsilon, at_least=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    return each(lambda e, d: _gaussian_scale(change, e, d), eps, target)


def _gaussian_scale(change: Sensitivity, epsilon: float, target: float) -> float:
    def delta(scale: float) -> float:
        return float(_gaussian_delta(change, np.array([scale]), np.array([epsilon]))[0])

    return _least_scale(delta, change.l2, target)


def _least_scale(delta: Callable[[float], float], start: float, target: float) -> float:
    """Find where a delta that falls with the scale meets its target, from the safe side."""

    def excess(scale: float) -> float:
        return overshoot(delta(scale), target)

    safe = start
    while excess(safe) > 0:
        safe *= 2
    unsafe = safe / 2
    while excess(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe / 2
    return safe_root(excess, safe=safe, unsafe=unsafe)
