"""Trials of the gamma sampler decided beyond doubt: interval arithmetic on lengthened uniforms.

The float64 path of `dpmarkov.mechanisms.sampling` leaves open what its margin cannot decide.
Here the same trial is computed on the same bits with the ball arithmetic of Arb
(python-flint), whose results enclose the ideal real number whatever the precision. A uniform of
which k bits are known is the ball over ``[n 2^-k, (n + 1) 2^-k]``; while a decision is still
open every uniform of the trial is given further bits. Each comparison is open with a
probability that halves with every bit, so the loop ends.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import flint

from dpmarkov.mechanisms.sampling import FINEST_BITS, SIGNIFICANT_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LazyUniform", "OpenDecisionError", "cell_of", "normal", "resolve"]

_WORD = 64
_GUARD = 64  # bits of precision beyond those of the uniforms: at shape 1e15 h loses about 50


class OpenDecisionError(Exception):
    """The bits drawn so far do not decide; caught where further ones are drawn."""


class LazyUniform:
    """A uniform real number in (0, 1) whose bits are drawn when they are asked for.

    Parameters
    ----------
    word : int
        Its first 64 bits, signed or not.
    words : callable
        Source of further 64-bit words.
    """

    def __init__(self, word: int, words: Callable[[int], NDArray[np.int64]]) -> None:
        self._words = words
        self._numerator = word % 2**_WORD
        self._bits = _WORD

    def lengthen(self, bits: int) -> None:
        """Draw words until at least so many bits are known."""
        while self._bits < bits:
            further = int(self._words(1)[0]) % 2**_WORD
            self._numerator = (self._numerator << _WORD) + further
            self._bits += _WORD

    def ball(self) -> flint.arb:
        """Return the interval of what is known."""
        half = flint.arb(2) ** -(self._bits + 1)
        return flint.arb(2 * self._numerator + 1, 1) * half


def resolve(
    shape: float,
    radius: LazyUniform,
    angle: LazyUniform,
    accept: LazyUniform,
    boost: LazyUniform | None,
    *,
    sine: bool,
) -> float:
    """Decide one trial, whatever number of bits that takes.

    Parameters
    ----------
    shape : float
        Shape of the gamma variate, exact.
    radius, angle, accept : LazyUniform
        The uniforms of Box and Muller's method and of the acceptance.
    boost : LazyUniform or None
        The uniform that takes ``shape + 1`` to ``shape``; None uses the shape as it is.
    sine : bool
        Whether the normal is the second of its pair.

    Returns
    -------
    float
        The rounded log variate, or NaN if the trial is rejected.
    """
    uniforms = [u for u in (radius, angle, accept, boost) if u is not None]
    bits = _WORD
    while True:
        # Arb's precision is global to the process. Another thread may change it meanwhile: that
        # widens or narrows balls, which stay enclosures, and at worst asks for another round.
        with flint.ctx.workprec(bits + _GUARD):
            try:
                x = normal(radius.ball(), angle.ball(), sine=sine)
                added = 0 if boost is None else boost.ball().log() / flint.arb(shape)
                return _outcome(flint.arb(shape) + (boost is not None), x, accept.ball(), added)
            except OpenDecisionError:
                bits += _WORD
        for uniform in uniforms:
            uniform.lengthen(bits)


def normal(u: flint.arb, turn: flint.arb, *, sine: bool) -> flint.arb:
    """Box and Muller's normal as a ball, from what is known of the two uniforms."""
    radius = (-2 * u.log()).sqrt()
    return radius * ((2 * turn).sin_pi() if sine else (2 * turn).cos_pi())


def _outcome(a: flint.arb, x: flint.arb, u: flint.arb, added: flint.arb | int) -> float:
    """Return the cell of log G + added if the trial accepts, NaN if it rejects."""
    d = a - flint.arb(1) / 3
    z = x / (9 * d).sqrt()
    if not _certainly_less(-1, z):
        return float("nan")
    log_v = z.log1p()
    h = 3 * d * (log_v - z + z**2 / 2 - z**3 / 3)
    if not _certainly_less(u.log(), h):
        return float("nan")
    return cell_of(d.log() + 3 * log_v + added)


def _certainly_less(left: flint.arb | int, right: flint.arb) -> bool:
    if left < right:
        return True
    if left > right:
        return False
    raise OpenDecisionError


def cell_of(y: flint.arb) -> float:
    """Return the rounded value that all numbers of a ball share.

    Raises
    ------
    OpenDecisionError
        If the ball reaches into two cells of the fixed rounding.
    """
    if not y.is_finite():
        raise OpenDecisionError
    low, high = (_rounded(*map(int, end.man_exp())) for end in (y.lower(), y.upper()))
    if low != high:
        raise OpenDecisionError
    return low


def _rounded(mantissa: int, exponent: int) -> float:
    """Round ``mantissa * 2^exponent`` to the fixed grid, exactly."""
    magnitude = mantissa.bit_length() + exponent
    bits = min(FINEST_BITS, SIGNIFICANT_BITS - magnitude)
    steps = round(Fraction(mantissa) * Fraction(2) ** (exponent + bits))
    return float(Fraction(steps) * Fraction(2) ** -bits)
