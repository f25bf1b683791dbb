"""What each mechanism does to a count, in one table of closed forms.

At the same unit, epsilon and delta (theory section 8) the noise on a count c has the variance

* Dirichlet: ``(c + m) / r``, with the prior m and the calibrated rate r;
* geometric: ``1 / (2 sinh(1 / (2 s))^2)``, with the scale s;
* Gaussian: ``s^2``.

Rows follow to first order: a row of noisy counts e_j around total N is off by
``E_j = (e_j - q_j sum(e)) / N``, where q says along which distribution the sum of the noise is
taken away again: the row itself when one divides by the noisy total, the mean of the Dirichlet
row when the total is known, and evenly when noisy counts are projected to a known total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
import numpy.typing as npt

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.dirichlet import exact_prior, exact_rate
from dpmarkov.mechanisms.prior import choose_prior
from dpmarkov.noise import Dirichlet, Gaussian, Geometric, Mechanism, Noise
from dpmarkov.privacy.units import Unit, UserBounds, bounds_for, check_unit

if TYPE_CHECKING:
    from dpmarkov.planning.shape import Shape
    from dpmarkov.states import StateSpace

__all__ = ["MECHANISMS", "Setting", "advice", "calibrated"]

Floats = npt.NDArray[np.float64]
MECHANISMS: tuple[Mechanism, ...] = ("dirichlet", "geometric", "gaussian")

# A smaller standard deviation than this fraction is worth a word.
_CLEARLY = 0.85


@dataclass(frozen=True)
class Setting:
    """A law of noise, and how it is used.

    Parameters
    ----------
    law : Dirichlet, Geometric or Gaussian
        The calibrated noise.
    unit : {"destination", "transition", "user"}
        What it hides.
    prior : float
        The pseudo-counts m of the Dirichlet mechanism; 0 for the others.
    debias : bool
        Whether the prior is taken out again.
    max_cells, max_per_cell : int, optional
        For the unit `user`: the bounds that every user was cut down to.
    """

    law: Noise
    unit: Unit
    prior: float = 0.0
    debias: bool = True
    max_cells: int | None = None
    max_per_cell: int | None = None

    @property
    def bounds(self) -> UserBounds:
        """The bounds of a user as keywords; empty at other units."""
        return bounds_for(self.unit, self.max_cells, self.max_per_cell)

    @property
    def parameter(self) -> float:
        """The rate of the Dirichlet mechanism, the scale of the others."""
        return self.law.rate if isinstance(self.law, Dirichlet) else self.law.scale

    @property
    def as_drawn(self) -> bool:
        """Whether rows are the Dirichlet variates themselves."""
        return isinstance(self.law, Dirichlet) and not self.debias

    def variance(self, counts: npt.ArrayLike) -> Floats:
        """Variance of the noise on counts.

        Parameters
        ----------
        counts : array_like
            Expected counts.

        Returns
        -------
        array of float
        """
        c = np.asarray(counts, dtype=np.float64)
        if isinstance(self.law, Dirichlet):
            return np.asarray((c + self.prior) / self.law.rate)
        return np.full(c.shape, self.law.variance)

    def means(self, C: Floats, N: Floats, space: StateSpace) -> Floats:
        """Mean of the Dirichlet rows, drawn towards uniform by the prior.

        Parameters
        ----------
        C, N : array of float
            Probabilities aligned with the support, and totals of the rows.
        space : StateSpace
            The declared states.

        Returns
        -------
        array of float
        """
        size, n = space.spread(N), space.spread(space.row_sizes.astype(np.float64))
        return (C * size + self.prior) / (size + n * self.prior)

    def relative(self, C: Floats, N: Floats, space: StateSpace) -> tuple[Floats, Floats]:
        """Variance of the noise of every cell relative to its row's total, and the centres q.

        Parameters
        ----------
        C, N, space
            As for `means`.

        Returns
        -------
        variances, centres : array of float
            Aligned with the support.
        """
        size, n = space.spread(N), space.spread(space.row_sizes.astype(np.float64))
        p = self.means(C, N, space)
        if self.as_drawn:
            return p / (self.parameter * (size + n * self.prior) + 1), p
        v = self.variance(C * size) / size**2
        if self.unit != "destination":
            return v, C
        return v, p if isinstance(self.law, Dirichlet) else 1 / n


def calibrated(
    mechanism: Mechanism,
    shape: Shape,
    *,
    unit: Unit,
    epsilon: float,
    delta: float,
    prior: float | Literal["auto"] = "auto",
    debias: bool = True,
    assume_floor: float | None = None,
    **bounds: Unpack[UserBounds],
) -> Setting:
    """Calibrate a mechanism to a target, as a release does, from public numbers alone.

    Parameters
    ----------
    mechanism : {"dirichlet", "geometric", "gaussian"}
        Which one.
    shape : Shape
        What is public.
    unit, epsilon, delta
        The target.
    prior, debias, assume_floor
        As for `dpmarkov.release`; for the Dirichlet mechanism only.
    max_cells, max_per_cell : int
        For the unit `user`: the bounds that every user was cut down to.

    Returns
    -------
    Setting

    Raises
    ------
    InfeasibleError
        If no rate meets the target at this mass.

    Examples
    --------
    >>> from dpmarkov.planning.shape import public_shape
    >>> shape = public_shape([500, 500], unit="transition")
    >>> target = {"unit": "transition", "epsilon": 1.0, "delta": 1e-6}
    >>> [round(float(calibrated(m, shape, **target).variance(250.0)) ** 0.5, 1) for m in MECHANISMS]
    [4.4, 1.4, 4.2]
    """
    check_unit(unit)
    if mechanism not in MECHANISMS:
        raise DpmarkovError(f"mechanism must be one of {', '.join(MECHANISMS)}, not {mechanism!r}")
    _check_settings(mechanism, prior, debias, assume_floor)
    if mechanism != "dirichlet":
        law = Geometric if mechanism == "geometric" else Gaussian
        noise = law.calibrated(unit, epsilon=epsilon, delta=delta, **bounds)
        return Setting(noise, unit, **bounds)
    if assume_floor is not None:
        mass, m, debias = _floor_mass(shape, unit, assume_floor), 0.0, False
    else:
        mass = m = _prior(prior, shape, unit, epsilon, delta, debias, bounds)
    rate = privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=mass, **bounds)
    return Setting(Dirichlet(exact_rate(rate), mass), unit, m, debias, **bounds)


def _check_settings(
    mechanism: Mechanism,
    prior: float | Literal["auto"],
    debias: bool,
    assume_floor: float | None,
) -> None:
    """Refuse what a release refuses."""
    if mechanism != "dirichlet" and (prior != "auto" or not debias or assume_floor is not None):
        raise DpmarkovError(
            "prior, debias and assume_floor go with mechanism='dirichlet', not with "
            f"{mechanism!r}, which adds its noise to the counts as they are; leave them out"
        )
    if assume_floor is not None and prior != "auto":
        raise DpmarkovError(
            f"assume_floor goes without a prior, not with prior={prior!r}; leave one of them out"
        )


def _prior(
    prior: float | Literal["auto"],
    shape: Shape,
    unit: Unit,
    epsilon: float,
    delta: float,
    debias: bool,
    bounds: UserBounds,
) -> float:
    if not isinstance(prior, str):
        return exact_prior(prior)
    chosen = choose_prior(
        unit, epsilon=epsilon, delta=delta, space=shape.space, total=shape.total, debias=debias,
        **bounds,
    )  # fmt: skip
    return exact_prior(chosen)


def _floor_mass(shape: Shape, unit: Unit, eta: float) -> float:
    """Give the mass of the paper's setting: a share eta of the smallest row."""
    if unit != "destination" or shape.row_totals is None:
        raise DpmarkovError(
            "assume_floor goes with unit='destination' and row totals that are given, not with "
            f"unit={unit!r}: a share is a mass only where totals are public"
        )
    largest = 1 / int(shape.space.row_sizes.max())
    if not 0 < eta <= largest:
        raise DpmarkovError(
            f"assume_floor must be above 0 and at most 1/n = {largest:g}, the share of each of n "
            f"destinations in an even row, not {eta:g}"
        )
    return float(max(np.ceil(eta * shape.row_totals.min() * (1 - 1e-15)), 1.0))


def advice(
    setting: Setting, *, epsilon: float, delta: float, mean_cell: float | None = None
) -> str | None:
    """Say in one line when another mechanism is predicted to be clearly more accurate.

    Parameters
    ----------
    setting : Setting
        The mechanism that was chosen.
    epsilon, delta : float
        Its target.
    mean_cell : float, optional
        Expected count of a cell; without it the prior alone decides.

    Returns
    -------
    str or None
        None if no other is better by more than 15%.

    Examples
    --------
    >>> chosen = Setting(Dirichlet(600.0, 10_000.0), "transition", prior=10_000.0)
    >>> print(advice(chosen, epsilon=1.0, delta=1e-6))
    mechanism='geometric' is predicted to be 3.0 times as accurate here: ...
    """
    mine, laws = float(np.sqrt(setting.variance(mean_cell or 0.0))), (Geometric, Gaussian)
    # Where delta is 0 geometric noise is the only one.
    others = [
        law.calibrated(setting.unit, epsilon=epsilon, delta=delta, **setting.bounds)
        for law in (laws if delta > 0 else laws[:1])
    ]
    best = min(others, key=lambda law: law.variance)
    theirs = best.variance**0.5
    if best.mechanism == setting.law.mechanism or theirs > _CLEARLY * mine:
        return None
    return (
        f"mechanism={best.mechanism!r} is predicted to be {mine / theirs:.1f} times as accurate "
        f"here: its noise on a count has standard deviation {theirs:.2g}, that of the "
        f"{setting.law.mechanism} mechanism {mine:.2g}"
    )
