"""Choosing the prior, from public numbers only.

With debiasing the variance of an estimated count, ``(c + m) / r(m)``, falls with the prior ``m``
towards that of the Gaussian mechanism, because the calibrated rate grows like ``m`` (theory
section 1): a prior well above the cells is within a few percent of the limit, and its only price
is digits, of which the certified sampler has plenty. Without debiasing a prior draws rows
towards uniform: there the sum of noise and bias at the public size decides.

The paper has no prior; there an asserted floor gives every cell its mass.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
import numpy.typing as npt

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.dirichlet import LARGEST_PRIOR
from dpmarkov.privacy.profiles import checked
from dpmarkov.privacy.units import Unit, UserBounds
from dpmarkov.states import StateSpace

__all__ = ["ample_prior", "choose_prior", "floor_masses"]

# Ten times the mean cell; where the size is private, a thousand times what is needed at least.
_ABOVE_MEAN = 10.0
_ABOVE_MINIMUM = 1000.0


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
        Above the minimum mass, unless that is beyond what the sampler takes.

    Raises
    ------
    DpmarkovError
        If the total is not a number of transitions.

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
    mean = None
    if total is not None:
        mean = float(checked("expected_total", total, at_least=0.0)) / space.n_cells
    if debias:
        if mean is None:
            return ample_prior(unit, epsilon=epsilon, delta=delta, **bounds)
        wanted = _ABOVE_MEAN * max(mean, needed)
    elif mean is None:
        wanted = 2 * needed
    else:
        candidates = needed * np.geomspace(1.02, 100, 40)
        rates = privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=candidates, **bounds)
        n = space.n_cells / space.shape[0]
        wanted = float(candidates[np.argmin(_row_error(candidates, rates, mean, n))])
    return min(wanted, LARGEST_PRIOR)


def floor_masses(
    eta: float, row_totals: npt.NDArray[np.int64] | npt.NDArray[np.float64], space: StateSpace
) -> npt.NDArray[np.float64]:
    """Give what each cell of a row must count at least, under an asserted floor (the paper's eta).

    Parameters
    ----------
    eta : float
        The share of its row that every feasible transition is asserted to have.
    row_totals : array of int or float
        Transitions that leave each origin; public.
    space : StateSpace
        The declared states.

    Returns
    -------
    array of float
        The masses, whole numbers.

    Examples
    --------
    >>> floor_masses(0.1, np.array([95, 200]), StateSpace(["a", "b"]))
    array([10., 20.])
    """
    largest = 1 / int(space.row_sizes.max())
    if not 0 < eta <= largest:
        raise DpmarkovError(
            f"assume_floor must be above 0 and at most 1/n = {largest:g}, the share of each of n "
            f"destinations in an even row, not {eta:g}"
        )
    return np.asarray(np.ceil(eta * row_totals * (1 - 1e-15)))


def ample_prior(unit: Unit, *, epsilon: float, delta: float, **bounds: Unpack[UserBounds]) -> float:
    """Give the pseudo-counts that are chosen where nothing is known of the size.

    Parameters
    ----------
    unit, epsilon, delta
        The target.
    max_cells, max_per_cell : int
        The bounds of a user, for the unit `user` only.

    Returns
    -------
    float
        At most what the sampler takes.
    """
    needed = privacy.minimum_mass(unit, epsilon=epsilon, delta=delta, **bounds)
    return min(_ABOVE_MINIMUM * needed, LARGEST_PRIOR)


def _row_error(m: np.ndarray, rate: np.ndarray, mean: float, n: float) -> np.ndarray:
    """Total variation of a typical row: noise at an even row, and bias at a half-uneven one."""
    k = rate * n * (mean + m)
    noise = np.sqrt(n / (2 * np.pi * k))
    bias = 0.5 * m / (mean + m)
    return noise + bias
