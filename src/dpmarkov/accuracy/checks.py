"""The arguments that every function here takes, checked once and shaped for broadcasting.

No message names an entry or a sum of a row: rows are sensitive and messages travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmarkov.chain.structure import the_closed_class
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "checked_chain",
    "checked_floor",
    "checked_long_run",
    "checked_per_row",
    "checked_positive",
    "checked_rows",
]

_SUM_TOLERANCE = 1e-8
_MOST_STATES = 20_000  # 3 GB for each dense matrix


def checked_rows(C: ArrayLike) -> NDArray[np.float64]:
    """Return C as an array whose last axis holds probability vectors."""
    C = np.asarray(C, dtype=np.float64)
    if C.ndim == 0 or not np.all(C >= 0):
        raise DpmarkovError(
            "a row must be a vector of numbers >= 0; pass probabilities on the last axis"
        )
    off = np.atleast_1d(~(np.abs(C.sum(axis=-1) - 1) <= _SUM_TOLERANCE))
    if off.any():
        first = tuple(int(i) for i in np.argwhere(off)[0])
        raise DpmarkovError(
            f"{int(off.sum())} row(s) do not sum to 1 within {_SUM_TOLERANCE:g} (first at index "
            f"{first}); divide counts by their row totals first"
        )
    return C


def checked_chain(P: Any) -> NDArray[np.float64]:
    """Return P, a matrix, a sparse one or a MarkovChain, as a dense square matrix of rows."""
    P = getattr(P, "transition_matrix", P)
    if hasattr(P, "toarray"):
        if P.shape[0] > _MOST_STATES:
            raise DpmarkovError(
                f"{P.shape[0]} states: these closed forms need dense matrices and take at most "
                f"{_MOST_STATES}; lump states, or simulate"
            )
        P = P.toarray()
    rows = checked_rows(P)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise DpmarkovError(f"a chain is a square matrix, shape {rows.shape} is not; give n x n")
    return rows


def checked_long_run(P: Any) -> NDArray[np.float64]:
    """Return P as `checked_chain` does, or name the states that have no share in one long run."""
    rows = checked_chain(P)
    the_closed_class(rows, getattr(P, "labels", range(len(rows))))
    return rows


def checked_per_row(x: ArrayLike, name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x with an axis for the entries of the rows: one number for all, or one per row."""
    values = checked_positive(x, name)
    if values.ndim and values.shape != rows.shape[:-1]:
        raise DpmarkovError(
            f"{name} has shape {values.shape}, the rows have shape {rows.shape[:-1]}; "
            "give one number, or one per row"
        )
    return values[..., np.newaxis]


def checked_positive(x: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return x as an array of finite numbers > 0."""
    x = np.asarray(x, dtype=np.float64)
    if not np.all((x > 0) & np.isfinite(x)):
        raise DpmarkovError(f"{name} = {x} must be finite and > 0; give a positive number")
    return x


def checked_floor(
    size: ArrayLike | None, floor: ArrayLike | None, categories: ArrayLike
) -> NDArray[np.float64]:
    """Return the least entry a row can have: the floor if there is one, else one count in size."""
    n = checked_positive(categories, "categories")
    if floor is not None:
        eta = checked_positive(floor, "floor")
    elif size is not None:
        eta = 1 / checked_positive(size, "size")
    else:
        raise DpmarkovError("size or floor must be given: without a least entry there is no bound")
    if np.any(eta * n > 1 + 1e-12):
        raise DpmarkovError(
            f"{n} categories cannot all hold at least {eta}: the least entry is at most 1 / "
            "categories; lower the floor or check that every category was seen"
        )
    return eta
