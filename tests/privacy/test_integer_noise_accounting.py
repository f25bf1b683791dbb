"""Accounting of noise added to counts: against ball arithmetic, brute force and real noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given
from hypothesis import strategies as st

from dpmarkov.errors import DpmarkovError
from dpmarkov.noise import Gaussian, Geometric
from dpmarkov.privacy.integer_noise import (
    gaussian_profile,
    gaussian_scale,
    geometric_profile,
    geometric_scale,
)
from dpmarkov.privacy.lattice import convolved, tilted_delta
from dpmarkov.privacy.units import Sensitivity, sensitivity

UNITS = ["destination", "transition"]
SAFE = 1e-9  # the most that a delta may exceed the truth, relatively

changes = st.builds(Sensitivity, st.integers(1, 6), st.integers(1, 4))


def geometric_truth(change, scale, epsilon):
    """Sum over the losses of all cells, one list of values and probabilities after the other."""
    t, k = 1 / arb(scale), change.per_cell
    q = (-t).exp()
    one = {k: 1 / (1 + q), -k: q**k / (1 + q)}
    one |= {k - 2 * x: (1 - q) / (1 + q) * q**x for x in range(1, k)}
    law = {0: arb(1)}
    for _ in range(change.cells):
        parts = [(a + b, p * r) for a, p in law.items() for b, r in one.items()]
        law = {v: sum((p for a, p in parts if a == v), arb(0)) for v, _ in parts}
    product = Fraction(scale) * Fraction(epsilon)
    return sum(
        (p * (1 - (arb(epsilon) - v * t).exp()) for v, p in law.items() if v > product), arb(0)
    )


def gaussian_truth(change, scale, epsilon):
    """Balle and Wang's formula as printed, wide enough to bear the cancellation."""
    mu, eps = change.per_cell * arb(change.cells).sqrt() / arb(scale), arb(epsilon)
    first, second = (
        (-x / arb(2).sqrt()).erfc() / 2 for x in (mu / 2 - eps / mu, -mu / 2 - eps / mu)
    )
    return first - eps.exp() * second


def test_the_units_move_two_cells_or_one():
    assert (sensitivity("destination").l1, sensitivity("destination").l2) == (2, np.sqrt(2))
    assert (sensitivity("transition").l1, sensitivity("transition").l2) == (1, 1)


@given(t=st.floats(1e-3, 50), share=st.floats(0, 1))
def test_at_both_units_geometric_noise_is_randomized_response(t, share):
    # a cell moved by one loses +-t with odds e^t; two cells must both lose
    scale = 1 / t
    for unit, losses in (("destination", 2), ("transition", 1)):
        epsilon = share * losses * t
        got = Geometric(scale).profile(unit, epsilon)
        if losses / scale - epsilon > 1e-6 * t:
            p = 1 / (1 + np.exp(-1 / scale))
            assert got == pytest.approx(-(p**losses) * np.expm1(epsilon - losses / scale), rel=1e-9)


@given(change=changes, log_scale=st.floats(-3, 12), share=st.floats(0, 1.2))
def test_geometric_profile_equals_the_truth_from_above(change, log_scale, share):
    scale = float(np.exp(log_scale))
    epsilon = share * change.l1 / scale
    got = geometric_profile(change, scale=scale, epsilon=epsilon)
    with ctx.workprec(300):
        truth = geometric_truth(change, scale, epsilon)
        assert arb(got) * (1 + arb(2) ** -200) >= truth
        assert got <= float(truth) * (1 + SAFE) + 1e-300


@pytest.mark.parametrize("change", [Sensitivity(1, 3), Sensitivity(2, 1), Sensitivity(2, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.1])
def test_geometric_profile_equals_brute_force_over_outcomes(change, epsilon):
    scale, x = 1.7, np.arange(-80, 81)
    one = [np.exp(-np.abs(x - shift) / scale) * np.tanh(0.5 / scale) for shift in (0, 3)]
    one[1] = np.exp(-np.abs(x - change.per_cell) / scale) * np.tanh(0.5 / scale)
    P, Q = one
    for _ in range(change.cells - 1):
        P, Q = np.multiply.outer(P, one[0]), np.multiply.outer(Q, one[1])
    truth = np.maximum(P - np.exp(epsilon) * Q, 0).sum()
    assert geometric_profile(change, scale=scale, epsilon=epsilon) == pytest.approx(
        truth, abs=1e-13
    )


@given(change=changes, log_scale=st.floats(-8, 20), steps=st.integers(-3, 3))
def test_geometric_delta_is_zero_exactly_from_the_pure_epsilon_on(change, log_scale, steps):
    scale = float(np.exp(log_scale))
    epsilon = change.l1 / scale
    epsilon += steps * np.spacing(epsilon)
    pure = Fraction(epsilon) * Fraction(scale) >= change.l1
    assert (geometric_profile(change, scale=scale, epsilon=epsilon) == 0) == pure


def test_gaussian_profile_equals_the_truth_from_above_at_the_extremes():
    rng = np.random.default_rng(20261118)
    compared = 0
    for _ in range(400):
        change = Sensitivity(int(rng.integers(1, 30)), int(rng.integers(1, 6)))
        scale = 10 ** rng.uniform(-6, 9)
        mu = change.l2 / scale
        epsilon = rng.choice([mu, mu**2 / 2]) * 10 ** rng.uniform(-3, 1.2)
        got = gaussian_profile(change, scale=scale, epsilon=epsilon)
        assert 0 < got <= 1
        with ctx.workprec(3000):
            truth = gaussian_truth(change, scale, epsilon)
            if truth.rel_accuracy_bits() < 60:
                continue
            compared += 1
            assert arb(got) * (1 + arb(2) ** -80) >= min(truth, arb(1))
            if truth > arb("1e-300"):
                assert float((arb(got) - truth) / truth) <= SAFE
    assert compared > 300


@pytest.mark.parametrize("profile", [geometric_profile, gaussian_profile])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1.0, 1e4, 1e18])
def test_extremes_give_a_probability(profile, scale, epsilon):
    assert 0 <= profile(Sensitivity(3, 2), scale=scale, epsilon=epsilon) <= 1


@pytest.mark.parametrize("profile", [geometric_profile, gaussian_profile])
@given(
    change=changes,
    scale=st.floats(0.05, 1e3),
    epsilon=st.floats(0, 10),
    factor=st.floats(1.01, 5),
)
def test_delta_falls_with_epsilon_and_scale_and_grows_with_the_change(
    profile, change, scale, epsilon, factor
):
    here = profile(change, scale=scale, epsilon=epsilon)
    above = here * (1 + SAFE)
    assert profile(change, scale=scale, epsilon=epsilon * factor) <= above
    assert profile(change, scale=scale * factor, epsilon=epsilon) <= above
    for larger in (
        Sensitivity(change.cells + 1, change.per_cell),
        Sensitivity(change.cells, change.per_cell + 1),
    ):
        assert profile(larger, scale=scale, epsilon=epsilon) * (1 + SAFE) >= here


@pytest.mark.parametrize(
    ("profile", "calibrate"),
    [(geometric_profile, geometric_scale), (gaussian_profile, gaussian_scale)],
)
@given(change=changes, epsilon=st.floats(0, 10), log_delta=st.floats(-60, -0.1))
def test_calibration_gives_the_least_scale_that_is_safe(
    profile, calibrate, change, epsilon, log_delta
):
    delta = float(np.exp(log_delta))
    scale = calibrate(change, epsilon=epsilon, delta=delta)
    assert profile(change, scale=scale, epsilon=epsilon) <= delta
    below = profile(change, scale=scale * (1 - 1e-8), epsilon=epsilon)
    assert below > delta * (1 - SAFE)


@given(change=changes, epsilon=st.floats(1e-6, 1e3))
def test_pure_privacy_needs_the_next_float_at_most(change, epsilon):
    scale = geometric_scale(change, epsilon=epsilon, delta=0)
    assert geometric_profile(change, scale=scale, epsilon=epsilon) == 0
    less = np.nextafter(np.nextafter(scale, 0), 0)
    assert geometric_profile(change, scale=less, epsilon=epsilon) > 0
    assert geometric_scale(change, epsilon=epsilon, delta=1e-12) <= scale


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("law", [Geometric, Gaussian])
def test_profile_equals_the_privacy_loss_of_real_noise(law, unit):
    # Noise from the system's generator on the two sides of a neighbourhood. The event is the one
    # that tells them apart best, L > epsilon, with L from the density alone. 2 million draws; a
    # deviation beyond 6 standard errors has probability 2e-9, in one of 8 comparisons 2e-8.
    noise, n = law(1.3), 2_000_000
    step = np.array([1.0, -1.0] if unit == "destination" else [1.0])
    sides = [noise.draw(n * step.size).reshape(n, -1) + shift for shift in (step, 0 * step)]

    def loss(y):
        if law is Geometric:
            return ((np.abs(y) - np.abs(y - step)) / 1.3).sum(axis=1)
        return ((y**2 - (y - step) ** 2) / (2 * 1.3**2)).sum(axis=1)

    for epsilon in (0.1, 0.6):
        p, q = (np.mean(loss(y) > epsilon) for y in sides)
        error = np.sqrt((p * (1 - p) + np.exp(2 * epsilon) * q * (1 - q)) / n)
        assert abs(p - np.exp(epsilon) * q - noise.profile(unit, epsilon)) < 6 * error
        # Noise that is two percent larger would be seen: its profile is further away than that.
        other = law(1.3 * 1.02).profile(unit, epsilon)
        assert noise.profile(unit, epsilon) - other > 9 * error


@pytest.mark.parametrize("profile", [geometric_profile, gaussian_profile])
def test_arrays_are_broadcast(profile):
    change, scales, epsilons = Sensitivity(2), np.array([[1.0], [3.0]]), np.array([0.1, 0.5, 0.6])
    table = profile(change, scale=scales, epsilon=epsilons)
    assert table.shape == (2, 3)
    for (i, j), value in np.ndenumerate(table):
        one = profile(change, scale=scales[i, 0], epsilon=epsilons[j])
        assert isinstance(one, float)
        assert value == pytest.approx(one, rel=1e-13)
    assert profile(change, scale=[], epsilon=1).shape == (0,)
    many = profile(change, scale=3.0, epsilon=np.linspace(0, 0.6, 2500))
    assert np.all(np.diff(many) < 0)
    assert geometric_scale(change, epsilon=epsilons, delta=0).tolist() == [20, 4, 2 / 0.6]
    assert gaussian_scale(change, epsilon=epsilons, delta=1e-6).shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: geometric_profile(c, scale=0, epsilon=1), "scale must be above 0"),
        (lambda c: gaussian_profile(c, scale=-1, epsilon=1), "scale must be above 0"),
        (lambda c: geometric_profile(c, scale=1, epsilon=-1), "epsilon must be at least 0"),
        (lambda c: gaussian_profile(c, scale=1, epsilon=np.nan), "epsilon.*nan"),
        (lambda c: geometric_scale(c, epsilon=0, delta=0), "epsilon must be at least 1e-300"),
        (lambda c: geometric_scale(c, epsilon=1, delta=-1), "delta must be at least 0"),
        (lambda c: gaussian_scale(c, epsilon=1, delta=0), "delta must be above 0"),
        (lambda c: gaussian_scale(c, epsilon=1, delta=1), "below 1, not 1"),
        (lambda c: Sensitivity(0), "at least 1 cell by at least 1, not 0 by 1"),
        (lambda c: sensitivity("row"), "unit must be one of.*'row'"),
    ],
)
def test_arguments_out_of_range_are_named_with_their_limit(call, message):
    with pytest.raises(DpmarkovError, match=message):
        call(Sensitivity(2))


# -- users of many cells: lists that are too long to be convolved ----------------------------------


@given(
    change=st.builds(Sensitivity, st.integers(1, 60), st.integers(1, 9)),
    log_scale=st.floats(-3, 7),
    share=st.floats(0, 0.99),
)
def test_tilting_gives_what_convolving_gives_from_above(change, log_scale, share):
    t = float(np.exp(-log_scale))
    first = int(share * change.l1 + change.l1) // 2 + 1  # of 0, ..., l1, the first beyond
    threshold = 2.0 * first - change.l1 - 0.7
    assume(threshold >= 0 and first <= change.l1)
    values = 2 * np.arange(first, change.l1 + 1) - change.l1 - threshold
    truth = float(convolved(change, t)[first:] @ -np.expm1(-t * values))
    assume(truth > 1e-290)
    got = tilted_delta(change, t, threshold, 0.7)
    assert truth * (1 - 1e-11) <= got <= truth * (1 + SAFE)


@pytest.mark.parametrize("cells", [601, 3000])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 20.0])
def test_many_cells_equal_the_binomial_law_from_above(cells, epsilon):
    # a cell moved by one loses +-t with odds e^t, so the losses of all cells are binomial
    scale = 4.0 * np.sqrt(cells)
    got = geometric_profile(Sensitivity(cells), scale=scale, epsilon=epsilon)
    with ctx.workprec(300):
        t = 1 / arb(scale)
        p = 1 / (1 + (-t).exp())
        product, truth = Fraction(scale) * Fraction(epsilon), arb(0)
        weight = (1 - p) ** cells
        for ups in range(cells + 1):
            if 2 * ups - cells > product:
                truth += weight * (1 - (arb(epsilon) - (2 * ups - cells) * t).exp())
            weight *= arb(cells - ups) / (ups + 1) * p / (1 - p)
        assert arb(got) >= truth
        assert got <= float(truth) * (1 + SAFE) + 1e-300


@pytest.mark.parametrize("change", [Sensitivity(10_000), Sensitivity(10_000, 100)])
def test_scales_for_many_cells_are_safe_and_tight(change):
    scale = geometric_scale(change, epsilon=1.0, delta=1e-6)
    assert geometric_profile(change, scale=scale, epsilon=1.0) <= 1e-6
    assert geometric_profile(change, scale=scale * (1 - 1e-6), epsilon=1.0) > 1e-6
    assert geometric_profile(change, scale=scale, epsilon=change.l1 / scale * (1 + 1e-12)) == 0
    # noise as wide as this hides by its tails alone: nearly a normal law of the losses
    assert scale == pytest.approx(gaussian_scale(change, epsilon=1.0, delta=1e-6), rel=1e-3)
