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

__all__ = ["Guarantee"]

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

    Raises
    ------
    DpmarkovError
        If the noise does not give the promise.

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

    def __post_init__(self) -> None:
        check_unit(self.unit)
        actual = self.profile(self.epsilon)
        if not (0 <= self.delta < 1 and actual <= self.delta):
            raise DpmarkovError(
                f"{self.noise} gives delta = {actual:.6g} at epsilon = {self.epsilon:g}, more than "
                f"the {self.delta:g} that is claimed; the file was altered, or the noise was not "
                "calibrated for this claim"
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
        return self.noise.profile(self.unit, epsilon)

    def __str__(self) -> str:
        lines = [
            f"This release is ({self.epsilon:g}, {self.delta:g})-differentially private "
            f"at the unit {self.unit!r}.",
            f"It hides {_HIDDEN[self.unit]}.",
            f"Whatever someone already knows and whatever they compute from the release, any "
            f"conclusion is at most e^{self.epsilon:g} = {_factor(self.epsilon)} times as probable "
            f"on one of the two data sets as on the other{self._exception()}.",
            "This protects each transition by itself. Someone who contributed many is protected "
            "for each of them, not for all of them together.",
            "It holds under these conditions:",
            *(f"  * {condition}" for condition in self.conditions),
        ]
        return "\n".join(
            fill(line, 88, subsequent_indent="    " * (line[0] == " ")) for line in lines
        )

    def _exception(self) -> str:
        return f", plus a probability of {self.delta:g}" if self.delta else ", without exception"


def _factor(epsilon: float) -> str:
    """Write e^epsilon so that it is not below the truth."""
    if epsilon > 700:
        return "more than 10^304"
    value = float(np.exp(epsilon))
    digits = 10.0 ** (int(np.floor(np.log10(value))) - 2)
    return f"{np.ceil(value / digits) * digits:.3g}"
