"""What is left of log Gamma and of digamma once Stirling's formula is taken away.

The closed forms of this package are differences of large terms that cancel: at k = 1e12,
``log Gamma(k)`` has lost every digit after the point. Written with the remainders below
nothing cancels, and the forms hold for every k.

For x >= 12 eight terms of the asymptotic series (Abramowitz and Stegun 6.1.41 and 6.3.18) leave
a relative error below 1e-16; for smaller x the remainders are as large as the terms they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bernoulli, digamma, gammaln

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["digamma_gap", "log_gamma_gap"]

_SERIES_FROM = 12.0
_TINY = 1e-300  # both remainders have reached their limit or are finite here
_TWO_J = np.arange(2, 18, 2)
_BERNOULLI = bernoulli(16)[_TWO_J]


def digamma_gap(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``x (log x - psi(x))``, which falls from 1 at 0 to 1/2 at infinity.

    It is convex and decreasing: ``x (log x - psi(x))`` is completely monotonic (Alzer, 1997).
    """
    small = np.clip(x, _TINY, _SERIES_FROM)
    near = small * (np.log(small) - digamma(small))
    return np.where(x < _SERIES_FROM, near, 0.5 + _odd_series(_BERNOULLI / _TWO_J, x))


def log_gamma_gap(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``log Gamma(x) - [(x - 1/2) log x - x + (1/2) log 2 pi]``, Binet's function."""
    small = np.clip(x, _TINY, _SERIES_FROM)
    near = gammaln(small) - ((small - 0.5) * np.log(small) - small + 0.5 * np.log(2 * np.pi))
    return np.where(x < _SERIES_FROM, near, _odd_series(_BERNOULLI / (_TWO_J * (_TWO_J - 1)), x))


def _odd_series(b: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``b_1 / x + b_2 / x^3 + b_3 / x^5 + ...`` where x is large."""
    y = 1.0 / np.maximum(x, _SERIES_FROM)
    series: NDArray[np.float64] = y * np.polynomial.polynomial.polyval(y * y, b)
    return series
