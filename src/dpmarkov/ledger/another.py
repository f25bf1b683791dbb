"""One more release: what it would charge at some epsilon, and how large epsilon may be."""

from __future__ import annotations

from collections.abc import Sequence

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError, InfeasibleError
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger.budget import Budget, Spending, fits, largest
from dpmarkov.mechanisms.dirichlet import exact_prior, exact_rate
from dpmarkov.mechanisms.prior import ample_prior
from dpmarkov.noise import Dirichlet, Gaussian, Geometric, Mechanism, Noise

__all__ = ["remaining"]

_LAWS: dict[str, type[Geometric | Gaussian]] = {"geometric": Geometric, "gaussian": Gaussian}


def remaining(
    charges: Sequence[Spending],
    budget: Budget,
    *,
    mechanism: Mechanism,
    delta: float,
    mass: float | None = None,
    part: str | None = None,
) -> float:
    """Find the largest epsilon at which one more release fits.

    Parameters
    ----------
    charges : sequence of Spending
        What was charged so far.
    budget : Budget
        The budget.
    mechanism : {"dirichlet", "geometric", "gaussian"}
        Its noise.
    delta : float
        The delta that it is calibrated to.
    mass : float, optional
        For the Dirichlet mechanism: its prior, or asserted mass; an ample one without, and where
        epsilon is too small for it.
    part : str, optional
        The part of the data that it touches.

    Returns
    -------
    float
        To four digits. A release at this very epsilon fits, because the same check was made for it.
    """

    def allowed(epsilon: float) -> bool:
        try:
            noise = _calibrated(mechanism, budget, epsilon, delta, mass)
        except InfeasibleError:
            return False
        more = Guarantee(budget.unit, epsilon, delta, noise, conditions=())
        return fits([*charges, Spending(more, part)], budget)

    return largest(allowed, budget.epsilon)


def _calibrated(
    mechanism: Mechanism, budget: Budget, epsilon: float, delta: float, mass: float | None
) -> Noise:
    unit = budget.unit
    if mechanism != "dirichlet":
        if mechanism not in _LAWS:
            known = ", ".join(map(repr, ("dirichlet", *_LAWS)))
            raise DpmarkovError(f"mechanism must be one of {known}, not {mechanism!r}")
        return _LAWS[mechanism].calibrated(unit, epsilon=epsilon, delta=delta)
    if mass is None or mass <= privacy.minimum_mass(unit, epsilon=epsilon, delta=delta):
        mass = exact_prior(ample_prior(unit, epsilon=epsilon, delta=delta))
    rate = privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=mass)
    return Dirichlet(exact_rate(rate), mass)
