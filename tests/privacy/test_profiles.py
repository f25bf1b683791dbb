"""The privacy profiles against 18-digit oracles, ball arithmetic and their own structure."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpmarkov import privacy
from dpmarkov.errors import DpmarkovError, InfeasibleError
from dpmarkov.privacy.pairs import beta_pair, gamma_pair_add, gamma_pair_remove

PAIRS = [beta_pair, gamma_pair_add, gamma_pair_remove]
UNITS = ["destination", "transition"]
SAFE = 1e-9  # the most that a delta may exceed the truth, relatively


def closed_form(pair, kappa, h, epsilon):
    """Theory section 3 as printed, in ball arithmetic wide enough to bear the cancellation."""
    k, h, eps = arb(kappa), arb(h), arb(epsilon)
    if pair is beta_pair:
        x = 1 / (1 + (eps / h).exp())
        first, second = (x.beta_lower(a, b, True) for a, b in ((k, k + h), (k + h, k)))
        return first - eps.exp() * second
    b = (k + h).lgamma() - k.lgamma()
    if pair is gamma_pair_add:
        t = ((eps + b) / h).exp()
        return arb.gamma_upper(t, k + h, True) - eps.exp() * arb.gamma_upper(t, k, True)
    t = ((b - eps) / h).exp()
    # P = 1 - Q: arb is fast for Q only, and the precision bears the subtraction
    P = [1 - arb.gamma_upper(t, a, True) for a in (k, k + h)]
    return P[0] - eps.exp() * P[1]


def evaluate(pair, kappa, h, epsilon):
    return float(pair(*(np.array([x]) for x in (kappa, h, epsilon)))[0])


@pytest.mark.parametrize(
    ("key", "value", "pair"),
    [
        ("swap_profile", "delta", beta_pair),
        ("addremove_profile", "delta_add", gamma_pair_add),
        ("addremove_profile", "delta_remove", gamma_pair_remove),
    ],
)
def test_profile_equals_the_oracles_from_above(oracles, key, value, pair):
    for case in oracles[key]:
        got = evaluate(pair, case["kappa"], case["h"], case["epsilon"])
        with ctx.workprec(200):
            truth = arb(case[value])
            if truth < arb("1e-300"):
                assert got > 0
                assert arb(got) >= truth
            else:
                # 1e-16 is what the oracle's own 18 digits leave open
                assert -1e-16 <= float((arb(got) - truth) / truth) <= SAFE, case


@pytest.mark.parametrize(("pair", "cases"), [(PAIRS[0], 12), (PAIRS[1], 250), (PAIRS[2], 250)])
def test_profile_is_never_understated_at_the_extremes(pair, cases):
    rng = np.random.default_rng(20261118)
    compared = 0
    for _ in range(cases):
        kappa = 10 ** rng.uniform(-6, 8)
        h = kappa * 10 ** rng.uniform(-8, 2)
        spread = min(h * np.sqrt(2 / kappa), 3 * h)
        epsilon = rng.choice([spread, h]) * 10 ** rng.uniform(-3, 1.2)
        got = evaluate(pair, kappa, h, epsilon)
        assert 0 < got <= 1
        with ctx.workprec(800):
            truth = closed_form(pair, kappa, h, epsilon)
            if not truth.is_finite() or truth.rel_accuracy_bits() < 60:
                continue
            compared += 1
            assert arb(got) * (1 + arb(2) ** -80) >= min(truth, arb(1))
            if truth > arb("1e-300"):
                assert float((arb(got) - truth) / truth) <= SAFE
    assert compared > cases / 2


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kappa", [1e-6, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("ratio", [0.0, 1e-6, 1.0, 700.0, 1e6])
@pytest.mark.parametrize("rate", [1e-9, 1e-3, 1.0, 1e5, 1e9])
def test_extremes_give_a_positive_probability(unit, kappa, ratio, rate):
    got = privacy.profile(unit, rate=rate, mass=kappa / rate, epsilon=ratio * rate)
    assert 0 < got <= 1


@pytest.mark.parametrize("unit", UNITS)
def test_where_float64_ends_delta_is_still_a_probability_and_no_warning(unit):
    rng = np.random.default_rng(1)
    kappa, rate = 10 ** rng.uniform(-50, 50, (2, 2000))
    for epsilon in (10 ** rng.uniform(-20, 308, 2000), rate * 10 ** rng.uniform(-3, 20, 2000)):
        got = privacy.profile(unit, rate=rate, mass=kappa / rate, epsilon=epsilon)
        assert np.all((got > 0) & (got <= 1))
    assert privacy.calibrate(unit, epsilon=1e300, delta=1e-6, mass=20) > 1e100


def test_naive_underflow_is_avoided():
    # theory section 3, numerics: x underflows for epsilon / rate > 700 while delta is large
    got = privacy.profile("destination", rate=1e-3, mass=1e-3 / 1e-3, epsilon=6.5)
    limit = np.exp(-6.5) / 3
    assert got == pytest.approx(limit, rel=2e-3)


@given(
    unit=st.sampled_from(UNITS),
    rate=st.floats(1e-3, 1e3),
    mass=st.floats(1e-2, 1e4),
    epsilon=st.floats(0, 20),
    factor=st.floats(1.01, 10),
)
def test_delta_falls_with_epsilon_and_mass_and_grows_with_rate(unit, rate, mass, epsilon, factor):
    here = privacy.profile(unit, rate=rate, mass=mass, epsilon=epsilon)
    slack = 1 + SAFE
    assert privacy.profile(unit, rate=rate, mass=mass, epsilon=epsilon * factor) <= here * slack
    assert privacy.profile(unit, rate=rate, mass=mass * factor, epsilon=epsilon) <= here * slack
    assert privacy.profile(unit, rate=rate * factor, mass=mass, epsilon=epsilon) * slack >= here


@given(
    unit=st.sampled_from(UNITS),
    rate=st.floats(1e-3, 1e2),
    mass=st.floats(0.1, 1e4),
    log_delta=st.floats(-100, -0.1),
)
def test_epsilon_inverts_the_profile_from_above(unit, rate, mass, log_delta):
    delta = float(np.exp(log_delta))
    epsilon = privacy.epsilon(unit, rate=rate, mass=mass, delta=delta)
    assert privacy.profile(unit, rate=rate, mass=mass, epsilon=epsilon) <= delta
    if epsilon > 0:
        lower = epsilon * (1 - 1e-9)
        assert privacy.profile(unit, rate=rate, mass=mass, epsilon=lower) > delta * (1 - SAFE)


@given(
    unit=st.sampled_from(UNITS),
    epsilon=st.floats(0.05, 10),
    log_delta=st.floats(-30, -3),
    excess=st.floats(1.001, 1e4),
)
def test_calibration_gives_the_largest_rate_that_is_safe(unit, epsilon, log_delta, excess):
    delta = float(np.exp(log_delta))
    mass = privacy.minimum_mass(unit, epsilon=epsilon, delta=delta) * excess
    rate = privacy.calibrate(unit, epsilon=epsilon, delta=delta, mass=mass)
    assert privacy.profile(unit, rate=rate, mass=mass, epsilon=epsilon) <= delta
    assert privacy.profile(unit, rate=rate * (1 + 1e-9), mass=mass, epsilon=epsilon) > delta


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("delta", [1e-6, 1e-15, 1e-150])
def test_whatever_exceeds_the_minimum_mass_has_a_rate_even_without_an_epsilon(unit, delta):
    mass = 1.01 * privacy.minimum_mass(unit, epsilon=0, delta=delta)
    rate = privacy.calibrate(unit, epsilon=0, delta=delta, mass=mass)
    assert privacy.profile(unit, rate=rate, mass=mass, epsilon=0) <= delta


def test_calibrated_rates_equal_the_oracles_from_below(oracles):
    for case in oracles["calibrated_rate_swap"]:
        target = {k: case[k] for k in ("epsilon", "delta", "mass")}
        if case["rate"] is None:
            with pytest.raises(InfeasibleError):
                privacy.calibrate("destination", **target)
        else:
            rate = privacy.calibrate("destination", **target)
            assert -1e-9 <= rate / float(case["rate"]) - 1 <= 4e-16


def test_minimum_mass_equals_the_oracles_from_above(oracles):
    for case in oracles["min_mass_swap"]:
        mass = privacy.minimum_mass("destination", epsilon=case["epsilon"], delta=case["delta"])
        assert 0 <= mass / float(case["mass"]) - 1 <= 1e-13


@pytest.mark.parametrize("unit", UNITS)
@given(epsilon=st.floats(0.01, 20), log_delta=st.floats(-50, -0.5))
def test_no_rate_works_below_the_minimum_mass(unit, epsilon, log_delta):
    delta = float(np.exp(log_delta))
    mass = privacy.minimum_mass(unit, epsilon=epsilon, delta=delta)
    below = privacy.profile(unit, rate=[1e-7, 1e-3, 1.0], mass=mass * 0.999, epsilon=epsilon)
    assert np.all(below > delta * (1 - 1e-6))
    above = privacy.profile(unit, rate=1e-9, mass=mass * 1.01 + 1e-6, epsilon=epsilon)
    assert above <= delta


def test_an_infeasible_target_names_both_masses_and_three_ways_out():
    with pytest.raises(
        InfeasibleError, match=r"above 10\.7.*has 5.*prior.*merging.*larger eps"
    ) as e:
        privacy.calibrate("destination", epsilon=1, delta=1e-6, mass=5)
    assert e.value.mass == 5
    assert e.value.minimum_mass == pytest.approx(10.706, abs=1e-3)


def test_renyi_equals_the_oracles_from_above(oracles):
    for case in oracles["renyi_swap"]:
        mass = case["kappa"] / case["h"]
        got = privacy.renyi("destination", rate=case["h"], mass=mass, order=case["order"])
        if case["divergence"] is None:
            assert got == np.inf
        else:
            assert got == pytest.approx(float(case["divergence"]), rel=1e-12)


@given(rate=st.floats(1e-3, 1e2), mass=st.floats(0.5, 1e4), share=st.floats(0.01, 0.99))
def test_renyi_is_never_below_its_closed_form(rate, mass, share):
    order = 1 + share * mass
    got = privacy.renyi("destination", rate=rate, mass=mass, order=order)
    with ctx.workprec(1000):
        h, o = arb(rate), arb(order)
        kappa = h * arb(mass)
        # The two Betas have arguments of the same sum, whose gamma functions cancel.
        above = (kappa + o * h).lgamma() + (kappa + h - o * h).lgamma()
        truth = (above - (kappa + h).lgamma() - kappa.lgamma()) / (o - 1)
        assert arb(got) >= truth
        assert float(arb(got) / truth - 1) <= 1e-15


@pytest.mark.parametrize("unit", UNITS)
def test_renyi_equals_numerical_integration(unit):
    # Independent of the closed form: integrate p^o q^(1 - o) on a fine grid of the log scale.
    kappa, h, order = 12.0, 0.7, 3.5
    t = np.linspace(-12, 12, 200_001)
    if unit == "destination":
        logs = [a * t - (2 * kappa + h) * np.log1p(np.exp(t)) for a in (kappa + h, kappa)]
    else:
        logs = [a * t - np.exp(t) for a in (kappa + h, kappa)]
    p, q = (x - np.log(np.trapezoid(np.exp(x), t)) for x in logs)
    both = [
        np.log(np.trapezoid(np.exp(order * x + (1 - order) * y), t)) / (order - 1)
        for x, y in ((p, q), (q, p))
    ]
    got = privacy.renyi(unit, rate=h, mass=kappa / h, order=order)
    assert got == pytest.approx(max(both), rel=1e-9)


@pytest.mark.parametrize("unit", UNITS)
def test_renyi_conversion_never_beats_the_exact_profile(unit):
    rate, mass, delta = 0.4, 40.0, 1e-6
    orders = np.linspace(1.1, 30, 100)
    divergences = privacy.renyi(unit, rate=rate, mass=mass, order=orders)
    converted = np.min(divergences + np.log(1 / delta) / (orders - 1))
    assert privacy.epsilon(unit, rate=rate, mass=mass, delta=delta) < converted


@pytest.mark.parametrize("unit", UNITS)
def test_profile_equals_simulated_privacy_loss(unit):
    # 4 million draws; a deviation beyond 6 standard errors has probability 2e-9.
    rng, rate, mass, epsilon, n = np.random.default_rng(5), 0.8, 15.0, 0.6, 4_000_000
    kappa = rate * mass
    if unit == "destination":
        odds = rng.standard_gamma(kappa + rate, n) / rng.standard_gamma(kappa, n)
        losses = [rate * np.log(odds)]
    else:
        from scipy.special import gammaln

        b = gammaln(kappa + rate) - gammaln(kappa)
        losses = [
            rate * np.log(rng.standard_gamma(kappa + rate, n)) - b,
            b - rate * np.log(rng.standard_gamma(kappa, n)),
        ]
    hits = [-np.expm1(np.minimum(epsilon - loss, 0)) for loss in losses]
    estimate, error = max((x.mean(), x.std() / np.sqrt(n)) for x in hits)
    got = privacy.profile(unit, rate=rate, mass=mass, epsilon=epsilon)
    assert abs(got - estimate) < 6 * error


@pytest.mark.parametrize("unit", UNITS)
def test_arrays_broadcast_to_the_values_of_scalars(unit):
    rates, epsilons = np.array([[0.1], [2.0]]), np.array([0.5, 1.0, 3.0])
    grid = privacy.profile(unit, rate=rates, mass=25, epsilon=epsilons)
    assert grid.shape == (2, 3)
    for (i, j), value in np.ndenumerate(grid):
        one = privacy.profile(unit, rate=rates[i, 0], mass=25, epsilon=epsilons[j])
        assert value == pytest.approx(one, rel=1e-14)
    assert privacy.calibrate(unit, epsilon=epsilons, delta=1e-6, mass=50).shape == (3,)
    assert privacy.epsilon(unit, rate=rates, mass=25, delta=1e-6).shape == (2, 1)
    assert privacy.minimum_mass(unit, epsilon=epsilons, delta=1e-6).shape == (3,)
    assert privacy.profile(unit, rate=[], mass=1, epsilon=1).shape == (0,)


def test_many_epsilons_are_evaluated_in_pieces():
    epsilons = np.linspace(0, 3, 2500)
    whole = privacy.profile("destination", rate=1, mass=20, epsilon=epsilons)
    assert np.all(np.diff(whole) < 0)
    assert whole[2000] == privacy.profile("destination", rate=1, mass=20, epsilon=epsilons[2000])


def test_delta_is_the_profile_under_the_name_of_its_result():
    arguments = {"rate": 0.5, "mass": 20, "epsilon": 1}
    assert privacy.delta("destination", **arguments) == privacy.profile("destination", **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: privacy.profile("row", rate=1, mass=1, epsilon=1), "unit must be one of.*'row'"),
        (lambda: privacy.profile(["row"], rate=1, mass=1, epsilon=1), r"not \['row'\]"),
        (lambda: privacy.profile("destination", rate=0, mass=1, epsilon=1), "rate must be above 0"),
        (lambda: privacy.profile("destination", rate="x", mass=1, epsilon=1), "rate .* a number"),
        (lambda: privacy.profile("destination", rate=1, mass=-2, epsilon=1), "mass.*not -2"),
        (
            lambda: privacy.profile("destination", rate=1, mass=1, epsilon=-1),
            "epsilon must be at l",
        ),
        (lambda: privacy.profile("destination", rate=np.nan, mass=1, epsilon=1), "rate.*nan"),
        (lambda: privacy.profile("destination", rate=1e200, mass=1e200, epsilon=1), "rate . mass"),
        (lambda: privacy.epsilon("destination", rate=1, mass=1, delta=0), "delta must be above 0"),
        (lambda: privacy.calibrate("destination", epsilon=1, delta=1, mass=9), "below 1, not 1"),
        (lambda: privacy.renyi("transition", rate=1, mass=9, order=1), "order must be above 1"),
    ],
)
def test_arguments_out_of_range_are_named_with_their_limit(call, message):
    with pytest.raises(DpmarkovError, match=message):
        call()
