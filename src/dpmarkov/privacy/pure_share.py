"""A budget shared with an earlier step that was purely epsilon-differentially private.

Merging states by noisy row totals is such a step: it spends s of epsilon, with no delta. Whatever
it does, its privacy loss is at worst that of randomised response (Kairouz, Oh and Viswanath, "The
composition theorem for differential privacy", 2015): +s with probability ``p = e^s / (1 + e^s)``
and -s otherwise. Two-sided geometric noise of scale 1/s attains this for one transition. With
``D`` the privacy profile of the noise that follows, the two together have at worst the profile

    delta(eps) = p D(eps - s) + (1 - p) D(eps + s),    D(-x) = 1 - e^-x + e^-x D(x),

which is at most ``D(eps - s)``: calibrating what follows to ``eps - s`` keeps the promise. The
later noise may depend on what the earlier step gave, as long as D covers it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

__all__ = ["profile_after", "remaining"]

_ROUNDING = 1 + 2.0**-48


def remaining(epsilon: float, spent: float) -> float:
    """Give what is left of epsilon, rounded down.

    Parameters
    ----------
    epsilon, spent : float
        The whole and the share.

    Returns
    -------
    float

    Examples
    --------
    >>> 0.9 - 1e-15 < remaining(1.0, 0.1) < 0.9
    True
    """
    return float(np.nextafter(epsilon - spent, -np.inf)) if spent else epsilon


def profile_after(spent: float, profile: Callable[[Any], Any], epsilon: npt.ArrayLike) -> Any:
    """Give delta at epsilon of a step that spent a pure share, and of the noise that follows.

    Parameters
    ----------
    spent : float
        The share s, above 0.
    profile : callable
        The profile D of the noise that follows, at any epsilon of at least 0.
    epsilon : float or array
        Where to evaluate, at least 0.

    Returns
    -------
    float or array
        Never below the truth if `profile` is not.

    Examples
    --------
    Randomised response of 0.3 followed by one of 0.7:

    >>> def after(epsilon):
    ...     return np.maximum(0, np.exp(0.7) - np.exp(epsilon)) / (1 + np.exp(0.7))
    >>> [round(profile_after(0.3, after, epsilon), 6) for epsilon in (0.0, 0.5, 1.0)]
    [0.336376, 0.151027, 0.0]
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    gain = np.nextafter(eps - spent, -np.inf)
    ahead = np.asarray(profile(np.abs(gain)))
    below = np.minimum(gain, 0)
    ahead = np.where(gain < 0, -np.expm1(below) + np.exp(below) * ahead, ahead)
    behind = np.asarray(profile(np.nextafter(eps + spent, 0)))
    value = np.minimum((expit(spent) * ahead + expit(-spent) * behind) * _ROUNDING, 1.0)
    return float(value) if eps.ndim == 0 else value
