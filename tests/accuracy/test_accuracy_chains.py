"""Bounds and prediction for chains, against thousands of simulated privatizations."""

from __future__ import annotations

import numpy as np
import pytest
from accuracy_simulation import clusters, dirichlet_rows, even, stationary, tau_inf, uneven
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpmarkov import accuracy
from dpmarkov.chain import MarkovChain
from dpmarkov.errors import DpmarkovError


def fundamental(P: np.ndarray) -> np.ndarray:
    return np.linalg.inv(np.eye(len(P)) - P + stationary(P))


# Bounds


def test_the_stationary_bound_holds(simulated):
    assert accuracy.stationary_bound(simulated.P, simulated.k) >= simulated.tv.mean()


def test_the_ergodicity_bound_holds(simulated):
    assert accuracy.ergodicity_bound(simulated.P, simulated.k) >= simulated.tau_error.mean()


def test_the_bounds_hold_where_noise_is_large():
    rng = np.random.default_rng(8)
    for P in (even(4), uneven(6), clusters(10)):
        X = dirichlet_rows(2.0 * np.sqrt(len(P)) * P, 2000, rng)
        X = (X + 1e-12) / (X + 1e-12).sum(axis=2, keepdims=True)  # LU needs irreducible rows
        tv = np.abs(stationary(X) - stationary(P)).sum(axis=1).mean() / 2
        k = 2.0 * np.sqrt(len(P))
        assert accuracy.stationary_bound(P, k) >= tv
        assert accuracy.ergodicity_bound(P, k) >= np.abs(tau_inf(X) - tau_inf(P)).mean()


def test_the_variance_of_a_rows_deviation_is_below_both_its_bounds(simulated):
    P, k = simulated.P, simulated.k
    M = np.asarray(accuracy.mean_absolute_deviation(P, k))
    Var = np.asarray(accuracy.variance(P, k))
    cauchy = np.count_nonzero(P, axis=1) * Var.sum(axis=1) - M.sum(axis=1) ** 2
    association = (2 * Var - M**2).sum(axis=1)
    observed = simulated.row_deviation.var(axis=0)
    # the relative error of an observed variance is near sqrt(2 / draws), at most 0.032
    assert np.all(observed <= 1.25 * np.minimum(cauchy, association))
    np.testing.assert_allclose(simulated.row_deviation.mean(axis=0), M.sum(axis=1), rtol=0.1)


def test_the_stationary_bound_is_never_above_the_one_of_theory(simulated):
    P, k = simulated.P, simulated.k
    M = np.asarray(accuracy.mean_absolute_deviation(P, k))
    Var = np.asarray(accuracy.variance(P, k))
    R = M.sum(axis=1)
    V = np.count_nonzero(P, axis=1) * Var.sum(axis=1) - R**2
    largest_row = np.abs(fundamental(P)).sum(axis=1).max()
    assert accuracy.stationary_bound(P, k) <= largest_row / 2 * (R.max() + np.sqrt(V.sum()))


def test_the_ergodicity_bound_is_the_formula_of_theory():
    P, k = even(5), 70.0
    M = np.asarray(accuracy.mean_absolute_deviation(P, k))
    Var = np.asarray(accuracy.variance(P, k))
    formula = M.sum(axis=0).max() + np.sqrt((Var - M**2).sum())
    assert accuracy.ergodicity_bound(P, k) == pytest.approx(formula, rel=1e-12, abs=0)


def test_the_stationary_bound_is_within_a_quarter_of_the_truth_where_noise_is_small():
    P = even(10)
    bound = accuracy.stationary_bound(P, 1e9)
    truth = accuracy.stationary_prediction(P, 1e9).expected_tv
    assert bound / truth == pytest.approx(np.sqrt(np.pi / 2), rel=0.01)


# Prediction


def test_the_prediction_is_good_to_a_tenth(simulated):
    prediction = accuracy.stationary_prediction(simulated.P, simulated.k)
    assert prediction.reliable
    assert prediction.expected_tv == pytest.approx(simulated.tv.mean(), rel=0.1)
    observed = simulated.stationary_error.std(axis=0)
    np.testing.assert_allclose(prediction.standard_deviation, observed, rtol=0.1)
    observed = np.abs(simulated.stationary_error).mean(axis=0)
    np.testing.assert_allclose(prediction.mean_absolute_deviation, observed, rtol=0.1)


def test_a_trap_left_on_the_strength_of_few_counts_makes_the_prediction_rough():
    n = 30
    P = np.full((n, n), 1 / n)
    P[0] = 0.01 / (n - 1)
    P[0, 0] = 0.99
    P[1:, 0] = 0.001 / n
    P /= P.sum(axis=1, keepdims=True)
    k = np.full(n, 1e5)
    k[0] = 200.0
    X = dirichlet_rows(k[:, None] * P, 4000, np.random.default_rng(9))
    tv = np.abs(stationary(X) - stationary(P)).sum(axis=1).mean() / 2
    prediction = accuracy.stationary_prediction(P, k)
    assert prediction.expected_tv < 0.02
    assert prediction.expected_tv != pytest.approx(tv, rel=0.1)
    assert not prediction.reliable
    assert "rough" in str(prediction)
    k[0] = 2e5
    assert accuracy.stationary_prediction(P, k).reliable


@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(-120, -7))
def test_a_chain_that_hardly_holds_together_is_not_called_reliable(seed, split, log_bottleneck):
    rng, part = np.random.default_rng(seed), np.arange(9) < split
    bottleneck = 10.0**log_bottleneck * rng.uniform(0.1, 1, size=(9, 9))
    P = np.where(part[:, None] == part, rng.dirichlet(np.ones(9), size=9), bottleneck)
    P /= P.sum(axis=1, keepdims=True)
    assert not accuracy.stationary_prediction(P, 1e4).reliable
    assert accuracy.stationary_bound(P, 1e4) > 1


def test_states_of_no_weight_do_not_make_a_prediction_rough():
    P = np.diag(np.full(49, 1e-3), 1) + np.diag(np.full(49, 0.5), -1)  # pi falls to 1e-132
    P += np.diag(1 - P.sum(axis=1))
    prediction = accuracy.stationary_prediction(P, 1e6)
    two = accuracy.stationary_prediction([[0.999, 0.001], [0.5, 0.5]], 1e6)
    assert prediction.reliable
    assert prediction.expected_tv == pytest.approx(two.expected_tv, rel=0.01)


def test_the_released_chain_predicts_as_well_as_the_true_one():
    P, rng = even(20), np.random.default_rng(3)
    released = dirichlet_rows(4000.0 * P, 1, rng)[0]
    truth = accuracy.stationary_prediction(P, 4000.0)
    public = accuracy.stationary_prediction(released, 4000.0, released=True)
    assert public.publishable
    assert public.expected_tv == pytest.approx(truth.expected_tv, rel=0.1)


def test_a_prior_taken_away_again_is_predicted_from_means_and_scale():
    n, m, r, rng = 12, 400.0, 0.2, np.random.default_rng(4)
    counts = rng.integers(50, 600, size=(n, n)).astype(float)
    N = counts.sum(axis=1)
    P, total = counts / N[:, None], N + n * m
    X = dirichlet_rows(r * (counts + m), 4000, rng)
    debiased = (X * total[:, None] - m) / N[:, None]
    error = stationary(debiased) - stationary(P)
    noise = {"means": (counts + m) / total[:, None], "scale": total / N}
    prediction = accuracy.stationary_prediction(P, r * total, **noise)
    tv = np.abs(error).sum(axis=1).mean() / 2
    assert prediction.expected_tv == pytest.approx(tv, rel=0.1)
    np.testing.assert_allclose(prediction.standard_deviation, error.std(axis=0), rtol=0.1)
    assert accuracy.stationary_bound(P, r * total, **noise) >= tv
    tau_error = np.abs(tau_inf(debiased) - tau_inf(P)).mean()
    assert accuracy.ergodicity_bound(P, r * total, **noise) >= tau_error


def test_noise_on_counts_is_predicted_from_its_variances():
    n, sigma, rng = 8, 5.0, np.random.default_rng(6)
    counts = rng.integers(100, 900, size=(n, n)).astype(float)
    N = counts.sum(axis=1, keepdims=True)
    noisy = counts + sigma * rng.standard_normal((4000, n, n))
    error = stationary(noisy / noisy.sum(axis=2, keepdims=True)) - stationary(counts / N)
    prediction = accuracy.prediction_from_variances(
        counts / N, np.broadcast_to((sigma / N) ** 2, (n, n))
    )
    np.testing.assert_allclose(prediction.standard_deviation, error.std(axis=0), rtol=0.1)
    tv = np.abs(error).sum(axis=1).mean() / 2
    assert prediction.expected_tv == pytest.approx(tv, rel=0.1)


def test_stretched_deviations_stretch_the_bounds():
    P, k = even(5), 2.0  # noise so large that the linear form of the stationary bound is the least
    for bound in (accuracy.stationary_bound, accuracy.ergodicity_bound):
        stretched = bound(P, k, means=P, scale=np.full(5, 3.0))
        assert stretched == pytest.approx(3 * float(bound(P, k)), rel=1e-12, abs=0)


def test_the_covariance_of_recentred_noise_is_the_sum_over_rows():
    rng, P, q = np.random.default_rng(7), uneven(4), even(4)
    pi, Z, v = stationary(P), fundamental(P), rng.uniform(size=(4, 4))
    expected = np.zeros((4, 4))
    for i in range(4):
        A = np.eye(4) - np.outer(q[i], np.ones(4))
        expected += pi[i] ** 2 * Z.T @ A @ np.diag(v[i]) @ A.T @ Z
    covariance = accuracy.stationary_covariance(pi, Z, v, q)
    np.testing.assert_allclose(covariance, expected, atol=1e-14)


def test_the_covariance_of_dirichlet_rows_is_the_sum_over_rows():
    P, k = uneven(6), np.arange(10.0, 70.0, 10.0)
    pi, Z = stationary(P), fundamental(P)
    expected = sum(
        pi[i] ** 2 * Z.T @ ((np.diag(P[i]) - np.outer(P[i], P[i])) / (k[i] + 1)) @ Z
        for i in range(6)
    )
    covariance = accuracy.stationary_covariance(pi, Z, P / (k[:, None] + 1), P)
    np.testing.assert_allclose(covariance, expected, atol=1e-15)
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-15)


def test_two_states_are_as_computed_by_hand():
    a, b, k = 0.1, 0.2, 1e4
    variance = (b**2 * a * (1 - a) + a**2 * b * (1 - b)) / (k + 1) / (a + b) ** 4
    prediction = accuracy.stationary_prediction([[1 - a, a], [b, 1 - b]], k)
    np.testing.assert_allclose(prediction.standard_deviation, np.sqrt(variance), rtol=1e-9)
    assert prediction.expected_tv == pytest.approx(np.sqrt(2 / np.pi * variance), rel=1e-9, abs=0)


@given(st.permutations(range(7)))
def test_renaming_the_states_changes_nothing(order):
    order = np.array(order)
    P, k = uneven(7), np.arange(100.0, 800.0, 100.0)
    Q, kQ = P[np.ix_(order, order)], k[order]
    for bound in (accuracy.stationary_bound, accuracy.ergodicity_bound):
        assert bound(Q, kQ) == pytest.approx(float(bound(P, k)), rel=1e-9, abs=0)
    renamed, first = (accuracy.stationary_prediction(*x) for x in ((Q, kQ), (P, k)))
    np.testing.assert_allclose(
        renamed.standard_deviation, first.standard_deviation[order], rtol=1e-9
    )


@given(st.floats(0, 6), st.floats(0.1, 3))
def test_more_noise_means_more_error(log_k, more):
    P, k = even(4), 10.0**log_k
    less_noise, more_noise = k * 10**more, k
    for bound in (accuracy.stationary_bound, accuracy.ergodicity_bound):
        assert bound(P, less_noise) < float(bound(P, more_noise))
    predictions = [accuracy.stationary_prediction(P, x) for x in (less_noise, more_noise)]
    assert predictions[0].expected_tv < predictions[1].expected_tv


# The paper's statements


@pytest.mark.parametrize(("n", "simulated_error"), [(20, 1.01), (50, 1.62), (100, 2.30)])
def test_theorem_5_as_printed_fails_where_the_sound_bound_holds(n, simulated_error):
    row = np.array([0.5] + [0.5 / (n - 1)] * (n - 1))
    P, k = np.tile(row, (n, 1)), 1.5 / row.min()
    X = dirichlet_rows(k * P, 1000, np.random.default_rng(n))
    error = np.abs(tau_inf(X) - tau_inf(P)).mean()  # standard error 0.006
    printed = accuracy.paper_ergodicity_bound(P, k, size=1e5)
    assert error == pytest.approx(simulated_error, abs=0.03)
    assert printed == pytest.approx(0.81, abs=0.006)
    assert printed < error
    assert error < accuracy.ergodicity_bound(P, k) < 1.5 * error


def test_theorems_4_and_5_are_as_printed():
    P, N, k = even(3), np.array([90.0, 120.0, 150.0]), np.array([40.0, 50.0, 60.0])
    pi, n = stationary(P), 3
    L = pi @ [float(accuracy.kl_bound(size=N[i], categories=n, k=k[i])) for i in range(n)]
    Z = np.linalg.inv(np.eye(n) - P - np.outer(np.ones(n), pi))
    norm = np.abs(Z).sum(axis=1).max()
    assert accuracy.paper_ergodicity_bound(P, k, size=N) == pytest.approx(np.sqrt(2 * L))
    assert accuracy.paper_stationary_bound(P, k, size=N) == pytest.approx(norm / 2 * np.sqrt(2 * L))


# Errors


def test_a_matrix_that_is_no_chain_is_refused():
    with pytest.raises(DpmarkovError, match="square"):
        accuracy.stationary_bound(np.full((2, 3), 1 / 3), 10)


@pytest.mark.parametrize(
    "ask",
    [
        lambda P: accuracy.stationary_bound(P, 30),
        lambda P: accuracy.stationary_prediction(P, 30),
        lambda P: accuracy.prediction_from_variances(P, np.full((4, 4), 0.01)),
        lambda P: accuracy.paper_stationary_bound(P, 30, size=90),
        lambda P: accuracy.paper_ergodicity_bound(P, 30, size=90),
    ],
)
def test_a_chain_of_two_parts_is_refused_by_the_names_of_its_states(ask):
    apart = MarkovChain(np.kron(np.eye(2), np.full((2, 2), 0.5)), ["a", "b", "c", "d"])
    with pytest.raises(DpmarkovError, match=r"{'c', 'd'} cannot be reached from .* {'a', 'b'}"):
        ask(apart)


def test_a_sparse_chain_too_large_to_be_dense_is_refused():
    with pytest.raises(DpmarkovError, match="20000"):
        accuracy.stationary_prediction(sparse.eye_array(10**6, format="csr"), 10)


@pytest.mark.parametrize("wrap", [MarkovChain, sparse.csr_array, np.ndarray.tolist])
def test_a_chain_may_come_in_any_form(wrap):
    P = even(4)
    for bound in (accuracy.stationary_bound, accuracy.ergodicity_bound):
        assert bound(wrap(P), 30) == pytest.approx(float(bound(P, 30)), rel=1e-12, abs=0)
    prediction = accuracy.stationary_prediction(wrap(P), 30)
    assert prediction.expected_tv == accuracy.stationary_prediction(P, 30).expected_tv


def test_means_and_variances_must_fit_the_chain():
    with pytest.raises(DpmarkovError, match="means"):
        accuracy.stationary_prediction(even(3), 10, means=even(4))
    with pytest.raises(DpmarkovError, match="variances"):
        accuracy.prediction_from_variances(even(3), -even(3))


def test_a_chain_of_one_state_has_no_error():
    assert accuracy.stationary_bound([[1.0]], 5) == 0
    assert accuracy.ergodicity_bound([[1.0]], 5) == 0
    assert accuracy.stationary_prediction([[1.0]], 5).expected_tv == 0
    assert accuracy.stationary_prediction([[1.0]], 5).reliable
