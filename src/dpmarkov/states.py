"""The public side of a chain: its states and which transitions are feasible.

Everything here is declared by the curator and never read off the data: a label or an edge
that appeared because somebody moved there would already give that person away
(``theory`` section 5). A `StateSpace` comes in three forms:

* *square*: one set of labels, the states of a Markov chain;
* *rectangular*: origins and destinations differ, the paper's ``P`` with ``m`` rows and ``n``
  columns (for instance (state, action) to next state);
* *single row*: one set of categories, the paper's Algorithm 1 (a distribution of grades).

A square space may be the result of *merging* another (`dpmarkov.merge_states`): then it knows the
joins that led to it and the group of original states that each label stands for.

The **support** is the list of feasible cells (origin, destination). It is stored row by row in
compressed form; a complete support is not stored at all, so that it costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.labels import Label, checked_labels, plain_label, positions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Label", "StateSpace"]

_Number = TypeVar("_Number", np.int64, np.float64)
_ONE_ROW: tuple[Label, ...] = ("all",)


class StateSpace:
    """States and feasible transitions, declared and public.

    Parameters
    ----------
    labels : iterable of str, int or tuple, optional
        The states of a square chain.
    origins, destinations : iterable of labels, optional
        Rows and columns of a rectangular table; given together, instead of `labels`.
    categories : iterable of labels, optional
        The categories of a single distribution, instead of `labels`.
    support : optional
        The feasible transitions: an iterable of ``(origin, destination)`` labels, or a boolean
        matrix (dense, or any SciPy sparse matrix, whose stored non-zeros count). Without it
        every transition is feasible.
    merges : iterable of (kept, gone), optional
        The joins that made a square space out of a larger one, in their order: the group named
        `gone` joined the group named `kept`, which keeps its name.

    Raises
    ------
    DpmarkovError
        If labels repeat or are of a kind that a file would not keep, if an edge ends outside
        the labels, if a row has fewer than 2 feasible destinations, or if the merges do not lead
        to the labels.

    Examples
    --------
    >>> StateSpace(["home", "work", "shop"])
    StateSpace(3 states, all 9 transitions feasible)
    >>> StateSpace(["a", "b", "c"], support=[("a", "b"), ("a", "c"), ("b", "a"), ("b", "b"),
    ...                                      ("c", "a"), ("c", "b")])
    StateSpace(3 states, 6 of 9 transitions feasible)
    >>> StateSpace(categories=["A", "B", "C", "D", "F"])
    StateSpace(5 categories of a single row)
    """

    def __init__(
        self,
        labels: Iterable[Label] | None = None,
        *,
        origins: Iterable[Label] | None = None,
        destinations: Iterable[Label] | None = None,
        categories: Iterable[Label] | None = None,
        support: Any = None,
        merges: Iterable[tuple[Label, Label]] = (),
    ) -> None:
        self.kind = _kind(labels, origins, destinations, categories)
        if self.kind == "square":
            self.origins = self.destinations = checked_labels("labels", labels)
        elif self.kind == "rectangular":
            self.origins = checked_labels("origins", origins)
            self.destinations = checked_labels("destinations", destinations)
        else:
            self.origins = _ONE_ROW
            self.destinations = checked_labels("categories", categories)
        self._compressed = None if support is None else self._compress(support)
        self._check_row_sizes()
        self.merges = _checked_merges(merges, self.labels if self.kind == "square" else None)

    # -- shape -----------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[Label, ...]:
        """The states of a square chain, or the categories of a single row."""
        if self.kind == "rectangular":
            raise DpmarkovError(
                "a rectangular table has no single set of labels: use .origins or .destinations"
            )
        return self.destinations

    @property
    def shape(self) -> tuple[int, int]:
        """Number of origins and of destinations."""
        return len(self.origins), len(self.destinations)

    @property
    def n_cells(self) -> int:
        """Number of feasible transitions."""
        return int(self.row_starts[-1])

    @property
    def is_complete(self) -> bool:
        """Whether every transition is feasible."""
        return self._compressed is None

    @cached_property
    def row_starts(self) -> npt.NDArray[np.int64]:
        """Where each row begins in the flat array of cells; one entry more than rows."""
        m, n = self.shape
        return np.arange(m + 1) * n if self._compressed is None else self._compressed[0]

    @property
    def row_sizes(self) -> npt.NDArray[np.int64]:
        """Number of feasible destinations of each origin (n of the theory)."""
        return np.diff(self.row_starts)

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """Destination index of every cell, in the order of the flat array."""
        m, n = self.shape
        return np.tile(np.arange(n), m) if self._compressed is None else self._compressed[1]

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Origin index of every cell, in the order of the flat array."""
        return np.repeat(np.arange(len(self.origins)), self.row_sizes)

    @cached_property
    def groups(self) -> dict[Label, tuple[Label, ...]]:
        """The original states that each label stands for, after merging; without it, empty.

        Examples
        --------
        >>> StateSpace(["a", "c"], merges=[("a", "b")]).groups
        {'a': ('a', 'b'), 'c': ('c',)}
        """
        if not self.merges:
            return {}
        joined = _replayed(self.merges)
        return {label: joined.get(label, (label,)) for label in self.labels}

    # -- finding cells ---------------------------------------------------------------------

    @cached_property
    def _origin_index(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.origins)}

    @cached_property
    def _destination_index(self) -> dict[Hashable, int]:
        return {label: j for j, label in enumerate(self.destinations)}

    def origin_positions(self, labels: Iterable[Any]) -> npt.NDArray[np.int64]:
        """Row index of each label, -1 where it is not an origin."""
        return positions(self._origin_index, labels)

    def destination_positions(self, labels: Iterable[Any]) -> npt.NDArray[np.int64]:
        """Column index of each label, -1 where it is not a destination."""
        return positions(self._destination_index, labels)

    def cell_positions(
        self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Position of cells in the flat array, -1 where a transition is not feasible."""
        n = self.shape[1]
        wanted = rows * n + columns
        if self._compressed is None:
            return wanted
        found = np.searchsorted(self._flat_keys, wanted)
        found[found == self.n_cells] = 0
        return np.where(self._flat_keys[found] == wanted, found, -1)

    @cached_property
    def _flat_keys(self) -> npt.NDArray[np.int64]:
        return self.rows * self.shape[1] + self.columns

    def cell_name(self, row: int, column: int) -> str:
        """Name a transition for a message, from declared labels only."""
        if self.kind == "row":
            return f"{self.destinations[column]!r}"
        return f"{self.origins[row]!r} -> {self.destinations[column]!r}"

    def name_of(self, position: int) -> str:
        """Name the transition at a position of the flat array of cells."""
        row = int(np.searchsorted(self.row_starts, position, side="right")) - 1
        if self._compressed is None:
            return self.cell_name(row, position % self.shape[1])
        return self.cell_name(row, int(self._compressed[1][position]))

    # -- flat arrays to rows ---------------------------------------------------------------

    def row_sums(self, cells: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Sum a flat array of cells over each row."""
        if self._compressed is None:
            sums: npt.NDArray[_Number] = cells.reshape(self.shape).sum(axis=1)
            return sums
        return np.add.reduceat(cells, self.row_starts[:-1])

    def spread(self, per_row: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Repeat one value per row over the cells of that row."""
        return np.repeat(per_row, self.row_sizes)

    def to_sparse(self, cells: npt.NDArray[Any]) -> csr_array[Any, tuple[int, int]]:
        """Lay a flat array of cells out as a SciPy sparse array (feasible zeros are stored)."""
        from scipy.sparse import csr_array

        return csr_array((cells, self.columns, self.row_starts), shape=self.shape)

    def to_dense(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Lay a flat array of cells out as a matrix, zero where not feasible."""
        if self._compressed is None:
            return cells.reshape(self.shape)
        dense = np.zeros(self.shape, dtype=cells.dtype)
        dense[self.rows, self.columns] = cells
        return dense

    # -- construction ----------------------------------------------------------------------

    def _compress(self, support: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        rows, columns = self._support_positions(support)
        m, n = self.shape
        keys = np.sort(rows * n + columns)
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique hashes: 100 times slower here
        if keys.size == m * n:
            return None
        starts = np.searchsorted(keys, np.arange(m + 1) * n)
        return _frozen(starts), _frozen(keys % n)

    def _support_positions(
        self, support: Any
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if hasattr(support, "tocoo") or (isinstance(support, np.ndarray) and support.dtype == bool):
            if support.shape != self.shape:
                raise DpmarkovError(
                    f"the support matrix has shape {support.shape}, the space has {self.shape}; "
                    "give one row per origin and one column per destination"
                )
            rows, columns = support.nonzero()
            return rows.astype(np.int64), columns.astype(np.int64)
        if not isinstance(support, Iterable):
            raise DpmarkovError(f"support must be a list of edges or a matrix, not {support!r}")
        edges = [_edge(edge) for edge in support]
        rows = self.origin_positions(origin for origin, _ in edges)
        columns = self.destination_positions(destination for _, destination in edges)
        dangling = np.flatnonzero((rows < 0) | (columns < 0))
        if dangling.size:
            origin, destination = edges[dangling[0]]
            raise DpmarkovError(
                f"support edge {origin!r} -> {destination!r} (number {dangling[0]}, "
                f"{dangling.size} such in all) ends outside the declared states; "
                "add the state or remove the edge"
            )
        return rows, columns

    def _check_row_sizes(self) -> None:
        short = np.flatnonzero(self.row_sizes < 2)
        if short.size:
            raise DpmarkovError(
                f"origin {self.origins[short[0]]!r} has {self.row_sizes[short[0]]} feasible "
                f"destinations ({short.size} such origins in all), a row needs at least 2; add "
                "feasible transitions, or leave the state out (a certain move needs no privacy)"
            )

    # -- as a value ------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateSpace):
            return NotImplemented
        return (
            self.kind == other.kind
            and self.origins == other.origins
            and self.destinations == other.destinations
            and self.merges == other.merges
            and self.is_complete == other.is_complete
            and np.array_equal(self.row_starts, other.row_starts)
            and (self.is_complete or np.array_equal(self.columns, other.columns))
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.origins, self.destinations, self.n_cells))

    def __repr__(self) -> str:
        m, n = self.shape
        if self.kind == "row":
            return f"StateSpace({n} categories of a single row)"
        who = f"{n} states" if self.kind == "square" else f"{m} origins x {n} destinations"
        if self.merges:
            who += f" merged from {n + len(self.merges)}"
        which = f"all {m * n}" if self.is_complete else f"{self.n_cells} of {m * n}"
        return f"StateSpace({who}, {which} transitions feasible)"


def _kind(labels: object, origins: object, destinations: object, categories: object) -> str:
    given = tuple(x is not None for x in (labels, origins, destinations, categories))
    kinds = {
        (True, False, False, False): "square",
        (False, True, True, False): "rectangular",
        (False, False, False, True): "row",
    }
    if given not in kinds:
        raise DpmarkovError(
            "give the states in one of three ways: labels (a chain), origins and destinations "
            "(a rectangular table), or categories (a single row)"
        )
    return kinds[given]


def _checked_merges(
    merges: Iterable[tuple[Label, Label]], labels: tuple[Label, ...] | None
) -> tuple[tuple[Label, Label], ...]:
    """Undo the joins, last one first: each must split a state that is there from one that is not.

    That holds exactly for the sequences of joins that lead to the labels.
    """
    joins = tuple(
        (plain_label("merges", kept), plain_label("merges", gone)) for kept, gone in merges
    )
    there = set(labels or ())
    for kept, gone in reversed(joins):
        if kept not in there or gone in there:
            raise DpmarkovError(
                f"the merges do not lead to the states: {gone!r} cannot have joined {kept!r}; give "
                "the joins of a square space in their order, each as (kept, gone)"
            )
        there.add(gone)
    return joins


def _replayed(joins: tuple[tuple[Label, Label], ...]) -> dict[Label, tuple[Label, ...]]:
    groups: dict[Label, tuple[Label, ...]] = {}
    for kept, gone in joins:
        groups[kept] = groups.get(kept, (kept,)) + groups.pop(gone, (gone,))
    return groups


def _edge(edge: Any) -> tuple[Any, Any]:
    if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise DpmarkovError(f"a support edge is a pair (origin, destination), not {edge!r}")
    return edge[0], edge[1]


def _frozen(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array
