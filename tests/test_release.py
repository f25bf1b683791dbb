"""The release: true to its guarantee, right on average, free of anything sensitive."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import any_counts

import dpmarkov as dpm
from dpmarkov.mechanisms import dirichlet
from dpmarkov.mechanisms.prior import choose_prior
from dpmarkov.mechanisms.sampling import LARGEST_SHAPE
from dpmarkov.noise import Gaussian, Geometric

TARGET = {"epsilon": 1.0, "delta": 1e-6}
UNITS = ["destination", "transition"]
ADDED = {"geometric": Geometric, "gaussian": Gaussian}
SPACE = dpm.StateSpace(["home", "work", "shop"])
COUNTS = dpm.TransitionCounts.from_dense([[120, 3000, 400], [2500, 900, 600], [900, 100, 0]], SPACE)


@given(
    counts=any_counts(),
    unit=st.sampled_from(UNITS),
    epsilon=st.sampled_from([0.05, 1.0, 20.0]),
    prior=st.sampled_from(["auto", 2000.0]),
    debias=st.booleans(),
)
@settings(max_examples=60)
def test_every_release_has_positive_rows_and_a_guarantee_that_holds(
    counts, unit, epsilon, prior, debias
):
    out = dpm.release(counts, epsilon=epsilon, delta=1e-6, unit=unit, prior=prior, debias=debias)
    assert np.all(out.probabilities > 0)
    assert np.allclose(counts.space.row_sums(out.probabilities), 1, atol=1e-12)
    assert out.guarantee.profile(epsilon) <= 1e-6
    assert out.guarantee.noise.mass == out.prior >= 1
    assert (out.row_totals is None) == (unit == "transition")
    assert (out.private_counts is None) == (unit == "destination")
    if unit == "destination":
        empty = tuple(counts.space.origins[i] for i in np.flatnonzero(counts.row_totals == 0))
        assert out.weak_rows == empty


@given(
    counts=any_counts(),
    unit=st.sampled_from(UNITS),
    epsilon=st.sampled_from([0.05, 1.0, 20.0]),
    mechanism=st.sampled_from(["geometric", "gaussian"]),
    delta=st.sampled_from([0.0, 1e-6, 0.1]),
)
@settings(max_examples=60)
def test_every_release_of_noisy_counts_has_positive_rows_and_a_guarantee_that_holds(
    counts, unit, epsilon, mechanism, delta
):
    if mechanism == "gaussian" and delta == 0:
        delta = 1e-12
    out = dpm.release(counts, epsilon=epsilon, delta=delta, unit=unit, mechanism=mechanism)
    assert np.all(out.probabilities > 0)
    assert np.allclose(counts.space.row_sums(out.probabilities), 1, atol=1e-12)
    assert out.guarantee.profile(epsilon) <= delta
    assert out.mechanism == mechanism
    assert out.guarantee.noise == ADDED[mechanism].calibrated(unit, epsilon=epsilon, delta=delta)
    assert (out.prior, out.debiased) == (0, True)
    assert (out.row_totals is None) == (unit == "transition")
    assert (out.private_counts is None) == (unit == "destination")
    if unit == "destination":
        empty = tuple(counts.space.origins[i] for i in np.flatnonzero(counts.row_totals == 0))
        assert out.weak_rows == empty


@pytest.mark.parametrize("unit", UNITS)
def test_no_target_is_met_with_less_noise_than_calibrated(unit):
    out = dpm.release(COUNTS, **TARGET, unit=unit)
    rate = dpm.privacy.calibrate(unit, **TARGET, mass=out.guarantee.noise.mass)
    assert rate * (1 - 2**-14) <= out.guarantee.noise.rate <= rate


def test_shapes_are_exact_so_that_neighbours_differ_by_the_rate():
    rng = np.random.default_rng(3)
    largest = (2**31 - 1, 2**31 - 1 / 64)  # together they have the most digits
    drawn = [(int(2 ** rng.uniform(0, 31)), 10 ** rng.uniform(-2, 9)) for _ in range(500)]
    for cell, mass in [*drawn, *[largest] * 500]:
        rate, prior = dirichlet.exact_rate(10 ** rng.uniform(-9, 6)), dirichlet.exact_prior(mass)
        product = rate * (cell + prior)
        assert Fraction(product) == Fraction(rate) * (cell + Fraction(prior))
        assert product <= LARGEST_SHAPE


def test_rates_and_priors_with_too_many_digits_are_refused():
    with pytest.raises(dpm.DpmarkovError, match="too many digits"):
        dirichlet.draw(COUNTS.cells, rate=0.1, prior=20.0)
    with pytest.raises(dpm.DpmarkovError, match="too many digits"):
        dirichlet.draw(COUNTS.cells, rate=0.5, prior=0.1)
    with pytest.raises(dpm.DpmarkovError, match=r"2\^31 .* or more"):
        dirichlet.draw(np.array([2**31]), rate=0.5, prior=20.0)
    with pytest.raises(dpm.DpmarkovError, match=r"rate 2\.91038e-11 is too small"):
        dirichlet.draw(COUNTS.cells, rate=2.0**-35, prior=20.0)
    with pytest.raises(dpm.DpmarkovError, match=r"between 0 and 2\^31"):
        dirichlet.exact_prior(1e10)


# Statistical tests: fixed numbers of draws from the system's generator, so they cannot be seeded.
# Each compares a p-value with 1e-7; there are 20 of them, so a false alarm has probability <= 2e-6.
FALSE_ALARM = 1e-7


def _repeated(n, **options):
    space = dpm.StateSpace(origins=range(n), destinations=["a", "b", "c"])
    cells = np.tile([40, 9, 1], n)
    return dpm.release(dpm.TransitionCounts(space, cells), **TARGET, **options)


@pytest.mark.parametrize("cell", [0, 1, 2])
def test_rows_without_debiasing_are_dirichlet(cell):
    out = _repeated(20_000, unit="destination", prior=20, debias=False)
    shapes = out.guarantee.noise.rate * (np.array([40, 9, 1]) + 20)
    law = stats.beta(shapes[cell], shapes.sum() - shapes[cell])
    assert stats.kstest(out.matrix[:, cell], law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("debias", [False, True])
def test_rows_without_data_are_the_prior_as_it_was_drawn(debias):
    space = dpm.StateSpace(origins=range(20_000), destinations=["a", "b", "c"])
    empty = dpm.TransitionCounts(space, np.zeros(space.n_cells, int))
    out = dpm.release(empty, **TARGET, unit="destination", prior=20, debias=debias)
    shape = out.guarantee.noise.rate * 20
    assert stats.kstest(out.matrix[:, 0], stats.beta(shape, 2 * shape).cdf).pvalue > FALSE_ALARM
    assert out.weak_rows == space.origins


@pytest.mark.parametrize("cell", [0, 1, 2])
def test_private_counts_are_unbiased_with_the_stated_variance(cell):
    out = _repeated(20_000, unit="transition", prior=20)
    draws = out.private_counts.reshape(-1, 3)[:, cell]
    c, rate = [40, 9, 1][cell], out.guarantee.noise.rate
    law = stats.gamma(rate * (c + 20), loc=-20, scale=1 / rate)
    assert law.mean() == pytest.approx(c)
    assert law.var() == pytest.approx((c + 20) / rate)
    assert stats.kstest(draws, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("mechanism", ADDED)
@pytest.mark.parametrize("cell", [0, 1, 2])
def test_noisy_counts_are_counts_and_noise_of_the_guarantee_s_law(mechanism, cell):
    out = _repeated(20_000, unit="transition", mechanism=mechanism)
    added = out.private_counts.reshape(-1, 3)[:, cell] - [40, 9, 1][cell]
    noise = out.guarantee.noise
    if mechanism == "gaussian":
        assert stats.kstest(added, stats.norm(scale=noise.scale).cdf).pvalue > FALSE_ALARM
        return
    k = np.arange(-6, 7)
    p = np.exp(-np.abs(k) / noise.scale) * np.tanh(0.5 / noise.scale)
    p[[0, -1]] += (1 - p.sum()) / 2  # what lies beyond
    observed = np.bincount(np.clip(added, -6, 6).astype(int) + 6, minlength=13)
    assert stats.chisquare(observed, p * added.size).pvalue > FALSE_ALARM


@pytest.mark.parametrize("mechanism", ["dirichlet", *ADDED])
@pytest.mark.parametrize("unit", UNITS)
def test_debiased_rows_are_right_on_average(unit, mechanism):
    n = 4000
    space = dpm.StateSpace(origins=range(n), destinations=["a", "b", "c"])
    counts = dpm.TransitionCounts(space, np.tile([9000, 700, 300], n))
    out = dpm.release(counts, **TARGET, unit=unit, mechanism=mechanism)
    deviations = out.matrix - np.array([0.9, 0.07, 0.03])
    assert out.touched == 0
    assert stats.ttest_1samp(deviations[:, 1], 0).pvalue > FALSE_ALARM


def test_the_tests_of_the_law_can_fail():
    out = _repeated(20_000, unit="transition", prior=20)
    draws = out.private_counts.reshape(-1, 3)[:, 0]
    wrong = stats.gamma(
        out.guarantee.noise.rate * 60 * 1.05, loc=-20, scale=1 / out.guarantee.noise.rate
    )
    assert stats.kstest(draws, wrong.cdf).pvalue < FALSE_ALARM


def test_the_mechanisms_rank_as_theory_says():
    # at event level geometric noise is the most accurate; the Dirichlet mechanism with a large
    # prior comes near the Gaussian from above
    def error(mechanism):
        out = _repeated(4000, unit="transition", mechanism=mechanism)
        return np.mean((out.private_counts - np.tile([40, 9, 1], 4000)) ** 2)

    geometric, gaussian, dirichlet = (error(m) for m in ("geometric", "gaussian", "dirichlet"))
    assert geometric < 0.2 * gaussian
    assert 0.95 < dirichlet / gaussian < 1.2


def test_debiasing_helps_where_the_prior_is_large():
    truth = COUNTS.proportions()
    errors = {
        debias: np.mean(
            [
                np.abs(
                    dpm.release(
                        COUNTS, **TARGET, unit="destination", debias=debias, prior=1e4
                    ).matrix
                    - truth
                ).sum()
                for _ in range(20)
            ]
        )
        for debias in (True, False)
    }
    assert errors[True] < errors[False] / 5


def test_the_paper_s_setting_prints_its_condition_and_refuses_other_data():
    table = dpm.StateSpace(categories=["A", "B", "C", "D", "F"])
    grades = dpm.TransitionCounts.from_dense([2000, 1600, 1600, 1500, 3100], table)
    out = dpm.release(grades, **TARGET, unit="destination", assume_floor=np.float64(0.15))
    assert out.prior == 0
    assert out.guarantee.noise.mass == 1470
    assert not out.debiased
    assert "share of at least 0.15" in " ".join(str(out.guarantee).split())
    assert sum(out.distribution.values()) == pytest.approx(1)
    with pytest.raises(dpm.DpmarkovError, match="outside the bordered simplex") as error:
        dpm.release(grades, **TARGET, unit="destination", assume_floor=0.16)
    assert "1500" not in str(error.value)
    small = dpm.TransitionCounts.from_dense([20, 16, 16, 15, 31], table)
    with pytest.raises(dpm.InfeasibleError, match=r"above 10\.7.*has 5\b"):
        dpm.release(small, **TARGET, unit="destination", assume_floor=0.05)


def test_a_floor_gives_the_mass_of_the_row_with_the_fewest_transitions():
    table = dpm.StateSpace(origins=["many", "few"], destinations=["a", "b", "c"])
    counts = dpm.TransitionCounts.from_dense([[4000, 3000, 3000], [31, 30, 40]], table)
    out = dpm.release(counts, **TARGET, unit="destination", assume_floor=0.25)
    assert out.guarantee.noise.mass == 26  # a quarter of 101, rounded up: there are no quarters
    assert out.guarantee.profile(1.0) <= 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "person"}, "unit must be one of"),
        ({"unit": "user"}, "needs max_cells=.* count"),
        ({"unit": "transition", "assume_floor": 0.1}, "assume_floor goes with unit='destination'"),
        ({"unit": "destination", "assume_floor": 0.1, "prior": 5}, "without a prior"),
        ({"unit": "destination", "assume_floor": 0.4}, "at most 1/n = 0.333"),
        ({"unit": "destination", "assume_floor": "low"}, "assume_floor must be a number, not 'l"),
        ({"unit": "destination", "prior": 0}, "assert a floor"),
        ({"unit": "destination", "prior": "large"}, "or 'auto', not 'large'"),
        ({"unit": "destination", "mechanism": "laplace"}, "not 'laplace'"),
        ({"unit": "destination", "prior": None}, "or 'auto', not None"),
        ({"unit": "destination", "epsilon": -1}, "epsilon must be at least 0"),
        ({"unit": "destination", "epsilon": "1"}, "epsilon must be a number, not '1'"),
        ({"unit": "destination", "delta": None}, "delta must be a number, not None"),
        ({"unit": "transition", "expected_total": -5}, "expected_total must be at least 0"),
        ({"unit": "transition", "expected_total": np.nan}, "expected_total must be at least 0"),
        ({"unit": "destination", "counts": np.eye(3)}, "counts is a ndarray and must be Transiti"),
        ({"unit": "destination", "delta": 0}, "delta must be above 0"),
        ({"unit": "user", "mechanism": "geometric"}, "needs max_cells="),
        ({"unit": "transition", "mechanism": "gaussian", "delta": 0}, "delta must be above 0"),
        ({"unit": "transition", "mechanism": "geometric", "delta": 1}, "delta.*below 1"),
        ({"unit": "transition", "mechanism": "geometric", "epsilon": -1}, "epsilon must be at l"),
        ({"unit": "transition", "mechanism": "geometric", "prior": 5}, "prior goes with .*dirichl"),
        ({"unit": "destination", "mechanism": "gaussian", "debias": False}, "debias goes with"),
        ({"unit": "destination", "mechanism": "geometric", "assume_floor": 0.1}, "assume_floor go"),
        ({"unit": "transition", "mechanism": "gaussian", "expected_total": 9}, "expected_total go"),
    ],
)
def test_arguments_that_do_not_fit_are_named(options, message):
    with pytest.raises(dpm.DpmarkovError, match=message):
        dpm.release(**{"counts": COUNTS, **TARGET, **options})


@pytest.mark.parametrize("unit", UNITS)
def test_a_prior_below_the_minimum_mass_is_infeasible_with_three_ways_out(unit):
    with pytest.raises(dpm.InfeasibleError, match=r"prior above.*merging.*larger epsilon") as error:
        dpm.release(COUNTS, **TARGET, unit=unit, prior=5)
    assert error.value.mass == 5 < error.value.minimum_mass


def test_the_prior_is_chosen_from_public_numbers_only():
    target = {**TARGET, "space": SPACE}
    assert choose_prior("destination", total=9e6, debias=True, **target) == pytest.approx(1e7)
    known = choose_prior("transition", total=None, debias=True, **target)
    other = dpm.TransitionCounts.from_dense(np.ones((3, 3), int), SPACE)
    for counts in (COUNTS, other):
        out = dpm.release(counts, **TARGET, unit="transition")
        assert known <= out.prior < known + 1 / 64
        out = dpm.release(counts, **TARGET, unit="transition", expected_total=9e6)
        assert out.prior == pytest.approx(1e7)
    assert choose_prior("transition", total=None, debias=False, **target) == pytest.approx(
        20.85, 0.01
    )
    small, large = (
        choose_prior("destination", total=n, debias=False, **target) for n in (100, 10**9)
    )
    assert dpm.privacy.minimum_mass("destination", **TARGET) < small < large


@pytest.mark.parametrize("unit", UNITS)
def test_the_chosen_prior_is_one_that_the_sampler_takes(unit):
    large = dpm.TransitionCounts.from_dense(np.full((3, 3), 2**30), SPACE)
    for counts, epsilon in ((large, 1.0), (COUNTS, 1e-7)):
        out = dpm.release(counts, epsilon=epsilon, delta=1e-6, unit=unit)
        assert out.prior <= dirichlet.LARGEST_PRIOR


@pytest.mark.parametrize("mechanism", ["dirichlet", *ADDED])
def test_the_same_total_gives_the_same_parameters_whatever_the_cells_are(mechanism):
    # under `destination` the row totals are public; nothing else may steer the noise
    other = dpm.TransitionCounts.from_dense([[3520, 0, 0], [0, 0, 4000], [0, 1000, 0]], SPACE)
    a, b = (
        dpm.release(c, **TARGET, unit="destination", mechanism=mechanism) for c in (COUNTS, other)
    )
    assert a.guarantee == b.guarantee
    assert (a.prior, a.weak_rows) == (b.prior, b.weak_rows)


@pytest.mark.parametrize("mechanism", ["dirichlet", *ADDED])
def test_rows_mostly_of_noise_are_named_as_weak(mechanism):
    counts = dpm.TransitionCounts.from_dense([[10**6, 10**6, 0], [0, 0, 0], [0, 10**7, 0]], SPACE)
    out = dpm.release(counts, **TARGET, unit="destination", mechanism=mechanism)
    assert out.weak_rows == ("work",)
    # under `transition` this is read off the noise: 2 standard deviations, so 1 time in 40 not
    out = dpm.release(counts, **TARGET, unit="transition", mechanism=mechanism)
    assert "home" not in out.weak_rows


@pytest.mark.parametrize("mechanism", ["dirichlet", *ADDED])
def test_rows_of_nothing_but_noise_are_named_as_weak_39_times_in_40(mechanism):
    n = 20_000
    space = dpm.StateSpace(origins=range(n), destinations=["a", "b", "c"])
    counts = dpm.TransitionCounts(space, np.zeros(3 * n, int))
    out = dpm.release(counts, **TARGET, unit="transition", mechanism=mechanism)
    # 0.9694 for the geometric law, 0.977 for the others, and 6 standard errors of 0.0012
    assert abs(len(out.weak_rows) / n - 0.977) < 0.015


def test_states_read_off_the_data_are_printed_as_not_private():
    counts = dpm.TransitionCounts(SPACE, COUNTS.cells, states_from_data=True)
    assert "NOT PRIVATE" in str(dpm.release(counts, **TARGET, unit="transition").guarantee)


def test_the_views_of_a_release_agree():
    out = dpm.release(COUNTS, **TARGET, unit="transition")
    assert out.rows["home"]["work"] == out.matrix[0, 1]
    assert out.chain.labels == ("home", "work", "shop")
    assert repr(out) == (
        "Release(3 states, all 9 transitions feasible; dirichlet; epsilon=1, delta=1e-06, "
        "unit='transition')"
    )
    with pytest.raises(dpm.DpmarkovError, match="several rows"):
        _ = out.distribution
    table = dpm.StateSpace(origins=["x"], destinations=["a", "b"])
    flat = dpm.release(dpm.TransitionCounts(table, [1, 2]), **TARGET, unit="transition")
    with pytest.raises(dpm.DpmarkovError, match="not a chain"):
        _ = flat.chain
    sparse = dpm.StateSpace([0, 1, 2], support=np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]], bool))
    out = dpm.release(dpm.TransitionCounts(sparse, [5] * 6), **TARGET, unit="transition")
    assert out.matrix.shape == (3, 3)
    assert out.rows[0].keys() == {1, 2}
    assert out.chain.is_irreducible
