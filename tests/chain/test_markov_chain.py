"""The chain as an object: what it refuses, how it shows itself, and what it does."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from exact import random_chain
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from dpmarkov.chain import MarkovChain
from dpmarkov.errors import DpmarkovError

WEATHER = MarkovChain([[0.9, 0.1, 0], [0.25, 0.5, 0.25], [0, 1, 0]], ["sun", "rain", "fog"])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("P", "labels", "message"),
    [
        ([[0.5, 0.5]], None, r"shape \(1, 2\) and must be square"),
        ([[0.5, 0.6], [0.5, 0.5]], None, r"row 0 sums to 1.1 and must sum to 1 within 1e-08"),
        ([[1, 0], [777, 0]], ["a", "b"], r"row 'b' sums to 2 or more, as rows of counts do, and"),
        ([[1, 0], [0, 0]], ["a", "b"], r"row 'b' sums to 0 .* P\[i, i\] = 1, or leave it out"),
        ([[1, 0], [1.5, -0.5]], ["a", "b"], r"row 'b' holds -0.5 for destination 'b'"),
        ([[1, 0], [np.nan, 1]], ["a", "b"], r"row 'b' holds nan for destination 'a'"),
        (np.eye(2), ["a"], "1 labels are given for 2 states"),
        (np.eye(2), ["a", "a"], "label 'a' is given to several states"),
        (np.eye(2), [["a"], ["b"]], "unhashable"),
    ],
)
def test_what_is_no_chain_is_refused_by_row_value_and_limit(form, P, labels, message):
    with pytest.raises(DpmarkovError, match=message) as error:
        MarkovChain(form(P), labels)
    assert "777" not in str(error.value)


def test_what_holds_no_numbers_is_refused():
    with pytest.raises(DpmarkovError, match="P must hold numbers"):
        MarkovChain([["a"]])
    with pytest.raises(DpmarkovError, match=r"shape \(0,\)"):
        MarkovChain([])


def test_rows_that_sum_to_one_up_to_rounding_are_kept_bit_for_bit():
    P = np.random.default_rng(0).dirichlet(np.ones(50), 50)
    assert np.array_equal(MarkovChain(P).transition_matrix, P)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_that_were_rounded_to_nine_digits_are_divided_by_their_sums(form):
    P = np.random.default_rng(0).dirichlet(np.ones(5), 5).round(9)
    kept = MarkovChain(form(P)).transition_matrix
    assert np.abs(kept.sum(axis=1) - 1).max() < 1e-15
    assert np.abs(kept - P).max() < 1e-8


def test_a_chain_cannot_be_changed_from_outside():
    P = np.full((2, 2), 0.5)
    chain = MarkovChain(P)
    thin = MarkovChain(sparse.csr_array(P))
    P[0] = 7
    assert chain.transition_matrix[0, 0] == 0.5
    for array in (
        chain.transition_matrix,
        thin.transition_matrix.data,
        chain.stationary_distribution(),
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        chain.labels = ("x", "y")


def test_a_chain_survives_pickling():
    again = pickle.loads(pickle.dumps(WEATHER))
    assert again.labels == WEATHER.labels
    assert np.array_equal(again.transition_matrix, WEATHER.transition_matrix)


def test_labels_may_be_anything_hashable():
    labels = [("zone", 1), 2.5, None]
    chain = MarkovChain(WEATHER.transition_matrix, labels)
    assert chain.evolve(("zone", 1)).tolist() == [0.9, 0.1, 0]
    assert chain.evolve(None).tolist() == [0, 1, 0]
    assert chain.restrict([2.5, None]).labels == (2.5, None)


def test_the_representation_says_what_the_chain_is():
    assert (
        repr(WEATHER) == "MarkovChain(3 states: 'sun', 'rain', 'fog'; 6 of 9 transitions possible)"
    )
    large = MarkovChain(sparse.eye_array(10_000))
    assert "10,000 states: 0, 1, 2, 3, ...; 10,000 of 100,000,000" in repr(large)
    html = large._repr_html_()
    assert len(html) < 4000
    assert html.count("<tr>") == 1 + 10 + 1  # names, the first states, and that there are more
    assert html.count("&hellip;") == 2  # to the right and below


def test_a_notebook_shows_untrusted_labels_as_text():
    html = MarkovChain(np.eye(1), ["<script>alert('x')</script>&"])._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;" in html
    assert re.search(r"<td>1</td>", html)


@given(st.integers(1, 10), st.integers(0, 40), st.integers(0, 400), st.integers(0, 2**32))
def test_evolving_twice_is_evolving_for_the_sum_of_the_times(n, first, second, seed):
    rng = np.random.default_rng(seed)
    P = random_chain(rng, n, 0.5)
    x = rng.dirichlet(np.ones(n), 3)
    for chain in (MarkovChain(P), MarkovChain(sparse.csr_array(P))):
        at_once = chain.evolve(x, first + second)
        assert chain.evolve(chain.evolve(x, first), second) == pytest.approx(at_once, abs=1e-12)
    pi = MarkovChain(P).stationary_distribution()
    assert MarkovChain(P).evolve(pi, second) == pytest.approx(pi, abs=1e-12)


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        ("snow", "'snow' is not one of the chain's 3 states"),
        ([0.5, 0.5], r"shape \(2,\) for 3 states"),
        ([1.5, -0.5, 0], "smallest entry -0.5"),
        ([0.5, 0.4, 0], "its sum is 0.1 off 1"),
    ],
)
def test_what_is_no_distribution_is_refused(distribution, message):
    with pytest.raises(DpmarkovError, match=message):
        WEATHER.evolve(distribution)


@pytest.mark.parametrize("steps", [-1, 1.5])
def test_steps_are_counted_in_whole_numbers(steps):
    with pytest.raises(DpmarkovError, match=f"steps is {steps} and must be a whole number"):
        WEATHER.evolve("sun", steps)
    with pytest.raises(DpmarkovError, match="walkers is 0 and must"):
        WEATHER.simulate(1, walkers=0)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32))
def test_lumping_adds_up_the_stationary_distribution(n, groups, seed):
    rng = np.random.default_rng(seed)
    P = random_chain(rng, n, 0.5)
    member = rng.integers(0, groups, n)
    for form in (np.asarray, sparse.csr_array):
        lumped = MarkovChain(form(P)).lump(member.tolist())
        pi = MarkovChain(P).stationary_distribution()
        added = [pi[member == group].sum() for group in lumped.labels]
        assert lumped.stationary_distribution() == pytest.approx(added, rel=1e-12)


def test_lumping_a_lumpable_chain_does_not_depend_on_the_weights():
    P = np.array([[0.2, 0.3, 0.5], [0.4, 0.1, 0.5], [0.3, 0.3, 0.4]])
    chain = MarkovChain(P, ["a", "b", "c"])
    groups = {"a": "ab", "b": "ab", "c": "c"}
    for weights in (None, [1, 0, 1], [1, 5, 2]):
        lumped = chain.lump(groups, weights)
        assert lumped.labels == ("ab", "c")
        assert lumped.transition_matrix == pytest.approx(np.array([[0.5, 0.5], [0.6, 0.4]]))


@pytest.mark.parametrize(
    ("groups", "weights", "message"),
    [
        ({"sun": 1}, None, "2 of 3 states have no group, 'rain' for one"),
        (["x", "y"], None, "2 groups are given for 3 states"),
        (["x", "y", "y"], [1, 0, 0], "group 'y' has weight 0"),
        (["x", "y", "y"], [1, -1, 0], "none negative"),
    ],
)
def test_what_is_no_grouping_is_refused(groups, weights, message):
    with pytest.raises(DpmarkovError, match=message):
        WEATHER.lump(groups, weights)


FALSE_ALARM = (
    1e-6  # of each chi-square test below; the seeds are fixed, so it fails for good or never
)


@pytest.mark.parametrize(("steps", "walkers"), [(20, 20_000), (40_000, 2)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_walkers_step_with_the_probabilities_of_their_row(form, steps, walkers):
    rng = np.random.default_rng(11)
    P = random_chain(rng, 12, 0.4)
    paths = MarkovChain(form(P)).simulate(steps, walkers, rng=rng)
    assert paths.shape == (walkers, steps + 1)
    seen = np.zeros((12, 12))
    np.add.at(seen, (paths[:, :-1], paths[:, 1:]), 1)
    assert (seen[P == 0] == 0).all()
    for p, counts in zip(P, seen, strict=True):
        test = stats.chisquare(counts[p > 0], counts.sum() * p[p > 0] / p.sum())
        assert test.pvalue > FALSE_ALARM


def test_walkers_start_where_they_are_told():
    chain = MarkovChain(random_chain(np.random.default_rng(1), 6), list("abcdef"))
    assert (chain.simulate(0, 100, start="d")[:, 0] == 3).all()
    probabilities = np.array([0, 0.5, 0, 0, 0.25, 0.25])
    for start, expected in (
        (probabilities, probabilities),
        (None, chain.stationary_distribution()),
    ):
        first = chain.simulate(0, 50_000, start=start, rng=3)[:, 0]
        counts = np.bincount(first, minlength=6)
        possible = expected > 0
        assert counts[~possible].sum() == 0
        fit = stats.chisquare(counts[possible], 50_000 * expected[possible])
        assert fit.pvalue > FALSE_ALARM


def test_a_seed_repeats_a_simulation_and_without_one_nothing_repeats():
    assert np.array_equal(WEATHER.simulate(50, 5, rng=1), WEATHER.simulate(50, 5, rng=1))
    assert not np.array_equal(WEATHER.simulate(50, 5), WEATHER.simulate(50, 5))


def test_the_entropy_rate_of_known_chains():
    assert MarkovChain(np.full((8, 8), 1 / 8)).entropy_rate() == pytest.approx(np.log(8))
    assert MarkovChain(np.roll(np.eye(5), 1, axis=1)).entropy_rate() == 0
    P = WEATHER.transition_matrix
    assert MarkovChain(sparse.csr_array(P)).entropy_rate() == pytest.approx(WEATHER.entropy_rate())
