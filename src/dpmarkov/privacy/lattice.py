"""The privacy loss of geometric noise over many cells, whose law is a long list.

A cell moved by k has k + 1 losses (`dpmarkov.privacy.integer_noise`), and those of L0 cells add up
to ``L0 k + 1``. For few of them the list is convolved term by term. For many it is *tilted* first,
``p_i exp(a x_i) / M(a)``, so that its middle lies where the loss passes epsilon, and then convolved
by a discrete Fourier transform, whose rounding errors are small beside the middle: there they do
no harm. The transform is as long as 24 standard deviations, not as the list. What lies outside
wraps around and is counted where it lands, which adds to delta and never takes away.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import numpy.typing as npt

from dpmarkov.privacy.units import Sensitivity

__all__ = ["cell_law", "convolved", "tilted_delta"]

Floats = npt.NDArray[np.float64]

_ULP = 2.0**-52
_WINDOW = 24.0
_LARGEST_TILT = 600.0


def cell_law(per_cell: int, t: float) -> Floats:
    """Give the probabilities of the losses -k t, (2 - k) t, ..., k t of one cell.

    Parameters
    ----------
    per_cell : int
        By how much (k) the cell is moved.
    t : float
        One over the scale of the noise.

    Returns
    -------
    array of float
    """
    q, x = np.exp(-t), np.arange(per_cell - 1, 0, -1)
    return np.asarray(np.concatenate(([q**per_cell], -np.expm1(-t) * q**x, [1.0])) / (1 + q))


def convolved(change: Sensitivity, t: float) -> Floats:
    """Give the probabilities of the losses of all cells, by sums of positive terms.

    Parameters
    ----------
    change : Sensitivity
        How many cells are moved how far.
    t : float
        One over the scale of the noise.

    Returns
    -------
    array of float
        For the losses ``-l1 t, (2 - l1) t, ..., l1 t``.
    """
    one, all_cells = cell_law(change.per_cell, t), np.ones(1)
    for _ in range(change.cells):
        all_cells = np.convolve(all_cells, one)
    return all_cells


def tilted_delta(change: Sensitivity, t: float, threshold: float, ahead: float) -> float:
    """Bound delta where the loss of all cells passes a threshold.

    Parameters
    ----------
    change : Sensitivity
        How many cells are moved how far.
    t : float
        One over the scale of the noise.
    threshold : float
        Epsilon, in units of t.
    ahead : float
        How far the next loss beyond it lies, in the same units; above 0.

    Returns
    -------
    float
        At least the true delta, and above it by less than 1e-9 of it.
    """
    from scipy.fft import fft, ifft, next_fast_len

    k, cells = change.per_cell, change.cells
    x, law = np.arange(-k, k + 1, 2), cell_law(k, t)
    a = _tilt(x, law, cells, t, threshold)
    log_moment, tilted, _, variance = _tilted(x, law, a)
    sigma = np.sqrt(cells * variance + a**-2 + (a + t) ** -2)
    n = next_fast_len(min(ceil(_WINDOW * sigma / 2), change.l1) + 1)

    spectrum = fft(np.bincount(np.arange(k + 1) % n, tilted, minlength=n)) ** cells
    first = round((threshold + ahead + change.l1) / 2)  # its place in the whole list
    weights = np.roll(ifft(spectrum).real, -(first % n))
    weights = np.maximum(weights, 0) + _ULP * (64 + 16 * cells) * np.abs(spectrum).mean()

    place = first + np.arange(n)
    beyond = ahead + 2.0 * (place - first)
    terms = np.where(place <= change.l1, weights * np.exp(-a * beyond), 0.0)
    further = np.exp(-2 * a * n) if place[-1] < change.l1 else 0.0
    total = (terms * -np.expm1(-t * beyond)).sum() + terms.sum() * further / (1 - further)
    operations = 256 + cells * (32 + 4 * a * k) + 4 * a * threshold
    value = np.exp(cells * log_moment - a * threshold) * total * (1 + _ULP * operations)
    return float(min(value + 5e-324, 1.0))


def _tilted(x: npt.NDArray[np.int64], law: Floats, a: float) -> tuple[float, Floats, float, float]:
    """Give the log of a cell's moment at a, its tilted law, and the mean and variance of that."""
    logs = np.log(np.maximum(law, 1e-320)) + a * x
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    weights /= total
    mean = float(weights @ x)
    return top + float(np.log(total)), weights, mean, float(weights @ (x - mean) ** 2)


def _tilt(x: npt.NDArray[np.int64], law: Floats, cells: int, t: float, threshold: float) -> float:
    """Find the tilt at which the middle of the list lies just beyond the threshold."""
    from scipy.optimize import brentq

    def slope(log_a: float) -> float:
        a = float(np.exp(log_a))
        return cells * _tilted(x, law, a)[2] - threshold - 1 / a - 1 / (a + t)

    low, high = -50.0, float(np.log(_LARGEST_TILT))
    return float(np.exp(high if slope(high) < 0 else brentq(slope, low, high, xtol=1e-3)))
