"""What fits into a budget: held against sums that are done by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmarkov as dpm
from dpmarkov.ledger.another import remaining
from dpmarkov.ledger.budget import Budget, Spending, fits, largest, spent
from dpmarkov.noise import Gaussian, Geometric
from dpmarkov.privacy import compose

PURE = Budget("transition", epsilon=1, delta=0)
LOOSE = Budget("transition", epsilon=1, delta=1e-6)
SHARES = st.lists(
    st.tuples(st.integers(1, 60), st.sampled_from([None, "a", "b", "c"])), max_size=12
)


def pure(hundredths, part=None):
    epsilon = hundredths / 100
    noise = Geometric.calibrated("transition", epsilon=epsilon, delta=0)
    return Spending(dpm.Guarantee("transition", epsilon, 0.0, noise, conditions=()), part)


def normal(epsilon, delta=1e-8):
    noise = Gaussian.calibrated("transition", epsilon=epsilon, delta=delta)
    return dpm.Guarantee("transition", epsilon, delta, noise, conditions=())


def by_hand(shares):
    """Add up the hundredths that touch the part which is touched most."""
    everywhere = sum(n for n, part in shares if part is None)
    return everywhere + max(sum(n for n, its in shares if its == part) for part in "abc")


@given(SHARES)
@settings(max_examples=200)
def test_pure_charges_fit_as_long_as_their_sums_do(shares):
    charges = [pure(*share) for share in shares]
    assert fits(charges, PURE) == (by_hand(shares) <= 100)
    assert Fraction(repr(spent(charges, PURE))) == Fraction(by_hand(shares), 100)


@given(SHARES, st.sampled_from([None, "a", "d"]))
@settings(max_examples=30)
def test_what_remains_of_a_pure_budget_is_the_rest(shares, part):
    charges = [pure(*share) for share in shares]
    left = remaining(charges, PURE, mechanism="geometric", delta=0.0, part=part)
    touched = [(n, its) for n, its in shares if its in (None, part)]
    rest = 100 - (by_hand(shares) if part is None else sum(n for n, _ in touched))
    if by_hand(shares) <= 100:
        assert left == pytest.approx(max(rest, 0) / 100, rel=1e-3, abs=2e-6)
    assert not left or fits([*charges, pure(left * 100, part)], PURE)


def test_many_releases_fit_where_their_sums_do_not():
    one = normal(0.1)
    fitting = 0
    while fits([Spending(one, None)] * (fitting + 1), LOOSE):
        fitting += 1
    assert fitting > 60  # their epsilons add up to more than 6
    assert compose([one] * fitting).profile(1.0) <= 1e-6 < compose([one] * (fitting + 1)).profile(1)
    assert spent([Spending(one, None)] * fitting, LOOSE) <= 1


@given(st.lists(st.floats(0.01, 0.9), min_size=1, max_size=6))
@settings(max_examples=20)
def test_the_composed_total_is_never_above_the_sum_nor_below_one_alone(epsilons):
    charges = [Spending(normal(epsilon), None) for epsilon in epsilons]
    total = spent(charges, LOOSE)
    assert total <= sum(epsilons) * (1 + 1e-9)
    alone = max(compose([charge.guarantee]).epsilon(1e-6) for charge in charges)
    assert total >= alone * (1 - 1e-6)


@pytest.mark.parametrize("limit", [2 / 3, 1.0, 1e-5, 123.456, 17])
def test_the_largest_is_found_to_four_digits_from_below(limit):
    found = largest(lambda epsilon: epsilon <= limit, 1.0)
    assert limit * (1 - 1e-3) <= found <= limit


def test_the_search_ends_where_everything_or_nothing_is_allowed():
    assert largest(lambda _: False, 1.0) == 0
    assert largest(lambda _: True, 1.0) > 1e6
