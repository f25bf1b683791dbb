"""The Gaussian mechanism: correctly rounded normal noise.

A count c plus an ideal normal X is private by the analysis of real numbers (Balle and Wang,
"Improving the Gaussian mechanism for differential privacy", 2018), and so is its rounding to the
nearest multiple of 2^-10, a fixed grid: rounding is post-processing. Since c is on the grid,
``round(c + X) = c + round(X)``, so it is the noise that is rounded here. The grid is a thousandth
of a transition: what rounding adds to the variance, 1e-7, is nothing beside the noise.

Only the rounding of an ideal real number has to be right, and that is ensured as in
`dpmarkov.mechanisms.sampling`, whose normals (Box and Muller's) these are: words of 64 bits from
the operating system, float64 with a margin, interval arithmetic on the same words where the
margin does not decide. Nothing can be seeded or repeated by a fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmarkov.mechanisms.sampling import CHUNK, normals, system_words
from dpmarkov.mechanisms.whole_numbers import check_scale, settle, whole_parts

if TYPE_CHECKING:
    from dpmarkov.mechanisms.refinement import LazyUniform
    from dpmarkov.mechanisms.sampling import Floats, Words, WordSource

__all__ = ["STEPS", "rounded_normal"]

STEPS = 2**10
"""Steps of the grid in one transition."""

# Rounding of y + 1/2, beside the margin of the normal: at most 2^-54 + 2^-53 |y|.
_ADDITION = 2.0**-53


def rounded_normal(size: int | tuple[int, ...], *, scale: float) -> Floats:
    """Draw normal variates of mean 0, each correctly rounded to a multiple of 2^-10.

    Parameters
    ----------
    size : int or tuple of int
        Shape of the result.
    scale : float
        The standard deviation, between 2^-30 and 2^30, taken as an exact real number.

    Returns
    -------
    array of float64
        Independent variates.

    Raises
    ------
    DpmarkovError
        If the scale is outside its limits.

    Examples
    --------
    >>> noise = rounded_normal((2, 3), scale=5.0)
    >>> noise.shape, bool((noise * 1024 == (noise * 1024).round()).all())
    ((2, 3), True)
    """
    scale = check_scale(scale)
    steps = np.empty(size, dtype=np.int64)
    _fill(steps.reshape(-1), scale, system_words)
    return np.asarray(steps / STEPS)


def _fill(steps: Words, scale: float, words: WordSource) -> None:
    """Fill a flat array chunk by chunk; `words` is injected by tests only."""
    for start in range(0, steps.size, CHUNK):
        part = steps[start : start + CHUNK]
        pairs = (part.size + 1) // 2
        part[:] = _nearest(words(pairs), words(pairs), part.size, scale, words)


def _nearest(radius: Words, angle: Words, count: int, scale: float, words: WordSource) -> Words:
    """Return the steps nearest to the normals of these uniforms, cosines before sines."""
    with np.errstate(divide="ignore"):  # infinite margins: left undecided
        x, x_error = normals(radius, angle, count)
    unit = scale * STEPS
    known: dict[int, tuple[LazyUniform, LazyUniform]] = {}

    def exact(cell: int) -> int:
        from dpmarkov.mechanisms.refinement import LazyUniform

        # The two cells of a pair must see the same further bits, or they would not be independent.
        sine, pair = divmod(cell, radius.size)
        if pair not in known:
            first, second = (int(kind[pair]) for kind in (radius, angle))
            known[pair] = LazyUniform(first, words), LazyUniform(second, words)
        return _refined(*known[pair], scale, sine=bool(sine))

    return whole_parts(unit * x + 0.5, unit * x_error + _ADDITION, exact)


def _refined(radius: LazyUniform, angle: LazyUniform, scale: float, *, sine: bool) -> int:
    from flint import arb

    from dpmarkov.mechanisms.refinement import normal

    def ideal() -> arb:
        x = normal(radius.ball(), angle.ball(), sine=sine)
        return arb(scale) * STEPS * x + arb(1) / 2

    return settle([radius, angle], ideal)
