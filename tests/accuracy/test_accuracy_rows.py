"""Closed forms of one row: reference values, extremes, simulation, structure."""

from __future__ import annotations

import flint
import numpy as np
import pytest
from accuracy_simulation import assert_means, dirichlet_rows
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmarkov import accuracy
from dpmarkov.errors import DpmarkovError

strengths = st.floats(-1, 12).map(lambda x: 10.0**x)


@st.composite
def rows(draw: st.DrawFn) -> np.ndarray:
    """Draw rows of 2 to 8 entries over many orders of magnitude, some of them 0."""
    n = draw(st.integers(2, 8))
    logs = draw(arrays(float, n, elements=st.floats(-20, 0)))
    kept = draw(arrays(bool, n))
    kept[draw(st.integers(0, n - 1))] = True
    weights = np.where(kept, 10.0**logs, 0.0)
    return weights / weights.sum()


# Reference values


def test_expected_kl_agrees_with_the_oracle(oracles):
    for case in oracles["expected_kl"]:
        value = accuracy.expected_kl(case["C"], case["k"])
        assert value == pytest.approx(float(case["kl"]), rel=1e-12, abs=0)


def test_kl_bound_agrees_with_the_oracle(oracles):
    for case in oracles["kl_bound"]:
        value = accuracy.kl_bound(size=case["N"], categories=case["n"], k=case["k"])
        assert value == pytest.approx(float(case["bound"]), rel=1e-12, abs=0)


def test_mean_absolute_deviation_agrees_with_the_oracle(oracles):
    for case in oracles["mean_abs_dev"]:
        value = accuracy.mean_absolute_deviation([case["c"], 1 - case["c"]], case["k"])[0]
        assert value == pytest.approx(float(case["value"]), rel=1e-12, abs=0)


@pytest.mark.parametrize("k", [1e-3, 0.7, 11.9, 24.0, 1e6, 1e10, 1e14])
@pytest.mark.parametrize("entry", [1e-12, 3e-5, 0.02, 0.5])
def test_no_digit_is_lost_between_tiny_entries_and_huge_k(k, entry):
    with flint.ctx.workprec(400):
        K, p = flint.arb(k), flint.arb(entry)
        q, rest = 1 - p, flint.arb(1 - entry)
        kl = sum(x * (x.log() + K.digamma() - (K * x).digamma()) for x in (p, rest))
        log_beta = (K * p).lgamma() + (K * q).lgamma() - K.lgamma()
        deviation = 2 * (K * (p * p.log() + q * q.log()) - log_beta).exp() / K
    row = [entry, 1 - entry]
    assert accuracy.expected_kl(row, k) == pytest.approx(float(kl), rel=1e-12, abs=0)
    assert accuracy.mean_absolute_deviation(row, k)[0] == pytest.approx(
        float(deviation), rel=1e-12, abs=0
    )


def test_an_entry_too_small_to_be_multiplied_is_still_finite():
    row = [5e-324, 1.0]
    assert np.isfinite(float(accuracy.expected_kl(row, 1e-3)))
    assert np.isfinite(np.asarray(accuracy.mean_absolute_deviation(row, 1e-3))).all()


# Simulation (false-alarm rate in accuracy_simulation: 1e-6 a test)


def test_expected_kl_matches_simulation(simulated):
    P, X = simulated.P[:3], simulated.some_rows
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(P > 0, P * np.log(P / X), 0.0).sum(axis=2)
    assert_means(kl, np.asarray(accuracy.expected_kl(P, simulated.k[:3])))


def test_mean_absolute_deviation_matches_simulation(simulated):
    P, X = simulated.P[:3], simulated.some_rows
    deviation = accuracy.mean_absolute_deviation(P, simulated.k[:3])
    assert_means(np.abs(X - P), np.asarray(deviation))


def test_variance_matches_simulation(simulated):
    P, X = simulated.P[:3], simulated.some_rows
    assert_means((X - P) ** 2, np.asarray(accuracy.variance(P, simulated.k[:3])))


def test_closed_forms_hold_where_shapes_are_small():
    p, k = np.array([0.05, 0.15, 0.8]), 4.0
    X = dirichlet_rows(k * p, 200_000, np.random.default_rng(5))
    assert_means((p * np.log(p / X)).sum(axis=1), np.asarray(accuracy.expected_kl(p, k)))
    assert_means(np.abs(X - p), np.asarray(accuracy.mean_absolute_deviation(p, k)))
    assert_means((X - p) ** 2, np.asarray(accuracy.variance(p, k)))


# Structure


@given(rows(), strengths)
def test_no_row_exceeds_the_kl_bound_at_its_own_floor(C, k):
    feasible = C[C > 0]
    kl = accuracy.expected_kl(C, k)
    bound = accuracy.kl_bound(categories=len(feasible), k=k, floor=feasible.min())
    assert 0 <= kl <= float(bound) * (1 + 1e-12)


@given(st.integers(2, 60), st.integers(1, 1000), strengths, st.floats(1, 2))
def test_a_higher_floor_tightens_the_kl_bound(categories, excess, k, factor):
    size = categories * (excess + 1)
    floor = min(factor / size, 1 / categories)
    loose = accuracy.kl_bound(size=size, categories=categories, k=k)
    tight = accuracy.kl_bound(size=size, categories=categories, k=k, floor=floor)
    assert tight <= float(loose) * (1 + 1e-12)


def test_the_kl_bound_is_attained_at_the_vertex():
    vertex = [0.1, 0.1, 0.1, 0.7]
    attained = accuracy.expected_kl(vertex, 25.0)
    assert accuracy.kl_bound(size=10, categories=4, k=25.0) == pytest.approx(float(attained))
    by_floor = accuracy.kl_bound(size=500, categories=4, k=25.0, floor=0.1)
    assert by_floor == pytest.approx(float(attained))


@given(rows(), strengths)
def test_infeasible_entries_contribute_nothing(C, k):
    kl = accuracy.expected_kl(C, k)
    assert accuracy.expected_kl(C[C > 0], k) == pytest.approx(float(kl), rel=1e-12, abs=0)
    assert np.all(np.asarray(accuracy.mean_absolute_deviation(C, k))[C == 0] == 0)


@given(rows(), strengths)
def test_deviations_lie_between_their_bounds(C, k):
    deviation = np.asarray(accuracy.mean_absolute_deviation(C, k))
    variances = np.asarray(accuracy.variance(C, k))
    slack = 1 + 1e-10
    assert np.all(deviation <= float(accuracy.mean_absolute_deviation_bound(k)) * slack)
    assert np.all(deviation <= np.sqrt(variances) * slack)
    assert np.all(variances <= float(accuracy.variance_bound(k)) * slack)


@given(st.integers(3, 400), st.data(), strengths)
def test_deviations_of_counts_are_above_the_lower_bounds(size, data, k):
    count = data.draw(st.integers(1, size - 1))
    deviation = accuracy.mean_absolute_deviation([count / size, 1 - count / size], k)
    least = accuracy.mean_absolute_deviation_lower_bound(size=size, k=k)
    printed = accuracy.paper_mean_absolute_deviation_lower_bound(size=size, categories=2, k=k)
    assert printed <= float(least) * (1 + 1e-10)
    assert np.all(np.asarray(deviation) >= float(least) * (1 - 1e-10))


def test_the_bound_of_the_mean_absolute_deviation_is_its_value_at_one_half():
    at_half = accuracy.mean_absolute_deviation([0.5, 0.5], 7.0)[0]
    assert accuracy.mean_absolute_deviation_bound(7.0) == pytest.approx(float(at_half))


def test_the_lower_bound_of_lemma_8_is_as_printed():
    N, n, k = 6, 3, 2.0
    beta = float(flint.arb(k / N).gamma() * flint.arb(k * (n - 1) / N).gamma())
    beta /= float(flint.arb(k / N + k * (n - 1) / N).gamma())
    powers = (1 / N) ** (k * (1 - (n - 1) / N)) * ((n - 1) / N) ** (k * (1 - 1 / N))
    printed = accuracy.paper_mean_absolute_deviation_lower_bound(size=N, categories=n, k=k)
    assert printed == pytest.approx(2 * powers / (k * beta), rel=1e-12, abs=0)


@given(rows(), st.lists(strengths, min_size=2, max_size=3))
def test_batched_rows_give_what_single_rows_give(C, ks):
    stack = np.tile(C, (len(ks), 1))
    for function in (accuracy.expected_kl, accuracy.mean_absolute_deviation, accuracy.variance):
        single = np.array([np.asarray(function(C, k)) for k in ks])
        np.testing.assert_array_equal(np.asarray(function(stack, ks)), single)


# Errors


@pytest.mark.parametrize("C", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], 1.0])
def test_what_is_no_row_is_refused(C):
    with pytest.raises(DpmarkovError):
        accuracy.expected_kl(C, 10)


def test_counts_passed_for_probabilities_do_not_reach_the_message():
    with pytest.raises(DpmarkovError, match="divide counts") as caught:
        accuracy.expected_kl([[20, 17], [9, 4]], 10)
    assert "37" not in str(caught.value)
    assert "13" not in str(caught.value)


@pytest.mark.parametrize("k", [0, -1, np.inf, np.nan, [1, 2, 3]])
def test_a_strength_that_fits_no_row_is_refused(k):
    with pytest.raises(DpmarkovError, match="k"):
        accuracy.variance([[0.5, 0.5], [0.1, 0.9]], k)


def test_bounds_need_a_possible_least_entry():
    with pytest.raises(DpmarkovError, match="size or floor"):
        accuracy.kl_bound(categories=3, k=10)
    with pytest.raises(DpmarkovError, match="categories"):
        accuracy.kl_bound(size=2, categories=3, k=10)
