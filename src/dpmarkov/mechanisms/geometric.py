"""The geometric mechanism: whole numbers that are the exact two-sided geometric law.

Ghosh, Roughgarden and Sundararajan ("Universally utility-maximizing privacy mechanisms", 2009)
add to a count the whole number X with ``P(X = x)`` proportional to ``exp(-|x| / scale)``, also
called the discrete Laplace law. It is the difference of two independent geometric variates, and a
geometric variate is the whole part of an exponential one: with U uniform on (0, 1),

    P(floor(-scale log U) >= k) = P(U <= e^(-k / scale)) = e^(-k / scale).

Only the whole part of an ideal real number has to be right, and that is ensured as in
`dpmarkov.mechanisms.sampling`: words of 64 bits from the operating system, float64 with a margin,
interval arithmetic on the same words where the margin does not decide. So the law is exact for
every scale, and nothing can be seeded or repeated by a fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmarkov.mechanisms.sampling import CHUNK, log_uniform, system_words
from dpmarkov.mechanisms.whole_numbers import check_scale, settle, whole_parts

if TYPE_CHECKING:
    from dpmarkov.mechanisms.sampling import Words, WordSource

__all__ = ["two_sided_geometric", "variance"]


def two_sided_geometric(size: int | tuple[int, ...], *, scale: float) -> Words:
    """Draw whole numbers X with P(X = x) proportional to exp(-abs(x) / scale), exactly.

    Parameters
    ----------
    size : int or tuple of int
        Shape of the result.
    scale : float
        Between 2^-30 and 2^30, taken as an exact real number.

    Returns
    -------
    array of int64
        Independent variates.

    Raises
    ------
    DpmarkovError
        If the scale is outside its limits.

    Examples
    --------
    >>> noise = two_sided_geometric((2, 3), scale=2.0)
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """
    scale = check_scale(scale)
    noise = np.empty(size, dtype=np.int64)
    _fill(noise.reshape(-1), scale, system_words)
    return noise


def variance(scale: float) -> float:
    """Give the variance of the noise.

    Parameters
    ----------
    scale : float
        As in `two_sided_geometric`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(variance(2.0), 4)
    7.8354
    """
    return float(0.5 / np.sinh(min(0.5 / scale, 350.0)) ** 2)


def _fill(noise: Words, scale: float, words: WordSource) -> None:
    """Fill a flat array chunk by chunk; `words` is injected by tests only."""
    for start in range(0, noise.size, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = _geometric(words(part.size), scale, words)
        part -= _geometric(words(part.size), scale, words)


def _geometric(drawn: Words, scale: float, words: WordSource) -> Words:
    """Return the whole part of -scale log U for the uniforms that begin with the drawn words."""
    with np.errstate(divide="ignore"):  # an infinite margin: left undecided
        log_u, relative = log_uniform(drawn)
    y = -scale * log_u
    return whole_parts(y, y * relative, lambda i: _refined(int(drawn[i]), scale, words))


def _refined(word: int, scale: float, words: WordSource) -> int:
    from flint import arb

    from dpmarkov.mechanisms.refinement import LazyUniform

    u = LazyUniform(word, words)
    return settle([u], lambda: -arb(scale) * u.ball().log())
