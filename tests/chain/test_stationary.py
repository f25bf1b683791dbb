"""The stationary distribution is right in every entry, where residuals alone would not tell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from exact import (
    birth_death,
    birth_death_stationary,
    exact_stationary,
    nearly_decomposable,
    random_chain,
    relative_error,
)
from hypothesis import given
from hypothesis import strategies as st

from dpmarkov.chain import stationary_distribution
from dpmarkov.errors import DpmarkovError

TOLERANCE = 1e-13


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 16, 17, 24, 33])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_agrees_with_exact_fractions_on_random_chains(n, zeros):
    P = random_chain(np.random.default_rng(n), n, zeros)
    assert relative_error(stationary_distribution(P), exact_stationary(P)) <= TOLERANCE


@pytest.mark.parametrize("sizes", [[1, 1], [3, 5], [9, 8], [4, 4, 4], [10, 1, 12]])
@pytest.mark.parametrize("coupling", [1e-8, 1e-17, 1e-60, 1e-130])
def test_agrees_with_exact_fractions_when_parts_are_almost_disconnected(sizes, coupling):
    P = nearly_decomposable(np.random.default_rng(7), sizes, coupling)
    assert relative_error(stationary_distribution(P), exact_stationary(P)) <= TOLERANCE


def test_a_linear_solve_fails_there_with_a_perfect_residual():
    P = nearly_decomposable(np.random.default_rng(7), [9, 8], 1e-17)
    A = (np.eye(17) - P).T
    A[-1] = 1
    pi = np.linalg.solve(A, np.eye(17)[-1])
    assert np.abs(pi @ P - pi).max() < 1e-15
    assert relative_error(pi, exact_stationary(P)) > 0.01


@pytest.mark.parametrize(("n", "ratio"), [(71, 10.0), (30, 250.0), (120, 4.0)])
def test_birth_and_death_is_right_down_to_1e_70(n, ratio):
    rng = np.random.default_rng(n)
    down = rng.uniform(0.3, 0.5, n - 1)
    up = down / ratio * rng.uniform(0.9, 1.1, n - 1)
    exact = birth_death_stationary(up, down)
    assert float(exact[-1]) < 1e-69
    for order in (np.arange(n), np.arange(n)[::-1], rng.permutation(n)):
        P = birth_death(up, down)[np.ix_(order, order)]
        error = relative_error(stationary_distribution(P), [exact[i] for i in order])
        assert error <= TOLERANCE


def test_two_wells_with_a_ridge_below_the_smallest_float_between_them():
    down = np.concatenate([np.full(45, 0.5), np.full(45, 1e-8)])
    up = down[::-1].copy()
    P = birth_death(up, down)
    pi = stationary_distribution(P)
    exact = birth_death_stationary(up, down)
    seen = [i for i, p in enumerate(exact) if p > Fraction(10) ** -300]
    assert relative_error(pi[seen], [exact[i] for i in seen]) <= TOLERANCE


def test_a_large_chain_agrees_with_extended_precision():
    n = 400
    P = nearly_decomposable(np.random.default_rng(3), [150, 250], 1e-17)
    A = P.astype(np.longdouble)
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    pi = np.ones(n, dtype=np.longdouble)
    for k in range(1, n):
        pi[k] = pi[:k] @ A[:k, k]
    pi /= pi.sum()
    assert np.abs(stationary_distribution(P) / pi - 1).max() <= TOLERANCE


def test_the_diagonal_is_never_read():
    P = random_chain(np.random.default_rng(0), 20)
    blind = P.copy()
    np.fill_diagonal(blind, 0.123)
    assert np.array_equal(stationary_distribution(P), stationary_distribution(blind))


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_step_leaves_it_as_it_is_and_the_order_of_states_does_not_matter(n, seed):
    rng = np.random.default_rng(seed)
    P = random_chain(rng, n, zeros=rng.random())
    pi = stationary_distribution(P)
    assert np.abs(pi @ P - pi).max() <= 1e-14
    assert pi.sum() == pytest.approx(1, abs=1e-14)
    order = rng.permutation(n)
    assert stationary_distribution(P[np.ix_(order, order)]) == pytest.approx(pi[order], rel=1e-13)


@pytest.mark.parametrize(
    ("n", "shape"),
    [(1, (4, 6)), (2, (4, 6)), (24, (4, 6)), (25, (4, 6)), (33, (66,)), (63, (3, 2)), (201, (2,))],
)
def test_a_stack_of_chains_gives_what_each_gives_alone(n, shape):
    rng = np.random.default_rng(n)
    stack = np.stack([random_chain(rng, n, 0.5) for _ in range(np.prod(shape))])
    stack = stack.reshape(*shape, n, n)
    stack.flags.writeable = False
    pi = stationary_distribution(stack)
    assert pi.shape == (*shape, n)
    for index in np.ndindex(shape):
        assert pi[index] == pytest.approx(stationary_distribution(stack[index]), rel=1e-13)


@pytest.mark.parametrize("count", [1, 14, 65])  # slices of one chain are no special case
@pytest.mark.parametrize("n", [3, 24, 30])
def test_a_stack_is_left_as_it_was(n, count):
    stack = np.stack([random_chain(np.random.default_rng(n), n)] * count)
    before = stack.copy()
    stationary_distribution(stack)
    assert np.array_equal(stack, before)


@pytest.mark.parametrize("sizes", [[5, 5], [15, 1, 11]])
def test_a_stack_of_nearly_decomposable_chains_is_exact(sizes):
    rng = np.random.default_rng(9)
    stack = np.stack([nearly_decomposable(rng, sizes, flow) for flow in (1e-8, 1e-17)])
    for P, pi in zip(stack, stationary_distribution(stack), strict=True):
        assert relative_error(pi, exact_stationary(P)) <= TOLERANCE


def test_a_stack_may_hold_chains_with_transient_states_and_tiny_flows():
    rng = np.random.default_rng(5)
    transient = np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9]])
    tiny = nearly_decomposable(rng, [1, 2], 1e-200)
    pi = stationary_distribution(np.stack([random_chain(rng, 3), transient, tiny]))
    assert relative_error(pi[1, 1:], [Fraction(1, 6), Fraction(5, 6)]) <= TOLERANCE
    assert pi[1, 0] == 0
    assert relative_error(pi[2], exact_stationary(tiny)) <= TOLERANCE


def test_a_stack_says_which_chain_has_no_single_answer():
    stack = np.stack([np.full((2, 2), 0.5), np.eye(2)])
    with pytest.raises(DpmarkovError, match=r"chain 1 of the stack: .* 2 closed classes"):
        stationary_distribution(stack)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_transient_states_have_probability_zero_wherever_they_stand(first):
    P = np.array([[0.2, 0.8, 0.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9]])
    order = np.roll(np.arange(3), first)
    pi = stationary_distribution(P[np.ix_(order, order)])
    assert pi == pytest.approx(np.array([0, 1 / 6, 5 / 6])[order], rel=1e-14)


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[0.5, 0.5]], r"shape \(1, 2\) and must be square"),
        ([[1.5, -0.5], [0.5, 0.5]], r"entries from -0.5 to 1.5 .* not negative"),
        ([[np.nan, 0.5], [0.5, 0.5]], "must be finite"),
        ([[np.inf, 0.5], [0.5, 0.5]], "must be finite"),
        (np.eye(3), r"3 closed classes .* needed: \{1\} cannot be reached from .* \{0\}"),
    ],
)
def test_what_has_no_answer_is_refused_by_name(P, message):
    with pytest.raises(DpmarkovError, match=message):
        stationary_distribution(P)


def test_flows_below_the_smallest_number_are_refused():
    n = 40
    P = np.diag(np.full(n - 1, 1e-300), 1) + np.diag(np.ones(n - 1), -1)
    with pytest.raises(DpmarkovError, match=r"below the smallest number .* lump\(groups\)"):
        stationary_distribution(P)
