"""What a chain must be before anyone computes with it; every message names the row at fault."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "DENSE_STATES",
    "ROW_SUM_TOLERANCE",
    "as_dense",
    "checked_count",
    "checked_distribution",
    "checked_labels",
    "checked_matrix",
    "checked_weights",
    "is_sparse",
]

ROW_SUM_TOLERANCE = 1e-8  # room for a table written with nine digits, not for a wrong row
DENSE_STATES = 3000  # up to here a sparse chain is simply made dense: 72 MB, half a second
_ROUNDING = 4 * np.finfo(np.float64).eps  # per entry; a row this close is kept bit for bit


def checked_labels(labels: Sequence[Hashable] | None, P: Any) -> tuple[Hashable, ...]:
    """Return a name for each row of P, all different.

    Examples
    --------
    >>> checked_labels(None, np.eye(2))
    (0, 1)
    """
    n = _size(P)
    if labels is None:
        return tuple(range(n))
    names = tuple(labels)
    if len(names) != n:
        raise DpmarkovError(f"{len(names):,} labels are given for {n:,} states: give one for each")
    try:
        different = len(set(names))
    except TypeError as error:
        raise DpmarkovError(
            f"a label is {error}: use labels that cannot change, such as text, numbers or tuples"
        ) from error
    if different < n:
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise DpmarkovError(f"label {twice!r} is given to several states: name each differently")
    return names


def checked_matrix(P: Any, labels: Sequence[Hashable]) -> Any:
    """Return P as a read-only float64 array, or sparse array in compressed rows, of unit row sums.

    Examples
    --------
    >>> checked_matrix([[1, 0], [0.5, 0.4]], ["a", "b"])
    Traceback (most recent call last):
    dpmarkov.errors.DpmarkovError: row 'b' sums to 0.9 and must sum to 1 within 1e-08: ...
    """
    P = _as_float(P)
    _require_probabilities(P, labels)
    P = _with_unit_rows(P, labels)
    for array in (P.data, P.indices, P.indptr) if is_sparse(P) else (P,):
        array.flags.writeable = False
    return P


def checked_distribution(x: ArrayLike, n: int) -> Floats:
    """Return probabilities of n states, or a stack of such rows, after checking them.

    Examples
    --------
    >>> checked_distribution([0.5, 0.5], 2)
    array([0.5, 0.5])
    """
    x = np.array(x, dtype=np.float64)
    if x.ndim == 0 or x.shape[-1] != n:
        raise DpmarkovError(
            f"the distribution has shape {x.shape} for {n:,} states: "
            "give a state's label, or one probability for each state"
        )
    off = float(np.abs(x.sum(axis=-1) - 1).max(initial=0))
    if not (x >= 0).all() or not off <= ROW_SUM_TOLERANCE:
        raise DpmarkovError(
            f"the distribution has smallest entry {x.min()} and its sum is {off:.3g} off 1; "
            f"entries must not be negative and sum to 1 within {ROW_SUM_TOLERANCE:g}: "
            "divide weights by their sum"
        )
    return x


def checked_weights(w: ArrayLike, n: int) -> Floats:
    """Return a weight for each of n states, after checking that none is negative.

    Examples
    --------
    >>> checked_weights([3, 1], 2)
    array([3., 1.])
    """
    weights = np.asarray(w, dtype=np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise DpmarkovError(
            f"weights of shape {weights.shape} must be {n:,} finite numbers, none negative: "
            "give one for each state"
        )
    return weights


def checked_count(name: str, value: int, least: int) -> int:
    """Return a whole number that is large enough.

    Examples
    --------
    >>> checked_count("steps", 3, 0)
    3
    """
    if value != int(value) or value < least:
        raise DpmarkovError(f"{name} is {value} and must be a whole number, at least {least}")
    return int(value)


def as_dense(P: Any, purpose: str) -> Floats:
    """Return P as an array, or say that a sparse chain is too large for that.

    Examples
    --------
    >>> as_dense(sparse.eye_array(10**6), "an inverse")
    Traceback (most recent call last):
    dpmarkov.errors.DpmarkovError: an inverse needs a table of 1,000,000 x 1,000,000 numbers, ...
    """
    n = P.shape[0]
    if is_sparse(P) and n > DENSE_STATES:
        raise DpmarkovError(
            f"{purpose} needs a table of {n:,} x {n:,} numbers, and a sparse chain may have at "
            f"most {DENSE_STATES:,} states for it. Merge states with lump(groups), or pass a "
            "dense matrix if there is memory and time"
        )
    return np.asarray(P.toarray() if is_sparse(P) else P)


def is_sparse(P: Any) -> bool:
    """Tell a scipy sparse matrix from anything array-like."""
    return bool(sparse.issparse(P))


def _size(P: Any) -> int:
    shape = P.shape if is_sparse(P) else np.shape(P)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise DpmarkovError(
            f"P has shape {shape} and must be square and not empty: "
            "give one row of destination probabilities for each state"
        )
    return int(shape[0])


def _as_float(P: Any) -> Any:
    """Return a copy in double precision, never a view of what the caller may change."""
    try:
        if not is_sparse(P):
            return np.array(P, dtype=np.float64, order="C")
        rows = sparse.csr_array(P, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise DpmarkovError(f"P must hold numbers, and {error}: give probabilities") from error
    rows.sum_duplicates()
    return rows


def _require_probabilities(P: Any, labels: Sequence[Hashable]) -> None:
    entries = P.data if is_sparse(P) else P
    good = np.isfinite(entries) & (entries >= 0)
    if good.all():
        return
    rows, columns = P.tocoo().coords if is_sparse(P) else np.indices(P.shape).reshape(2, -1)
    first = int(np.argmin(good.ravel()))
    i, j = int(rows[first]), int(columns[first])
    raise DpmarkovError(
        f"row {labels[i]!r} holds {P[i, j]} for destination {labels[j]!r}, and a probability must "
        "be finite and not negative: replace it by 0 if the transition never happens"
    )


def _with_unit_rows(P: Any, labels: Sequence[Hashable]) -> Any:
    sums = np.asarray(P.sum(axis=1))
    off = np.abs(sums - 1)
    worst = int(np.argmax(off))
    if off[worst] > ROW_SUM_TOLERANCE:
        way_out = "make it stay, P[i, i] = 1, or leave it out" if sums[worst] == 0 else ""
        # A sum of counts may be sensitive, and messages travel.
        total = f"{sums[worst]:.12g}" if sums[worst] < 2 else "2 or more, as rows of counts do,"
        raise DpmarkovError(
            f"row {labels[worst]!r} sums to {total} and must sum to 1 within "
            f"{ROW_SUM_TOLERANCE:g}: {way_out or 'divide each row by its sum, if that is meant'}"
        )
    divide = np.where(off > _ROUNDING * max(P.shape[0], 1), sums, 1.0)
    if (divide == 1).all():
        return P
    if is_sparse(P):
        return sparse.csr_array(sparse.diags_array(1 / divide) @ P)
    return P / divide[:, None]
