"""Coefficients, eigenvalues and the mixing time, against their definitions."""

from __future__ import annotations

from itertools import pairwise, product
from math import inf

import numpy as np
import pytest
from exact import nearly_decomposable, random_chain
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from dpmarkov.chain import MarkovChain
from dpmarkov.chain.mixing import ergodicity_coefficient_1, ergodicity_coefficient_inf
from dpmarkov.errors import DpmarkovError


def tau_inf_by_linear_programs(P: np.ndarray) -> float:
    """Maximise every entry of x P over x with entries within [-1, 1] that sum to zero."""
    n = len(P)
    return max(
        -linprog(-P[:, j], A_eq=np.ones((1, n)), b_eq=[0], bounds=[(-1, 1)] * n).fun
        for j in range(n)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_tau_inf_is_what_its_definition_maximises(n):
    P = random_chain(np.random.default_rng(n), n, 0.5)
    assert ergodicity_coefficient_inf(P) == pytest.approx(tau_inf_by_linear_programs(P), abs=1e-9)


@given(st.integers(1, 12), st.floats(0, 0.95), st.integers(0, 2**32))
def test_coefficients_of_a_sparse_chain_are_those_of_the_dense_one(n, zeros, seed):
    P = random_chain(np.random.default_rng(seed), n, zeros)
    dense, thin = MarkovChain(P), MarkovChain(sparse.csr_array(P))
    for norm in (1, inf):
        assert thin.ergodicity_coefficient(norm) == pytest.approx(
            dense.ergodicity_coefficient(norm), abs=1e-14
        )


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_tau_1_is_half_the_largest_distance_of_two_rows(n, seed):
    P = random_chain(np.random.default_rng(seed), n, 0.5)
    by_pairs = max(np.abs(p - q).sum() / 2 for p, q in product(P, P))
    assert ergodicity_coefficient_1(P) == pytest.approx(by_pairs, abs=1e-14)


def test_all_pairs_of_rows_are_compared_when_there_are_many():
    P = np.full((700, 700), 1 / 700)
    P[3] = np.eye(700)[0]
    P[650] = np.eye(700)[1]
    assert ergodicity_coefficient_1(P) == 1


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_the_second_eigenvalue_is_at_most_tau_1(n, seed):
    chain = MarkovChain(random_chain(np.random.default_rng(seed), n))
    assert chain.second_eigenvalue_modulus() <= chain.ergodicity_coefficient(1) + 1e-12
    assert chain.spectral_gap() == 1 - chain.second_eigenvalue_modulus()


def test_the_second_eigenvalue_of_known_chains():
    p = 0.125
    assert MarkovChain([[1 - p, p], [p, 1 - p]]).second_eigenvalue_modulus() == pytest.approx(
        1 - 2 * p, abs=1e-14
    )
    assert MarkovChain([[0, 1], [1, 0]]).spectral_gap() == 0
    assert MarkovChain(np.eye(3)).spectral_gap() == 0
    assert MarkovChain([[1.0]]).spectral_gap() == 1


@given(st.integers(1, 10), st.floats(0.001, 0.9), st.integers(0, 2**32))
def test_the_mixing_time_is_the_first_time_that_is_near_enough(n, tol, seed):
    chain = MarkovChain(random_chain(np.random.default_rng(seed), n, 0.6))
    if chain.period > 1:
        return
    pi, power, t = chain.stationary_distribution(), np.eye(n), 0
    while np.abs(power - pi).sum(axis=1).max() / 2 > tol:
        power, t = power @ chain.transition_matrix, t + 1
    assert chain.mixing_time(tol) == t


def test_the_mixing_time_falls_as_the_tolerance_grows():
    chain = MarkovChain(random_chain(np.random.default_rng(2), 20, 0.8))
    times = [chain.mixing_time(tol) for tol in (1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.99)]
    assert all(earlier >= later for earlier, later in pairwise(times))


@pytest.mark.parametrize("flow", [1e-6, 1e-12, 1e-15])
def test_the_mixing_time_of_two_parts_that_hardly_meet(flow):
    """The distance of two coupled states after t steps is (1 - 2 flow)^t / 2 exactly."""
    inner = np.full((4, 4), 0.25)
    P = np.block([[inner * (1 - flow), inner * flow], [inner * flow, inner * (1 - flow)]])
    expected = np.log(0.5 / 0.01) / -np.log1p(-2 * flow)
    assert MarkovChain(P).mixing_time(0.01) == pytest.approx(expected, rel=1e-11, abs=1)


def test_a_chain_that_never_mixes_says_why():
    with pytest.raises(DpmarkovError, match=r"period 2 .* never mixes"):
        MarkovChain([[0, 1], [1, 0]]).mixing_time(0.1)
    P = nearly_decomposable(np.random.default_rng(0), [3, 3], 1e-30)
    with pytest.raises(DpmarkovError, match=r"after 2\^60 steps, and tol is 0.1"):
        MarkovChain(P).mixing_time(0.1)
    with pytest.raises(DpmarkovError, match="tol is 0 and must lie above 0"):
        MarkovChain(P).mixing_time(0)


def test_a_norm_that_has_no_closed_form_is_refused():
    with pytest.raises(DpmarkovError, match="norm is 2 and must be 1 or inf"):
        MarkovChain(np.eye(2)).ergodicity_coefficient(2)
