"""From private draws to a release: all that happens after the noise, and nothing that saw a count.

What was drawn is private already, so whatever is made of it is too (post-processing): rows that
sum to one, counts without the prior, the projection to positive rows, the names of rows that are
mostly noise. That rests on this module seeing the draws, and row totals where the unit leaves them
public, and nothing else of the data; it imports nothing from the sensitive side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpmarkov.artefact import Release
from dpmarkov.guarantee import Guarantee
from dpmarkov.mechanisms import dirichlet
from dpmarkov.mechanisms.projection import project
from dpmarkov.states import Label, StateSpace

__all__ = ["from_gammas", "from_noisy_counts"]

Floats = npt.NDArray[np.float64]


def from_gammas(
    log_g: Floats,
    space: StateSpace,
    guarantee: Guarantee,
    rate: float,
    prior: float,
    debias: bool,
    row_totals: npt.NDArray[np.int64] | None,
    charged: dict[str, Any],
) -> Release:
    """Make a release of a private gamma vector.

    Parameters
    ----------
    log_g : array of float
        What `dpmarkov.mechanisms.dirichlet.draw` returned.
    space : StateSpace
        The declared states.
    guarantee : Guarantee
        What is promised of the draws.
    rate, prior : float
        What they were drawn with.
    debias : bool
        Whether the prior is taken out of the rows again.
    row_totals : array of int or None
        How many transitions leave each origin, where that is public.
    charged : dict
        How a ledger was charged, as keywords of `Release`.

    Returns
    -------
    Release
    """
    rows = dirichlet.private_rows(log_g, space)
    if row_totals is None:
        private_counts = dirichlet.private_counts(log_g, rate=rate, prior=prior)
        estimates, totals = private_counts, space.row_sums(private_counts)
        spread = np.sqrt(np.maximum(totals, 0) + space.row_sizes * prior) / np.sqrt(rate)
    else:
        private_counts, totals = None, row_totals.astype(np.float64)
        estimates = rows * space.spread(totals + prior * space.row_sizes) - prior
        spread = np.zeros(totals.shape)
    touched = 0
    if debias:
        projected, touched = project(estimates, totals, space)
        # A row without data has nothing to debias: it is the prior, as drawn.
        rows = np.where(space.spread(totals) > 0, projected, rows)
    return Release(
        space=space,
        probabilities=rows,
        guarantee=guarantee,
        prior=prior,
        debiased=debias,
        touched=touched,
        row_totals=row_totals,
        private_counts=private_counts,
        weak_rows=_weak_rows(totals, spread, space),
        **charged,
    )


def from_noisy_counts(
    noisy: Floats,
    space: StateSpace,
    guarantee: Guarantee,
    variance: float,
    row_totals: npt.NDArray[np.int64] | None,
    charged: dict[str, Any],
) -> Release:
    """Make a release of counts with added noise.

    Parameters
    ----------
    noisy : array of float
        Private counts aligned with the support.
    space, guarantee, row_totals, charged
        As for `from_gammas`.
    variance : float
        Variance of the noise in each.

    Returns
    -------
    Release
    """
    if row_totals is None:
        totals, spread = space.row_sums(noisy), np.sqrt(space.row_sizes * variance)
    else:
        totals, spread = row_totals.astype(np.float64), np.zeros(row_totals.shape)
    rows, touched = project(noisy, totals, space)
    return Release(
        space=space,
        probabilities=rows,
        guarantee=guarantee,
        prior=0.0,
        debiased=True,
        touched=touched,
        row_totals=row_totals,
        private_counts=noisy if row_totals is None else None,
        weak_rows=_weak_rows(totals, spread, space),
        **charged,
    )


def _weak_rows(totals: Floats, spread: Floats, space: StateSpace) -> tuple[Label, ...]:
    """Name the origins without data, or with no more than two standard deviations of noise."""
    return tuple(space.origins[i] for i in np.flatnonzero(totals <= 2 * spread))
