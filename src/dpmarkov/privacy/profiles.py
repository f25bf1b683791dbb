"""The privacy that a rate gives: delta of epsilon, epsilon of delta, Renyi divergence.

With rate ``r`` and mass ``mu`` (the least parameter weight of a feasible transition: prior, or
asserted floor), theory section 3 reduces a release to dominating pairs at ``kappa = r mu`` with
shift ``h = r``. Which pairs depends on the *unit* that is protected:

``destination``
    one transition's destination differs, its origin is the same (the paper's Definition 3);
``transition``
    one transition is added or removed;
``user``
    all transitions of one user, who was cut down to at most L0 = `max_cells` cells and
    Linf = `max_per_cell` transitions in each of them, are added or removed.

For all three the profile is attained, so no smaller epsilon would be true. One transition touches
one row, hence the profile of the weakest row is the profile of the whole chain. A user is worst
with Linf transitions in each of L0 cells (Lemma B), wherever these are: L0 times the pair of
`transition` with the shift ``h = r Linf``, composed exactly by `dpmarkov.privacy.contour`.

Examples
--------
>>> f"{profile('destination', rate=1.0, mass=20, epsilon=1.0):.3e}"
'1.366e-04'
>>> f"{epsilon('destination', rate=1.0, mass=20, delta=1e-6):.4f}"
'1.4222'
>>> f"{epsilon('user', rate=1.0, mass=20e3, delta=1e-6, max_cells=50, max_per_cell=4):.4f}"
'0.8347'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy import contour
from dpmarkov.privacy.losses import GammaLoss
from dpmarkov.privacy.pairs import Pair, beta_pair, gamma_pair_add, gamma_pair_remove
from dpmarkov.privacy.units import Sensitivity, Unit, UserBounds, sensitivity

__all__ = ["delta", "epsilon", "profile", "renyi"]

Floats = npt.NDArray[np.float64]

_PAIRS: dict[str, tuple[Pair, ...]] = {
    "destination": (beta_pair,),
    "transition": (gamma_pair_add, gamma_pair_remove),
    "user": (gamma_pair_add, gamma_pair_remove),
}


_CHUNK = 1024


@overload
def profile(
    unit: Unit, *, rate: float, mass: float, epsilon: float, **bounds: Unpack[UserBounds]
) -> float: ...
@overload
def profile(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any: ...
def profile(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any:
    """Compute the privacy profile: the exact delta at each epsilon.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    rate : float or array
        The rate r of the gamma shapes r (c + m).
    mass : float or array
        The least weight mu of a feasible transition.
    epsilon : float or array
        Where to evaluate; at least 0. The three are broadcast against each other.
    max_cells, max_per_cell : int
        For the unit `user`: L0 and Linf, which every user was cut down to before counting.

    Returns
    -------
    float or array
        delta(epsilon), never below the truth and above it by less than 1e-9 of it (a user of
        several cells: 1e-6), wherever it is at least 1e-300.

    Raises
    ------
    DpmarkovError
        If an argument is out of its range.

    Examples
    --------
    >>> [f"{d:.2e}" for d in profile("transition", rate=0.5, mass=30, epsilon=[0.5, 1, 2])]
    ['2.39e-05', '1.37e-10', '5.81e-23']
    """
    change = sensitivity(unit, **bounds)
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    eps = checked("epsilon", epsilon, at_least=0.0)
    r, mu, eps = np.broadcast_arrays(r, mu, eps)
    # A smaller kappa can only raise delta (Lemma A), so the product is rounded down.
    with np.errstate(over="ignore"):
        kappa = np.nextafter(checked("rate * mass", r * mu, above=0.0), 0.0)
    if unit == "user" and change.cells > 1:
        return each(partial(_of_many_cells, change), r, mu, eps)
    # For the same reason the shift is rounded up.
    h = np.nextafter(r * change.per_cell, np.inf) if change.per_cell > 1 else r
    flat = [np.ravel(x) for x in (kappa, h, eps)]
    values = np.empty(flat[0].shape)
    for start in range(0, values.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        kappas, shifts, epsilons = (x[part] for x in flat)
        values[part] = np.max([pair(kappas, shifts, epsilons) for pair in _PAIRS[unit]], axis=0)
    return float(values[0]) if eps.ndim == 0 else values.reshape(eps.shape)


def _of_many_cells(change: Sensitivity, r: float, mu: float, eps: float) -> float:
    directions = (GammaLoss(r, mu, change.per_cell, removed=removed) for removed in (False, True))
    return max(contour.delta([(loss, change.cells)], eps) for loss in directions)


delta = profile
"""The same function, under the name of what it returns."""


@overload
def epsilon(
    unit: Unit, *, rate: float, mass: float, delta: float, **bounds: Unpack[UserBounds]
) -> float: ...
@overload
def epsilon(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    delta: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any: ...
def epsilon(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    delta: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any:
    """Find the smallest epsilon at which the profile is at most delta.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    rate, mass : float or array
        As in `profile`.
    delta : float or array
        Between 0 and 1, neither included.
    max_cells, max_per_cell : int
        As in `profile`.

    Returns
    -------
    float or array
        The inverse of `profile`, rounded up: ``profile(..., epsilon=result) <= delta``.

    Examples
    --------
    >>> round(epsilon("transition", rate=0.5, mass=30, delta=1e-6), 4)
    0.6442
    """
    change = sensitivity(unit, **bounds)
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)

    def of_one(r: float, mu: float, target: float) -> float:
        spread = change.l2 * (np.sqrt(2 * r / mu) + r)  # of the order of the loss's own
        return inverse(
            lambda e: profile(unit, rate=r, mass=mu, epsilon=e, **bounds), target, spread
        )

    return each(of_one, r, mu, target)


def inverse(
    profile: Callable[[float], float], target: float, start: float, rtol: float = 1e-11
) -> float:
    """Find the smallest epsilon at which a profile is at most its target, rounded up."""

    def excess(eps: float) -> float:
        return overshoot(profile(eps), target)

    if excess(0.0) <= 0:
        return 0.0
    high = start
    while excess(high) > 0:
        high *= 2
    return safe_root(excess, unsafe=0.0, safe=high, rtol=rtol)


@overload
def renyi(
    unit: Unit, *, rate: float, mass: float, order: float, **bounds: Unpack[UserBounds]
) -> float: ...
@overload
def renyi(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    order: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any: ...
def renyi(
    unit: Unit,
    *,
    rate: npt.ArrayLike,
    mass: npt.ArrayLike,
    order: npt.ArrayLike,
    **bounds: Unpack[UserBounds],
) -> Any:
    """Compute the Renyi divergence of the dominating pair, in closed form.

    Parameters
    ----------
    unit : {"destination", "transition", "user"}
        What the guarantee hides.
    rate, mass : float or array
        As in `profile`.
    order : float or array
        The order of the divergence, above 1.
    max_cells, max_per_cell : int
        As in `profile`.

    Returns
    -------
    float or array
        The divergence in nats, rounded up; infinite from the order ``1 + mass`` on.

    Examples
    --------
    >>> round(renyi("destination", rate=0.5, mass=30, order=2), 6)
    0.033902
    >>> renyi("destination", rate=0.5, mass=30, order=32)
    inf
    """
    change = sensitivity(unit, **bounds)
    if unit == "destination":
        change = Sensitivity(cells=1)  # its two cells are one pair of Beta laws
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    o = checked("order", order, above=1.0)
    return each(lambda r, mu, o: max(_divergences(unit, change, r, mu, o)), r, mu, o)


def _divergences(unit: Unit, change: Sensitivity, r: float, mu: float, o: float) -> list[float]:
    """Each direction's divergence; the sums below are over (weight, x) of ln Gamma(kappa + x h)."""
    if unit == "destination":  # ln B(kappa + o h, kappa + h - o h) - ln B(kappa + h, kappa)
        return [_log_gamma_sum(change, r, mu, o, [(1, o), (1, 1 - o), (-1, 1), (-1, 0)])]
    add = [(1, o), (-o, 1), (o - 1, 0)]
    remove = [(1, 1 - o), (-o, 0), (o - 1, 1)]
    return [_log_gamma_sum(change, r, mu, o, terms) for terms in (add, remove)]


def _log_gamma_sum(
    change: Sensitivity, r: float, mu: float, o: float, terms: list[tuple[float, float]]
) -> float:
    """Sum weights times ln Gamma(kappa + x h) over o - 1, in ball arithmetic, rounded up."""
    from flint import arb, ctx

    with ctx.workprec(400):  # the terms cancel; 400 bits leave more than 53 at kappa = 1e8
        rate, mass, order = arb(r), arb(mu), arb(o)
        exact = {o: order, 1 - o: 1 - order, o - 1: order - 1, -o: -order}
        total = arb(0)
        for weight, x in terms:
            shape = rate * (mass + change.per_cell * exact.get(x, arb(x)))
            if not shape > 0:
                return float("inf")
            total += exact.get(weight, arb(weight)) * shape.lgamma()
        return float(np.nextafter(float((change.cells * total / (order - 1)).upper()), np.inf))


# -- checks and small tools ------------------------------------------------------------------


def checked(
    name: str,
    value: npt.ArrayLike,
    *,
    above: float = -np.inf,
    at_least: float = -np.inf,
    below: float = np.inf,
) -> Floats:
    """Give the value as floats, or name it with the limit that it breaks."""
    array = np.asarray(value, dtype=np.float64)
    wrong = ~((array > above) & (array >= at_least) & (array < below))
    if wrong.any():
        lower = f"above {above:g}" if above > at_least else f"at least {at_least:g}"
        limit = lower + (f" and below {below:g}" if below < np.inf else " and finite")
        raise DpmarkovError(f"{name} must be {limit}, not {np.ravel(array)[np.argmax(wrong)]:g}")
    return array


def each(function: Callable[..., float], *arguments: Floats) -> Any:
    """Apply a function of scalars to broadcast arrays; scalars give a scalar."""
    arrays = np.broadcast_arrays(*arguments)
    values = np.array([function(*map(float, x)) for x in zip(*map(np.ravel, arrays), strict=True)])
    return float(values[0]) if arrays[0].ndim == 0 else values.reshape(arrays[0].shape)


def overshoot(delta: float, target: float) -> float:
    """Compare in logarithms, whose rounding must not decide which of the two is larger."""
    ratio = float(np.log(max(delta, 5e-324)) - np.log(target))
    return min(ratio, 0.0) if delta <= target else max(ratio, 2.0**-52)


def safe_root(
    excess: Callable[[float], float], *, safe: float, unsafe: float, rtol: float = 1e-11
) -> float:
    """Find the root between two ends, and step back to the side where excess <= 0."""
    from scipy.optimize import brentq

    root = float(brentq(excess, safe, unsafe, xtol=1e-300, rtol=rtol))
    step = np.sign(safe - root) * rtol * abs(root)
    while excess(root) > 0:
        root, step = root + step, 2 * step
    return root
