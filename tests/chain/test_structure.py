"""Classes and periods, against a search through all powers of the pattern."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpmarkov.chain import MarkovChain
from dpmarkov.chain.structure import closed_classes, communicating_classes, period
from dpmarkov.errors import DpmarkovError


def pattern(rng: np.random.Generator, n: int, density: float) -> np.ndarray:
    edges = rng.random((n, n)) < density
    edges[np.arange(n), rng.integers(0, n, n)] = True
    return edges / edges.sum(axis=1, keepdims=True)


def reach(P: np.ndarray) -> np.ndarray:
    n = len(P)
    reached = (P > 0) | np.eye(n, dtype=bool)
    for _ in range(n):
        reached = reached | (reached @ reached)
    return reached


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@given(n=st.integers(1, 12), density=st.floats(0, 0.4), seed=st.integers(0, 2**32))
def test_classes_are_those_of_mutual_reach(form, n, density, seed):
    P = pattern(np.random.default_rng(seed), n, density)
    reached = reach(P)
    mutual = {tuple(np.flatnonzero(row).tolist()) for row in reached & reached.T}
    assert {tuple(c.tolist()) for c in communicating_classes(form(P))} == mutual
    closed = {c for c in mutual if not np.delete(reached[c[0]], c).any()}
    assert {tuple(c.tolist()) for c in closed_classes(form(P))} == closed


@given(n=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_the_period_is_the_common_divisor_of_all_return_times(n, seed):
    P = pattern(np.random.default_rng(seed), n, 0.1)
    kept = closed_classes(P)[0]
    P = P[np.ix_(kept, kept)]
    power, returns = np.eye(len(P), dtype=bool), 0
    for t in range(1, 3 * len(P) + 1):
        power = power @ (P > 0)
        returns = gcd(returns, t) if power.diagonal().any() else returns
    assert period(P) == returns == period(sparse.csr_array(P))


def test_explicit_zeros_of_a_sparse_matrix_are_no_transitions():
    P = sparse.csr_array(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert MarkovChain(P).communicating_classes() == ((0,), (1,))


def test_the_period_of_a_chain_with_transient_states_is_that_of_its_closed_class():
    chain = MarkovChain([[0.5, 0.5, 0], [0, 0, 1], [0, 1, 0]])
    assert chain.period == 2
    assert not chain.is_irreducible


TWO_ISLANDS = MarkovChain(
    [[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0.25, 0, 0.25, 0.5]], ["a", "b", "c", "d"]
)
NOWHERE = MarkovChain(np.eye(3), ["a", "b", "c"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda chain: chain.stationary_distribution(),
        lambda chain: chain.entropy_rate(),
        lambda chain: chain.mixing_time(0.1),
        lambda chain: chain.kemeny_constant(),
        lambda chain: chain.fundamental_matrix(),
        lambda chain: chain.mean_first_passage_times(),
        lambda chain: chain.simulate(3),
        lambda chain: chain.lump("xxy"),
        lambda chain: chain.period,
    ],
)
def test_what_needs_one_closed_class_names_the_states_that_cannot_be_reached(ask):
    with pytest.raises(DpmarkovError, match=r"cannot be reached from the closed class \{'a'\}"):
        ask(NOWHERE)


def test_what_needs_only_one_closed_class_works_with_transient_states():
    assert TWO_ISLANDS.closed_classes() == (("a", "b"),)
    assert TWO_ISLANDS.stationary_distribution() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert TWO_ISLANDS.entropy_rate() == pytest.approx(2 / 3 * np.log(2))
    assert TWO_ISLANDS.mixing_time(0.01) > 1
    with pytest.raises(DpmarkovError, match=r"\{'c', 'd'\} cannot be reached .*\{'a', 'b'\}"):
        TWO_ISLANDS.mean_first_passage_times()


def test_the_way_out_that_the_message_names_works():
    kept = NOWHERE.restrict(NOWHERE.closed_classes()[0])
    assert kept.labels == ("a",)
    assert kept.stationary_distribution() == pytest.approx([1])
    with pytest.raises(DpmarkovError, match="state 'c' never goes to a kept state"):
        TWO_ISLANDS.restrict(["a", "b", "c"])


def test_a_long_list_of_states_is_cut_short():
    with pytest.raises(DpmarkovError, match=r"\{1, 2, 3, 4, 5, and 94 more\}"):
        MarkovChain(np.triu(np.full((100, 100), 0.0)) + np.eye(100)[[0] * 100]).restrict(
            range(100)
        ).mean_first_passage_times()
