"""How long from here to there: first passage times, the fundamental matrix, Kemeny's constant.

Let ``h_ij`` be the mean number of steps from i until j is first met (``h_jj = 0``). A state k that
is not wanted as a destination can be eliminated as in GTH, if every state carries the mean time
``tau`` between two looks at the censored chain. Dropping the states 2 of ``M = I - P`` leaves

    M_11 + M_12 W,      tau_1 - M_12 v,      W = -M_22^-1 M_21,      v = M_22^-1 tau_2,

where W holds the probabilities of where the kept states are entered and v the time it takes, and
the passage times from dropped states follow from those of kept ones: ``H_21 = v 1^T + W H_11``.
One half of the destinations drops the other half, then each half does so again within itself. The
whole costs about as much as inverting a matrix, and no step subtracts, so every mean first passage
time is right to rounding, also between parts of a chain that hardly ever meet. There,
``inv(I - P + 1 pi^T)`` has no correct digit.

Kemeny's constant ``sum_j pi_j h_ij`` (the same for every start i) and the diagonal of the
fundamental matrix are sums of such times, and as accurate. Kemeny and Snell, *Finite Markov
Chains*, ch. 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.chain.stationary import eliminate
from dpmarkov.chain.structure import the_closed_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["fundamental_matrix", "hitting_times", "kemeny_constant", "mean_first_passage_times"]


def hitting_times(P: Any) -> Floats:
    """Return the mean number of steps from each state until each state is first met.

    Parameters
    ----------
    P : array_like, shape (n, n)
        Transition probabilities of an irreducible chain.

    Returns
    -------
    ndarray, shape (n, n)
        Entry (i, j) is the mean time from i to j, to rounding; zero on the diagonal.

    Examples
    --------
    >>> hitting_times([[0.9, 0.1], [0.3, 0.7]]).round(4)
    array([[ 0.    , 10.    ],
           [ 3.3333,  0.    ]])
    """
    M = -np.asarray(P, dtype=np.float64)
    return _by_halves(M, np.ones(len(M)))


def mean_first_passage_times(P: Any, pi: Floats) -> Floats:
    """Return the mean number of steps from each state to the next visit of each state.

    Parameters
    ----------
    P : array_like, shape (n, n)
        Transition probabilities of an irreducible chain.
    pi : ndarray, shape (n,)
        Its stationary distribution.

    Returns
    -------
    ndarray, shape (n, n)
        Off the diagonal the hitting times; on it the mean times to return, ``1 / pi``.

    Examples
    --------
    >>> mean_first_passage_times([[0.9, 0.1], [0.3, 0.7]], np.array([0.75, 0.25])).round(4)
    array([[ 1.3333, 10.    ],
           [ 3.3333,  4.    ]])
    """
    times = hitting_times(P)
    np.fill_diagonal(times, 1 / pi)
    return times


def fundamental_matrix(P: Any, pi: Floats) -> Floats:
    """Return ``Z = inv(I - P + 1 pi^T)``, without inverting it.

    From the passage times, ``z_jj = pi_j (1 + sum_i pi_i h_ij)`` and
    ``z_ij = z_jj - pi_j h_ij``. For transient j, ``z_ij`` is the mean number of visits of j.

    Parameters
    ----------
    P : array_like, shape (n, n)
        Transition probabilities of a chain with one closed class.
    pi : ndarray, shape (n,)
        Its stationary distribution.

    Returns
    -------
    ndarray, shape (n, n)
        The fundamental matrix of Kemeny and Snell.

    Raises
    ------
    DpmarkovError
        If there are several closed classes.

    Examples
    --------
    >>> fundamental_matrix([[0.9, 0.1], [0.3, 0.7]], np.array([0.75, 0.25]))
    array([[ 1.375, -0.375],
           [-1.125,  2.125]])
    """
    P = np.asarray(P, dtype=np.float64)
    if (pi > 0).all():
        return _fundamental_from(hitting_times(P), pi)
    return _fundamental_with_transient(P, pi)


def kemeny_constant(P: Any, pi: Floats) -> float:
    """Return the mean time from any state to a state drawn from the stationary distribution.

    A start that is drawn itself counts as met at once, so that the constant is
    ``trace(Z) - 1 = sum of 1 / (1 - lambda)`` over the eigenvalues other than one.

    Parameters
    ----------
    P : array_like, shape (n, n)
        Transition probabilities of a chain with one closed class.
    pi : ndarray, shape (n,)
        Its stationary distribution.

    Returns
    -------
    float
        Kemeny's constant.

    Examples
    --------
    >>> round(kemeny_constant([[0.9, 0.1], [0.3, 0.7]], np.array([0.75, 0.25])), 6)
    2.5
    """
    P = np.asarray(P, dtype=np.float64)
    if (pi > 0).all():
        return float(pi @ hitting_times(P) @ pi)
    return float(np.trace(_fundamental_with_transient(P, pi)) - 1)


def _by_halves(M: Floats, tau: Floats) -> Floats:
    """Return the hitting times of a chain whose steps take tau; the diagonal of M is ignored."""
    n = len(M)
    H = np.zeros((n, n))
    if n == 1:
        return H
    low, high = slice(None, n // 2), slice(n // 2, None)
    for keep, drop in ((low, high), (high, low)):
        W, v = _absorb(M[drop, drop], M[drop, keep], tau[drop])
        H[keep, keep] = _by_halves(M[keep, keep] + M[keep, drop] @ W, tau[keep] - M[keep, drop] @ v)
        H[drop, keep] = W @ H[keep, keep] + v[:, None]
    return H


def _absorb(M22: Floats, M21: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """Return where and when the kept states are entered from the dropped ones: W and v."""
    solution = _inverse_times(M22, M21.sum(axis=1), np.column_stack((-M21, tau)))
    return solution[:, :-1], solution[:, -1]


def _inverse_times(M: Floats, rho: Floats, right: Floats) -> Floats:
    """Return ``M^-1 right``, where rho is minus the flow out of M and right is not negative."""
    from scipy.linalg.blas import dtrsm

    UL = np.array(M.T, order="F")
    eliminate(UL, rho)
    return np.asarray(dtrsm(1.0, UL, dtrsm(1.0, UL, right, lower=1, trans_a=1, diag=1), trans_a=1))


def _fundamental_from(H: Floats, pi: Floats) -> Floats:
    mean = 1 + pi @ H
    return np.asarray(pi * (mean - H))


def _fundamental_with_transient(P: Floats, pi: Floats) -> Floats:
    """Extend the fundamental matrix of the closed class R to the transient states T.

    With W the probabilities of where R is entered, v the time it takes and V the visits before,
    ``Z_RT = 0``, ``Z_TT = V`` and ``Z_TR = W Z_RR - v pi^T``.
    """
    R = the_closed_class(P, range(len(P)))
    T = np.setdiff1d(np.arange(len(P)), R)
    into_R = P[np.ix_(T, R)]
    right = np.column_stack((into_R, np.ones(len(T)), np.eye(len(T))))
    W, v, V = np.split(
        _inverse_times(-P[np.ix_(T, T)], -into_R.sum(axis=1), right),
        [len(R), len(R) + 1],
        axis=1,
    )
    Z = np.zeros_like(P)
    Z[np.ix_(R, R)] = _fundamental_from(hitting_times(P[np.ix_(R, R)]), pi[R])
    Z[np.ix_(T, R)] = W @ Z[np.ix_(R, R)] - v * pi[R]
    Z[np.ix_(T, T)] = V
    return Z
