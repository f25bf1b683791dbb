"""The privacy that a rate gives: delta of epsilon, epsilon of delta, Renyi divergence.

With rate ``r`` and mass ``mu`` (the least parameter weight of a feasible transition: prior, or
asserted floor), theory section 3 reduces a release to dominating pairs at ``kappa = r mu`` with
shift ``h = r``. Which pairs depends on the *unit* that is protected:

``destination``
    one transition's destination differs, its origin is the same (the paper's Definition 3);
``transition``
    one transition is added or removed.

For both the profile is attained, so no smaller epsilon would be true. One transition touches one
row, hence the profile of the weakest row is the profile of the whole chain.

Examples
--------
>>> f"{profile('destination', rate=1.0, mass=20, epsilon=1.0):.3e}"
'1.366e-04'
>>> f"{epsilon('destination', rate=1.0, mass=20, delta=1e-6):.4f}"
'1.4222'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy.pairs import Pair, beta_pair, gamma_pair_add, gamma_pair_remove

__all__ = ["UNITS", "Unit", "delta", "epsilon", "profile", "renyi"]

Unit = Literal["destination", "transition"]
Floats = npt.NDArray[np.float64]

UNITS: dict[str, tuple[Pair, ...]] = {
    "destination": (beta_pair,),
    "transition": (gamma_pair_add, gamma_pair_remove),
}

_CHUNK = 1024
_LARGEST_LOSS = 1e15  # in units of the rate


@overload
def profile(unit: Unit, *, rate: float, mass: float, epsilon: float) -> float: ...
@overload
def profile(
    unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, epsilon: npt.ArrayLike
) -> Any: ...
def profile(unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, epsilon: npt.ArrayLike) -> Any:
    """Compute the privacy profile: the exact delta at each epsilon.

    Parameters
    ----------
    unit : {"destination", "transition"}
        What the guarantee hides.
    rate : float or array
        The rate r of the gamma shapes r (c + m).
    mass : float or array
        The least weight mu of a feasible transition.
    epsilon : float or array
        Where to evaluate; at least 0. The three are broadcast against each other.

    Returns
    -------
    float or array
        delta(epsilon), never below the truth and above it by less than 1e-9 of it
        (wherever it is at least 1e-300).

    Raises
    ------
    DpmarkovError
        If an argument is out of its range.

    Examples
    --------
    >>> [f"{d:.2e}" for d in profile("transition", rate=0.5, mass=30, epsilon=[0.5, 1, 2])]
    ['2.39e-05', '1.37e-10', '5.81e-23']
    """
    pairs = check_unit(unit)
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    eps = checked("epsilon", epsilon, at_least=0.0)
    r, mu, eps = np.broadcast_arrays(r, mu, eps)
    # A smaller kappa can only raise delta (Lemma A), so the product is rounded down; so can a
    # smaller epsilon, so one that is beyond any use is cut before it overflows.
    with np.errstate(over="ignore"):
        kappa = np.nextafter(checked("rate * mass", r * mu, above=0.0), 0.0)
        eps = np.minimum(eps, _LARGEST_LOSS * r)
    flat = [np.ravel(x) for x in (kappa, r, eps)]
    values = np.empty(flat[0].shape)
    for start in range(0, values.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        kappas, rates, epsilons = (x[part] for x in flat)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            values[part] = np.max([pair(kappas, rates, epsilons) for pair in pairs], axis=0)
    values[np.isnan(values)] = 1.0  # where float64 ends, nothing is promised
    return float(values[0]) if eps.ndim == 0 else values.reshape(eps.shape)


delta = profile
"""The same function, under the name of what it returns."""


@overload
def epsilon(unit: Unit, *, rate: float, mass: float, delta: float) -> float: ...
@overload
def epsilon(
    unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, delta: npt.ArrayLike
) -> Any: ...
def epsilon(unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, delta: npt.ArrayLike) -> Any:
    """Find the smallest epsilon at which the profile is at most delta.

    Parameters
    ----------
    unit : {"destination", "transition"}
        What the guarantee hides.
    rate, mass : float or array
        As in `profile`.
    delta : float or array
        Between 0 and 1, neither included.

    Returns
    -------
    float or array
        The inverse of `profile`, rounded up: ``profile(..., epsilon=result) <= delta``.

    Examples
    --------
    >>> round(epsilon("transition", rate=0.5, mass=30, delta=1e-6), 4)
    0.6442
    """
    check_unit(unit)
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    target = checked("delta", delta, above=0.0, below=1.0)
    return each(lambda r, mu, target: _epsilon(unit, r, mu, target), r, mu, target)


def _epsilon(unit: Unit, r: float, mu: float, target: float) -> float:
    def excess(eps: float) -> float:
        return overshoot(profile(unit, rate=r, mass=mu, epsilon=eps), target)

    if excess(0.0) <= 0:
        return 0.0
    high = r * np.sqrt(2 / (r * mu)) + r  # of the order of the loss's spread
    while excess(high) > 0:
        high *= 2
    return safe_root(excess, unsafe=0.0, safe=high)


@overload
def renyi(unit: Unit, *, rate: float, mass: float, order: float) -> float: ...
@overload
def renyi(unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, order: npt.ArrayLike) -> Any: ...
def renyi(unit: Unit, *, rate: npt.ArrayLike, mass: npt.ArrayLike, order: npt.ArrayLike) -> Any:
    """Compute the Renyi divergence of the dominating pair, in closed form.

    Parameters
    ----------
    unit : {"destination", "transition"}
        What the guarantee hides.
    rate, mass : float or array
        As in `profile`.
    order : float or array
        The order of the divergence, above 1.

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
    check_unit(unit)
    r = checked("rate", rate, above=0.0)
    mu = checked("mass", mass, above=0.0)
    o = checked("order", order, above=1.0)
    return each(lambda r, mu, o: max(_divergences(unit, r, mu, o)), r, mu, o)


def _divergences(unit: Unit, r: float, mu: float, o: float) -> list[float]:
    """Each direction's divergence; the sums below are over (weight, x) of ln Gamma(kappa + x r)."""
    if unit == "destination":  # ln B(kappa + o r, kappa + r - o r) - ln B(kappa + r, kappa)
        return [_log_gamma_sum(r, mu, o, [(1, o), (1, 1 - o), (-1, 1), (-1, 0)])]
    add = [(1, o), (-o, 1), (o - 1, 0)]
    remove = [(1, 1 - o), (-o, 0), (o - 1, 1)]
    return [_log_gamma_sum(r, mu, o, terms) for terms in (add, remove)]


def _log_gamma_sum(r: float, mu: float, o: float, terms: list[tuple[float, float]]) -> float:
    """Sum weights times ln Gamma(r (mu + x)) over o - 1, in ball arithmetic, rounded up."""
    from flint import arb, ctx

    with ctx.workprec(400):  # the terms cancel; 400 bits leave more than 53 at kappa = 1e8
        rate, mass, order = arb(r), arb(mu), arb(o)
        exact = {o: order, 1 - o: 1 - order, o - 1: order - 1, -o: -order}
        total = arb(0)
        for weight, x in terms:
            shape = rate * (mass + exact.get(x, arb(x)))
            if not shape > 0:
                return float("inf")
            total += exact.get(weight, arb(weight)) * shape.lgamma()
        return float(np.nextafter(float((total / (order - 1)).upper()), np.inf))


# -- checks and small tools ------------------------------------------------------------------


def check_unit(unit: object) -> tuple[Pair, ...]:
    """Give the dominating pairs of a unit, or say which units there are."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise DpmarkovError(
            f"unit must be one of {', '.join(map(repr, UNITS))}, not {unit!r}; it says what the "
            "guarantee hides and is never chosen silently"
        )
    return UNITS[unit]


def checked(
    name: str,
    value: npt.ArrayLike,
    *,
    above: float = -np.inf,
    at_least: float = -np.inf,
    below: float = np.inf,
) -> Floats:
    """Give the value as floats, or name it with the limit that it breaks."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DpmarkovError(f"{name} must be a number or an array of numbers") from None
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
