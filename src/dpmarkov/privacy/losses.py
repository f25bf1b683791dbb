"""Privacy losses as laws: what their exponential moments are.

The *privacy loss* of a pair (P, Q) is ``L = log dP/dQ`` at a draw from P, and the losses of
independent draws add up. So all that composition needs to know of a pair is the moment function
``M(z) = E_P[exp(z L)]``: moments multiply. It is elementary for every pair here, with
``a = kappa + h``, ``b = kappa``:

* Gamma(a) against Gamma(b), *added*: ``Gamma(a + h z) / Gamma(a) exp(-z B)``, where
  ``B = log Gamma(a) - log Gamma(b)``; *removed*, the other way round:
  ``Gamma(b - h z) / Gamma(b) exp(z B)``, finite for ``Re z < b / h``;
* Beta(a, b) against Beta(b, a): ``Gamma(a + h z) Gamma(b - h z) / (Gamma(a) Gamma(b))``;
* two normal laws at a distance mu: ``exp(mu^2 (z^2 + z) / 2)``;
* two-sided geometric noise of scale 1/t in a cell moved by k: the losses ``k t, (k - 2) t, ..,
  -k t`` and their probabilities are those of `dpmarkov.privacy.integer_noise`;
* randomised response: ``+s`` or ``-s`` with odds ``e^s``, which dominates whatever is
  s-differentially private without a delta (see `dpmarkov.privacy.pure_share`).

Moments are evaluated in ball arithmetic, on complex numbers and on power series alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import Any, Protocol, Self

from dpmarkov.privacy.units import Sensitivity

__all__ = [
    "BetaLoss",
    "GammaLoss",
    "GaussianLoss",
    "GeometricLoss",
    "LimitLoss",
    "Loss",
    "ResponseLoss",
]

Moment = Callable[[Any], Any]


class Loss(Protocol):
    """The privacy loss of one dominating pair."""

    @property
    def reach(self) -> float:
        """The moment is finite for all z with a real part between 0 and this."""

    @property
    def smooth(self) -> bool:
        """Whether the law has a density: its moment then falls along every vertical line."""

    @property
    def mirrored(self) -> Loss:
        """The loss of the pair the other way round."""

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""


class _Symmetric:
    """A pair that looks the same from both sides."""

    @property
    def mirrored(self) -> Self:
        """The loss itself."""
        return self


@dataclass(frozen=True)
class GammaLoss:
    """A cell of the Dirichlet mechanism that is moved by `per_cell`, in one direction."""

    rate: float
    mass: float
    per_cell: int
    removed: bool
    smooth = True

    @property
    def reach(self) -> float:
        """Where the moment ends."""
        return nextafter(self.mass / self.per_cell, 0) if self.removed else inf

    @property
    def mirrored(self) -> GammaLoss:
        """The other direction."""
        return replace(self, removed=not self.removed)

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        h, kappa = arb(self.rate) * self.per_cell, arb(self.rate) * arb(self.mass)
        if self.removed:
            h, x, y = -h, kappa, kappa + h
        else:
            x, y = kappa + h, kappa
        at_zero, slope = x.lgamma(), x.lgamma() - y.lgamma()
        return lambda z: (z * h + x).lgamma() - at_zero - z * slope


@dataclass(frozen=True)
class LimitLoss:
    """What `GammaLoss` of a cell moved by 1 tends to as the rate falls to 0: an exponential law."""

    mass: float
    removed: bool
    smooth = True

    @property
    def reach(self) -> float:
        """Where the moment ends."""
        return self.mass if self.removed else inf

    @property
    def mirrored(self) -> LimitLoss:
        """The other direction."""
        return replace(self, removed=not self.removed)

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        m = arb(self.mass)
        sign, x = (-1, m) if self.removed else (1, m + 1)
        slope = (1 / m).log1p() * sign
        return lambda z: z * slope + x.log() - (z * sign + x).log()


@dataclass(frozen=True)
class BetaLoss(_Symmetric):
    """A transition of the Dirichlet mechanism that goes elsewhere; its own mirror image."""

    rate: float
    mass: float
    smooth = True

    @property
    def reach(self) -> float:
        """Where the moment ends."""
        return self.mass

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        h, b = arb(self.rate), arb(self.rate) * arb(self.mass)
        a = b + h
        at_zero = a.lgamma() + b.lgamma()
        return lambda z: (z * h + a).lgamma() + (-z * h + b).lgamma() - at_zero


@dataclass(frozen=True)
class GaussianLoss(_Symmetric):
    """Normal noise of standard deviation `scale` in all cells that a change moves."""

    change: Sensitivity
    scale: float
    smooth = True
    reach = inf

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        half = arb(self.change.per_cell**2 * self.change.cells) / (2 * arb(self.scale) ** 2)
        return lambda z: (z * z + z) * half


@dataclass(frozen=True)
class GeometricLoss(_Symmetric):
    """Geometric noise in all cells that a change moves; independent of which way it goes."""

    change: Sensitivity
    scale: float
    smooth = False
    reach = inf

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        k, cells, t = self.change.per_cell, self.change.cells, 1 / arb(self.scale)
        q = (-t).exp()

        def log_moment(z: Any) -> Any:
            u = (z * t).exp()
            ends = u**k + q**k / u**k
            if k > 1:  # the losses between the two ends
                w = q / (u * u)
                ends += u**k * w * (1 - w ** (k - 1)) / (1 - w) * (1 - q)
            return (ends / (1 + q)).log() * cells

        return log_moment


@dataclass(frozen=True)
class ResponseLoss(_Symmetric):
    """Randomised response: at worst what a share of epsilon without a delta buys."""

    share: float
    smooth = False
    reach = inf

    def log_moment(self) -> Moment:
        """Give log M as a function, at the working precision."""
        from flint import arb

        s = arb(self.share)
        p = 1 / (1 + (-s).exp())
        return lambda z: ((z * s).exp() * p + (-z * s).exp() * (1 - p)).log()
