"""The mechanisms side by side, at the same unit, epsilon and delta: the truth, whoever wins.

Known truths that a comparison shows (theory section 8): without a prior the Dirichlet mechanism
is the noisiest; with a large prior, taken out again, it comes to the Gaussian's accuracy from
above; at the level of single events geometric noise is the most accurate of the three, and for
users of many cells (about 9 or more) it is the noisiest. What the Dirichlet mechanism has and
the others lack: rows that are positive and sum to one by construction, and every expectation in
closed form.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmarkov.counts import TransitionCounts
from dpmarkov.errors import DpmarkovError, InfeasibleError
from dpmarkov.guarantee import check_share
from dpmarkov.planning.noise import Setting, calibrated
from dpmarkov.planning.shape import (
    Shape,
    check_connected,
    public_bounds,
    public_shape,
    spent_before,
)
from dpmarkov.planning.simulation import Truth, simulated_errors
from dpmarkov.planning.text import Table, number
from dpmarkov.privacy.pure_share import remaining

if TYPE_CHECKING:
    from dpmarkov.privacy.units import Unit

__all__ = ["Comparison", "Contender", "Estimate", "compare"]

_MEASURES = {
    "row_tv": "row TV",
    "row_kl": "row KL",
    "stationary_tv": "stationary TV",
    "ergodicity": "ergodicity",
}
_FLOOR = "dirichlet, floor (the paper)"
_CONTENDERS: dict[str, dict[str, Any]] = {
    _FLOOR: {"mechanism": "dirichlet"},
    "dirichlet, prior": {"mechanism": "dirichlet", "debias": False},
    "dirichlet, prior, debiased": {"mechanism": "dirichlet"},
    "geometric": {"mechanism": "geometric"},
    "gaussian": {"mechanism": "gaussian"},
}
_NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Estimate:
    """A mean over simulated releases with its 95% interval.

    Parameters
    ----------
    mean, low, high : float
        The mean error, and between what the simulation leaves it.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, errors: npt.NDArray[np.float64]) -> Estimate:
        """Average errors of independent draws."""
        mean = float(errors.mean())
        margin = _NORMAL_95 * float(errors.std(ddof=1) / np.sqrt(errors.size))
        return cls(mean, max(mean - margin, 0.0), mean + margin)

    def __str__(self) -> str:
        return f"{number(self.mean)} ±{number(self.high - self.mean, 1)}"


@dataclass(frozen=True)
class Contender:
    """One mechanism and its errors.

    Parameters
    ----------
    name : str
        Which mechanism, in which setting.
    parameter, prior : float or None
        Rate or scale, and pseudo-counts.
    errors : dict of str to Estimate
        Empty where it cannot meet the target.
    why_not : str
        Why it cannot.
    """

    name: str
    parameter: float | None
    prior: float | None
    errors: dict[str, Estimate]
    why_not: str = ""


@dataclass(frozen=True)
class Comparison:
    """The mechanisms side by side.

    Parameters
    ----------
    unit, epsilon, delta
        The target, the same for all.
    states : str
        What was declared, in words.
    curator_only : bool
        Whether the errors were measured on sensitive counts: then they must not be published.
    draws : int
        How many releases of each were simulated.
    notes : tuple of str
        What the errors are measured against.
    contenders : tuple of Contender
        The mechanisms.
    """

    unit: Unit
    epsilon: float
    delta: float
    states: str
    curator_only: bool
    draws: int
    notes: tuple[str, ...]
    contenders: tuple[Contender, ...]

    def best(self, measure: str = "row_tv") -> Contender:
        """Give the contender of the smallest mean error.

        Parameters
        ----------
        measure : {"row_tv", "row_kl", "stationary_tv", "ergodicity"}
            Which error.

        Returns
        -------
        Contender
        """
        able = [x for x in self.contenders if measure in x.errors]
        if not able:
            raise DpmarkovError(f"no contender has an error {measure!r}; see `contenders`")
        return min(able, key=lambda x: x.errors[measure].mean)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        return asdict(self)

    def summary(self) -> str:
        """Say what was compared, and which was the most accurate."""
        audience = (
            "CURATOR ONLY: measured on the sensitive counts, not to be published."
            if self.curator_only
            else "On public numbers alone."
        )
        winners = [
            f"{title}: {self.best(name).name}"
            for name, title in _MEASURES.items()
            if any(name in x.errors for x in self.contenders)
        ]
        lines = [
            f"Mechanisms at ({self.epsilon:g}, {self.delta:g}) and the unit {self.unit!r} for "
            f"{self.states}; {self.draws} simulated releases of each. {audience}",
            f"Most accurate: {'; '.join(winners)}.",
            *(f"{x.name}: not possible. {x.why_not}" for x in self.contenders if x.why_not),
            *self.notes,
        ]
        return "\n".join(fill(line, 88, subsequent_indent="  ") for line in lines)

    def tables(self) -> list[Table]:
        """Give the table of mean errors, each with half of its 95% interval."""
        able = [x for x in self.contenders if x.errors]
        measures = [name for name in _MEASURES if name in able[0].errors]
        headers = ("mechanism", *(_MEASURES[name] for name in measures))
        rows = [(x.name, *(str(x.errors[name]) for name in measures)) for x in able]
        return [Table("Mean errors, with half of their 95% simulation interval:", headers, rows)]

    def __str__(self) -> str:
        return "\n\n".join([self.summary(), *map(str, self.tables())])


def compare(
    counts_or_shape: Any,
    *,
    epsilon: float,
    delta: float,
    unit: Unit,
    assume_floor: float | None = None,
    expected_total: float | None = None,
    row_totals: npt.ArrayLike | None = None,
    matrix: Any = None,
    draws: int = 100,
    rng: np.random.Generator | int | None = None,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
) -> Comparison:
    """Compare the mechanisms by simulation.

    Parameters
    ----------
    counts_or_shape : TransitionCounts, StateSpace or array
        Counts: the comparison is for the curator only. Else what is public, as for `plan`.
    epsilon, delta, unit
        The target, the same for all. What counts have spent of epsilon is taken off first.
    assume_floor : float, optional
        The share that the paper's setting asserts; by default the smallest there is, as the paper
        has it.
    expected_total, row_totals, matrix : optional
        As for `plan`, where no counts are given.
    draws : int
        How many releases of each to simulate.
    rng : numpy.random.Generator or int, optional
        The source of chance. This is simulation: nothing drawn here is ever published.
    max_cells, max_per_cell : int, optional
        For the unit `user`, as for `plan`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> target = {"epsilon": 1.0, "delta": 1e-6, "unit": "destination"}
    >>> found = compare([5000] * 10, draws=20, rng=1, **target)
    >>> found.curator_only, found.best("row_tv").name
    (False, 'geometric')
    """
    if draws < 2:
        raise DpmarkovError(f"draws must be at least 2, to have an interval, not {draws}")
    shape, truth = _both_sides(counts_or_shape, unit, expected_total, row_totals, matrix)
    check_connected(shape.space)
    generator = np.random.default_rng(rng)
    bounds = public_bounds(counts_or_shape, unit, max_cells, max_per_cell)
    spent = spent_before(counts_or_shape)
    check_share(unit, epsilon, spent)
    target = {"unit": unit, "epsilon": remaining(epsilon, spent), "delta": delta, **bounds}
    floor = _smallest_share(truth) if assume_floor is None else assume_floor
    contenders = []
    for name, settings in _CONTENDERS.items():
        if name == _FLOOR:
            settings = settings | {"assume_floor": floor}
        setting, why_not = _calibrated(name, shape, settings | target, truth)
        contenders.append(_contender(name, setting, why_not, truth, draws, generator))
    sensitive = isinstance(counts_or_shape, TransitionCounts)
    return Comparison(
        unit, epsilon, delta, repr(shape.space)[len("StateSpace(") : -1], sensitive, draws,
        _notes(shape, truth, sensitive), tuple(contenders),
    )  # fmt: skip


def _contender(
    name: str,
    setting: Setting | None,
    why_not: str,
    truth: Truth,
    draws: int,
    rng: np.random.Generator,
) -> Contender:
    if setting is None:
        return Contender(name, None, None, {}, why_not)
    errors = simulated_errors(setting, truth, draws=draws, rng=rng)
    means = {measure: Estimate.of(values) for measure, values in errors.items()}
    return Contender(name, setting.parameter, setting.prior, means)


def _both_sides(
    source: Any, unit: Unit, expected_total: float | None, row_totals: Any, matrix: Any
) -> tuple[Shape, Truth]:
    """Give what a release may know, and what it is held against."""
    shape = public_shape(
        source, unit=unit, expected_total=expected_total, row_totals=row_totals, matrix=matrix
    )
    if isinstance(source, TransitionCounts):
        return shape, Truth(shape.space, source.cells.astype(np.float64))
    if shape.row_totals is None:
        raise DpmarkovError(
            "the size is not known: give expected_total= or row_totals=, or counts for a "
            "comparison that only the curator may see"
        )
    return shape, Truth(shape.space, shape.probabilities * shape.space.spread(shape.row_totals))


def _smallest_share(truth: Truth) -> float:
    # A hair less, so that rounding does not ask for one transition more than there is.
    return float(truth.rows.min()) * (1 - 1e-12)


def _calibrated(
    name: str, shape: Shape, settings: dict[str, Any], truth: Truth
) -> tuple[Setting | None, str]:
    if name == _FLOOR and settings["unit"] != "destination":
        return None, "An asserted floor is a mass only where row totals are public."
    if name == _FLOOR and not truth.cells.all():
        return None, "Some feasible transition has no count, so no floor holds."
    if settings["delta"] == 0 and settings["mechanism"] != "geometric":
        return None, "Only geometric noise meets a target whose delta is 0."
    try:
        return calibrated(shape=shape, **settings), ""
    except InfeasibleError as error:
        return None, f"{str(error)[0].upper()}{str(error)[1:]}."


def _notes(shape: Shape, truth: Truth, sensitive: bool) -> tuple[str, ...]:
    notes = [] if sensitive else [f"Assumed: {'; '.join(shape.assumptions)}."]
    if not sensitive and truth.rows.min() * shape.space.row_sizes.max() > 1 - 1e-9:
        notes.append("Even rows flatter the paper's setting: real rows have smaller floors.")
    if shape.space.kind == "square" and not truth.has_long_run:
        notes.append(
            "The counts alone have no unique stationary distribution; it and the ergodicity "
            "coefficient are held against the counts at the floor of a release without noise."
        )
    return tuple(notes)
