"""Choosing the prior, from public numbers only.

With debiasing the variance of an estimated count, ``(c + m) / r(m)``, falls with the prior ``m``
towards that of the Gaussian mechanism, because the calibrated rate grows like ``m`` (theory
section 1): a prior well above the cells is within a few percent of the limit, and its only price
is digits, of which the certified sampler has plenty. Without debiasing a prior draws rows
towards uniform: there the sum of noise and bias at the public size decides.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from dpmarkov import privacy
from dpmarkov.privacy.units import Unit, UserBounds
from dpmarkov.states import StateSpace

__all__ = ["choose_prior"]

# Ten times the mean cell; where the size is private, a thousand times what is needed at least.
_ABOVE_MEAN = 10.0
_ABOVE_MINIMUM = 1000.0
_LARGEST = 2.0**31  # as `dpmarkov.mechanisms.dirichlet.exact_prior` allows


def choose_prior(
    unit: Unit,
    *,
    epsilon: float,
    delta: float,
    space: StateSpace,
    total: float | None,
    debias: bool,
    **bounds: Unpack[UserBounds],
) -> float:
    """Choose pseudo-counts for every feasible transition.

    Parameters
    ----------
    unit, epsilon, delta
        The target.
    space : StateSpace
        The declared states.
    total : float or None
        Number of transitions, if it is public or guessed in public.
    debias : bool
        Whether the prior will be taken out of the rows again.
    max_cells, max_per_cell : int
        For the unit `user`: the bounds that every user was cut down to.

    Returns
    -------
    float
        Above the minimum mass.

    Examples
    --------
    >>> space = StateSpace(range(10))
    >>> target = {"epsilon": 1.0, "delta": 1e-6, "space": space}
    >>> choose_prior("destination", total=50_000, debias=True, **target)
    5000.0
    >>> round(choose_prior("destination", total=50_000, debias=False, **target), 1)
    19.7
    """
    needed = privacy.minimum_mass(unit, epsilon=epsilon, delta=delta, **bounds)
    mean = None if total is None else total / space.n_cells
    if debias:
        least = max(needed, min(_ABOVE_MINIMUM * needed, _LARGEST))
        return least if mean is None else _ABOVE_MEAN * max(mean, needed)
    if mean is None:
        return 2 * needed
    candidates = needed * np.geomspace(1.02, 100, 40)
    rates = privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=candidates, **bounds)
    n = space.n_cells / space.shape[0]
    return float(candidates[np.argmin(_row_error(candidates, rates, mean, n))])


def _row_error(m: np.ndarray, rate: np.ndarray, mean: float, n: float) -> np.ndarray:
    """Total variation of a typical row: noise at an even row, and bias at a half-uneven one."""
    k = rate * n * (mean + m)
    noise = np.sqrt(n / (2 * np.pi * k))
    bias = 0.5 * m / (mean + m)
    return noise + bias
