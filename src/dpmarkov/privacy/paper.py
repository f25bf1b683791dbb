r"""The paper's own accountant: Theorem 1's epsilon, and delta by its appendix "Computing delta".

The paper releases a row ``C`` of ``n`` fractions of ``N`` transitions as ``X ~ Dirichlet(k C)``
and proves *probabilistic* differential privacy: outside a set of probability ``delta`` the
log-ratio of the densities of neighbours stays below ``epsilon``. The set is that of rows with a
fraction below a threshold ``gamma``,

    Omega_1 = {x : x_j >= gamma for all j},        delta = 1 - min_C P(Dirichlet(k C) in Omega_1).

**The condition.** All of it holds for, and only among, rows of the *bordered simplex*: every
fraction of ``C`` and of every neighbour is at least ``eta``. That floor is an assertion by the
curator. To read it off the data (``eta = min(C)``) would leak what it is to protect;
`check_bordered` refuses a row outside. Theorem 1 further asks for ``eta`` in (0, 1/4),
``k >= 3 / (2 eta)``, ``gamma <= 1 / (n - 1)`` and ``n >= 3``; each is checked, and so is that the
bordered simplex holds two neighbours at all (``n eta <= 1`` and ``N > n``), from which
``k (1 - 2 eta - 1/N) > 0`` follows.

**One vertex is enough.** ``P(Dirichlet(k C) in Omega_1)`` is log-concave in ``C`` (the paper's
Lemma "delta log-concavity"), so it is least at a vertex of the bordered simplex, and these are the
permutations of ``(eta, ..., eta, 1 - (n-1) eta)``. There delta is computed in three ways:

* *bound*: the union bound, a closed form.
* *exact*: one integral along a line, whatever ``n`` is, evaluated so that its answer is at least
  the truth and at most 1e-6 above it (relative); `dpmarkov.privacy.smallest_fraction` has it.
* *monte-carlo*: the paper's, an estimate and no certificate.

The exact accounting of `dpmarkov.privacy` needs no ``gamma`` and is far tighter; this module is
here for comparison with the paper.

Examples
--------
The paper's grades: 98 students, 5 grades.

>>> epsilon(k=20.6, size=98, categories=5, eta=0.073, gamma=0.0004)
2.21...
>>> delta(k=20.6, categories=5, eta=0.073, gamma=0.0004)
0.001995...
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from dpmarkov.errors import DpmarkovError
from dpmarkov.privacy.smallest_fraction import Vertex, upward

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Method", "check_bordered", "delta", "epsilon", "minimum_epsilon"]

Method = Literal["exact", "bound", "monte-carlo"]


def epsilon(*, k: float, size: int, categories: int, eta: float, gamma: float) -> float:
    """Return the epsilon of the paper's Theorem 1, rounded up by at most 2**-50 of it.

    Parameters
    ----------
    k : float
        Concentration of the Dirichlet mechanism, at least ``3 / (2 eta)``.
    size : int
        Number N of transitions in the row; more than `categories`.
    categories : int
        Number n of categories (feasible destinations), at least 3.
    eta : float
        Asserted floor of every fraction, in (0, 1/4) and at most ``1 / n``.
    gamma : float
        Threshold that defines Omega_1, in (0, 1/(n-1)]. From ``1/n`` on Omega_1 has no interior,
        `delta` is 1 and epsilon promises nothing.

    Returns
    -------
    float
        Theorem 1's right-hand side, never below the true value.

    Raises
    ------
    DpmarkovError
        If an assumption of the theorem fails.

    Examples
    --------
    >>> epsilon(k=3e5, size=2_933_898, categories=63, eta=5e-6, gamma=1e-8)
    3.164...
    """
    _check_simplex(categories, eta, gamma)
    _check_concentration(k, eta)
    _check_size(size, categories)
    return _theorem_1(k, size, categories, eta, gamma)


def minimum_epsilon(*, size: int, categories: int, eta: float, gamma: float) -> float:
    """Return epsilon*, the least epsilon that Theorem 1 can promise: that of ``k = 3 / (2 eta)``.

    Parameters
    ----------
    size, categories, eta, gamma
        As for `epsilon`.

    Returns
    -------
    float
        epsilon*, rounded up by at most 2**-50 of it.

    Raises
    ------
    DpmarkovError
        If an assumption of the theorem fails.

    Examples
    --------
    >>> minimum_epsilon(size=2_933_898, categories=63, eta=1e-5, gamma=1e-8)
    1.548...
    """
    _check_simplex(categories, eta, gamma)
    _check_size(size, categories)
    return _theorem_1(None, size, categories, eta, gamma)


def delta(
    *,
    k: float,
    categories: int,
    eta: float,
    gamma: float,
    method: Method = "exact",
    samples: int = 1_000_000,
    rng: np.random.Generator | None = None,
) -> float:
    """Return the paper's delta: the largest probability of a fraction below `gamma`.

    Parameters
    ----------
    k : float
        Concentration of the Dirichlet mechanism, at least ``3 / (2 eta)``.
    categories : int
        Number n of categories (feasible destinations), at least 3.
    eta : float
        Asserted floor of every fraction, in (0, 1/4) and at most ``1 / n``.
    gamma : float
        Threshold that defines Omega_1, in (0, 1/(n-1)].
    method : {"exact", "bound", "monte-carlo"}
        ``"exact"``: never below the truth and at most 1e-6 above it, relatively, mostly in
        milliseconds (the bound, if ``k eta > 1e8`` or ``k > 1e15``).
        ``"bound"``: the closed-form union bound, rounded up.
        ``"monte-carlo"``: the paper's estimate, an ordinary simulation that may fall on either
        side of the truth: for studies, never for a guarantee.
    samples : int
        Number of simulated rows (``"monte-carlo"`` only).
    rng : numpy.random.Generator, optional
        Source of the simulation, for results that repeat (``"monte-carlo"`` only).

    Returns
    -------
    float
        A number in [0, 1].

    Raises
    ------
    DpmarkovError
        If an assumption of the theorem fails or the method is unknown.

    Examples
    --------
    >>> delta(k=12, categories=3, eta=0.17, gamma=0.002)
    0.00035...
    >>> delta(k=12, categories=3, eta=0.17, gamma=0.002, method="bound")
    0.00035...
    """
    _check_simplex(categories, eta, gamma)
    _check_concentration(k, eta)
    vertex = Vertex.of(k, categories, eta, gamma)
    if method == "monte-carlo":
        _check_samples(samples)
        return vertex.simulated(int(samples), rng or np.random.default_rng())
    if method == "bound":
        return vertex.bound()
    if method == "exact":
        return vertex.exact()
    raise DpmarkovError(f"method={method!r} is unknown; choose one of {get_args(Method)}")


def check_bordered(C: ArrayLike, eta: float) -> None:
    """Refuse rows outside the bordered simplex, where Theorem 1 promises nothing.

    `C` is sensitive, so the message tells nothing about it beyond the refusal. The refusal itself
    depends on the data: the guarantee of a release that passed is conditional on the floor.

    Parameters
    ----------
    C : array_like
        A row of fractions, or several rows with the categories along the last axis.
    eta : float
        The asserted floor.

    Raises
    ------
    DpmarkovError
        If `eta` is no floor for so many categories, a row does not sum to one, or a fraction is
        below the floor.

    Examples
    --------
    >>> check_bordered([0.2, 0.3, 0.5], eta=0.1)
    """
    rows = np.asarray(C, dtype=np.float64)
    categories = rows.shape[-1] if rows.ndim else 1
    _check_categories(categories)
    _check_floor(categories, eta)
    if not np.all(np.abs(rows.sum(axis=-1) - 1) <= 1e-9):
        raise DpmarkovError(
            "a row of C does not sum to 1 within 1e-9; divide counts by their row total"
        )
    if not np.all(rows >= eta):
        raise DpmarkovError(
            f"a fraction of C is below the floor eta={eta!r} that Theorem 1 needs in every "
            "category; merge categories, assert a lower floor for reasons that are public, "
            "or use a prior, which needs no floor"
        )


# --- the assumptions --------------------------------------------------------------------------


def _check_simplex(categories: int, eta: float, gamma: float) -> None:
    _check_categories(categories)
    _check_floor(categories, eta)
    _check_threshold(categories, gamma)


def _check_categories(categories: int) -> None:
    if not (_is_whole(categories) and categories >= 3):
        raise DpmarkovError(
            f"categories={categories!r} must be a whole number of at least 3 (the bordered "
            "simplex of Theorem 1); use dpmarkov.privacy.profile for smaller rows"
        )


def _check_floor(categories: int, eta: float) -> None:
    if not 0 < eta < 0.25:
        raise DpmarkovError(
            f"eta={eta!r} must lie strictly between 0 and 1/4; assert a floor in that range"
        )
    if categories * eta > 1:
        raise DpmarkovError(
            f"eta={eta!r} exceeds 1/{categories}, so no row of {categories} categories reaches "
            "it everywhere; assert a lower floor or merge categories"
        )


def _check_threshold(categories: int, gamma: float) -> None:
    if not (gamma > 0 and (categories - 1) * gamma <= 1):
        raise DpmarkovError(
            f"gamma={gamma!r} must be positive and at most 1/{categories - 1}, that is "
            "1/(categories - 1); choose a smaller gamma for a smaller delta"
        )


def _check_concentration(k: float, eta: float) -> None:
    # 3 / (2 eta) may be computed in several orders; they differ by a few units in the last place.
    if not 1.5 / eta * (1 - 1e-15) <= k < math.inf:
        raise DpmarkovError(
            f"k={k!r} must be finite and at least 3/(2 eta) = {1.5 / eta!r}; "
            "raise k or assert a higher floor eta"
        )


def _check_size(size: int, categories: int) -> None:
    if not (_is_whole(size) and size > categories):
        raise DpmarkovError(
            f"size={size!r} must be a whole number above categories={categories}: a floor above "
            "0 needs a transition in each category, and a neighbour needs one to move; "
            "merge categories or collect more transitions"
        )


def _check_samples(samples: int) -> None:
    if not (_is_whole(samples) and samples >= 1):
        raise DpmarkovError(
            f"samples={samples!r} must be a whole number of at least 1; 1,000,000 is usual"
        )


def _is_whole(value: float) -> bool:
    return float(value).is_integer()


# --- epsilon ----------------------------------------------------------------------------------


def _theorem_1(k: float | None, size: int, categories: int, eta: float, gamma: float) -> float:
    """Evaluate Theorem 1 in ball arithmetic, at ``k = 3 / (2 eta)`` exactly if `k` is None."""
    from flint import arb, ctx

    magnitude = math.log2(k or 1.5 / eta) + math.log2(size)
    # Log-gammas of size k log k differ by about their N-th part: keep 128 bits after that.
    with ctx.workprec(128 + 2 * math.ceil(magnitude)):
        n, η, γ, h = int(categories), arb(eta), arb(gamma), arb(1) / int(size)
        K = arb(1.5) / η if k is None else arb(k)
        # The Betas' second gammas cancel, both being that of k (1 - eta).
        kept = (K * η).lgamma() + (K * (1 - 2 * η)).lgamma()
        moved = (K * (η + h)).lgamma() + (K * (1 - 2 * η - h)).lgamma()
        # Omega_1 has no interior from gamma = 1/n on; "log-odds" below 0 would mean nothing.
        odds = ((1 - (n - 1) * γ) / γ).log() if n * gamma < 1 else arb(0)
        return upward(kept - moved + K * h * odds)
