"""The unit of privacy: which change of the database is hidden, and how far it moves the counts.

``destination``
    one transition's destination differs, its origin is the same: two cells move by one;
``transition``
    one transition is added or removed: one cell moves by one;
``user``
    all transitions of one user are added or removed, after each user was cut down to at most
    `max_cells` distinct cells and `max_per_cell` transitions in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypedDict, Unpack, get_args

from dpmarkov.errors import DpmarkovError

__all__ = ["UNITS", "Sensitivity", "Unit", "UserBounds", "bounds_for", "check_unit", "sensitivity"]

Unit = Literal["destination", "transition", "user"]
UNITS: tuple[Unit, ...] = get_args(Unit)


class UserBounds(TypedDict, total=False):
    """The keywords that go with the unit `user`: how much one user contributes at most."""

    max_cells: int | None
    max_per_cell: int | None


@dataclass(frozen=True)
class Sensitivity:
    """How far a change of the database moves the counts.

    Parameters
    ----------
    cells : int
        In how many cells at most (l0).
    per_cell : int
        By how much at most in each (l infinity).

    Examples
    --------
    >>> change = Sensitivity(cells=9, per_cell=2)
    >>> change.l1, change.l2
    (18, 6.0)
    """

    cells: int
    per_cell: int = 1

    def __post_init__(self) -> None:
        if not (self.cells >= 1 and self.per_cell >= 1):
            raise DpmarkovError(
                f"a change moves at least 1 cell by at least 1, not {self.cells} by {self.per_cell}"
            )

    @property
    def l1(self) -> int:
        """Sum of the absolute moves."""
        return self.cells * self.per_cell

    @property
    def l2(self) -> float:
        """Euclidean length of the move."""
        return self.per_cell * sqrt(self.cells)


_EVENTS: dict[str, Sensitivity] = {
    "destination": Sensitivity(cells=2),
    "transition": Sensitivity(cells=1),
}


def sensitivity(unit: Unit, **bounds: Unpack[UserBounds]) -> Sensitivity:
    """Give the sensitivity of the counts at a unit.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What is hidden.
    max_cells, max_per_cell : int
        The bounds of a user; for that unit, and for no other.

    Returns
    -------
    Sensitivity

    Raises
    ------
    DpmarkovError
        If there is no such unit, or its bounds are missing or too many.

    Examples
    --------
    >>> sensitivity("destination")
    Sensitivity(cells=2, per_cell=1)
    >>> sensitivity("user", max_cells=20, max_per_cell=3)
    Sensitivity(cells=20, per_cell=3)
    """
    check_unit(unit)
    cells, per_cell = bounds.get("max_cells"), bounds.get("max_per_cell")
    _check_bound(unit, "max_cells", cells)
    _check_bound(unit, "max_per_cell", per_cell)
    return _EVENTS[unit] if cells is None or per_cell is None else Sensitivity(cells, per_cell)


def bounds_for(unit: Unit, max_cells: int | None, max_per_cell: int | None) -> UserBounds:
    """Give the bounds of data as keywords where the unit has them, and none elsewhere.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What is hidden.
    max_cells, max_per_cell : int, optional
        How the users in the data were bounded.

    Returns
    -------
    dict
    """
    return {"max_cells": max_cells, "max_per_cell": max_per_cell} if unit == "user" else {}


def check_unit(unit: str) -> None:
    """Say which units there are, if this is none of them."""
    if unit not in UNITS:
        raise DpmarkovError(
            f"unit must be one of {', '.join(map(repr, UNITS))}, not {unit!r}; it says what the "
            "guarantee hides and is never chosen silently"
        )


def _check_bound(unit: Unit, name: str, bound: object) -> None:
    if unit == "user" and bound is None:
        raise DpmarkovError(
            f"the unit 'user' needs {name}=: how much one user contributes is bounded before "
            "counting, with user=, max_cells= and max_per_cell="
        )
    if unit != "user" and bound is not None:
        raise DpmarkovError(f"{name}={bound!r} goes with the unit 'user', not with {unit!r}")
    if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 1):
        raise DpmarkovError(f"{name}={bound!r} must be a whole number of at least 1")
