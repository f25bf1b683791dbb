"""Several releases: never below the truth, tight, whatever the mechanisms and their order."""

from __future__ import annotations

from math import comb

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError
from dpmarkov.guarantee import Guarantee
from dpmarkov.noise import Dirichlet, Gaussian, Geometric
from dpmarkov.privacy import composition
from dpmarkov.privacy.composition import ONLY_RELEASE, compose
from dpmarkov.privacy.integer_noise import gaussian_profile, geometric_profile
from dpmarkov.privacy.pure_share import profile_after
from dpmarkov.privacy.units import Sensitivity

SAFE = 1e-6
USERS = {"max_cells": 30, "max_per_cell": 2}


def promise(noise, unit="transition", spent=0.0, conditions=(), **bounds):
    """Give a guarantee that holds for sure: what matters here is the noise."""
    return Guarantee(unit, 1e3, 0.999, noise, conditions, spent, **bounds)


DIRICHLET = promise(Dirichlet(rate=0.5, mass=30.0))
GAUSSIAN = promise(Gaussian(scale=3.0))
GEOMETRIC = promise(Geometric(scale=2.0))

noises = st.one_of(
    st.builds(Dirichlet, st.floats(0.05, 2), st.floats(20, 200)),
    st.builds(Gaussian, st.floats(1.5, 20)),
    st.builds(Geometric, st.floats(1, 20)),
)
units = st.sampled_from(["destination", "transition", "user"])


def promises(unit, drawn):
    return [promise(noise, unit, **(USERS if unit == "user" else {})) for noise in drawn]


# -- against other methods -----------------------------------------------------------------------


def moment(noise, z, removed):
    """Give E[exp(z loss)] of one transition, in mpmath, from the laws themselves."""
    if isinstance(noise, Dirichlet):
        h, kappa = mp.mpf(noise.rate), mp.mpf(noise.rate) * mp.mpf(noise.mass)
        a, b, sign = (kappa, kappa + h, -1) if removed else (kappa + h, kappa, 1)
        shift = mp.loggamma(a) - mp.loggamma(b)
        return mp.exp(mp.loggamma(a + sign * h * z) - mp.loggamma(a) - z * shift)
    if isinstance(noise, Gaussian):
        return mp.exp((z * z + z) / (2 * mp.mpf(noise.scale) ** 2))
    t = 1 / mp.mpf(noise.scale)
    p = 1 / (1 + mp.exp(-t))
    return p * mp.exp(z * t) + (1 - p) * mp.exp(-z * t)


@pytest.mark.parametrize(
    ("times", "epsilon"),
    [((1, 1, 1), 0.3), ((3, 2, 4), 1.5), ((40, 1, 25), 3.0), ((2, 0, 3), 0.3), ((0, 1, 12), 1.5)],
)
def test_mixtures_equal_the_line_integral_of_mpmath(times, epsilon):
    parts = [DIRICHLET, GAUSSIAN, GEOMETRIC]
    together = compose([p for p, n in zip(parts, times, strict=True) for _ in range(n)])
    with mp.workdps(30):

        def term(z, removed):
            value = mp.exp(-z * epsilon) / (z * (z + 1))
            for part, n in zip(parts, times, strict=True):
                value *= moment(part.noise, z, removed) ** n if n else 1
            return value

        deltas = []
        for removed in (False, True):
            top = 29.5 if removed and times[0] else 100
            c = min(
                (top * mp.mpf(0.93) ** k for k in range(80)),
                key=lambda c, removed=removed: term(c, removed),
            )
            ends = [0, *(mp.mpf(2) ** k / 4 for k in range(9)), mp.inf]
            value = mp.quad(lambda y, c=c, removed=removed: term(mp.mpc(c, y), removed).real, ends)
            deltas.append(value / mp.pi)
        truth = max(deltas)
        got = together.profile(epsilon)
        assert -1e-12 <= (got - truth) / truth <= 1e-5
    # in epsilon: the truth at a millionth less of epsilon is above what is claimed at it
    assert together.epsilon(float(truth)) == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.1, 2.9])
def test_small_cases_equal_a_direct_convolution(epsilon):
    """Outcomes of three geometric releases, enumerated; no losses and no moments."""
    scales, x = (1.5, 2.0, 0.7), np.arange(-62, 63)
    laws = [
        (np.exp(-np.abs(x - 1) / s) * np.tanh(0.5 / s), np.exp(-np.abs(x) / s) * np.tanh(0.5 / s))
        for s in scales
    ]
    P, Q = (np.ones(1), np.ones(1))
    for p, q in laws:
        P, Q = np.multiply.outer(P, p).ravel(), np.multiply.outer(Q, q).ravel()
    truth = np.maximum(P - np.exp(epsilon) * Q, 0).sum()
    together = compose([promise(Geometric(s)) for s in scales])
    assert together.profile(epsilon) == pytest.approx(truth, abs=1e-12)
    pure = sum(1 / s for s in scales)
    assert together.epsilon(0) == pytest.approx(pure, rel=1e-15)
    assert together.profile(together.epsilon(0)) == 0
    assert together.profile(pure * (1 - 1e-6)) > 0


@given(scales=st.lists(st.floats(0.5, 50), min_size=2, max_size=6), share=st.floats(0.01, 4))
def test_gaussian_releases_are_one_gaussian_release(scales, share):
    precision = sum(s**-2 for s in scales)
    epsilon = share * np.sqrt(precision)
    one = gaussian_profile(Sensitivity(1), scale=precision**-0.5, epsilon=epsilon)
    got = compose([promise(Gaussian(s)) for s in scales]).profile(epsilon)
    assert got == pytest.approx(one, rel=1e-8, abs=1e-290)


@given(times=st.integers(2, 300), scale=st.floats(0.5, 50), share=st.floats(0.0, 1.05))
@settings(max_examples=40)
def test_equal_geometric_releases_are_one_release_of_more_cells(times, scale, share):
    epsilon = share * times / scale
    one = geometric_profile(Sensitivity(times), scale=scale, epsilon=epsilon)
    got = compose([promise(Geometric(scale))] * times).profile(epsilon)
    assert one * (1 - 1e-9) <= got <= one * (1 + 1e-8) + 1e-300


@pytest.mark.parametrize("unit", ["transition", "user"])
def test_equal_dirichlet_releases_are_a_user_of_more_cells(unit):
    bounds = {"max_cells": 4, "max_per_cell": 3} if unit == "user" else {}
    one = promise(Dirichlet(0.2, 80.0), unit, **bounds)
    cells = 7 * bounds.get("max_cells", 1)
    for epsilon in (0.1, 1.0, 3.0):
        whole = privacy.profile(
            "user", rate=0.2, mass=80.0, epsilon=epsilon, max_cells=cells,
            max_per_cell=bounds.get("max_per_cell", 1),
        )  # fmt: skip
        assert compose([one] * 7).profile(epsilon) == pytest.approx(whole, rel=1e-9)


def test_a_share_composes_as_randomised_response():
    share, noise = 0.3, Gaussian(3.0)
    both = compose([promise(noise, spent=share), promise(Gaussian(1e9))])  # the latter says nothing
    for epsilon in (0.0, 0.2, 0.8, 1.6):
        truth = profile_after(share, lambda e: noise.profile("transition", e), epsilon)
        assert both.profile(epsilon) == pytest.approx(truth, rel=1e-5)


def test_noise_that_followed_a_share_composes_by_its_claim():
    """Bounds or merged states may have decided on the rate: only (epsilon, delta) is proven."""
    noise = Dirichlet(0.5, 30.0)
    claim = Guarantee("transition", 1.0, 1e-6, noise, (), 0.2)
    assert compose([claim]).profile(1.0) == pytest.approx(1e-6, rel=1e-12)
    for k, epsilon in ((2, 1.5), (3, 0.4)):
        p = 1 / (1 + np.exp(-1.0))  # of a loss of +1 in each, else -1
        ups = np.arange(k + 1)
        weights = np.array([comb(k, int(u)) for u in ups]) * p**ups * (1 - p) ** (k - ups)
        response = weights @ np.maximum(0, -np.expm1(epsilon - (2 * ups - k)))
        kept = (1 - 1e-6) ** k
        got = compose([claim] * k).profile(epsilon)
        assert got == pytest.approx(1 - kept + kept * response, rel=1e-9)
    assert compose([claim] * 2).profile(5.0) == pytest.approx(2e-6, rel=1e-5)
    with pytest.raises(DpmarkovError, match="delta must be above 0"):
        compose([claim]).epsilon(0)
    # normal noise has the same profile whatever was decided, and composes with it
    for fixed in (promise(Gaussian(3.0), spent=0.2), promise(Geometric(3.0), spent=0.2)):
        assert not fixed.only_claimed
    assert promise(Geometric(3.0), "user", spent=0.2, **USERS).only_claimed


def test_geometric_noise_over_many_cells_is_tight():
    """Losses on different lattices, too many to list, against those rounded down to one."""
    from dp_accounting.pld import pld_pmf

    scales = (4220.0, 300.0, 500.0)
    changes = [(10_000, 10), (1000, 1), (1000, 1)]
    users = [{"max_cells": c, "max_per_cell": k} for c, k in changes]
    guarantees = [promise(Geometric(s), "user", **b) for s, b in zip(scales, users, strict=True)]
    got = compose(guarantees).epsilon(1e-6)
    step, total = 2e-6, None
    for scale, (cells, k) in zip(scales, changes, strict=True):
        t = 1 / scale
        q = np.exp(-t)
        law = {k: 1 / (1 + q), -k: q**k / (1 + q)}
        law |= {k - 2 * x: (1 - q) / (1 + q) * q**x for x in range(1, k)}
        rounded = {}
        for value, p in law.items():
            at = int(np.floor(value * t / step + 1e-9))  # losses rounded down: a lower value
            rounded[at] = rounded.get(at, 0.0) + p
        pmf = pld_pmf.create_pmf(rounded, step, 0.0, pessimistic_estimate=False)
        pmf = pmf.to_dense_pmf().self_compose(cells)
        total = pmf if total is None else total.compose(pmf)
    lower = total.get_epsilon_for_delta(1e-6)
    assert lower <= got
    slack = step * sum(c for c, _ in changes)  # what rounding down took, at most
    assert got <= (lower + slack) * (1 + 1e-3)


def test_smoothed_losses_come_to_those_that_are_listed_from_above(monkeypatch):
    rng = np.random.default_rng(0)
    together = compose([promise(Geometric(s)) for s in rng.uniform(3, 20, 10).tolist()])
    for delta in (1e-2, 1e-5):
        listed = together.epsilon(delta)
        with monkeypatch.context() as patch:
            patch.setattr(composition, "_MOST_VALUES", 1)
            for epsilon in (listed, 0.5 * listed):
                truth = composition._listed_delta([
                    composition._as_cells(loss, n)
                    for loss, n in composition._losses([g for g, _ in together.releases], False)
                ], epsilon)  # fmt: skip
                assert together.profile(epsilon) >= truth * (1 - 1e-10)
            assert together.profile(listed * (1 + 1e-3)) <= delta


def test_noise_that_says_next_to_nothing_beside_geometric_noise_is_tight():
    got = compose([promise(Geometric(1.0)), promise(Gaussian(1e4))])
    # the truth lies between the geometric release alone and both pure epsilons added up
    assert 0.998 < got.epsilon(1e-3) < 1.0
    assert 1.0 <= got.epsilon(1e-6) < 1.0006


# -- structure -----------------------------------------------------------------------------------


@given(
    unit=units,
    drawn=st.lists(noises, min_size=2, max_size=4),
    epsilon=st.floats(0, 6),
    seed=st.randoms(use_true_random=False),
)
@settings(max_examples=25)
def test_order_does_not_matter_and_another_release_never_lowers(unit, drawn, epsilon, seed):
    guarantees = promises(unit, drawn)
    whole = compose(guarantees).profile(epsilon)
    shuffled = list(guarantees)
    seed.shuffle(shuffled)
    assert compose(shuffled).profile(epsilon) == whole
    nested = compose([compose(shuffled[:1]), compose(shuffled[1:])])
    assert nested.profile(epsilon) == whole
    fewer = compose(guarantees[:-1]).profile(epsilon)
    assert fewer <= whole * (1 + SAFE) + 1e-300


@given(unit=units, drawn=st.lists(noises, min_size=2, max_size=4), log_delta=st.floats(-25, -2))
@settings(max_examples=15)
def test_epsilon_inverts_the_profile_from_above(unit, drawn, log_delta):
    delta = float(np.exp(log_delta))
    together = compose(promises(unit, drawn))
    epsilon = together.epsilon(delta)
    assert together.profile(epsilon) <= delta
    if epsilon > 0:
        assert together.profile(epsilon * (1 - 1e-5)) > delta * (1 - 1e-3)


def test_one_release_is_itself():
    for guarantee in (DIRICHLET, GAUSSIAN, GEOMETRIC, promise(Gaussian(2.0), spent=0.5)):
        for epsilon in (0.0, 0.7, 2.0):
            assert compose([guarantee]).profile(epsilon) == guarantee.profile(epsilon)


def test_the_total_is_below_the_sum_and_above_each():
    guarantees = [DIRICHLET] * 10 + [GAUSSIAN, GEOMETRIC]
    each = [compose([g]).epsilon(1e-6) for g in guarantees]
    assert max(each) < compose(guarantees).epsilon(1e-6) < sum(each)


def test_disjoint_parts_compose_in_parallel():
    monthly = [promise(Dirichlet(0.5, 30.0 + month)) for month in range(3)]
    parts = ["jan", "feb", "mar"]
    apart = compose(monthly, parts=parts)
    worst = max(compose([g]).epsilon(1e-6) for g in monthly)
    assert apart.epsilon(1e-6) == pytest.approx(worst, rel=1e-5)
    with_year = compose([*monthly, GAUSSIAN], parts=[*parts, None])
    pairs = [compose([g, GAUSSIAN]).profile(0.8) for g in monthly]
    assert with_year.profile(0.8) == max(pairs)
    assert with_year.profile(0.8) < compose([*monthly, GAUSSIAN]).profile(0.8)
    twice = compose([*monthly, monthly[0]], parts=[*parts, "jan"])
    assert twice.profile(0.8) == compose([monthly[0]] * 2).profile(0.8)
    # a composition of one part stays in it
    assert compose([compose([monthly[0]] * 2), monthly[1]], parts=["jan", "feb"]).profile(
        0.8
    ) == compose([*[monthly[0]] * 2, monthly[1]], parts=["jan", "jan", "feb"]).profile(0.8)


def test_conditions_are_those_of_all_and_its_own():
    a = promise(Gaussian(2.0), conditions=("States declared.", ONLY_RELEASE))
    b = promise(Gaussian(3.0), conditions=("Another.", "States declared.", ONLY_RELEASE))
    text = " ".join(str(compose([a, b], parts=["x", "y"])).split())
    for part in (
        "2 releases",
        "'transition'",
        "of 2 disjoint parts",
        "* States declared. * Another.",
        "not chosen by looking at the results",
        "No transition is in two of the parts x, y",
    ):
        assert part in text
    assert ONLY_RELEASE not in text
    assert "parts" not in str(compose([a, b]))
    people = compose([promise(Gaussian(2.0), "user", **USERS)] * 2, parts=[1, 2])
    assert "No person is in two of the parts 1, 2" in str(people)


def test_users_may_have_different_bounds_in_each_release():
    few = promise(Gaussian(40.0), "user", max_cells=10, max_per_cell=1)
    many = promise(Gaussian(40.0), "user", max_cells=40, max_per_cell=2)
    mu2 = (10 + 160) / 40.0**2
    one = gaussian_profile(Sensitivity(1), scale=mu2**-0.5, epsilon=0.9)
    assert compose([few, many]).profile(0.9) == pytest.approx(one, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compose([]), "nothing to compose"),
        (lambda: compose([GAUSSIAN, promise(Gaussian(2.0), "user", **USERS)]),
         "units 'transition' and 'user' have no total"),
        (lambda: compose([GAUSSIAN], parts=[1, 2]), "2 labels for 1 releases"),
        (lambda: compose([0.5]), "takes guarantees.*not float"),
        (lambda: compose([compose([GAUSSIAN] * 2, parts=[1, 2])], parts=["a"]), "one by one"),
        (lambda: compose([GAUSSIAN, GEOMETRIC]).epsilon(0), "delta must be above 0.*geometric"),
        (lambda: compose([GAUSSIAN]).epsilon(1), "below 1, not 1"),
        (lambda: compose([GAUSSIAN]).profile(-1), "epsilon must be at least 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_composed_is_named(call, message):
    with pytest.raises(DpmarkovError, match=message):
        call()


def test_profiles_of_many_epsilons_broadcast():
    together = compose([DIRICHLET, GEOMETRIC])
    values = together.profile([[0.1], [0.5]])
    assert values.shape == (2, 1)
    assert values[1, 0] == together.profile(0.5)


def test_no_composition_is_cheaper_than_what_someone_sees():
    """Simulated losses of a mixture; 6 standard errors, false alarm 2e-9 in each of two."""
    rng, n = np.random.default_rng(3), 1_000_000
    from scipy.special import gammaln

    kappa, r, epsilon = 15.0, 0.5, 0.9
    b = gammaln(kappa + r) - gammaln(kappa)
    gauss = rng.normal(1 / 18, 1 / 3, n)
    geo = np.where(rng.random(n) < 1 / (1 + np.exp(-0.5)), 0.5, -0.5)
    both = []
    for removed in (False, True):
        x = np.log(rng.standard_gamma(kappa if removed else kappa + r, n))
        loss = (b - r * x if removed else r * x - b) + gauss + geo
        hit = -np.expm1(np.minimum(epsilon - loss, 0))
        both.append((hit.mean(), hit.std() / np.sqrt(n)))
    got = compose([DIRICHLET, GAUSSIAN, GEOMETRIC]).profile(epsilon)
    best, error = max(both)
    assert abs(got - best) < 6 * error
