"""Several releases of the same data: what they give away together.

Each release has a dominating pair at its unit, and several releases have the product of theirs:
privacy losses add up, so moments multiply (`dpmarkov.privacy.losses`), and the contour integral
of `dpmarkov.privacy.contour` gives the profile of any mixture of mechanisms. Where a pair has two
directions (one transition or user more, or one less), the change is the same for all releases:
each direction is composed by itself, and the larger profile counts. Noise that is geometric
throughout has a law with few values, which are listed. Of a release whose noise may depend on what
a share was spent on before, only the claim (epsilon, delta) is proven: it composes as randomised
response of epsilon that fails with probability delta, the worst there is (Kairouz, Oh and
Viswanath, "The composition theorem for differential privacy", 2015).

**Parts.** Releases of data that share no protected record, such as different months or different
users, are composed in *parallel*: a change touches one part, so the total is the largest over the
parts, each together with the releases that touch all of them. That the parts are disjoint is for
the curator to declare: at the unit `user` no person may be in two of them.

**A condition.** Which counts are released next may depend on what was released before; how much
noise they get may not. Were the noise of a later release chosen by looking at earlier results, the
composition of privacy losses would not be proven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, fsum, log1p, nextafter, prod
from textwrap import fill
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy import contour
from dpmarkov.privacy.lattice import convolved
from dpmarkov.privacy.losses import GeometricLoss, Loss, ResponseLoss
from dpmarkov.privacy.profiles import checked, each, inverse
from dpmarkov.privacy.units import Sensitivity, Unit

if TYPE_CHECKING:
    from dpmarkov.guarantee import Guarantee

__all__ = ["ONLY_RELEASE", "Composition", "compose"]

Floats = npt.NDArray[np.float64]
Losses = list[tuple[Loss, int]]

ONLY_RELEASE = "This is the only release of these data; several releases add up."
_NOISE_FIXED = (
    "How much noise a release got (its mechanism, its epsilon and delta, its bounds) was not "
    "chosen by looking at the results of the others."
)
_ALL_COUNTED = "These are all releases of the data."
_DISJOINT = "No {record} is in two of the parts {parts}. The curator declares this."
_RECORDS = {"destination": "transition", "transition": "transition", "user": "person"}

_ULP = 2.0**-52
_NAMED = 12  # parts in a condition
_MOST_VALUES = 2**15  # of a law that is listed
_CLOSE = 1e-6  # of a total epsilon, relatively
_FEW_VALUES = 64  # over which an integral is repeated


@dataclass(frozen=True)
class Composition:
    """What several releases promise together. Made by `compose`.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What is hidden, by all of them.
    releases : tuple of (Guarantee, part)
        Each with the part of the data it is about; none if it is about all of them.
    """

    unit: Unit
    releases: tuple[tuple[Guarantee, Hashable], ...]

    @overload
    def profile(self, epsilon: float) -> float: ...
    @overload
    def profile(self, epsilon: npt.ArrayLike) -> Any: ...
    def profile(self, epsilon: npt.ArrayLike) -> Any:
        """Give delta of all releases together.

        Parameters
        ----------
        epsilon : float or array
            At least 0.

        Returns
        -------
        float or array
            Never below the truth.
        """
        eps = checked("epsilon", epsilon, at_least=0.0)
        return each(lambda e: max(_delta(group, e) for group in self._groups()), eps)

    def epsilon(self, delta: float) -> float:
        """Give the total epsilon at a delta.

        Parameters
        ----------
        delta : float
            At least 0 and below 1. At 0 only geometric noise has a finite epsilon.

        Returns
        -------
        float
            Rounded up: ``profile(result) <= delta``.

        Raises
        ------
        DpmarkovError
            If delta is out of range, or 0 for other noise.
        """
        target = float(checked("delta", delta, at_least=0.0, below=1.0))
        if target == 0:
            return max(_pure_epsilon(group) for group in self._groups())
        start = sum(guarantee.epsilon for guarantee, _ in self.releases) or 1.0
        return float(inverse(self.profile, target, start, rtol=_CLOSE))

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be true for the total to hold."""
        own = [_ALL_COUNTED, _NOISE_FIXED]
        parts = self._parts()
        if len(parts) > 1:
            more = f" and {len(parts) - _NAMED} more" * (len(parts) > _NAMED)
            names = ", ".join(map(str, parts[:_NAMED])) + more
            own.append(_DISJOINT.format(record=_RECORDS[self.unit], parts=names))
        theirs = (text for guarantee, _ in self.releases for text in guarantee.conditions)
        return tuple(dict.fromkeys([*(x for x in theirs if x != ONLY_RELEASE), *own]))

    def __str__(self) -> str:
        parts = self._parts()
        of_parts = f", of {len(parts)} disjoint parts of the data" if len(parts) > 1 else ""
        lines = [
            f"{len(self.releases)} releases at the unit {self.unit!r}{of_parts}. Their total holds "
            "under these conditions:",
            *(f"  * {condition}" for condition in self.conditions),
        ]
        return "\n".join(
            fill(line, 88, subsequent_indent="    " * (line[0] == " ")) for line in lines
        )

    def _parts(self) -> list[Hashable]:
        return list(dict.fromkeys(part for _, part in self.releases if part is not None))

    def _groups(self) -> Iterator[list[Guarantee]]:
        """Give for each part the releases that a change in it touches."""
        for part in self._parts() or [None]:
            yield [guarantee for guarantee, of in self.releases if of in (None, part)]


def compose(
    releases: Sequence[Guarantee | Composition], *, parts: Sequence[Hashable] | None = None
) -> Composition:
    """Compose releases of the same data, of any mechanisms, at one unit.

    Parameters
    ----------
    releases : sequence of Guarantee or Composition
        What was released, in any order.
    parts : sequence of labels, optional
        For each of them the part of the data that it is about; None where it is about all. The
        curator declares by it that the parts have no transition (at the unit `user`: no person)
        in common. Without it all are about the same data.

    Returns
    -------
    Composition

    Raises
    ------
    DpmarkovError
        If there is nothing to compose, or the units differ.

    Examples
    --------
    >>> from dpmarkov import Guarantee
    >>> from dpmarkov.noise import Gaussian, Geometric
    >>> monthly = Guarantee("transition", 0.5, 0.0, Geometric(scale=2.0), conditions=())
    >>> yearly = Guarantee("transition", 1.0, 1e-6, Gaussian(scale=4.23), conditions=())
    >>> together = compose([yearly] + 12 * [monthly])
    >>> round(together.epsilon(1e-6), 3)
    6.649
    >>> apart = compose([yearly] + 12 * [monthly], parts=[None, *range(12)])
    >>> round(apart.epsilon(1e-6), 3)
    1.474
    """
    labels = [None] * len(releases) if parts is None else list(parts)
    if len(labels) != len(releases):
        raise DpmarkovError(
            f"parts has {len(labels)} labels for {len(releases)} releases; give one for each, None "
            "for a release of all the data"
        )
    pairs = [
        pair for item, part in zip(releases, labels, strict=True) for pair in _pairs(item, part)
    ]
    units = list(dict.fromkeys(guarantee.unit for guarantee, _ in pairs))
    if len(units) != 1:
        raise DpmarkovError(
            "there is nothing to compose; give the guarantees of at least one release"
            if not units
            else f"releases at the units {' and '.join(map(repr, units))} have no total: they hide "
            "different things. Compose those of one unit, and state each total with its unit"
        )
    return Composition(units[0], tuple(pairs))


def _pairs(item: Guarantee | Composition, part: Hashable) -> tuple[tuple[Guarantee, Hashable], ...]:
    from dpmarkov.guarantee import Guarantee

    if isinstance(item, Guarantee):
        return ((item, part),)
    if not isinstance(item, Composition):
        raise DpmarkovError(
            f"compose takes guarantees (release.guarantee) and compositions, not "
            f"{type(item).__name__}"
        )
    if part is None:
        return item.releases
    if any(of is not None for _, of in item.releases):
        raise DpmarkovError(
            f"a composition of several parts cannot be put into the part {part!r}; give its "
            "releases one by one"
        )
    return tuple((guarantee, part) for guarantee, _ in item.releases)


# -- releases that touch the same records --------------------------------------------------------


def _delta(group: Sequence[Guarantee], epsilon: float) -> float:
    if len(group) == 1 and not group[0].only_claimed:
        return group[0].profile(epsilon)
    directions = (False, True) if group[0].unit != "destination" else (False,)
    found = {tuple(_losses(group, removed)) for removed in directions}
    delta = max(_delta_of(list(losses), epsilon) for losses in found)
    lost = _lost(group)
    return min((lost + (1 - lost) * delta) * (1 + 2.0**-48), 1.0) if lost else delta


def _lost(group: Sequence[Guarantee]) -> float:
    """Give the probability that some release of which only its claim is known gives all away."""
    kept = fsum(log1p(-guarantee.delta) for guarantee in group if guarantee.only_claimed)
    return -expm1(kept)


def _losses(group: Sequence[Guarantee], removed: bool) -> Losses:
    """Collect the losses of all releases, equal ones once; in an order of their own."""
    times: Counter[Loss] = Counter()
    for guarantee in group:
        for loss, n in guarantee.losses(removed=removed):
            times[loss] += n
    return sorted(times.items(), key=lambda item: repr(item[0]))


def _delta_of(losses: Losses, epsilon: float) -> float:
    smooth = [(loss, n) for loss, n in losses if loss.smooth]
    cells = [_as_cells(loss, n) for loss, n in losses if not loss.smooth]
    values = prod(change.l1 + 1 for change, _ in cells)
    if not smooth:
        if Fraction(epsilon) >= sum(change.l1 * t for change, t in cells):
            return 0.0
        if values <= _MOST_VALUES:
            return _listed_delta(cells, epsilon)
    if cells and values <= _FEW_VALUES and contour.is_rough(losses, epsilon):
        at, probabilities = _listed(cells)
        deltas = [contour.delta(smooth, nextafter(epsilon - x, -np.inf)) for x in at.tolist()]
        return min(float(probabilities @ deltas) * (1 + 2.0**-40), 1.0)
    return contour.delta(losses, epsilon)


def _as_cells(loss: Loss, times: int) -> tuple[Sensitivity, Fraction]:
    """See a loss on a lattice as that of geometric noise in so many cells, and its step."""
    if isinstance(loss, ResponseLoss):
        return Sensitivity(times), Fraction(loss.share)
    assert isinstance(loss, GeometricLoss)  # there is no other
    change = Sensitivity(loss.change.cells * times, loss.change.per_cell)
    return change, 1 / Fraction(loss.scale)


def _pure_epsilon(group: Sequence[Guarantee]) -> float:
    """Add up the largest losses, rounded up."""
    losses = _losses(group, removed=False)
    if _lost(group) or any(loss.smooth for loss, _ in losses):
        raise DpmarkovError(
            "delta must be above 0: of the mechanisms here only geometric noise has a finite "
            "epsilon at delta = 0"
        )
    total = sum((change.l1 * t for change, t in (_as_cells(*loss) for loss in losses)), Fraction(0))
    return float(total) if Fraction(float(total)) >= total else nextafter(float(total), np.inf)


def _listed(cells: list[tuple[Sensitivity, Fraction]]) -> tuple[Floats, Floats]:
    """List the values of all losses on lattices, rounded up, and their probabilities."""
    values, probabilities = np.zeros(1), np.ones(1)
    for change, t in cells:
        own = np.arange(-change.l1, change.l1 + 1, 2) * float(t)
        values = np.add.outer(values, own).ravel()
        probabilities = np.multiply.outer(probabilities, convolved(change, float(t))).ravel()
    largest = sum(change.l1 * float(t) for change, t in cells)
    operations = sum(64 + change.cells * (8 + 4 * change.per_cell) for change, _ in cells)
    return values + 8 * _ULP * len(cells) * largest, probabilities * (1 + _ULP * operations)


def _listed_delta(cells: list[tuple[Sensitivity, Fraction]], epsilon: float) -> float:
    values, probabilities = _listed(cells)
    above = values > epsilon
    terms = probabilities[above] * -np.expm1(epsilon - values[above])
    return float(min(terms.sum() * (1 + 2.0**-40), 1.0))
