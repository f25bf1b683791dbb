"""From sensitive counts to a release: the one place where the line is crossed.

`release` calibrates one rate for the whole chain (theory section 3, *rows*), draws the gamma
vector once, and does the rest by post-processing. What steers it is public: the target, the
declared states, and under `destination` the row totals, which that unit does not hide. Under
`transition` nothing is read off the data but through the noise.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmarkov import privacy
from dpmarkov.artefact import Release
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee
from dpmarkov.mechanisms import dirichlet
from dpmarkov.mechanisms.prior import choose_prior
from dpmarkov.mechanisms.projection import project
from dpmarkov.privacy.profiles import Unit, check_unit
from dpmarkov.states import StateSpace

__all__ = ["release"]

Floats = npt.NDArray[np.float64]

_DECLARED = "The states and the feasible transitions were declared without looking at the data."
_ONCE = "This is the only release of these data; several releases add up."
_FROM_DATA = (
    "NOT PRIVATE as it stands: the states were read off the data, and which states occur is not "
    "protected at all."
)
_TOTALS = "How many transitions leave each origin (the row totals) is regarded as public."


def release(
    counts: TransitionCounts,
    *,
    epsilon: float,
    delta: float,
    unit: Unit,
    mechanism: Literal["dirichlet"] = "dirichlet",
    prior: float | Literal["auto"] = "auto",
    debias: bool = True,
    assume_floor: float | None = None,
    expected_total: float | None = None,
) -> Release:
    """Privatize counts: a chain, a table or a single row, with its guarantee.

    Parameters
    ----------
    counts : TransitionCounts
        The sensitive counts.
    epsilon, delta : float
        The promise.
    unit : {"destination", "transition"}
        What is hidden; see `dpmarkov.privacy`.
    mechanism : "dirichlet"
        The noise: Dirichlet rows by certified gamma variates.
    prior : float or "auto"
        Pseudo-counts for every feasible transition, rounded up to a multiple of 1/64; they must
        exceed `dpmarkov.privacy.minimum_mass`. ``"auto"`` chooses them from public numbers.
    debias : bool
        Take the prior out of the rows again and project them to positive ones. Otherwise the
        rows are the Dirichlet variates themselves, drawn towards uniform by the prior.
    assume_floor : float, optional
        The paper's setting, without a prior: the curator asserts that in every row each feasible
        transition has at least this share eta. A condition of the guarantee; needs the unit
        `destination`.
    expected_total : float, optional
        A public guess of the number of transitions, for ``prior="auto"`` where the true number
        is private. A wrong guess costs accuracy, never privacy.

    Returns
    -------
    Release

    Raises
    ------
    InfeasibleError
        If no rate meets the target at this mass; it says what would.
    DpmarkovError
        If an argument is out of range or does not go with another.

    Examples
    --------
    >>> from dpmarkov.states import StateSpace
    >>> space = StateSpace(["sun", "rain"])
    >>> counts = TransitionCounts.from_dense([[9000, 1000], [3000, 2000]], space)
    >>> out = release(counts, epsilon=1.0, delta=1e-6, unit="transition")
    >>> out
    Release(2 states, all 4 transitions feasible; dirichlet; epsilon=1, delta=1e-06,
    unit='transition')
    >>> bool(abs(out.matrix - counts.proportions()).max() < 0.02)
    True
    """
    check_unit(unit)
    if mechanism != "dirichlet":
        raise DpmarkovError(f"mechanism must be 'dirichlet', not {mechanism!r}")
    if assume_floor is None:
        public_total = counts.total if unit == "destination" else expected_total
        m = _prior(prior, counts.space, unit, epsilon, delta, debias, public_total)
        mass = m
        asserted: tuple[str, ...] = ()
    else:
        mass, asserted = _asserted_floor(counts, assume_floor, unit, prior)
        m, debias = 0.0, False
    rate = dirichlet.exact_rate(privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=mass))
    guarantee = Guarantee(
        unit, float(epsilon), float(delta), rate, mass, _conditions(counts, unit) + asserted
    )
    log_g = dirichlet.draw(counts.cells, rate=rate, prior=m)
    row_totals = counts.row_totals if unit == "destination" else None
    return _assemble(log_g, counts.space, guarantee, m, debias, row_totals)


def _conditions(counts: TransitionCounts, unit: Unit) -> tuple[str, ...]:
    states = _FROM_DATA if counts.states_from_data else _DECLARED
    return (states, _TOTALS, _ONCE) if unit == "destination" else (states, _ONCE)


def _prior(
    prior: float | Literal["auto"],
    space: StateSpace,
    unit: Unit,
    epsilon: float,
    delta: float,
    debias: bool,
    public_total: float | None,
) -> float:
    if prior == "auto":
        chosen = choose_prior(
            unit, epsilon=epsilon, delta=delta, space=space, total=public_total, debias=debias
        )
        return dirichlet.exact_prior(chosen)
    if isinstance(prior, str):
        raise DpmarkovError(f"prior must be a number of pseudo-counts or 'auto', not {prior!r}")
    if not prior > 0:
        raise DpmarkovError(
            f"prior must be above 0, not {prior:g}; for the paper's setting without a prior assert "
            "a floor with assume_floor="
        )
    return dirichlet.exact_prior(prior)


def _asserted_floor(
    counts: TransitionCounts, eta: float, unit: Unit, prior: object
) -> tuple[float, tuple[str, ...]]:
    """Give the mass of the paper's setting, and its condition; refuse data outside it."""
    if unit != "destination" or prior != "auto":
        raise DpmarkovError(
            f"assume_floor goes with unit='destination' and without a prior, not with unit="
            f"{unit!r}, prior={prior!r}: row totals must be public for a share to be a mass"
        )
    largest = 1 / int(counts.space.row_sizes.max())
    if not 0 < eta <= largest:
        raise DpmarkovError(
            f"assume_floor must be above 0 and at most 1/n = {largest:g}, the share of each of n "
            f"destinations in an even row, not {eta:g}"
        )
    needed = np.ceil(eta * counts.row_totals * (1 - 1e-15))
    if not counts.row_totals.all() or np.any(counts.cells < counts.space.spread(needed)):
        raise DpmarkovError(
            f"some row is outside the bordered simplex: assume_floor={eta:g} asserts that every "
            "feasible transition has at least that share of its row. Assert a lower floor, merge "
            "states, or use a prior, which needs no condition"
        )
    condition = (
        f"It holds only among data sets in which every feasible transition has a share of at least "
        f"{eta:g} of its row. The curator asserts this; it is not checked privately."
    )
    return float(needed.min()), (condition,)


def _assemble(
    log_g: Floats,
    space: StateSpace,
    guarantee: Guarantee,
    prior: float,
    debias: bool,
    row_totals: npt.NDArray[np.int64] | None,
) -> Release:
    """Post-process the private gamma vector; nothing here has seen a count but public totals."""
    rows = dirichlet.private_rows(log_g, space)
    if row_totals is None:
        private_counts = dirichlet.private_counts(log_g, rate=guarantee.rate, prior=prior)
        estimates, totals = private_counts, space.row_sums(private_counts)
        spread = np.sqrt(np.maximum(totals, 0) + space.row_sizes * prior) / np.sqrt(guarantee.rate)
        weak = totals < 2 * spread
    else:
        private_counts, totals = None, row_totals.astype(np.float64)
        estimates = rows * space.spread(totals + prior * space.row_sizes) - prior
        weak = totals == 0
    touched = 0
    if debias:
        projected, touched = project(estimates, totals, space)
        # A row without data has nothing to debias: it is the prior, as drawn.
        rows = np.where(space.spread(totals) > 0, projected, rows)
    return Release(
        space=space,
        probabilities=rows,
        guarantee=guarantee,
        mechanism="dirichlet",
        prior=prior,
        debiased=debias,
        touched=touched,
        row_totals=row_totals,
        private_counts=private_counts,
        weak_rows=tuple(space.origins[i] for i in np.flatnonzero(weak)),
    )
