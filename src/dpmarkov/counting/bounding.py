"""Bounding users: at most L0 cells each, and at most Linf transitions in each of them.

Which cells a user keeps is drawn by lot, by a rule that looks at nobody else's rows: each
(user, cell) has a number, and the L0 cells with the smallest numbers stay. The number is a
polynomial of degree three in the cell, over the field of ``p = 2^31 - 1``,

    h(cell) = ((a3 x + a2) x + a1) x + a0  mod p,      x = cell mod p,

whose four coefficients come from SHA-256 of a key and the user's name (as text, so that 7 in
one file and "7" in another are the same user). Carter and Wegman's family of polynomials is
4-wise independent; here it needs to be fair, not secret: the privacy of the result rests on the
bound alone (``theory`` sections 2 and 3, Lemma B). SHA-256 and whole numbers below 2^62 are the
same on every engine, so with the same key the result is, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw

from dpmarkov.counting.cells import summed, whole
from dpmarkov.counting.engines import COEFFICIENTS, PRIME, coefficients
from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    from dpmarkov.ledger import Dataset

__all__ = ["Bounds", "bounded", "contributed"]


@dataclass(frozen=True)
class Bounds:
    """How much one user may contribute.

    Parameters
    ----------
    max_cells : int or None
        L0, the number of distinct cells; none if it is to be chosen from the data.
    max_per_cell : int or None
        Linf, the number of transitions in each; likewise.
    key : str
        Which draw of the lots.
    epsilon : float
        The share of the budget that choosing takes.
    ledger : Dataset, optional
        What is charged for that share.
    charge : str, optional
        Under which id it was.
    """

    max_cells: int | None
    max_per_cell: int | None
    key: str
    epsilon: float = 0.0
    ledger: Dataset | None = None
    charge: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_cells", "max_per_cell"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DpmarkovError(f"{name}={value!r} must be a whole number of at least 1")
        if not isinstance(self.key, str):
            raise DpmarkovError(f"key= must be text, not {type(self.key).__name__}")

    @property
    def chosen(self) -> bool:
        """Whether both bounds are known."""
        return self.max_cells is not None and self.max_per_cell is not None


def bounded(frame: nw.LazyFrame[Any], bounds: Bounds) -> nw.LazyFrame[Any]:
    """Cut each user down to the bounds.

    Parameters
    ----------
    frame : LazyFrame
        With ``user``, ``position`` (-1 for none) and what `cells` carries along.
    bounds : Bounds
        L0, Linf and the key.

    Returns
    -------
    LazyFrame
        By user and cell, with ``n`` cut down; zero in the cells that are not kept.
    """
    max_cells, max_per_cell = bounds.max_cells, bounds.max_per_cell
    assert max_cells is not None  # those to be chosen have been chosen by now
    assert max_per_cell is not None
    by_user = coefficients(summed(frame, "user", "position"), "user", bounds.key)
    # Nor does a cell of no transitions take the place of another.
    astray = (nw.col("position") < 0) | nw.col("user").is_null() | (nw.col("n") == 0)
    drawn = by_user.with_columns(lot=_lot(), one=whole(1)).with_columns(
        astray=nw.when(astray).then(whole(1)).otherwise(whole(0))
    )
    # Cells are distinct within a user, so the last key leaves no tie among those that count.
    place = nw.col("one").cum_sum().over("user", order_by=["astray", "lot", "position"])
    kept = (nw.col("astray") == 0) & (place <= max_cells)
    clipped = nw.when(nw.col("n") > max_per_cell).then(whole(max_per_cell))
    return drawn.with_columns(
        n=nw.when(kept).then(clipped.otherwise(nw.col("n"))).otherwise(whole(0))
    ).drop("lot", "one", "astray", *COEFFICIENTS)


def contributed(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Count the users by how many cells they have, and how much is in the fullest one.

    Parameters
    ----------
    frame : LazyFrame
        As for `bounded`.

    Returns
    -------
    LazyFrame
        With ``cells``, ``per_cell`` and ``users``.
    """
    counted = (nw.col("position") >= 0) & ~nw.col("user").is_null() & (nw.col("n") > 0)
    kept = summed(frame, "user", "position").filter(counted)
    by_user = kept.group_by("user").agg(
        cells=nw.len().cast(nw.Int64), per_cell=nw.col("n").max().cast(nw.Int64)
    )
    return by_user.group_by("cells", "per_cell").agg(users=nw.len().cast(nw.Int64))


def _lot() -> nw.Expr:
    a0, a1, a2, a3 = (nw.col(name) for name in COEFFICIENTS)
    x = nw.col("position") % PRIME
    return (((a3 * x + a2) % PRIME * x + a1) % PRIME * x + a0) % PRIME
