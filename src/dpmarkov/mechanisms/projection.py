"""Estimated counts to strictly positive rows: the last step of a debiased release.

Unbiased estimates of counts dip below zero where counts are small. Each row is moved to the
nearest point, in Euclidean distance, of those rows that keep the estimated total and have at
least a small floor in every cell: half a transition, or less in rows of few. That point is
``max(v - tau, floor)`` with one ``tau`` a row (Held, Wolfe and Crowder 1974): what the floor adds
to rare cells is taken evenly from the others. Plain clipping takes it in proportion instead and
draws rows towards uniform; `benchmarks/projection.py` compares both.

It is post-processing: it sees private estimates only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpmarkov.states import StateSpace

__all__ = ["project"]

Floats = npt.NDArray[np.float64]


def project(estimates: Floats, totals: Floats, space: StateSpace) -> tuple[Floats, int]:
    """Move each row of estimates to the nearest one with every cell at its floor or above.

    Parameters
    ----------
    estimates : array of float
        Private counts aligned with the support.
    totals : array of float, one per row
        What each row shall sum to; a row whose total is not positive becomes uniform.
    space : StateSpace
        The states the cells belong to.

    Returns
    -------
    probabilities : array of float
        Aligned with the support, each row summing to one.
    touched : int
        How many cells ended at the floor.

    Examples
    --------
    >>> space = StateSpace(categories=["A", "B", "C"])
    >>> project(np.array([57.0, 48.0, -5.0]), np.array([100.0]), space)
    (array([0.5425, 0.4525, 0.005 ]), 1)
    """
    floors = _floors(totals, space.row_sizes)
    room = np.where(totals > 0, totals - floors * space.row_sizes, 0.0)
    floor = space.spread(floors)
    excess = estimates - floor
    kept = np.maximum(excess - space.spread(_thresholds(excess, room, space)), 0.0)
    counts = kept + floor
    touched = int(np.count_nonzero(kept <= 1e-9 * floor))  # up to rounding of the threshold
    return counts / space.spread(space.row_sums(counts)), touched


def _floors(totals: Floats, sizes: npt.NDArray[np.int64]) -> Floats:
    """Half a transition, or less where the floors would take over a fifth of a row."""
    return np.where(totals > 0, np.minimum(0.5, 0.2 * totals / sizes), 0.5)


def _thresholds(excess: Floats, room: Floats, space: StateSpace) -> Floats:
    """Find tau of each row such that the positive parts of ``excess - tau`` sum to ``room``."""
    order = np.lexsort((-excess, space.rows))
    falling = excess[order]
    starts = space.row_starts[:-1]
    rank = np.arange(space.n_cells) - space.spread(starts) + 1
    sums = np.cumsum(falling)
    before = np.concatenate(([0.0], sums))[starts]
    tau = (sums - space.spread(before + room)) / rank
    # The cells that stay above tau are the first ones of the falling order.
    staying = np.add.reduceat((falling > tau).astype(np.int64), starts)
    return tau[starts + np.maximum(staying, 1) - 1]
