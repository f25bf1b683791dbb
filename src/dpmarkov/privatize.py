"""From sensitive counts to a release: the one place where the line is crossed.

`release` calibrates the noise once for the whole chain (theory section 3, *rows*), draws it once
for each feasible cell, and leaves the rest to `dpmarkov.postprocessing`. What steers it is public:
the target, the declared states, and under `destination` the row totals, which that unit does not
hide. Under `transition` and `user` nothing is read off the data but through the noise. Where there
is a ledger, it is charged when all of that is settled and before the first random bit is drawn.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmarkov import privacy
from dpmarkov.artefact import Release
from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee, check_share, in_full
from dpmarkov.mechanisms import dirichlet
from dpmarkov.mechanisms.prior import choose_prior, floor_masses
from dpmarkov.noise import Dirichlet, Gaussian, Geometric, Mechanism, Noise
from dpmarkov.postprocessing import from_gammas, from_noisy_counts
from dpmarkov.privacy.composition import ONLY_RELEASE
from dpmarkov.privacy.pure_share import remaining
from dpmarkov.privacy.units import Unit, UserBounds, bounds_for, sensitivity
from dpmarkov.states import StateSpace

if TYPE_CHECKING:
    from dpmarkov.ledger import Dataset

__all__ = ["release"]

_DECLARED = "The states and the feasible transitions were declared without looking at the data."
_IN_A_LEDGER = (
    "Several releases of these data add up. A ledger keeps all that are charged to it, this one "
    "among them, within epsilon = {epsilon} and delta = {delta} together, as long as how much "
    "noise one gets is not chosen by looking at the results of the others."
)
_OF_A_PART = (
    "The data are of the part {0.part!r} alone, and nothing that the unit hides has data in two "
    "parts. The curator declares this."
)
_FROM_DATA = (
    "NOT PRIVATE as it stands: the states were read off the data, and which states occur is not "
    "protected at all."
)
_MERGED = (
    "The {before} declared states were merged into {after} by their {totals}, along an adjacency "
    "that was declared without looking at the data. A group bears the label of its largest state."
)
_DECLARED_BOUNDS = "The bounds of users were declared without looking at the data."
_CHOSEN_BOUNDS = (
    "The bounds of users were chosen from noisy numbers of users, drawn once, whose share of "
    "epsilon is counted here."
)
_ONE_NAME = "Every person goes by one name in the user column; one with two names is two users."
_TOTALS = "How many transitions leave each origin (the row totals) is regarded as public."


def release(
    counts: TransitionCounts,
    *,
    epsilon: float,
    delta: float,
    unit: Unit,
    mechanism: Mechanism = "dirichlet",
    prior: float | Literal["auto"] = "auto",
    debias: bool = True,
    assume_floor: float | None = None,
    expected_total: float | None = None,
    ledger: Dataset | None = None,
) -> Release:
    """Privatize counts: a chain, a table or a single row, with its guarantee.

    Parameters
    ----------
    counts : TransitionCounts
        The sensitive counts.
    epsilon, delta : float
        The promise.
    unit : {"destination", "transition", "user"}
        What is hidden; see `dpmarkov.privacy`. A user is hidden up to the bounds that the counts
        were made with (``user=``, ``max_cells=`` and ``max_per_cell=``).
    mechanism : {"dirichlet", "geometric", "gaussian"}
        The noise: gamma noise, which makes Dirichlet rows, or noise that is added to counts, which
        are then projected to positive rows. Geometric noise is the only one that allows
        ``delta=0``, and the least unless delta is large beside epsilon: at (1, 1e-6) its variance
        is a fifth of the Gaussian's (`destination`) or a tenth (`transition`). For users of many
        cells (about 9 or more) Gaussian noise, or gamma noise with a large prior, is the least.
    prior : float or "auto"
        For the Dirichlet mechanism, pseudo-counts for every feasible transition, rounded up to a
        multiple of 1/64; they must exceed `dpmarkov.privacy.minimum_mass`. ``"auto"`` chooses
        them from public numbers.
    debias : bool
        For the Dirichlet mechanism: take the prior out of the rows again and project them to
        positive ones. Otherwise the rows are the Dirichlet variates themselves, drawn towards
        uniform by the prior.
    assume_floor : float, optional
        The paper's setting, Dirichlet without a prior: the curator asserts that in every row each
        feasible transition has at least this share eta. A condition of the guarantee; needs the
        unit `destination`.
    expected_total : float, optional
        A public guess of the number of transitions, for ``prior="auto"`` where the true number
        is private. A wrong guess costs accuracy, never privacy.
    ledger : Dataset, optional
        A data set of a `dpmarkov.Ledger`: charged before noise is drawn, told when the release has
        been saved. A release that is never saved stays charged.

    Returns
    -------
    Release

    Raises
    ------
    InfeasibleError
        If no rate meets the target at this mass; it says what would.
    BudgetError
        If the ledger has less left; nothing is charged or drawn then.
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
    if not isinstance(counts, TransitionCounts):
        raise DpmarkovError(
            f"counts is a {type(counts).__name__} and must be TransitionCounts, which know their "
            "states: count events with count_transitions, or use TransitionCounts.from_dense"
        )
    target = _target(counts, unit, _number("epsilon", epsilon), _number("delta", delta), ledger)
    _check_ledger(counts, unit, ledger)
    if mechanism == "dirichlet":
        return _dirichlet(counts, target, prior, debias, assume_floor, expected_total)
    if mechanism not in _ADDED:
        known = ", ".join(map(repr, ("dirichlet", *_ADDED)))
        raise DpmarkovError(f"mechanism must be one of {known}, not {mechanism!r}")
    given = {
        "prior": prior != "auto",
        "debias": not debias,
        "assume_floor": assume_floor is not None,
        "expected_total": expected_total is not None,
    }
    _refuse_of_dirichlet([name for name, is_given in given.items() if is_given], mechanism)
    return _added(counts, target, _ADDED[mechanism])


_ADDED: dict[str, type[Geometric | Gaussian]] = {"geometric": Geometric, "gaussian": Gaussian}


def _number(name: str, value: float) -> float:
    if not isinstance(value, Real):
        raise DpmarkovError(f"{name} must be a number, not {value!r}")
    return float(value)


class _Target(NamedTuple):
    """The promise, what of its epsilon is left for the noise in the counts, and who keeps count."""

    unit: Unit
    epsilon: float
    delta: float
    left: float
    ledger: Dataset | None
    bounds: UserBounds

    @property
    def goal(self) -> dict[str, Any]:
        """What the noise in the counts must give, as keywords."""
        return {"unit": self.unit, "epsilon": self.left, "delta": self.delta, **self.bounds}


def _target(
    counts: TransitionCounts, unit: Unit, epsilon: float, delta: float, ledger: Dataset | None
) -> _Target:
    """Take off what merging has spent, and refuse what this unit does not cover."""
    bounds = bounds_for(unit, counts.max_cells, counts.max_per_cell)
    sensitivity(unit, **bounds)
    if unit != "user" and counts.max_cells is not None:
        raise DpmarkovError(
            f"the counts were bounded by user and cannot be released at {unit!r}: one transition "
            "less lets another of that user's cells in, so that more than one cell moves. Release "
            "at unit='user', or count without user="
        )
    merged_for = counts.merged_for or ("destination" if counts.space.merges else unit)
    if merged_for != unit:
        raise DpmarkovError(
            f"the states were merged for the unit {merged_for!r} and cannot be released at "
            f"{unit!r}, which does not cover how their row totals were used; merge the original "
            f"counts again with unit={unit!r}{', epsilon=share' * (unit != 'destination')}"
        )
    check_share(unit, epsilon, counts.spent_epsilon)
    return _Target(unit, epsilon, delta, remaining(epsilon, counts.spent_epsilon), ledger, bounds)


def _refuse_of_dirichlet(names: list[str], mechanism: Mechanism) -> None:
    if names:
        raise DpmarkovError(
            f"{names[0]} goes with mechanism='dirichlet', not with {mechanism!r}, which adds its "
            "noise to the counts as they are; leave it out"
        )


def _promise(
    counts: TransitionCounts, target: _Target, noise: Noise, asserted: tuple[str, ...] = ()
) -> Guarantee:
    return Guarantee(
        target.unit,
        target.epsilon,
        target.delta,
        noise,
        _conditions(counts, target.unit, target.ledger) + asserted,
        counts.spent_epsilon,
        **target.bounds,
    )


def _public_totals(counts: TransitionCounts, unit: Unit) -> npt.NDArray[np.int64] | None:
    return counts.row_totals if unit == "destination" else None


def _conditions(counts: TransitionCounts, unit: Unit, ledger: Dataset | None) -> tuple[str, ...]:
    states = (_FROM_DATA if counts.states_from_data else _DECLARED, *_merging(counts.space, unit))
    about_unit = {"destination": (_TOTALS,), "transition": (), "user": _users(counts)}[unit]
    return (*states, *about_unit, *_others(ledger))


def _others(ledger: Dataset | None) -> tuple[str, ...]:
    """Say what is known of other releases of the same data."""
    if ledger is None:
        return (ONLY_RELEASE,)
    budget = ledger.budget
    kept = (_IN_A_LEDGER.format(epsilon=in_full(budget.epsilon), delta=in_full(budget.delta)),)
    return kept if ledger.part is None else (*kept, _OF_A_PART.format(ledger))


def _users(counts: TransitionCounts) -> tuple[str, ...]:
    return (_CHOSEN_BOUNDS if counts.bounds_epsilon else _DECLARED_BOUNDS, _ONE_NAME)


def _merging(space: StateSpace, unit: Unit) -> tuple[str, ...]:
    if not space.merges:
        return ()
    totals = "public row totals" if unit == "destination" else "row totals with noise, drawn once"
    after = space.shape[0]
    return (_MERGED.format(before=after + len(space.merges), after=after, totals=totals),)


# -- the ledger --------------------------------------------------------------------------------


def _check_ledger(counts: TransitionCounts, unit: Unit, ledger: Dataset | None) -> None:
    """Refuse what could not be charged, or was charged elsewhere."""
    if ledger is None:
        if counts.charge is not None:
            raise DpmarkovError(
                "what was spent on these counts before was charged to a ledger; release against "
                "the same data set of it (ledger=)"
            )
        return
    if not hasattr(ledger, "check_charged"):
        raise DpmarkovError(
            f"ledger= takes a data set of a ledger, such as ledger.dataset('trips'), not {ledger!r}"
        )
    ledger.check_unit(unit)
    if counts.charge is not None:
        ledger.check_charged(counts.charge)
    elif counts.spent_epsilon:
        raise DpmarkovError(
            "noise was drawn for these counts that no ledger was charged for, to merge states or "
            "to choose bounds; do that again with ledger=, which charges it before"
        )


def _charged(target: _Target, guarantee: Guarantee) -> dict[str, Any]:
    """Charge the ledger, if there is one: not before all is settled, and before any noise."""
    if target.ledger is None:
        return {}
    # What was spent before was charged when it was.
    own = replace(guarantee, epsilon=target.left, spent_epsilon=0.0)
    charge = target.ledger.charge(own)
    return {"charge": charge, "on_saved": partial(target.ledger.confirm, charge)}


# -- gamma noise -------------------------------------------------------------------------------


def _dirichlet(
    counts: TransitionCounts,
    target: _Target,
    prior: float | Literal["auto"],
    debias: bool,
    assume_floor: float | None,
    expected_total: float | None,
) -> Release:
    unit, goal = target.unit, target.goal
    if assume_floor is None:
        public_total = counts.total if unit == "destination" else expected_total
        m = _prior(prior, counts.space, goal, debias, public_total)
        mass = m
        asserted: tuple[str, ...] = ()
    else:
        eta = _number("assume_floor", assume_floor)
        mass, asserted = _asserted_floor(counts, eta, unit, prior)
        m, debias = 0.0, False
    rate = dirichlet.exact_rate(privacy.calibrate(**goal, mass=mass))
    noise = Dirichlet(rate, mass)
    guarantee = _promise(counts, target, noise, asserted)
    dirichlet.check_shapes(counts.cells, rate=rate, prior=m)
    charged = _charged(target, guarantee)
    log_g = dirichlet.draw(counts.cells, rate=rate, prior=m)
    row_totals = _public_totals(counts, unit)
    return from_gammas(log_g, counts.space, guarantee, rate, m, debias, row_totals, charged)


def _prior(
    prior: float | Literal["auto"],
    space: StateSpace,
    goal: dict[str, Any],
    debias: bool,
    public_total: float | None,
) -> float:
    if prior == "auto":
        chosen = choose_prior(**goal, space=space, total=public_total, debias=debias)
        return dirichlet.exact_prior(chosen)
    if not isinstance(prior, Real):
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
    needed = floor_masses(eta, counts.row_totals, counts.space)
    if not counts.row_totals.all() or np.any(counts.cells < counts.space.spread(needed)):
        raise DpmarkovError(
            f"some row is outside the bordered simplex: assume_floor={eta:g} asserts that every "
            "feasible transition has at least that share of its row. Assert a lower floor, merge "
            "states, or use a prior, which needs no condition"
        )
    condition = (
        f"It holds only among data sets in which every feasible transition has a share of at least "
        f"{in_full(eta)} of its row. The curator asserts this; it is not checked privately."
    )
    return float(needed.min()), (condition,)


# -- noise added to counts -----------------------------------------------------------------------


def _added(counts: TransitionCounts, target: _Target, law: type[Geometric | Gaussian]) -> Release:
    noise = law.calibrated(**target.goal)
    guarantee = _promise(counts, target, noise)
    charged = _charged(target, guarantee)
    noisy = counts.cells + noise.draw(counts.space.n_cells)
    row_totals = _public_totals(counts, target.unit)
    return from_noisy_counts(noisy, counts.space, guarantee, noise.variance, row_totals, charged)
