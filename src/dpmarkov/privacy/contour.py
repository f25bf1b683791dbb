r"""The exact profile of composed pairs: one contour integral, never below the truth.

With the moment function M of the whole privacy loss (`dpmarkov.privacy.losses`), the profile is

.. math:: \delta(\epsilon) = \frac{1}{2 \pi i} \int_{\Re z = c}
          \frac{M(z) \, e^{-z \epsilon}}{z (z + 1)} \, dz , \qquad 0 < c,

as ``1 / (z (z + 1))`` is the transform of ``(1 - e^-x)`` on ``x > 0``. On the line through the
saddle point nothing cancels, and the trapezium rule converges geometrically. More: by Poisson's
formula the rule of step ``2 pi / T`` does not return delta but

.. math:: \sum_{m} \delta(\epsilon + m T) \, e^{c m T} ,

whose terms are all positive. So the discretisation errs on the safe side only, by some e^-24. The
nodes are evaluated in ball arithmetic, which bounds every rounding error, and what lies beyond the
last node is bounded and added: the modulus of a moment with a density falls along the line
(``|Gamma(x + iy)|`` does, as a product of falling factors), and that of any other never exceeds
its value at c. Hence the result is a proof, whatever the number of cells and however small
delta is.

Losses on a lattice alone have no density: their moments do not fall. A normal loss, small beside
theirs, is then composed with them. It can only raise delta (leave out what it belongs to, and
the data processing inequality says so), and makes the line short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmarkov.privacy.losses import GaussianLoss, Loss
from dpmarkov.privacy.smallest_fraction import upward
from dpmarkov.privacy.units import Sensitivity

if TYPE_CHECKING:
    from flint import arb

__all__ = ["delta", "is_rough"]

_BITS = (160, 320, 640, 1280)
_PERIOD = 24.0  # T, in standard deviations of the tilted loss
_TAIL = 1e-10  # what may be left beyond the last node, relative to the sum and for each node
_LEAST = -700.0  # the log of a delta below which an easier bound is as good
_SMOOTHING = 0.02  # the least spread of the smooth losses, relative to the whole
_NODES = 200_000
_TAYLOR = 3  # value, slope and curvature


def delta(losses: Sequence[tuple[Loss, int]], epsilon: float) -> float:
    """Bound the profile of independent losses, from above and by less than 1e-6 of it.

    Parameters
    ----------
    losses : sequence of (Loss, int)
        Each with how many times it occurs.
    epsilon : float
        Any real number.

    Returns
    -------
    float
        At least the true delta(epsilon), at most 1. Where losses on a lattice prevail it may
        exceed the truth by what moves epsilon by some 2e-4 of it.

    Examples
    --------
    >>> from dpmarkov.privacy.losses import GammaLoss
    >>> cells = GammaLoss(rate=0.1, mass=900.0, per_cell=2, removed=True)
    >>> f"{delta([(cells, 100)], 1.0):.6e}"
    '9.232185e-08'
    """
    from flint import ctx

    if epsilon < 0:  # how likely P exceeds e^epsilon Q, from how likely Q exceeds e^-epsilon P
        behind = delta([(loss.mirrored, times) for loss, times in losses], -epsilon)
        return min((-math.expm1(epsilon) + math.exp(epsilon) * behind) * (1 + 2.0**-48), 1.0)
    for bits in _BITS:
        with ctx.workprec(bits):
            found = _Line.through(losses, epsilon).bound()
        if found is not None:
            return min(found, 1.0)
    return 1.0


def is_rough(losses: Sequence[tuple[Loss, int]], epsilon: float) -> bool:
    """Tell whether losses on a lattice prevail, so that `delta` would smooth them.

    Parameters
    ----------
    losses, epsilon
        As for `delta`.

    Returns
    -------
    bool
    """
    from flint import ctx

    with ctx.workprec(_BITS[0]):
        moment = _Sum(losses)
        _, smooth, variance = _saddle(moment, epsilon)
    return moment.rough and smooth < _SMOOTHING**2 * variance


class _Sum:
    """The logarithm of the moment of all losses, smooth and other."""

    def __init__(self, losses: Sequence[tuple[Loss, int]]) -> None:
        self._moments = [(loss.log_moment(), times, loss.smooth) for loss, times in losses]
        self.reach = min(loss.reach for loss, _ in losses)
        self.rough = not all(loss.smooth for loss, _ in losses)

    def parts(self, z: Any) -> tuple[Any, Any]:
        """Log moments of the smooth losses and of the others."""
        logs = [0 * z, 0 * z]
        for log_moment, times, smooth in self._moments:
            logs[0 if smooth else 1] += log_moment(z) * times
        return logs[0], logs[1]


@dataclass(frozen=True)
class _Line:
    """Where to integrate."""

    moment: _Sum
    epsilon: arb
    c: float
    sigma: float

    @classmethod
    def through(cls, losses: Sequence[tuple[Loss, int]], epsilon: float) -> _Line:
        """Find the saddle point, and smooth the losses if that is needed."""
        from flint import arb

        moment = _Sum(losses)
        c, smooth, variance = _saddle(moment, epsilon)
        wanted = _SMOOTHING**2 * variance
        if moment.rough and smooth < wanted:
            added = GaussianLoss(Sensitivity(1), 1 / math.sqrt(wanted))
            moment = _Sum([*losses, (added, 1)])
        return cls(moment, arb(epsilon), c, math.sqrt(variance))

    def bound(self) -> float | None:
        """Sum the nodes and bound the rest; None if the precision does not suffice."""
        from flint import acb, arb

        c, step = arb(self.c), 2 * math.pi / (_PERIOD * self.sigma)
        smooth, other = self.moment.parts(c)
        chernoff = smooth + other - c * self.epsilon
        if upward(chernoff) < _LEAST:
            return upward(chernoff.exp())
        total = (chernoff.exp() / (c * (c + 1))) / 2
        for k in range(1, _NODES):
            z = acb(c, k * arb(step))
            smooth_z, other_z = self.moment.parts(z)
            node = (smooth_z + other_z - z * self.epsilon).exp() / (z * (z + 1))
            total += node.real
            # All later nodes together, over the sum of 1 / (k step)^2.
            rest = (smooth_z.real + other - c * self.epsilon).exp() / (k * arb(step) ** 2)
            if not (rest > _TAIL * k * total):
                break
        if not (total > 0 and total.rel_accuracy_bits() > 40):
            return None
        return upward((total + rest) * arb(step) / arb.pi())


def _saddle(moment: _Sum, epsilon: float) -> tuple[float, float, float]:
    """Find where the integrand is least on the real axis, and how fast it rises there.

    This is told as variances: of the smooth losses, tilted, and of all that there is.

    Newton's method on the slope of a convex function, to a tenth of a standard deviation: where
    the line runs decides how long it is, not what it gives.
    """
    from flint import arb_series

    low, high, c = 0.0, moment.reach, min(1.0, moment.reach / 2)
    for _ in range(200):
        z = arb_series([c, 1], _TAYLOR)
        logs = moment.parts(z)
        smooth, other = (2 * float(log[2]) for log in logs)
        slope = float(logs[0][1] + logs[1][1]) - epsilon - 1 / c - 1 / (c + 1)
        curvature = smooth + other + 1 / c**2 + 1 / (c + 1) ** 2
        vanishes = float(logs[0][0] + logs[1][0]) - c * epsilon < _LEAST
        if vanishes or abs(slope) <= 0.1 * math.sqrt(curvature):
            break
        low, high = (low, c) if slope > 0 else (c, high)
        c = _between(low, high, c - slope / curvature)
    return c, smooth, curvature


def _between(low: float, high: float, wanted: float) -> float:
    """Take the wanted point if it is inside, else one in the middle."""
    if low < wanted < high:
        return wanted
    if math.isinf(high):
        return 4 * low
    return high / 4 if low == 0 else (math.sqrt(low * high) if high > 4 * low else (low + high) / 2)
