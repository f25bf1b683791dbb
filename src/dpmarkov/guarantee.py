"""The guarantee of a release: what is hidden, how well, and under which conditions.

A guarantee is public. It carries the law of the noise behind it, so that a reader can check
the claim: ``guarantee.profile(guarantee.epsilon) <= guarantee.delta`` for the closed forms of
`dpmarkov.privacy`, with nothing to take on trust but that the noise was drawn as stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.noise import Gaussian, Geometric, Noise
from dpmarkov.privacy.losses import Loss, ResponseLoss
from dpmarkov.privacy.pure_share import profile_after
from dpmarkov.privacy.units import Unit, UserBounds, bounds_for, sensitivity

__all__ = ["Guarantee", "check_share", "in_full"]

_HIDDEN = {
    "destination": (
        "where any single transition went: two data sets that differ in the destination of one "
        "transition, its origin being the same, are hard to tell apart. How many transitions leave "
        "each origin is not hidden"
    ),
    "transition": (
        "whether any single transition took place: two data sets of which one has one transition "
        "more are hard to tell apart. A transition that moved to another origin counts as two "
        "changes"
    ),
    "user": (
        "whether any single person is in the data at all, and with them everything they did, up to "
        "the bound: two data sets of which one has one person more, with up to {max_per_cell} "
        "transitions in each of up to {max_cells} cells (pairs of origin and destination), are "
        "hard to tell apart"
    ),
}
_BEFORE = {
    "transition": "the noise in the row totals by which states were merged",
    "user": (
        "the noise in the numbers by which states were merged or the bounds of users were chosen "
        "(the conditions say which)"
    ),
}
_EACH_BY_ITSELF = (
    "This protects each transition by itself. Someone who contributed many is protected for each "
    "of them, not for all of them together."
)
_BOUNDING = (
    "Whoever did more than the bound allows was cut down to it before counting: no more than "
    "{max_cells} of their cells, drawn by lot, and no more than {max_per_cell} transitions in each "
    "of these were counted. The rest is missing from the release, and hidden altogether."
)


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What is hidden.
    epsilon, delta : float
        The promise.
    noise : Dirichlet, Geometric or Gaussian
        The law of the noise (`dpmarkov.noise`), from which the promise follows.
    conditions : tuple of str
        What must be true of the data, or of their handling, for the promise to hold.
    spent_epsilon : float
        The share of epsilon that was spent before this noise: on merging states by noisy row
        totals, or on choosing the bounds of users.
    max_cells, max_per_cell : int, optional
        For the unit `user`: what each user was cut down to before counting.

    Raises
    ------
    DpmarkovError
        If the noise and the share do not give the promise.

    Examples
    --------
    >>> from dpmarkov.noise import Geometric
    >>> guarantee = Guarantee("transition", 1.0, 0.0, Geometric(scale=1.0), conditions=())
    >>> guarantee.profile(1.0)
    0.0
    """

    unit: Unit
    epsilon: float
    delta: float
    noise: Noise
    conditions: tuple[str, ...]
    spent_epsilon: float = 0.0
    max_cells: int | None = None
    max_per_cell: int | None = None

    def __post_init__(self) -> None:
        sensitivity(self.unit, max_cells=self.max_cells, max_per_cell=self.max_per_cell)
        check_share(self.unit, self.epsilon, self.spent_epsilon)
        actual = self.profile(self.epsilon)
        if not (0 <= self.delta < 1 and actual <= self.delta):
            raise DpmarkovError(
                f"{self.noise}{self._after()} gives delta = {actual:.6g} at epsilon = "
                f"{self.epsilon:g}, more than the {self.delta:g} that is claimed; the file was "
                "altered, or the noise was not calibrated for this claim"
            )

    @property
    def bounds(self) -> UserBounds:
        """The bounds of a user as `dpmarkov.privacy` takes them; empty at other units."""
        return bounds_for(self.unit, self.max_cells, self.max_per_cell)

    @property
    def only_claimed(self) -> bool:
        """Whether nothing but (epsilon, delta) is proven of noise that followed a share.

        What the share was spent on may have decided how much noise was needed. Each outcome was
        calibrated to the same claim, but away from it their profiles may differ, except those of
        normal noise, and of geometric noise whose sensitivity is fixed.
        """
        fixed = isinstance(self.noise, Gaussian) or (
            isinstance(self.noise, Geometric) and self.unit != "user"
        )
        return bool(self.spent_epsilon) and not fixed

    @overload
    def profile(self, epsilon: float) -> float: ...
    @overload
    def profile(self, epsilon: npt.ArrayLike) -> Any: ...
    def profile(self, epsilon: npt.ArrayLike) -> Any:
        """Give the exact delta of this release at any other epsilon.

        For noise that is `only_claimed` it is that of the noise as it was drawn.

        Parameters
        ----------
        epsilon : float or array
            At least 0.

        Returns
        -------
        float or array
        """
        if not self.spent_epsilon:
            return self.noise.profile(self.unit, epsilon, **self.bounds)
        return profile_after(
            self.spent_epsilon,
            lambda left: self.noise.profile(self.unit, left, **self.bounds),
            epsilon,
        )

    def losses(self, *, removed: bool) -> list[tuple[Loss, int]]:
        """Give the privacy losses behind the promise, for `dpmarkov.privacy.compose`.

        Parameters
        ----------
        removed : bool
            In which direction: one transition or user less, or one more.

        Returns
        -------
        list of (Loss, int)
            Each with how many times it occurs.
        """
        if self.only_claimed:  # and with probability delta a loss without bound
            return [(ResponseLoss(self.epsilon), 1)]
        own = [self.noise.loss(self.unit, removed=removed, **self.bounds)]
        return [*own, (ResponseLoss(self.spent_epsilon), 1)] if self.spent_epsilon else own

    @property
    def statements(self) -> tuple[str, ...]:
        """The guarantee in plain words, a paragraph each, without its conditions."""
        return (
            f"This release is ({in_full(self.epsilon)}, {in_full(self.delta)})-differentially "
            f"private at the unit {self.unit!r}.",
            f"It hides {_HIDDEN[self.unit].format(**self.bounds)}.",
            f"Whatever someone already knows and whatever they compute from the release, any "
            f"conclusion is at most e^{in_full(self.epsilon)} = {_factor(self.epsilon)} times as "
            f"probable on one of the two data sets as on the other{self._exception()}.",
            *self._share(),
            _BOUNDING.format(**self.bounds) if self.unit == "user" else _EACH_BY_ITSELF,
        )

    def __str__(self) -> str:
        lines = [
            *self.statements,
            "It holds under these conditions:",
            *(f"  * {condition}" for condition in self.conditions),
        ]
        return "\n".join(
            fill(line, 88, subsequent_indent="    " * (line[0] == " ")) for line in lines
        )

    def _share(self) -> list[str]:
        if not self.spent_epsilon:
            return []
        return [
            f"Of epsilon = {in_full(self.epsilon)}, {in_full(self.spent_epsilon)} was spent on "
            f"{_BEFORE[self.unit]}, and the other {self.epsilon - self.spent_epsilon:g} on the "
            "noise in the counts."
        ]

    def _after(self) -> str:
        spent = self.spent_epsilon
        return f", after epsilon = {spent:g} was spent on {_step(self.unit)}," if spent else ""

    def _exception(self) -> str:
        return (
            f", plus a probability of {in_full(self.delta)}"
            if self.delta
            else ", without exception"
        )


def _step(unit: Unit) -> str:
    return "merging states" + " or choosing bounds" * (unit == "user")


def check_share(unit: Unit, epsilon: float, spent: float) -> None:
    """Refuse a share that leaves nothing, or that no earlier step can have taken."""
    if spent and not 0 < spent < epsilon:
        raise DpmarkovError(
            f"{_step(unit)} has spent epsilon = {spent:g}, which leaves nothing of epsilon = "
            f"{epsilon:g}; release at a larger epsilon, or give that step a smaller share"
        )
    if spent and unit == "destination":
        raise DpmarkovError(
            f"spent_epsilon={spent:g} does not go with the unit 'destination', under which merging "
            "states takes no share"
        )


def in_full(value: float) -> str:
    """Write a promise with all its digits: fewer might say less than is spent."""
    return repr(float(value)).removesuffix(".0")


def _factor(epsilon: float) -> str:
    """Write e^epsilon so that it is not below the truth."""
    if epsilon > 700:
        return "more than 10^304"
    value = float(np.exp(epsilon))
    digits = 10.0 ** (int(np.floor(np.log10(value))) - 2)
    return f"{np.ceil(value / digits) * digits:.3g}"
