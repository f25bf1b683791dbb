r"""Gamma variates that are the correctly rounded values of ideal ones.

The privacy proofs are about real numbers. A gamma sampler in float64 returns only some of the
floats, and which ones depends on the shape, so neighbouring databases can be told apart by
values that only one of them can produce. Here every returned number is a *fixed* rounding of
an ideal ``log Gamma(shape, 1)`` variate, a real number: rounding is post-processing, hence
exactly private, and all that has to be ensured is that the rounding is correct
(theory, section 7). Logarithms, because a variate of shape 1e-4 underflows half the time.

**The fixed rounding.** ``y`` goes to the nearest multiple of ``2^-32``, or to 37 significant
bits where that is coarser (``|y| >= 32``). Nothing about it depends on the data.

**The ideal algorithm** is the rejection method of Marsaglia and Tsang ("A simple method for
generating gamma variables", 2000) on real numbers. For a shape ``a >= 1`` put ``d = a - 1/3``;
draw a normal ``x`` (Box and Muller: two uniforms give two of them), put ``z = x / sqrt(9 d)``;
accept if ``1 + z > 0`` and ``log u < h``, and then ``G = d (1 + z)^3``. In the authors' form
``h = x^2/2 + d - d v + d log v`` with ``v = (1 + z)^3``; since ``x^2 = 9 d z^2`` this is

    h = 3 d (log(1 + z) - z + z^2/2 - z^3/3),

whose terms are no larger than ``sqrt(d) |x|`` where the authors' cancel at the size of ``d``,
and in which an error of ``z`` counts only by ``3 d |z|^3 / (1 + z)``. A shape below 1 takes
``G_a = G_(a + 1) U^(1/a)``, a sum in the log domain.

**The float path and its margin.** A uniform is a word of 64 bits from the operating system,
which is all that is known of a real number in an interval of width ``2^-64``. Everything is
computed at the interval's centre in float64 beside a bound on its distance from the ideal value.
With ``u = 2^-53`` and every elementary function of numpy within 4 units in the last place (8u
relative; for the sine and cosine 8u absolute is enough; numpy states 4 for its vectorised
functions and glibc's are below 1):

* ``log u`` has relative error at most ``11 u + 1/w``, ``w 2^-64`` being the distance of the word
  from the nearer end of (0, 1): the float error of the centre is 2u and is magnified by at most
  1.45, the logarithm adds 8u, and the interval's half-width moves it by less than ``1/w``;
* ``x = R cos(theta)``: R has relative error ``8 u + 1/w``, theta 4u (at most 13u absolute), the
  cosine 8u, the product 1u, so ``x`` is within ``R (30 u + 1/w)``, and ``z`` within
  ``(35 u + 1/w) R / sqrt(9 d)``;
* ``h`` and ``log G`` are sums of a few terms, each with relative error at most 16u counting the
  additions (2u absolute for the rounding of d), plus the effect of the error of ``z`` by the
  mean value theorem (used only where that error is below ``(1 + z)/16``, which the factors 2 and
  4 in the code more than cover).

The margins take ``32 u`` for each term, ``64 u`` for ``z`` and ``2/w``: about twice these worst
cases, and twenty times what is observed (a test compares them with interval arithmetic).

A decision (sign of ``1 + z``, accept or reject, which cell of the rounding) that the margin
leaves open, about one in a thousand, is taken again by `dpmarkov.mechanisms.refinement`, with
the *same* words, in interval arithmetic, drawing further bits of the same uniforms while they
are needed. Redrawing instead would bias the law.

**Randomness.** `os.urandom`, at every call: no state, so nothing to seed and nothing that a
fork, a thread or a pickle could repeat. The time a draw takes is not constant and not hidden.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dpmarkov.mechanisms.refinement import LazyUniform

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Words = NDArray[np.int64]
    WordSource = Callable[[int], Words]

__all__ = ["LARGEST_SHAPE", "SMALLEST_SHAPE", "gamma", "log_gamma"]

SMALLEST_SHAPE: Final = 1e-9
LARGEST_SHAPE: Final = 1e15

FINEST_BITS: Final = 32
"""Bits after the binary point that a rounded logarithm has at most."""
SIGNIFICANT_BITS: Final = 37
"""Significant bits that a rounded logarithm has at most."""

CHUNK: Final = 1 << 14  # working arrays stay in the cache, and small for any number of cells
_ROUNDOFF: Final = 2.0**-48  # 32 u: twice the worst relative error of a term, see above
_TURN: Final = 2 * math.pi * 2.0**-64


def gamma(shape: ArrayLike) -> Floats:
    """Draw certified gamma variates of scale 1.

    They are the exponentials of `log_gamma`, whose rounding moves them by about ``2^-33``
    relative. At shapes below about 0.03 some underflow to exactly 0; ratios are then better
    formed from `log_gamma`.

    Parameters
    ----------
    shape : array_like of float
        Shapes between ``SMALLEST_SHAPE`` (1e-9) and ``LARGEST_SHAPE`` (1e15).

    Returns
    -------
    ndarray of float64
        Independent variates, in the array shape of the input.

    Raises
    ------
    DpmarkovError
        If a shape is not a number between these limits.

    Examples
    --------
    >>> bool((gamma([[1.0, 20.0], [300.0, 4e6]]) > 0).all())
    True
    """
    return np.asarray(np.exp(log_gamma(shape)))


def log_gamma(shape: ArrayLike) -> Floats:
    """Draw natural logarithms of gamma variates of scale 1, each correctly rounded.

    Parameters
    ----------
    shape : array_like of float
        Shapes between ``SMALLEST_SHAPE`` (1e-9) and ``LARGEST_SHAPE`` (1e15), taken as exact
        real numbers.

    Returns
    -------
    ndarray of float64
        Independent variates, in the array shape of the input: multiples of ``2^-32``, or
        37 significant bits where that is coarser.

    Raises
    ------
    DpmarkovError
        If a shape is not a number between these limits.

    Examples
    --------
    >>> log_gamma(np.full((2, 3), 0.01)).shape
    (2, 3)
    >>> float(log_gamma(7.5) * 2**32).is_integer()
    True
    """
    shapes = _checked(shape)
    return _log_gamma(shapes.ravel(), system_words).reshape(shapes.shape)


def _checked(shape: ArrayLike) -> Floats:
    shapes = np.asarray(shape)
    if shapes.size == 0:
        return np.empty(shapes.shape)
    if shapes.dtype.kind not in "iuf":
        raise DpmarkovError(
            f"shapes of dtype {shapes.dtype} are not real numbers; pass an array of floats"
        )
    shapes = shapes.astype(np.float64, copy=False)
    outside = ~((shapes >= SMALLEST_SHAPE) & (shapes <= LARGEST_SHAPE))
    if outside.any():  # which and how far is not told: a shape holds a count
        raise DpmarkovError(
            f"a shape is outside the certified range [{SMALLEST_SHAPE:g}, {LARGEST_SHAPE:g}]; a "
            "shape is rate * (count + prior): give every cell a positive prior, and check the "
            "rate and the counts"
        )
    return shapes


def system_words(count: int) -> Words:
    """Draw 64-bit words from the operating system's CSPRNG."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.int64)


def _log_gamma(shapes: Floats, words: WordSource) -> Floats:
    """Fill a flat array chunk by chunk; `words` is injected by tests only."""
    log_g = np.empty(shapes.size)
    for start in range(0, shapes.size, CHUNK):
        chunk = slice(start, start + CHUNK)
        log_g[chunk] = _accepted(shapes[chunk], words)
    return log_g


def _accepted(shapes: Floats, words: WordSource) -> Floats:
    """Repeat independent trials until every cell has accepted one."""
    log_g = np.empty(shapes.size)
    pending = np.arange(shapes.size)
    while pending.size:
        trial = _Trial.draw(shapes[pending], words)
        values = _outcomes(trial, words)
        accepted = ~np.isnan(values)
        log_g[pending[accepted]] = values[accepted]
        pending = pending[~accepted]
    return log_g


@dataclass(frozen=True)
class _Trial:
    """The known bits of one trial of every cell.

    Cells i and i + pairs share the words of pair i: one takes Box and Muller's cosine, the other
    the sine, which are independent normals.
    """

    shape: Floats
    radius: Words  # one a pair
    angle: Words  # one a pair
    accept: Words  # one a cell
    boost: Words  # one a cell, or none at all if no shape is below 1

    @classmethod
    def draw(cls, shape: Floats, words: WordSource) -> _Trial:
        n = shape.size
        pairs = (n + 1) // 2
        boosts = n if (shape < 1).any() else 0
        return cls(shape, words(pairs), words(pairs), words(n), words(boosts))


def _outcomes(trial: _Trial, words: WordSource) -> Floats:
    """Return the rounded log G of the cells that accept, NaN for those that reject."""
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite margins: left undecided
        estimate = _estimate(trial)
        values, undecided = estimate.decide()
    cells = np.flatnonzero(undecided)
    if cells.size:
        values[cells] = _refined(trial, cells, words)
    return values


def _refined(trial: _Trial, cells: NDArray[np.intp], words: WordSource) -> list[float]:
    """Redo trials in interval arithmetic on the same words, lengthened where needed."""
    from dpmarkov.mechanisms.refinement import LazyUniform, resolve

    uniforms: dict[tuple[str, int], LazyUniform] = {}

    def uniform(kind: str, known: Words, index: int) -> LazyUniform:
        # The two cells of a pair must see the same further bits, or they would not be independent.
        key = kind, index
        return uniforms.setdefault(key, LazyUniform(int(known[index]), words))

    values = []
    for cell in cells.tolist():
        a = float(trial.shape[cell])
        sine, pair = divmod(cell, trial.radius.size)
        radius, angle = uniform("radius", trial.radius, pair), uniform("angle", trial.angle, pair)
        accept = LazyUniform(int(trial.accept[cell]), words)
        boost = LazyUniform(int(trial.boost[cell]), words) if a < 1 else None
        values.append(resolve(a, radius, angle, accept, boost, sine=bool(sine)))
    return values


@dataclass(frozen=True)
class _Estimate:
    """Float64 values of a trial, each with a bound on its distance from the ideal value."""

    above_zero: Floats  # 1 + z
    z_error: Floats
    excess: Floats  # log u - h: negative means accept
    excess_error: Floats
    log_g: Floats
    log_g_error: Floats

    def decide(self) -> tuple[Floats, Bools]:
        """Return rounded values (NaN: rejected), and which of them are undecided."""
        clear = self.above_zero >= 16 * self.z_error
        rejected = clear & (self.excess > self.excess_error)
        rejected |= self.above_zero < -self.z_error
        low = _rounded(self.log_g - self.log_g_error)
        accepted = clear & (self.excess < -self.excess_error)
        # Rounding is monotone: equal ends hold everything between them in one cell.
        accepted &= low == _rounded(self.log_g + self.log_g_error)
        return np.where(accepted, low, np.nan), ~(accepted | rejected)


def _estimate(trial: _Trial) -> _Estimate:
    """Compute one trial of every cell in float64, with its margins."""
    a = trial.shape
    x, x_error = normals(trial.radius, trial.angle, a.size)
    d = np.where(a < 1, a + 2 / 3, a - 1 / 3)
    c = 1 / (3 * np.sqrt(d))
    z, z_error = c * x, c * x_error
    v = 1 + z
    log_v, log_d = np.log1p(z), np.log(d)
    log_u, relative = log_uniform(trial.accept)
    h = 3 * d * (log_v - z * (1 - z * (1 / 2 - z / 3)))
    log_g = log_d + 3 * log_v
    size = 1 + np.abs(log_d) + 3 * np.abs(log_v)
    log_g_error = 4 * z_error / v + _ROUNDOFF * size
    if trial.boost.size:
        boost, boost_error = _boosts(trial.boost, a)
        log_g += boost
        log_g_error += boost_error
    q = np.abs(z) + z_error
    terms = np.abs(log_v) + q * (1 + q * (1 + q))
    h_error = 3 * d * (2 * z_error * q * q * q / v + _ROUNDOFF * terms)
    excess_error = h_error + relative * np.abs(log_u)
    return _Estimate(v, z_error, log_u - h, excess_error, log_g, log_g_error)


def normals(radius: Words, angle: Words, count: int) -> tuple[Floats, Floats]:
    """Box and Muller's normals, cosines before sines, and their margins."""
    log_u, relative = log_uniform(radius)
    R = np.sqrt(-2 * log_u)
    theta = (angle + 0.5) * _TURN
    x = np.concatenate((R * np.cos(theta), R * np.sin(theta)))
    error = R * (_ROUNDOFF + relative)
    return x[:count], np.concatenate((error, error))[:count]


def _boosts(words: Words, a: Floats) -> tuple[Floats, Floats]:
    """Return log(U) / a where a < 1, zero elsewhere, and their margins."""
    log_u, relative = log_uniform(words)
    boost = np.where(a < 1, log_u / a, 0.0)
    return boost, np.where(a < 1, -boost * relative, 0.0)


def log_uniform(words: Words) -> tuple[Floats, Floats]:
    """Return the logarithms of the uniforms at the words' centres, and their relative margins.

    A word counts steps of 2^-64 up from 0 if it is not negative, down from 1 otherwise, so that
    neither end of (0, 1) loses relative precision.
    """
    steps = words ^ (words >> 63)
    distance = (steps + 0.5) * 2.0**-64
    log_u = np.where(words < 0, np.log1p(-distance), np.log(distance))
    return log_u, _ROUNDOFF + 2 / steps


def _rounded(y: Floats) -> Floats:
    """Round to the fixed grid."""
    bits = np.minimum(FINEST_BITS, SIGNIFICANT_BITS - np.frexp(y)[1])
    # Adding zero makes -0.0 a 0.0: its sign would tell more than the rounding.
    rounded: Floats = np.ldexp(np.rint(np.ldexp(y, bits)), -bits)
    return rounded + 0.0
