"""Passage times, the fundamental matrix and Kemeny's constant against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from exact import (
    exact_hitting_times,
    exact_stationary,
    nearly_decomposable,
    random_chain,
    relative_error,
)
from hypothesis import given
from hypothesis import strategies as st

from dpmarkov.chain import MarkovChain, fundamental_matrix, stationary_distribution
from dpmarkov.chain.passage import hitting_times, kemeny_constant
from dpmarkov.errors import DpmarkovError

CHAINS = {
    **{f"random {n}": random_chain(np.random.default_rng(n), n, 0.4) for n in (1, 2, 3, 9, 14)},
    **{
        f"coupled by {coupling:g}": nearly_decomposable(
            np.random.default_rng(1), [4, 1, 6], coupling
        )
        for coupling in (1e-9, 1e-17, 1e-50)
    },
}


@pytest.fixture(params=CHAINS.values(), ids=CHAINS.keys())
def P(request):
    return request.param


def test_passage_times_are_exact_to_rounding_also_between_parts_that_hardly_meet(P):
    exact = exact_hitting_times(P)
    assert relative_error(hitting_times(P), [h for row in exact for h in row]) <= 1e-13


def test_times_to_return_are_the_reciprocals_of_the_stationary_distribution(P):
    pi = exact_stationary(P)
    times = MarkovChain(P).mean_first_passage_times()
    assert relative_error(np.diag(times), [1 / p for p in pi]) <= 1e-13


def test_kemeny_constant_is_exact_to_rounding_and_the_same_for_every_start(P):
    pi, H = exact_stationary(P), exact_hitting_times(P)
    by_start = {sum(p * h for p, h in zip(pi, row, strict=True)) for row in H}
    assert len(by_start) == 1
    found = np.array([kemeny_constant(P, stationary_distribution(P))])
    assert relative_error(found, list(by_start)) <= 1e-13


def test_the_diagonal_of_the_fundamental_matrix_is_exact_to_rounding(P):
    pi, H = exact_stationary(P), exact_hitting_times(P)
    n = len(pi)
    exact = [pi[j] * (1 + sum(pi[i] * H[i][j] for i in range(n))) for j in range(n)]
    Z = fundamental_matrix(P, stationary_distribution(P))
    assert relative_error(np.diag(Z), exact) <= 1e-13


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_the_fundamental_matrix_is_the_inverse_that_defines_it(n, seed):
    P = random_chain(np.random.default_rng(seed), n, 0.3)
    pi = stationary_distribution(P)
    inverse = np.linalg.inv(np.eye(n) - P + pi)
    scale = np.abs(inverse).max()
    assert np.abs(fundamental_matrix(P, pi) - inverse).max() <= 1e-12 * scale**2
    assert kemeny_constant(P, pi) == pytest.approx(np.trace(inverse) - 1, rel=1e-11, abs=1e-12)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32))
def test_transient_states_are_part_of_the_fundamental_matrix(recurrent, transient, seed):
    rng = np.random.default_rng(seed)
    n = recurrent + transient
    P = np.zeros((n, n))
    P[:recurrent, :recurrent] = random_chain(rng, recurrent)
    P[recurrent:] = rng.dirichlet(np.ones(n), transient)
    order = rng.permutation(n)
    P = P[np.ix_(order, order)]
    pi = stationary_distribution(P)
    inverse = np.linalg.inv(np.eye(n) - P + pi)
    assert np.abs(fundamental_matrix(P, pi) - inverse).max() <= 1e-11 * np.abs(inverse).max() ** 2
    assert kemeny_constant(P, pi) == pytest.approx(np.trace(inverse) - 1, rel=1e-10, abs=1e-12)


def test_an_infinite_passage_time_is_refused_by_name():
    chain = MarkovChain([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], ["door", "hall", "room"])
    with pytest.raises(DpmarkovError, match=r"\{'door'\} cannot be reached from .*'hall', 'room'"):
        chain.mean_first_passage_times()
