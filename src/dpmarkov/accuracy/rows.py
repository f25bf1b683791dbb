"""Errors of one released row: X ~ Dirichlet(k p) against its mean p, in closed form.

The functions of a row (``expected_kl``, ``mean_absolute_deviation``, ``variance``) depend on the
sensitive row: they are for the curator only, unless ``released=True`` says that the row passed is
itself a released one; then they are an estimate of the error, free of privacy cost. The bounds
depend on public numbers alone and hold for every row that the numbers allow: publishable.

With a prior m, ``p = (c + m) / (N + n m)`` and ``k = r (N + n m)``. A debiased row scales every
deviation by ``(N + n m) / N``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmarkov.accuracy.checks import checked_floor, checked_per_row, checked_positive, checked_rows
from dpmarkov.accuracy.result import Result
from dpmarkov.accuracy.stirling import digamma_gap, log_gamma_gap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "expected_kl",
    "kl_bound",
    "mean_absolute_deviation",
    "mean_absolute_deviation_bound",
    "mean_absolute_deviation_lower_bound",
    "variance",
    "variance_bound",
]


def expected_kl(C: ArrayLike, k: ArrayLike, *, released: bool = False) -> Result:
    """Return the expected Kullback-Leibler divergence of released rows from C (Theorem 2).

    Parameters
    ----------
    C : array_like
        Probabilities, rows on the last axis. Entries equal to 0 are infeasible and contribute 0.
    k : array_like
        The Dirichlet parameter: one number, or one per row.
    released : bool
        True if C is itself released, so that the result is publishable.

    Returns
    -------
    Result
        ``E[KL(C || X)] = sum_j C_j (log C_j + psi(k) - psi(k C_j))``, one per row.

    Examples
    --------
    >>> print(f"{expected_kl([0.2, 0.3, 0.5], k=100):.6f}")
    0.010078
    """
    C = checked_rows(C)
    k = checked_per_row(k, "k", C)
    gaps = np.where(C > 0, digamma_gap(k * C), 0.0).sum(axis=-1)
    return Result(_plain((gaps - digamma_gap(k)[..., 0]) / k[..., 0]), released)


def kl_bound(
    *,
    size: ArrayLike | None = None,
    categories: ArrayLike,
    k: ArrayLike,
    floor: ArrayLike | None = None,
) -> Result:
    """Return the largest expected KL divergence of any row (Corollary 1).

    Theorem 2 is a sum of one convex function of each entry, so it is largest at a vertex of the
    rows with every entry at least eta: ``(eta, ..., eta, 1 - (n - 1) eta)``, for every k > 0.

    Parameters
    ----------
    size : array_like, optional
        The public size N of the row, each category of which was seen: eta = 1/N.
    categories : array_like
        The number n of feasible categories.
    k : array_like
        The Dirichlet parameter.
    floor : array_like, optional
        Takes the place of 1/N: asserted by the curator, or ``m / (N + n m)`` with a prior m.

    Returns
    -------
    Result
        The bound, publishable as are the numbers it is computed from.

    Examples
    --------
    >>> print(kl_bound(size=98, categories=5, k=20.6, floor=0.073))
    0.10752493069... (publishable)
    """
    eta = checked_floor(size, floor, categories)
    n, k = np.asarray(categories, dtype=np.float64), checked_positive(k, "k")
    largest = np.maximum(1 - (n - 1) * eta, eta)
    gaps = (n - 1) * digamma_gap(k * eta) + digamma_gap(k * largest)
    return Result(_plain((gaps - digamma_gap(k)) / k), publishable=True)


def mean_absolute_deviation(C: ArrayLike, k: ArrayLike, *, released: bool = False) -> Result:
    """Return E|X_j - C_j| of every entry (Lemma 7).

    Parameters
    ----------
    C : array_like
        Probabilities, rows on the last axis.
    k : array_like
        The Dirichlet parameter: one number, or one per row.
    released : bool
        True if C is itself released, so that the result is publishable.

    Returns
    -------
    Result
        ``2 p^(kp) (1 - p)^(k (1 - p)) / (k B(kp, k (1 - p)))`` for every entry p of C.

    Examples
    --------
    >>> print(mean_absolute_deviation([0.5, 0.5], k=2))
    [0.25 0.25] (curator only)
    """
    C = checked_rows(C)
    return Result(_mean_absolute_deviation(C, checked_per_row(k, "k", C)), released)


def mean_absolute_deviation_bound(k: ArrayLike) -> Result:
    """Return the largest E|X_j - p| over all p, reached at p = 1/2 (Lemma 7).

    Parameters
    ----------
    k : array_like
        The Dirichlet parameter.

    Returns
    -------
    Result
        ``Gamma(k) 2^(1 - k) / (Gamma(k / 2)^2 k)``, publishable.
    """
    k = checked_positive(k, "k")
    return Result(_plain(_mean_absolute_deviation(np.full_like(k, 0.5), k)), publishable=True)


def mean_absolute_deviation_lower_bound(
    *, size: ArrayLike | None = None, k: ArrayLike, floor: ArrayLike | None = None
) -> Result:
    """Return the least E|X_j - p| over all entries p in [eta, 1 - eta].

    The deviation grows with p up to 1/2 and is symmetric about it, so the least is at eta. (Lemma
    8 bounds the factors apart and is many orders of magnitude smaller; see
    `paper_mean_absolute_deviation_lower_bound`.)

    Parameters
    ----------
    size : array_like, optional
        The public size N of the row, each of two or more categories of which was seen: eta = 1/N.
    k : array_like
        The Dirichlet parameter.
    floor : array_like, optional
        Takes the place of 1/N.

    Returns
    -------
    Result
        The bound, publishable.
    """
    eta = checked_floor(size, floor, categories=2)
    return Result(_plain(_mean_absolute_deviation(eta, checked_positive(k, "k"))), publishable=True)


def variance(C: ArrayLike, k: ArrayLike, *, released: bool = False) -> Result:
    """Return the mean square deviation ``p (1 - p) / (k + 1)`` of every entry p of C (Lemma 7).

    Parameters
    ----------
    C : array_like
        Probabilities, rows on the last axis.
    k : array_like
        The Dirichlet parameter: one number, or one per row.
    released : bool
        True if C is itself released, so that the result is publishable.

    Returns
    -------
    Result
        One variance for each entry.
    """
    C = checked_rows(C)
    return Result(C * (1 - C) / (checked_per_row(k, "k", C) + 1), released)


def variance_bound(k: ArrayLike) -> Result:
    """Return the largest mean square deviation over all p, ``1 / (4 (k + 1))`` (Lemma 7).

    Parameters
    ----------
    k : array_like
        The Dirichlet parameter.

    Returns
    -------
    Result
        The bound, publishable.
    """
    return Result(_plain(1 / (4 * (checked_positive(k, "k") + 1))), publishable=True)


def _mean_absolute_deviation(p: NDArray[np.float64], k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Lemma 7 with Stirling's formula taken out of its three gamma functions.

    The powers then cancel exactly: ``sqrt(2 p q / (pi k)) exp(R(k) - R(kp) - R(kq))``, R being
    the remainder and q = 1 - p. The normal approximation is R = 0.
    """
    q = 1 - p
    remainder = log_gamma_gap(k) - log_gamma_gap(k * p) - log_gamma_gap(k * q)
    deviation: NDArray[np.float64] = np.sqrt(2 * p * q / (np.pi * k)) * np.exp(remainder)
    return deviation


def _plain(x: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Return a plain number where there is only one."""
    return x if np.ndim(x) else float(x)
