"""Predicted errors of a calibrated mechanism on a public shape, in closed form.

All are functions of public numbers, so they cost nothing and may be published. To first order in
the noise; where noise is as large as the counts themselves the projection to positive rows keeps
errors below what is predicted, and the prediction is marked as rough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmarkov import accuracy
from dpmarkov.errors import DpmarkovError
from dpmarkov.noise import Geometric

if TYPE_CHECKING:
    from dpmarkov.planning.noise import Setting
    from dpmarkov.planning.shape import Shape

__all__ = ["Deviations", "Prediction", "deviations", "predict"]

Floats = npt.NDArray[np.float64]

# The closed forms of a chain need dense matrices, and take some seconds beyond.
_MOST_STATES = 1000
# Noise of this share of a mean cell: fewer than 1 in 40 normal variates fall below zero.
_SMALL_NOISE = 0.5
# What a cell that noise drowns adds to the KL divergence of its row, in standard deviations of its
# noise: mostly what is left of it above zero. Simulations of many tables gave 0.4 to 0.5.
_DROWNED = 0.45
# Points at which a smooth function is interpolated.
_GRID = 17


@dataclass(frozen=True)
class Prediction:
    """What to expect of a release.

    Parameters
    ----------
    epsilon, delta : float
        The target.
    states : int
        Number of origins.
    parameter : float
        The rate of the Dirichlet mechanism, the scale of the others.
    prior : float
        Pseudo-counts.
    noise : float
        Standard deviation of the noise on a typical count.
    mean_cell : float or None
        Expected count of a typical feasible transition.
    row_tv, row_kl : float or None
        Expected total variation and KL divergence of a row, averaged over transitions.
    stationary_tv : float or None
        Expected total variation of the stationary distribution (square spaces).
    ergodicity : float or None
        At most this is the expected error of the ergodicity coefficient in the infinity norm.
    reliable : bool
        Whether noise is small enough for a first-order prediction.
    max_cells, max_per_cell : int or None
        The bounds of a user (unit `user`).
    """

    epsilon: float
    delta: float
    states: int
    parameter: float
    prior: float
    noise: float
    mean_cell: float | None
    row_tv: float | None
    row_kl: float | None
    stationary_tv: float | None
    ergodicity: float | None
    reliable: bool
    max_cells: int | None = None
    max_per_cell: int | None = None


def predict(setting: Setting, shape: Shape, *, epsilon: float, delta: float) -> Prediction:
    """Predict the errors of a release.

    Parameters
    ----------
    setting : Setting
        The calibrated mechanism.
    shape : Shape
        What is public.
    epsilon, delta : float
        What it was calibrated to.

    Returns
    -------
    Prediction
        Without errors where the size is not known in public.
    """
    cell = shape.mean_cell
    sd = float(np.sqrt(setting.variance(cell or 0.0)))
    known = (epsilon, delta, shape.space.shape[0], setting.parameter, setting.prior, sd, cell)
    if shape.row_totals is None or cell is None:
        return Prediction(*known, None, None, None, None, reliable=False, **setting.bounds)
    rows = _rows(setting, shape, np.maximum(shape.row_totals, 1.0))
    weights = shape.row_totals / shape.row_totals.sum()
    long_run = _long_run(shape, rows)
    stationary = None if long_run is None else long_run.expected_tv
    if stationary is not None and setting.as_drawn and setting.prior:
        stationary += _pull(shape, rows.q)
    return Prediction(
        *known,
        row_tv=float(weights @ rows.tv),
        row_kl=float(weights @ rows.kl),
        stationary_tv=None if stationary is None else min(stationary, 1.0),
        ergodicity=_ergodicity(shape, rows),
        reliable=(long_run is None or long_run.reliable) and sd <= _SMALL_NOISE * cell,
        **setting.bounds,
    )


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far off every number of a release may be, to first order.

    These are deviations of the noise alone. A prior that stays in the rows (``debias=False``) draws
    them towards uniform besides, which `Prediction` tells of as a whole.

    Parameters
    ----------
    cells : array of float
        Standard deviation of each probability, aligned with the support.
    rows : array of float
        Expected total variation of each row.
    states : array of float or None
        Standard deviation of each state's share of the long run (square spaces of at most 1,000
        states).
    """

    cells: Floats
    rows: Floats
    states: Floats | None


def deviations(setting: Setting, shape: Shape) -> Deviations:
    """Predict how far off every number of a release is.

    Parameters
    ----------
    setting : Setting
        The calibrated mechanism.
    shape : Shape
        What is public, with row totals.

    Returns
    -------
    Deviations
        No probability is further off than 1, however much noise there is.
    """
    if shape.row_totals is None:
        raise DpmarkovError("deviations need row totals: give row_totals= or expected_total=")
    rows = _rows(setting, shape, np.maximum(shape.row_totals, 1.0))
    long_run = _long_run(shape, rows)
    return Deviations(
        np.minimum(np.sqrt(np.maximum(rows.variance, 0.0)), 1.0),
        np.minimum(rows.tv, 1.0),
        None if long_run is None else np.minimum(long_run.standard_deviation, 1.0),
    )


class _Rows(NamedTuple):
    """Errors of every row, and of every cell those errors and the noise behind them.

    M is the mean absolute deviation of a cell, v the variance of its noise and q its centre.
    """

    tv: Floats
    kl: Floats
    M: Floats
    variance: Floats
    v: Floats
    q: Floats


def _rows(setting: Setting, shape: Shape, N: Floats) -> _Rows:
    """Predict every row. One that nobody leaves has no weight, and a size of 1 stands in."""
    space, C = shape.space, shape.probabilities
    v, q = setting.relative(C, N, space)
    variance = v * (1 - 2 * q) + q**2 * space.spread(space.row_sums(v))
    if setting.as_drawn:
        M, kl = _as_drawn(setting, C, N, shape)
        return _Rows(space.row_sums(M) / 2, kl, M, variance, v, q)
    M = np.sqrt(2 / np.pi * variance)
    if isinstance(setting.law, Geometric):
        M = _geometric_deviation(setting.law, q, space.spread(space.row_sizes)) / space.spread(N)
    # No two rows are further apart than 1, however much noise there is on few transitions.
    shrink = 1 / np.maximum(space.row_sums(M) / 2, 1.0)
    per_cell = space.spread(shrink)
    M, variance, v = M * per_cell, variance * per_cell**2, v * per_cell**2
    kl = np.divide(variance, 2 * C, out=np.full_like(C, np.inf), where=C > 0)
    kl = np.minimum(kl, _DROWNED * np.sqrt(variance))
    return _Rows(space.row_sums(M) / 2, space.row_sums(kl), M, variance, v, q)


def _geometric_deviation(law: Geometric, q: Floats, n: npt.NDArray[np.int64]) -> Floats:
    """Mean absolute deviation of a count: its own noise, on the lattice, and a share of the row's.

    A third or more of small geometric noise is exactly 0, so a normal law would not do. The rest of
    the row adds nearly normal noise, of standard deviation t relative to its own.
    """
    own = np.maximum(1 - q, 1e-9)
    t = q * np.sqrt((n - 1) * law.variance) / own
    grid = np.linspace(t.min(), t.max(), _GRID)
    return np.asarray(own * np.interp(t, grid, [_smoothed(law, x) for x in grid]))


def _smoothed(law: Geometric, t: float) -> float:
    """Give E|X + t Z|, X two-sided geometric and Z standard normal."""
    from scipy.special import erf

    x = np.arange(int(40 * law.scale) + 2)
    weights = np.tanh(0.5 / law.scale) * np.exp(-x / law.scale) * np.where(x > 0, 2, 1)
    z = x / max(t, 1e-9)
    folded = t * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + x * erf(z / np.sqrt(2))
    return float(weights @ folded)


def _as_drawn(setting: Setting, C: Floats, N: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """Dirichlet rows as they are drawn: Lemma 7 for every cell, Theorem 2 for every row.

    The prior shifts a cell by ``p - C``, which adds to its noise at most in full.
    """
    from scipy.special import digamma, xlogy

    space, p = shape.space, setting.means(C, N, shape.space)
    k = setting.parameter * (N + space.row_sizes * setting.prior)
    pairs = np.column_stack([p, 1 - p])
    spread = np.asarray(accuracy.mean_absolute_deviation(pairs, space.spread(k), released=True))
    surprise = xlogy(C, C) + C * (digamma(space.spread(k)) - digamma(space.spread(k) * p))
    return spread[:, 0] + np.abs(p - C), space.row_sums(surprise)


def _long_run(shape: Shape, rows: _Rows) -> accuracy.StationaryPrediction | None:
    space = shape.space
    if space.kind != "square" or space.shape[0] > _MOST_STATES:
        return None
    pi, Z = shape.long_run
    covariance = accuracy.stationary_covariance(
        pi, Z, space.to_dense(rows.v), space.to_dense(rows.q)
    )
    sigma = np.sqrt(covariance.diagonal())
    expected_tv = float(sigma.sum() / np.sqrt(2 * np.pi))
    return accuracy.StationaryPrediction(expected_tv, sigma, pi, publishable=True)


def _pull(shape: Shape, means: Floats) -> float:
    """How far the long run of rows that a prior draws towards uniform lies from that of the rows.

    It adds to the noise at most in full.
    """
    from dpmarkov.chain import stationary_distribution

    pi, _ = shape.long_run
    pulled = stationary_distribution(shape.space.to_dense(means))
    return float(np.abs(pulled - pi).sum() / 2)


def _ergodicity(shape: Shape, rows: _Rows) -> float | None:
    """Bound as in `dpmarkov.accuracy.ergodicity_bound`, for the noise of any mechanism."""
    if shape.space.kind != "square":
        return None
    columns = np.bincount(shape.space.columns, weights=rows.M, minlength=shape.space.shape[1])
    rest = np.maximum(rows.variance - rows.M**2, 0.0).sum()
    return float(columns.max() + np.sqrt(rest))
