"""Stationary distributions of large sparse chains, by three routes, with the error each may have.

1. *Bands.* Cuthill and McKee's reverse ordering often brings every transition close to the
   diagonal: birth-death chains, corridors, lattices that are not too wide, small clusters. Cut into
   blocks as wide as the band, M is block tridiagonal, and the elimination of
   `dpmarkov.chain.stationary` goes block by block: exact to rounding like the dense route.
2. *Sparse LU*, in SuperLU's symmetric mode without pivoting, when the band is still narrow enough
   for the fill-in. The pivots do subtract here. With ``A = M`` less one state, ``A^-1 >= 0``, so
   that the effect of rounding the diagonal d is bounded, entry by entry, by one more solve:
   ``|error| <= c u (pi d) A^-1`` with u the unit roundoff. Refinement by residuals in extended
   precision, where the computer has it, then removes most of that error.
3. *Arnoldi* (ARPACK) else: such chains (expanders, random graphs) mix fast, which is when it works.
   The error is judged from the entrywise residual and the spectral gap. Where it is too large and
   a wide band fits into memory, the first route is taken after all: minutes, but exact.

The power method is none of the three: it stalls on lattices and clusters, long before its steps
become small enough to tell. Routes 2 and 3 give an `AccuracyWarning` when they cannot promise
a relative error of 1e-8 in every entry.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.chain.stationary import eliminate, stationary_distribution
from dpmarkov.chain.structure import the_closed_class
from dpmarkov.chain.validation import DENSE_STATES
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Blocks = NDArray[np.float64]

__all__ = [
    "AccuracyWarning",
    "second_eigenvalue",
    "sparse_stationary_distribution",
]

_BAND_ENTRIES = 150_000_000  # n times the block width: two such arrays of float64 are 2.4 GB
_BAND_WORK = 5e9  # n times the square of the block width: about a second
_BLOCK = 32  # narrower blocks cost more in calls than they save in work
_LU_WIDTH = 1.5  # a band up to this times sqrt(n) is a plane lattice, whose fill-in is affordable
_PROMISE = 1e-8
_REFINEMENTS = 2
_ROUNDINGS = 8.0  # c in the bound on what rounding does in the sparse LU
_RESTARTS = 300  # of Arnoldi's method, 38 products each
_GAP_ERROR = 1e-6  # to which a small gap is found; below, nothing is promised
_TRIAL_STEPS, _FAST = 30, 0.8  # a random vector that shrinks so fast needs no eigenvalue
_SAFE = 1e-290
_U = float(np.finfo(np.float64).eps) / 2
_EXTENDED = float(np.finfo(np.longdouble).eps / np.finfo(np.float64).eps)


class AccuracyWarning(UserWarning):
    """A result may be less accurate than is promised; the message says by how much."""


def sparse_stationary_distribution(P: Any) -> Floats:
    """Return the stationary distribution of a sparse chain with one closed class.

    Parameters
    ----------
    P : sparse matrix, shape (n, n)
        Transition probabilities; the diagonal is ignored.

    Returns
    -------
    ndarray, shape (n,)
        Zero on transient states.

    Raises
    ------
    DpmarkovError
        If there are several closed classes, or no route gives an answer.

    Warns
    -----
    AccuracyWarning
        If the relative error of some entry may exceed 1e-8.

    Examples
    --------
    A walk on a circle of 10,000 states stands everywhere equally often:

    >>> step = np.roll(np.arange(10_000), 1)
    >>> there = sparse.csr_array((np.full(10_000, 0.5), (np.arange(10_000), step)))
    >>> pi = sparse_stationary_distribution(there + there.T)
    >>> bool(abs(pi * 10_000 - 1).max() < 1e-13)
    True
    """
    n = P.shape[0]
    if n <= DENSE_STATES:
        return stationary_distribution(P.toarray())
    P = sparse.csr_array(P, dtype=np.float64)
    recurrent = the_closed_class(P, range(n))
    pi = np.zeros(n)
    if len(recurrent) < n:
        pi[recurrent] = sparse_stationary_distribution(P[recurrent][:, recurrent])
        return pi
    order, width = _narrow_order(P)
    pi[order] = _by_width(_without_diagonal(P[order][:, order]), width)
    return pi


def second_eigenvalue(P: Any, pi: Floats, *, which: str = "LM", tolerance: float = 0.0) -> complex:
    """Return the leading eigenvalue of the chain without its stationary distribution.

    Arnoldi's method on ``x P - (x 1) pi``, which has every eigenvalue of P but the first one. So it
    is told apart from one, even if it is one for all that floating point can say.

    Parameters
    ----------
    P : sparse matrix, shape (n, n)
        Transition probabilities.
    pi : ndarray, shape (n,)
        The stationary distribution.
    which : {"LM", "LR"}
        Leading by modulus, or by real part.
    tolerance : float
        Relative accuracy to stop at; zero is working precision.

    Returns
    -------
    complex
        The eigenvalue.

    Raises
    ------
    DpmarkovError
        If the iteration does not converge.
    """
    from scipy.sparse.linalg import LinearOperator

    T = sparse.csr_array(P.T)
    rest: Any = LinearOperator(T.shape, matvec=lambda x: T @ x - x.sum() * pi, dtype=np.float64)
    return complex(_arnoldi(rest, which, tolerance, _zero_sum(T.shape[0]))[0][0])


def _narrow_order(P: Any) -> tuple[NDArray[np.int32], int]:
    """Return the reverse Cuthill-McKee order and the half bandwidth that it reaches."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(sparse.csr_array(P + P.T), symmetric_mode=True)
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    origin, destination = P.nonzero()
    return order, int(np.abs(place[origin] - place[destination]).max())


def _without_diagonal(P: Any) -> Any:
    P = sparse.coo_array(P)
    off = P.row != P.col
    return sparse.csr_array((P.data[off], (P.row[off], P.col[off])), shape=P.shape)


def _by_width(P: Any, width: int) -> Floats:
    n, b = P.shape[0], max(width, _BLOCK)
    fits, narrow = n * b <= _BAND_ENTRIES, width <= _LU_WIDTH * n**0.5
    if fits and (narrow or n * b**2 <= _BAND_WORK):
        return _by_bands(P, b)
    if narrow:
        return _by_sparse_lu(P)
    try:
        pi, error = _by_arnoldi(P)
    except DpmarkovError:
        if not fits:
            raise
        return _by_bands(P, b)
    if fits and error > _PROMISE:
        return _by_bands(P, b)
    _promise("Arnoldi's method", n, error)
    return pi


def _by_bands(P: Any, b: int) -> Floats:
    """Eliminate block after block, last first, then substitute forwards."""
    here, up = _blocks_up(P, b)
    for k in range(len(here) - 1, 0, -1):
        _eliminate_block(here[k - 1], here[k], up[k], _block_down(P, k, b))
    eliminate(here[0].T, np.zeros(b))
    return _substitute(here, up)[: P.shape[0]]


def _blocks_up(P: Any, b: int) -> tuple[Blocks, Blocks]:
    """Return the blocks of -P from k to k and from k - 1 to k, padded with states never entered.

    A padding state goes to its left neighbour for certain, so that elimination drops it at once.
    """
    n = P.shape[0]
    count = -(-n // b)
    here, up = np.zeros((count, b, b)), np.zeros((count, b, b))
    P = sparse.coo_array(P)
    (i, row), (j, column) = np.divmod(P.row, b), np.divmod(P.col, b)
    for blocks, chosen in ((here, i == j), (up, i == j - 1)):
        blocks[j[chosen], row[chosen], column[chosen]] = -P.data[chosen]
    padding = np.arange(n - (count - 1) * b, b)
    here[-1, padding, padding - 1] = -1.0
    return here, up


def _block_down(P: Any, k: int, b: int) -> Floats:
    """Return the block of -P from k to k - 1: used once, so it is not stored beforehand."""
    bounds = P.indptr[k * b : (k + 1) * b + 1]
    entries = slice(bounds[0], bounds[-1])
    row = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    column = P.indices[entries] - (k - 1) * b
    below = column < b
    down = np.zeros((b, b))
    down[row[below], column[below]] = -P.data[entries][below]
    return down


def _eliminate_block(before: Floats, here: Floats, up: Floats, down: Floats) -> None:
    """Factor one block in place, leave ``M_12 L^-1`` in up, and censor the block before it."""
    from scipy.linalg.blas import dtrsm

    eliminate(here.T, down.sum(axis=1))
    up.T[...] = dtrsm(1.0, here.T, up.T)
    before -= up @ dtrsm(1.0, here.T, down.T, side=1, lower=1, diag=1).T


def _substitute(here: Blocks, up: Blocks) -> Floats:
    """Solve ``pi U = e_0``, every block with an exponent of its own: pi may span any range."""
    from scipy.linalg.blas import dtrsv

    count, b = here.shape[:2]
    x, exponent = np.empty((count, b)), np.zeros(count, dtype=np.int64)
    right = np.eye(1, b)[0]
    for k in range(count):
        x[k] = dtrsv(here[k].T, right, lower=1, diag=1)
        exponent[k] = np.frexp(x[k].max())[1]
        x[k] = np.ldexp(x[k], -exponent[k])
        right = -(x[k] @ up[k + 1]) if k + 1 < count else right
    exponent = np.cumsum(exponent)
    pi = np.ldexp(x, np.maximum(exponent - exponent.max(), -5000)[:, None]).ravel()
    return np.asarray(pi / pi.sum())


def _by_sparse_lu(P: Any) -> Floats:
    """Solve ``pi M = 0`` with the largest entry set to one, and bound what rounding did."""
    from scipy.sparse.linalg import splu

    n = P.shape[0]
    leaving = P.sum(axis=1)
    top = int(np.argmax(_after_steps(P, leaving, 50)))
    rest = np.delete(np.arange(n), top)
    A = (sparse.diags_array(leaving) - P)[rest][:, rest].T
    lu = splu(
        sparse.csc_array(A),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    b = P[[top]].toarray()[0, rest]
    x = lu.solve(b)
    first = _relative(_ROUNDINGS * _U * np.abs(lu.solve(np.abs(x) * leaving[rest])), x)
    x = _refined(lu, P[rest][:, rest], P[rest].astype(np.longdouble).sum(axis=1), b, x)
    _promise("sparse LU", n, first ** (_REFINEMENTS + 1) + first * _EXTENDED + _ROUNDINGS * _U)
    pi = np.ones(n)
    pi[rest] = x
    return np.asarray(pi / pi.sum())


def _refined(lu: Any, P: Any, leaving: Any, b: Floats, x: Floats) -> Floats:
    """Refine the solution of ``x (diag(leaving) - P) = b`` by residuals in extended precision.

    Each refinement multiplies the relative error by about what it was at first: the factors stem
    from a diagonal rounded to float64, the residual knows it better.
    """
    T, wide = sparse.csr_array(P.T, dtype=np.longdouble), x.astype(np.longdouble)
    for _ in range(_REFINEMENTS):
        residual = b + T @ wide - leaving * wide
        wide += lu.solve(residual.astype(np.float64))
    return np.asarray(wide, dtype=np.float64)


def _by_arnoldi(P: Any) -> tuple[Floats, float]:
    """Take the eigenvector of the eigenvalue one; judge its error by its residual and the gap."""
    stay = sparse.diags_array(np.maximum(1 - P.sum(axis=1), 0))
    T = sparse.csr_array((P + stay).T)
    x = _arnoldi(T, "LR", 0.0, np.full(T.shape[0], 1.0))[1][:, 0].real
    x = T @ (x / x.sum())  # a step brings small entries to the accuracy of those they come from
    residual = np.abs(T @ x - x) + _U * x
    error = _relative(residual, x) / max(_gap(T, x), _U)
    x = np.maximum(x, 0)
    return np.asarray(x / x.sum()), error


def _gap(T: Any, pi: Floats) -> float:
    """Return about how far the other eigenvalues stay from one; zero if that cannot be told.

    A random vector that sums to zero shrinks at the rate of the slowest of them. Where it does so
    fast it has told enough; Arnoldi's method would wait long for an eigenvalue among many.
    """
    y, sizes = _zero_sum(T.shape[0]), []
    for _ in range(_TRIAL_STEPS):
        y = T @ y
        sizes.append(float(np.linalg.norm(y)))
    rate = float((sizes[-1] / sizes[_TRIAL_STEPS // 2]) ** (2 / _TRIAL_STEPS))
    if rate < _FAST:
        return 1 - rate
    try:
        slowest = second_eigenvalue(T.T, pi, which="LR", tolerance=_GAP_ERROR).real
        return max(1 - slowest - _GAP_ERROR, 0.0)
    except DpmarkovError:
        return 0.0


def _zero_sum(n: int) -> Floats:
    """Return a vector that has a part of every eigenvector but the first; the same each time."""
    y = np.random.default_rng(0).standard_normal(n)
    return np.asarray(y - y.mean())


def _arnoldi(operator: Any, which: Any, tolerance: float, start: Floats) -> tuple[Any, Any]:
    """Return the leading eigenvalue and its eigenvector, as arrays of one."""
    from scipy.sparse.linalg import ArpackNoConvergence, eigs

    try:
        return eigs(operator, k=1, which=which, ncv=40, tol=tolerance, v0=start, maxiter=_RESTARTS)
    except ArpackNoConvergence as error:
        raise DpmarkovError(
            f"Arnoldi's method did not converge on the sparse chain of {len(start):,} states "
            f"within {_RESTARTS} restarts. Merge states with lump(groups) until at most "
            f"{DENSE_STATES:,} are left, which are then solved without iterating"
        ) from error


def _after_steps(P: Any, leaving: Floats, steps: int) -> Floats:
    """Return where the lazy chain is after some steps from anywhere: a guess of what is likely."""
    x = np.full(len(leaving), 1 / len(leaving))
    T = sparse.csr_array(P.T)
    for _ in range(steps):
        x = (x + (T @ x + (1 - leaving) * x)) / 2
    return x


def _relative(error: Floats, x: Floats) -> float:
    """Return the largest error relative to its entry; infinite where an entry is not positive."""
    return float((error / x).max()) if (x > 0).all() else np.inf


def _promise(route: str, n: int, error: float) -> None:
    if error <= _PROMISE:
        return
    size = f"be off by a relative {error:.1e}" if error < 1 else "have no correct digit"
    warnings.warn(
        f"the stationary distribution of this sparse chain of {n:,} states was found by {route}, "
        f"and entries of it may {size}; at most {_PROMISE:g} can "
        f"be promised. Merge states with lump(groups) until at most {DENSE_STATES:,} are left to "
        "have every entry exact to rounding",
        AccuracyWarning,
        stacklevel=2,
    )
