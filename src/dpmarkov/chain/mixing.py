"""How fast a chain forgets: ergodicity coefficients, the second eigenvalue, the mixing time.

The ergodicity coefficient of a norm is the most that one step can stretch a difference of two
distributions, ``tau(P) = max ||x P|| / ||x||`` over x that sum to zero. For the 1-norm it is half
the largest distance of two rows (Dobrushin); for the norm of the paper's Definition 7 it is, for
one column in descending order, the sum of the largest floor(n/2) entries less that of the smallest.

In the long run differences shrink like ``|lambda_2|^t``. The mixing time says it without a limit:
the first t at which every start is within `tol` of the stationary distribution, in total variation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.chain.validation import DENSE_STATES, as_dense, is_sparse
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "ergodicity_coefficient_1",
    "ergodicity_coefficient_inf",
    "has_disjoint_rows",
    "mixing_time",
    "second_eigenvalue_modulus",
]

_PAIR_ROWS = 256  # rows compared with all others at a time: bounds the memory
_DOUBLINGS = 60  # 2^60 steps; a chain that has not mixed by then is two chains in practice


def ergodicity_coefficient_1(P: Floats) -> float:
    """Return ``1/2 max_ij sum_k |p_ik - p_jk|``.

    Parameters
    ----------
    P : ndarray, shape (n, n)
        Transition probabilities.

    Returns
    -------
    float
        Between 0 (one step forgets all) and 1.

    Examples
    --------
    >>> round(ergodicity_coefficient_1(np.array([[0.9, 0.1], [0.3, 0.7]])), 12)
    0.6
    """
    from scipy.spatial.distance import cdist

    largest = 0.0
    for start in range(0, len(P), _PAIR_ROWS):
        rows = P[start : start + _PAIR_ROWS]
        largest = max(largest, float(cdist(rows, P[start:], "cityblock").max()))
    return min(largest / 2, 1.0)


def has_disjoint_rows(P: Any) -> bool:
    """Tell, when it is plain to see, that two rows of a sparse chain have no destination in common.

    A row meets at most as many rows as its destinations have origins, all told. Then
    ``ergodicity_coefficient_1`` is exactly one, and no two rows need be compared.

    Parameters
    ----------
    P : sparse matrix, shape (n, n)
        Transition probabilities.

    Returns
    -------
    bool
        True only if there are two such rows.

    Examples
    --------
    >>> has_disjoint_rows(sparse.eye_array(5))
    True
    """
    pattern = sparse.csr_array(P != 0)
    origins = np.bincount(pattern.indices, minlength=P.shape[0])
    met = np.add.reduceat(origins[pattern.indices], pattern.indptr[:-1])
    return bool((met < P.shape[0]).any())


def ergodicity_coefficient_inf(P: Any) -> float:
    """Return the paper's tau_inf (Definition 7) in closed form.

    Parameters
    ----------
    P : ndarray or sparse matrix, shape (n, n)
        Transition probabilities.

    Returns
    -------
    float
        The largest, over columns, of the sum of the floor(n/2) largest entries less the sum of the
        floor(n/2) smallest.

    Examples
    --------
    >>> round(ergodicity_coefficient_inf(np.array([[0.9, 0.1], [0.3, 0.7]])), 12)
    0.6
    """
    n = P.shape[0]
    if not is_sparse(P):
        return float(_halves_apart(np.sort(P, axis=0), n).max(initial=0.0))
    P = sparse.csc_array(P)
    entries = np.diff(P.indptr)
    crowded = np.flatnonzero(entries > n // 2)
    # In any other column the smaller half is zero and the larger half holds all there is.
    apart = np.where(entries > n // 2, 0.0, P.sum(axis=0))
    for column in crowded:
        apart[column] = _halves_apart(np.sort(P[:, [column]].toarray(), axis=0), n)[0]
    return float(apart.max()) if n > 1 else 0.0


def _halves_apart(ascending: Floats, n: int) -> Floats:
    half = n // 2
    return np.asarray(ascending[n - half :].sum(axis=0) - ascending[:half].sum(axis=0))


def second_eigenvalue_modulus(P: Any, pi: Floats) -> float:
    """Return the modulus of the second largest eigenvalue of an aperiodic chain.

    Parameters
    ----------
    P : ndarray or sparse matrix, shape (n, n)
        Transition probabilities of a chain with one closed class, which is aperiodic.
    pi : ndarray, shape (n,)
        Its stationary distribution, which only large sparse chains need.

    Returns
    -------
    float
        To about 1e-15 in absolute terms for a well-conditioned eigenvalue of a dense chain.

    Examples
    --------
    >>> P, pi = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.75, 0.25])
    >>> round(second_eigenvalue_modulus(P, pi), 12)
    0.6
    """
    if P.shape[0] == 1:
        return 0.0
    if is_sparse(P) and P.shape[0] > DENSE_STATES:
        from dpmarkov.chain.sparse import second_eigenvalue

        return min(float(abs(second_eigenvalue(P, pi))), 1.0)
    moduli = np.sort(np.abs(np.linalg.eigvals(as_dense(P, "the spectrum"))))
    return min(float(moduli[-2]), 1.0)


def mixing_time(P: Floats, pi: Floats, tol: float) -> int:
    """Return the smallest t with ``max_i TV(P^t(i, .), pi) <= tol``.

    The distance never grows with t. So P is squared until it is small enough, and the powers
    collected on the way are multiplied together as in a binary search. Every product's rows are
    scaled back to sum to one, which keeps even a flow of 1e-17 to its relative accuracy.

    Parameters
    ----------
    P : ndarray, shape (n, n)
        Transition probabilities of a chain with one closed class, which is aperiodic.
    pi : ndarray, shape (n,)
        Its stationary distribution.
    tol : float
        The distance to reach.

    Returns
    -------
    int
        The mixing time; 0 if every start is as near as that already.

    Raises
    ------
    DpmarkovError
        If 2^60 steps are not enough.

    Examples
    --------
    >>> mixing_time(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.75, 0.25]), 0.01)
    9
    """
    if _distance(np.eye(len(P)), pi) <= tol:
        return 0
    powers = [P]
    while _distance(powers[-1], pi) > tol:
        if len(powers) > _DOUBLINGS:
            raise DpmarkovError(
                f"the chain is still {_distance(powers[-1], pi):.3g} from its stationary "
                f"distribution after 2^{_DOUBLINGS} steps, and tol is {tol}: its parts are almost "
                "disconnected. Raise tol, or look at one part with restrict(states)"
            )
        powers.append(_product(powers[-1], powers[-1]))
    return _first_within(powers, pi, tol)


def _first_within(powers: list[Floats], pi: Floats, tol: float) -> int:
    """Return one more than the largest t that is still too far, bit by bit from above."""
    t, reached = 0, np.eye(len(pi))
    for bit in range(len(powers) - 2, -1, -1):
        further = _product(reached, powers[bit])
        if _distance(further, pi) > tol:
            t, reached = t + 2**bit, further
    return t + 1


def _product(A: Floats, B: Floats) -> Floats:
    AB = A @ B
    AB /= AB.sum(axis=1, keepdims=True)
    return np.asarray(AB)


def _distance(P: Floats, pi: Floats) -> float:
    return float(np.abs(P - pi).sum(axis=1).max()) / 2
