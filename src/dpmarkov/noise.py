"""The noise of a release as its readers see it: a law, its parameters and the privacy it gives.

Three laws, one for each mechanism. All are public values: a guarantee carries one, a file keeps
its parameters, and `profile` says what anyone may check. At the unit `user` it takes the bounds of
a user, `max_cells` and `max_per_cell`.

``dirichlet``
    gamma noise around counts and a prior, so that rows are Dirichlet (the paper);
``geometric``
    whole numbers added to counts, two-sided geometric;
``gaussian``
    normal noise added to counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError
from dpmarkov.mechanisms.gaussian import rounded_normal
from dpmarkov.mechanisms.geometric import two_sided_geometric, variance
from dpmarkov.privacy import integer_noise
from dpmarkov.privacy.losses import BetaLoss, GammaLoss, GaussianLoss, GeometricLoss, Loss
from dpmarkov.privacy.units import Unit, UserBounds, sensitivity

__all__ = ["Dirichlet", "Gaussian", "Geometric", "Mechanism", "Noise", "noise_of"]

Mechanism = Literal["dirichlet", "geometric", "gaussian"]


@dataclass(frozen=True)
class Dirichlet:
    """Gamma noise: every feasible cell draws Gamma(rate * (count + prior)).

    Parameters
    ----------
    rate : float
        The rate r.
    mass : float
        The least weight (count and prior) of a feasible transition.

    Examples
    --------
    >>> Dirichlet(rate=0.75, mass=30.0).profile("transition", 1.0) <= 1e-6
    True
    """

    rate: float
    mass: float
    mechanism: ClassVar[Mechanism] = "dirichlet"

    def profile(self, unit: Unit, epsilon: npt.ArrayLike, **bounds: Unpack[UserBounds]) -> Any:
        """Give the exact delta at epsilon."""
        return privacy.profile(unit, rate=self.rate, mass=self.mass, epsilon=epsilon, **bounds)

    def loss(self, unit: Unit, *, removed: bool, **bounds: Unpack[UserBounds]) -> tuple[Loss, int]:
        """Give the privacy loss of one dominating pair, and how many of it there are."""
        change = sensitivity(unit, **bounds)
        if unit == "destination":
            return BetaLoss(self.rate, self.mass), 1
        return GammaLoss(self.rate, self.mass, change.per_cell, removed), change.cells


@dataclass(frozen=True)
class Geometric:
    """Two-sided geometric noise: every cell adds x with probability as exp(-abs(x) / scale).

    Parameters
    ----------
    scale : float
        The scale of the noise.

    Examples
    --------
    >>> Geometric.calibrated("destination", epsilon=1.0, delta=0.0)
    Geometric(scale=2.0)
    """

    scale: float
    mechanism: ClassVar[Mechanism] = "geometric"

    @classmethod
    def calibrated(
        cls, unit: Unit, *, epsilon: float, delta: float, **bounds: Unpack[UserBounds]
    ) -> Self:
        """Take the least noise that meets a target; delta may be 0."""
        change = sensitivity(unit, **bounds)
        return cls(integer_noise.geometric_scale(change, epsilon=epsilon, delta=delta))

    def profile(self, unit: Unit, epsilon: npt.ArrayLike, **bounds: Unpack[UserBounds]) -> Any:
        """Give the exact delta at epsilon."""
        change = sensitivity(unit, **bounds)
        return integer_noise.geometric_profile(change, scale=self.scale, epsilon=epsilon)

    def loss(self, unit: Unit, *, removed: bool, **bounds: Unpack[UserBounds]) -> tuple[Loss, int]:
        """Give the privacy loss of all cells together, the same in both directions."""
        return GeometricLoss(sensitivity(unit, **bounds), self.scale), 1

    @property
    def variance(self) -> float:
        """Variance of a noisy count."""
        return variance(self.scale)

    def draw(self, size: int) -> npt.NDArray[np.float64]:
        """Draw what is added to counts."""
        return two_sided_geometric(size, scale=self.scale).astype(np.float64)


@dataclass(frozen=True)
class Gaussian:
    """Normal noise, rounded to a fixed grid of 2^-10.

    Parameters
    ----------
    scale : float
        The standard deviation of the noise.

    Examples
    --------
    >>> round(Gaussian.calibrated("destination", epsilon=1.0, delta=1e-6).scale, 3)
    5.975
    """

    scale: float
    mechanism: ClassVar[Mechanism] = "gaussian"

    @classmethod
    def calibrated(
        cls, unit: Unit, *, epsilon: float, delta: float, **bounds: Unpack[UserBounds]
    ) -> Self:
        """Take the least noise that meets a target."""
        change = sensitivity(unit, **bounds)
        return cls(integer_noise.gaussian_scale(change, epsilon=epsilon, delta=delta))

    def profile(self, unit: Unit, epsilon: npt.ArrayLike, **bounds: Unpack[UserBounds]) -> Any:
        """Give the exact delta at epsilon."""
        change = sensitivity(unit, **bounds)
        return integer_noise.gaussian_profile(change, scale=self.scale, epsilon=epsilon)

    def loss(self, unit: Unit, *, removed: bool, **bounds: Unpack[UserBounds]) -> tuple[Loss, int]:
        """Give the privacy loss of all cells together, the same in both directions."""
        return GaussianLoss(sensitivity(unit, **bounds), self.scale), 1

    @property
    def variance(self) -> float:
        """Variance of a noisy count."""
        return self.scale**2

    def draw(self, size: int) -> npt.NDArray[np.float64]:
        """Draw what is added to counts."""
        return rounded_normal(size, scale=self.scale)


Noise = Dirichlet | Geometric | Gaussian

_LAWS: dict[str, type[Noise]] = {law.mechanism: law for law in (Dirichlet, Geometric, Gaussian)}


def noise_of(mechanism: str, parameters: dict[str, Any]) -> Noise:
    """Make a noise again from its mechanism and what `dataclasses.asdict` gave.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism.
    parameters : dict
        Its parameters by name.

    Returns
    -------
    Noise

    Examples
    --------
    >>> noise_of("geometric", {"scale": 2})
    Geometric(scale=2.0)
    """
    if mechanism not in _LAWS:
        raise DpmarkovError(
            f"mechanism must be one of {', '.join(map(repr, _LAWS))}, not {mechanism!r}"
        )
    return _LAWS[mechanism](**{name: float(value) for name, value in parameters.items()})
