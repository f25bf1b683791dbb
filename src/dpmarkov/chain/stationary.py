"""The stationary distribution, every entry to about 1e-13, by elimination without subtraction.

Grassmann, Taksar and Heyman (GTH, 1985) remove the states one after the other. The chain watched
only while it is in the states that are left is again a Markov chain, the *censored* chain:

    p_ij  <-  p_ij + p_ik p_kj / s_k,        s_k = sum of p_kj over the states j that are left.

Nothing is subtracted, and the diagonal is never read: the pivot is a sum of off-diagonal entries
and not ``1 - p_kk``. So no digit is lost, however small the flow between parts of the chain
(O'Cinneide, 1993), where every method that starts from ``1 - p_kk`` fails without a sign of it.

Here the same elimination runs by *halves*, so that matrix products do the work. With ``M = I - P``
split into states that stay (1) and states that go (2), the recursion factors ``M_22 = U L``
(U unit upper, L lower triangular), and

    M_11  <-  M_11 - (M_12 L^-1) (U^-1 M_21),        rho_1  <-  rho_1 - (M_12 L^-1) (U^-1 rho_2),

where ``rho`` carries the flow that leaves the block altogether. Off the diagonal M, U and L are
never positive, so both triangular solves and the product only ever add terms of one sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.chain.structure import the_closed_class
from dpmarkov.chain.validation import is_sparse
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["eliminate", "stationary_distribution"]

_LEAF = 8  # states below which plain Python beats a BLAS call
_BATCH_BYTES = 1 << 19  # a slice of a batch that stays in a core's cache
_TINY_STATES = 24  # up to here elementwise steps over the batch are faster than panels
_PANEL, _BATCHED_CHAINS = 8, 64
_BATCHED_STATES = 200  # above this, one chain alone fills the BLAS calls
_SAFE = 1e-290  # smaller pivots or results may have lost digits to underflow


def stationary_distribution(P: Any) -> Floats:
    """Return the stationary distribution of one chain or of each chain of a stack.

    Dense chains: entrywise relative error about 1e-13, also when parts of the chain are almost
    disconnected. Large sparse chains: see `dpmarkov.chain.sparse`.

    Parameters
    ----------
    P : array_like of shape (..., n, n), or sparse matrix of shape (n, n)
        Transition probabilities. The diagonal is ignored: it is taken to be what the rest of the
        row leaves over.

    Returns
    -------
    ndarray of shape (..., n)
        Positive on the only closed class, zero on transient states; it sums to one.

    Raises
    ------
    DpmarkovError
        If P is not square, has a negative or infinite entry, or has several closed classes.

    Examples
    --------
    >>> stationary_distribution([[0.9, 0.1], [0.3, 0.7]])
    array([0.75, 0.25])

    A flow of 1e-17 between two halves, which no ``1 - p_kk`` can hold:

    >>> stationary_distribution([[1, 1e-17], [3e-17, 1]])
    array([0.75, 0.25])
    """
    if is_sparse(P):
        from dpmarkov.chain.sparse import sparse_stationary_distribution

        return sparse_stationary_distribution(P)
    P = _nonnegative_square(np.asarray(P, dtype=np.float64))
    if P.ndim == 2:
        return _stationary(P)
    n = P.shape[-1]
    chains = P.reshape(-1, n, n)
    solve = _stationary_batch if n <= _BATCHED_STATES else _stationary_each
    pi: Floats = solve(chains).reshape(P.shape[:-1])
    return pi


def eliminate(G: Floats, rho: Floats) -> None:
    """Factor ``M = U L`` in place, last state first, without subtraction.

    Parameters
    ----------
    G : ndarray of shape (n, n), Fortran-ordered memory
        The *transpose* of M (a C-ordered P gives it without a copy): off-diagonal entries not
        positive, diagonal ignored. On return U^T lies below the diagonal (its own diagonal is one)
        and L^T on and above it.
    rho : ndarray of shape (n,)
        Minus the flow of each state out of the block.
    """
    n = len(rho)
    if n <= _LEAF:
        _eliminate_leaf(G, rho)
        return
    from scipy.linalg.blas import dtrsm

    h = -(-n // (2 * _LEAF)) * _LEAF  # whole leaves
    G12, G21 = G[:h, h:], G[h:, :h]
    eliminate(G[h:, h:], rho[h:] + G12.sum(axis=0))
    UL = np.asfortranarray(G[h:, h:])
    bordered = np.empty((h + 1, n - h), order="F")  # rho rides along as one more state
    bordered[:h], bordered[h] = G12, rho[h:]
    out = dtrsm(1.0, UL, bordered, side=1, lower=1, diag=1, overwrite_b=1)
    back = dtrsm(1.0, UL, G21)
    G12[...], G21[...] = out[:h], back
    G[:h, :h] -= out[:h] @ back
    eliminate(G[:h, :h], rho[:h] - out[h] @ back)


def _eliminate_leaf(G: Floats, rho: Floats) -> None:
    """Eliminate a few states by scalars: at this size a numpy call costs more than its work."""
    n = len(rho)
    g, flow = G.T.ravel().tolist(), rho.tolist()  # g[i * n + j] = m_ij
    for k in range(n - 1, -1, -1):
        row = g[k * n : k * n + k]
        pivot = g[k * n + k] = -(sum(row) + flow[k])
        for i in range(k if pivot else 0):
            at = i * n
            factor = g[at + k] = g[at + k] / pivot
            if factor:
                flow[i] -= factor * flow[k]
                for entry in row:
                    g[at] -= factor * entry
                    at += 1
    G.T[...] = np.array(g).reshape(n, n)


def _stationary(P: Floats) -> Floats:
    """Solve ``pi U = e_0``: the first state's row of L is zero, as nothing is left to go to."""
    from scipy.linalg.blas import dtrsv

    n = len(P)
    G = np.negative(P.T, order="F")
    with np.errstate(all="ignore"):  # what overflows is found below and done again
        eliminate(G, np.zeros(n))
        pi = dtrsv(G, np.eye(1, n)[0], lower=1, diag=1)
        pi /= pi.sum()
    pivots = G.diagonal()[1:]
    if (pivots > _SAFE).all() and (pi > _SAFE).all():
        return pi
    return _stationary_by_class(P)


def _stationary_by_class(P: Floats) -> Floats:
    """Solve on the only closed class, with the exponent range of the widest float there is."""
    pi = np.zeros(len(P))
    recurrent = the_closed_class(P, range(len(P)))
    if len(recurrent) < len(P):
        pi[recurrent] = _stationary(P[np.ix_(recurrent, recurrent)])
        return pi
    with np.errstate(all="ignore"):
        wide = _gth(P[:, :, None].astype(np.longdouble))[:, 0]
    if not (wide > 0).all():
        raise DpmarkovError(
            "the chain's flows between states fall below the smallest number this computer can "
            f"hold ({np.finfo(np.longdouble).tiny!s}), so the stationary distribution is beyond "
            "reach. Merge states that are almost disconnected with lump(groups)"
        )
    return np.asarray(wide, dtype=np.float64)


def _stationary_batch(chains: Floats) -> Floats:
    """Run GTH over many small chains at once, on copies of some of them at a time."""
    count, n = chains.shape[:2]
    pi = np.empty((count, n))
    step = max(1, _BATCH_BYTES // (8 * n * n)) if n <= _TINY_STATES else _BATCHED_CHAINS
    for start in range(0, count, step):
        part = chains[start : start + step]
        with np.errstate(all="ignore"):
            if n <= _TINY_STATES:
                solved = _gth(np.array(np.moveaxis(part, 0, -1), order="C")).T
            else:
                solved = _gth_by_panels(np.array(part, order="C"))
        pi[start : start + step] = solved
    doubtful = np.flatnonzero(~(pi > _SAFE).all(axis=1))
    pi[doubtful] = _stationary_each(chains[doubtful], doubtful)
    return pi


def _gth_by_panels(A: Floats) -> Floats:
    """Run GTH in place on an array of shape (batch, n, n); return pi of shape (batch, n).

    States go in panels. Each one's row and column are brought up to date within the panel only,
    and one product of the panel's columns and rows updates all that is left.
    """
    n = A.shape[1]
    panels = []
    for high in range(n, 1, -_PANEL):
        low = max(high - _PANEL, 1)
        columns = np.ascontiguousarray(A[:, :low, low:high].swapaxes(1, 2))
        for k in range(high - 1, low - 1, -1):
            row, within = A[:, k, :k], A[:, low:k, k]
            pivot = row.sum(axis=1)[:, None]
            within /= pivot
            columns[:, k - low] /= pivot
            A[:, low:k, :k] += within[:, :, None] * row[:, None]
            columns[:, : k - low] += row[:, low:, None] * columns[:, None, k - low]
        A[:, :low, :low] += columns.swapaxes(1, 2) @ A[:, low:high, :low]
        panels.append((low, high, columns))
    pi = np.zeros(A.shape[:2])
    pi[:, 0] = 1
    for low, high, columns in reversed(panels):
        pi[:, low:high] = (columns @ pi[:, :low, None])[:, :, 0]
        for k in range(low + 1, high):
            pi[:, k] += (pi[:, low:k] * A[:, low:k, k]).sum(axis=1)
    return np.asarray(pi / pi.sum(axis=1, keepdims=True))


def _stationary_each(chains: Floats, names: NDArray[np.intp] | None = None) -> Floats:
    """Solve one chain after the other, and say which one cannot be solved."""
    pi = np.empty(chains.shape[:2])
    for position, P in enumerate(chains):
        try:
            pi[position] = _stationary(P)
        except DpmarkovError as error:
            which = position if names is None else names[position]
            raise DpmarkovError(f"chain {which} of the stack: {error}") from error
    return pi


def _gth(A: Any) -> Any:
    """Run GTH in place on an array of shape (n, n, batch); return pi of shape (n, batch)."""
    n = len(A)
    for k in range(n - 1, 0, -1):
        row, column = A[k, :k], A[:k, k]
        column /= row.sum(axis=0)
        A[:k, :k] += column[:, None] * row
    pi = np.zeros((n, A.shape[2]), dtype=A.dtype)
    pi[0] = 1
    for k in range(1, n):
        pi[k] = (pi[:k] * A[:k, k]).sum(axis=0)
    return pi / pi.sum(axis=0)


def _nonnegative_square(P: Floats) -> Floats:
    if P.ndim < 2 or P.shape[-1] != P.shape[-2] or P.shape[-1] == 0:
        raise DpmarkovError(
            f"P has shape {P.shape} and must be square and not empty: "
            "give one row of destination probabilities for each state"
        )
    low, high = P.min(initial=0.0), P.max(initial=0.0)
    if not (low >= 0 and high < np.inf):
        raise DpmarkovError(
            f"P has entries from {low} to {high} and must be finite and not negative: "
            "give transition probabilities, without gaps"
        )
    return P
