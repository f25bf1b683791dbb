"""How much users contribute, and bounds for them from a share of the budget.

Bounds that are too wide buy noise for nothing, and bounds that are too narrow drop what people
did. Where they should lie depends on the data, so whoever looks at the data to choose them reveals
something. Here it is done privately: each user falls into one bin of a public grid of how many
cells they have, and into one of how many transitions in their fullest cell. One user more changes
one number by one in each histogram; so two-sided geometric noise of scale (histograms)/epsilon
makes both epsilon-differentially private at the unit `user`, and what follows is post-processing.
A bound is the least value of its grid within which a wanted share of the noisy number of users
lies. The release adds the share of epsilon to its own, as that of merging states.

At the unit `user` neighbours differ by one user, whole: that is why one user is one entry here,
whatever they did.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.geometric import two_sided_geometric

__all__ = ["AUTO", "Contributions", "choose_bounds"]

Ints = npt.NDArray[np.int64]

AUTO: Final = "auto"
# Of the users, who stay whole. On the pathways of 1,049 patients, at epsilon = 1, bounds at the
# quantiles 0.5 and 0.75 give rows of the same error, and those at 0.95 one nearly twice as large.
_QUANTILE = 0.75
_MOST_PER_CELL = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """How many users have so many cells, and so many transitions in the fullest one. Sensitive.

    Parameters
    ----------
    cells, per_cell : array of int
        The two numbers.
    users : array of int
        How many users have both.
    feasible : int
        How many cells there are; public.
    """

    cells: Ints
    per_cell: Ints
    users: Ints
    feasible: int

    def __repr__(self) -> str:
        return f"Contributions(of users in {self.feasible} feasible cells; sensitive)"


def choose_bounds(
    contributions: Contributions,
    *,
    epsilon: float,
    quantile: float = _QUANTILE,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
) -> tuple[int, int]:
    """Choose how much one user may contribute, from a share of the budget.

    Usually called by counting: ``count_transitions(..., max_cells="auto")``.

    Parameters
    ----------
    contributions : Contributions
        Of all users.
    epsilon : float
        The share. It is spent when this function returns, and once more at each further call.
    quantile : float
        Which share of the users shall lie within each bound, between 0 and 1.
    max_cells, max_per_cell : int, optional
        A bound that is already declared; the other one gets the whole share.

    Returns
    -------
    max_cells, max_per_cell : int

    Raises
    ------
    DpmarkovError
        If an argument is out of range.

    Examples
    --------
    >>> one_of_each = np.ones(30_000, dtype=np.int64)
    >>> cells = np.repeat([2, 7, 40], [10_000, 19_500, 500])
    >>> people = Contributions(cells, one_of_each, one_of_each, feasible=3969)
    >>> choose_bounds(people, epsilon=1.0)
    (8, 1)
    """
    if not 0 < epsilon < math.inf:
        raise DpmarkovError(f"the share epsilon={epsilon!r} must be above 0 and finite")
    if not 0 < quantile < 1:
        raise DpmarkovError(f"quantile={quantile!r} must be between 0 and 1")
    # One user more changes one number in each histogram. The next float above the ratio:
    # rounding must not make the scale too small.
    scale = math.nextafter(((max_cells is None) + (max_per_cell is None)) / epsilon, math.inf)
    found = contributions
    if max_cells is None:
        max_cells = _bound(found.cells, found.users, _grid(found.feasible), scale, quantile)
    if max_per_cell is None:
        max_per_cell = _bound(found.per_cell, found.users, _grid(_MOST_PER_CELL), scale, quantile)
    return max_cells, max_per_cell


def _grid(most: int) -> Ints:
    """Give 1, 2, 3, 4, 6, 8, 12, 16, ..., up to the most there may be."""
    doubled = 2 ** np.arange(1, 40)
    steps = np.sort(np.concatenate(([1], doubled, doubled // 2 * 3)))
    return np.append(steps[steps < most], most)


def _bound(values: Ints, users: Ints, grid: Ints, scale: float, quantile: float) -> int:
    """Find the least value of the grid with a share of the users at or below it."""
    bins = np.searchsorted(grid, values)
    numbers = np.bincount(bins, users, minlength=grid.size + 1).astype(np.int64)
    noisy = np.cumsum(numbers + two_sided_geometric(numbers.shape, scale=scale))
    enough = np.flatnonzero(noisy[:-1] >= quantile * noisy[-1])
    return int(grid[enough[0]] if enough.size else grid[-1])
