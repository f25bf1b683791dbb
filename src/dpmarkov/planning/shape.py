"""The public shape of a table: what may be known of it before any budget is spent.

States and support are declared, so they are public always. How many transitions leave each state
is public under the unit `destination`; elsewhere it is a guess that the curator declares. How a
row divides over its destinations is never known beforehand: unless a public matrix is given
(last year's release, say), rows are taken to be *even*. That is careful for the rows: none of its
size has a larger expected total variation. It is bold for the long run, which noise moves further
where traffic is uneven or the chain mixes slowly: a public matrix is the way to see by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy.units import sensitivity
from dpmarkov.states import StateSpace

if TYPE_CHECKING:
    from dpmarkov.privacy.units import Unit, UserBounds

__all__ = ["Shape", "check_connected", "public_bounds", "public_shape", "spent_before"]

Floats = npt.NDArray[np.float64]

_EVEN_ROWS = "rows are even (an uneven or slowly mixing chain has a less certain long run)"


@dataclass(frozen=True, eq=False)
class Shape:
    """Public numbers about a table of transitions.

    Parameters
    ----------
    space : StateSpace
        The declared states and feasible transitions.
    row_totals : array of float, optional
        How many transitions leave each origin: public, or expected in public.
    probabilities : array of float
        Aligned with the support: even rows, or those of a public matrix.
    assumptions : tuple of str
        Where these numbers come from, in words.
    """

    space: StateSpace
    row_totals: Floats | None
    probabilities: Floats
    assumptions: tuple[str, ...]

    @property
    def mean_cell(self) -> float | None:
        """Expected number of transitions in a feasible cell, if the total is known."""
        return (
            None if self.row_totals is None else float(self.row_totals.sum()) / self.space.n_cells
        )

    @property
    def total(self) -> float | None:
        """Expected number of transitions in all, if it is known."""
        return None if self.row_totals is None else float(self.row_totals.sum())

    @cached_property
    def long_run(self) -> tuple[Floats, Floats]:
        """Stationary distribution and fundamental matrix, the same for every budget."""
        from dpmarkov.chain import fundamental_matrix, stationary_distribution

        P = self.space.to_dense(self.probabilities)
        pi = stationary_distribution(P)
        return pi, fundamental_matrix(P, pi)

    def merged(self, states: int) -> Shape:
        """Give the shape after joining states evenly to so many, all their rows even."""
        from scipy.sparse import coo_array

        width = max(2, min(round(self.space.row_sizes.mean()), states))
        rows = np.repeat(np.arange(states), width)
        columns = (rows + np.tile(np.arange(width), states)) % states
        cells = coo_array((np.ones(rows.size), (rows, columns)), shape=(states, states))
        space = StateSpace(range(states), support=cells)
        totals = None if self.total is None else np.full(states, self.total / states)
        return Shape(space, totals, _even(space), ())


def public_shape(
    source: Any,
    *,
    unit: Unit,
    expected_total: float | None = None,
    row_totals: npt.ArrayLike | None = None,
    matrix: Any = None,
) -> Shape:
    """Collect what is public, and read nothing else.

    Parameters
    ----------
    source : TransitionCounts, StateSpace or array
        Of counts only the space is read, and under `destination` the row totals. An array holds
        public or expected row totals of a complete chain.
    unit : {"destination", "transition", "user"}
        What the release will hide.
    expected_total, row_totals : optional
        A public guess of the number of transitions, in all or of each origin.
    matrix : array, sparse matrix or MarkovChain, optional
        A public guess of the transition probabilities.

    Returns
    -------
    Shape

    Examples
    --------
    >>> shape = public_shape(StateSpace(["sun", "rain"]), unit="transition", expected_total=1000)
    >>> shape.mean_cell
    250.0
    """
    space, declared = _space_of(source)
    if declared is not None and row_totals is not None:
        raise DpmarkovError("row totals are given twice: leave row_totals= out")
    given = declared if row_totals is None else row_totals
    if isinstance(source, TransitionCounts) and unit == "destination":
        totals, why = source.row_totals.astype(np.float64), "the row totals are the true ones"
    elif given is not None:
        totals, why = _checked_totals(given, space), "the row totals are those declared in public"
    elif expected_total is not None:
        even = _positive("expected_total", expected_total) / space.shape[0]
        totals = np.full(space.shape[0], even)
        why = f"{expected_total:,.10g} transitions, as many from each origin"
    else:
        return Shape(space, None, _probabilities(matrix, space), ("the number is not known",))
    rows = _EVEN_ROWS if matrix is None else "rows are those of the public matrix"
    return Shape(space, totals, _probabilities(matrix, space), (why, rows))


def public_bounds(
    source: Any, unit: Unit, max_cells: int | None, max_per_cell: int | None
) -> UserBounds:
    """Give the bounds of users: those that were given, or those that counts were made with.

    Parameters
    ----------
    source : TransitionCounts, StateSpace or array
        As for `public_shape`.
    unit : {"destination", "transition", "user"}
        What the release will hide.
    max_cells, max_per_cell : int or None
        As they were given.

    Returns
    -------
    dict
        As `dpmarkov.privacy` takes them; empty unless the unit is `user`.

    Examples
    --------
    >>> public_bounds(StateSpace(["sun", "rain"]), "user", 2, 5)
    {'max_cells': 2, 'max_per_cell': 5}
    """
    if isinstance(source, TransitionCounts) and unit == "user" and max_cells is None:
        max_cells, max_per_cell = source.max_cells, source.max_per_cell
    bounds: UserBounds = {"max_cells": max_cells, "max_per_cell": max_per_cell}
    sensitivity(unit, **bounds)
    return bounds if unit == "user" else {}


def spent_before(source: Any) -> float:
    """Give the share of epsilon that counts have spent: on merging, or on bounds of users.

    Parameters
    ----------
    source : TransitionCounts, StateSpace or array
        As for `public_shape`.

    Returns
    -------
    float
        0 for what is public.

    Examples
    --------
    >>> spent_before(StateSpace(["sun", "rain"]))
    0.0
    """
    return source.spent_epsilon if isinstance(source, TransitionCounts) else 0.0


def check_connected(space: StateSpace) -> None:
    """Refuse a square support on which some state cannot be reached from every other.

    Parameters
    ----------
    space : StateSpace
        The declared states; a table that is no chain passes.

    Raises
    ------
    DpmarkovError
        Naming states that cannot be reached.

    Examples
    --------
    >>> check_connected(StateSpace(["sun", "rain"]))
    """
    if space.kind != "square" or space.is_complete:
        return
    from dpmarkov.chain.structure import closed_classes, communicating_classes, name_states

    support = space.to_sparse(np.ones(space.n_cells))
    if len(communicating_classes(support)) == 1:
        return
    closed = closed_classes(support)[0]
    unreached = np.setdiff1d(np.arange(space.shape[0]), closed)
    raise DpmarkovError(
        f"the declared support is not strongly connected: {name_states(unreached, space.labels)} "
        f"cannot be reached from {name_states(closed, space.labels)}, so the chain has no "
        "long run of all its states. Add the missing transitions to the support, or leave "
        "states out"
    )


def _space_of(source: Any) -> tuple[StateSpace, Any]:
    if isinstance(source, TransitionCounts):
        return source.space, None
    if isinstance(source, StateSpace):
        return source, None
    totals = np.asarray(source)
    if totals.ndim != 1 or totals.size < 2:
        raise DpmarkovError(
            "plan from a StateSpace, from TransitionCounts, or from a list of at least 2 row "
            f"totals; shape {totals.shape} is neither"
        )
    return StateSpace(range(totals.size)), totals


def _checked_totals(totals: npt.ArrayLike, space: StateSpace) -> Floats:
    checked = np.asarray(totals, dtype=np.float64)
    fit = checked.shape == (space.shape[0],) and bool(checked.any())
    if not fit or not np.all((checked >= 0) & (checked < np.inf)):
        raise DpmarkovError(
            f"row_totals must be {space.shape[0]} finite numbers of at least 0, one for each "
            f"origin, not all 0; shape {checked.shape} was given"
        )
    return checked


def _positive(name: str, value: float) -> float:
    if not 0 < value < np.inf:
        raise DpmarkovError(f"{name} must be above 0 and finite, not {value:g}")
    return float(value)


def _even(space: StateSpace) -> Floats:
    return np.asarray(1 / space.spread(space.row_sizes.astype(np.float64)))


def _probabilities(matrix: Any, space: StateSpace) -> Floats:
    if matrix is None:
        return _even(space)
    P = getattr(matrix, "transition_matrix", matrix)
    P = np.atleast_2d(P.toarray() if hasattr(P, "toarray") else np.asarray(P, dtype=np.float64))
    if P.shape != space.shape:
        raise DpmarkovError(f"matrix has shape {P.shape}, the space needs {space.shape}")
    cells = P[space.rows, space.columns]
    if not np.all(cells >= 0) or np.abs(space.row_sums(cells) - 1).max() > 1e-8:
        raise DpmarkovError(
            "matrix must hold probabilities whose rows sum to 1 on the declared support"
        )
    return np.asarray(cells)
