"""The paper's bounds as printed, for comparison with it. Theorem 5 is false; rely on `chains`.

Theorems 4 and 5 share one step: Pinsker's inequality bounds the pi-weighted mean of the rows'
absolute deviations, and is then used for the largest column sum ``|P - P~|_1`` (Lemma 6 of the
supplement), which it does not bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.accuracy.checks import checked_floor, checked_long_run, checked_positive
from dpmarkov.accuracy.result import Result
from dpmarkov.accuracy.rows import kl_bound
from dpmarkov.chain import fundamental_matrix, stationary_distribution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "paper_ergodicity_bound",
    "paper_mean_absolute_deviation_lower_bound",
    "paper_stationary_bound",
]


def paper_stationary_bound(
    P: Any, k: ArrayLike, *, size: ArrayLike, released: bool = False
) -> Result:
    """Return Theorem 4 as printed: ``|Z|_1 / 2 sqrt(2 L)``. Its proof has a gap.

    The proof rests on the same step as Theorem 5, whose docstring shows the counter-example;
    `stationary_bound` is proved. The norm of ``Z = (I - P - 1 pi^T)^-1`` is read as that of row
    vectors, the largest absolute row sum, without which the perturbation bound that the proof
    starts from does not hold.

    Parameters
    ----------
    P : MarkovChain, array_like or sparse matrix
        The chain, irreducible; positive entries are the feasible transitions.
    k : array_like
        The Dirichlet parameter: one number, or one per row.
    size : array_like
        The public sizes N_i of the rows: one number, or one per row.
    released : bool
        True if P is itself released, so that the result is publishable.

    Returns
    -------
    Result
        What the paper states for the expected total variation error.
    """
    P = checked_long_run(P)
    pi = stationary_distribution(P)
    Z = fundamental_matrix(P, pi) - 2 * pi  # from I - P + 1 pi^T to the paper's I - P - 1 pi^T
    norm = np.abs(Z).sum(axis=1).max()
    return Result(float(norm / 2 * np.sqrt(2 * _divergence(P, pi, k, size))), released)


def paper_ergodicity_bound(
    P: Any, k: ArrayLike, *, size: ArrayLike, released: bool = False
) -> Result:
    """Return Theorem 5 as printed: ``sqrt(2 L)``. **It is false**; use `ergodicity_bound`.

    Parameters
    ----------
    P : MarkovChain, array_like or sparse matrix
        The chain, irreducible; positive entries are the feasible transitions.
    k : array_like
        The Dirichlet parameter: one number, or one per row.
    size : array_like
        The public sizes N_i of the rows: one number, or one per row.
    released : bool
        True if P is itself released, so that the result is publishable.

    Returns
    -------
    Result
        What the paper states for the expected error of the ergodicity coefficient.

    Examples
    --------
    The counter-example: identical rows, half of whose mass is spread evenly.

    >>> from dpmarkov.accuracy import ergodicity_bound
    >>> n, noise = 50, np.random.default_rng(0)
    >>> row = np.array([0.5] + [0.5 / (n - 1)] * (n - 1))
    >>> P, k = np.tile(row, (n, 1)), 1.5 / row.min()
    >>> def tau(P):
    ...     ordered = np.sort(P, axis=0)
    ...     return (ordered[-(n // 2) :].sum(axis=0) - ordered[: n // 2].sum(axis=0)).max()
    >>> private = [noise.dirichlet(k * row, size=n) for _ in range(200)]
    >>> print(f"simulated {np.mean([abs(tau(Q) - tau(P)) for Q in private]):.1f}")
    simulated 1.6
    >>> print(f"printed {paper_ergodicity_bound(P, k, size=1e5):.2f}")
    printed 0.81
    >>> print(f"sound {ergodicity_bound(P, k):.2f}")
    sound 1.96
    """
    P = checked_long_run(P)
    L = _divergence(P, stationary_distribution(P), k, size)
    return Result(float(np.sqrt(2 * L)), released)


def paper_mean_absolute_deviation_lower_bound(
    *, size: ArrayLike, categories: ArrayLike, k: ArrayLike
) -> Result:
    """Return Lemma 8 as printed: true, and mostly zero in floating point.

    `mean_absolute_deviation_lower_bound` is the largest such bound.

    Parameters
    ----------
    size : array_like
        The public size N of the row.
    categories : array_like
        The number n of categories, each of them seen.
    k : array_like
        The Dirichlet parameter.

    Returns
    -------
    Result
        ``2 (1/N)^(k (1 - (n-1)/N)) ((n-1)/N)^(k (1 - 1/N)) / (k B(k/N, k (n-1)/N))``, publishable.
    """
    from scipy.special import betaln

    eta, k = checked_floor(size, None, categories), checked_positive(k, "k")
    rest = (np.asarray(categories) - 1) * eta
    powers = k * ((1 - rest) * np.log(eta) + (1 - eta) * np.log(rest))
    value = np.exp(np.log(2 / k) + powers - betaln(k * eta, k * rest))
    return Result(value if np.ndim(value) else float(value), publishable=True)


def _divergence(
    P: NDArray[np.float64], pi: NDArray[np.float64], k: ArrayLike, size: ArrayLike
) -> float:
    """Return L of Theorem 4: Corollary 1 of every row, weighted by pi."""
    bounds = kl_bound(size=size, categories=np.count_nonzero(P, axis=1), k=k)
    return float(pi @ np.asarray(bounds))
