"""The Dirichlet mechanism: gamma noise around counts, and the rows and counts that it yields.

With a rate ``r`` and a prior ``m`` every feasible cell draws ``G ~ Gamma(r (c + m))``, and a row is
``X = G / sum(G) ~ Dirichlet(r (c + m))``; the paper's mechanism is ``m = 0``, ``r = k / N``. All
privacy rests on the vector ``G`` (theory section 2), everything after it is post-processing.

The accounting assumes shapes that are *exactly* ``r (c + m)``: rounding of the product would
shift neighbours against each other by more or less than ``r``. So the rate is rounded down to 15
significant bits (which costs at most 0.006% of it) and the prior up to a multiple of 1/64; for
counts below 2^31 and priors up to there, the sum has 38 bits and the product is exact in float64.
Draws are the certified ones of `dpmarkov.mechanisms.sampling`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.sampling import LARGEST_SHAPE, SMALLEST_SHAPE, log_gamma
from dpmarkov.states import StateSpace

__all__ = [
    "LARGEST_PRIOR",
    "check_shapes",
    "draw",
    "exact_prior",
    "exact_rate",
    "private_counts",
    "private_rows",
]

Floats = npt.NDArray[np.float64]

_RATE_BITS = 15
_PRIOR_STEPS = 64
_LARGEST_CELL = 2**31
LARGEST_PRIOR = float(_LARGEST_CELL)


def exact_rate(rate: float) -> float:
    """Round a rate down so that shapes are exact and within the sampler's range.

    Parameters
    ----------
    rate : float
        A calibrated rate; a smaller one only adds privacy.

    Returns
    -------
    float

    Examples
    --------
    >>> exact_rate(0.1)
    0.09999847412109375
    """
    mantissa, exponent = np.frexp(min(rate, LARGEST_SHAPE / (2 * _LARGEST_CELL)))
    return float(np.ldexp(np.floor(np.ldexp(mantissa, _RATE_BITS)), exponent - _RATE_BITS))


def exact_prior(prior: float) -> float:
    """Round a prior up to a multiple of 1/64, so that shapes are exact.

    Parameters
    ----------
    prior : float
        Pseudo-counts for every feasible transition.

    Returns
    -------
    float

    Examples
    --------
    >>> exact_prior(10.71)
    10.71875
    """
    if not 0 <= prior <= LARGEST_PRIOR:
        raise DpmarkovError(
            f"prior must be between 0 and 2^31 = {_LARGEST_CELL} pseudo-counts, not {prior:g}"
        )
    return float(np.ceil(prior * _PRIOR_STEPS) / _PRIOR_STEPS)


def draw(cells: npt.NDArray[np.int64], *, rate: float, prior: float) -> Floats:
    """Draw the certified gamma vector, in logarithms.

    Parameters
    ----------
    cells : array of int
        Sensitive counts.
    rate, prior : float
        As given by `exact_rate` and `exact_prior`.

    Returns
    -------
    array of float
        log G, one for each cell.
    """
    check_shapes(cells, rate=rate, prior=prior)
    return log_gamma(rate * (cells + prior))


def check_shapes(cells: npt.NDArray[np.int64], *, rate: float, prior: float) -> None:
    """Refuse what `draw` could not draw exactly, without drawing anything.

    Parameters
    ----------
    cells, rate, prior
        As for `draw`.
    """
    if cells.max(initial=0) >= _LARGEST_CELL:
        raise DpmarkovError(
            f"a cell counts 2^31 = {_LARGEST_CELL} transitions or more, beyond which its noise "
            "would not be exact; count in coarser units or split the data"
        )
    if exact_rate(rate) != rate or exact_prior(prior) != prior:
        raise DpmarkovError(
            f"rate {rate!r} or prior {prior!r} has too many digits for exact shapes; round them "
            "with exact_rate and exact_prior"
        )
    if rate * (prior or 1.0) < SMALLEST_SHAPE:
        raise DpmarkovError(
            f"rate {rate:g} is too small for certified noise (rate * mass must be at least "
            f"{SMALLEST_SHAPE:g}): the mass is barely above the minimum; raise it, or epsilon"
        )


def private_rows(log_g: Floats, space: StateSpace) -> Floats:
    """Normalise the gamma vector row by row: Dirichlet rows, strictly positive.

    Parameters
    ----------
    log_g : array of float
        What `draw` returned.
    space : StateSpace
        The states the cells belong to.

    Returns
    -------
    array of float
        Probabilities aligned with the support. One that underflows is the least normal float.
    """
    tops = np.maximum.reduceat(log_g, space.row_starts[:-1])
    g = np.exp(log_g - space.spread(tops))
    rows = g / space.spread(space.row_sums(g))
    return np.asarray(np.maximum(rows, np.finfo(np.float64).tiny))


def private_counts(log_g: Floats, *, rate: float, prior: float) -> Floats:
    """Read unbiased counts off the gamma vector: G / r - m, with variance (c + m) / r.

    Parameters
    ----------
    log_g : array of float
        What `draw` returned.
    rate, prior : float
        What it was drawn with.

    Returns
    -------
    array of float
        Estimated counts, some below zero. Publishable wherever G is (`transition`).
    """
    return np.asarray(np.exp(log_g) / rate - prior)
