"""One more release: what it would charge at some epsilon, and how large epsilon may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError, InfeasibleError
from dpmarkov.guarantee import Guarantee
from dpmarkov.ledger.budget import Budget, Spending, fits, largest
from dpmarkov.mechanisms.dirichlet import exact_prior, exact_rate
from dpmarkov.mechanisms.prior import ample_prior
from dpmarkov.noise import Dirichlet, Gaussian, Geometric, Mechanism, Noise
from dpmarkov.privacy.units import Unit, UserBounds

__all__ = ["calibrated", "remaining"]

_LAWS: dict[str, type[Geometric | Gaussian]] = {"geometric": Geometric, "gaussian": Gaussian}


def remaining(
    charges: Sequence[Spending],
    budget: Budget,
    *,
    mechanism: Mechanism,
    delta: float,
    mass: float | None = None,
    part: str | None = None,
    after_share: bool = False,
    **bounds: Unpack[UserBounds],
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
    after_share : bool
        Whether a step that was charged before may decide on its noise.
    max_cells, max_per_cell : int
        Under `user`: how users are bounded.

    Returns
    -------
    float
        To four digits. A release at this very epsilon fits, because the same check was made for it.
    """
    if delta == 0 and mechanism in ("dirichlet", "gaussian"):
        raise DpmarkovError(
            f"{mechanism} noise has no epsilon at delta = 0, as geometric noise alone has; ask "
            "for mechanism='geometric', or for a delta above 0 out of a budget that has one"
        )

    def allowed(epsilon: float) -> bool:
        try:
            noise = calibrated(mechanism, budget.unit, epsilon, delta, mass, bounds)
        except InfeasibleError:
            return False
        more = Guarantee(
            budget.unit, epsilon, delta, noise, conditions=(), after_share=after_share, **bounds
        )
        return fits([*charges, Spending(more, part)], budget)

    return largest(allowed, budget.epsilon)


def calibrated(
    mechanism: Mechanism,
    unit: Unit,
    epsilon: float,
    delta: float,
    mass: float | None,
    bounds: UserBounds,
) -> Noise:
    """Give the noise that a release would draw, from public numbers."""
    if mechanism != "dirichlet":
        if mechanism not in _LAWS:
            known = ", ".join(map(repr, ("dirichlet", *_LAWS)))
            raise DpmarkovError(f"mechanism must be one of {known}, not {mechanism!r}")
        return _LAWS[mechanism].calibrated(unit, epsilon=epsilon, delta=delta, **bounds)
    goal: dict[str, Any] = {"unit": unit, "epsilon": epsilon, "delta": delta, **bounds}
    if mass is None or mass <= privacy.minimum_mass(**goal):
        mass = exact_prior(ample_prior(**goal))
    rate = privacy.calibrate(**goal, mass=mass)
    return Dirichlet(exact_rate(rate), mass)
