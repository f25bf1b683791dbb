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
from dpmarkov.noise import Noise
from dpmarkov.privacy.profiles import Unit, check_unit
from dpmarkov.privacy.pure_share import profile_after

__all__ = ["Guarantee", "in_full"]

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
}


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Parameters
    ----------
    unit : {"destination", "transition"}
        What is hidden.
    epsilon, delta : float
        The promise.
    noise : Dirichlet, Geometric or Gaussian
        The law of the noise (`dpmarkov.noise`), from which the promise follows.
    conditions : tuple of str
        What must be true of the data, or of their handling, for the promise to hold.
    spent_epsilon : float
        The share of epsilon that merging states by noisy row totals took before this noise.

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

    def __post_init__(self) -> None:
        check_unit(self.unit)
        _check_share(self.unit, self.epsilon, self.spent_epsilon)
        actual = self.profile(self.epsilon)
        if not (0 <= self.delta < 1 and actual <= self.delta):
            raise DpmarkovError(
                f"{self.noise}{self._after()} gives delta = {actual:.6g} at epsilon = "
                f"{self.epsilon:g}, more than the {self.delta:g} that is claimed; the file was "
                "altered, or the noise was not calibrated for this claim"
            )

    @overload
    def profile(self, epsilon: float) -> float: ...
    @overload
    def profile(self, epsilon: npt.ArrayLike) -> Any: ...
    def profile(self, epsilon: npt.ArrayLike) -> Any:
        """Give the exact delta of this release at any other epsilon.

        Parameters
        ----------
        epsilon : float or array
            At least 0.

        Returns
        -------
        float or array
        """
        if not self.spent_epsilon:
            return self.noise.profile(self.unit, epsilon)
        return profile_after(
            self.spent_epsilon, lambda left: self.noise.profile(self.unit, left), epsilon
        )

    def __str__(self) -> str:
        lines = [
            f"This release is ({in_full(self.epsilon)}, {in_full(self.delta)})-differentially "
            f"private at the unit {self.unit!r}.",
            f"It hides {_HIDDEN[self.unit]}.",
            f"Whatever someone already knows and whatever they compute from the release, any "
            f"conclusion is at most e^{in_full(self.epsilon)} = {_factor(self.epsilon)} times as "
            f"probable on one of the two data sets as on the other{self._exception()}.",
            *self._share(),
            "This protects each transition by itself. Someone who contributed many is protected "
            "for each of them, not for all of them together.",
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
            f"Of epsilon = {in_full(self.epsilon)}, {in_full(self.spent_epsilon)} was spent on the "
            f"noise in the row totals by which states were merged, and the other "
            f"{self.epsilon - self.spent_epsilon:g} on the noise in the counts."
        ]

    def _after(self) -> str:
        spent = self.spent_epsilon
        return f", after epsilon = {spent:g} was spent on merging states," if spent else ""

    def _exception(self) -> str:
        return (
            f", plus a probability of {in_full(self.delta)}"
            if self.delta
            else ", without exception"
        )


def _check_share(unit: Unit, epsilon: float, spent: float) -> None:
    if spent and not 0 < spent < epsilon:
        raise DpmarkovError(
            f"merging states has spent epsilon = {spent:g}, which leaves nothing of epsilon = "
            f"{epsilon:g}; release at a larger epsilon, or merge with a smaller share"
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
