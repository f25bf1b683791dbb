"""The unit `user`: exact, dominating every pair of neighbours, and touched by the worst user."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pyarrow as pa
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmarkov import privacy
from dpmarkov.counting import count_transitions
from dpmarkov.errors import DpmarkovError, InfeasibleError
from dpmarkov.privacy import contour
from dpmarkov.privacy.losses import (
    BetaLoss,
    GammaLoss,
    GaussianLoss,
    GeometricLoss,
    LimitLoss,
    ResponseLoss,
)
from dpmarkov.privacy.pairs import beta_pair, gamma_pair_add, gamma_pair_remove
from dpmarkov.privacy.units import Sensitivity, sensitivity

SAFE = 1e-6  # the most that a delta may exceed the truth, relatively

bounds = st.fixed_dictionaries(
    {"max_cells": st.integers(2, 10_000), "max_per_cell": st.integers(1, 50)}
)


def line_integral(rate, mass, per_cell, removed, cells, epsilon):
    """Integrate along another line, by mpmath's Gauss-Legendre rule instead of the trapezium."""
    r, mu = mp.mpf(rate), mp.mpf(mass)
    h, kappa = r * per_cell, r * mu
    x, y, sign = (kappa, kappa + h, -1) if removed else (kappa + h, kappa, 1)
    at_zero, slope = mp.loggamma(x), mp.loggamma(x) - mp.loggamma(y)

    def log_term(z):
        one = mp.loggamma(x + sign * h * z) - at_zero - z * slope
        return cells * one - z * epsilon - mp.log(z) - mp.log(z + 1)

    top = mass / per_cell if removed else 1e3
    grid = [0.99 * top * mp.mpf(0.9) ** k for k in range(150)]
    c = 1.02 * min(grid, key=lambda c: log_term(c).real)  # beside the saddle point
    c = min(c, 0.999 * top)
    width = 1 / mp.sqrt(mp.diff(log_term, c, 2).real)
    ends = [0, *(width * 2**k for k in range(-1, 14))]
    peak = log_term(c).real
    value = mp.quad(lambda y: mp.exp(log_term(mp.mpc(c, y)) - peak).real, ends)
    return mp.exp(peak) * value / mp.pi


@pytest.mark.parametrize(
    ("cells", "per_cell", "mass", "rate", "epsilon"),
    [
        (2, 1, 40.0, 0.8, 1.0),
        (3, 2, 60.0, 0.1, 0.3),
        (10, 1, 30.0, 0.2, 2.0),
        (100, 5, 5e3, 0.1, 1.0),
        (10_000, 1, 1e5, 0.5, 0.7),
        (10_000, 100, 5e6, 0.002, 3.0),
    ],
)
@pytest.mark.parametrize("removed", [False, True])
def test_profile_equals_the_line_integral_of_mpmath(cells, per_cell, mass, rate, epsilon, removed):
    got = contour.delta([(GammaLoss(rate, mass, per_cell, removed), cells)], epsilon)
    with mp.workdps(40):
        truth = line_integral(rate, mass, per_cell, removed, cells, epsilon)
        assert -1e-15 <= (got - truth) / truth <= SAFE


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize(("rate", "mass", "h", "epsilon"), [(0.7, 25.0, 1, 0.8), (0.2, 50, 3, 0.1)])
def test_two_cells_equal_an_integral_over_what_is_seen(rate, mass, h, epsilon, removed):
    """No moments here: the second cell's closed-form profile, averaged over the first cell."""
    kappa, shift = rate * mass, rate * h
    a = kappa if removed else kappa + shift
    sign = -1 if removed else 1
    with mp.workdps(25):
        b = mp.loggamma(kappa + shift) - mp.loggamma(kappa)

        def one_cell(eps):
            t = mp.exp((sign * eps + b) / shift)
            if removed:
                P, Q = mp.gammainc(kappa, 0, t, True), mp.gammainc(kappa + shift, 0, t, True)
            else:
                P, Q = (
                    mp.gammainc(kappa + shift, t, mp.inf, True),
                    mp.gammainc(kappa, t, mp.inf, True),
                )
            return P - mp.exp(eps) * Q

        def term(log_x):
            density = mp.exp(a * log_x - mp.exp(log_x) - mp.loggamma(a))
            return density * one_cell(epsilon - sign * (shift * log_x - b))

        middle = mp.log(a)
        ends = [middle + k / mp.sqrt(a) for k in (-14, -8, -4, -2, 0, 2, 4, 8, 14)]
        truth = mp.quad(term, ends)
        got = contour.delta([(GammaLoss(rate, mass, h, removed), 2)], epsilon)
        assert -1e-12 <= (got - truth) / truth <= SAFE


def test_one_cell_is_a_transition():
    rng = np.random.default_rng(1)
    for _ in range(50):
        mass = 10 ** rng.uniform(0, 4)
        rate = mass * 10 ** rng.uniform(-4, 0)
        epsilon = np.sqrt(rate / mass) * 10 ** rng.uniform(-1, 1)
        at = {"rate": rate, "mass": mass, "epsilon": epsilon}
        user = privacy.profile("user", **at, max_cells=1, max_per_cell=1)
        assert user == privacy.profile("transition", **at)


@given(log_kappa=st.floats(-1, 6), log_ratio=st.floats(-3, 0.5), log_spread=st.floats(-2, 1.5))
@settings(max_examples=40)
def test_the_integral_gives_the_closed_forms_of_one_pair(log_kappa, log_ratio, log_spread):
    kappa = 10**log_kappa
    h = kappa * 10**log_ratio
    epsilon = h / np.sqrt(kappa) * 10**log_spread
    # a rate that is a power of two: kappa and h are then the same floats on both sides
    rate = float(2.0 ** np.round(np.log2(h)))
    mass = kappa / rate
    arrays = [np.array([x]) for x in (rate * mass, rate, epsilon)]
    for loss, pair in (
        (BetaLoss(rate, mass), beta_pair),
        (GammaLoss(rate, mass, 1, False), gamma_pair_add),
        (GammaLoss(rate, mass, 1, True), gamma_pair_remove),
    ):
        closed = float(pair(*arrays)[0])
        got = contour.delta([(loss, 1)], epsilon)
        if closed > 1e-290:
            # the closed form is itself above the truth by less than 1e-9
            assert -1e-9 <= got / closed - 1 <= 1e-4
            if rate > 0.05:  # where the tail of the line falls fast
                assert got / closed - 1 <= SAFE


@given(cells=st.integers(1, 400), log_mu=st.floats(-3, 2), share=st.floats(-8, 8))
def test_the_integral_gives_the_normal_law(cells, log_mu, share):
    change, mu = Sensitivity(cells, 3), 10**log_mu
    scale = change.l2 / mu
    epsilon = mu * mu / 2 + share * mu
    got = contour.delta([(GaussianLoss(change, scale), 1)], epsilon)
    with ctx.workprec(2000):
        m, eps = 3 * arb(cells).sqrt() / arb(scale), arb(epsilon)
        ends = ((-x / arb(2).sqrt()).erfc() / 2 for x in (m / 2 - eps / m, -m / 2 - eps / m))
        first, second = ends
        truth = first - eps.exp() * second
        assert arb(got) >= truth
        assert float((arb(got) - truth) / truth) <= SAFE


def test_geometric_losses_have_the_moments_of_their_list():
    with ctx.workprec(200):
        for change, scale in (
            (Sensitivity(1), 0.7),
            (Sensitivity(4, 3), 5.0),
            (Sensitivity(9, 2), 2.0),
        ):
            k, t, z = change.per_cell, 1 / arb(scale), arb("0.37")
            q = (-t).exp()
            law = {k: 1 / (1 + q), -k: q**k / (1 + q)}
            law |= {k - 2 * x: (1 - q) / (1 + q) * q**x for x in range(1, k)}
            truth = change.cells * sum(p * (z * v * t).exp() for v, p in law.items()).log()
            assert abs(GeometricLoss(change, scale).log_moment()(z) - truth) < 1e-40
        share = ResponseLoss(0.5).log_moment()(z)
        assert abs(share - GeometricLoss(Sensitivity(1), 2.0).log_moment()(z)) < 1e-40


@given(
    bounds=bounds,
    factor=st.floats(1.01, 30),
    epsilon=st.floats(0.05, 8),
    log_delta=st.floats(-40, -3),
)
@settings(max_examples=12)
def test_calibration_is_safe_and_tight_and_its_inverse(bounds, factor, epsilon, log_delta):
    delta = float(np.exp(log_delta))
    mass = privacy.minimum_mass("user", epsilon=epsilon, delta=delta, **bounds) * factor
    rate = privacy.calibrate("user", epsilon=epsilon, delta=delta, mass=mass, **bounds)
    at = {"rate": rate, "mass": mass, **bounds}
    assert privacy.profile("user", epsilon=epsilon, **at) <= delta
    more = {**at, "rate": rate * 1.0001}
    assert privacy.profile("user", epsilon=epsilon, **more) > delta
    back = privacy.epsilon("user", delta=delta, **at)
    assert back == pytest.approx(epsilon, rel=1e-5)
    assert privacy.profile("user", epsilon=back, **at) <= delta


@given(
    bounds=bounds, log_spread=st.floats(-2, 0.5), epsilon=st.floats(0, 5), factor=st.floats(1.1, 4)
)
@settings(max_examples=20)
def test_delta_falls_with_epsilon_and_mass_and_grows_with_rate_and_bounds(
    bounds, log_spread, epsilon, factor
):
    change = Sensitivity(bounds["max_cells"], bounds["max_per_cell"])
    mass = 200.0 * change.l2
    rate = mass / change.l2**2 * 10 ** (2 * log_spread)

    def delta(rate=rate, mass=mass, epsilon=epsilon, **other):
        return privacy.profile("user", rate=rate, mass=mass, epsilon=epsilon, **(bounds | other))

    here = delta()
    assert delta(epsilon=epsilon * factor) <= here * (1 + SAFE)
    assert delta(mass=mass * factor) <= here * (1 + SAFE)
    assert delta(rate=rate * factor) * (1 + SAFE) >= here
    assert delta(max_cells=change.cells + 1) * (1 + SAFE) >= here
    assert delta(max_per_cell=change.per_cell + 1) * (1 + SAFE) >= here


@pytest.mark.parametrize(("cells", "per_cell"), [(2, 1), (7, 3), (300, 1), (10_000, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.2, 1e-10)])
def test_minimum_mass_is_where_the_limit_of_small_rates_meets_delta(
    cells, per_cell, epsilon, delta
):
    # The limit in closed form: minus the log of the noise, times the rate, is Gamma(L0) of rate
    # m = mass / Linf on one side and m + 1 on the other.
    found = privacy.minimum_mass(
        "user", epsilon=epsilon, delta=delta, max_cells=cells, max_per_cell=per_cell
    )

    def limit(m):
        with mp.workdps(60):
            m = mp.mpf(m)
            b = cells * mp.log1p(1 / m)
            t = epsilon + b
            removed = mp.gammainc(cells, m * t, mp.inf, True) - mp.exp(epsilon) * mp.gammainc(
                cells, (m + 1) * t, mp.inf, True
            )
            s = b - epsilon
            added = (
                mp.gammainc(cells, 0, (m + 1) * s, True)
                - mp.exp(epsilon) * mp.gammainc(cells, 0, m * s, True)
                if s > 0
                else 0
            )
            return max(removed, added)

    m = found / per_cell
    assert limit(m) <= delta * (1 + 1e-12)
    assert limit(m * (1 - 1e-6)) > delta


@given(bounds=bounds, epsilon=st.floats(0.05, 8), log_delta=st.floats(-40, -3))
@settings(max_examples=8)
def test_no_rate_works_below_the_minimum_mass(bounds, epsilon, log_delta):
    delta = float(np.exp(log_delta))
    needed = privacy.minimum_mass("user", epsilon=epsilon, delta=delta, **bounds)
    change = Sensitivity(**{"cells": bounds["max_cells"], "per_cell": bounds["max_per_cell"]})
    rates = needed / change.l2**2 * np.array([1e-4, 1e-1, 10])
    below = privacy.profile("user", rate=rates, mass=needed * 0.999, epsilon=epsilon, **bounds)
    assert np.all(below > delta * (1 - 1e-3))
    with pytest.raises(InfeasibleError, match=r"'user'.*prior.*merging.*larger eps"):
        privacy.calibrate("user", epsilon=epsilon, delta=delta, mass=needed * 0.999, **bounds)


@pytest.mark.parametrize("delta", [1e-30, 1e-100, 1e-290])
def test_very_small_deltas_are_answered(delta):
    at = {"rate": 0.5, "mass": 1e5, "max_cells": 1000, "max_per_cell": 2}
    epsilon = privacy.epsilon("user", delta=delta, **at)
    assert 0 < privacy.profile("user", epsilon=epsilon, **at) <= delta
    assert privacy.profile("user", epsilon=epsilon * (1 - 1e-6), **at) > delta
    assert 0 < privacy.profile("user", epsilon=100 * epsilon, **at) <= 1e-300


@pytest.mark.parametrize(("cells", "per_cell"), [(2, 1), (30, 4), (1000, 1), (10_000, 2)])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_dp_accounting_comes_to_the_same_from_above(cells, per_cell, delta):
    bounds = {"max_cells": cells, "max_per_cell": per_cell}
    mass = 50 * privacy.minimum_mass("user", epsilon=1.0, delta=delta, **bounds)
    rate = privacy.calibrate("user", epsilon=1.0, delta=delta, mass=mass, **bounds)
    found = privacy.distribution("user", rate=rate, mass=mass, **bounds)
    ours = privacy.epsilon("user", rate=rate, mass=mass, delta=delta, **bounds)
    assert ours <= found.get_epsilon_for_delta(delta) <= ours * (1 + 1e-3)


def test_profile_equals_simulated_privacy_loss():
    # 2 million draws; a deviation beyond 6 standard errors has probability 2e-9.
    rng, rate, mass, cells, per_cell, n = np.random.default_rng(6), 0.5, 40.0, 5, 2, 2_000_000
    from scipy.special import gammaln

    kappa, h, epsilon = rate * mass, rate * per_cell, 0.7
    b = gammaln(kappa + h) - gammaln(kappa)
    losses = {
        False: (h * np.log(rng.standard_gamma(kappa + h, (cells, n))) - b).sum(axis=0),
        True: (b - h * np.log(rng.standard_gamma(kappa, (cells, n)))).sum(axis=0),
    }
    for removed, loss in losses.items():
        hit = -np.expm1(np.minimum(epsilon - loss, 0))
        got = contour.delta([(GammaLoss(rate, mass, per_cell, removed), cells)], epsilon)
        assert abs(got - hit.mean()) < 6 * hit.std() / np.sqrt(n)


# -- what dominates ------------------------------------------------------------------------------


def profile_of(rate, prior, counts, moved, epsilon):
    """Delta of one pair of neighbours: a user has `moved` in cells that count so many without."""
    pairs = [(c, k) for c, k in zip(counts, moved, strict=True) if k]
    return max(
        contour.delta([(GammaLoss(rate, prior + c, k, removed), 1) for c, k in pairs], epsilon)
        for removed in (False, True)
    )


def test_no_neighbours_have_a_profile_above_the_certificate():
    rng, compared = np.random.default_rng(8), 0
    for _ in range(60):
        cells, per_cell = int(rng.integers(2, 12)), int(rng.integers(1, 6))
        prior = per_cell * np.sqrt(cells) * 10 ** rng.uniform(1, 3)
        rate = prior / (cells * per_cell**2) * 10 ** rng.uniform(-3, 0.5)
        epsilon = 10 ** rng.uniform(-1.5, 1)
        certified = privacy.profile(
            "user", rate=rate, mass=prior, epsilon=epsilon, max_cells=cells, max_per_cell=per_cell
        )
        if certified < 1e-200:
            continue
        compared += 1
        for _ in range(4):
            moved = rng.integers(1, per_cell + 1, int(rng.integers(1, cells + 1)))
            counts = rng.integers(0, 3, moved.size) * rng.integers(0, 50, moved.size)
            assert profile_of(rate, prior, counts, moved, epsilon) <= certified * (1 + SAFE)
    assert compared > 40


def test_random_people_taken_out_of_random_data_stay_below_the_certificate():
    rng = np.random.default_rng(9)
    bounds, prior, epsilon = {"max_cells": 4, "max_per_cell": 3}, 60.0, 0.8
    rate = 0.4
    certified = privacy.profile("user", rate=rate, mass=prior, epsilon=epsilon, **bounds)
    for _ in range(5):
        events = rng.integers(0, 3, (120, 2))
        people = rng.integers(0, 6, 120)

        def counted(kept, events=events, people=people):
            table = pa.table({"who": people[kept], "a": events[kept, 0], "b": events[kept, 1]})
            return count_transitions(
                table, origin="a", destination="b", states=range(3), user="who", key="k", **bounds
            ).cells

        whole, without = counted(people >= 0), counted(people != 3)
        delta = profile_of(rate, prior, without, whole - without, epsilon)
        assert 0 < delta <= certified * (1 + SAFE)


@pytest.mark.parametrize(("cells", "per_cell"), [(5, 3), (3, 6)])
def test_the_worst_user_is_found_by_search_and_touches_the_certificate(cells, per_cell):
    """Climb over what the user did and what the others did, from a random start."""
    rng = np.random.default_rng(cells)
    prior, epsilon = 30.0 * per_cell, 0.9
    rate = 0.15 * prior / (cells * per_cell**2)
    moved = rng.integers(1, per_cell + 1, cells)
    counts = rng.integers(0, 40, cells)
    best = profile_of(rate, prior, counts, moved, epsilon)
    improved = True
    while improved:
        improved = False
        for i in range(cells):
            for step, size in ((1, 0), (-1, 0), (0, 1), (0, -1), (0, -10)):
                k, c = moved.copy(), counts.copy()
                k[i] = np.clip(k[i] + step, 0, per_cell)
                c[i] = max(c[i] + size, 0)
                if (k == moved).all() and (c == counts).all():
                    continue
                delta = profile_of(rate, prior, c, k, epsilon)
                if delta > best * (1 + 1e-8):
                    best, moved, counts, improved = delta, k, c, True
    assert moved.tolist() == [per_cell] * cells
    assert counts.tolist() == [0] * cells
    certified = privacy.profile(
        "user", rate=rate, mass=prior, epsilon=epsilon, max_cells=cells, max_per_cell=per_cell
    )
    assert best == pytest.approx(certified, rel=SAFE)


def test_the_limit_loss_is_the_limit_of_the_gamma_loss():
    for removed in (False, True):
        limit = contour.delta([(LimitLoss(40.0, removed), 12)], 0.3)
        near = contour.delta([(GammaLoss(1e-7, 40.0, 1, removed), 12)], 0.3)
        assert near == pytest.approx(limit, rel=1e-4)


# -- Renyi, arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 4.0, 20.0])
def test_renyi_adds_up_over_cells(order):
    one = privacy.renyi("transition", rate=0.5, mass=30, order=order)
    many = privacy.renyi("user", rate=0.5, mass=30, order=order, max_cells=200, max_per_cell=1)
    assert many == pytest.approx(200 * one, rel=1e-12)
    # three at once in cells of mass 90 at a third of the rate are one in cells of mass 30
    wide = privacy.renyi("user", rate=0.5 / 3, mass=90, order=order, max_cells=200, max_per_cell=3)
    assert wide == pytest.approx(many, rel=1e-12)
    ends = privacy.renyi("user", rate=0.5, mass=30, order=11, max_cells=2, max_per_cell=3)
    assert (ends == np.inf) == (11 - 1 >= 30 / 3)


def test_renyi_conversion_never_beats_the_exact_profile():
    at = {"rate": 0.02, "mass": 900.0, "max_cells": 60, "max_per_cell": 5}
    orders = np.linspace(1.1, 100, 200)
    divergences = privacy.renyi("user", order=orders, **at)
    converted = np.min(divergences + np.log(1e6) / (orders - 1))
    assert privacy.epsilon("user", delta=1e-6, **at) < converted


@pytest.mark.parametrize(
    ("unit", "given", "message"),
    [
        ("user", {}, "needs max_cells=.*count.*user="),
        ("user", {"max_cells": 5}, "needs max_per_cell="),
        ("transition", {"max_cells": 5}, "max_cells=5 goes with the unit 'user', not with"),
        ("destination", {"max_per_cell": 2}, "max_per_cell=2 goes with the unit 'user'"),
        ("user", {"max_cells": 0, "max_per_cell": 1}, "max_cells=0 must be a whole number"),
        ("user", {"max_cells": 2.5, "max_per_cell": 1}, "max_cells=2.5 must be a whole"),
        ("user", {"max_cells": 2, "max_per_cell": True}, "max_per_cell=True must be a whole"),
    ],
)
def test_bounds_go_with_users_and_users_with_bounds(unit, given, message):
    for call in (
        lambda: privacy.profile(unit, rate=1, mass=50, epsilon=1, **given),
        lambda: privacy.epsilon(unit, rate=1, mass=50, delta=1e-6, **given),
        lambda: privacy.calibrate(unit, epsilon=1, mass=50, delta=1e-6, **given),
        lambda: privacy.minimum_mass(unit, epsilon=1, delta=1e-6, **given),
        lambda: privacy.renyi(unit, rate=1, mass=50, order=2, **given),
        lambda: privacy.distribution(unit, rate=1.0, mass=50.0, **given),
        lambda: sensitivity(unit, **given),
    ):
        with pytest.raises(DpmarkovError, match=message):
            call()


def test_arrays_broadcast_at_the_unit_user():
    grid = privacy.profile(
        "user", rate=[[0.1], [0.2]], mass=900, epsilon=[0.5, 1, 2], max_cells=9, max_per_cell=4
    )
    assert grid.shape == (2, 3)
    one = privacy.profile("user", rate=0.2, mass=900, epsilon=2, max_cells=9, max_per_cell=4)
    assert grid[1, 2] == one
