"""Counts of transitions: the sensitive side, one flat array of cells aligned with the support.

A database ``D_i`` holds the transitions that leave state ``i``; ``rho`` are the destinations.
The paper asks for the *count query* ``C(D, rho)`` (section 2.3): the share of records in each
category, and for ``P(D, rho)``, its stack over the rows, the transition matrix. Both are the
method `TransitionCounts.proportions`.

The cells are kept as whole numbers, row by row over the feasible transitions only: a complete
space of 10,000 states costs 8 bytes a cell, and a sparse one of a million states and ten million
edges some 80 MB. Nothing in a `repr` or in an error message tells a count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.states import Label, StateSpace

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dpmarkov.privacy.units import Unit

__all__ = ["TransitionCounts"]

# Totals up to here are whole numbers that float64 keeps exactly.
_LARGEST = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class TransitionCounts:
    """Sensitive counts of the feasible transitions of a state space.

    Parameters
    ----------
    space : StateSpace
        The declared states and feasible transitions.
    cells : array of int, one per feasible transition
        Counts in the order of the support, row by row.
    max_cells, max_per_cell : int, optional
        The bounds that each user was cut down to before counting (L0 and Linf), both or none.
    states_from_data : bool
        Whether states were read off the data, so that nothing derived from them is private.
    bounds_epsilon : float
        What choosing these bounds from the data took of the budget, as a part of `spent_epsilon`;
        0 where they were declared.
    merged_for : {"destination", "transition", "user"}, optional
        The unit under which states were merged by their row totals, where they were: no other
        unit covers how those totals were used.
    spent_epsilon : float
        The share of the budget that is gone: for the noise in those totals, and for the bounds.
    charge : str, optional
        Under which id a ledger was charged for that share, the latest part of it.
    affected_rows : int, optional
        For the curator: how many rows the input policy dropped or mapped, where it is known.

    Raises
    ------
    DpmarkovError
        If a count is negative, fractional, not a number or too large; the message names the
        cell, never its value.

    Examples
    --------
    >>> space = StateSpace(["sun", "rain"])
    >>> counts = TransitionCounts.from_dense([[90, 10], [30, 20]], space)
    >>> counts
    TransitionCounts(2 states, all 4 transitions feasible; sensitive)
    >>> counts.proportions()
    array([[0.9, 0.1],
           [0.6, 0.4]])
    """

    space: StateSpace
    cells: npt.NDArray[np.int64]
    max_cells: int | None = field(default=None, kw_only=True)
    max_per_cell: int | None = field(default=None, kw_only=True)
    bounds_epsilon: float = field(default=0.0, kw_only=True)
    states_from_data: bool = field(default=False, kw_only=True)
    merged_for: Unit | None = field(default=None, kw_only=True)
    spent_epsilon: float = field(default=0.0, kw_only=True)
    charge: str | None = field(default=None, kw_only=True)
    affected_rows: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_bounds(self.max_cells, self.max_per_cell)
        _check_share(self.merged_for, self.spent_epsilon - self.bounds_epsilon)
        _check_choice(self.max_cells, self.bounds_epsilon)
        values = np.asarray(self.cells)
        if values.shape != (self.space.n_cells,):
            raise DpmarkovError(
                f"cells has shape {values.shape}, the support has {self.space.n_cells} feasible "
                "transitions; give one count for each, row by row"
            )
        cells = _whole_numbers(values, self.space.name_of, copy=True)
        cells.flags.writeable = False
        object.__setattr__(self, "cells", cells)

    # -- construction ----------------------------------------------------------------------

    @classmethod
    def from_dense(cls, counts: npt.ArrayLike, space: StateSpace) -> TransitionCounts:
        """Take counts from a matrix (or, for a single row, from a vector).

        Parameters
        ----------
        counts : array of numbers
            One row per origin and one column per destination; zero outside the support.
        space : StateSpace
            The declared states and feasible transitions.

        Returns
        -------
        TransitionCounts
        """
        matrix = _as_matrix(counts)
        if space.kind == "row" and matrix.ndim == 1:
            matrix = matrix[None, :]
        if matrix.shape != space.shape:
            raise DpmarkovError(
                f"counts has shape {matrix.shape}, the space needs {space.shape}; give one row "
                "per origin and one column per destination"
            )
        if space.is_complete:
            return cls(space, matrix.reshape(-1))
        rows, columns = np.nonzero(matrix)
        return cls(space, _scatter(space, rows, columns, matrix[rows, columns]))

    @classmethod
    def from_sparse(cls, counts: Any, space: StateSpace) -> TransitionCounts:
        """Take counts from a SciPy sparse matrix or array of any format.

        Parameters
        ----------
        counts : scipy.sparse matrix or array
            One row per origin and one column per destination; repeated entries are summed.
        space : StateSpace
            The declared states and feasible transitions.

        Returns
        -------
        TransitionCounts
        """
        if not hasattr(counts, "tocoo"):
            raise DpmarkovError(
                f"counts is a {type(counts).__name__} and must be a SciPy sparse matrix; for an "
                "array use from_dense"
            )
        if counts.shape != space.shape:
            raise DpmarkovError(
                f"counts has shape {counts.shape}, the space needs {space.shape}; give one row "
                "per origin and one column per destination"
            )
        entries = counts.tocoo()
        rows, columns = (np.asarray(x, dtype=np.int64) for x in (entries.row, entries.col))
        return cls(space, _scatter(space, rows, columns, np.asarray(entries.data)))

    @classmethod
    def from_triples(
        cls, triples: Iterable[tuple[Label, Label, int]], space: StateSpace
    ) -> TransitionCounts:
        """Take counts from (origin, destination, count) triples; repeated cells are summed.

        Parameters
        ----------
        triples : iterable of (origin, destination, count)
            For a single row the origin is left out: (category, count).
        space : StateSpace
            The declared states and feasible transitions.

        Returns
        -------
        TransitionCounts

        Examples
        --------
        >>> space = StateSpace(["sun", "rain"])
        >>> TransitionCounts.from_triples([("sun", "rain", 3), ("rain", "rain", 4)], space).cells
        array([0, 3, 0, 4])
        """
        given = list(triples)
        wanted = 2 if space.kind == "row" else 3
        if not all(hasattr(t, "__len__") and len(t) == wanted for t in given):
            raise DpmarkovError("give (origin, destination, count), or (category, count) for a row")
        listed = [(*space.origins, *t)[-3:] for t in given]
        origins, destinations, values = zip(*listed, strict=True) if listed else ((), (), ())
        rows = space.origin_positions(origins)
        columns = space.destination_positions(destinations)
        _check_known(rows, "origin")
        _check_known(columns, "destination")
        return cls(space, _scatter(space, rows, columns, np.asarray(values)))

    # -- reading (curator's side) ----------------------------------------------------------

    @property
    def row_totals(self) -> npt.NDArray[np.int64]:
        """Number of transitions that leave each origin (N_i); public under `destination` only."""
        return self.space.row_sums(self.cells)

    @property
    def total(self) -> int:
        """Number of transitions in all."""
        return int(self.cells.sum())

    def to_dense(self) -> npt.NDArray[np.int64]:
        """Counts as a matrix, zero where not feasible."""
        return self.space.to_dense(self.cells)

    def to_sparse(self) -> csr_array[Any, tuple[int, int]]:
        """Counts as a SciPy sparse array over the support."""
        return self.space.to_sparse(self.cells)

    def proportions(self) -> npt.NDArray[np.float64]:
        """The paper's query: C(D, rho) of a single row (a vector), else P(D, rho) (a matrix).

        Returns
        -------
        array of float
            Sensitive: the raw, non-private estimate.

        Raises
        ------
        DpmarkovError
            If an origin has no transitions: its row is 0/0, and none is invented.
        """
        totals = self.row_totals
        if not totals.all():
            raise DpmarkovError(
                "some origin has no transitions, so its row of P(D, rho) is 0/0 (which one is "
                "sensitive: see row_totals); merge the state or declare a space without it"
            )
        P = self.space.to_dense(self.cells / self.space.spread(totals))
        return P[0] if self.space.kind == "row" else P

    # -- as a value ------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        return (
            self.space == other.space
            and np.array_equal(self.cells, other.cells)
            and (self.max_cells, self.max_per_cell) == (other.max_cells, other.max_per_cell)
            and (self.merged_for, self.spent_epsilon) == (other.merged_for, other.spent_epsilon)
            and self.bounds_epsilon == other.bounds_epsilon
            and self.states_from_data == other.states_from_data
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        notes = ["sensitive"]
        if self.max_cells is not None:
            price = f", epsilon={self.bounds_epsilon:g} spent" if self.bounds_epsilon else ""
            notes.append(f"users bounded to {self.max_cells} cells of {self.max_per_cell}{price}")
        if self.merged_for is not None:
            share = self.spent_epsilon - self.bounds_epsilon
            spent = f", epsilon={share:g} spent" if share else ""
            notes.append(f"merged for unit {self.merged_for!r}{spent}")
        if self.states_from_data:
            notes.append("states taken from the data, not private")
        return f"TransitionCounts({repr(self.space)[len('StateSpace(') : -1]}; {', '.join(notes)})"


def _check_bounds(max_cells: int | None, max_per_cell: int | None) -> None:
    if (max_cells is None) != (max_per_cell is None):
        raise DpmarkovError("max_cells and max_per_cell go together; give both or none")
    for name, bound in (("max_cells", max_cells), ("max_per_cell", max_per_cell)):
        if bound is not None and bound < 1:
            raise DpmarkovError(f"{name}={bound} must be a whole number of at least 1")


def _check_share(merged_for: Unit | None, spent: float) -> None:
    if not (0 < spent < math.inf if merged_for in ("transition", "user") else spent == 0):
        raise DpmarkovError(
            f"spent_epsilon={spent:g} does not go with merged_for={merged_for!r}: merging takes a "
            "share of the budget under the units 'transition' and 'user', and under no other"
        )


def _check_choice(max_cells: int | None, spent: float) -> None:
    if not (0 <= spent < math.inf) or (spent and max_cells is None):
        raise DpmarkovError(
            f"bounds_epsilon={spent:g} must be at least 0 and finite, and go with bounds of users"
        )


def _whole_numbers(
    values: npt.NDArray[Any], name: Callable[[int], str], *, copy: bool = False
) -> npt.NDArray[np.int64]:
    """Check that values are counts and give them as int64, or name the first cell that is not."""
    if values.size == 0:
        return np.zeros(values.shape, dtype=np.int64)
    if values.dtype == object:  # Python integers beyond 64 bits, or a mixture
        values = np.array([_as_float(x) for x in values.ravel()]).reshape(values.shape)
    if values.dtype.kind not in "iuf":
        raise DpmarkovError(f"counts must be whole numbers, not of type {values.dtype}")
    if values.dtype.kind == "f":
        _refuse(np.isnan(values), "is not a number (NaN)", name)
        _refuse(values != np.floor(values), "is not a whole number", name)
    _refuse(values < 0, "is negative", name)
    _refuse(values > _LARGEST, "is too large", name)
    if values.sum(dtype=np.float64) > _LARGEST:  # in float64 the sum cannot wrap around
        raise DpmarkovError(
            f"the counts together exceed 2^53 = {_LARGEST}, the largest total that is kept "
            "exactly; split the data into several spaces"
        )
    return values.astype(np.int64, copy=copy)


def _as_float(value: Any) -> float:
    """Read a number; one beyond float64 is infinite, and what is none is NaN: both are refused."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _as_matrix(counts: npt.ArrayLike) -> npt.NDArray[Any]:
    if hasattr(counts, "tocoo"):
        raise DpmarkovError("counts is a sparse matrix: use from_sparse")
    if hasattr(counts, "columns"):  # the cells would go by place, whatever the names say
        raise DpmarkovError(
            "counts is a frame, and its rows and columns have names of their own: put them in the "
            "order of the states and pass to_numpy(), or count events with count_transitions"
        )
    if isinstance(counts, np.ma.MaskedArray):
        raise DpmarkovError("counts is a masked array: fill it first, with filled(0) perhaps")
    try:
        return np.asarray(counts)
    except ValueError:
        raise DpmarkovError(
            "the rows of counts differ in length; give one number for each cell"
        ) from None


def _refuse(bad: npt.NDArray[np.bool_], why: str, name: Callable[[int], str]) -> None:
    if bad.any():
        raise DpmarkovError(
            f"the count of {name(int(bad.argmax()))} {why}; "
            "counts are whole numbers from 0 to 2^53: correct it or drop the cell"
        )


def _check_known(positions: npt.NDArray[np.int64], what: str) -> None:
    unknown = np.flatnonzero(positions < 0)
    if unknown.size:
        raise DpmarkovError(
            f"triple number {unknown[0]} has an undeclared {what} (it is not shown, "
            "because it may be sensitive); declare the state or leave the triple out"
        )


def _scatter(
    space: StateSpace,
    rows: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
) -> npt.NDArray[np.int64]:
    """Add values into the flat array of cells; a non-zero outside the support is an error."""

    def name(entry: int) -> str:
        return space.cell_name(int(rows[entry]), int(columns[entry]))

    counted = _whole_numbers(values, name)
    positions = space.cell_positions(rows, columns)
    outside = (positions < 0) & (counted != 0)
    if outside.any():
        raise DpmarkovError(
            f"there are transitions {name(int(outside.argmax()))}, which the support declares "
            "infeasible; add the transition to the support or drop it from the data"
        )
    cells = np.zeros(space.n_cells, dtype=np.int64)
    np.add.at(cells, positions[positions >= 0], counted[positions >= 0])
    return cells
