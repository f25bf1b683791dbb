"""Whole parts of ideal real numbers: decided in float64 where a margin allows, else beyond doubt.

Noise on counts is a fixed rounding of an ideal real variate: `dpmarkov.mechanisms.geometric`
takes the whole part of an exponential one, `dpmarkov.mechanisms.gaussian` that of a shifted normal
one. As in `dpmarkov.mechanisms.sampling` the variate is computed in float64 beside a bound on its
error; where the two ends of that margin differ in their whole parts, the same words are taken up
again in interval arithmetic, with further bits while they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from collections.abc import Callable

    import flint
    from numpy.typing import NDArray

    from dpmarkov.mechanisms.refinement import LazyUniform

__all__ = ["LARGEST_SCALE", "SMALLEST_SCALE", "check_scale", "settle", "whole_parts"]

SMALLEST_SCALE = 2.0**-30
LARGEST_SCALE = 2.0**30

_WORD = 64
_GUARD = 128  # bits of precision beyond those of the uniforms: a variate is below 2^48


def check_scale(scale: float) -> float:
    """Give the scale of a noise, or say which ones are certified.

    Parameters
    ----------
    scale : float
        Spread of the noise in counts, taken as an exact real number.

    Returns
    -------
    float
    """
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise DpmarkovError(
            f"scale {scale:g} is outside the certified range [2^-30, 2^30] = "
            f"[{SMALLEST_SCALE:.3g}, {LARGEST_SCALE:.3g}]; choose an epsilon nearer to 1"
        )
    return float(scale)


def whole_parts(
    y: NDArray[np.float64], margin: NDArray[np.float64], exact: Callable[[int], int]
) -> NDArray[np.int64]:
    """Round ideal numbers down.

    Parameters
    ----------
    y, margin : array of float
        Approximate numbers, and bounds on their distance from the ideal ones (may be infinite).
    exact : callable
        Gives the whole part of the ideal number at a position; asked where the margin decides not.

    Returns
    -------
    array of int
    """
    # Rounding down is monotone: equal ends hold everything between them.
    low, high = np.floor(y - margin), np.floor(y + margin)
    decided = low == high
    parts = np.where(decided, low, 0.0).astype(np.int64)
    for i in np.flatnonzero(~decided).tolist():
        parts[i] = exact(i)
    return parts


def settle(uniforms: list[LazyUniform], ideal: Callable[[], flint.arb]) -> int:
    """Round down one ideal number, whatever number of bits that takes.

    Parameters
    ----------
    uniforms : list of LazyUniform
        The uniforms that the number is made from.
    ideal : callable
        Computes the number, as a ball, from what is known of the uniforms.

    Returns
    -------
    int
    """
    from flint import ctx

    bits = _WORD
    while True:
        with ctx.workprec(bits + _GUARD):
            ball = ideal()
            if ball.is_finite():
                low, high = (end.floor().unique_fmpz() for end in (ball.lower(), ball.upper()))
                if low is not None and low == high:
                    return int(low)
        bits += _WORD
        for uniform in uniforms:
            uniform.lengthen(bits)
