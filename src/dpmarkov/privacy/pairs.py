r"""Dominating pairs, and the exact hockey-stick divergence between their two sides.

Lemma A of ``theory`` reduces a whole release to one pair of one-dimensional laws: for the
`destination` unit Beta(kappa + h, kappa) against Beta(kappa, kappa + h), for `transition`
Gamma(kappa + h) against Gamma(kappa), in both directions. No neighbouring databases can be told
apart better than these two laws, and for `destination` and `transition` some can be told apart
exactly as well.

The closed forms (differences of incomplete beta or gamma functions) cancel: both terms may be
near 1 where their difference is 1e-12, or both underflow where it is 6e-4. All three pairs share
a better form. On the scale ``t`` of log odds (Beta) or of logarithms (Gamma) the privacy loss is
*linear* with slope ``h`` and the density is log-concave, ``f(t) = f(t_0) exp(-D(t - t_0))`` with
its mode ``t_0`` and a *deviance* ``D`` that is an elementary function. With ``y_0`` the place,
measured from the mode, where the loss reaches epsilon,

.. math:: \delta(\epsilon) = f(t_0) \int_0^\infty (1 - e^{-h s}) \, e^{-D(y_0 + s)} \, ds .

Every factor is positive, so nothing cancels. The integral is cut at ``R``, where the density has
fallen below any rounding error, and taken by the trapezium rule in ``u = log(s / (R - s))``: it
converges geometrically, whatever the scales of ``1/h``, of ``D`` and of the tail are. The result is
enlarged by a bound on the rounding error of this computation, so that delta is never understated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln

__all__ = ["DROP", "Pair", "beta_pair", "gamma_pair_add", "gamma_pair_remove", "hockey_stick"]

Floats = npt.NDArray[np.float64]

_ULP = 2.0**-52
_NODES = 768
# The integrand is cut where its density has fallen by exp(-55): far below the rounding error.
DROP = 55.0
# Below exp(-19) of its smallest scale the integrand holds less than 1e-16 of the integral.
_LEFT = -19.0
# Coefficients of 1/a, 1/a^3, ... in Stirling's series; from a = 10 on the rest is below 1e-15.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
_SHIFT = 10


class Pair(Protocol):
    """A dominating pair of theory section 3, as a function of mass, shift and epsilon."""

    def __call__(self, kappa: Floats, h: Floats, epsilon: Floats) -> Floats:
        """Give delta(epsilon), exact up to rounding and never below the truth."""


def beta_pair(kappa: Floats, h: Floats, epsilon: Floats) -> Floats:
    """Beta(kappa + h, kappa) against Beta(kappa, kappa + h), its own mirror image.

    Parameters
    ----------
    kappa, h, epsilon : arrays of float, of one dimension and length
        Mass and shift in units of the rate, and the epsilons asked for (theory section 3).

    Returns
    -------
    array of float
        delta(epsilon) from above.
    """
    a, b = kappa + h, kappa
    log_peak = 0.5 * (np.log(a) + np.log(b) - np.log(2 * np.pi * (a + b)))
    log_peak += _stirling(a + b) - _stirling(a) - _stirling(b)
    mode, threshold = np.log1p(h / kappa), epsilon / h
    return hockey_stick(_LogOdds(a, b), log_peak, h, threshold - mode, threshold + mode)


def gamma_pair_add(kappa: Floats, h: Floats, epsilon: Floats) -> Floats:
    """Gamma(kappa + h) against Gamma(kappa): who has a transition more.

    Parameters and result are those of `beta_pair`.
    """
    a, middle, mode = kappa + h, _mean_digamma(kappa, h), np.log1p(h / kappa)
    y0 = epsilon / h + middle - mode
    # exp(y0) must not overflow; a smaller y0 can only make delta larger.
    y0_error = epsilon / h + np.abs(middle) + mode
    return hockey_stick(_LogGamma(a, 1), _log_gamma_peak(a), h, np.minimum(y0, 300.0), y0_error)


def gamma_pair_remove(kappa: Floats, h: Floats, epsilon: Floats) -> Floats:
    """Gamma(kappa) against Gamma(kappa + h): who has a transition less.

    Parameters and result are those of `beta_pair`.
    """
    middle = _mean_digamma(kappa, h)
    y0 = epsilon / h - middle
    y0_error = epsilon / h + np.abs(middle)
    return hockey_stick(_LogGamma(kappa, -1), _log_gamma_peak(kappa), h, y0, y0_error)


# -- the integral --------------------------------------------------------------------------


class _Deviance(Protocol):
    """A convex D with D(0) = D'(0) = 0: how fast a log-concave density falls from its mode."""

    def value(self, y: Floats) -> Floats:
        """D(y)."""

    def slope(self, y: Floats) -> Floats:
        """D'(y)."""

    def terms(self, y: Floats) -> Floats:
        """Size of the terms that D(y) is the difference of."""

    def reach(self) -> Floats:
        """A distance to the right of the mode from which Newton's method may start."""


@dataclass(frozen=True)
class _LogOdds:
    """The log odds of a Beta(a, b) variate: D = b y + (a + b) log(p + q exp(-y))."""

    a: Floats
    b: Floats

    def value(self, y: Floats) -> Floats:
        n = self.a + self.b
        q = self.b / n
        return np.asarray(n * (q * y + np.log1p(q * np.expm1(-y))))

    def slope(self, y: Floats) -> Floats:
        q = self.b / (self.a + self.b)
        fall = -np.expm1(-y)
        return np.asarray(self.a * q * fall / (1.0 - q * fall))

    def terms(self, y: Floats) -> Floats:
        return np.asarray(2 * self.b * np.abs(y))

    def reach(self) -> Floats:
        return np.asarray(np.sqrt(2 * DROP * (1 / self.a + 1 / self.b)))


@dataclass(frozen=True)
class _LogGamma:
    """The logarithm of a Gamma(a) variate, or minus it: D = a (exp(z) - 1 - z), z = +-y."""

    a: Floats
    sign: int

    def value(self, y: Floats) -> Floats:
        z = self.sign * y
        return np.asarray(self.a * (np.expm1(z) - z))

    def slope(self, y: Floats) -> Floats:
        return np.asarray(self.sign * self.a * np.expm1(self.sign * y))

    def terms(self, y: Floats) -> Floats:
        z = self.sign * y
        return np.asarray(self.a * (np.abs(np.expm1(z)) + np.abs(z)))

    def reach(self) -> Floats:
        gaussian = np.sqrt(2 * DROP / self.a)
        return np.minimum(gaussian, np.log1p(2 * DROP / self.a)) if self.sign > 0 else gaussian


def hockey_stick(
    deviance: _Deviance, log_peak: Floats, h: Floats, y0: Floats, y0_terms: Floats
) -> Floats:
    """Compute exp(log_peak) times the integral over s > 0 of (1 - e^(-h s)) e^(-D(y0 + s)).

    `y0_terms` is the size of the terms that y0 is the difference of, for the rounding bound.
    """
    top = np.maximum(y0, 0.0)  # where the density is highest beyond the threshold
    floor = deviance.value(top)
    right = _cut(deviance, top + deviance.reach(), floor + DROP) - y0
    right = np.maximum(right, 64 * _ULP * top)  # lost in y0 only where delta is exp(-1e13)
    left = np.where(y0 < 0, _cut(deviance, np.minimum(y0, -1e-300), floor + DROP) - y0, 0.0)
    start = np.maximum(left, np.minimum(1 / h, right / DROP) * np.exp(_LEFT))
    lower = np.log(start / (right - start))
    upper = np.log(right * deviance.slope(y0 + right) / 5.0)
    step = (upper - lower) / (_NODES - 1)

    u = lower + step * np.arange(_NODES)[:, None]
    s = right * expit(u)
    y = y0 + s
    heights = np.exp(np.minimum(floor - deviance.value(y), 0.0)) * -np.expm1(-h * s) * s * expit(-u)
    total = heights.sum(axis=0)

    moved = np.abs(deviance.slope(y)) * (np.abs(y) + y0_terms + (1 + np.abs(u)) * s)
    rounding = ((deviance.terms(y) + moved) * heights).sum(axis=0) / total
    relative = 2 * _ULP * (64 + floor + np.abs(log_peak) + rounding)
    return _upper(log_peak - floor + np.log(total * step), relative)


def _cut(deviance: _Deviance, start: Floats, level: Floats) -> Floats:
    """Find, outwards of the mode, where D reaches a level, to within 1; D is convex.

    From outside Newton's method approaches without passing; from inside on the right its first
    step leads outside. A start on the left that is already inside is the end of the range.
    """
    y = start
    for _ in range(200):
        excess = deviance.value(y) - level
        busy = np.where(y > 0, np.abs(excess), excess) > 1.0
        if not busy.any():
            return y
        y = np.where(busy, y - excess / np.where(busy, deviance.slope(y), 1.0), y)
    return y


def _upper(log_delta: Floats, relative: Floats) -> Floats:
    """Leave the log domain upwards; a delta too small for a float64 is its smallest number."""
    return np.minimum(np.exp(log_delta) * (1 + relative) + 5e-324, 1.0)


# -- gamma functions without cancellation -----------------------------------------------------


def _stirling(a: Floats) -> Floats:
    """Compute log Gamma(a) - (a - 1/2) log a + a - log(2 pi) / 2."""
    large = np.maximum(a, _SHIFT)
    series = sum(c * large ** -(2.0 * k + 1) for k, c in enumerate(_STIRLING))
    small = np.minimum(a, _SHIFT)
    direct = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    return np.where(a >= _SHIFT, series, direct)


def _log_gamma_peak(a: Floats) -> Floats:
    """Compute the log density of log G at its mode log(a), for G of Gamma(a)."""
    return np.asarray(0.5 * np.log(a / (2 * np.pi)) - _stirling(a))


def _mean_digamma(kappa: Floats, h: Floats) -> Floats:
    """Compute (log Gamma(kappa + h) - log Gamma(kappa)) / h - log(kappa), also for tiny h.

    The arguments are first raised to X = kappa + 10, where Stirling's series holds; its terms
    are differenced one by one, so that no two large numbers meet.
    """
    X = kappa + _SHIFT
    rise = np.log1p(h / X)
    series = sum(
        c * X ** -(2.0 * k + 1) * np.expm1(-(2 * k + 1) * rise) for k, c in enumerate(_STIRLING)
    )
    shift = sum(np.log1p(h / (kappa + j)) for j in range(_SHIFT))
    level = np.log1p((_SHIFT + h) / kappa)
    return np.asarray(level + ((X - 0.5) * rise / h - 1.0) + (series - shift) / h)
