"""Walks along a chain, many at a time.

A cloud of walkers without end is a distribution, and `evolve` moves that.

Every walker holds the number of its state. A step draws one uniform number per walker and looks it
up in the cumulative probabilities of the walker's own row, all walkers by one binary search in
parallel. Rows keep their positive entries only, so that an impossible step is never taken.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.chain.validation import is_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

__all__ = ["evolve", "walk"]

_FEW = 16  # walkers up to which each is better off alone


def evolve(P: Any, x: Floats, steps: int) -> Floats:
    """Return ``x P^steps``, by powers of P where that is less work than step by step.

    Examples
    --------
    >>> evolve(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([1.0, 0.0]), 10**18)
    array([0.5, 0.5])
    """
    if not is_sparse(P) and steps > P.shape[0] * steps.bit_length():
        return np.asarray(x @ np.linalg.matrix_power(P, steps))
    for _ in range(steps):
        x = x @ P
    return x


def walk(P: Any, start: Indices, steps: int, rng: np.random.Generator) -> Indices:
    """Return the states of every walker at the times 0, 1, ..., steps.

    Parameters
    ----------
    P : ndarray or sparse matrix, shape (n, n)
        Transition probabilities.
    start : ndarray of int, shape (walkers,)
        Where each walker begins.
    steps : int
        How many steps each takes.
    rng : numpy.random.Generator
        The source of chance.

    Returns
    -------
    ndarray of int, shape (walkers, steps + 1)
        Positions of states.

    Examples
    --------
    >>> turn = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> walk(turn, np.array([0, 1]), 3, np.random.default_rng(1)).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0]]
    """
    rows = sparse.csr_array(P)
    rows = sparse.csr_array(rows.multiply(rows > 0))
    rows.eliminate_zeros()
    first, last = rows.indptr[:-1], rows.indptr[1:] - 1
    up_to = _cumulative(rows)
    if len(start) <= _FEW:
        walkers = [
            _walk_alone(rows.indices, up_to, first, last, at, rng.random(steps)) for at in start
        ]
        return np.array(walkers, dtype=np.intp)
    paths = np.empty((steps + 1, len(start)), dtype=np.intp)
    paths[0] = start
    for now, then in pairwise(paths):
        drawn = rng.random(len(start)) * up_to[last[now]]
        then[...] = rows.indices[_search(up_to, drawn, first[now], last[now])]
    return np.ascontiguousarray(paths.T)


def _walk_alone(
    destination: Any, up_to: Floats, first: Any, last: Any, at: int, uniforms: Floats
) -> list[int]:
    """Walk by plain bisection: for a single walker an array's overhead is most of the work."""
    path = [int(at)]
    for u in uniforms.tolist():
        end = last[at]
        at = destination[bisect_right(up_to, u * up_to[end], first[at], end)]
        path.append(int(at))
    return path


def _cumulative(rows: Any) -> Floats:
    """Return the running sums of each row, added up within the row alone."""
    up_to = np.empty_like(rows.data)
    sizes = np.diff(rows.indptr)
    for size in np.unique(sizes):
        entries = rows.indptr[:-1][sizes == size][:, None] + np.arange(size)
        up_to[entries] = np.cumsum(rows.data[entries], axis=1)
    return np.asarray(up_to)


def _search(up_to: Floats, drawn: Floats, low: Any, high: Any) -> Any:
    """Return the first place in each walker's row whose running sum exceeds what was drawn."""
    low, high = low.copy(), high.copy()
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        beyond = up_to[middle] > drawn
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, np.minimum(middle + 1, high))
    return high
