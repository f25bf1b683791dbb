"""The privacy loss of a release as a distribution of dp-accounting, for whoever composes there.

dp-accounting (Google) keeps privacy losses on a grid and composes them by Fourier transforms. What
is handed over here errs on the safe side: each cell's exact profile, in both directions, becomes a
distribution by *connecting the dots* (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, 2022), which
dominates the pair, and the cells are composed with what their tails lose counted as infinite.

It is a second opinion on `dpmarkov.privacy.profile`, from another library and another method, and
the way to compose a release with mechanisms that dpmarkov does not know. Its numbers are float64:
a delta below some 1e-11 is drowned in their rounding, which the contour integral is not.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from dpmarkov.privacy.pairs import Pair, beta_pair, gamma_pair_add, gamma_pair_remove
from dpmarkov.privacy.profiles import epsilon
from dpmarkov.privacy.units import Sensitivity, Unit, UserBounds, sensitivity

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["distribution"]

Floats = npt.NDArray[np.float64]

_STEPS = 100  # in a standard deviation
_NEGLIGIBLE = 1e-18  # what a cell may lose beyond the grid
_CHUNK = 1024


def distribution(
    unit: Unit, *, rate: float, mass: float, **bounds: Unpack[UserBounds]
) -> PrivacyLossDistribution:
    """Give the privacy loss distribution of the Dirichlet mechanism, pessimistic.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    rate, mass, max_cells, max_per_cell
        As for `dpmarkov.privacy.profile`.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        To be composed with others of the same discretization.

    Examples
    --------
    >>> found = distribution("user", rate=1.0, mass=20e3, max_cells=50, max_per_cell=4)
    >>> f"{found.get_epsilon_for_delta(1e-6):.4f}"
    '0.8347'
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    change = sensitivity(unit, **bounds)
    if unit == "destination":
        one = _composed(beta_pair, beta_pair, rate, mass, Sensitivity(1), unit)
        return PrivacyLossDistribution(one)
    add = _composed(gamma_pair_add, gamma_pair_remove, rate, mass, change, unit)
    remove = _composed(gamma_pair_remove, gamma_pair_add, rate, mass, change, unit)
    return PrivacyLossDistribution(remove, add)


def _composed(
    pair: Pair, mirrored: Pair, rate: float, mass: float, change: Sensitivity, unit: Unit
) -> Any:
    from dp_accounting.pld import pld_pmf

    # A smaller kappa and a larger shift can only raise delta.
    kappa = np.nextafter(rate * mass, 0)
    h = float(np.nextafter(rate * change.per_cell, np.inf))
    one: UserBounds = {"max_cells": 1, "max_per_cell": change.per_cell} if unit == "user" else {}
    reach = epsilon(unit, rate=rate, mass=mass, delta=_NEGLIGIBLE, **one)
    # No more digits than float64 has for the multiples of the step.
    step = float(np.float32(h / np.sqrt(kappa) / _STEPS))
    n = ceil(reach / step)
    eps = np.asarray(step * np.arange(n + 1), dtype=np.float64)
    ahead, behind = (_profile(which, kappa, h, eps) for which in (pair, mirrored))
    below = -np.expm1(-eps[:0:-1]) + np.exp(-eps[:0:-1]) * behind[:0:-1]
    deltas = np.minimum(np.concatenate([below, ahead]), 1.0)
    cell = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -n, n, deltas)
    return cell.self_compose(change.cells) if change.cells > 1 else cell


def _profile(pair: Pair, kappa: float, h: float, eps: Floats) -> Floats:
    pieces = np.array_split(eps, ceil(eps.size / _CHUNK))
    whole = (pair(np.full(x.shape, kappa), np.full(x.shape, h), x) for x in pieces)
    return np.concatenate(list(whole))
