"""The curator's side of counting: cells at their positions, and the policy held against them.

What is known here is sensitive. An error says that something did not fit, in which columns and
what to do, and never what or how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpmarkov.counting.cells import UNDECLARED, UNUSABLE, Policy
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import StateSpace

__all__ = ["Tally"]


@dataclass(frozen=True)
class Tally:
    """Counted cells, and how many rows had none and why.

    Parameters
    ----------
    cells : array
        Counts in the order of the support.
    undeclared, unusable, infeasible, unparsable : int
        Rows with a label that is not declared; with a null where a value must be; whose
        transition the support does not have; lines that are not rows.
    """

    cells: npt.NDArray[Any]
    undeclared: int
    unusable: int
    infeasible: int
    unparsable: int

    @classmethod
    def of_cells(cls, table: pa.Table, space: StateSpace, unparsable: int) -> Tally:
        """Lay cells that know their position out along the support."""
        positions, n = (table[name].to_numpy() for name in ("position", "n"))
        cells = np.zeros(space.n_cells, dtype=n.dtype)
        np.add.at(cells, positions[positions >= 0], n[positions >= 0])
        reasons = {name: int(table[name].to_numpy().sum()) for name in _REASONS}
        return cls(cells, **reasons, unparsable=unparsable)

    @classmethod
    def of_pairs(
        cls,
        table: pa.Table,
        reported: Sequence[str],
        space: StateSpace,
        policy: Policy,
        unparsable: int,
    ) -> Tally:
        """Find the cells of pairs of codes and lay them out along the support.

        The support is matched here and not on the engine: finding 5 million pairs among as many
        (SciPy's CSR) takes 0.3 s and no memory to speak of, unlike a join.
        """
        columns = {name: table[name].to_numpy() for name in table.column_names}
        i, j, n = (columns[name] for name in ("origin", "destination", "n"))
        rows = columns.get("rows", n)
        lacks = j == UNUSABLE
        unknown = np.logical_or.reduce([columns[name] == UNDECLARED for name in reported])
        undeclared, unusable = int(rows[unknown & ~lacks].sum()), int(rows[lacks].sum())
        i, j = (_sent(code, to) for code, to in zip((i, j), policy.catch_all(space), strict=True))
        counted = (i >= 0) & (j >= 0)
        if not counted.all():
            i, j, n, rows = (column[counted] for column in (i, j, n, rows))
        cells, strays, infeasible = _matched(i, j, n, rows, space)
        if policy.other is not None and strays[0].size:
            np.add.at(cells, policy.fallback(space)[strays[0]], strays[1])
        return cls(cells, undeclared, unusable, infeasible, unparsable)

    @classmethod
    def nothing(cls, space: StateSpace) -> Tally:
        """Give the tally of no rows."""
        return cls(np.zeros(space.n_cells, dtype=np.int64), 0, 0, 0, 0)

    def __add__(self, more: Tally) -> Tally:
        ours, theirs = ([getattr(x, name) for name in _FIELDS] for x in (self, more))
        return Tally(*(a + b for a, b in zip(ours, theirs, strict=True)))

    @property
    def affected(self) -> int:
        """Number of rows that the policy dropped or mapped."""
        return self.undeclared + self.unusable + self.infeasible + self.unparsable

    def check(
        self, policy: Policy, labels: Sequence[str], others: Sequence[str], *, timed: bool
    ) -> None:
        """Refuse what the policy does not allow."""
        if policy.lenient or not self.affected:
            return
        names = " or ".join(map(repr, labels))
        iso = " (a file of text writes times as in ISO 8601)" if timed else ""
        found = {
            f"values in column {names} that are null or not among the declared states": (
                self.undeclared
            ),
            f"nulls or unusable values in column {' or '.join(map(repr, others))}{iso}": (
                self.unusable
            ),
            f"transitions in column {names} that the declared support does not have": (
                self.infeasible
            ),
        }
        what = " and ".join(text for text, count in found.items() if count)
        raise DpmarkovError(
            f"there are {what} (which and how many is sensitive and not shown), and the policy is "
            "invalid='error'; declare what is missing, or leave such rows out with "
            "invalid='drop', or count them in a declared catch-all state with invalid='other', "
            "other=..."
        )


_REASONS = ("undeclared", "unusable", "infeasible")
_FIELDS = ("cells", *_REASONS, "unparsable")
_Ints = npt.NDArray[np.int64]
_Numbers = npt.NDArray[Any]


def _sent(code: _Ints, instead: int | None) -> _Ints:
    return code if instead is None else np.where(code == UNDECLARED, instead, code)


def _matched(
    i: _Ints, j: _Ints, n: _Numbers, rows: _Numbers, space: StateSpace
) -> tuple[_Numbers, tuple[_Ints, _Numbers], int]:
    """Give the cells, the (origin, n) of transitions that are not feasible, and their rows."""
    positions = _positions(i, j, space)
    feasible = positions >= 0
    cells = np.zeros(space.n_cells, dtype=n.dtype)
    np.add.at(cells, positions[feasible], n[feasible])
    return cells, (i[~feasible], n[~feasible]), int(rows[~feasible].sum())


def _positions(i: _Ints, j: _Ints, space: StateSpace) -> _Ints:
    """Find pairs of codes in the support, -1 where they are not."""
    if space.is_complete:
        return i.astype(np.int64) * space.shape[1] + j
    from scipy.sparse import csr_array

    width: Any = np.int32 if space.n_cells < 2**31 else np.int64  # half as wide is twice as fast
    layout = (space.columns.astype(width), space.row_starts.astype(width))
    place = csr_array((np.arange(1, space.n_cells + 1, dtype=width), *layout), shape=space.shape)
    place.has_canonical_format = True  # as the support is sorted; SciPy would look it through
    found: _Numbers = place[i, j]
    return found - 1
